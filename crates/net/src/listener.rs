//! A server's side: accepting, limits, replies.
//!
//! ```text
//! accept → hello → Service::on_hello → Connection ─┬─ Service::on_request(frame, Responder)
//!                                                   ├─ Service::on_note(frame, Origin)
//!                                                   └─ Service::on_batch_end()   after each read
//! ```
//!
//! Places are bounded by class ([`Places`]), and what is idle makes room for who comes.
//!
//! What one client can take up is bounded: requests taken and not answered, bytes of answers not read. At the
//! first bound the server stops reading from that client; a client that then reads nothing for a while, or
//! that reaches the second bound, loses its connection. No other caller notices.

mod door;
mod identity;
mod limit;
mod places;
mod responder;
mod watched;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use areo_wire::frame::{Header, Kind, Limits, Refusal};
use areo_wire::hello::{Channel, Hello, Role};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use crate::connection::{CloseReason, Connection, ConnectionConfig, Handler, drive};
use crate::encryption::{Origin, Tls};
use crate::message::Incoming;
use crate::peer::Traffic;
use crate::pool::Pool;
use crate::sockets;
use door::Admitted;
pub use identity::Identity;
pub use limit::{Allowance, Allowances, Rate};
use places::WaitingCallers;
pub use places::{Class, Counts, Places};
pub use responder::Responder;
pub use watched::LEAST_RATE;
use watched::WatchedConnection;

/// The time to wait when the operating system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The interval at which connections are looked at for progress.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);
/// Frames of a caller that has proven nothing: the proof of a key, a join token, the question who is there.
const STRANGERS_LIMITS: Limits = Limits {
    max_body_bytes: 16 << 10,
    max_payload_bytes: 0,
    max_segments: 0,
};
/// Requests of such a caller that are taken and not answered: it needs one.
const STRANGERS_UNANSWERED: usize = 1;
/// Requests of such a caller after which it has to connect, and pay for a handshake, again.
const STRANGERS_REQUESTS: u32 = 4;
/// The interval at which a draining listener looks whether all is answered.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// The work of a server. Called on the task that reads; must not block.
pub trait Service: 'static {
    /// The identity of this server, for the welcome.
    fn identity(&self) -> Identity;

    /// Decides whether the server talks to this caller at all.
    ///
    /// A caller in the role of a server has the certificate of its id, where TLS is on.
    ///
    /// # Errors
    /// The refusal that the caller is sent.
    fn on_hello(&self, hello: &Hello, origin: &Origin, remote: SocketAddr) -> Result<(), Refusal> {
        let _ = (origin, remote);
        self.identity().check(hello)
    }

    /// The class whose places this caller competes for.
    fn class_of(&self, hello: &Hello) -> Class {
        match hello.role {
            Role::Client => Class::Client,
            Role::Server => Class::Server,
        }
    }

    /// A request. The responder may answer now or later, on the same thread; it knows the caller ([`Responder::origin`]).
    fn on_request(&self, request: Incoming<'_>, responder: Responder);

    /// A one-way note of this caller.
    fn on_note(&self, note: Incoming<'_>, origin: &Origin);

    /// Everything that was read in one go has been handed over: run the shard, once.
    fn on_batch_end(&self);
}

/// Limits of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Limits of one frame.
    pub limits: Limits,
    /// Connections at once; a caller who finds no place, and no idle connection in one, gets "busy".
    pub places: Places,
    /// Requests of one connection of small calls that are taken and not answered.
    pub max_unanswered_calls: usize,
    /// Requests of one bulk connection that are taken and not answered.
    pub max_unanswered_bulk: usize,
    /// Above this many bytes of unread answers no further request is read.
    pub pause_above_bytes: usize,
    /// Above this many bytes of unread answers a connection of small calls is closed.
    pub max_queued_calls_bytes: usize,
    /// Above this many bytes of unread answers a bulk connection is closed.
    pub max_queued_bulk_bytes: usize,
    /// Seconds that a client may be behind [`LEAST_RATE`] with a frame that it has begun, or with answers that wait for it.
    pub stall_timeout: Duration,
    /// The longest time for a hello, and after it for the beginning of a proof.
    pub hello_timeout: Duration,
    /// Handshakes of TLS that callers may have.
    pub handshake_allowance: Allowance,
    /// Read window of a connection of small calls, in bytes.
    pub window_bytes: usize,
    /// The pool of receive buffers.
    pub pool: Pool,
    /// Keys and roots of TLS. With them each connection is encrypted, and a plain caller is refused.
    pub tls: Option<Tls>,
}

