//! One connection: a bounded queue that is written in one go, and frames read many at a time.
//!
//! A connection is a handle ([`Connection`]) and a future ([`drive`]) that owns the stream. Whoever has something to say
//! queues it with [`Connection::send`]; the first to do so wakes the driver once, which then writes everything
//! queued by the time it runs: the scheduler's queue is what gathers small frames. What a handler
//! sends while it is being called needs no wake at all, because the driver writes before it returns.
//!
//! The driver stops reading while its handler says so ([`Handler::may_read`]), so that a peer who asks without
//! reading answers fills its own buffers, not ours.

mod driver;
mod outbox;
mod reader;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

use areo_wire::frame::{FrameError, Header, Limits};

use crate::encryption::{Binding, Session, Tls};
use crate::message::{Body, Incoming, Segment};
use crate::pool::Pool;
pub use driver::{Driver, drive};
use outbox::Outbox;

/// Size and limits of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Read this much at a time, in bytes; small frames are decoded where they land.
    pub window_bytes: usize,
    /// Limits of frames from the other side.
    pub limits: Limits,
    /// Limits of frames that the other side accepts.
    pub peer_limits: Limits,
    /// The most that may wait to be written, in bytes. A message that finds the queue empty is always taken.
    pub max_queued_bytes: usize,
    /// The pool of receive buffers.
    pub pool: Pool,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The other side closed it, between two frames.
    ClosedByPeer,
    /// The other side closed it in the middle of a frame.
    Truncated,
    /// The operating system said so.
    Failed {
        /// The kind of its error.
        kind: io::ErrorKind,
    },
    /// The other side sent something that is no frame.
    Malformed {
        /// The rule that was broken.
        error: FrameError,
    },
    /// The other side asks and does not read the answers.
    NotReading {
        /// The size of the queue, in bytes.
        queued_bytes: usize,
    },
    /// The other side began a frame and did not go on.
    Stalled,
    /// The certificate of the other side counts no longer.
    Distrusted { sentence: String },
    /// The other side gives no sign of life.
    Silent,
    /// Nothing happened on it, and others wanted its place.
    Displaced,
    /// Its caller proved nothing in the time, or with the requests, that a stranger has.
    Unproven,
    /// This side needs the connection no longer.
    Finished,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::ClosedByPeer => formatter.write_str("closed by the other side"),
            CloseReason::Truncated => formatter.write_str("closed in the middle of a frame"),
            CloseReason::Failed { kind } => write!(formatter, "{kind}"),
            CloseReason::Malformed { error } => write!(formatter, "malformed frame: {error}"),
            CloseReason::NotReading { queued_bytes } => {
                write!(
                    formatter,
                    "the other side does not read; {queued_bytes} bytes queued"
                )
            }
            CloseReason::Stalled => formatter.write_str("a frame was begun and did not go on"),
            CloseReason::Distrusted { sentence } => formatter.write_str(sentence),
            CloseReason::Silent => formatter.write_str("no sign of life from the other side"),
            CloseReason::Displaced => formatter.write_str("idle, and others wanted its place"),
            CloseReason::Unproven => {
                formatter.write_str("the caller proved no key in the time or requests that it had")
            }
            CloseReason::Finished => formatter.write_str("finished"),
        }
    }
}

