//! `areo-lab sim`: runs a simulated cluster with faults, by seed.

use super::Lab;
use crate::args::{SchedulerWord, Sim, SimOptions};
use areo::exit::{Failure, Outcome};
use areo::progress;
use areo_sim::{Options, Outcome as Ended, Report, Scheduler, Shrunk};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The commit that this was built from: a seed means something for one version of the source only.
const COMMIT: &str = areo::args::REVISION;
/// Lines of a schedule that are shown.
const LINES: usize = 400;

/// A run in the output of `--json`.
#[derive(Serialize)]
struct Summary {
    commit: &'static str,
    seeds: u64,
    operations: u64,
    reconfigurations: u64,
    /// Elements that servers took from earlier configurations.
    adopted: u64,
    /// Objects that servers brought themselves.
    repaired: u64,
    /// Objects whose elements servers compared, and found to be of one value.
    cross_checked: u64,
    /// Tombstones of blocks that servers dropped.
    tombstones_dropped: u64,
    events: u64,
    seconds: f64,
    faults: std::collections::BTreeMap<&'static str, u64>,
    violations: Vec<ViolationReport>,
}

#[derive(Serialize)]
struct ViolationReport {
    seed: u64,
    violation: String,
    history: PathBuf,
    /// Path of the schedule that remains without everything that the violation does not need.
    shrunk: PathBuf,
}

