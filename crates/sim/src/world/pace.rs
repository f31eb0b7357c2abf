//! The rate at which an operation calls quorums. One that calls again and again without a pause while servers refuse it makes no
//! progress and keeps them busy. That is a livelock: the operation ends by its deadline, so that no other rule shows it.

use areo_core::instant::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

/// The time in which calls are counted.
const SECOND: Duration = Duration::from_secs(1);
/// Quorum calls of an operation on one object in a second. The busiest honest one is a coded read that nobody can answer
/// yet: it begins again after 4 ms on the average. The others pause for `ASK_AGAIN`.
const CALLS: usize = 400;
/// Quorum calls for each further object of an operation that goes over many.
const CALLS_PER_OBJECT: usize = 4;

/// Quorum calls that an operation may begin after its time is over, or after it has made no progress for too long:
/// parallel parts of a transfer end call by call, and a repair looks at its results.
const BELATED: u64 = 200;

/// The quorum calls of one operation.
#[derive(Default)]
pub(super) struct Pace {
    /// Begins of the calls of the last second.
    began: RefCell<VecDeque<Instant>>,
    /// Number of calls.
    calls: Cell<u64>,
    /// The number of calls that began too late.
    belated: Cell<u64>,
    goes_over_many: Cell<bool>,
}

impl Pace {
    /// The operation goes over all objects of a domain, or over all blocks of a file.
    pub(super) fn go_over_many(&self) {
        self.goes_over_many.set(true);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The call that begins now comes after the operation's end. Returns the violation if too many do.
    pub(super) fn belated(&self) -> Option<String> {
        self.belated.update(|belated| belated + 1);
        let belated = self.belated.get();
        (belated > BELATED).then(|| {
            format!(
                "an operation whose time is over began {belated} quorum calls, of {BELATED} at most"
            )
        })
    }

    /// Notes another call, in a run with this number of objects. Returns the violation if the call comes too soon.
    pub(super) fn call(&self, now: Instant, objects: impl FnOnce() -> usize) -> Option<String> {
        let mut began = self.began.borrow_mut();
        began.push_back(now);
        self.calls.update(|calls| calls + 1);
        while began
            .front()
            .is_some_and(|first| now.since(*first) >= SECOND)
        {
            began.pop_front();
        }
        let calls = began.len();
        if calls <= CALLS {
            return None;
        }
        let allowed = match self.goes_over_many.get() {
            true => CALLS + CALLS_PER_OBJECT * objects(),
            false => CALLS,
        };
        (calls > allowed).then(|| {
            format!("an operation made {calls} quorum calls in a second, of {allowed} at most")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(call: usize, per_second: usize) -> Instant {
        Instant::default().plus(SECOND * call as u32 / per_second as u32)
    }

    /// True if a call comes too soon, within ten seconds of calls at this rate.
    fn is_too_fast(pace: &Pace, per_second: usize, objects: usize) -> bool {
        let mut calls = (0..10 * per_second).map(|call| at(call, per_second));
        calls.any(|now| pace.call(now, || objects).is_some())
    }

    #[test]
    fn as_many_calls_as_may_be_are_let_pass_and_one_more_is_not() {
        assert!(!is_too_fast(&Pace::default(), CALLS, 1000));
        assert!(is_too_fast(&Pace::default(), CALLS + 1, 1000));
    }

    #[test]
    fn an_operation_over_many_objects_may_call_for_each() {
        let many = || {
            let pace = Pace::default();
            pace.go_over_many();
            pace
        };
        let allowed = CALLS + 10 * CALLS_PER_OBJECT;
        assert!(!is_too_fast(&many(), allowed, 10));
        assert!(is_too_fast(&many(), allowed + 1, 10));
    }

    #[test]
    fn an_operation_that_does_not_take_its_end_for_one_is_found() {
        let pace = Pace::default();
        let mut calls = (0..=BELATED).map(|_| pace.belated());
        assert!(calls.by_ref().take(BELATED as usize).all(|it| it.is_none()));
        assert!(calls.next().flatten().is_some(), "one more than may be");
    }

    #[test]
    fn calls_at_one_instant_are_too_many_at_last() {
        let pace = Pace::default();
        let mut calls = (0..=CALLS).map(|_| pace.call(Instant::default(), || 0));
        let sentence = calls.find_map(|broken| broken).expect("more than may be");
        assert!(
            sentence.contains(&format!("{} quorum calls", CALLS + 1)),
            "{sentence}"
        );
        assert!(calls.next().is_none(), "the last one");
    }
}
