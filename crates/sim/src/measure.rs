//! Experiments in virtual time. [`register`]: readers and writers of one object in one configuration, as the study of self-stabilizing
//! coded storage has them. Beside it the experiments of "The Case for Reconfiguration without Consensus" (Jehl and Meling) in virtual time: the clients, servers and
//! codec of production in a world without faults, where it is given how far servers are and how long they work on a message.
//! Everything is a function of the seed, also the figures.
//!
//! It shows what two processors cannot: eight servers that are each busy for most of the time. What a client computes takes no time, and servers
//! have no disks and do not repair themselves. Invariants are checked as in every run of the simulator, and so are the counts that do
//! not depend on time.

#[cfg(test)]
mod contention;
mod experiments;
pub mod register;
mod scene;
mod stage;

pub use experiments::{EXPERIMENTS, Experiment, ReconfigurationWay};

use crate::random::mix;
use areo_core::instant::Instant;
use experiments::{WAYS, Work};
use serde::Serialize;
use stage::{Read, Run};
use std::time::Duration;

/// How much of the throughput paced readers use.
const LOAD: f64 = 0.8;

/// How large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// One or two runs.
    Quick,
    /// A quarter of the runs, and changes all the time for a second (LAN) or a minute (WAN).
    Default,
    /// As published.
    Full,
}

/// What a way to reconfigure came to with so many reconfigurers. Times are milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The way.
    pub way: &'static str,
    /// How many changed the configuration at the same time.
    pub reconfigurers: usize,
    /// Reads in a second.
    pub reads_per_s: f64,
    /// Mean of reads that met one configuration.
    pub read_ms: f64,
    /// The longest read of a client, mean over clients and runs.
    pub read_max_ms: f64,
    /// The same, the 95th percentile.
    pub read_max_p95_ms: f64,
    /// Reads that met several configurations: what they took longer than others, summed for each client and run.
    pub overhead_ms: f64,
    /// From the begin of the first of these reads to the end of the last one.
    pub noticed_ms: f64,
    /// A change, mean.
    pub change_ms: f64,
    /// The longest change of a run, mean over the runs.
    pub change_max_ms: f64,
    /// Changes in a second, where they are made all the time.
    pub changes_per_s: f64,
    /// Configurations that were made in a run, mean.
    pub configurations: f64,
}

/// What came of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Runs of each row.
    pub runs: usize,
    /// The rows.
    pub rows: Vec<Row>,
    /// Of everything that happened: equal for equal seeds.
    pub hash: u64,
}

impl Experiment {
    /// The one of this name.
    pub fn find(name: &str) -> Option<&'static Experiment> {
        let is_it = |of: &&Experiment| of.name.eq_ignore_ascii_case(name);
        EXPERIMENTS.iter().find(is_it)
    }

    /// How many rows its report has.
    pub fn rows(&self) -> usize {
        WAYS.len() * self.reconfigurers.len()
    }

    /// The same at a scale.
    fn at(&self, scale: Scale) -> Experiment {
        let (runs, longest) = match scale {
            Scale::Full => (self.runs, Duration::MAX),
            Scale::Default => (self.runs.div_ceil(4), self.place.while_of_changes()),
            Scale::Quick => (2, self.place.while_of_changes() / 10),
        };
        Experiment {
            runs,
            work: match self.work {
                Work::Batch => Work::Batch,
                Work::Constant(time) => Work::Constant(time.min(longest)),
            },
            ..*self
        }
    }
}

/// Measures every way. `progress` hears of each row before it is measured.
///
/// # Errors
/// The rule that was broken, or the count that is not what it has to be.
pub fn run(
    experiment: &Experiment,
    (scale, seed): (Scale, u64),
    mut progress: impl FnMut(&str, usize),
) -> Result<Report, String> {
    let experiment = &experiment.at(scale);
    let mut report = Report {
        runs: experiment.runs,
        rows: Vec::new(),
        hash: seed,
    };
    for way in WAYS {
        let pause = match experiment.is_paced {
            true => Some(pause(experiment, way, seed)?),
            false => None,
        };
        for &reconfigurers in experiment.reconfigurers {
            progress(way.name, reconfigurers);
            let mut runs = Vec::new();
            for number in 0..experiment.runs {
                let seed = mix(seed ^ mix(number as u64));
                let run = stage::run(*experiment, way, reconfigurers, (seed, pause));
                let run = run.map_err(|broken| {
                    format!(
                        "{} {}, {reconfigurers} reconfigurers: {broken}",
                        experiment.name, way.name
                    )
                })?;
                report.hash = mix(report.hash ^ run.hash);
                runs.push(run);
            }
            check_requests(experiment, &runs)?;
            report.rows.push(row(way, reconfigurers, &runs));
        }
    }
    Ok(report)
}

/// Between two reads of a reader, so that all use their share of the throughput that there is without pauses.
fn pause(experiment: &Experiment, way: &ReconfigurationWay, seed: u64) -> Result<Duration, String> {
    let alone = stage::run(*experiment, way, 0, (mix(seed), None))?;
    let throughput = per_s(&alone, alone.reads.iter().map(Read::ended));
    assert!(throughput > 0.0, "readers read");
    Ok(Duration::from_secs_f64(
        experiment.readers as f64 / (LOAD * throughput),
    ))
}

