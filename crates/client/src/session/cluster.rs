//! A client's knowledge of its cluster, and the ways to learn more.

use super::domain::KnownDomain;
use super::thread::World;
use crate::cluster::{ClusterId, Names};
use crate::connect::{Attempt, ConnectError, ConnectOptions};
use areo_core::config::{Members, ServerId};
use areo_core::dsm;
use areo_core::error::Unavailable;
use areo_core::gather;
use areo_core::manager;
use areo_core::message::{Refusal, Reply, Request, ServerRecord};
use areo_net::env::NetEnv;
use areo_net::network::{Bootstrap, BootstrapError};
use std::rc::Rc;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{sleep, timeout};

/// The time that the directory of a quorum is waited for where the one of a single server would do.
pub(super) const DIRECTORY_PATIENCE: Duration = Duration::from_secs(1);
/// The wait of a connecting client for the answers of a quorum. Silent servers take longer; then the first server's
/// directory is enough, and later answers are taken in beside the first operation.
const OTHERS_AT_FIRST: Duration = Duration::from_millis(100);
/// The directory is asked for again after this time: servers join and move.
const DIRECTORY_AGE: Duration = Duration::from_secs(30);

/// Once one address has answered, the others have four times as long as that took, and at least and at most so long, to show that
/// they are of another cluster.
const OTHERS_LEAST: Duration = Duration::from_millis(5);
const OTHERS_MOST: Duration = Duration::from_millis(100);

/// The time that a cluster that is starting is left alone before it is asked again which servers there are.
const STARTING_PAUSE: Duration = Duration::from_millis(50);

/// The knowledge of a client about its cluster.
pub(crate) struct KnownCluster {
    pub(crate) id: ClusterId,
    pub(crate) root: Arc<KnownDomain>,
    /// The addresses of servers that the user gave.
    seeds: Vec<String>,
    /// Replaced, never changed: read for names in answers and errors, not by the operations themselves.
    names: RwLock<Arc<Names>>,
}

impl KnownCluster {
    pub(crate) fn names(&self) -> Arc<Names> {
        let names = self.names.read();
        names.expect("no holder of the lock panics").clone()
    }

    /// Addresses at which servers may be, those that the user named first.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let names = self.names();
        let known = names.servers().map(|record| &record.address);
        let mut addresses = self.seeds.clone();
        for address in known {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        addresses
    }

    fn merge(&self, records: impl IntoIterator<Item = ServerRecord>) {
        let mut merged = self.names().records().clone();
        for record in records {
            manager::merge_record(&mut merged, record);
        }
        let names = Arc::new(Names::new(merged));
        *self.names.write().expect("no holder of the lock panics") = names;
    }
}

/// Asks a quorum which servers there are if that was long ago, without waiting for the answer.
pub(super) fn refresh_if_old(world: &Rc<World>, known: &Arc<KnownCluster>) {
    let asked = world.asked_directory.get();
    if asked.is_some_and(|asked| asked.elapsed() <= DIRECTORY_AGE) {
        return;
    }
    world.asked_directory.set(Some(Instant::now()));
    let (world, known) = (world.clone(), known.clone());
    drop(spawn_local(async move {
        refresh(&world, &known, DIRECTORY_PATIENCE).await;
    }));
}

/// Asks a quorum which servers there are, and takes note of them.
///
/// # Errors
/// No quorum before the client's deadline.
pub(super) async fn ask_quorum(
    world: &World,
    known: &KnownCluster,
    client: &dsm::Client<NetEnv>,
) -> Result<(), Unavailable> {
    let records = client.root(known.root.found()).servers().await?;
    learn(world, known, records.into_values());
    Ok(())
}

