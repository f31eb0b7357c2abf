//! The results of a measurement of reconfigurations. The names of the fields are those of `--json`, and stay.

use crate::load::{PhaseReport, Times};
use serde::Serialize;

/// Reconfigurations without other clients.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PerObject {
    /// Domains that were changed.
    pub domains: u64,
    /// Objects in each of them.
    pub objects: u64,
    /// Changes of each of them.
    pub changes: u64,
    /// Time from the begin of the decision to the end of the collection, per change and object, in microseconds.
    pub us_per_object: f64,
}

/// The bytes that a change of the domain moved.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MovedBytes {
    /// The change from one shape to another.
    pub change: String,
    /// Sent and received by the reconfigurer, all messages counted.
    pub moved_bytes: u64,
    /// Bytes that had to travel: each value once from its holders, and elements to the servers that cannot make them
    /// of their own.
    pub needed_bytes: u64,
    /// The one divided by the other.
    pub ratio: f64,
}

/// The cost of reading an object.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReadCost {
    /// The time that it takes.
    pub latency: Times,
    /// Rounds of one read, on average.
    pub rounds: f64,
    /// Configurations asked by one read, on average.
    pub configurations: f64,
}

/// A domain with many configurations behind it, beside a new one of the same shape.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Behind {
    /// Number of configurations behind it.
    pub configurations: u64,
    /// Reads of each of the two, in turn.
    pub reads: u64,
    /// The cost in the domain with configurations behind it.
    pub old: ReadCost,
    /// The cost in the new one.
    pub new: ReadCost,
    /// Medians: old divided by new.
    pub ratio: f64,
    /// The first read of a client that knows the first configuration only.
    pub first_read: ReadCost,
}

/// The result of a measurement of reconfigurations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The seed of clients.
    pub seed: u64,
    /// Server processes; a domain is on all of them but one.
    pub servers: usize,
    /// Objects of the domain.
    pub objects: u64,
    /// Bytes of each object.
    pub size: usize,
    /// Clients that read and wrote.
    pub clients: usize,
    /// The meaning of an acknowledgement: `memory` or `fsync`.
    pub durability: &'static str,
    /// Number of reconfigurations under load.
    pub reconfigurations: u64,
    /// The time that each of them took, in microseconds.
    pub reconfiguration: Times,
    /// Operations of clients that failed, or read a value that was never written. Must be 0.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
    /// The longest time in which no operation succeeded during reconfigurations, in milliseconds.
    pub longest_gap_ms: f64,
    /// Operations per second with reconfigurations, divided by those without.
    pub throughput_ratio: f64,
    /// Reads and writes without reconfigurations.
    pub without: PhaseReport,
    /// The phase with reconfigurations, one directly after the other.
    pub with: PhaseReport,
    /// All objects in one domain.
    pub batched: PerObject,
    /// Every object in a domain of its own.
    pub single: PerObject,
    /// The factor by which an object is moved faster in a batch.
    pub batch_speedup: f64,
    /// Bytes, by kind of change.
    pub bytes: Vec<MovedBytes>,
    /// Reading after many changes.
    pub behind: Behind,
    /// The time that everything took, in milliseconds.
    pub total_ms: u64,
}
