//! Before a server answers for objects, the root domain confirms that this is its latest start; what this detects, and what
//! it cannot, is written down in the decision records 0002 and 0017.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::gather::join;
use areo_core::manager::{self, Root, StartError, StartOutcome};
use areo_core::message::{Refusal, Request, ServerRecord};
use areo_core::starts::{StartPhase, Starts};
use areo_net::Tls;
use areo_net::env::NetEnv;
use areo_net::metrics::Peers;
use areo_net::network::{BootstrapError, Network};
use areo_wire::hello::Role;
use tokio::sync::{mpsc, oneshot};

use crate::caller::Caller;
use crate::cluster::{self, ClusterHealth};
use crate::error::ServeError;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::worker::Worker;
use room::Room;

/// The longest time for one attempt: several times the patience, because an attempt may lead through several configurations.
const ATTEMPT: Duration = Duration::from_secs(15);
/// The sentence for a machine that shows no token to a cluster that has keys.
const NO_TOKEN: &str = "its cluster has keys: have a token made there (`areo token create`), and pass it (--token FILE)";
/// The wait before addresses that have not answered are asked again.
const ASK_SEEDS_AGAIN: Duration = Duration::from_millis(300);
/// The longest wait for the answer of one address.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time after which an attempt names the servers that it waits for.
const LATE: Duration = Duration::from_secs(2);
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Addresses that are asked at once.
const WINDOW: usize = 16;

/// Addresses at which servers may be.
pub(crate) struct Seeds {
    pub(crate) all: Vec<String>,
    /// Addresses among them that were given to be joined: a server of another cluster there is a mistake.
    pub(crate) joined: Vec<String>,
}

/// The record of itself that a starting server gives the others, and the servers that it can ask.
pub(crate) struct Registrar {
    /// The way to the root domain.
    pub(crate) access: Rc<RootAccess>,
    pub(crate) record: ServerRecord,
    pub(crate) seeds: Seeds,
    /// Servers that this one knows from before.
    pub(crate) known: Vec<ServerRecord>,
    /// The number of this process ([`areo_net::Listener::process`]).
    pub(crate) process: u64,
    /// The record of its start, once that is confirmed.
    confirmed: OnceCell<ServerRecord>,
    /// The last position of its log that the root domain has recorded.
    told: Cell<Option<u64>>,
}

/// The way to the root domain, for as long as the server runs.
///
/// A member that has asked the members before it for nothing since the domain moved would look for it there for ever, once they are gone. So each
/// operation begins where the server itself knows that domain to be.
pub(crate) struct RootAccess {
    pub(crate) network: Network,
    /// A client of the root domain, which has seen a part of its sequence.
    client: Client<NetEnv>,
    /// The first configuration of the root domain that it knows.
    pub(crate) root: Arc<Configuration>,
    worker: Rc<Worker>,
}

impl RootAccess {
    fn new(network: Network, root: Arc<Configuration>, worker: &Rc<Worker>) -> RootAccess {
        RootAccess {
            client: Client::new(network.env(ATTEMPT)),
            network,
            root,
            worker: Rc::clone(worker),
        }
    }

    /// The root domain, for operations that together have this timeout.
    pub(crate) fn within(&self, time: Duration) -> Root<NetEnv> {
        self.client(self.network.env(time)).root(&self.root)
    }

    /// The client of the root domain in this environment.
    pub(crate) fn client(&self, env: NetEnv) -> Client<NetEnv> {
        self.begin(&self.client);
        self.client.with(env)
    }

    /// Has a client begin where this server knows the root domain to be. One that outlives an operation does so before the next one.
    pub(crate) fn begin(&self, client: &Client<NetEnv>) {
        if let Some(known) = self.worker.root() {
            client.sequences().learn(&known);
        }
    }

    /// The last configuration of the root domain that is known.
    pub(crate) fn last(&self) -> Arc<Configuration> {
        self.begin(&self.client);
        self.client.sequences().start(&self.root)
    }

    /// Another server has this configuration as the last one of the root domain: that may have moved while this server was down.
    fn learn(&self, root: &Arc<Configuration>) {
        let (found, ours) = (root.id(), self.root.id());
        if (found.domain, found.partition) == (ours.domain, ours.partition) {
            self.client.sequences().learn(root);
        }
    }
}

impl Registrar {
    pub(crate) fn new(
        identity: &Identity,
        record: ServerRecord,
        seeds: Seeds,
        (known, root): (Vec<ServerRecord>, Arc<Configuration>),
        (process, peers, tls): (u64, Peers, Option<Tls>),
        worker: &Rc<Worker>,
    ) -> Registrar {
        let network = Network::with_tls(Role::Server, identity.server.0, tls);
        network.show(peers);
        Registrar {
            access: Rc::new(RootAccess::new(network, root, worker)),
            record,
            seeds,
            known,
            process,
            confirmed: OnceCell::new(),
            told: Cell::new(None),
        }
    }