/// Why a message was not queued. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The connection is closed.
    Closed,
    /// The queue is full.
    Full {
        /// The size of the queue, in bytes.
        queued_bytes: usize,
    },
    /// The message is over a limit of the format or of the other side.
    TooLarge {
        /// The limit that is exceeded.
        error: FrameError,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Closed => formatter.write_str("connection closed"),
            SendError::Full { queued_bytes } => {
                write!(formatter, "queue full: {queued_bytes} bytes")
            }
            SendError::TooLarge { error } => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for SendError {}

/// The handler of frames that arrive.
pub trait Handler {
    /// A whole frame; pings and pongs are dealt with before. Its payload, if any, is intact.
    fn on_frame(&self, connection: &Connection, frame: Incoming<'_>);

    /// Everything that was read in one go has been handed over: the moment to act on it, once.
    fn on_batch_end(&self, connection: &Connection);

    /// True if the handler can take another frame. Asked again after every write and every wake.
    fn may_read(&self, connection: &Connection) -> bool {
        let _ = connection;
        true
    }
}

/// A handle on a connection. Clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    shared: Rc<Shared>,
}

struct Shared {
    remote: SocketAddr,
    outbox: RefCell<Outbox>,
    max_queued_bytes: usize,
    peer_limits: Limits,
    waker: RefCell<Option<Waker>>,
    /// Set while the driver runs: it looks at the queue again before it returns.
    driving: Cell<bool>,
    /// Set from a wake to the next run, so that a burst of messages wakes once.
    woken: Cell<bool>,
    closing: RefCell<Option<CloseReason>>,
    finishing: Cell<bool>,
    closed: Cell<bool>,
    mid_frame: Cell<bool>,
    bytes_read: Cell<u64>,
    bytes_written: Cell<u64>,
    last_received: Cell<Instant>,
    /// The time at which a socket that was full took bytes again.
    last_drained: Cell<Option<Instant>>,
    unanswered: Cell<usize>,
    has_asked: Cell<bool>,
    session: OnceCell<Session>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("remote", &self.shared.remote)
            .field("queued_bytes", &self.queued_bytes())
            .field("closed", &self.shared.closed.get())
            .finish_non_exhaustive()
    }
}

impl Connection {
    fn new(remote: SocketAddr, config: &ConnectionConfig) -> Connection {
        Connection {
            shared: Rc::new(Shared {
                remote,
                outbox: RefCell::default(),
                max_queued_bytes: config.max_queued_bytes,
                peer_limits: config.peer_limits,
                waker: RefCell::default(),
                driving: Cell::new(false),
                woken: Cell::new(false),
                closing: RefCell::default(),
                finishing: Cell::new(false),
                closed: Cell::new(false),
                mid_frame: Cell::new(false),
                bytes_read: Cell::new(0),
                bytes_written: Cell::new(0),
                last_received: Cell::new(now()),
                last_drained: Cell::new(None),
                unanswered: Cell::new(0),
                has_asked: Cell::new(false),
                session: OnceCell::new(),
            }),
        }
    }

