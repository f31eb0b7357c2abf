//! The future that owns the stream: writes what is queued, reads, hands over.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use areo_wire::frame::{FrameError, Header, Kind, Refusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::reader::{Next, Reader};
use crate::connection::{CloseReason, Connection, ConnectionConfig, Handler, SendError, now};
use crate::message::Incoming;

/// The number of slices that one write takes; the rest goes with the next one.
const SLICES_PER_WRITE: usize = 64;
/// The number of times that a connection is read before others get their turn.
const READS_PER_TURN: usize = 16;

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
        is_full: false,
        reader,
        handler,
        connection: connection.clone(),
    };
    (connection, driver)
}

/// The future that reads and writes; see [`drive`].
pub struct Driver<S, H> {
    stream: S,
    /// The operating system took no more bytes when it was last asked to.
    is_full: bool,
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

impl<S, H> Driver<S, H>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler + Unpin,
{
    /// Writes, then reads and hands over, until there is nothing to do or it is time for others.
    fn turn(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        for _ in 0..READS_PER_TURN {
            let is_flushed = match self.write(context) {
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(CloseReason::Failed { kind: error.kind() });
                }
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            if let Some(reason) = self.asked_to_close(is_flushed) {
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

    /// An encrypted stream holds bytes that the queue has given it, until they are flushed.
    fn asked_to_close(&self, is_flushed: bool) -> Option<CloseReason> {
        let shared = &self.connection.shared;
        if let Some(reason) = shared.closing.borrow().as_ref() {
            return Some(reason.clone());
        }
        let done = shared.finishing.get() && is_flushed;
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
            let taken = stream.poll_write_vectored(context, &slices[..count]);
            let was_full = std::mem::replace(&mut self.is_full, taken.is_pending());
            let written = ready!(taken)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if was_full {
                shared.last_drained.set(Some(now()));
            }
            outbox.advance(written);
            shared
                .bytes_written
                .set(shared.bytes_written.get() + written as u64);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Reads from the stream once.
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
        shared.last_received.set(now());
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