impl ListenerConfig {
    /// The usual limits, with receive buffers from `pool`.
    pub fn new(pool: Pool) -> ListenerConfig {
        ListenerConfig {
            limits: Limits::default(),
            places: Places::USUAL,
            max_unanswered_calls: 4096,
            max_unanswered_bulk: 64,
            pause_above_bytes: 4 << 20,
            max_queued_calls_bytes: 64 << 20,
            max_queued_bulk_bytes: 1 << 30,
            stall_timeout: Duration::from_secs(30),
            hello_timeout: Duration::from_secs(5),
            handshake_allowance: Allowance::HANDSHAKES,
            window_bytes: 64 << 10,
            pool,
            tls: None,
        }
    }
}

/// Accepts connections for a [`Service`].
pub struct Listener<S> {
    socket: TcpListener,
    shared: Rc<Shared<S>>,
}

struct Shared<S> {
    service: Rc<S>,
    config: ListenerConfig,
    connections: RefCell<BTreeMap<u64, WatchedConnection>>,
    /// The traffic of connections that have ended.
    past: Cell<Traffic>,
    waiting: RefCell<WaitingCallers>,
    allowances: RefCell<Allowances>,
    counts: RefCell<Counts>,
    next_id: Cell<u64>,
    draining: Cell<bool>,
    stop: Notify,
    /// Distinguishes this process from another one with the same identity.
    process: u64,
}

impl<S: Service> Listener<S> {
    /// Binds `address`.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine.
    pub async fn bind(
        address: SocketAddr,
        config: ListenerConfig,
        service: Rc<S>,
    ) -> io::Result<Listener<S>> {
        Ok(Listener {
            socket: TcpListener::bind(address).await?,
            shared: Rc::new(Shared {
                service,
                config,
                connections: RefCell::default(),
                past: Cell::default(),
                waiting: RefCell::default(),
                allowances: RefCell::default(),
                counts: RefCell::default(),
                next_id: Cell::new(0),
                draining: Cell::new(false),
                stop: Notify::new(),
                process: getrandom::u64().map_err(io::Error::other)?,
            }),
        })
    }

    /// The address that is bound.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The number that its welcomes carry: no other process has it.
    pub fn process(&self) -> u64 {
        self.shared.process
    }

