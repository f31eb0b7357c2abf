//! The one source of randomness of a run: everything that is drawn comes from the seed.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

    /// A number that does not change later draws: one for each name and moment.
    pub(crate) fn beside(&self, name: u64) -> u64 {
        mix(mix(name) ^ self.0.get())
    }

    /// Draws a number from 0 to `limit` - 1.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        assert!(limit > 0, "there is something to choose from");
        self.draw() % limit
    }

    pub(crate) fn index(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// Draws a number from `low` to `high`, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "a range");
        low + self.below(high - low + 1)
    }

    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }
}

/// A number that stands for these bytes, eight at a time: only within a run, so that it may be whatever is fast.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut state = bytes.len() as u64;
    for word in words.iter().chain([&last]) {
        state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 32;
    }
    mix(state)
}

/// Hashes the keys of maps whose order nobody sees.
#[derive(Default)]
pub(crate) struct Digester(u64);

impl Hasher for Digester {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0.rotate_left(5) ^ digest(bytes));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64 ^ (number >> 64) as u64);
    }
}

/// A map with fast lookups, to be iterated over only where order does not matter.
pub(crate) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Digester>>;

/// The finisher of splitmix64: a bijection whose every output bit depends on every input bit.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
