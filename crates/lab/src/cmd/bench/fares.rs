//! The effect of disturbances on readers and writers.

use crate::args::Load;
use crate::cmd::Lab;
use areo::args::DurabilityWord;
use areo::exit::Outcome;
use areo::output::{Column, Output, columns};
use areo_bench::Setup;
use areo_bench::reconfig::PhaseReport;
use areo_client::units::show_size;
use areo_lab::shared::{data_directory, random_seed};
use std::time::Duration;

/// The longest time that an operation may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The goal for the longest gap without a success; `docs/benchmarks.md` has the measured values.
const GAP_AIM_MS: f64 = 250.0;

/// A setup with these servers and this load.
pub(super) fn setup(
    lab: &Lab<'_>,
    servers: u8,
    durability: DurabilityWord,
    load: Load,
) -> Outcome<Setup> {
    Ok(Setup {
        program: lab.servers()?,
        servers: servers.into(),
        objects: load.objects,
        size: load.size,
        clients: load.clients.into(),
        seed: load.seed.unwrap_or_else(random_seed),
        memory: durability == DurabilityWord::Memory,
        data: data_directory(load.data)?,
        timeout: lab.timeout_or(TIMEOUT)?,
    })
}

/// Prints the measurement that is about to begin.
pub(super) fn announce(out: Output, setup: &Setup, disturbances: &str) {
    out.note(&format!(
        "seed {}: {} servers, {} objects of {}, {} clients, {disturbances}",
        setup.seed,
        setup.servers,
        setup.objects,
        show_size(setup.size as u64),
        setup.clients,
    ));
}

/// A table: how they fare without the disturbance, and with it.
pub(super) fn print(
    out: Output,
    without: &PhaseReport,
    (what, with): (&'static str, &PhaseReport),
) -> Outcome {
    let head = [
        Column::Text("readers and writers"),
        Column::Number("without"),
        Column::Number(what),
    ];
    let row = |what: &str, of: fn(&PhaseReport) -> f64, unit: &str| {
        let show = |fared| match of(fared) {
            small if small < 100.0 => format!("{small:.1}{unit}"),
            large => format!("{large:.0}{unit}"),
        };
        vec![what.to_owned(), show(without), show(with)]
    };
    let rows = [
        row("operations per second", |of| of.per_second, ""),
        row("rounds per operation", |of| of.rounds, ""),
        row("read, p50", |of| of.read.p50_us, " µs"),
        row("read, p99", |of| of.read.p99_us, " µs"),
        row("write, p50", |of| of.write.p50_us, " µs"),
        row("write, p99", |of| of.write.p99_us, " µs"),
        row(
            "longest time without a success",
            |of| of.longest_gap_ms,
            " ms",
        ),
        row("operations", |of| of.operations as f64, ""),
        row("measured for", |of| of.seconds * 1e3, " ms"),
    ];
    out.table(&head, &rows)
}

/// A goal, the measured value, and whether the value meets the goal.
pub(super) type Aim = (String, String, bool);

pub(super) fn none_fails(what: &str, failed: u64) -> Aim {
    let aim = format!("no operation fails{what}");
    (aim, failed.to_string(), failed == 0)
}

pub(super) fn short_gap(ms: f64) -> Aim {
    let aim = format!("longest time without a success: {GAP_AIM_MS:.0} ms");
    (aim, format!("{ms:.1} ms"), ms <= GAP_AIM_MS)
}

/// Prints each goal with the measured value, and whether it was met.
pub(super) fn aims(out: Output, aims: &[Aim]) -> Outcome {
    let head = columns("aim | > measured | ");
    let row = |(aim, measured, met): &Aim| {
        let word = if *met { "met" } else { "missed" };
        vec![aim.clone(), measured.clone(), word.to_owned()]
    };
    let rows: Vec<_> = aims.iter().map(row).collect();
    out.table(&head, &rows)
}