    /// Number of established connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.borrow().len()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.shared.counts.borrow().clone();
        counts.open[Class::Waiting as usize] = self.shared.waiting.borrow().count();
        for watched in self.shared.connections.borrow().values() {
            counts.open[watched.class as usize] += 1;
        }
        counts
    }

    /// The traffic of all connections so far.
    pub fn traffic(&self) -> Traffic {
        let connections = self.shared.connections.borrow();
        let past = self.shared.past.get();
        let watched = connections.values();
        watched.fold(past, |sum, watched| sum + traffic_of(&watched.connection))
    }

    /// Accepts and serves until [`Listener::drain`] has been called. Connections are local tasks of their
    /// own. Dropping this future stops accepting and leaves them be.
    pub async fn run(&self) {
        let mut sweep = interval(SWEEP_PERIOD);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, remote)) => self.admit(stream, remote),
                    // The caller was faster.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        self.shared.give_up_one(&error);
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                _ = sweep.tick() => self.shared.sweep(),
                () = self.shared.stop.notified() => return,
            }
        }
    }

    fn admit(&self, stream: TcpStream, remote: SocketAddr) {
        let shared = Rc::clone(&self.shared);
        if !shared.hears(&stream, remote) {
            return;
        }
        let id = shared.next_id.get();
        shared.next_id.set(id + 1);
        // One that waits to be served counts already.
        let leave = shared.enter(id, remote);
        spawn_local(async move { shared.serve(stream, remote, (id, leave)).await });
    }

    /// Goes down in order: new callers and new requests are refused as "draining" (the latter by the service),
    /// present ones get a goodbye, and each connection is closed once its requests are answered and the answers
    /// written, or after `patience`. [`Listener::run`] returns.
    pub async fn drain(&self, patience: Duration) {
        let until = Instant::now() + patience;
        self.shared.draining.set(true);
        for connection in self.shared.list() {
            // One that cannot take it will see the close.
            let _ = connection.send(&Header::new(Kind::Goodbye, 0), &[][..], &[]);
        }
        let emptied = async {
            while self.connections() > 0 {
                for connection in self.shared.list() {
                    if connection.unanswered() == 0 {
                        connection.finish();
                    }
                }
                sleep(DRAIN_POLL).await;
            }
        };
        if timeout_at(until, emptied).await.is_err() {
            tracing::warn!(
                left = self.connections(),
                "connections closed before they were answered"
            );
        }
        for connection in self.shared.list() {
            connection.close(CloseReason::Finished);
        }
        self.shared.stop.notify_one();
    }
}

impl<S: Service> Shared<S> {
    fn list(&self) -> Vec<Connection> {
        self.connections
            .borrow()
            .values()
            .map(|watched| watched.connection.clone())
            .collect()
    }

    /// One connection, from its hello to its end.
    async fn serve(
        self: &Rc<Self>,
        stream: TcpStream,
        remote: SocketAddr,
        (id, leave): (u64, Rc<Notify>),
    ) {
        if let Err(error) = sockets::prepare_accepted(&stream, self.config.stall_timeout) {
            tracing::debug!(%remote, %error, "options of a socket not set");
        }
        let greeted = tokio::select! {
            greeted = self.greet(stream, remote) => greeted,
            () = leave.notified() => None,
        };
        self.waiting.borrow_mut().leave(id);
        let Some(Admitted {
            stream,
            session,
            origin,
            hello,
            class,
        }) = greeted
        else {
            return;
        };
        let handler = ServerHandler {
            service: Rc::clone(&self.service),
            origin: origin.clone(),
            max_unanswered: match hello.channel {
                _ if origin == Origin::Anonymous => STRANGERS_UNANSWERED,
                Channel::Calls => self.config.max_unanswered_calls,
                Channel::Bulk => self.config.max_unanswered_bulk,
            },
            pause_above_bytes: self.config.pause_above_bytes,
            requests_left: Cell::new(match origin {
                Origin::Anonymous => STRANGERS_REQUESTS,
                Origin::Plain | Origin::Server(_) | Origin::Key(_) => u32::MAX,
            }),
        };
        let (connection, driver) = drive(
            stream,
            remote,
            &self.connection_config(&origin, hello.channel),
            handler,
        );
        connection.bind(session);
        let is_stranger = origin == Origin::Anonymous;
        self.connections.borrow_mut().insert(
            id,
            WatchedConnection::new(connection, hello, (origin, class)),
        );
        let reason = driver.await;
        let ended = self.connections.borrow_mut().remove(&id);
        let connection = ended.expect("only its own end removes it").connection;
        self.past.set(self.past.get() + traffic_of(&connection));
        self.counts.borrow_mut().close(&reason);
        match reason {
            // A client that ends without waiting for laggards resets its connection.
            CloseReason::ClosedByPeer
            | CloseReason::Finished
            | CloseReason::Displaced
            | CloseReason::Unproven
            | CloseReason::Failed {
                kind: io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe,
            } => {
                tracing::debug!(%remote, %reason, "connection closed");
            }
            // A line of its own: strangers do not use up the lines that are written of others.
            _ if is_stranger => tracing::info!(%remote, %reason, "connection of a stranger closed"),
            _ => tracing::warn!(%remote, %reason, "connection closed"),
        }
    }

