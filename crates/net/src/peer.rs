//! A client's view of one server: calls in flight, two connections, reconnects and resends.
//!
//! A call is an entry in a table and bytes in a queue; no task, no channel. Its [`Sink`] is told on the task that
//! read the answer. What a sink may hear:
//!
//! ```text
//!              ┌──────────────── Unreachable { will_retry: true } ───────────────┐
//!              │ (connection lost or refused; resent when there is one again)    │
//!   call ──────┴───────────────────────────────────┬─ Reply ──────────── gone ◄──┤
//!                                                  ├─ Refused ────────── gone ◄──┤
//!                                                  └─ Unreachable { false } gone ◄┘  (deadline passed)
//! ```
//!
//! Resending is safe because handlers are idempotent. A server that cannot be reached delays no other call: its calls
//! learn it at once and go on waiting in the background, up to their deadlines. A server that is the wrong one (another
//! cluster, another server at its address, an old copy of its data) refuses every call until that has changed.

mod backoff;
mod calls;
pub(crate) mod known;
mod link;
mod liveness;
pub(crate) mod opening;
mod standing;

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_wire::frame::{FrameError, Limits, Refusal};
use areo_wire::hello::{Channel, Role};

use crate::encryption::Tls;
use crate::message::{Incoming, Outgoing};
use crate::metrics::LinkMetrics;
use crate::pool::Pool;
use known::PeerKnowledge;
use link::Link;

/// The end of a call. Everything but `Unreachable { will_retry: true }` is final.
#[derive(Debug)]
pub enum Answer<'a> {
    /// The server's reply; the body is borrowed, the payload is the sink's.
    Reply(Incoming<'a>),
    /// The server will not do it. Counts in no quorum; an earlier attempt may have had an effect.
    Refused {
        refusal: Refusal,
        /// An explanation in the codec's terms; often empty.
        body: &'a [u8],
    },
    /// The present attempt has failed. Whether the server saw it is unknown.
    Unreachable {
        /// The call stays in the table and is sent again when there is a connection. False: it is over, its
        /// deadline has passed.
        will_retry: bool,
    },
}

/// The receiver of a call's events: usually the tally of a fan-out, one for all its servers.
pub trait Sink {
    /// Called on the task that reads, once per final answer and once per failed attempt. May make and forget calls.
    /// `token` is the token that the caller gave with the call.
    fn on_answer(&self, token: u64, answer: Answer<'_>);
}

/// Why a call was not taken. Nothing of it was sent, the sink hears nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefusal {
    /// The queue of this server has as many calls, or bytes, as it may have.
    QueueFull {
        /// Calls in the table.
        calls: usize,
        /// Bytes in the table or in the queue, whichever is more.
        bytes: usize,
    },
    /// The server refused the hello, or has said goodbye. Holds until a connection succeeds.
    ByServer { refusal: Refusal },
    /// The message is over a limit of the format.
    TooLarge {
        /// The limit that is exceeded.
        error: FrameError,
    },
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallRefusal::QueueFull { calls, bytes } => {
                write!(formatter, "queue full: {calls} calls, {bytes} bytes")
            }
            CallRefusal::ByServer { refusal } => write!(formatter, "{refusal}"),
            CallRefusal::TooLarge { error } => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for CallRefusal {}

/// Names a call in flight at its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    channel: Channel,
    id: u64,
}

/// A call that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Identity of the call, for its reply.
    pub key: CallKey,
    /// False if the server is known to be unreachable at present: the call waits for a connection, and the
    /// caller should go on with the other servers as after `Unreachable { will_retry: true }`.
    pub reachable: bool,
}

