//! Places of this process whose value is not complete. A process that is asked to end asks here for what it would leave behind.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

static PLACES: Places = Places::new();

/// True once a value of this process is complete and takes its place. A request to end comes too late from then on.
pub fn is_kept() -> bool {
    PLACES.lock().is_kept
}

/// Waits until each value that takes its place has it, and removes the written parts of others.
pub fn settle() {
    PLACES.settle();
}

/// Removes the written parts of values that are not complete, for a process that ends at once. None takes its place
/// any more. Returns the targets that are cut short: a value was being copied into them.
pub fn abandon() -> Vec<PathBuf> {
    PLACES.abandon()
}

/// The places of a process.
#[derive(Debug)]
struct Places {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    open: Vec<Open>,
    is_kept: bool,
    is_abandoned: bool,
    /// The number of the next place.
    next: u64,
}

#[derive(Debug)]
struct Open {
    number: u64,
    beside: PathBuf,
    target: PathBuf,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The value is written beside the target.
    Written,
    /// It takes the name of the target.
    Kept,
    /// It is copied into the target.
    Copied,
}

/// A place whose value is not complete.
#[derive(Debug)]
pub(super) struct Unfinished {
    places: &'static Places,
    number: u64,
}

impl Places {
    const fn new() -> Places {
        let state = State {
            open: Vec::new(),
            is_kept: false,
            is_abandoned: false,
            next: 0,
        };
        Places {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    fn open(&'static self, beside: &Path, target: &Path) -> Unfinished {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.open.push(Open {
            number,
            beside: beside.into(),
            target: target.into(),
            stage: Stage::Written,
        });
        Unfinished {
            places: self,
            number,
        }
    }

    fn settle(&self) {
        let mut state = self.lock();
        while state.open.iter().any(|open| open.stage != Stage::Written) {
            let waited = self.changed.wait(state);
            state = waited.expect("no holder of the lock panics");
        }
        state.remove_files();
    }

    fn abandon(&self) -> Vec<PathBuf> {
        let mut state = self.lock();
        state.is_abandoned = true;
        state.remove_files();
        let cut = state.open.iter().filter(|it| it.stage == Stage::Copied);
        cut.map(|open| open.target.clone()).collect()
    }
}

impl State {
    fn remove_files(&self) {
        for open in &self.open {
            // It may have its other name by now.
            let _ = fs::remove_file(&open.beside);
        }
    }
}

impl Unfinished {
    pub(super) fn new(beside: &Path, target: &Path) -> Unfinished {
        PLACES.open(beside, target)
    }

    /// The value is complete, and takes the name of the target.
    ///
    /// # Errors
    /// The process ends.
    pub(super) fn keep(&self) -> io::Result<()> {
        self.enter(Stage::Kept)
    }

    /// The value is copied into the target from now on.
    ///
    /// # Errors
    /// The process ends.
    pub(super) fn copy(&self) -> io::Result<()> {
        self.enter(Stage::Copied)
    }

    fn enter(&self, stage: Stage) -> io::Result<()> {
        let mut state = self.places.lock();
        if state.is_abandoned {
            let why = "the process ends";
            return Err(io::Error::new(ErrorKind::Interrupted, why));
        }
        state.is_kept = true;
        let mut open = state.open.iter_mut();
        let own = open.find(|open| open.number == self.number);
        own.expect("it is there until it is dropped").stage = stage;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let number = self.number;
        // A drop while a thread panics has no use for another panic.
        if let Ok(mut state) = self.places.state.lock() {
            state.open.retain(|open| open.number != number);
        }
        self.places.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    fn places() -> &'static Places {
        Box::leak(Box::new(Places::new()))
    }

    #[test]
    fn what_is_copied_is_waited_for_and_what_is_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let places = places();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("part"), "a part").unwrap();
        let _written = places.open(&at("part"), &at("other"));
        let copied = places.open(&at("whole"), &at("target"));
        copied.keep().unwrap();
        copied.copy().unwrap();
        let is_copied = Arc::new(AtomicBool::new(false));
        let here = Arc::clone(&is_copied);
        let copying = thread::spawn(move || {
            // A settlement that does not wait is over by then.
            thread::sleep(Duration::from_millis(50));
            here.store(true, Ordering::SeqCst);
            drop(copied);
        });
        places.settle();
        assert!(is_copied.load(Ordering::SeqCst), "the copy was under way");
        copying.join().unwrap();
        assert!(!at("part").exists(), "it has no destructor any more");
    }

    #[test]
    fn a_target_that_is_cut_short_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let places = places();
        let at = |name: &str| folder.path().join(name);
        for name in ["1", "2", "3"] {
            fs::write(at(name), name).unwrap();
        }
        let copied = places.open(&at("1"), &at("target"));
        copied.copy().unwrap();
        let (kept, written) = (
            places.open(&at("2"), &at("b")),
            places.open(&at("3"), &at("c")),
        );
        kept.keep().unwrap();
        assert_eq!(places.abandon(), [at("target")]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(written.keep().is_err() && kept.copy().is_err(), "too late");
        assert!(places.lock().is_kept);
    }
}
