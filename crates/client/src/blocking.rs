//! Waiting without `async`: [`wait`] runs any operation on the calling thread, and [`Local`] lets it read and write what
//! the standard library reads and writes.
//!
//! ```no_run
//! use areo_client::blocking::{Local, wait};
//! use areo_client::{Client, ConnectOptions, PutOptions};
//! use std::fs::File;
//!
//! let client = wait(Client::connect(ConnectOptions::of("areo-data/cluster.toml")?))?;
//! let domain = wait(client.domain("default"))?;
//! wait(domain.put("greeting", "hello"))?;
//! let film = Local(File::open("film.mp4")?);
//! wait(domain.put_stream("film", film, PutOptions::default()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once: room is made for them before each read.
const READ_BYTES: usize = 64 << 10;

/// Waits for the future on this thread. Enough of an executor for everything that this crate returns, because the network
/// thread does the work. Not for use inside an executor, whose thread it would hold up.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // Returns at once if it was woken since.
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A source or a sink of the standard library for operations that stream. It is read and written on the thread that
/// [`wait`]s.
#[derive(Clone, Copy, Debug)]
pub struct Local<T>(pub T);

impl<T: Read + Unpin> AsyncRead for Local<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining().min(READ_BYTES);
        let read = uninterrupted(|| self.0.read(buffer.initialize_unfilled_to(room)))?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: Write + Unpin> AsyncWrite for Local<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(uninterrupted(|| self.0.write(bytes)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(uninterrupted(|| self.0.flush()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

/// Does it again if a signal came in between.
fn uninterrupted<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::connect::ConnectError;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    #[test]
    fn a_wake_up_from_another_thread_is_not_missed() {
        for round in 0..100 {
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || sender.send(round));
            assert_eq!(wait(receiver), Ok(round));
            other.join().unwrap().unwrap();
        }
    }

    /// Hands out a few bytes at a time, and is interrupted before each.
    struct Slow<'a> {
        left: &'a [u8],
        interrupted: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            let some = buffer.len().min(7);
            Read::read(&mut self.left, &mut buffer[..some])
        }
    }

    #[test]
    fn local_sources_and_sinks_lose_no_byte() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| i as u8).collect();
        let source = Slow {
            left: &bytes,
            interrupted: false,
        };
        let (mut read, mut sink) = (Vec::new(), Local(Vec::new()));
        wait(Local(source).read_to_end(&mut read)).unwrap();
        wait(sink.write_all(&read)).unwrap();
        wait(sink.flush()).unwrap();
        assert!(sink.0 == bytes, "what was read is what was written");
    }

    #[test]
    fn nobody_to_ask_is_an_error() {
        let error = wait(Client::connect("")).unwrap_err();
        assert_eq!(error, ConnectError::NoAddress);
    }

    #[test]
    fn an_address_that_nobody_listens_at_is_named() {
        // Bound and dropped: no process listens there now.
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .to_string();
        let error = wait(Client::connect(address.as_str())).unwrap_err();
        let ConnectError::NoServer { attempts, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].address, address);
        assert_eq!(attempts[0].reason, "connection refused");
    }
}
