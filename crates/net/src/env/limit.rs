//! How long an operation may take.

use super::NetEnv;
use super::meter::Meter;
use crate::network::Network;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// When an operation gives up.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    /// At this time.
    Deadline(Instant),
    /// When none of its calls was decided for so long.
    Patience(Duration),
}

impl Network {
    /// The world for an operation that has so much time.
    pub fn env(&self, timeout: Duration) -> NetEnv {
        let started = Instant::now();
        self.limited(started, Limit::Deadline(started + timeout))
    }

    /// The world for an operation that may take any time as long as it gets on: it fails when none of its calls was decided
    /// for so long.
    pub fn patient_env(&self, patience: Duration) -> NetEnv {
        self.limited(Instant::now(), Limit::Patience(patience))
    }

    fn limited(&self, started: Instant, limit: Limit) -> NetEnv {
        NetEnv {
            network: self.clone(),
            started,
            limit,
            meter: Rc::new(Meter::new(self.calls())),
        }
    }
}

impl NetEnv {
    /// When a call that began at `begun` gives up, as things are.
    pub(super) fn until(&self, begun: Instant) -> Instant {
        match self.limit {
            Limit::Deadline(deadline) => deadline,
            Limit::Patience(patience) => self.idle_since(begun) + patience,
        }
    }

    /// Since when a call that began at `begun` has been waiting, in the terms of the limit.
    pub(super) fn idle_since(&self, begun: Instant) -> Instant {
        match self.limit {
            Limit::Deadline(_) => self.started,
            Limit::Patience(_) => begun.max(self.meter.moved_on().unwrap_or(begun)),
        }
    }
}
