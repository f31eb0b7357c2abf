//! What a client knows of its cluster, and how it learns more.

use crate::cluster::Names;
use crate::connect::{Attempt, ConnectError, ConnectOptions};
use crate::error::{Asked, Error, Operation};
use crate::thread::World;
use crate::{ClusterId, ServerId, Shape};
use areo_core::config::{Configuration, Members};
use areo_core::dsm;
use areo_core::error::Unavailable;
use areo_core::gather;
use areo_core::manager;
use areo_core::message::{Refusal, Reply, Request, ServerRecord};
use areo_net::env::NetEnv;
use areo_net::network::{Bootstrap, BootstrapError};
use areo_net::{PeerState, Status};
use std::rc::Rc;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::sleep;

/// How long the directory of a quorum is waited for where the one of a single server would do.
const DIRECTORY_PATIENCE: Duration = Duration::from_secs(1);
/// The directory is asked for again after this time: servers join and move.
const DIRECTORY_AGE: Duration = Duration::from_secs(30);

/// How long a cluster that is starting is left alone before it is asked again which servers there are.
const STARTING_PAUSE: Duration = Duration::from_millis(50);

/// What a client knows of its cluster.
pub(crate) struct Known {
    pub(crate) cluster: ClusterId,
    pub(crate) root: Arc<Configuration>,
    /// Where the user said that servers are.
    seeds: Vec<String>,
    /// Replaced, never changed: read for names in answers and errors, not by the operations themselves.
    names: RwLock<Arc<Names>>,
}

impl Known {
    pub(crate) fn names(&self) -> Arc<Names> {
        let names = self.names.read();
        names.expect("no holder of the lock panics").clone()
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

/// One operation on the network thread: its world and its deadline.
pub(crate) struct Session {
    pub(crate) world: Rc<World>,
    pub(crate) known: Arc<Known>,
    pub(crate) client: dsm::Client<NetEnv>,
}

impl Session {
    /// An operation that may go on for `timeout`.
    pub(crate) fn new(world: Rc<World>, known: Arc<Known>, timeout: Duration) -> Session {
        let client = world.client.with(world.network.env(timeout));
        let session = Session {
            world,
            known,
            client,
        };
        let asked = session.world.asked_directory.get();
        if asked.is_none_or(|asked| asked.elapsed() > DIRECTORY_AGE) {
            session.refresh_aside();
        }
        session
    }

    /// A part of the operation with a deadline of its own.
    pub(crate) fn within(&self, timeout: Duration) -> dsm::Client<NetEnv> {
        self.client.with(self.world.network.env(timeout))
    }

    /// Asks a quorum which servers there are, for a second at most: what one server knew is nearly always enough.
    pub(crate) async fn refresh(&self) {
        refresh(&self.world, &self.known, DIRECTORY_PATIENCE).await;
    }

    /// Before the root domain is asked something: finds its members if they are not known yet, because the cluster was
    /// just starting when this client connected.
    pub(crate) async fn find_root(&self) {
        if !knows_root_quorum(&self.world, &self.known) {
            self.refresh().await;
        }
    }

    /// The same as [`Session::refresh`], without waiting for it.
    fn refresh_aside(&self) {
        let (world, known) = (self.world.clone(), self.known.clone());
        world.asked_directory.set(Some(Instant::now()));
        drop(spawn_local(async move {
            refresh(&world, &known, DIRECTORY_PATIENCE).await;
        }));
    }

    /// The servers that a quorum knows; takes note of them.
    ///
    /// # Errors
    /// No quorum in time.
    pub(crate) async fn servers(&self, operation: Operation) -> Result<Arc<Names>, Error> {
        self.find_root().await;
        match manager::servers(&self.client, &self.known.root).await {
            Ok(records) => {
                learn(&self.world, &self.known, records.into_values());
                Ok(self.known.names())
            }
            Err(failed) => Err(self.not_applied(&self.asked_root(operation), &failed)),
        }
    }

    /// What was asked of a domain's configuration; `None` is the root domain.
    pub(crate) fn asked<'a>(
        operation: Operation,
        domain: Option<&'a str>,
        configuration: &Configuration,
        key: Option<&'a str>,
    ) -> Asked<'a> {
        Asked {
            operation,
            domain,
            key,
            configuration: configuration.id().index,
            shape: Shape::of(configuration),
        }
    }

    /// What was asked of the root domain.
    pub(crate) fn asked_root(&self, operation: Operation) -> Asked<'static> {
        let root = self.client.sequences().start(&self.known.root);
        Session::asked(operation, None, &root, None)
    }

    /// The error of an operation that had no effect.
    pub(crate) fn not_applied(&self, asked: &Asked<'_>, failed: &Unavailable) -> Error {
        self.look_again();
        asked.not_applied(failed, |server| self.describe(server))
    }

    /// The error of a write that some server was sent.
    pub(crate) fn unknown(&self, asked: &Asked<'_>, failed: &Unavailable) -> Error {
        self.look_again();
        asked.unknown(failed, |server| self.describe(server))
    }

    /// Servers that did not answer may have moved: the next operation asks where they are.
    fn look_again(&self) {
        self.world.asked_directory.set(None);
    }

    /// A server's name, and why it cannot be reached if it cannot.
    pub(crate) fn describe(&self, server: ServerId) -> (String, Option<String>) {
        let state = self.world.network.server_state(server);
        let reason = match &state {
            None => Some("is not in the directory".into()),
            Some(state) => reason(state),
        };
        (self.known.names().name(server), reason)
    }
}

