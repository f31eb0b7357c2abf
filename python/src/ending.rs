//! The end of the interpreter while threads wait.
//!
//! Up to version 3.13 Python ends a thread that takes the interpreter's lock after the end has begun, by unwinding its stack, and a program in Rust ends with it. So a
//! thread that waits for the client does not come back any more once [`end`] was called, which Python does (`atexit`) when only daemons are left. It stays until the process ends.

use pyo3::prelude::*;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The time between two looks at the threads that come back.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread that ends the interpreter, once it does.
static ENDS: OnceLock<ThreadId> = OnceLock::new();
/// Threads that are about to take the lock again.
static COMING_BACK: AtomicUsize = AtomicUsize::new(0);
/// The process in which they were counted. One that was forked has none of them.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Has Python call [`end`].
pub(crate) fn register(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    PROCESS.get_or_init(process::id);
    let end = wrap_pyfunction!(end, module)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// Keeps threads from coming back, and waits for those that are about to.
#[pyfunction]
fn end(py: Python<'_>) {
    ENDS.get_or_init(|| thread::current().id());
    // Either a thread that comes back sees that, or it is counted here.
    fence(Ordering::SeqCst);
    let is_counted = PROCESS.get() == Some(&process::id());
    py.detach(|| {
        while is_counted && COMING_BACK.load(Ordering::SeqCst) > 0 {
            thread::sleep(PAUSE);
        }
    });
}

/// Does something without the interpreter's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let done = py.detach(|| {
        let done = work();
        come_back();
        done
    });
    COMING_BACK.fetch_sub(1, Ordering::SeqCst);
    done
}

/// Does something with the interpreter's lock, within what is done without it.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    come_back();
    Python::attach(|py| {
        COMING_BACK.fetch_sub(1, Ordering::SeqCst);
        work(py)
    })
}

/// Counts this thread as one that comes back; or stays here, if the interpreter ends on another thread.
fn come_back() {
    COMING_BACK.fetch_add(1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let here = thread::current().id();
    if ENDS.get().is_some_and(|ends| *ends != here) {
        COMING_BACK.fetch_sub(1, Ordering::SeqCst);
        loop {
            thread::park();
        }
    }
}
