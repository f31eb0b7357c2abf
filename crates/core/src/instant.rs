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

    /// So much later.
    #[must_use]
    pub fn plus(self, time: Duration) -> Instant {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}