    fn connection_config(&self, origin: &Origin, channel: Channel) -> ConnectionConfig {
        let (window_bytes, max_queued_bytes) = match channel {
            Channel::Calls => (self.config.window_bytes, self.config.max_queued_calls_bytes),
            // What of a large payload lands in the window has to be moved: keep that small.
            Channel::Bulk => (0, self.config.max_queued_bulk_bytes),
        };
        ConnectionConfig {
            window_bytes,
            limits: match origin {
                Origin::Anonymous => STRANGERS_LIMITS,
                Origin::Plain | Origin::Server(_) | Origin::Key(_) => self.config.limits,
            },
            peer_limits: Limits::default(),
            max_queued_bytes,
            pool: self.config.pool.clone(),
        }
    }

    /// Closes connections that have had something to read, or to finish sending, for too long.
    fn sweep(&self) {
        self.config.pool.give_back(Instant::now().into_std());
        let stall = self.config.stall_timeout;
        for watched in self.connections.borrow_mut().values_mut() {
            // A server that joins is registered after its hello.
            if watched.hello.role == Role::Server {
                watched.class = self.service.class_of(&watched.hello);
            }
            let tls = self.config.tls.as_ref();
            if tls.is_some_and(|tls| watched.close_if_distrusted(tls)) {
                self.counts.borrow_mut().distrusted += 1;
            }
            if watched.overstays(SWEEP_PERIOD, self.config.hello_timeout) {
                watched.connection.close(CloseReason::Unproven);
            }
            if let Some(reason) = watched.sweep(SWEEP_PERIOD, stall) {
                watched.connection.close(reason);
            }
        }
    }
}

fn traffic_of(connection: &Connection) -> Traffic {
    Traffic {
        sent_bytes: connection.bytes_written(),
        received_bytes: connection.bytes_read(),
    }
}

/// Hands the messages of one connection to the service.
struct ServerHandler<S> {
    service: Rc<S>,
    origin: Origin,
    max_unanswered: usize,
    pause_above_bytes: usize,
    /// Requests of a stranger that are still taken.
    requests_left: Cell<u32>,
}

impl<S: Service> ServerHandler<S> {
    /// False: a stranger has made all requests of this connection.
    fn takes_one_more(&self) -> bool {
        let left = self.requests_left.get();
        if self.origin == Origin::Anonymous {
            self.requests_left.set(left.saturating_sub(1));
        }
        left > 0
    }
}

impl<S: Service> Handler for ServerHandler<S> {
    fn on_frame(&self, connection: &Connection, frame: Incoming<'_>) {
        if !self.takes_one_more() {
            connection.close(CloseReason::Unproven);
            return;
        }
        match frame.header.kind {
            Kind::Request => {
                let responder =
                    Responder::new(connection, frame.header.call_id, self.origin.clone());
                self.service.on_request(frame, responder);
            }
            Kind::Note => self.service.on_note(frame, &self.origin),
            // A client has nothing to answer and says goodbye by closing.
            Kind::Reply | Kind::Refusal | Kind::Goodbye | Kind::Ping | Kind::Pong => {}
        }
    }

    fn on_batch_end(&self, _connection: &Connection) {
        self.service.on_batch_end();
    }

    fn may_read(&self, connection: &Connection) -> bool {
        connection.unanswered() < self.max_unanswered
            && connection.queued_bytes() <= self.pause_above_bytes
    }
}
