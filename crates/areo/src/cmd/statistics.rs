//! What an operation cost, for `--stats`.

use crate::output::Output;
use crate::units::{show_count, show_size};
use areo_client::Statistics;
use serde::Serialize;

/// What is printed with `--json`, beside the result.
#[derive(Serialize, Debug)]
pub(super) struct Cost {
    /// Quorum calls.
    rounds: u64,
    /// Different configurations that were asked.
    configurations_visited: u64,
    sent_bytes: u64,
    received_bytes: u64,
}

impl Cost {
    pub(super) fn of(statistics: &Statistics) -> Cost {
        let counts = statistics.counts();
        Cost {
            rounds: counts.rounds,
            configurations_visited: counts.configurations,
            sent_bytes: counts.sent_bytes,
            received_bytes: counts.received_bytes,
        }
    }
}

/// Says what the operation cost, if it was asked for.
pub(super) fn print(out: Output, cost: Option<&Cost>) {
    let Some(cost) = cost else { return };
    out.note(&format!(
        "{}, {}, {} sent, {} received",
        show_count(cost.rounds, "round"),
        show_count(cost.configurations_visited, "configuration"),
        show_size(cost.sent_bytes),
        show_size(cost.received_bytes)
    ));
}
