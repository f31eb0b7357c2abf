//! The servers of a cluster as one process sees them: a [`Peer`] for each, found by id.
//!
//! [`Network::bootstrap`] and [`Network::ask`] go to one server on a connection of their own.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_core::config::ServerId;
use areo_core::instant::Instant as CoreInstant;
use areo_core::message::{Directory, Note, PeerView, Reply, Request, ServerRecord};
use areo_wire::codec;
use areo_wire::frame::{Refusal, TraceContext};
use areo_wire::hello::Role;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tracing::Span;

use crate::encryption::Tls;
use crate::message::Outgoing;
use crate::metrics::{Calls, Peers};
use crate::outside::DecideOutside;
use crate::peer::{Answer, Peer, PeerConfig, PeerState, Sink, Status, Traffic};
use crate::pool::{IDLE_BYTES, Pool};
use crate::trace::TraceSource;

mod asking;

pub use asking::{AskError, Contact, Destination, Response, TrustResponse};

/// Farther away than any deadline.
const FAR: Duration = Duration::from_hours(24 * 365 * 30);

/// All servers that are known, by id. Clones are the same network; belongs to one thread.
#[derive(Clone)]
pub struct Network {
    shared: Rc<Shared>,
}

struct Shared {
    role: Role,
    own_id: u128,
    tls: Option<Tls>,
    cluster: Cell<u128>,
    started: Instant,
    random: Cell<u64>,
    pool: Pool,
    peers: RefCell<BTreeMap<ServerId, Peer>>,
    /// Peers without a known address: calls to them wait.
    strangers: RefCell<BTreeSet<ServerId>>,
    /// Servers that the cluster has forgotten: none of them is called any more, also if a later message names it.
    forgotten: RefCell<BTreeSet<ServerId>>,
    /// A stranger was asked something.
    strangers_asked: Notify,
    /// The counters of calls, if there are any.
    calls: OnceCell<Rc<Calls>>,
    /// The metrics of the connections with servers, if there are any.
    shown: OnceCell<Peers>,
    /// The source of the trace that a request is sent for, if there is one.
    trace_source: Cell<Option<TraceSource>>,
    /// The way to services outside, if there is one.
    decide_outside: Cell<Option<DecideOutside>>,
}

/// The server that answered at an address.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    pub cluster: u128,
    /// The server that answered.
    pub server: ServerId,
    /// The root configuration and the servers that this one knows.
    pub directory: Directory,
}

/// A server that did not answer, or not with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootstrapError {
    /// No process answers there.
    Unreachable {
        /// The error of the operating system, or of the handshake.
        error: String,
    },
    /// A process answers, and refuses.
    Refused { refusal: Refusal },
    /// A process answers, and one end does not take the other by TLS.
    Distrusted {
        /// The fault, and the way to mend it, in one sentence.
        sentence: String,
    },
    /// No answer came in time.
    TimedOut,
    /// The answer made no sense.
    Malformed,
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootstrapError::Unreachable { error } => f.write_str(error),
            BootstrapError::Refused { refusal } => write!(f, "refused: {refusal}"),
            BootstrapError::Distrusted { sentence } => f.write_str(sentence),
            BootstrapError::TimedOut => f.write_str("timed out"),
            BootstrapError::Malformed => f.write_str("what answers there is no Areo server"),
        }
    }
}

impl std::error::Error for BootstrapError {}

impl Network {
    /// A network without servers, whose connections are plain. `own_id` names this process to servers.
    pub fn new(role: Role, own_id: u128) -> Network {
        Network::with_tls(role, own_id, None)
    }

    /// A network without servers, whose connections are encrypted if there is something to encrypt them with.
    pub fn with_tls(role: Role, own_id: u128, tls: Option<Tls>) -> Network {
        Network::sharing(role, own_id, tls, Pool::new(IDLE_BYTES))
    }

