//! Conditional puts and deletions of one object, one after the other.
//!
//! Writers of one object that meet at the servers overtake each other, and each pauses for that. Those that come through one gateway need not meet there: each waits
//! for its turn. The servers decide all the same. A write that has waited for [`PATIENCE`] goes on, because the one before it may receive its body slowly.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// The longest wait for a turn.
const PATIENCE: Duration = Duration::from_millis(100);
/// Places for objects. Two objects rarely have one place, and then a write of one may wait for a write of the other.
const PLACES: usize = 4096;

/// The writers whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    places: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns {
            places: (0..PLACES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Waits for the turn of a write of this object. `None`: it took too long.
    pub(super) async fn of(&self, bucket: &str, key: &str) -> Option<MutexGuard<'_, ()>> {
        let place = usize::try_from(self.hasher.hash_one((bucket, key)) % PLACES as u64);
        let place = &self.places[place.expect("it is below their number")];
        timeout(PATIENCE, place.lock()).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn a_write_waits_for_the_one_before_it() {
        let turns = Turns::new();
        let first = turns.of("b", "k").await;
        assert!(first.is_some());
        let mut second = pin!(turns.of("b", "k"));
        let polled = second
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the first one has not ended");
        drop(first);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn a_write_does_not_wait_for_ever() {
        let turns = Turns::new();
        let _first = turns.of("b", "k").await;
        assert!(turns.of("b", "k").await.is_none());
    }
}
