//! Time as the algorithms see it.

use std::time::Duration;

/// A point in time: nanoseconds since some start, by a clock that never goes back. Only differences mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first full second at or after this.
    pub fn next_second(self) -> u32 {
        let seconds = self.0.div_ceil(1_000_000_000);
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// Full seconds since that one; zero if it is later.
    pub fn seconds_since(self, second: u32) -> u32 {
        let seconds = u32::try_from(self.0 / 1_000_000_000).unwrap_or(u32::MAX);
        seconds.saturating_sub(second)
    }

    /// The instant that is later by this time.
    #[must_use]
    pub fn plus(self, time: Duration) -> Instant {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

/// A point in time that may lie before the start of the clock, for what outlives a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PastMoment {
    before: Duration,
    at: Instant,
}

impl PastMoment {
    /// The moment that lies `age` before `now`.
    pub fn before(now: Instant, age: Duration) -> PastMoment {
        PastMoment {
            before: age,
            at: now,
        }
    }

    /// The time since then.
    pub fn age(self, now: Instant) -> Duration {
        now.since(self.at).saturating_add(self.before)
    }
}

impl From<Instant> for PastMoment {
    fn from(now: Instant) -> PastMoment {
        PastMoment::before(now, Duration::ZERO)
    }
}
