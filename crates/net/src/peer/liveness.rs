//! Judges whether the other side of a connection lives, by the bytes that it sends.

use std::time::{Duration, Instant};

/// The result of a look at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There was a sign of life a short while ago.
    Alive,
    /// Ask for a sign of life.
    Doubtful,
    /// There was none for as long as is waited.
    Dead,
}

/// The patience with the other side of one connection.
///
/// A sign of life is what the other side does: bytes from it, or bytes that a socket takes again after it was full, because
/// the other side has made room for them. Bytes that an empty socket takes are none: a socket takes megabytes for a machine
/// that is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    limit: Duration,
    looked: Instant,
    /// Since when this process has looked regularly: while it is stopped it reads nothing.
    awake_since: Instant,
}

impl Liveness {
    /// Waits for a sign of life for this time, and asks for one after a third of it.
    pub(crate) fn new(limit: Duration, now: Instant) -> Liveness {
        Liveness {
            limit,
            looked: now,
            awake_since: now,
        }
    }

    /// Judges by the last sign of life. To be called several times within a third of the limit.
    pub(crate) fn look(&mut self, now: Instant, last_sign: Instant) -> Verdict {
        if now.saturating_duration_since(self.looked) >= self.limit / 3 {
            self.awake_since = now;
        }
        self.looked = now;
        let silent_for = now.saturating_duration_since(last_sign.max(self.awake_since));
        if silent_for >= self.limit {
            Verdict::Dead
        } else if silent_for >= self.limit / 3 {
            Verdict::Doubtful
        } else {
            Verdict::Alive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(15);

    /// The first second at which a look has this verdict, with one look each second.
    fn first(wanted: Verdict, last_sign: impl Fn(u64) -> u64) -> Option<u64> {
        let start = Instant::now();
        let mut liveness = Liveness::new(LIMIT, start);
        (1..60).find(|&second| {
            let at = |second| start + Duration::from_secs(second);
            liveness.look(at(second), at(last_sign(second))) == wanted
        })
    }

    #[test]
    fn silence_is_asked_about_after_a_third_and_ends_it_after_the_limit() {
        assert_eq!(first(Verdict::Doubtful, |_| 0), Some(5));
        assert_eq!(first(Verdict::Dead, |_| 0), Some(15));
        assert_eq!(first(Verdict::Dead, |second| second / 14 * 14), None);
        assert_eq!(first(Verdict::Doubtful, |second| second), None);
    }

    #[test]
    fn a_process_that_was_stopped_listens_before_it_judges() {
        let start = Instant::now();
        let mut liveness = Liveness::new(LIMIT, start);
        let woken = start + Duration::from_mins(1);
        assert_eq!(liveness.look(woken, start), Verdict::Alive);
        for second in 1..15 {
            let now = woken + Duration::from_secs(second);
            assert_ne!(liveness.look(now, start), Verdict::Dead);
        }
        assert_eq!(liveness.look(woken + LIMIT, start), Verdict::Dead);
    }
}
