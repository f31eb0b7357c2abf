//! The options of a run over many seeds.

use crate::fault::Fault;
use crate::random::Random;

/// The rule by which the next event is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// Each seed draws one of the others.
    #[default]
    Mixed,
    /// Time, which is drawn.
    Random,
    /// Probabilistic concurrency testing, with this depth or one that each seed draws.
    Pct {
        /// The number of events that must be ordered for a bug to show; `None`: each seed draws one.
        depth: Option<u64>,
    },
}

impl Scheduler {
    /// The depth if it is PCT.
    pub(crate) fn depth(self, random: &Random) -> Option<u64> {
        let (is_pct, drawn) = (random.chance(300), random.between(1, 6));
        match self {
            Scheduler::Mixed => is_pct.then_some(drawn),
            Scheduler::Random => None,
            Scheduler::Pct { depth } => Some(depth.unwrap_or(drawn)),
        }
    }
}

/// The operations of clients, and their domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Everything, as much of each as the seed says.
    #[default]
    Drawn,
    /// All operations, but domains are never reconfigured.
    Settled,
    /// Registers and their names at all servers: neither files nor values in blocks, nor reconfigurations, until
    /// everything is done once at the end. It measures the cost of the simulator itself.
    Registers,
    /// Mostly join tokens, access keys and CAs, with every fault, while the root domain changes its members.
    Trusting,
    /// Nothing goes wrong, and clients do nothing, before servers come to remember anything ([`Fault::ArbitraryState`]).
    Stabilizing,
    /// Nothing goes wrong, and clients do nothing, before an object is lost ([`Fault::ObjectLost`]).
    Losing,
    /// Nothing goes wrong, and clients do nothing, before a server stops for good and instances of the autopilot replace it.
    Stewarding,
}

/// Options of a run over many seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub first_seed: u64,
    /// Number of seeds that are run, one after the other.
    pub seeds: u64,
    /// Operations of each, before everything is mended.
    pub operations: u64,
    /// True if faults are injected.
    pub faults: bool,
    pub work: Work,
    pub scheduler: Scheduler,
    /// A fault whose first strike is called a violation: proof that violations are found, replayed and shrunk.
    pub planted: Option<Fault>,
    /// Run each seed twice: equal hashes are a rule, too.
    pub twice: bool,
    /// Threads; each runs whole seeds.
    pub threads: usize,
    /// Stop at the first seed that breaks a rule.
    pub stop_at_first: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            first_seed: 0,
            seeds: 1,
            operations: 1000,
            faults: true,
            work: Work::Drawn,
            scheduler: Scheduler::Mixed,
            twice: false,
            planted: None,
            threads: 1,
            stop_at_first: false,
        }
    }
}
