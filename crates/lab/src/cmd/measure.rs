//! `areo-lab measure`: experiments in virtual time.

use super::{Lab, NAME, paper};
use crate::args::Measure;
use areo::exit::{Failure, Outcome};
use areo::output::columns;
use areo::progress;
use areo_bench::paper::{self as papers, VirtualOptions};
use areo_lab::shared::{command, create, write};
use areo_sim::measure::{self, EXPERIMENTS, Experiment, Report, Row};
use areo_telemetry::view;
use serde::Serialize;

/// An experiment of the list in the output of `--json`.
#[derive(Serialize)]
struct Listed {
    experiment: &'static str,
    about: &'static str,
}

/// A row in the output of `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    experiment: &'static str,
    seed: u64,
    runs: usize,
    #[serde(flatten)]
    row: &'a Row,
}

pub(super) fn run(lab: &Lab<'_>, args: &Measure) -> Outcome {
    let Some(name) = &args.name else {
        return match args.html {
            Some(_) => Err(Failure::usage("--html is for an experiment: name one")),
            None => list(lab),
        };
    };
    if let Some(found) = registers().find(|of| of.name.eq_ignore_ascii_case(name)) {
        return of_register(lab, found, args);
    }
    let Some(experiment) = Experiment::find(name) else {
        let names = EXPERIMENTS.iter().map(|of| of.name);
        let names: Vec<&str> = names.chain(registers().map(|of| of.name)).collect();
        return Err(Failure::usage(format!(
            "there is no experiment '{name}' in virtual time: there are {}",
            names.join(", ")
        )));
    };
    if args.html.is_some() {
        return Err(Failure::usage(format!(
            "experiment {} makes no --html: --json prints all its figures",
            experiment.name
        )));
    }
    let bar = progress::count(lab.out, "measuring", experiment.rows() as u64);
    let of_row = |way: &str, reconfigurers| {
        bar.inc(1);
        bar.set_message(format!("{way} {reconfigurers}"));
    };
    let measured = measure::run(experiment, (args.scale, args.seed), of_row);
    bar.finish_and_clear();
    print(
        lab,
        experiment,
        args.seed,
        &measured.map_err(Failure::other)?,
    )
}

fn list(lab: &Lab<'_>) -> Outcome {
    let out = lab.out;
    if out.json {
        return all().try_for_each(|of| out.object(&of));
    }
    let rows = all().map(|of| vec![of.experiment.to_owned(), of.about.to_owned()]);
    out.table(&columns("EXPERIMENT | ABOUT"), &rows.collect::<Vec<_>>())
}

fn all() -> impl Iterator<Item = Listed> {
    let listed = |(experiment, about)| Listed { experiment, about };
    let reconfigurations = EXPERIMENTS.iter().map(|of| (of.name, of.about));
    let registers = registers().map(|of| (of.name, of.about()));
    reconfigurations.chain(registers).map(listed)
}

/// Experiments of one object in one configuration.
fn registers() -> impl Iterator<Item = &'static papers::Experiment> {
    papers::Experiment::all().filter(|of| of.has_virtual_time())
}

fn of_register(lab: &Lab<'_>, experiment: &'static papers::Experiment, args: &Measure) -> Outcome {
    let html = args.html.clone().map(create).transpose()?;
    let options = VirtualOptions {
        experiment,
        scale: args.scale,
        seed: args.seed,
        command: command(NAME),
    };
    let bar = progress::count(lab.out, "measuring", 1);
    let observe = |progress: papers::Progress| {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.point);
    };
    let report = papers::run_virtually(options, observe);
    bar.finish_and_clear();
    let report = report.map_err(Failure::other)?;
    match lab.out.json {
        true => lab.out.object(&report)?,
        false => paper::print(lab.out, &report)?,
    }
    write([(html, &view::page(&report))])?;
    paper::judge(&report)
}

pub(super) fn print(lab: &Lab<'_>, experiment: &Experiment, seed: u64, report: &Report) -> Outcome {
    let out = lab.out;
    if out.json {
        let shown = |row| Shown {
            experiment: experiment.name,
            seed,
            runs: report.runs,
            row,
        };
        return report
            .rows
            .iter()
            .try_for_each(|row| out.object(&shown(row)));
    }
    let head = columns(
        "way | > reconfigurers | > reads/s | > read, ms | > longest of a client | > its p95 | > overhead | > noticed for | \
         > change, ms | > longest | > changes/s | > configurations",
    );
    let row = |row: &Row| {
        let two = |value: f64| format!("{value:.2}");
        let of_change = [
            row.change_ms,
            row.change_max_ms,
            row.changes_per_s,
            row.configurations,
        ];
        let of_read = [
            row.read_ms,
            row.read_max_ms,
            row.read_max_p95_ms,
            row.overhead_ms,
            row.noticed_ms,
        ];
        let first = [
            row.way.to_owned(),
            row.reconfigurers.to_string(),
            format!("{:.0}", row.reads_per_s),
        ];
        let figures = of_read.into_iter().chain(of_change).map(two);
        first.into_iter().chain(figures).collect()
    };
    let rows: Vec<Vec<String>> = report.rows.iter().map(row).collect();
    out.table(&head, &rows)?;
    out.note(&format!(
        "{}: seed {seed}, {} runs of each row, times in ms",
        experiment.name, report.runs
    ));
    Ok(())
}
