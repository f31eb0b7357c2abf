//! The same experiments in virtual time: what runs a point is given, and the report is the same.

use super::actor::Cost;
use super::compare::{self, MeasuredPoint};
use super::experiment::{Experiment, Procedure};
use super::law::{self, counted};
use super::report::{Law, Report};
use super::scale::{self, Scale};
use super::stage::means;
use super::{Progress, points_of, shown};
use crate::system::{self, Machine};
use areo_client::{Dap, DapKind};
use std::time::{Duration, Instant};

/// The round trip in milliseconds, and how far from it a round may be: servers and lines have work as well.
const ROUND_TRIP_MS: u64 = 50;
const NEARLY: u64 = ROUND_TRIP_MS / 5;

/// What is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtualPoint {
    /// What readers and writers do.
    pub procedure: Procedure,
    /// How the object is kept.
    pub dap: Dap,
    /// Members.
    pub servers: usize,
    /// As the domain has it.
    pub delta: u16,
    /// Who read.
    pub readers: usize,
    /// Who write.
    pub writers: usize,
    /// Of the object.
    pub bytes: usize,
    /// Of each of them.
    pub operations: usize,
    /// Between two of these: drawn from this range.
    pub wait_ms: (u64, u64),
}

/// What came of a run of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VirtualRun {
    /// Reads beside others.
    pub reads: Vec<Cost>,
    /// Writes beside others.
    pub writes: Vec<Cost>,
    /// A write, and a read after it, when no other client is at work.
    pub quiet: Option<(Cost, Cost)>,
    /// Other quantities.
    pub others: Vec<(&'static str, f64)>,
    /// The time that something took, and how long it may take.
    pub bounded: Option<(Duration, Duration)>,
}

/// Which experiment, how large, from which seed, and by which command.
pub struct VirtualOptions {
    /// Which.
    pub experiment: &'static Experiment,
    /// How large.
    pub scale: Scale,
    /// What everything is drawn from.
    pub seed: u64,
    /// The command, for the report.
    pub command: String,
}