    /// A network as [`Network::with_tls`] makes it, which receives into the buffers of a pool that others may share.
    pub fn sharing(role: Role, own_id: u128, tls: Option<Tls>, pool: Pool) -> Network {
        // Ids of clients are drawn from it: without entropy two of them could be the same.
        let seed = getrandom::u64().expect("the operating system gives entropy");
        Network {
            shared: Rc::new(Shared {
                role,
                own_id,
                tls,
                cluster: Cell::new(0),
                started: Instant::now(),
                random: Cell::new(seed),
                pool,
                peers: RefCell::default(),
                strangers: RefCell::default(),
                forgotten: RefCell::default(),
                strangers_asked: Notify::new(),
                calls: OnceCell::new(),
                shown: OnceCell::new(),
                trace_source: Cell::new(None),
                decide_outside: Cell::new(None),
            }),
        }
    }

    /// The certificates of this process; `None`: its connections are plain.
    pub fn tls(&self) -> Option<&Tls> {
        self.shared.tls.as_ref()
    }

    /// Counts the cost of operations here from now on. The first call counts.
    pub fn count(&self, calls: Calls) {
        self.shared.calls.get_or_init(|| Rc::new(calls));
    }

    /// Makes requests carry from now on the identity that `source` gives of the span in which they are sent.
    pub fn trace_by(&self, source: TraceSource) {
        self.shared.trace_source.set(Some(source));
    }

    /// The identity of a span that is watched.
    pub(crate) fn trace_of(&self, span: &Span) -> Option<TraceContext> {
        let source = self.shared.trace_source.get();
        source.filter(|_| !span.is_disabled())?(span)
    }

    /// Asks services outside by `way` from now on.
    pub fn decide_outside_by(&self, way: DecideOutside) {
        self.shared.decide_outside.set(Some(way));
    }

    pub(crate) fn way_outside(&self) -> Option<DecideOutside> {
        self.shared.decide_outside.get()
    }

    /// Shows the connections with servers from now on, by the names of those that are learnt. The first call counts.
    pub fn show(&self, peers: Peers) {
        self.shared.shown.get_or_init(|| peers);
    }

    fn show_peer(&self, name: &str, peer: &Peer) {
        if let Some(shown) = self.shared.shown.get()
            && !name.is_empty()
        {
            peer.show(|| shown.of(name));
        }
    }

    pub(crate) fn calls(&self) -> Option<Rc<Calls>> {
        self.shared.calls.get().cloned()
    }

