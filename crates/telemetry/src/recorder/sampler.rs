//! The choice of operations that are watched.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Part of a second's traces that pass at once after a rest.
const RESERVE_NS: u64 = SECOND_NS / 10;

/// The choice of operations that are watched. It is made where an operation begins; servers follow the client's
/// choice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sampler {
    /// None of this process's own.
    Never,
    /// This share of the operations, from 0 to 1.
    Share(f64),
    /// All, unless there are more than so many a second: that bounds the cost of tracing under any load. Of more than that
    /// the ring would only keep the last moments anyway.
    PerSecond(NonZeroU32),
    /// Every operation is watched.
    Always,
}

impl Sampler {
    /// All operations of a person; of a program two hundred operations a second. Of one such program a server's ring
    /// remembers the last ten seconds.
    pub const USUAL: Sampler = Sampler::PerSecond(NonZeroU32::new(200).expect("it is not zero"));
}

/// Limits the operations per second: a tenth of them pass at once after a rest, then one in each interval.
#[derive(Default, Debug)]
pub(super) struct Pace {
    /// The time at which all traces that passed would have passed if one had come in each interval, in nanoseconds.
    due_ns: AtomicU64,
}

impl Pace {
    /// True if one that comes now is let through. `now` counts from any fixed moment.
    pub(super) fn takes(&self, per_second: NonZeroU32, now: Duration) -> bool {
        let interval_ns = SECOND_NS / u64::from(per_second.get());
        let now_ns = now.as_nanos() as u64;
        let next = |due_ns: u64| {
            let due_ns = due_ns.max(now_ns);
            (due_ns + interval_ns <= now_ns + RESERVE_NS).then_some(due_ns + interval_ns)
        };
        let order = Ordering::Relaxed;
        self.due_ns.fetch_update(order, order, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of operations at these moments that are let through.
    fn taken(pace: &Pace, per_second: u32, moments: impl Iterator<Item = Duration>) -> usize {
        let per_second = NonZeroU32::new(per_second).unwrap();
        moments
            .filter(|moment| pace.takes(per_second, *moment))
            .count()
    }

    #[test]
    fn what_comes_slower_is_all_let_through() {
        let moments = (0..5000).map(|i| Duration::from_millis(10 * i));
        assert_eq!(taken(&Pace::default(), 100, moments), 5000);
    }

    #[test]
    fn a_flood_gets_its_rate_and_the_reserve() {
        let pace = Pace::default();
        let flood = |from: u64| (0..100_000).map(move |i| Duration::from_micros(from + 100 * i));
        // Ten seconds at 10 000 a second.
        assert_eq!(taken(&pace, 1000, flood(0)), 100 + 9999);
        assert!(taken(&pace, 1000, flood(10_000_000)).abs_diff(10_000) <= 1);
        // After a rest there is a reserve again, however long it was.
        assert_eq!(taken(&pace, 1000, flood(60_000_000)), 100 + 9999);
    }

    #[test]
    fn many_at_one_moment_are_the_reserve() {
        let now = std::iter::repeat_n(Duration::from_secs(7), 5000);
        assert_eq!(taken(&Pace::default(), 1000, now), 100);
    }
}
