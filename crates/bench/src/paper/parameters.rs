//! The parameters of an experiment: numbers of servers and clients, sizes, times.

use super::actor::Blocks;

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;
/// The largest object that is one value.
pub(super) const OBJECT_MAX: usize = 64 * MIB;

/// Parameters of a scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    pub(super) servers: usize,
    /// Servers whose elements are beside the `k` that make a value: m.
    pub(super) parity: usize,
    pub(super) writers: usize,
    pub(super) readers: usize,
    /// Clients that change the configuration at the same time.
    pub(super) reconfigurers: usize,
    /// Changes of each of them, unless the others have ended.
    pub(super) changes: usize,
    /// Between two of them, in milliseconds.
    pub(super) change_ms: u64,
    /// Operations of each reader and writer.
    pub(super) operations: usize,
    /// Between two of them, in milliseconds: drawn from this range.
    pub(super) wait_ms: (u64, u64),
    pub(super) sizes: &'static [usize],
    pub(super) blocks: Blocks,
    pub(super) runs: usize,
}

impl Parameters {
    /// The parameters that most experiments were published with.
    pub(super) const COMMON: Parameters = Parameters {
        servers: 11,
        parity: 5,
        writers: 5,
        readers: 5,
        reconfigurers: 0,
        changes: 0,
        change_ms: 0,
        operations: 50,
        wait_ms: (1_000, 3_000),
        sizes: &[
            MIB,
            2 * MIB,
            4 * MIB,
            8 * MIB,
            16 * MIB,
            32 * MIB,
            64 * MIB,
            128 * MIB,
            256 * MIB,
            512 * MIB,
        ],
        blocks: (512 * KIB, 512 * KIB, MIB),
        runs: 3,
    };
}
