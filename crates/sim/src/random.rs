//! The one source of randomness of a run: everything that is drawn comes from the seed.

use std::cell::Cell;

/// A generator (splitmix64). Shared by reference, so that it needs no lock and no exclusive borrow.
#[derive(Debug)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Cell::new(seed))
    }

    pub(crate) fn draw(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        mix(state)
    }

    /// From 0 to `limit` - 1.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        assert!(limit > 0, "there is something to choose from");
        self.draw() % limit
    }

    pub(crate) fn index(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "a range");
        low + self.below(high - low + 1)
    }

    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }
}

/// The finisher of splitmix64: a bijection whose every output bit depends on every input bit.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
