//! Work on many objects at once, in one session: so many are under way as their sizes allow.

use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

/// Places for running jobs. A small value takes one.
const PLACES: u64 = 64;
/// Bytes of a value for which it takes another place.
const BYTES_OF_PLACE: u64 = 256 << 10;
/// The most places of one value: four large ones are under way.
const MOST_PLACES: u64 = 16;
/// The window of each stream: four large values take less memory than two with the usual one.
pub(super) const WINDOW_BYTES: u64 = 8 << 20;
/// The time after a signal in which blocks that were sent are taken back.
const PATIENCE: Duration = Duration::from_secs(3);
/// Reads of an object that is written over during each of them.
pub(super) const READS: usize = 10;
/// Failures that are quoted.
const QUOTED: usize = 3;

/// One object to work on.
pub(super) struct Job<W> {
    pub(super) work: W,
    /// The length of its value.
    pub(super) bytes: u64,
}

/// The end of work on many objects.
#[derive(Default, Debug)]
pub(super) struct Ending {
    pub(super) failures: Vec<Failure>,
    /// The work was interrupted by a signal.
    pub(super) interrupted: bool,
}

/// Runs jobs, so many at once as there are places for; `done` takes each result. A signal, or a failure of a code that `stops`, keeps the rest
/// from being started.
pub(super) async fn each<W, T>(
    jobs: impl IntoIterator<Item = Job<W>>,
    interrupt: &Interrupt,
    stops: impl Fn(Code) -> bool,
    mut done: impl FnMut(T) -> Outcome,
) -> Ending
where
    W: Future<Output = Outcome<T>> + Send + 'static,
    T: Send + 'static,
{
    let (mut running, mut taken) = (JoinSet::new(), HashMap::new());
    let (mut free, mut ending, mut stopping) = (PLACES, Ending::default(), false);
    let mut interrupt = interrupt.clone();
    let mut jobs = jobs.into_iter().peekable();
    loop {
        let room = |job: &Job<W>| !stopping && places(job.bytes) <= free;
        if let Some(job) = jobs.next_if(room) {
            let places = places(job.bytes);
            free -= places;
            taken.insert(running.spawn(job.work).id(), places);
            continue;
        }
        let ended = tokio::select! {
            biased;
            () = interrupt.came(), if !ending.interrupted => {
                (stopping, ending.interrupted) = (true, true);
                continue;
            }
            ended = running.join_next_with_id() => ended,
            () = sleep(PATIENCE), if ending.interrupted => None,
        };
        let Some(ended) = ended else {
            return ending;
        };
        let (id, outcome) = result(ended);
        free += taken.remove(&id).expect("it had places");
        if let Err(failure) = outcome.and_then(&mut done) {
            stopping |= stops(failure.code);
            ending.failures.push(failure);
        }
    }
}

fn places(bytes: u64) -> u64 {
    (1 + bytes / BYTES_OF_PLACE).min(MOST_PLACES)
}

fn result<T>(ended: Result<(Id, T), JoinError>) -> (Id, T) {
    match ended {
        Ok(ended) => ended,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// True if other objects would meet the failure as well.
pub(super) fn concerns_all(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::Unknown | Code::Unauthorised | Code::Interrupted | Code::Closed
    )
}

impl Ending {
    /// An ending before anything was begun, with these failures.
    pub(super) fn with(failures: Vec<Failure>) -> Ending {
        Ending {
            failures,
            interrupted: false,
        }
    }

    /// Joins this ending with a later one.
    pub(super) fn and(mut self, mut later: Ending) -> Ending {
        self.failures.append(&mut later.failures);
        self.interrupted |= later.interrupted;
        self
    }

    /// True if all was done.
    pub(super) fn is_complete(&self) -> bool {
        self.failures.is_empty() && !self.interrupted
    }

    /// The end of the command; `rest` says what became of the whole and how to go on.
    ///
    /// # Errors
    /// Not all was done.
    pub(super) fn outcome(self, rest: &str) -> Outcome {
        if self.interrupted {
            return Err(Failure::new(
                Code::Interrupted,
                format!("interrupted: {rest}"),
            ));
        }
        let count = self.failures.len();
        let Some(first) = self.failures.first() else {
            return Ok(());
        };
        if first.message.is_empty() {
            return Err(first.clone());
        }
        let code = first.code;
        let quoted = self.failures.into_iter().take(QUOTED);
        let quoted: Vec<String> = quoted.map(|failure| failure.message).collect();
        let more = match count.saturating_sub(QUOTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let sentence = format!("{}{more}; {rest}", quoted.join("; "));
        Err(Failure::new(code, sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    /// Runs a hundred jobs of this length, of which those that `fails` names end with its code. Returns the numbers of those that were done, and
    /// the most bytes that were under way.
    fn run(bytes: u64, fails: fn(u64) -> Option<Code>) -> (Vec<u64>, u64, Ending) {
        let (under_way, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let done = Mutex::new(Vec::new());
        let jobs = (0..100).map(|number| {
            let (under_way, most) = (Arc::clone(&under_way), Arc::clone(&most));
            let work = async move {
                let now = under_way.fetch_add(bytes, Ordering::SeqCst) + bytes;
                most.fetch_max(now, Ordering::SeqCst);
                tokio::task::yield_now().await;
                under_way.fetch_sub(bytes, Ordering::SeqCst);
                match fails(number) {
                    Some(code) => Err(Failure::new(code, format!("failed {number}"))),
                    None => Ok(number),
                }
            };
            Job { work, bytes }
        });
        let ending = session::run_until(async |interrupt| {
            let take = |number| {
                done.lock().unwrap().push(number);
                Ok(())
            };
            Ok(each(jobs, &interrupt, concerns_all, take).await)
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        (done, most.load(Ordering::SeqCst), ending.unwrap())
    }

    #[test]
    fn all_are_done_and_large_ones_not_at_once() {
        let (done, most, ending) = run(1, |_| None);
        assert_eq!(done, (0..100).collect::<Vec<_>>());
        assert!(most == PLACES && ending.is_complete());
        let large = 1 << 30;
        let (done, most, _) = run(large, |_| None);
        assert_eq!(
            (done.len(), most),
            (100, large * (PLACES / MOST_PLACES)),
            "four"
        );
    }

    #[test]
    fn what_concerns_one_object_keeps_no_other_from_being_done() {
        let (done, _, ending) = run(1, |number| (number % 10 == 3).then_some(Code::Corrupted));
        assert_eq!(done.len(), 90);
        let failure = ending.outcome("90 of 100 are there").unwrap_err();
        assert_eq!(failure.code, Code::Corrupted);
        assert!(
            failure
                .message
                .ends_with("; and 7 more; 90 of 100 are there")
        );
        let (done, _, ending) = run(1, |number| (number == 0).then_some(Code::Unavailable));
        assert!(done.len() < 100, "no other is begun: {done:?}");
        assert_eq!(ending.failures.len(), 1);
    }

    #[test]
    fn an_ending_is_of_all_parts() {
        let failed = Ending::with(vec![Failure::other("a failed")]);
        let stopped = Ending {
            interrupted: true,
            ..Ending::default()
        };
        assert!(Ending::default().and(Ending::default()).is_complete());
        let both = failed.and(stopped);
        assert!(!both.is_complete());
        let failure = both.outcome("run it again").unwrap_err();
        assert_eq!(
            (failure.code, failure.message.as_str()),
            (Code::Interrupted, "interrupted: run it again")
        );
    }
}
