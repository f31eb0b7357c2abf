//! The cost of an operation, for `--stats`.

use crate::output::Output;
use areo_client::Statistics;
use areo_client::units::{show_count, show_size};

/// Prints the cost of the operation, if it was asked for.
pub(super) fn print(out: Output, cost: Option<&Statistics>) {
    let Some(cost) = cost else { return };
    let cost = cost.counts();
    out.note(&format!(
        "{}, {}, {} sent, {} received",
        show_count(cost.rounds, "round"),
        show_count(cost.configurations, "configuration"),
        show_size(cost.sent_bytes),
        show_size(cost.received_bytes)
    ));
}
