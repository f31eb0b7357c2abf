//! Runs of an experiment, in virtual time or with processes, and what they come to together.

use super::Row;
use super::experiments::{Experiment, ReconfigurationWay};
use std::time::Duration;

/// Share of the highest throughput that paced readers use.
const LOAD: f64 = 0.8;

/// One run that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRun<'a> {
    pub experiment: &'a Experiment,
    pub way: &'a ReconfigurationWay,
    /// Clients that change the configuration at the same time.
    pub reconfigurers: usize,
    pub seed: u64,
    /// Interval between the begins of two reads of a reader; `None`: no pause.
    pub pause: Option<Duration>,
}

/// A read. Times are since the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The number of the reader.
    pub reader: usize,
    pub begun: Duration,
    pub took: Duration,
    /// Requests that it sent.
    pub requests: usize,
    /// Configurations that it asked.
    pub configurations: usize,
}

/// A change of the configuration. Times are since the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct MadeChange {
    pub begun: Duration,
    pub took: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub reads: Vec<Read>,
    pub changes: Vec<MadeChange>,
    /// Configurations that were made.
    pub configurations: usize,
    /// Begin and end of the interval for which rates are computed.
    pub counted: (Duration, Duration),
    /// Hash of all events, where they are a function of the seed.
    pub hash: u64,
}

impl Read {
    pub(super) fn ended(&self) -> Duration {
        self.begun + self.took
    }
}

impl MadeChange {
    pub(super) fn ended(&self) -> Duration {
        self.begun + self.took
    }
}

/// Between two reads of a reader, so that all use their share of the throughput that there is without pauses.
pub(super) fn pause(experiment: &Experiment, alone: &Run) -> Duration {
    let throughput = per_s(alone, alone.reads.iter().map(Read::ended));
    assert!(throughput > 0.0, "readers read");
    Duration::from_secs_f64(experiment.readers as f64 / (LOAD * throughput))
}

/// A quiet read asks exactly as many members as it has to.
pub(super) fn check_requests(experiment: &Experiment, runs: &[Run]) -> Result<(), String> {
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

/// True if the read met one configuration only.
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

/// The number of these moments per second of the counted interval.
fn per_s(run: &Run, moments: impl Iterator<Item = Duration>) -> f64 {
    let (begun, end) = run.counted;
    let counted = moments.filter(|moment| (begun..=end).contains(moment));
    counted.count() as f64 / end.saturating_sub(begun).as_secs_f64()
}

pub(super) fn row(way: &ReconfigurationWay, reconfigurers: usize, runs: &[Run]) -> Row {
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
                .map_or(0.0, |(first, last)| ms(last.saturating_sub(first))),
        );
    }
    longest.sort_unstable_by(f64::total_cmp);
    let changes = |run: &Run| -> Vec<f64> { run.changes.iter().map(|it| ms(it.took)).collect() };
    let all_changes: Vec<f64> = runs.iter().flat_map(changes).collect();
    let longest_change = |run: &Run| changes(run).into_iter().fold(0.0, f64::max);
    let reads_per_s = |run: &Run| per_s(run, run.reads.iter().map(Read::ended));
    let changes_per_s = |run: &Run| per_s(run, run.changes.iter().map(MadeChange::ended));
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