/// The address of a server, the identity that it should have, and the limits of its queue.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Address of the server: host and port.
    pub address: String,
    /// The cluster that it should be of; 0 if not known yet.
    pub cluster: u128,
    /// The server that should be there; 0 if any will do.
    pub server: u128,
    /// The highest incarnation of it that is known.
    pub known_incarnation: u64,
    /// Role of this process: client or server.
    pub role: Role,
    /// The caller's own id.
    pub own_id: u128,
    /// Limits of one frame.
    pub limits: Limits,
    /// Calls in flight on one connection.
    pub max_calls: usize,
    /// Bytes in flight on one connection; a call that finds none is always taken.
    pub max_bytes: usize,
    /// The longest time that an attempt to connect may take.
    pub connect_timeout: Duration,
    /// The longest time that the hello may take.
    pub hello_timeout: Duration,
    /// A server that has given no sign of life for a third of this is pinged, and cut off before it ends.
    pub silence_timeout: Duration,
    /// Read window of the connection of small calls, in bytes.
    pub window_bytes: usize,
    /// The pool of receive buffers.
    pub pool: Pool,
    /// Keys and roots of TLS, if the connection is encrypted.
    pub tls: Option<Tls>,
}

impl PeerConfig {
    /// The usual limits, for a client with id `own_id` of any server at `address`.
    pub fn new(address: String, own_id: u128, pool: Pool) -> PeerConfig {
        PeerConfig {
            address,
            cluster: 0,
            server: 0,
            known_incarnation: 0,
            role: Role::Client,
            own_id,
            limits: Limits::default(),
            max_calls: 4096,
            max_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(3),
            hello_timeout: Duration::from_secs(3),
            silence_timeout: Duration::from_secs(15),
            window_bytes: 64 << 10,
            pool,
            tls: None,
        }
    }
}

/// The status of a connection with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing has been asked of it yet.
    Idle,
    /// The first attempt to connect is under way; calls wait for its outcome.
    Connecting,
    /// The connection is established.
    Connected,
    /// The last attempt failed; the next is under way or will be.
    Unreachable,
    /// It refuses the hello, or has said goodbye.
    Refused(Refusal),
}

/// The knowledge about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// Status of the connection of small calls.
    pub status: Status,
    /// Status of the bulk connection, which is opened when first needed.
    pub bulk_status: Status,
    /// Number of calls in flight.
    pub calls: usize,
    /// Age of the oldest call in flight.
    pub oldest_call_age: Option<Duration>,
    /// For how long it has owed an answer and sent nothing, forgotten calls included.
    pub silent_for: Duration,
    /// Why the last attempt or connection failed.
    pub last_error: Option<String>,
    /// The last attempt failed because one end did not take the other by TLS.
    pub is_distrusted: bool,
    /// The server that answered the last hello; 0 if none has.
    pub server: u128,
    /// Id of the server's cluster.
    pub cluster: u128,
    /// Number of the server's current start.
    pub incarnation: u64,
}

/// Bytes that were moved, frames of every kind included; only grows. For people who wait: it shows that something
/// happens, not that a call has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that the operating system took for the other side.
    pub sent_bytes: u64,
    /// Bytes that came from the other side, parts of frames included.
    pub received_bytes: u64,
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
        }
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Traffic>>(parts: I) -> Traffic {
        parts.fold(Traffic::default(), Add::add)
    }
}

/// A server to ask. Clones are the same peer; the last one to go closes the connections.
///
/// Must live inside a [`LocalSet`](tokio::task::LocalSet) or a local runtime.
#[derive(Clone)]
pub struct Peer {
    links: Rc<Links>,
}

struct Links {
    calls: Rc<Link>,
    bulk: Rc<Link>,
}

impl Drop for Links {
    fn drop(&mut self) {
        self.calls.stop();
        self.bulk.stop();
    }
}

impl Peer {
    /// A peer that connects when it is first asked something.
    pub fn new(config: PeerConfig) -> Peer {
        let identity = PeerKnowledge::new(&config);
        Peer {
            links: Rc::new(Links {
                calls: Link::new(Channel::Calls, config.clone(), Rc::clone(&identity)),
                bulk: Link::new(Channel::Bulk, config, identity),
            }),
        }
    }