/// Asks a quorum for the servers of the cluster. If that fails, a single server may know the current addresses of the
/// others: all known servers, and those at the addresses that the user gave, are asked for their records.
pub(super) async fn refresh(world: &World, known: &KnownCluster, patience: Duration) {
    if knows_root_quorum(world, known) {
        let client = world.client.with(world.network.env(patience));
        if ask_quorum(world, known, &client).await.is_ok() {
            world.asked_directory.set(Some(Instant::now()));
            return;
        }
    }
    let servers: Members = known.names().servers().map(|record| record.id).collect();
    let env = world.network.env(patience);
    let ask_known = async {
        if servers.is_empty() {
            Vec::new()
        } else {
            gather::survey(&env, &servers, Request::Directory).await
        }
    };
    let mut asking = ask_seeds(world, &known.seeds, Some(known.id), patience);
    let ask_seeds = async {
        let mut found = Vec::new();
        while let Some((_, answer)) = asking.next().await {
            found.extend(answer.map(|bootstrap| bootstrap.directory));
        }
        found
    };
    let (replies, mut directories) = tokio::join!(ask_known, ask_seeds);
    directories.extend(
        replies
            .into_iter()
            .flatten()
            .filter_map(|reply| match reply {
                Reply::Directory(directory) => Some(directory),
                _ => None,
            }),
    );
    let records = directories
        .into_iter()
        .flat_map(|directory| directory.servers);
    learn(world, known, records);
}

/// True if enough members of the root domain can be found for a quorum of them to answer.
pub(super) fn knows_root_quorum(world: &World, known: &KnownCluster) -> bool {
    let (names, root) = (known.names(), known.root.latest(&world.client));
    let is_known = |member: &&ServerId| names.records().contains_key(member);
    let known_members = root.members().iter().filter(is_known).count();
    known_members >= root.quorums().quorum()
}

fn learn(world: &World, known: &KnownCluster, records: impl Iterator<Item = ServerRecord>) {
    known.merge(records);
    // What is known, not what came: of two records of a server the one with the larger incarnation is right.
    let names = known.names();
    let newest = names.records().values().cloned();
    world.network.learn(known.id.0, newest);
}

/// Asks all addresses at once who is there; the first that answers is enough. Then a quorum, for servers that the first
/// does not know: for a moment, and longer where the first knows too few members of the root domain.
///
/// # Errors
/// [`ConnectError`].
pub(super) async fn find(
    world: Rc<World>,
    options: ConnectOptions,
) -> Result<Arc<KnownCluster>, ConnectError> {
    if let Some(key) = &world.key {
        key.begin(&options.addresses, options.timeout).await?;
    }
    let found = first_answer(&world, &options).await?;
    let root = KnownDomain::new(None, found.directory.root);
    let known = Arc::new(KnownCluster {
        id: ClusterId(found.cluster),
        root: Arc::new(root),
        seeds: options.addresses.clone(),
        names: RwLock::default(),
    });
    learn(&world, &known, found.directory.servers.into_iter());
    if let Some(key) = &world.key {
        let (world, known) = (Rc::downgrade(&world), Arc::clone(&known));
        key.keep(move || Some((world.upgrade()?.network.clone(), known.addresses())));
    }
    let patience = DIRECTORY_PATIENCE.min(options.timeout);
    let asking = spawn_local(ask_others(world.clone(), known.clone(), patience));
    let asked = timeout(OTHERS_AT_FIRST, asking).await;
    if asked.is_err() && !knows_root_quorum(&world, &known) {
        // A cluster that is starting: its servers get to know each other just now.
        ask_others(world, known.clone(), patience).await;
    }
    Ok(known)
}

/// Asks a quorum which servers there are, and again for as long as too few members of the root domain are known.
async fn ask_others(world: Rc<World>, known: Arc<KnownCluster>, patience: Duration) {
    let started = Instant::now();
    refresh(&world, &known, patience).await;
    while !knows_root_quorum(&world, &known) && started.elapsed() < patience {
        sleep(STARTING_PAUSE).await;
        refresh(&world, &known, patience.saturating_sub(started.elapsed())).await;
    }
}

