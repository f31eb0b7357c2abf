//! `areo sim`: runs a simulated cluster with faults, by seed.

mod explore;

use crate::args::{Sim, SimOptions};
use crate::exit::{Failure, Outcome};
use crate::progress;
use crate::session::Session;
use areo_sim::{Options, Outcome as Ended, Report};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What `--json` prints of a run.
#[derive(Serialize)]
struct Summary {
    seeds: u64,
    operations: u64,
    events: u64,
    seconds: f64,
    faults: std::collections::BTreeMap<&'static str, u64>,
    violations: Vec<Violated>,
}

#[derive(Serialize)]
struct Violated {
    seed: u64,
    violation: String,
    history: PathBuf,
}

pub(super) fn run(session: &Session, command: Sim) -> Outcome {
    match command {
        Sim::Run {
            seeds,
            first_seed,
            threads,
            options,
        } => {
            let threads = threads.unwrap_or_else(processors);
            many(session, (first_seed, seeds), threads, &options)
        }
        Sim::Replay { seed, options } => replay(session, seed, &options),
        Sim::Explore(args) => explore::run(session, &args),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn options_of(options: &SimOptions) -> Options {
    Options {
        operations: options.ops,
        faults: !options.no_faults,
        ..Options::default()
    }
}

fn many(
    session: &Session,
    (first_seed, seeds): (u64, u64),
    threads: usize,
    options: &SimOptions,
) -> Outcome {
    let out = session.out;
    let run = Options {
        first_seed,
        seeds,
        threads,
        ..options_of(options)
    };
    let bar = progress::count(out, "simulating", seeds);
    let began = Instant::now();
    let report = areo_sim::run(&run, |_| bar.inc(1));
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    let mut violations = Vec::new();
    for ended in &report.violations {
        violations.push(Violated {
            seed: ended.seed,
            violation: ended.violation.clone().unwrap_or_default(),
            history: write_history(&options.history, ended)?,
        });
    }
    let broken = violations.len();
    if out.json {
        out.object(&summary(&report, seconds, violations))?;
    } else {
        out.bytes(text(&report, seconds, &violations).as_bytes())?;
    }
    match broken {
        0 => Ok(()),
        _ => Err(Failure::other(format!(
            "{broken} of {seeds} seeds broke a rule: `areo sim replay SEED` shows what happened"
        ))),
    }
}

fn summary(report: &Report, seconds: f64, violations: Vec<Violated>) -> Summary {
    let faults = areo_sim::fault::Fault::ALL.iter();
    Summary {
        seeds: report.seeds,
        operations: report.operations,
        events: report.events,
        seconds,
        faults: faults
            .map(|fault| (fault.name(), report.fired.count(*fault)))
            .collect(),
        violations,
    }
}

fn text(report: &Report, seconds: f64, violations: &[Violated]) -> String {
    use std::fmt::Write;
    let Report {
        seeds,
        operations,
        events,
        fired,
        ..
    } = report;
    let mut text = format!(
        "{seeds} seeds, {operations} operations, {events} events in {seconds:.1} s\nfaults\n{fired}"
    );
    for Violated {
        seed,
        violation,
        history,
    } in violations
    {
        let history = history.display();
        writeln!(text, "seed {seed}: {violation}\n  history: {history}").expect("memory takes it");
    }
    text
}

fn replay(session: &Session, seed: u64, options: &SimOptions) -> Outcome {
    let ended = areo_sim::replay(seed, &options_of(options));
    let history = write_history(&options.history, &ended)?;
    let (out, hash) = (session.out, ended.hash);
    for line in &ended.schedule {
        out.line(line)?;
    }
    let history = history.display();
    out.note(&format!(
        "history: {history}, hash of all events: {hash:016x}"
    ));
    match ended.violation {
        None => Ok(()),
        Some(violation) => Err(Failure::other(format!(
            "seed {seed} broke a rule: {violation}"
        ))),
    }
}

fn write_history(directory: &Path, ended: &Ended) -> Result<PathBuf, Failure> {
    let path = directory.join(format!("sim-{}.jsonl", ended.seed));
    std::fs::write(&path, &ended.history)
        .map_err(|error| Failure::file("cannot write the history", &path, &error))?;
    Ok(path)
}
