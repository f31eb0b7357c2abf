//! Operations that have begun, and the two ways to their end: [`Operation::wait`] for threads, [`Operation::poll`] for event loops.
//!
//! The client's thread does the work; what is polled here is the way to its answer. The client's thread wakes a thread that waits, or writes a byte that an
//! event loop reads ([`Wakes`]). It calls nothing of Python, so that it never waits for the interpreter's lock, and does not mind an interpreter that ends.

use crate::ending::detached;
use crate::failure::Failure;
use crate::process::OfProcess;
use crate::value::ToPython;
use pyo3::prelude::*;
use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The longest time that a thread waits before it looks for signals, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// Makes the answer an object of Python, or an exception.
type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
type Work = OfProcess<Pin<Box<dyn Future<Output = Answer> + Send>>>;

/// An operation that was begun. It goes on while it is waited for or polled, and is given up when it is dropped.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Operation(Mutex<Option<Work>>);

impl Operation {
    pub(crate) fn new<T: ToPython>(
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Operation {
        let work = async move {
            let ended = work.await;
            let answer: Answer = Box::new(move |py| match ended {
                Ok(value) => value.to_python(py),
                Err(failure) => Err(failure.raised(py)),
            });
            answer
        };
        Operation(Mutex::new(Some(OfProcess::new(Box::pin(work)))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Work, Failure> {
        self.lock().take().ok_or_else(Failure::given_up)
    }
}

#[pymethods]
impl Operation {
    /// Waits for the end on this thread. Signals are handled meanwhile; the operation is given up if a handler raises.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut work = self.take()?;
        let future = work.get_mut()?;
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match detached(py, || poll_until_signals(future.as_mut(), &waker)) {
                Some(answer) => return answer(py),
                None => py.check_signals()?,
            }
        }
    }

    /// The result, in a tuple, if it has ended. `None`: `wakes` will have `token` once it is worth asking again.
    fn poll(&self, py: Python<'_>, wakes: &Wakes, token: u64) -> PyResult<Option<(Py<PyAny>,)>> {
        let mut work = self.take()?;
        let waker = Waker::from(Arc::new(Token {
            wakes: wakes.0.clone(),
            token,
        }));
        let future = work.get_mut()?.as_mut();
        match detached(py, || future.poll(&mut Context::from_waker(&waker))) {
            Poll::Ready(answer) => Ok(Some((answer(py)?,))),
            Poll::Pending => {
                *self.lock() = Some(work);
                Ok(None)
            }
        }
    }

    /// Gives it up, if it has not ended.
    fn cancel(&self) {
        let work = self.lock().take();
        drop(work);
    }
}

/// The answer; `None` after [`SIGNALS`] at most.
fn poll_until_signals<T>(
    mut future: Pin<&mut (dyn Future<Output = T> + Send)>,
    waker: &Waker,
) -> Option<T> {
    let begun = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
            return Some(output);
        }
        let left = SIGNALS.checked_sub(begun.elapsed())?;
        // Returns at once if it was woken since.
        thread::park_timeout(left);
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Wakes operations of one event loop: tokens, and a descriptor that can be read while there are some.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Wakes(Arc<Shared>);

struct Shared {
    tokens: Mutex<Vec<u64>>,
    reader: UnixStream,
    writer: UnixStream,
}

impl Shared {
    fn tokens(&self) -> MutexGuard<'_, Vec<u64>> {
        self.tokens.lock().expect("no holder of the lock panics")
    }
}

#[pymethods]
impl Wakes {
    #[new]
    fn new() -> io::Result<Wakes> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Wakes(Arc::new(Shared {
            tokens: Mutex::default(),
            reader,
            writer,
        })))
    }

    /// The descriptor that an event loop watches.
    fn fileno(&self) -> i32 {
        self.0.reader.as_raw_fd()
    }

    /// The tokens that came since.
    fn take(&self) -> Vec<u64> {
        // First the bytes: one that comes later is for a token that may be taken already, and does no harm.
        while (&self.0.reader)
            .read(&mut [0; 64])
            .is_ok_and(|read| read > 0)
        {}
        std::mem::take(&mut *self.0.tokens())
    }
}

/// Wakes one operation of an event loop.
struct Token {
    wakes: Arc<Shared>,
    token: u64,
}

impl Wake for Token {
    fn wake(self: Arc<Self>) {
        let mut tokens = self.wakes.tokens();
        let is_first = tokens.is_empty();
        tokens.push(self.token);
        drop(tokens);
        if is_first {
            // One byte at most waits for each time that tokens are taken: there is room.
            let _ = (&self.wakes.writer).write(&[0]);
        }
    }
}