async fn first_answer(world: &World, options: &ConnectOptions) -> Result<Bootstrap, ConnectError> {
    assert!(!options.addresses.is_empty(), "checked by the caller");
    let mut asking = ask_seeds(world, &options.addresses, options.cluster, options.timeout);
    let mut reasons = vec![String::new(); options.addresses.len()];
    let mut is_keyed = false;
    let begun = Instant::now();
    while let Some((position, answer)) = asking.next().await {
        match answer {
            Ok(found) => {
                let first = (position, found.cluster);
                // Others that answer as fast are to be of the same cluster.
                let grace = (begun.elapsed() * 4).clamp(OTHERS_LEAST, OTHERS_MOST);
                let other = timeout(grace, other_cluster(&mut asking, found.cluster)).await;
                return match other {
                    Ok(Some(other)) => Err(ConnectError::SeveralClusters {
                        found: [first, other]
                            .map(|(at, id)| (options.addresses[at].clone(), ClusterId(id)))
                            .into(),
                    }),
                    Ok(None) | Err(_) => Ok(found),
                };
            }
            Err(error) => {
                is_keyed |= error
                    == BootstrapError::Refused {
                        refusal: Refusal::Unauthorised,
                    };
                reasons[position] = reason_of(&error);
            }
        }
    }
    if is_keyed && options.access.is_none() {
        let sentence = "this cluster has keys, and this client shows none: set AREO_KEY to one, or use a cluster file that has one in it (`areo key create`)";
        return Err(ConnectError::Unauthorised {
            sentence: sentence.to_owned(),
        });
    }
    let attempts = options.addresses.iter().cloned().zip(reasons);
    Err(ConnectError::NoServer {
        cluster: options.cluster,
        attempts: attempts
            .map(|(address, reason)| Attempt { address, reason })
            .collect(),
    })
}

/// The first of the other answers that is of another cluster, with the place of its address.
async fn other_cluster(asking: &mut BootstrapCalls, cluster: u128) -> Option<(usize, u128)> {
    while let Some((position, answer)) = asking.next().await {
        if let Ok(found) = answer
            && found.cluster != cluster
        {
            return Some((position, found.cluster));
        }
    }
    None
}

/// Addresses that are being asked who is there; dropped, no more.
struct BootstrapCalls(JoinSet<(usize, Result<Bootstrap, BootstrapError>)>);

impl BootstrapCalls {
    /// The next answer, with the position of its address.
    async fn next(&mut self) -> Option<(usize, Result<Bootstrap, BootstrapError>)> {
        let answer = self.0.join_next().await?;
        Some(answer.expect("asking does not panic, and is aborted only when dropped"))
    }
}

/// Asks all addresses at once.
fn ask_seeds(
    world: &World,
    addresses: &[String],
    cluster: Option<ClusterId>,
    patience: Duration,
) -> BootstrapCalls {
    let expected = cluster.map(|cluster| cluster.0);
    let mut asking = JoinSet::new();
    for (position, address) in addresses.iter().enumerate() {
        let (network, address) = (world.network.clone(), address.clone());
        asking.spawn_local(async move {
            let answer = network.bootstrap(&address, expected, patience).await;
            (position, check_cluster(answer, expected))
        });
    }
    BootstrapCalls(asking)
}

/// A server tells a caller that means another cluster; one that tells nothing is not trusted either.
fn check_cluster(
    answer: Result<Bootstrap, BootstrapError>,
    expected: Option<u128>,
) -> Result<Bootstrap, BootstrapError> {
    let found = answer?;
    if found.cluster != 0 && expected.is_none_or(|expected| expected == found.cluster) {
        Ok(found)
    } else {
        Err(BootstrapError::Unreachable {
            error: Refusal::WrongCluster.to_string(),
        })
    }
}

fn reason_of(error: &BootstrapError) -> String {
    match error {
        BootstrapError::Malformed => "is no Areo server".into(),
        error => error.to_string(),
    }
}
