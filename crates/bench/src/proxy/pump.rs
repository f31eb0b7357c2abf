//! Moving the bytes of one connection, both ways, under the rules.

use super::rule::{Direction, Manner, Rules};
use std::io;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Bytes that are moved at once.
const PIECE: usize = 32 << 10;
/// Pieces of one connection and direction that may be on their way.
const ON_THEIR_WAY: usize = 64;
/// Maximum number of bytes that a cut piece loses: less than the frame that it ends with.
const LOST_MAX: usize = 30;

/// A caller and a server.
pub(super) struct Link {
    pub(super) rules: Rc<Rules>,
    pub(super) server: usize,
    pub(super) group: usize,
}

impl Link {
    fn manner(&self, direction: Direction, bytes: usize) -> Manner {
        self.rules
            .manner((self.group, self.server), direction, bytes)
    }

    /// Waits while rules hold a piece of `bytes` bytes, and delays it.
    ///
    /// # Errors
    /// The connection is to be closed.
    pub(super) async fn wait(&self, direction: Direction, bytes: usize) -> io::Result<Manner> {
        let mut changes = self.rules.changes();
        loop {
            changes.mark_unchanged();
            let manner = self.manner(direction, bytes);
            if manner.closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if !manner.held {
                // Even a sleep of no time ends with the next tick of the clock.
                if !manner.delay.is_zero() {
                    sleep(manner.delay).await;
                }
                return Ok(manner);
            }
            // The sender is in `self.rules`, so that it cannot be gone.
            let _ = changes.changed().await;
        }
    }

    /// Returns when a rule closes the connection.
    async fn closed(&self) {
        let mut changes = self.rules.changes();
        loop {
            changes.mark_unchanged();
            let closed = |direction| self.manner(direction, 0).closed;
            if closed(Direction::ToServer) || closed(Direction::ToCaller) {
                return;
            }
            let _ = changes.changed().await;
        }
    }

    /// Moves bytes until one side ends, or a rule ends both.
    pub(super) async fn join(&self, mut caller: TcpStream, mut server: TcpStream) {
        let (from_caller, to_caller) = caller.split();
        let (from_server, to_server) = server.split();
        let ended = tokio::select! {
            ended = self.pump(Direction::ToServer, from_caller, to_server) => ended,
            ended = self.pump(Direction::ToCaller, from_server, to_caller) => ended,
            () = self.closed() => Err(io::ErrorKind::ConnectionReset.into()),
        };
        if ended.is_err() {
            // As a peer that is gone would: without a goodbye. Fails only where the connection has ended already.
            let _ = caller.set_zero_linger();
            let _ = server.set_zero_linger();
        }
    }

    async fn pump(
        &self,
        direction: Direction,
        from: ReadHalf<'_>,
        to: WriteHalf<'_>,
    ) -> io::Result<()> {
        let (pieces, arriving) = mpsc::channel(ON_THEIR_WAY);
        let both = tokio::try_join!(self.take(direction, from, pieces), arrive(arriving, to));
        both.map(drop)
    }

    /// Takes pieces until there are no more.
    async fn take(
        &self,
        direction: Direction,
        mut from: ReadHalf<'_>,
        pieces: mpsc::Sender<Piece>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        loop {
            let bytes = from.read(&mut buffer).await?;
            if bytes == 0 {
                return Ok(());
            }
            let manner = self.wait(direction, bytes).await?;
            let kept = match manner.reset {
                true => bytes - bytes.min(1 + bytes % LOST_MAX),
                false => bytes,
            };
            let piece = Piece {
                due: Instant::now() + manner.latency,
                bytes: buffer[..kept].into(),
                reset: manner.reset,
            };
            // The other side may have ended.
            if pieces.send(piece).await.is_err() || manner.reset {
                return Ok(());
            }
        }
    }
}

/// Bytes on their way.
struct Piece {
    due: Instant,
    bytes: Box<[u8]>,
    /// The connection is reset when they have arrived.
    reset: bool,
}

/// Lets pieces arrive when they are due, in order.
async fn arrive(mut pieces: mpsc::Receiver<Piece>, mut to: WriteHalf<'_>) -> io::Result<()> {
    while let Some(piece) = pieces.recv().await {
        if piece.due > Instant::now() {
            sleep_until(piece.due).await;
        }
        to.write_all(&piece.bytes).await?;
        if piece.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
    }
    Ok(())
}
