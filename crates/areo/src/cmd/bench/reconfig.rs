//! `areo bench reconfig`: what readers and writers notice of reconfigurations, and what these cost.

use super::{data_directory, failure, fares, random_seed, servers_program};
use crate::args::{DurabilityWord, MeasureReconfig};
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session};
use crate::units::show_size;
use areo_bench::reconfig::{self, Moved, Options, PerObject, ReadCost, Report, Stage};
use std::time::Duration;

/// How long an operation may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What is aimed at on loopback with objects of 1 KiB; `docs/benchmarks.md` has the figures that were reached.
const GAP_AIM_MS: f64 = 250.0;
const THROUGHPUT_AIM: f64 = 0.6;
const BATCH_AIM: f64 = 10.0;
const BATCH_OBJECTS: u64 = 10_000;

pub(super) fn run(session: &Session, args: MeasureReconfig) -> Outcome {
    let out = session.out;
    let options = Options {
        program: servers_program()?,
        servers: args.servers.into(),
        objects: args.objects,
        size: args.size,
        reconfigurations: args.reconfigurations,
        clients: args.clients.into(),
        time: Duration::from_secs(args.seconds),
        seed: args.seed.unwrap_or_else(random_seed),
        memory: args.durability == DurabilityWord::Memory,
        data: data_directory(args.data)?,
        timeout: session.timeout_or(TIMEOUT)?,
        history: super::history(args.history)?,
    };
    out.note(&format!(
        "seed {}: {} servers, {} objects of {}, {} clients, {} reconfigurations",
        options.seed,
        options.servers,
        options.objects,
        show_size(options.size as u64),
        options.clients,
        options.reconfigurations
    ));
    let bar = progress::spinner(out, "preparing");
    let work = async {
        let done = reconfig::run(options, |stage| bar.set_message(describe(stage))).await;
        done.map_err(|error| failure("the measurement", &error))
    };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    match out.json {
        true => out.object(&report)?,
        false => print(out, &report)?,
    }
    fares::judge(report.failed, &report.failures, report.seed)
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
    let columns = [
        Column::Text("reconfigurations"),
        Column::Number("domains"),
        Column::Number("objects each"),
        Column::Number("changes each"),
        Column::Number("µs per object"),
    ];
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
        row("nobody else, one batch", &report.batched),
        row("nobody else, one by one", &report.single),
    ];
    out.table(&columns, &rows)
}

fn bytes(out: Output, moved: &[Moved]) -> Outcome {
    let columns = [
        Column::Text("change"),
        Column::Number("bytes moved"),
        Column::Number("needed"),
        Column::Number("ratio"),
    ];
    let row = |moved: &Moved| {
        vec![
            moved.change.clone(),
            moved.moved_bytes.to_string(),
            moved.needed_bytes.to_string(),
            format!("{:.2}", moved.ratio),
        ]
    };
    let rows: Vec<_> = moved.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn behind(out: Output, report: &Report) -> Outcome {
    let behind = &report.behind;
    let columns = [
        Column::Text("reads of a domain"),
        Column::Number("median"),
        Column::Number("99 %"),
        Column::Number("rounds"),
        Column::Number("configurations"),
    ];
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
    out.table(&columns, &rows)
}

/// What is aimed at, and whether it was reached.
fn aims(out: Output, report: &Report) -> Outcome {
    let columns = [
        Column::Text("aim"),
        Column::Number("measured"),
        Column::Text(""),
    ];
    let row = |aim: &str, measured: String, met: bool| {
        let word = if met { "met" } else { "missed" };
        vec![aim.to_owned(), measured, word.to_owned()]
    };
    let (gap, ratio) = (report.longest_gap_ms, report.throughput_ratio);
    let speedup = report.batch_speedup;
    let rows = [
        row(
            "no operation fails",
            report.failed.to_string(),
            report.failed == 0,
        ),
        row(
            "longest time without a success: 250 ms",
            format!("{gap:.1} ms"),
            gap <= GAP_AIM_MS,
        ),
        row(
            "throughput: 60 % of that without",
            format!("{:.0} %", ratio * 100.0),
            ratio >= THROUGHPUT_AIM,
        ),
        row(
            "an object in a batch of 10 000: 10 times faster",
            format!("{speedup:.1} times"),
            speedup >= BATCH_AIM,
        ),
    ];
    let rows = match report.objects >= BATCH_OBJECTS {
        true => &rows[..],
        // It says nothing of fewer.
        false => &rows[..3],
    };
    out.table(&columns, rows)
}
