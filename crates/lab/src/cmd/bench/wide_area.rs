//! `areo-lab bench wide-area`: servers that are far apart.

use crate::args::MeasureWideArea;
use crate::cmd::Lab;
use crate::cmd::NAME;
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo::output::{Output, columns};
use areo::progress;
use areo_bench::wide_area::{self, ByRounds, Options, Point, Report};
use areo_lab::shared::{command, create, data_directory, finish, none_failed, write};
use areo_telemetry::view;
use std::time::Duration;

/// The longest time that an operation may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(lab: &Lab<'_>, args: MeasureWideArea) -> Outcome {
    let out = lab.out;
    let html = args.html.clone().map(create).transpose()?;
    let options = Options {
        program: lab.servers()?,
        near: args.near,
        far: args.far,
        loss_percent: args.loss,
        operations: args.operations,
        size: args.size,
        memory: args.durability == DurabilityWord::Memory,
        data: data_directory(args.data)?,
        timeout: lab.timeout_or(TIMEOUT)?,
        command: command(NAME),
    };
    out.note(&format!(
        "5 servers at A, A, B, B and C: {} ms from A to B, {} ms to C",
        args.near.as_millis(),
        args.far.as_millis()
    ));
    let bar = progress::count(out, "measuring", 1);
    let work = wide_area::run(options, |done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    });
    let report = finish(out, ("the measurement", &bar), work, print)?;
    write([(html, &view::page(&report))])?;
    judge(&report)
}

fn print(out: Output, report: &Report) -> Outcome {
    let head = columns(
        "domain | servers at | client at | operation | beside a writer at | > rounds | > operations | \
         > round trip to a quorum | > p50 | > p99 | > p50 in round trips",
    );
    let row = |point: &Point, by: &ByRounds| -> Vec<String> {
        let figures = [
            format!("{:.0} ms", point.round_trip_ms),
            format!("{:.1} ms", by.times.p50_us / 1e3),
            format!("{:.1} ms", by.times.p99_us / 1e3),
            format!("{:.2}", by.round_trips),
        ];
        point.words(by).into_iter().chain(figures).collect()
    };
    let points = report.points.iter();
    let rows = points.flat_map(|point| point.by_rounds.iter().map(move |by| row(point, by)));
    out.table(&head, &rows.collect::<Vec<_>>())?;
    out.line("")?;
    match report.broken.is_empty() {
        true => out.line("counts of rounds: as on any machine"),
        false => report
            .broken
            .iter()
            .try_for_each(|sentence| out.line(&format!("WRONG COUNT: {sentence}"))),
    }
}

/// A wrong count is a failure of the whole measurement, as is an operation that failed.
fn judge(report: &Report) -> Outcome {
    none_failed(report.failed, &report.failures, None)?;
    match report.broken.first() {
        None => Ok(()),
        Some(first) => Err(Failure::other(format!(
            "a count is not what it is on any machine: {first}"
        ))),
    }
}
