//! `areo-lab paper`: the papers' experiments, beside what was published.

use super::{Lab, changes};
use crate::args::{Paper, PaperWord};
use crate::cmd::NAME;
use areo::exit::{Failure, Outcome};
use areo::output::{Column, Output, columns};
use areo::progress;
use areo_bench::paper::{
    self, Comparison, Experiment, Law, Options, Point, Report, ServerOptions, short,
};
use areo_bench::peers::Spread;
use areo_lab::shared::{command, create, data_directory, finish, none_failed, random_seed, write};
use areo_telemetry::view;
use serde::Serialize;
use std::time::Duration;

/// The longest time that an operation may take, unless `--timeout` says otherwise: large values on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Quantities of some experiments, and their columns.
const OTHERS: [(&str, &str); 7] = [
    ("server_cpu_ms", "CPU of servers for an operation, ms"),
    ("reconfiguration_ms", "reconfiguration, ms"),
    ("restart_ms", "restart, ms"),
    ("restart_writes", "restart in writes"),
    ("rewritten_ms", "until a write, ms"),
    ("stabilized_ms", "stabilized after, ms"),
    ("restarted_ms", "with a restart, ms"),
];

pub(super) fn run(lab: &Lab<'_>, args: Paper) -> Outcome {
    match args.experiment {
        PaperWord::List => list(lab.out),
        PaperWord::Experiment(experiment) => repeat(lab, experiment, args),
        PaperWord::Changes(experiment) => changes::run(lab, experiment, &args),
    }
}

/// A variant that there is not.
#[derive(Serialize)]
struct MissingFigure {
    variant: &'static str,
    missing: &'static str,
}

fn list(out: Output) -> Outcome {
    let not_run = paper::not_run();
    let missing = paper::VARIANTS_NOT_HERE.iter().chain(&not_run);
    let missing = missing.map(|(variant, missing)| MissingFigure { variant, missing });
    if out.json {
        let mut all = paper::list().into_iter().chain(changes::list());
        all.try_for_each(|listed| out.object(&listed))?;
        return missing
            .into_iter()
            .try_for_each(|listed| out.object(&listed));
    }
    let head = columns("experiment | about | variants, or why not");
    let all = paper::list().into_iter().chain(changes::list());
    let rows = all.map(|listed| {
        let why = match listed.missing {
            "" => listed.variants.to_owned(),
            missing => format!("not here: {missing}"),
        };
        vec![listed.experiment.into(), listed.about.into(), why]
    });
    out.table(&head, &rows.collect::<Vec<_>>())?;
    out.line("")?;
    let head = columns("variant that is not here | why");
    let rows = missing.map(|of| vec![of.variant.to_owned(), of.missing.to_owned()]);
    out.table(&head, &rows.collect::<Vec<_>>())
}

/// The servers of an experiment.
pub(super) fn servers(lab: &Lab<'_>, args: &Paper) -> Outcome<ServerOptions> {
    Ok(ServerOptions {
        program: lab.servers()?,
        seed: args.seed.unwrap_or_else(random_seed),
        data: data_directory(args.data.clone())?,
        timeout: lab.timeout_or(TIMEOUT)?,
        round_trip: args.round_trip,
    })
}

pub(super) fn virtual_time_alone(name: &str) -> Failure {
    Failure::usage(format!(
        "experiment {name} is in virtual time alone: `areo-lab measure {name}`"
    ))
}

fn repeat(lab: &Lab<'_>, experiment: &'static Experiment, args: Paper) -> Outcome {
    let (out, name) = (lab.out, experiment.name);
    if !experiment.has_processes() {
        return Err(virtual_time_alone(name));
    }
    let (scale, servers) = (args.scale.name(), servers(lab, &args)?);
    let seed = servers.seed;
    // An error about them comes now, and not after the measurement.
    let csv = args.csv.map(create).transpose()?;
    let html = args.html.map(create).transpose()?;
    let options = Options {
        servers,
        experiment,
        scale: args.scale,
        command: command(NAME),
    };
    out.note(&format!("seed {seed}: {name} at scale {scale}"));
    let bar = progress::count(out, "measuring", 1);
    let observe = |progress: paper::Progress| {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.point);
    };
    let work = paper::run(options, observe);
    let report = finish(out, ("the measurement", &bar), work, print)?;
    write([(csv, &report.csv()), (html, &view::page(&report))])?;
    judge(&report)
}