/// A quiet read asks exactly as many members as it has to.
fn check_requests(experiment: &Experiment, runs: &[Run]) -> Result<(), String> {
    let (dap, _) = experiment.reads.domain();
    let (n, quorum) = (experiment.servers, dap.quorums(experiment.servers).quorum());
    let expected = experiment.reads.requests(n, quorum);
    let reads = runs.iter().flat_map(|run| &run.reads);
    let mut quiet: Vec<usize> = reads
        .filter(|read| is_quiet(**read))
        .map(|read| read.requests)
        .collect();
    quiet.sort_unstable();
    assert!(!quiet.is_empty(), "readers are alone at first");
    let (least, median) = (quiet[0], quiet[quiet.len() / 2]);
    match (least, median) == (expected, expected) {
        true => Ok(()),
        false => Err(format!(
            "{}: a quiet read sends {expected} requests, not {least} or {median}",
            experiment.name
        )),
    }
}

/// Whether it met no other configuration than the first one that it asked.
fn is_quiet(read: Read) -> bool {
    read.configurations == 1
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mean(of: &[f64]) -> f64 {
    match of {
        [] => 0.0,
        of => of.iter().sum::<f64>() / of.len() as f64,
    }
}

/// How many of these moments there are in a second of what is counted.
fn per_s(run: &Run, moments: impl Iterator<Item = Instant>) -> f64 {
    let (begun, end) = run.counted;
    let counted = moments.filter(|moment| (begun..=end).contains(moment));
    counted.count() as f64 / end.since(begun).as_secs_f64()
}

fn row(way: &ReconfigurationWay, reconfigurers: usize, runs: &[Run]) -> Row {
    let (mut longest, mut overhead) = (Vec::new(), Vec::new());
    let (mut noticed, mut quiet) = (Vec::new(), Vec::new());
    for run in runs {
        let usual: Vec<f64> = run
            .reads
            .iter()
            .filter(|read| is_quiet(**read))
            .map(|read| ms(read.took))
            .collect();
        let usual_mean = mean(&usual);
        quiet.push(usual_mean);
        let readers = run.reads.iter().map(|read| read.reader).max();
        for reader in 0..=readers.expect("there are reads") {
            let its = || run.reads.iter().filter(move |read| read.reader == reader);
            longest.push(its().map(|read| ms(read.took)).fold(0.0, f64::max));
            let more = its().filter(|read| !is_quiet(**read));
            overhead.push(more.map(|read| (ms(read.took) - usual_mean).max(0.0)).sum());
        }
        let labelled = || run.reads.iter().filter(|read| !is_quiet(**read));
        let first = labelled().map(|read| read.begun).min();
        let last = labelled().map(Read::ended).max();
        noticed.push(
            first
                .zip(last)
                .map_or(0.0, |(first, last)| ms(last.since(first))),
        );
    }
    longest.sort_unstable_by(f64::total_cmp);
    let changes = |run: &Run| -> Vec<f64> { run.changes.iter().map(|it| ms(it.took)).collect() };
    let all_changes: Vec<f64> = runs.iter().flat_map(changes).collect();
    let longest_change = |run: &Run| changes(run).into_iter().fold(0.0, f64::max);
    let reads_per_s = |run: &Run| per_s(run, run.reads.iter().map(Read::ended));
    let changes_per_s = |run: &Run| per_s(run, run.changes.iter().map(|change| change.ended));
    let configurations = runs.iter().map(|run| run.configurations as f64);
    Row {
        way: way.name,
        reconfigurers,
        reads_per_s: mean(&runs.iter().map(reads_per_s).collect::<Vec<_>>()),
        read_ms: mean(&quiet),
        read_max_ms: mean(&longest),
        read_max_p95_ms: longest[(longest.len() * 95).div_ceil(100) - 1],
        overhead_ms: mean(&overhead),
        noticed_ms: mean(&noticed),
        change_ms: mean(&all_changes),
        change_max_ms: mean(&runs.iter().map(longest_change).collect::<Vec<_>>()),
        changes_per_s: mean(&runs.iter().map(changes_per_s).collect::<Vec<_>>()),
        configurations: mean(&configurations.collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, seed: u64) -> Report {
        let experiment = Experiment::find(name).unwrap();
        // The smallest that has everything in it.
        let small = Experiment {
            reconfigurers: &[2],
            ..*experiment
        };
        run(&small, (Scale::Quick, seed), |_, _| {}).unwrap()
    }

    #[test]
    fn the_same_seed_has_the_same_figures() {
        let (once, again, other) = (measured("J1", 1), measured("J1", 1), measured("J1", 2));
        assert_eq!(once, again);
        assert_ne!(once.hash, other.hash);
        assert_ne!(once.rows, other.rows);
    }

    /// Proposers that are far from each other wait for as long as their exchanges take, so that one of them gets through.
    #[test]
    fn changes_far_apart_do_not_keep_each_other_off() {
        let far = Experiment {
            reconfigurers: &[3],
            ..*Experiment::find("J6").unwrap()
        };
        for seed in 1..=3 {
            let report = run(&far, (Scale::Quick, seed), |_, _| {}).unwrap();
            let most = report.rows.iter().map(|row| row.change_max_ms);
            let most = most.fold(0.0, f64::max);
            assert!(most < 15_000.0, "a change took {most} ms, seed {seed}");
        }
    }

    #[test]
    fn counts_are_what_they_have_to_be_in_every_experiment() {
        for experiment in EXPERIMENTS {
            let report = measured(experiment.name, 3);
            assert_eq!(report.rows.len(), WAYS.len());
            for row in report.rows {
                assert!(row.reads_per_s > 0.0 && row.change_ms > 0.0, "{row:?}");
                assert!(row.configurations >= 1.0, "{row:?}");
            }
        }
    }
}
