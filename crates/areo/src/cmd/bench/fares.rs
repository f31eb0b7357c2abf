//! What readers and writers notice of what disturbs them.

use crate::exit::{Failure, Outcome};
use crate::output::{Column, Output};
use areo_bench::reconfig::Fared;

/// A table: how they fare without the disturbance, and with it.
pub(super) fn print(out: Output, without: &Fared, (what, with): (&'static str, &Fared)) -> Outcome {
    let columns = [
        Column::Text("readers and writers"),
        Column::Number("without"),
        Column::Number(what),
    ];
    let row = |what: &str, of: fn(&Fared) -> f64, unit: &str| {
        let show = |fared| match of(fared) {
            small if small < 100.0 => format!("{small:.1}{unit}"),
            large => format!("{large:.0}{unit}"),
        };
        vec![what.to_owned(), show(without), show(with)]
    };
    let rows = [
        row("operations per second", |of| of.per_second, ""),
        row("rounds per operation", |of| of.rounds, ""),
        row("read, median", |of| of.read.p50_us, " µs"),
        row("read, 99 %", |of| of.read.p99_us, " µs"),
        row("write, median", |of| of.write.p50_us, " µs"),
        row("write, 99 %", |of| of.write.p99_us, " µs"),
        row(
            "longest time without a success",
            |of| of.longest_gap_ms,
            " ms",
        ),
        row("operations", |of| of.operations as f64, ""),
        row("measured for", |of| of.seconds * 1e3, " ms"),
    ];
    out.table(&columns, &rows)
}

/// An operation that failed is a failure of the whole measurement.
pub(super) fn judge(failed: u64, failures: &[String], seed: u64) -> Outcome {
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(Failure::other(format!(
            "{failed} operations failed (seed {seed}), the first one: {first}"
        ))),
    }
}
