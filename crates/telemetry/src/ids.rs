//! Identities of traces and spans: random, never zero, as W3C wants them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The source of identities: `splitmix64` from a seed of the operating system. Not for secrets.
#[derive(Debug)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn new() -> Ids {
        let seed = getrandom::u64().expect("the operating system gives entropy");
        Ids(AtomicU64::new(seed))
    }

    pub(crate) fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn span(&self) -> u64 {
        self.random().max(1)
    }

    pub(crate) fn trace(&self) -> u128 {
        (u128::from(self.random()) << 64 | u128::from(self.random())).max(1)
    }
}