    /// Asks one address who is there.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub async fn bootstrap(
        &self,
        address: &str,
        expected_cluster: Option<u128>,
        patience: Duration,
    ) -> Result<Bootstrap, BootstrapError> {
        let mut config = self.config(address);
        config.cluster = expected_cluster.unwrap_or(0);
        let peer = Peer::new(config);
        let body = codec::encode_request(&Request::Directory).body;
        let (sender, answer) = oneshot::channel();
        let sink = Rc::new(Once(RefCell::new(Some(sender))));
        let message = Outgoing::new(body, Some(patience));
        if let Err(refused) = peer.call(message, sink, 0) {
            let error = refused.to_string();
            return Err(BootstrapError::Unreachable { error });
        }
        let reply = match timeout(patience, answer).await {
            Ok(Ok(Ok(reply))) => reply,
            Ok(Ok(Err(BootstrapError::Unreachable { .. }))) => {
                let state = peer.state();
                let error = state.last_error.unwrap_or_else(|| "no connection".into());
                return Err(match state.is_distrusted {
                    true => BootstrapError::Distrusted { sentence: error },
                    false => BootstrapError::Unreachable { error },
                });
            }
            Ok(Ok(Err(error))) => return Err(error),
            Ok(Err(_)) | Err(_) => return Err(BootstrapError::TimedOut),
        };
        let Reply::Directory(directory) = reply else {
            return Err(BootstrapError::Malformed);
        };
        let state = peer.state();
        Ok(Bootstrap {
            cluster: state.cluster,
            server: ServerId(state.server),
            directory,
        })
    }

    fn config(&self, address: &str) -> PeerConfig {
        let pool = self.shared.pool.clone();
        PeerConfig {
            role: self.shared.role,
            cluster: self.shared.cluster.get(),
            tls: self.shared.tls.clone(),
            ..PeerConfig::new(address.into(), self.shared.own_id, pool)
        }
    }

    /// Takes note of servers: where they are, and their incarnations. Addresses may change, ids do not. A server that is forgotten
    /// is not called any more: another one may be at its address.
    pub fn learn(&self, cluster: u128, servers: impl IntoIterator<Item = ServerRecord>) {
        self.shared.cluster.set(cluster);
        let mut over = Vec::new();
        let mut peers = self.shared.peers.borrow_mut();
        let mut forgotten = self.shared.forgotten.borrow_mut();
        for record in servers {
            if record.is_forgotten() {
                forgotten.insert(record.id);
            }
            if forgotten.contains(&record.id) {
                self.shared.strangers.borrow_mut().remove(&record.id);
                over.extend(peers.remove(&record.id));
                continue;
            }
            if let Some(peer) = peers.get(&record.id) {
                self.show_peer(&record.name, peer);
                peer.learn_incarnation(record.incarnation);
                peer.set_address(record.address);
                if self.shared.strangers.borrow_mut().remove(&record.id) {
                    peer.connect();
                }
                continue;
            }
            let config = PeerConfig {
                server: record.id.0,
                known_incarnation: record.incarnation,
                ..self.config(&record.address)
            };
            let peer = Peer::new(config);
            self.show_peer(&record.name, &peer);
            peers.insert(record.id, peer);
        }
        drop((peers, forgotten));
        // Outside the borrows: what waits for one of them may look for servers when it ends.
        drop(over);
    }

    /// Tells a server something that is not answered. False: there is no connection to it yet, or no room in its queue; one is
    /// made, to be told the next time.
    pub fn tell(&self, to: ServerId, note: &Note) -> bool {
        let Some(peer) = self.peer(to) else {
            return false;
        };
        // No note has a payload.
        let is_told = peer.tell(&Outgoing::new(codec::encode_note(note).body, None));
        if !is_told {
            peer.connect();
        }
        is_told
    }

    /// Lets each server that is out of reach be tried again at once: something has changed.
    pub fn hurry(&self) {
        let peers: Vec<Peer> = self.shared.peers.borrow().values().cloned().collect();
        let is_out = |peer: &&Peer| !matches!(peer.status(), Status::Idle | Status::Connected);
        peers.iter().filter(is_out).for_each(Peer::connect);
    }

    /// The state of a server's connections; `None` if its address is not known.
    pub fn server_state(&self, server: ServerId) -> Option<PeerState> {
        let known = !self.is_stranger(server);
        let peer = self.peer(server).filter(|_| known);
        peer.map(|peer| peer.state())
    }

    /// The servers that were asked something, by id, and whether each is connected.
    pub fn views(&self) -> Vec<PeerView> {
        let peers = self.shared.peers.borrow();
        let asked = peers
            .iter()
            .filter(|(_, peer)| peer.status() != Status::Idle);
        let view = |(server, peer): (&ServerId, &Peer)| PeerView {
            server: *server,
            is_connected: peer.status() == Status::Connected,
        };
        asked.map(view).collect()
    }

    /// The servers that have owed an answer for this time or longer, by id: to tell a person what an operation waits
    /// for.
    pub fn owing(&self, for_at_least: Duration) -> Vec<ServerId> {
        let owes = |peer: &Peer| {
            let age = peer.state().oldest_call_age;
            age.is_some_and(|age| age >= for_at_least)
        };
        let peers = self.shared.peers.borrow();
        let owing = peers.iter().filter(|(_, peer)| owes(peer));
        owing.map(|(server, _)| *server).collect()
    }

    /// Waits until a call is made to a server without a known address. The caller of this should find the address then, and
    /// [`Network::learn`] it: the calls go on.
    pub async fn stranger_asked(&self) {
        self.shared.strangers_asked.notified().await;
    }

    /// The servers without a known address for which calls wait.
    pub fn strangers_wanted(&self) -> BTreeSet<ServerId> {
        let peers = self.shared.peers.borrow();
        let strangers = self.shared.strangers.borrow();
        let waits = |server: &ServerId| peers[server].state().calls > 0;
        strangers.iter().copied().filter(waits).collect()
    }

    /// The traffic of all connections to known servers so far, those that have ended included.
    pub fn traffic(&self) -> Traffic {
        self.shared.peers.borrow().values().map(Peer::traffic).sum()
    }

    /// Sends waiting notes and lets queued messages leave, for this time at most. To be called before a process ends:
    /// notes of completed writes let servers drop replaced versions, and a server that lags behind its quorum still
    /// gets its element.
    pub async fn flush(&self, patience: Duration) {
        let peers: Vec<Peer> = self.shared.peers.borrow().values().cloned().collect();
        let until = Instant::now() + patience;
        peers.iter().for_each(Peer::flush);
        loop {
            // The connections are tasks of this thread: let each of them write.
            tokio::task::yield_now().await;
            let queued = peers.iter().any(|peer| peer.queued_bytes() > 0);
            if !queued || Instant::now() >= until {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn peer(&self, server: ServerId) -> Option<Peer> {
        self.shared.peers.borrow().get(&server).cloned()
    }

    /// The server, or a stand-in that keeps its requests until its address is known.
    pub(crate) fn peer_or_stranger(&self, server: ServerId) -> Peer {
        if let Some(peer) = self.peer(server) {
            if self.is_stranger(server) {
                self.shared.strangers_asked.notify_one();
            }
            return peer;
        }
        let config = PeerConfig {
            server: server.0,
            ..self.config("")
        };
        let peer = Peer::new(config);
        if self.shared.forgotten.borrow().contains(&server) {
            // Nothing will say where it is.
            return peer;
        }
        let mut peers = self.shared.peers.borrow_mut();
        peers.insert(server, peer.clone());
        self.shared.strangers.borrow_mut().insert(server);
        self.shared.strangers_asked.notify_one();
        peer
    }

    pub(crate) fn is_stranger(&self, server: ServerId) -> bool {
        self.shared.strangers.borrow().contains(&server)
    }

    pub(crate) fn now(&self) -> CoreInstant {
        let nanos = self.shared.started.elapsed().as_nanos();
        CoreInstant(u64::try_from(nanos).expect("585 years of uptime do not happen"))
    }

    /// This point in time by the runtime's clock; one that never comes is far away.
    pub(crate) fn instant(&self, at: CoreInstant) -> Instant {
        let time = Duration::from_nanos(at.0);
        self.shared.started + time.min(FAR)
    }

    /// `splitmix64` from a seed of the operating system.
    pub(crate) fn random(&self) -> u64 {
        let state = self.shared.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.shared.random.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Hands the first answer to the waiting caller.
struct Once(RefCell<Option<oneshot::Sender<Result<Reply, BootstrapError>>>>);

impl Sink for Once {
    fn on_answer(&self, _token: u64, answer: Answer<'_>) {
        let Some(sender) = self.0.borrow_mut().take() else {
            return;
        };
        let result = match answer {
            Answer::Reply(incoming) => codec::decode_reply(incoming.body, Vec::new())
                .map_err(|_| BootstrapError::Malformed),
            Answer::Refused { refusal, .. } => Err(BootstrapError::Refused { refusal }),
            Answer::Unreachable { .. } => Err(BootstrapError::Unreachable {
                error: String::new(),
            }),
        };
        // The caller may have run out of time.
        let _ = sender.send(result);
    }
}
