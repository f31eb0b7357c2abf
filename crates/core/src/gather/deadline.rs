//! How long an operation may take.
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

/// So many times longer than a call may wait may an operation go on without progress: a step of it takes several calls.
pub const STALLS: u32 = 3;

/// How long an operation may take. Clones belong to the same operation.
#[derive(Clone, Debug)]
pub struct Deadline {
    begun: Instant,
    limit: Limit,
    reached: Rc<Reached>,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    /// So long in all.
    Total(Duration),
    /// Any time, as long as none of its calls waits for so long, and something comes of them.
    Idle(Duration),
}

/// How far an operation is.
#[derive(Debug, Default)]
struct Reached {
    /// When a call of it was last decided.
    moved_on: Cell<Option<Instant>>,
    /// When the first of its calls began since it last got on. Time that passes without a call is not its own: a reader may be slow to take
    /// what came, and a writer to bring more.
    asks_since: Cell<Option<Instant>>,
    /// What each server did in the call that was decided last.
    servers: RefCell<Vec<(ServerId, Response)>>,
}

impl Deadline {
    /// An operation that begins now and gives up after this time.
    pub fn after(now: Instant, time: Duration) -> Deadline {
        Deadline::new(now, Limit::Total(time))
    }

    /// An operation that may take any time as long as it gets on: it gives up when none of its calls was decided for so long, or when it
    /// made no progress for [`STALLS`] times as long.
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

    /// When the operation gives up, if nothing can put that off.
    pub fn at(&self) -> Option<Instant> {
        match self.limit {
            Limit::Total(time) => Some(self.begun.plus(time)),
            Limit::Idle(_) => None,
        }
    }

    /// When the operation gives up unless it makes progress.
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

    /// When a call that began at `begun` gives up, as things are.
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

    /// What is reported of the servers of a call that was not decided. One that has only begun when the time is over says nothing of those that
    /// owe an answer: of these it is what they did in the call before.
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

    /// How long was waited when a call that began at `begun` ends, in the terms of the limit that ends it.
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
