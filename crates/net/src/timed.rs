//! Streams whose other end does not read.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes fail after a time without room for a byte. Otherwise callers that do not read would hold all places of a
/// gateway or a console, for ever.
pub struct TimedWrites<S> {
    stream: S,
    limit: Duration,
    /// The end of the wait for room; `None`: there was room.
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> TimedWrites<S> {
    /// A stream whose writes wait for this time at most.
    pub fn new(stream: S, limit: Duration) -> TimedWrites<S> {
        assert!(!limit.is_zero(), "a write is given time");
        TimedWrites {
            stream,
            limit,
            wait: None,
        }
    }

    fn poll_in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = poll(Pin::new(&mut self.stream), context) {
            self.wait = None;
            return Poll::Ready(result);
        }
        let limit = self.limit;
        let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(limit)));
        wait.as_mut().poll(context).map(|()| {
            let sentence = format!("the caller read nothing for {} s", limit.as_secs());
            Err(io::Error::new(ErrorKind::TimedOut, sentence))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write =
            |stream: Pin<&mut S>, context: &mut Context<'_>| stream.poll_write(context, bytes);
        self.get_mut().poll_in_time(context, write)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_in_time(context, S::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_in_time(context, S::poll_shutdown)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = |stream: Pin<&mut S>, context: &mut Context<'_>| {
            stream.poll_write_vectored(context, pieces)
        };
        self.get_mut().poll_in_time(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_caller_that_does_not_read_loses_its_connection() {
        let (stream, mut caller) = duplex(4);
        let mut stream = TimedWrites::new(stream, Duration::from_millis(20));
        stream.write_all(b"room").await.unwrap();
        let patience = Duration::from_secs(20);
        let stalled = timeout(patience, stream.write_all(b"none")).await;
        let stalled = stalled.expect("it does not wait for ever").unwrap_err();
        assert_eq!(stalled.kind(), ErrorKind::TimedOut);
        let mut read = [0; 8];
        caller.read_exact(&mut read[..4]).await.unwrap();
        // The wait begins anew once there was room.
        let written = async { stream.write_all(b"again").await };
        let (written, read) = tokio::join!(written, caller.read_exact(&mut read[..5]));
        assert!(written.is_ok() && read.is_ok(), "{written:?} {read:?}");
    }
}