    /// Queues one message. It leaves with the driver's next turn, together with all that is queued.
    ///
    /// # Errors
    /// The connection is closed, its queue is full, or the message is too large. Nothing was queued.
    pub fn send<'a>(
        &self,
        header: &Header,
        body: impl Into<Body<'a>>,
        payload: &[Segment],
    ) -> Result<(), SendError> {
        self.queue(header, body.into(), payload, self.shared.max_queued_bytes)?;
        self.wake();
        Ok(())
    }

    /// Queues a message that is in no hurry: it leaves with the next one that is, after the next read, or
    /// with [`Connection::flush`], and so costs no system call of its own.
    ///
    /// # Errors
    /// As for [`Connection::send`].
    pub fn send_lazily<'a>(
        &self,
        header: &Header,
        body: impl Into<Body<'a>>,
        payload: &[Segment],
    ) -> Result<(), SendError> {
        self.queue(header, body.into(), payload, self.shared.max_queued_bytes)
    }

    /// Sends queued messages, if there are any.
    pub fn flush(&self) {
        if self.queued_bytes() > 0 {
            self.wake();
        }
    }

    /// Sends as [`Connection::send`] does, without the bound on the queue, for a resend of calls that a table bounds.
    pub(crate) fn send_bounded_elsewhere<'a>(
        &self,
        header: &Header,
        body: impl Into<Body<'a>>,
        payload: &[Segment],
    ) -> Result<(), SendError> {
        self.queue(header, body.into(), payload, usize::MAX)?;
        self.wake();
        Ok(())
    }

    fn queue(
        &self,
        header: &Header,
        body: Body<'_>,
        payload: &[Segment],
        max_queued_bytes: usize,
    ) -> Result<(), SendError> {
        if !self.is_open() {
            return Err(SendError::Closed);
        }
        let payload_bytes = payload
            .iter()
            .map(|segment| segment.bytes.len() as u64)
            .sum::<u64>();
        let body_bytes = body.as_slice().len();
        let limits = &self.shared.peer_limits;
        let too_large = |error| SendError::TooLarge { error };
        limits
            .check(body_bytes as u64, payload_bytes, payload.len() as u64)
            .map_err(too_large)?;

        let mut outbox = self.shared.outbox.borrow_mut();
        let queued_bytes = outbox.queued_bytes();
        let message_bytes = body_bytes + payload_bytes as usize;
        if queued_bytes > 0 && queued_bytes + message_bytes > max_queued_bytes {
            return Err(SendError::Full { queued_bytes });
        }
        outbox.push(header, body, payload).map_err(too_large)?;
        Ok(())
    }

    /// True if messages can still be queued.
    pub fn is_open(&self) -> bool {
        !self.shared.closed.get() && self.shared.closing.borrow().is_none()
    }

    /// The address of the other side.
    pub fn remote(&self) -> SocketAddr {
        self.shared.remote
    }

    /// Bytes that wait to be written.
    pub fn queued_bytes(&self) -> usize {
        self.shared.outbox.borrow().queued_bytes()
    }

    /// Requests from the other side that have not been answered yet.
    pub fn unanswered(&self) -> usize {
        self.shared.unanswered.get()
    }

    /// The session of TLS below, to be signed with proofs; `None` of a plain connection.
    pub fn binding(&self) -> Option<Binding> {
        self.shared.session.get().map(|session| session.binding)
    }

    /// Keeps the session of TLS below.
    pub(crate) fn bind(&self, session: Option<Session>) {
        if let Some(session) = session {
            let kept = self.shared.session.set(session);
            assert!(kept.is_ok(), "a connection has one session");
        }
    }

    /// Closes the connection if the certificate of the other end counts no longer. True: it does.
    pub(crate) fn close_if_distrusted(&self, tls: Option<&Tls>) -> bool {
        let (Some(tls), Some(session)) = (tls, self.shared.session.get()) else {
            return false;
        };
        let Some(error) = tls.distrusts(session) else {
            return false;
        };
        let sentence = error.to_string();
        self.close(CloseReason::Distrusted { sentence });
        true
    }

    /// True if the other side has ever sent a request.
    pub fn has_asked(&self) -> bool {
        self.shared.has_asked.get()
    }

    /// The time at which anything last arrived.
    pub fn last_received(&self) -> Instant {
        self.shared.last_received.get()
    }

    /// The time of the last action of the other side: it sent bytes, or made room for bytes where there was none. Bytes that
    /// the operating system takes are no sign of the other side.
    pub fn last_sign_of_life(&self) -> Instant {
        let received = self.shared.last_received.get();
        let drained = self.shared.last_drained.get();
        drained.map_or(received, |drained| drained.max(received))
    }

    /// Closes the connection; queued messages are dropped unless the kernel takes them at once.
    pub fn close(&self, reason: CloseReason) {
        self.shared.closing.borrow_mut().get_or_insert(reason);
        self.wake();
    }

    /// Closes the connection once everything queued has been written.
    pub fn finish(&self) {
        self.shared.finishing.set(true);
        self.wake();
    }

    pub(crate) fn is_mid_frame(&self) -> bool {
        self.shared.mid_frame.get()
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.get()
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        self.shared.bytes_written.get()
    }

    pub(crate) fn request_taken(&self) {
        self.shared.has_asked.set(true);
        self.shared.unanswered.set(self.shared.unanswered.get() + 1);
    }

    pub(crate) fn request_answered(&self) {
        let unanswered = self.shared.unanswered.get();
        assert!(unanswered > 0, "a request is answered once");
        // A driver that has stopped reading because of it runs again: the answer was queued, and that woke it.
        self.shared.unanswered.set(unanswered - 1);
    }

    fn wake(&self) {
        let shared = &self.shared;
        if shared.driving.get() || shared.closed.get() || shared.woken.replace(true) {
            return;
        }
        if let Some(waker) = shared.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// The present, which tests may hold still.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Shared {
    fn remember(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn shut(&self) {
        self.closed.set(true);
        self.outbox.borrow_mut().clear();
        self.waker.borrow_mut().take();
    }
}
