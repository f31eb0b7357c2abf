//! The deadline of an operation.
//!
//! An operation without a limit in all gives up when servers do not answer: none of its calls was decided for so long. It gives up, too,
//! when they answer and nothing comes of it: no byte of a value, no object, no later configuration for [`STALLS`] times as long.
//! Otherwise an operation that asks again and again would never end.

use crate::config::ServerId;
use crate::error::Response;
use crate::instant::Instant;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The time that an operation may go on without progress, as a multiple of the time that one call may wait: a step of it takes several
/// calls.
pub const STALLS: u32 = 3;

/// The time limit of an operation. Clones belong to the same operation.
#[derive(Clone, Debug)]
pub struct Deadline {
    begun: Instant,
    limit: Limit,
    reached: Rc<Reached>,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    /// A limit on the whole operation.
    Total(Duration),
    /// No fixed end: the operation ends if one of its calls waits for this time, or if it makes no progress for
    /// [`STALLS`] times this time.
    Idle(Duration),
}

/// The progress of an operation.
#[derive(Debug, Default)]
struct Reached {
    /// The time at which a call of it was last decided.
    moved_on: Cell<Option<Instant>>,
    /// The start of its first call since its last progress. Time that passes without a call is not its own: a reader may be slow to take
    /// bytes, and a writer slow to bring more.
    asks_since: Cell<Option<Instant>>,
    /// The response of each server in the call that was decided last.
    servers: RefCell<Vec<(ServerId, Response)>>,
}

impl Deadline {
    /// An operation that begins now and gives up after this time.
    pub fn after(now: Instant, time: Duration) -> Deadline {
        Deadline::new(now, Limit::Total(time))
    }

    /// An operation that may take any time while it makes progress: it gives up when none of its calls was decided for
    /// `time`, or when it made no progress for [`STALLS`] times `time`.
    pub fn idle(now: Instant, time: Duration) -> Deadline {
        Deadline::new(now, Limit::Idle(time))
    }

    fn new(begun: Instant, limit: Limit) -> Deadline {
        let reached = Rc::default();
        Deadline {
            begun,
            limit,
            reached,
        }
    }

    /// The time at which the operation gives up, if nothing can put it off.
    pub fn at(&self) -> Option<Instant> {
        match self.limit {
            Limit::Total(time) => Some(self.begun.plus(time)),
            Limit::Idle(_) => None,
        }
    }

    /// The time at which the operation gives up unless it makes progress.
    pub fn of_progress(&self) -> Option<Instant> {
        match self.limit {
            Limit::Total(time) => Some(self.begun.plus(time)),
            Limit::Idle(time) => {
                let since = self.reached.asks_since.get();
                since.map(|since| since.plus(time.saturating_mul(STALLS)))
            }
        }
    }

    /// A call of the operation begins.
    pub(super) fn calls(&self, now: Instant) {
        assert!(now >= self.begun, "its calls come after its beginning");
        let since = self.reached.asks_since.get();
        self.reached.asks_since.set(since.or(Some(now)));
    }

    /// The time at which a call that began at `begun` gives up, unless the operation makes progress.
    pub fn of_call(&self, begun: Instant) -> Instant {
        let (Limit::Total(time) | Limit::Idle(time)) = self.limit;
        let of_call = self.waiting_since(begun).plus(time);
        self.of_progress().map_or(of_call, |end| of_call.min(end))
    }

    /// The operation has got on: bytes of a value came, an object is done with, or it has heard of a later configuration.
    pub fn progressed(&self) {
        self.reached.asks_since.set(None);
    }

    /// A call of the operation was decided.
    pub(super) fn decided(
        &self,
        now: Instant,
        servers: impl Iterator<Item = (ServerId, Response)>,
    ) {
        self.reached.moved_on.set(Some(now));
        let mut last = self.reached.servers.borrow_mut();
        last.clear();
        last.extend(servers);
    }

    /// The responses that a call reports if it ends undecided. A call that had little time tells nothing about silent servers: for these
    /// the response of the call before is reported.
    pub(super) fn reported(
        &self,
        begun: Instant,
        now: Instant,
        mut servers: Vec<(ServerId, Response)>,
    ) -> Vec<(ServerId, Response)> {
        assert!(now >= begun, "it began before it ends");
        let last = self.reached.servers.borrow();
        let ids = |servers: &[(ServerId, Response)]| -> Vec<ServerId> {
            servers.iter().map(|it| it.0).collect()
        };
        let (Limit::Total(time) | Limit::Idle(time)) = self.limit;
        if now.since(begun) < time / 2 && ids(&servers) == ids(&last) {
            for (now, before) in servers.iter_mut().zip(&*last) {
                if now.1 == Response::Silent {
                    *now = *before;
                }
            }
        }
        servers
    }

    /// The time that a call that began at `begun` has waited at its end, for the limit that ended it.
    pub(super) fn waited(&self, begun: Instant, now: Instant) -> Duration {
        let is_over = self.of_progress().is_some_and(|end| now >= end);
        match (self.limit, self.reached.asks_since.get()) {
            (Limit::Idle(_), Some(since)) if is_over => now.since(since),
            _ => now.since(self.waiting_since(begun)),
        }
    }

    /// Since when a call that began at `begun` has been waiting.
    fn waiting_since(&self, begun: Instant) -> Instant {
        match self.limit {
            Limit::Total(_) => self.begun,
            Limit::Idle(_) => begun.max(self.reached.moved_on.get().unwrap_or(begun)),
        }
    }
}
