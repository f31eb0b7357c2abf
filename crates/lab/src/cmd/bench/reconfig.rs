//! `areo-lab bench reconfig`: what readers and writers notice of reconfigurations, and what these cost.

use super::fares;
use crate::args::MeasureReconfig;
use crate::cmd::Lab;
use areo::exit::Outcome;
use areo::output::{Output, columns};
use areo::progress;
use areo_bench::reconfig::{self, MovedBytes, Options, PerObject, ReadCost, Report, Stage};
use areo_lab::shared::{finish, history, none_failed};
use std::time::Duration;

/// The goal for the throughput ratio, on loopback with objects of 1 KiB; `docs/benchmarks.md` has the measured
/// values.
const THROUGHPUT_AIM: f64 = 0.6;
const BATCH_AIM: f64 = 10.0;
const BATCH_OBJECTS: u64 = 10_000;

pub(super) fn run(lab: &Lab<'_>, args: MeasureReconfig) -> Outcome {
    let out = lab.out;
    let options = Options {
        setup: fares::setup(lab, args.servers, args.durability, args.load)?,
        reconfigurations: args.reconfigurations,
        time: Duration::from_secs(args.seconds),
        history: history(args.history)?,
    };
    let changes = format!("{} reconfigurations", options.reconfigurations);
    fares::announce(out, &options.setup, &changes);
    let bar = progress::spinner(out, "preparing");
    let work = reconfig::run(options, |stage| bar.set_message(describe(stage)));
    let report = finish(out, ("the measurement", &bar), work, print)?;
    none_failed(report.failed, &report.failures, Some(report.seed))
}

fn describe(stage: Stage) -> String {
    match stage {
        Stage::Preparing => "preparing".into(),
        Stage::Loaded(operations, changes) => {
            format!("{changes} reconfigurations, {operations} operations")
        }
        Stage::Batched => "moving all objects in one domain".into(),
        Stage::Single(domains) => format!("{domains} domains of one object"),
        Stage::Behind(configurations) => format!("{configurations} configurations behind a domain"),
    }
}

fn print(out: Output, report: &Report) -> Outcome {
    fares::print(
        out,
        &report.without,
        ("with reconfigurations", &report.with),
    )?;
    out.line("")?;
    costs(out, report)?;
    out.line("")?;
    bytes(out, &report.bytes)?;
    out.line("")?;
    behind(out, report)?;
    out.line("")?;
    aims(out, report)
}

fn costs(out: Output, report: &Report) -> Outcome {
    let head =
        columns("reconfigurations | > domains | > objects each | > changes each | > µs per object");
    let row = |what: &str, of: &PerObject| {
        vec![
            what.to_owned(),
            of.domains.to_string(),
            of.objects.to_string(),
            of.changes.to_string(),
            format!("{:.1}", of.us_per_object),
        ]
    };
    let under_load = PerObject {
        domains: 1,
        objects: report.objects,
        changes: report.reconfigurations,
        us_per_object: report.reconfiguration.p50_us / report.objects as f64,
    };
    let rows = [
        row("under load (median)", &under_load),
        row("no other client, one batch", &report.batched),
        row("no other client, one by one", &report.single),
    ];
    out.table(&head, &rows)
}

fn bytes(out: Output, moved: &[MovedBytes]) -> Outcome {
    let head = columns("change | > bytes moved | > needed | > ratio");
    let row = |moved: &MovedBytes| {
        vec![
            moved.change.clone(),
            moved.moved_bytes.to_string(),
            moved.needed_bytes.to_string(),
            format!("{:.2}", moved.ratio),
        ]
    };
    let rows: Vec<_> = moved.iter().map(row).collect();
    out.table(&head, &rows)
}

fn behind(out: Output, report: &Report) -> Outcome {
    let behind = &report.behind;
    let head = columns("reads of a domain | > p50 | > p99 | > rounds | > configurations");
    let row = |what: &str, cost: &ReadCost| {
        vec![
            what.to_owned(),
            format!("{:.0} µs", cost.latency.p50_us),
            format!("{:.0} µs", cost.latency.p99_us),
            format!("{:.2}", cost.rounds),
            format!("{:.2}", cost.configurations),
        ]
    };
    let many = format!("with {} configurations behind it", behind.configurations);
    let rows = [
        row(&many, &behind.old),
        row("new", &behind.new),
        row("once, by one who knows the first only", &behind.first_read),
    ];
    out.table(&head, &rows)
}

/// Prints the goals, and whether they were met.
fn aims(out: Output, report: &Report) -> Outcome {
    let (ratio, speedup) = (report.throughput_ratio, report.batch_speedup);
    let aims = [
        fares::none_fails("", report.failed),
        fares::short_gap(report.longest_gap_ms),
        (
            "throughput: 60 % of that without".to_owned(),
            format!("{:.0} %", ratio * 100.0),
            ratio >= THROUGHPUT_AIM,
        ),
        (
            "an object in a batch of 10 000: 10 times faster".to_owned(),
            format!("{speedup:.1} times"),
            speedup >= BATCH_AIM,
        ),
    ];
    // The last one says nothing of fewer objects.
    let told = 3 + usize::from(report.objects >= BATCH_OBJECTS);
    fares::aims(out, &aims[..told])
}