pub(super) fn run(lab: &Lab<'_>, command: Sim) -> Outcome {
    match command {
        Sim::Run {
            seeds,
            first_seed,
            threads,
            verify_replay,
            options,
        } => {
            let run = Options {
                first_seed,
                seeds,
                threads: threads.unwrap_or_else(processors),
                twice: verify_replay,
                ..options_of(&options)?
            };
            many(lab, &run, &options.history)
        }
        Sim::Replay {
            seed,
            shrink,
            options,
        } => replay(lab, seed, shrink, &options),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn options_of(options: &SimOptions) -> Result<Options, Failure> {
    let scheduler = match (options.scheduler, options.depth) {
        (SchedulerWord::Pct, depth) => Scheduler::Pct { depth },
        (_, Some(_)) => return Err(Failure::usage("--depth goes with `--scheduler pct`")),
        (SchedulerWord::Mixed, None) => Scheduler::Mixed,
        (SchedulerWord::Random, None) => Scheduler::Random,
    };
    Ok(Options {
        operations: options.ops,
        faults: !options.no_faults,
        scheduler,
        ..Options::default()
    })
}

fn many(lab: &Lab<'_>, run: &Options, directory: &Path) -> Outcome {
    let (out, seeds) = (lab.out, run.seeds);
    let bar = progress::count(out, "simulating", seeds);
    let began = Instant::now();
    let report = areo_sim::run(run, |_| bar.inc(1));
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    let mut violations = Vec::new();
    for ended in &report.violations {
        violations.push(ViolationReport {
            seed: ended.seed,
            violation: ended.violation.clone().unwrap_or_default(),
            history: write_history(directory, ended)?,
            shrunk: write_shrunk(lab, directory, run, ended)?,
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
            "{broken} of {seeds} seeds broke a rule: `areo-lab sim replay SEED` shows what happened"
        ))),
    }
}

fn summary(report: &Report, seconds: f64, violations: Vec<ViolationReport>) -> Summary {
    let faults = areo_sim::fault::Fault::ALL.iter();
    Summary {
        commit: COMMIT,
        seeds: report.seeds,
        operations: report.operations,
        reconfigurations: report.reconfigurations,
        adopted: report.adopted,
        repaired: report.repaired,
        cross_checked: report.cross_checked,
        tombstones_dropped: report.tombstones_dropped,
        events: report.events,
        seconds,
        faults: faults
            .map(|fault| (fault.name(), report.fired.count(*fault)))
            .collect(),
        violations,
    }
}

fn text(report: &Report, seconds: f64, violations: &[ViolationReport]) -> String {
    let Report {
        seeds,
        operations,
        reconfigurations,
        adopted,
        repaired,
        cross_checked,
        tombstones_dropped,
        events,
        fired,
        ..
    } = report;
    let mut text = format!(
        "{seeds} seeds, {operations} operations, {reconfigurations} reconfigurations, {adopted} elements adopted, {repaired} objects repaired, {cross_checked} cross-checked, {tombstones_dropped} tombstones dropped, {events} events in {seconds:.1} s\nfaults\n{fired}"
    );
    for ViolationReport {
        seed,
        violation,
        history,
        shrunk,
    } in violations
    {
        let (history, shrunk) = (history.display(), shrunk.display());
        let line = writeln!(
            text,
            "seed {seed} at commit {COMMIT}: {violation}\n  history: {history}\n  what it needs: {shrunk}"
        );
        line.expect("memory takes it");
    }
    text
}

fn replay(lab: &Lab<'_>, seed: u64, shrink: bool, options: &SimOptions) -> Outcome {
    let run = options_of(options)?;
    let ended = areo_sim::replay(seed, &run);
    let history = write_history(&options.history, &ended)?;
    let (out, hash) = (lab.out, ended.hash);
    let shrunk = match shrink {
        true => shrunk_text(lab, &run, &ended),
        false => None,
    };
    if let Some(text) = &shrunk {
        out.bytes(text.as_bytes())?;
    } else {
        for line in last(&ended.schedule) {
            out.line(line)?;
        }
    }
    let history = history.display();
    out.note(&format!(
        "commit: {COMMIT}, history: {history}, hash of all events: {hash:016x}"
    ));
    match ended.violation {
        None => Ok(()),
        Some(violation) => Err(Failure::other(format!(
            "seed {seed} broke a rule: {violation}"
        ))),
    }
}

fn last(schedule: &[String]) -> &[String] {
    &schedule[schedule.len().saturating_sub(LINES)..]
}

/// The smallest part of a run that breaks the same rule, as people read it; `None` if no rule was broken.
fn shrunk_text(lab: &Lab<'_>, run: &Options, ended: &Ended) -> Option<String> {
    let bar = progress::count(lab.out, "shrinking", areo_sim::SHRINK_RUNS);
    let shrunk = areo_sim::shrink(run, ended, || bar.inc(1));
    bar.finish_and_clear();
    shrunk.map(|shrunk| describe(run, ended, &shrunk))
}

fn describe(run: &Options, ended: &Ended, shrunk: &Shrunk) -> String {
    let violation = shrunk.outcome.violation.as_deref().unwrap_or_default();
    let (seed, operations, given) = (ended.seed, shrunk.operations, run.operations);
    let mut text = format!(
        "seed {seed} at commit {COMMIT}: {violation}\n{operations} of {given} operations and these strikes of faults do it:"
    );
    let mut write = |line: &str| writeln!(text, "{line}").expect("memory takes it");
    match shrunk.outcome.strikes.as_slice() {
        [] => write(" none"),
        strikes => {
            write("");
            for (fault, number) in strikes {
                write(&format!("  {} number {number}", fault.name()));
            }
        }
    }
    let near = areo_sim::concerning(violation, &shrunk.outcome.schedule);
    write("the last events that concern it:");
    for line in last(&near) {
        write(line);
    }
    text
}

fn write_shrunk(
    lab: &Lab<'_>,
    directory: &Path,
    run: &Options,
    ended: &Ended,
) -> Result<PathBuf, Failure> {
    let path = directory.join(format!("sim-{}.txt", ended.seed));
    let text = shrunk_text(lab, run, ended).unwrap_or_default();
    std::fs::write(&path, text)
        .map_err(|error| Failure::file("cannot write what is left of the run", &path, &error))?;
    Ok(path)
}

fn write_history(directory: &Path, ended: &Ended) -> Result<PathBuf, Failure> {
    let path = directory.join(format!("sim-{}.jsonl", ended.seed));
    std::fs::write(&path, &ended.history)
        .map_err(|error| Failure::file("cannot write the history", &path, &error))?;
    Ok(path)
}