pub(super) fn print(out: Output, report: &Report) -> Outcome {
    let Report {
        experiment, scale, ..
    } = report;
    out.line(&format!(
        "{experiment} at scale {scale}, against the publication:"
    ))?;
    for change in &report.changes {
        out.line(&format!("  {change}"))?;
    }
    out.line("")?;
    points(out, &report.points)?;
    for variant in &report.not_run {
        out.line(variant)?;
    }
    out.line("")?;
    comparisons(out, &report.comparisons)?;
    out.line("")?;
    reasons(out, &report.comparisons)?;
    laws(out, &report.laws)
}

fn spread(of: Option<&Spread>) -> String {
    let show = |Spread { median, min, max }: &Spread| match (max - min).abs() < 1e-9 {
        true => short(*median),
        false => format!("{} ({} to {})", short(*median), short(*min), short(*max)),
    };
    of.map_or(String::new(), show)
}

fn points(out: Output, points: &[Point]) -> Outcome {
    let is_there = |name: &str| points.iter().any(|point| point.values.contains_key(name));
    let others: Vec<_> = OTHERS
        .into_iter()
        .filter(|(name, _)| is_there(name))
        .collect();
    let mut head = columns(
        "variant | at | > read, ms | > published, ms | > rounds | > configurations | > MB received | \
         > write, ms | > rounds | > prevailed",
    );
    head.extend(others.iter().map(|(_, column)| Column::Number(column)));
    let row = |point: &Point| {
        let value = |name| spread(point.values.get(name));
        let megabytes = point.values.get("read_bytes").map(|bytes| Spread {
            median: bytes.median / 1e6,
            min: bytes.min / 1e6,
            max: bytes.max / 1e6,
        });
        let published = point.published_read_ms.zip(point.published_at.as_ref());
        let mut row = vec![
            point.variant.clone(),
            point.at.clone(),
            value("read_ms"),
            published.map_or(String::new(), |(ms, at)| format!("{} at {at}", short(ms))),
            value("read_rounds"),
            value("read_configurations"),
            spread(megabytes.as_ref()),
            value("write_ms"),
            value("write_rounds"),
            value("write_success"),
        ];
        row.extend(others.iter().map(|(name, _)| value(name)));
        row
    };
    let rows: Vec<_> = points.iter().map(row).collect();
    out.table(&head, &rows)
}

fn comparisons(out: Output, comparisons: &[Comparison]) -> Outcome {
    let head = columns("ratio | of | at | > here | > published | published order");
    let row = |of: &Comparison| {
        let published = of.published.zip(of.published_at.as_ref());
        vec![
            format!("{} / {}", of.above, of.below),
            of.quantity.clone(),
            of.at.clone(),
            spread(Some(&of.ratio)),
            published.map_or(String::new(), |(ratio, at)| format!("{ratio:.2} at {at}")),
            of.verdict.word().to_owned(),
        ]
    };
    let rows: Vec<_> = comparisons.iter().map(row).collect();
    out.table(&head, &rows)
}

/// Why published orders are not the ones here: once for every sort of comparison.
fn reasons(out: Output, comparisons: &[Comparison]) -> Outcome {
    let with_reason = comparisons.iter().filter(|of| !of.reason.is_empty());
    let mut all: Vec<(&str, &str, &str)> = with_reason
        .map(|of| (&*of.relation, of.verdict.word(), &*of.reason))
        .collect();
    all.sort_unstable();
    all.dedup();
    for (relation, verdict, reason) in all {
        out.line(&format!("{relation}, {verdict}: {reason}"))?;
    }
    Ok(())
}

fn laws(out: Output, laws: &[Law]) -> Outcome {
    let head = columns("count | variant | at | > expected | > measured | ");
    let row = |law: &Law| {
        vec![
            law.what.clone(),
            law.variant.clone(),
            law.at.clone(),
            law.expected.clone(),
            law.measured.clone(),
            law.word().to_owned(),
        ]
    };
    out.line("")?;
    out.table(&head, &laws.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn judge(report: &Report) -> Outcome {
    let seed = report.seed;
    none_failed(report.failed, &report.failures, Some(seed))?;
    match report.broken().next() {
        None => Ok(()),
        Some(law) => Err(Failure::other(format!(
            "{} counts are not what they have to be (seed {seed}), the first one: {} of {} at {}: {}, expected {}",
            report.broken().count(),
            law.what,
            law.variant,
            law.at,
            law.measured,
            law.expected
        ))),
    }
}