fn reason(state: &PeerState) -> Option<String> {
    match state.status {
        Status::Refused(refusal) => Some(refusal.to_string()),
        Status::Unreachable => state.last_error.clone(),
        Status::Idle | Status::Connecting | Status::Connected => None,
    }
}

/// Asks a quorum which servers there are. Where that comes to nothing, a single server may know where the others are
/// now: all that are known, and those at the addresses that the user gave, are asked for what they know.
pub(crate) async fn refresh(world: &World, known: &Known, patience: Duration) {
    if knows_root_quorum(world, known) {
        let client = world.client.with(world.network.env(patience));
        if let Ok(records) = manager::servers(&client, &known.root).await {
            world.asked_directory.set(Some(Instant::now()));
            return learn(world, known, records.into_values());
        }
    }
    let servers: Members = known.names().records().keys().copied().collect();
    let env = world.network.env(patience);
    let ask_known = async {
        match servers.is_empty() {
            true => Vec::new(),
            false => gather::survey(&env, &servers, Request::Directory).await,
        }
    };
    let mut asking = ask_seeds(world, &known.seeds, Some(known.cluster), patience);
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

/// Whether enough members of the root domain can be found for a quorum of them to answer.
fn knows_root_quorum(world: &World, known: &Known) -> bool {
    let (names, root) = (known.names(), world.client.sequences().start(&known.root));
    let is_known = |member: &&ServerId| names.records().contains_key(member);
    let known_members = root.members().iter().filter(is_known).count();
    known_members >= root.quorums().quorum()
}

fn learn(world: &World, known: &Known, records: impl Iterator<Item = ServerRecord>) {
    known.merge(records);
    // What is known, not what came: of two records of a server the one with the larger incarnation is right.
    let names = known.names();
    let newest = names.records().values().cloned();
    world.network.learn(known.cluster.0, newest);
}

/// Asks all addresses at once who is there; the first that answers is enough. Then a quorum, for servers that the first
/// does not know.
///
/// # Errors
/// [`ConnectError`].
pub(crate) async fn find_cluster(
    world: Rc<World>,
    options: ConnectOptions,
) -> Result<Arc<Known>, ConnectError> {
    let found = first_answer(&world, &options).await?;
    let known = Arc::new(Known {
        cluster: ClusterId(found.cluster),
        root: found.directory.root,
        seeds: options.addresses.clone(),
        names: RwLock::default(),
    });
    learn(&world, &known, found.directory.servers.into_iter());
    let patience = DIRECTORY_PATIENCE.min(options.timeout);
    let started = Instant::now();
    refresh(&world, &known, patience).await;
    // A cluster that is starting: its servers get to know each other just now.
    while !knows_root_quorum(&world, &known) && started.elapsed() < patience {
        sleep(STARTING_PAUSE).await;
        refresh(&world, &known, patience.saturating_sub(started.elapsed())).await;
    }
    Ok(known)
}

async fn first_answer(world: &World, options: &ConnectOptions) -> Result<Bootstrap, ConnectError> {
    assert!(!options.addresses.is_empty(), "checked by the caller");
    let mut asking = ask_seeds(world, &options.addresses, options.cluster, options.timeout);
    let mut reasons = vec![String::new(); options.addresses.len()];
    while let Some((position, answer)) = asking.next().await {
        match answer {
            Ok(found) => return Ok(found),
            Err(error) => reasons[position] = reason_of(&error),
        }
    }
    let attempts = options.addresses.iter().cloned().zip(reasons);
    Err(ConnectError::NoServer {
        cluster: options.cluster,
        attempts: attempts
            .map(|(address, reason)| Attempt { address, reason })
            .collect(),
    })
}

/// Addresses that are being asked who is there; dropped, no more.
struct Asking(JoinSet<(usize, Result<Bootstrap, BootstrapError>)>);

impl Asking {
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
) -> Asking {
    let expected = cluster.map(|cluster| cluster.0);
    let mut asking = JoinSet::new();
    for (position, address) in addresses.iter().enumerate() {
        let (network, address) = (world.network.clone(), address.clone());
        asking.spawn_local(async move {
            let answer = network.bootstrap(&address, expected, patience).await;
            (position, check_cluster(answer, expected))
        });
    }
    Asking(asking)
}

/// A server tells a caller that means another cluster; one that tells nothing is not trusted either.
fn check_cluster(
    answer: Result<Bootstrap, BootstrapError>,
    expected: Option<u128>,
) -> Result<Bootstrap, BootstrapError> {
    let found = answer?;
    match found.cluster != 0 && expected.is_none_or(|expected| expected == found.cluster) {
        true => Ok(found),
        false => Err(BootstrapError::Unreachable {
            error: Refusal::WrongCluster.to_string(),
        }),
    }
}

fn reason_of(error: &BootstrapError) -> String {
    match error {
        BootstrapError::Malformed => "is no Areo server".into(),
        error => error.to_string(),
    }
}