/// Runs every point. `run` gets it with the number of the run.
///
/// # Errors
/// Those of `run`: a rule was broken.
pub fn run_virtually(
    options: VirtualOptions,
    run: impl Fn(&VirtualPoint, u64) -> Result<VirtualRun, String>,
    observe: impl Fn(Progress),
) -> Result<Report, String> {
    let begun = Instant::now();
    let VirtualOptions {
        experiment, scale, ..
    } = options;
    assert!(experiment.has_virtual_time(), "it was looked at before");
    let parameters = scale::virtual_parameters(experiment, scale);
    let values = match scale {
        Scale::Quick => Scale::Quick,
        Scale::Default | Scale::Full => Scale::Full,
    };
    let mut points = points_of(
        experiment,
        scale::steps_with(experiment, values, parameters.clone()),
    );
    let (of, mut laws, mut writes) = (points.len(), Vec::new(), Vec::new());
    for (done, point) in points.iter_mut().enumerate() {
        let name = format!("{} {}", point.name(), point.at());
        observe(Progress {
            done,
            of,
            point: name.clone(),
        });
        let these = runs(point, parameters.runs, &run);
        let these = these.map_err(|broken| format!("{} {name}: {broken}", experiment.name))?;
        for run in &these {
            let means = means(&run.reads, &run.writes).into_iter();
            for (quantity, value) in means.chain(run.others.iter().copied()) {
                point.runs.entry(quantity).or_default().push(value);
            }
        }
        laws.extend(laws_of(point, &these));
        let quiet = these[0].quiet;
        writes.extend(quiet.map(|(write, _)| (point.clone(), write.ms)));
    }
    laws.extend(a_round_more(&writes));
    Ok(Report {
        report: "paper".into(),
        made_at_ms: system::now_ms(),
        command: options.command,
        machine: Machine::this(),
        experiment: experiment.name.into(),
        scale: scale.name().into(),
        changes: changes(experiment, &parameters),
        runs: parameters.runs,
        seed: options.seed,
        not_run: Vec::new(),
        points: points.iter().map(shown).collect(),
        comparisons: compare::compare(&points),
        laws,
        failed: 0,
        failures: Vec::new(),
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

fn runs(
    of: &MeasuredPoint,
    runs: usize,
    run: impl Fn(&VirtualPoint, u64) -> Result<VirtualRun, String>,
) -> Result<Vec<VirtualRun>, String> {
    let parameters = &of.step.1;
    let k = parameters.servers - parameters.parity;
    let point = VirtualPoint {
        procedure: of.experiment.procedure,
        dap: of.variant.dap.with(u8::try_from(k).expect("few servers")),
        servers: parameters.servers,
        delta: u16::try_from(parameters.writers).expect("few writers"),
        readers: parameters.readers,
        writers: parameters.writers,
        bytes: of.size,
        operations: parameters.operations,
        wait_ms: parameters.wait_ms,
    };
    (0..runs as u64).map(|number| run(&point, number)).collect()
}

fn laws_of(point: &MeasuredPoint, runs: &[VirtualRun]) -> Vec<Law> {
    let (name, at) = (point.name(), point.at());
    let (_, parameters) = &point.step;
    let shape = (
        parameters.servers,
        parameters.servers - parameters.parity,
        point.size,
    );
    // The same in every run, so that the first one that differs is shown.
    let of_run = |run: &VirtualRun| {
        let quiet = run.quiet;
        quiet.map(|costs| law::of_costs(point.variant, costs, shape, (&at, false)))
    };
    let quiet = runs.iter().filter_map(of_run);
    let mut laws: Vec<Law> = quiet
        .reduce(|first, next| match next.iter().all(|law| law.holds) {
            true => first,
            false => next,
        })
        .unwrap_or_default();
    for law in &mut laws {
        law.variant.clone_from(&name);
    }
    if point.variant.finalizes() {
        let sent = runs
            .iter()
            .flat_map(|run| run.reads.iter().map(|read| read.sent));
        let sent: Vec<u64> = sent.collect();
        if !sent.is_empty() {
            let what = "bytes sent by a read beside writers: no value";
            laws.push(counted(
                what,
                (&name, &at),
                sent,
                0..=law::OF_A_SERVER * shape.0 as u64,
            ));
        }
    }
    let bounded = runs.iter().filter_map(|run| run.bounded);
    let share = |(took, bound): (Duration, Duration)| {
        let percent = (100 * took.as_micros()).div_ceil(bound.as_micros());
        u64::try_from(percent).unwrap_or(u64::MAX)
    };
    let shares: Vec<u64> = bounded.map(share).collect();
    if !shares.is_empty() {
        let what = "percent of the bound [CASSS-4 stabilization-bound] that it took";
        laws.push(counted(what, (&name, &at), shares, 0..=100));
    }
    laws
}

/// A quiet write of CASSS is a round longer than one of CAS.
fn a_round_more(writes: &[(MeasuredPoint, f64)]) -> Vec<Law> {
    let of = |dap: DapKind| {
        writes
            .iter()
            .filter(move |(point, _)| point.variant.dap == dap)
    };
    let law = |(casss, longer): &(MeasuredPoint, f64)| {
        let place = |point: &MeasuredPoint| (point.at(), point.size);
        let mut same = of(DapKind::Cas).filter(|(cas, _)| place(cas) == place(casss));
        let (_, shorter) = same.next()?;
        let what = "milliseconds of a write, quiet, more than by CAS: a round trip";
        let more = Duration::from_secs_f64((longer - shorter).max(0.0) / 1e3);
        let more = u64::try_from(more.as_millis()).unwrap_or(u64::MAX);
        let expected = ROUND_TRIP_MS - NEARLY..=ROUND_TRIP_MS + NEARLY;
        Some(counted(
            what,
            (&casss.name(), &casss.at()),
            [more],
            expected,
        ))
    };
    of(DapKind::CasSs).filter_map(law).collect()
}

fn changes(experiment: &Experiment, parameters: &scale::Parameters) -> Vec<String> {
    let mut changes = vec![
        "virtual time: 25 ms, and at most 5 % more, from any client or server to any server".into(),
        "a client's line carries 50 Mbit/s; a server works 20 µs on a message and 0.5 ns on a byte; clients compute in no time".into(),
    ];
    if experiment.procedure == Procedure::AtOnce {
        changes.push(format!(
            "{} operations of each client instead of 50, which wait 0 to 1 s between two of them; no disks",
            parameters.operations
        ));
    }
    changes
}
