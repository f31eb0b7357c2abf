//! The back-off before the next attempt to connect.

use std::time::Duration;

/// The wait after the first failure, before jitter.
const FIRST_MS: u64 = 10;
/// The longest wait, before jitter: a server that comes back is found within about a second.
const LAST_MS: u64 = 1000;

/// Waits that double, each spread over half to one and a half times itself so that the clients of a server
/// that restarts do not all come back in the same millisecond.
#[derive(Debug)]
pub(crate) struct Backoff {
    next_ms: u64,
    state: u64,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Backoff {
        Backoff {
            next_ms: FIRST_MS,
            state: seed,
        }
    }

    /// The wait before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let base_us = self.next_ms * 1000;
        self.next_ms = (self.next_ms * 2).min(LAST_MS);
        Duration::from_micros(base_us / 2 + self.random() % base_us)
    }

    /// Starts again after a connection that was of use.
    pub(crate) fn reset(&mut self) {
        self.next_ms = FIRST_MS;
    }

    /// The `SplitMix64` generator: spread is all that is asked of it.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_their_spread_up_to_the_last() {
        let mut backoff = Backoff::new(1);
        let mut base_ms = FIRST_MS;
        for _ in 0..20 {
            let wait = backoff.next();
            let base = Duration::from_millis(base_ms);
            assert!(
                wait >= base / 2 && wait < base * 3 / 2,
                "{wait:?} around {base:?}"
            );
            base_ms = (base_ms * 2).min(LAST_MS);
        }
        backoff.reset();
        assert!(backoff.next() < Duration::from_millis(FIRST_MS * 3 / 2));
        assert_ne!(Backoff::new(1).next(), Backoff::new(2).next());
    }
}
