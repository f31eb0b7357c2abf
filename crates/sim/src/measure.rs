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
mod runs;
mod scene;
mod stage;

pub use experiments::{EXPERIMENTS, Experiment, Place, Reads, ReconfigurationWay, WAYS, Work};
pub use runs::{MadeChange, PlannedRun, Read, Run};

use crate::random::mix;
use serde::Serialize;
use std::pin::pin;
use std::str::FromStr;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The size of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// One or two runs.
    Quick,
    /// A quarter of the runs, and changes all the time for a second (LAN) or a minute (WAN).
    Default,
    /// The runs and durations of the published study.
    Full,
}

impl Scale {
    pub const ALL: [Scale; 3] = [Scale::Quick, Scale::Default, Scale::Full];

    /// The name in reports and options.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Default => "default",
            Scale::Full => "full",
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == text);
        found.ok_or_else(|| format!("there is no scale '{text}': there are quick, default, full"))
    }
}

/// Results of one way to reconfigure with one number of reconfigurers. Times are milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub way: &'static str,
    /// Clients that change the configuration at the same time.
    pub reconfigurers: usize,
    /// Reads in a second.
    pub reads_per_s: f64,
    /// Mean of reads that met one configuration.
    pub read_ms: f64,
    /// The longest read of a client, mean over clients and runs.
    pub read_max_ms: f64,
    /// The p95 of these reads.
    pub read_max_p95_ms: f64,
    /// Reads that met several configurations: their extra time compared with others, summed for each client and run.
    pub overhead_ms: f64,
    /// Time from the begin of the first of these reads to the end of the last one.
    pub noticed_ms: f64,
    /// Mean duration of a change.
    pub change_ms: f64,
    /// The longest change of a run, mean over the runs.
    pub change_max_ms: f64,
    /// Changes in a second, where they are made all the time.
    pub changes_per_s: f64,
    /// Configurations that were made in a run, mean.
    pub configurations: f64,
}

/// The result of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Runs of each row.
    pub runs: usize,
    pub rows: Vec<Row>,
    /// Hash of all events: equal for equal seeds.
    pub hash: u64,
}

impl Experiment {
    /// The one of this name.
    pub fn find(name: &str) -> Option<&'static Experiment> {
        let is_it = |of: &&Experiment| of.name.eq_ignore_ascii_case(name);
        EXPERIMENTS.iter().find(is_it)
    }

    /// Number of rows in its report.
    pub fn rows(&self) -> usize {
        WAYS.len() * self.reconfigurers.len()
    }

    /// This experiment at a scale.
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

/// Measures every way in virtual time. `progress` hears of each row before it is measured.
///
/// # Errors
/// The rule that was broken, or the count that is not what it has to be.
pub fn run(
    experiment: &Experiment,
    scale: (Scale, u64),
    progress: impl FnMut(&str, usize),
) -> Result<Report, String> {
    let virtually = async |plan: &PlannedRun<'_>| stage::run(plan);
    let measured = pin!(run_by(experiment, scale, progress, virtually));
    match measured.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report,
        Poll::Pending => unreachable!("virtual time waits for nothing"),
    }
}

/// Runs an experiment by `one`, which makes the runs: processes can, too.
///
/// # Errors
/// Those of a run; the count that is not what it has to be.
pub async fn run_by(
    experiment: &Experiment,
    (scale, seed): (Scale, u64),
    mut progress: impl FnMut(&str, usize),
    mut one: impl AsyncFnMut(&PlannedRun<'_>) -> Result<Run, String>,
) -> Result<Report, String> {
    let experiment = &experiment.at(scale);
    let mut report = Report {
        runs: experiment.runs,
        rows: Vec::new(),
        hash: seed,
    };
    for way in WAYS {
        let alone = PlannedRun {
            experiment,
            way,
            reconfigurers: 0,
            seed: mix(seed),
            pause: None,
        };
        let pause = match experiment.is_paced {
            true => Some(runs::pause(experiment, &one(&alone).await?)),
            false => None,
        };
        for &reconfigurers in experiment.reconfigurers {
            progress(way.name, reconfigurers);
            let mut runs = Vec::new();
            for number in 0..experiment.runs {
                let plan = PlannedRun {
                    reconfigurers,
                    seed: mix(seed ^ mix(number as u64)),
                    pause,
                    ..alone
                };
                let run = one(&plan).await.map_err(|error| {
                    format!(
                        "{} {}, {reconfigurers} reconfigurers: {error}",
                        experiment.name, way.name
                    )
                })?;
                report.hash = mix(report.hash ^ run.hash);
                runs.push(run);
            }
            runs::check_requests(experiment, &runs)?;
            report.rows.push(runs::row(way, reconfigurers, &runs));
        }
    }
    Ok(report)
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
