//! One connection: a bounded queue that is written in one go, and frames read many at a time.
//!
//! A connection is a handle ([`Connection`]) and a future ([`drive`]) that owns the stream. Whoever has something to say
//! queues it with [`Connection::send`]; the first to do so wakes the driver once, which then writes everything
//! queued by the time it runs: the scheduler's queue is what gathers small frames. What a handler
//! sends while it is being called needs no wake at all, because the driver writes before it returns.
//!
//! The driver stops reading while its handler says so ([`Handler::may_read`]), so that a peer who asks without
//! reading answers fills its own buffers, not ours.

mod outbox;
mod reader;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use areo_wire::frame::{FrameError, Header, Kind, Limits, Refusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::message::{Body, Incoming, Segment};
use crate::pool::Pool;
use outbox::Outbox;
use reader::{Next, Reader};

/// How many slices one write takes; what is left goes with the next one.
const SLICES_PER_WRITE: usize = 64;
/// How often a connection is read before others get their turn.
const READS_PER_TURN: usize = 16;

/// Size and limits of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Read this much at a time, in bytes; small frames are decoded where they land.
    pub window_bytes: usize,
    /// What is accepted from the other side.
    pub limits: Limits,
    /// What the other side accepts.
    pub peer_limits: Limits,
    /// How much may wait to be written, in bytes. A message that finds the queue empty is always taken.
    pub max_queued_bytes: usize,
    /// Where receive buffers come from.
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
        /// What it said.
        kind: io::ErrorKind,
    },
    /// The other side sent something that is no frame.
    Malformed {
        /// The rule that was broken.
        error: FrameError,
    },
    /// The other side asks and does not read the answers.
    NotReading {
        /// What had piled up, in bytes.
        queued_bytes: usize,
    },
    /// The other side began a frame and did not go on, or answers nothing.
    Stalled,
    /// This side had no more use for it.
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
            CloseReason::Stalled => formatter.write_str("no progress"),
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
        /// What is queued, in bytes.
        queued_bytes: usize,
    },
    /// The message is over a limit of the format or of the other side.
    TooLarge {
        /// The limit.
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

/// What is done with what arrives.
pub trait Handler {
    /// A whole frame; pings and pongs are dealt with before. Its payload, if any, is intact.
    fn on_frame(&self, connection: &Connection, frame: Incoming<'_>);

    /// Everything that was read in one go has been handed over: the moment to act on it, once.
    fn on_batch_end(&self, connection: &Connection);

    /// Whether the handler can take another frame. Asked again after every write and every wake.
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
    unanswered: Cell<usize>,
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
                last_received: Cell::new(Instant::now()),
                unanswered: Cell::new(0),
            }),
        }
    }

    /// Queues one message. It leaves with the driver's next turn, together with whatever else is queued.
    ///
    /// # Errors
    /// The connection is closed, its queue is full, or the message is too large. Nothing was queued.
    pub fn send<'a>(
        &self,
        header: &Header,
        body: impl Into<Body<'a>>,
        payload: &[Segment],
    ) -> Result<(), SendError> {
        self.queue(header, body.into(), payload, self.shared.max_queued_bytes)
    }

    /// The same without the bound on the queue, for a resend of calls that a table bounds.
    pub(crate) fn send_bounded_elsewhere<'a>(
        &self,
        header: &Header,
        body: impl Into<Body<'a>>,
        payload: &[Segment],
    ) -> Result<(), SendError> {
        self.queue(header, body.into(), payload, usize::MAX)
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
        drop(outbox);
        self.wake();
        Ok(())
    }

    /// Whether messages can still be queued.
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

    /// When anything last arrived.
    pub fn last_received(&self) -> Instant {
        self.shared.last_received.get()
    }

    /// Closes the connection; what is queued is dropped unless the kernel takes it at once.
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
        self.shared.unanswered.set(self.shared.unanswered.get() + 1);
    }

    pub(crate) fn request_answered(&self) {
        let unanswered = self.shared.unanswered.get();
        assert!(unanswered > 0, "a request is answered once");
        self.shared.unanswered.set(unanswered - 1);
        // The driver may have stopped reading because of it.
        self.wake();
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

/// Makes a connection of `stream`, on which the hello has been exchanged. Nothing moves until the driver, a
/// future that ends with the reason for which the connection did, is polled.
pub fn drive<S, H>(
    stream: S,
    remote: SocketAddr,
    config: &ConnectionConfig,
    handler: H,
) -> (Connection, Driver<S, H>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + Unpin,
{
    let connection = Connection::new(remote, config);
    let reader = Reader::new(config.window_bytes, config.limits, config.pool.clone());
    let driver = Driver {
        stream,
        reader,
        handler,
        connection: connection.clone(),
    };
    (connection, driver)
}

/// The future that reads and writes; see [`drive`].
pub struct Driver<S, H> {
    stream: S,
    reader: Reader,
    handler: H,
    connection: Connection,
}

impl<S, H> Future for Driver<S, H>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + Unpin,
{
    type Output = CloseReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CloseReason> {
        let this = self.get_mut();
        let shared = Rc::clone(&this.connection.shared);
        shared.woken.set(false);
        shared.remember(context.waker());
        shared.driving.set(true);
        let outcome = this.turn(context);
        shared.driving.set(false);
        if outcome.is_ready() {
            shared.shut();
        }
        outcome
    }
}

impl<S, H> Drop for Driver<S, H> {
    fn drop(&mut self) {
        self.connection.shared.shut();
    }
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

impl<S, H> Driver<S, H>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + Unpin,
{
    /// Writes, then reads and hands over, until there is nothing to do or it is time for others.
    fn turn(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        for _ in 0..READS_PER_TURN {
            if let Poll::Ready(Err(error)) = self.write(context) {
                return Poll::Ready(CloseReason::Failed { kind: error.kind() });
            }
            if let Some(reason) = self.asked_to_close() {
                return Poll::Ready(reason);
            }
            match self.hand_over() {
                Err(error) => return Poll::Ready(CloseReason::Malformed { error }),
                // What the handler queued is written before more is read.
                Ok(frames) if frames > 0 => continue,
                Ok(_) => {}
            }
            if !self.handler.may_read(&self.connection) {
                return Poll::Pending;
            }
            if let Err(reason) = ready!(self.read(context)) {
                return Poll::Ready(reason);
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn asked_to_close(&self) -> Option<CloseReason> {
        let shared = &self.connection.shared;
        if let Some(reason) = shared.closing.borrow().as_ref() {
            return Some(reason.clone());
        }
        let done = shared.finishing.get() && shared.outbox.borrow().is_empty();
        done.then_some(CloseReason::Finished)
    }

    /// Gives the kernel as much of the queue as it takes.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.connection.shared;
        let mut outbox = shared.outbox.borrow_mut();
        while !outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let count = outbox.slices(&mut slices);
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            outbox.advance(written);
            shared
                .bytes_written
                .set(shared.bytes_written.get() + written as u64);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Reads once.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        let mut space = ReadBuf::new(self.reader.space());
        let failed = |error: io::Error| CloseReason::Failed { kind: error.kind() };
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut space)).map_err(failed)?;
        let count = space.filled().len();
        if count == 0 {
            let truncated = self.reader.is_mid_frame();
            let reason = if truncated {
                CloseReason::Truncated
            } else {
                CloseReason::ClosedByPeer
            };
            return Poll::Ready(Err(reason));
        }
        self.reader.filled(count);
        let shared = &self.connection.shared;
        shared
            .bytes_read
            .set(shared.bytes_read.get() + count as u64);
        shared.last_received.set(Instant::now());
        Poll::Ready(Ok(()))
    }

    /// Hands over the frames that have arrived, as far as the handler takes them; gives their number.
    fn hand_over(&mut self) -> Result<usize, FrameError> {
        let mut frames = 0;
        while self.handler.may_read(&self.connection) {
            match self.reader.next()? {
                Next::Frame(frame) => match frame.header.kind {
                    Kind::Ping => answer(
                        &self.connection,
                        &Header::new(Kind::Pong, frame.header.call_id),
                    ),
                    Kind::Pong => {}
                    _ => self.handler.on_frame(&self.connection, frame),
                },
                Next::Damaged(header) => report_damaged(&self.connection, &self.handler, &header),
                Next::More => break,
            }
            frames += 1;
        }
        self.connection
            .shared
            .mid_frame
            .set(self.reader.is_mid_frame());
        if frames > 0 {
            self.handler.on_batch_end(&self.connection);
        }
        Ok(frames)
    }
}

/// Queues a bare answer; a peer that has filled the queue with requests and reads nothing is cut off.
fn answer(connection: &Connection, header: &Header) {
    if let Err(SendError::Full { queued_bytes }) = connection.send(header, &[][..], &[]) {
        connection.close(CloseReason::NotReading { queued_bytes });
    }
}

/// A payload that does not match its checksum: the frame is known, its content is not. Whoever asked is told
/// that this answer, or this request, is damaged; both sides go on.
fn report_damaged<H: Handler>(connection: &Connection, handler: &H, header: &Header) {
    let remote = connection.remote();
    tracing::warn!(%remote, kind = ?header.kind, call = header.call_id, "payload damaged");
    let refusal = Header::refusal(header.call_id, Refusal::Damaged);
    match header.kind {
        Kind::Request => answer(connection, &refusal),
        Kind::Reply | Kind::Refusal => handler.on_frame(
            connection,
            Incoming {
                header: refusal,
                body: &[],
                payload: Vec::new(),
            },
        ),
        Kind::Note | Kind::Ping | Kind::Pong | Kind::Goodbye => {}
    }
}
