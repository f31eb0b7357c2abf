//! The metrics of a program that uses the client, for Prometheus. Names, units and meanings stand in `docs/metrics.md`.
//!
//! No label names a key, an object or a writer: they come from closed lists, or name a server. Operations add to atomics, and lock nothing.

use crate::operation::Operation;
use areo_core::reconfig::transfer::Progress;
use areo_core::span::{CANCELLED, ErrorType};
use areo_net::metrics::{Adding, Calls, Peers, text};
use prometheus::{Histogram, IntCounter, IntCounterVec, Registry};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The outcomes of operations; values of the label `outcome`. Those that fail say it in the words of their spans.
const OUTCOMES: [&str; 15] = [
    OK,
    CANCELLED,
    "not_found",
    "version_conflict",
    "unavailable",
    "unknown",
    "swept",
    "corrupted",
    "unauthorised",
    "invalid",
    "is_object",
    "modified",
    "local",
    "not_begun",
    "pending",
];
const OK: &str = "ok";

/// The metrics of the operations of one client, or of several together ([`crate::ConnectOptions::metrics`]): how many of each kind ended how, and
/// after how long; rounds and bytes, encoding and decoding, and reconfigurations. Clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Counters>);

struct Counters {
    registry: Registry,
    calls: Calls,
    peers: Peers,
    operations: IntCounterVec,
    /// Counters of outcomes that happened before: nothing is looked up for an operation.
    ended: [[OnceLock<IntCounter>; OUTCOMES.len()]; Operation::COUNTED.len()],
    seconds: [Histogram; Operation::COUNTED.len()],
    large: Transfer,
    file: Transfer,
    reconfiguration: Reconfiguration,
}

/// Bytes of values on their way.
pub(crate) struct Transfer {
    pub(crate) read: IntCounter,
    pub(crate) written: IntCounter,
}

/// Metrics of a reconfigurer.
struct Reconfiguration {
    decide: IntCounter,
    announce: IntCounter,
    transfer: IntCounter,
    finalize: IntCounter,
    collect: IntCounter,
    objects: IntCounter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Registers all metrics, with nothing counted.
    pub fn new() -> Metrics {
        let registry = Registry::new();
        let add = Adding(&registry);
        let seconds = add.times(
            "areo_client_operation_seconds",
            "From the call of an operation to its end, however it ended.",
            "operation",
        );
        let operations = add.counters(
            "areo_client_operations_total",
            "Operations that ended, by how they did; cancelled: the caller did not wait for the end.",
            &["operation", "outcome"],
        );
        let ended = Operation::COUNTED.map(|(_, kind)| {
            OUTCOMES.map(|outcome| match outcome {
                // There from the first look on.
                OK => OnceLock::from(operations.with_label_values(&[kind, OK])),
                _ => OnceLock::new(),
            })
        });
        let bytes = |name, help| Transfer::new(&add.counters(name, help, &["direction"]));
        let counters = Counters {
            calls: Calls::new(&add),
            peers: Peers::new(
                &add,
                "areo_client_peers",
                "Clients of this process by how the connection of each to this server stands.",
            ),
            ended,
            operations,
            seconds: Operation::COUNTED.map(|(_, kind)| seconds.with_label_values(&[kind])),
            large: bytes(
                "areo_client_large_bytes_total",
                "Bytes of values in blocks, as their blocks came or went.",
            ),
            file: bytes(
                "areo_client_file_bytes_total",
                "Bytes of blocks of files, as they came or went.",
            ),
            reconfiguration: Reconfiguration::new(&add),
            registry,
        };
        Metrics(Arc::new(counters))
    }

    /// Everything, as Prometheus reads it (its text format, version 0.0.4).
    pub fn text(&self) -> String {
        text(&self.0.registry)
    }

    pub(crate) fn calls(&self) -> Calls {
        self.0.calls.clone()
    }

    pub(crate) fn peers(&self) -> Peers {
        self.0.peers.clone()
    }

    /// The transfer metrics of values in blocks.
    pub(crate) fn large(&self) -> &Transfer {
        &self.0.large
    }

    /// The transfer metrics of files.
    pub(crate) fn file(&self) -> &Transfer {
        &self.0.file
    }

    /// A reconfiguration has got so far.
    pub(crate) fn reconfiguring(&self, progress: Progress) {
        let counters = &self.0.reconfiguration;
        let step = match progress {
            Progress::Deciding => &counters.decide,
            Progress::Announcing => &counters.announce,
            Progress::Transferring { objects, .. } => {
                counters.objects.inc_by(objects);
                &counters.transfer
            }
            Progress::Finalizing => &counters.finalize,
            Progress::Collecting => &counters.collect,
            Progress::Waiting { .. } => return,
        };
        step.inc();
    }

    /// Counts an operation that begins.
    pub(crate) fn begin(&self, kind: Operation) -> OperationGauge {
        let counted = Operation::COUNTED.get(kind as usize);
        assert!(
            counted.is_some_and(|(counted, _)| *counted == kind),
            "only operations with a word in metrics are counted"
        );
        OperationGauge {
            metrics: self.clone(),
            kind,
            begun: Instant::now(),
            outcome: CANCELLED,
        }
    }
}

impl Transfer {
    fn new(by_direction: &IntCounterVec) -> Transfer {
        Transfer {
            read: by_direction.with_label_values(&["read"]),
            written: by_direction.with_label_values(&["written"]),
        }
    }
}

impl Reconfiguration {
    fn new(add: &Adding<'_>) -> Reconfiguration {
        let steps = add.counters(
            "areo_client_reconfiguration_steps_total",
            "Steps of reconfigurations; transfer: each group of objects that is there.",
            &["step"],
        );
        let step = |name: &str| steps.with_label_values(&[name]);
        Reconfiguration {
            decide: step("decide"),
            announce: step("announce"),
            transfer: step("transfer"),
            finalize: step("finalize"),
            collect: step("collect"),
            objects: add.counter(
                "areo_client_reconfiguration_objects_total",
                "Objects and blocks that reconfigurations brought into new configurations.",
            ),
        }
    }
}

/// An operation under way. Dropped, it has ended.
pub(crate) struct OperationGauge {
    metrics: Metrics,
    kind: Operation,
    begun: Instant,
    outcome: &'static str,
}

impl OperationGauge {
    /// Counts the end of the operation by its result.
    pub(crate) fn end<T, E: ErrorType>(mut self, ended: &Result<T, E>) {
        self.outcome = ended.as_ref().err().map_or(OK, ErrorType::error_type);
    }
}

impl Drop for OperationGauge {
    fn drop(&mut self) {
        let (counters, kind) = (&self.metrics.0, self.kind as usize);
        counters.seconds[kind].observe(self.begun.elapsed().as_secs_f64());
        let labels = [Operation::COUNTED[kind].1, self.outcome];
        let counter = || counters.operations.with_label_values(&labels);
        match OUTCOMES.iter().position(|word| *word == self.outcome) {
            Some(outcome) => counters.ended[kind][outcome].get_or_init(counter).inc(),
            None => counter().inc(),
        }
    }
}

#[cfg(test)]
mod tests;