    /// The connections to other servers.
    pub(crate) fn network(&self) -> &Network {
        &self.access.network
    }

    /// Takes the process to a confirmed start, however long that takes: the others may still be down. `write` writes
    /// these starts into the directory, durably. A server that `abstains` anyway may have a log that is behind.
    pub(crate) async fn start(
        &self,
        identity: &Identity,
        abstains: bool,
        mut write: impl FnMut(Starts) -> Result<(), ServeError>,
    ) -> Result<StartOutcome, ServeError> {
        let mut known: BTreeMap<ServerId, ServerRecord> = BTreeMap::new();
        for record in self.known.iter().chain([&self.record]) {
            manager::merge_record(&mut known, record.clone());
        }
        self.network()
            .learn(identity.cluster, known.values().cloned());
        let mut starting = StartPhase::new(identity.starts).abstaining(abstains);
        let mut heard = BTreeMap::new();
        let mut unheard = self
            .ask_seeds(identity, self.seeds.all.clone(), &mut heard)
            .await?;
        loop {
            let (record, root) = (&self.record, self.access.within(ATTEMPT));
            let answers = async |known: &ServerRecord| self.is_occupied(identity, known).await;
            let attempt = root.start(&mut starting, record, &mut write, answers);
            let attempt = self.say_if_late(attempt);
            tokio::select! {
                outcome = attempt => match outcome {
                    Ok(started) => {
                        if let StartOutcome::Confirmed(record) = &started {
                            self.told.set(record.position);
                            let is_first = self.confirmed.set((**record).clone()).is_ok();
                            assert!(is_first, "a process has one start");
                        }
                        return Ok(started);
                    }
                    Err(StartError::Write(error)) => return Err(error),
                    Err(StartError::Unavailable(unavailable)) if unavailable.is_register_full() => {
                        return Err(ServeError::RegisterFull);
                    }
                    Err(StartError::Unavailable(unavailable)) if unavailable.is_old_program() => {
                        let program = self.record.program.clone();
                        return Err(ServeError::OldProgram { program });
                    }
                    Err(StartError::Unavailable(unavailable)) => {
                        tracing::info!(%unavailable, "waiting for a quorum of the root domain");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                // It may have said where the root domain is by now.
                left = self.hear_more(identity, &unheard, &mut heard) => unheard = left?,
            }
        }
    }

    /// Takes an attempt to its end. If that is late, a line of the log names the servers that owe their answers.
    async fn say_if_late<T>(&self, attempt: impl Future<Output = T>) -> T {
        let mut attempt = std::pin::pin!(attempt);
        tokio::select! {
            biased;
            outcome = &mut attempt => return outcome,
            () = tokio::time::sleep(LATE) => {}
        }
        let name = |server: ServerId| {
            let mut known = self.known.iter();
            let record = known.find(|record| record.id == server);
            record.map_or_else(|| self.access.worker.name_of(server), |it| it.name.clone())
        };
        let owing = self.network().owing(LATE / 2).into_iter();
        let mut names: Vec<String> = owing.map(name).collect();
        names.sort();
        tracing::info!(
            servers = names.join(", "),
            "waiting for members of the root domain"
        );
        attempt.await
    }

    /// Answers those who want to know how the cluster is, one after the other.
    pub(crate) async fn show_cluster(
        &self,
        id: u128,
        mut asked: mpsc::Receiver<oneshot::Sender<ClusterHealth>>,
    ) -> Infallible {
        while let Some(answer) = asked.recv().await {
            let client = self.access.client(self.glance());
            let root = &self.access.root;
            let servers = client.root(root).servers().await.unwrap_or_default();
            self.network().learn(id, servers.values().cloned());
            // Of domains that are not known now nothing is said.
            let (glance, mut known) = (|| self.glance(), Vec::new());
            let seen = cluster::look(&client, glance, root, &mut known).await;
            // The caller may be gone.
            let _ = answer.send(seen.health(&servers));
        }
        std::future::pending().await
    }

    /// The world of one question about the state of the cluster.
    fn glance(&self) -> NetEnv {
        self.network().env(cluster::PATIENCE)
    }

    /// Looks at the cluster now and then, shows its findings in the metrics, and logs whether disks have room for
    /// writes. Never returns.
    pub(crate) async fn watch_domains(&self, metrics: &Metrics, worker: &Worker) -> Infallible {
        let (mut known, mut room) = (Vec::new(), Room::default());
        loop {
            let (glance, client) = (|| self.glance(), self.access.client(self.glance()));
            let seen = cluster::look(&client, glance, &self.access.root, &mut known).await;
            metrics.seen(&seen.domains);
            let lines = room.due(&seen.domains, |id| worker.name_of(*id), Instant::now());
            for line in lines {
                tracing::warn!("{line}");
            }
            tokio::time::sleep(cluster::PERIOD).await;
        }
    }

    /// Returns when one more address has answered, with those that have not.
    async fn hear_more(
        &self,
        identity: &Identity,
        unheard: &[String],
        heard: &mut BTreeMap<ServerId, String>,
    ) -> Result<Vec<String>, ServeError> {
        while !unheard.is_empty() {
            tokio::time::sleep(ASK_SEEDS_AGAIN).await;
            let left = self.ask_seeds(identity, unheard.to_vec(), heard).await?;
            if left.len() < unheard.len() {
                return Ok(left);
            }
        }
        std::future::pending().await
    }

    /// Learns from each address which server is there, and whom that knows; `heard` are those that have answered. Returns the
    /// addresses that did not answer.
    async fn ask_seeds(
        &self,
        identity: &Identity,
        seeds: Vec<String>,
        heard: &mut BTreeMap<ServerId, String>,
    ) -> Result<Vec<String>, ServeError> {
        let ask = |seed: String| async {
            // A server of another cluster is to say so.
            let answer = self.network().bootstrap(&seed, None, PATIENCE);
            (answer.await, seed)
        };
        let mut unheard = Vec::new();
        for (answer, seed) in join(WINDOW, seeds.into_iter().map(ask)).await {
            match answer {
                Ok(found) if found.cluster == identity.cluster => {
                    self.access.learn(&found.directory.root);
                    let (server, others) = (found.server, found.directory.servers);
                    let elsewhere = others
                        .into_iter()
                        .filter(|record| record.id != identity.server);
                    self.network().learn(identity.cluster, elsewhere);
                    heard.insert(server, seed);
                }
                Ok(found) if self.seeds.joined.contains(&seed) => {
                    return Err(ServeError::OtherCluster {
                        address: seed,
                        found: found.cluster,
                        own: identity.cluster,
                    });
                }
                Ok(_) => tracing::warn!(%seed, "a server of another cluster answers there"),
                Err(error) => {
                    tracing::debug!(%seed, %error, "no answer");
                    unheard.push(seed);
                }
            }
        }
        // Where a server has answered counts more than where anybody says that it is, whoever answered first.
        let answered = heard.iter();
        let answered =
            answered.map(|(server, seed)| ServerRecord::at_address(*server, seed.clone()));
        self.network().learn(identity.cluster, answered);
        Ok(unheard)
    }

    /// Fetches the root domain's records of the other servers, so that this server can give them to clients. The node
    /// also takes in the latest configuration of the root domain.
    pub(crate) async fn learn_servers(&self, worker: &Rc<Worker>) {
        match self.access.within(ATTEMPT).servers().await {
            Ok(servers) => {
                let root = self.access.last();
                let id = root.id();
                let latest = Request::Latest {
                    domain: id.domain,
                    partition: id.partition,
                    known: (id.index > 0).then_some(root),
                };
                worker.request(latest, Caller::nobody(), None);
                for record in servers.into_values() {
                    worker.request(Request::Know(record), Caller::nobody(), None);
                }
                worker.turn();
            }
            Err(unavailable) => tracing::info!(%unavailable, "the other servers are not known yet"),
        }
    }
}

/// Asks the addresses of a cluster to be joined who they are, until one answers.
pub(crate) async fn find_cluster(
    seeds: &[String],
    network: &Network,
) -> Result<areo_net::network::Bootstrap, ServeError> {
    let (mut attempts, mut refused) = (Vec::new(), None);
    for seed in seeds {
        let error = match network.bootstrap(seed, None, PATIENCE).await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        attempts.push((seed.clone(), error.to_string()));
        let address = seed.clone();
        match error {
            BootstrapError::Distrusted { sentence } => refused = Some((address, sentence)),
            BootstrapError::Refused {
                refusal: Refusal::Unauthorised,
            } => refused = Some((address, NO_TOKEN.to_owned())),
            _ => {}
        }
    }
    Err(match refused {
        Some((address, sentence)) => ServeError::NotJoined { address, sentence },
        None => ServeError::Join { attempts },
    })
}

/// Checks that the servers that answer at these addresses are of one cluster. Those that do not answer are asked again later.
pub(crate) async fn check_seeds(seeds: &[String], network: &Network) -> Result<(), ServeError> {
    let ask = async |seed: &String| {
        let found = network.bootstrap(seed, None, PATIENCE).await.ok()?;
        Some((seed.clone(), found.cluster))
    };
    let answers = join(WINDOW, seeds.iter().map(ask)).await;
    let mut answers = answers.into_iter().flatten();
    let Some((_, own)) = answers.next() else {
        return Ok(());
    };
    match answers.find(|(_, cluster)| *cluster != own) {
        None => Ok(()),
        Some((address, found)) => Err(ServeError::OtherCluster {
            address,
            found,
            own,
        }),
    }
}

/// True if an address can be reached from this machine only.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}

pub(crate) mod place;
mod room;
#[cfg(test)]
mod tests;