    /// Asks the server. `sink` hears what becomes of it, with `token`.
    ///
    /// # Errors
    /// The queue is full, the server is the wrong one or going down, or the message is too large.
    pub fn call(
        &self,
        message: Outgoing,
        sink: Rc<dyn Sink>,
        token: u64,
    ) -> Result<Call, CallRefusal> {
        let link = if message.is_bulk() {
            &self.links.bulk
        } else {
            &self.links.calls
        };
        let (id, reachable) = link.call(message, sink, token)?;
        let key = CallKey {
            channel: link.channel(),
            id,
        };
        Ok(Call { key, reachable })
    }

    /// Removes a call from the table, and nothing else: sent requests are not recalled, an answer finds no call.
    pub fn forget(&self, key: CallKey) {
        match key.channel {
            Channel::Calls => self.links.calls.forget(key.id),
            Channel::Bulk => self.links.bulk.forget(key.id),
        }
    }

    /// Queues a one-way note if there is a connection and room in its queue; says whether it did. It leaves
    /// with the next message to this server, or within a second, and is lost with the connection.
    pub fn tell(&self, message: &Outgoing) -> bool {
        let link = if message.is_bulk() {
            &self.links.bulk
        } else {
            &self.links.calls
        };
        link.tell(message)
    }

    /// Sends off notes that wait for company.
    pub fn flush(&self) {
        self.links.calls.flush();
    }

    /// Bytes that wait to be written to it.
    pub fn queued_bytes(&self) -> usize {
        self.links.calls.queued_bytes() + self.links.bulk.queued_bytes()
    }

    /// Connects now instead of with the first call, and at once instead of after the present wait.
    pub fn connect(&self) {
        self.links.calls.connect();
    }

    /// For how long the server has owed an answer and sent nothing, as of `now`; zero if it owes none. A
    /// forgotten call still counts, so a server that hangs is known to be slow even without a waiting caller.
    pub fn silent_for(&self, now: Instant) -> Duration {
        self.links
            .calls
            .silent_for(now)
            .max(self.links.bulk.silent_for(now))
    }

    /// The status of the connection of small calls.
    pub fn status(&self) -> Status {
        self.links.calls.status().get()
    }

    /// Shows the status there from now on. The first call counts.
    pub(crate) fn show(&self, shown: impl FnOnce() -> LinkMetrics) {
        self.links.calls.status().show(shown);
    }

    /// Connections made so far, both kinds. Calls that waited for one went out with the next.
    pub fn connections_made(&self) -> u64 {
        self.links.calls.connections_made() + self.links.bulk.connections_made()
    }

    /// The traffic of all connections to it so far, both kinds, those that have ended included.
    pub fn traffic(&self) -> Traffic {
        self.links.calls.traffic() + self.links.bulk.traffic()
    }

    /// Bytes received on the connection of large payloads.
    pub(crate) fn bulk_received_bytes(&self) -> u64 {
        self.links.bulk.traffic().received_bytes
    }

    /// Takes note of an incarnation that was learnt elsewhere.
    pub fn learn_incarnation(&self, incarnation: u64) {
        self.links.calls.known().learn(incarnation);
    }

    /// Its host and port; empty if they are not known.
    pub(crate) fn address(&self) -> String {
        self.links.calls.known().address.borrow().clone()
    }

    /// The server has moved: from the next attempt on, connect there.
    pub fn set_address(&self, address: String) {
        self.links.calls.known().set_address(address);
    }

    /// Everything that is known, as of now. Looks at every call: for people, not for the hot path.
    pub fn state(&self) -> PeerState {
        let now = Instant::now();
        let (calls, bulk) = (&self.links.calls, &self.links.bulk);
        let oldest = [calls.oldest_call(), bulk.oldest_call()]
            .into_iter()
            .flatten()
            .min();
        let known = calls.known().snapshot();
        PeerState {
            status: calls.status().get(),
            bulk_status: bulk.status().get(),
            calls: calls.calls_in_flight() + bulk.calls_in_flight(),
            oldest_call_age: oldest.map(|started| now.saturating_duration_since(started)),
            silent_for: self.silent_for(now),
            last_error: calls.last_error().or_else(|| bulk.last_error()),
            is_distrusted: calls.is_distrusted(),
            server: known.server,
            cluster: known.cluster,
            incarnation: known.incarnation,
        }
    }
}
