//! Numbers that look random and come from a seed (`SplitMix64`).

use std::ops::Range;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another stream, which depends on this one's seed and on `which`.
    pub(crate) fn derive(&self, which: u64) -> Random {
        let mut seed = Random(self.0 ^ which.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Random(seed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is nothing to choose from");
        self.next() % bound
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A time in this range of milliseconds.
    pub(crate) fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }

    /// This count of different numbers below `bound`, as bits.
    pub(crate) fn subset(&mut self, size: usize, bound: usize) -> u64 {
        assert!(size <= bound && bound <= 64);
        let mut bits = 0_u64;
        while (bits.count_ones() as usize) < size {
            bits |= 1 << self.index(bound);
        }
        bits
    }
}
