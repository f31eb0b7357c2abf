//! The papers' experiments in virtual time ([`areo_sim::measure`]), with the same report.

use super::compare;
use super::experiment::{Experiment, Procedure};
use super::law::{self, counted};
use super::parameters::Parameters;
use super::point::MeasuredPoint;
use super::report::{Law, Report};
use super::scale;
use super::stage::{means, ms};
use super::{Progress, Scale, points_of, shown};
use crate::load::{Operation, Sample};
use crate::system::{self, Machine};
use crate::target::Cost;
use areo_client::{Counts, DapKind};
use areo_sim::measure::register::{self, OperationCost, Setting};
use std::time::{Duration, Instant};

/// The round trip in milliseconds, and how far from it a round may be: servers and lines have work as well.
const ROUND_TRIP_MS: u64 = 50;
const NEARLY: u64 = ROUND_TRIP_MS / 5;

/// The result of a run.
#[derive(Default)]
struct VirtualRun {
    /// Reads beside other operations.
    reads: Vec<Sample>,
    /// Writes beside other operations.
    writes: Vec<Sample>,
    /// A write, and a read after it, when no other client is at work.
    quiet: Option<(Sample, Sample)>,
    /// Other quantities, by name.
    others: Vec<(&'static str, f64)>,
    /// The time that something took, and how long it may take.
    bounded: Option<(Duration, Duration)>,
}

/// The experiment, its scale, its seed, and the command.
pub struct VirtualOptions {
    pub experiment: &'static Experiment,
    pub scale: Scale,
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// The command, for the report.
    pub command: String,
}

/// Runs every point.
///
/// # Errors
/// A rule was broken.
pub fn run_virtually(
    options: VirtualOptions,
    observe: impl Fn(Progress),
) -> Result<Report, String> {
    let begun = Instant::now();
    let VirtualOptions {
        experiment,
        scale,
        seed,
        command,
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
        let these = runs(point, parameters.runs, seed);
        let these = these.map_err(|broken| format!("{} {name}: {broken}", experiment.name))?;
        for run in &these {
            let means = means(&run.reads, &run.writes).into_iter();
            for (quantity, value) in means.chain(run.others.iter().copied()) {
                point.runs.entry(quantity).or_default().push(value);
            }
        }
        laws.extend(laws_of(point, &these));
        let quiet = these[0].quiet;
        writes.extend(quiet.map(|(write, _)| (point.clone(), ms(&write))));
    }
    laws.extend(a_round_more(&writes));
    Ok(Report {
        report: "paper".into(),
        made_at_ms: system::now_ms(),
        command,
        machine: Machine::this(),
        experiment: experiment.name.into(),
        scale: scale.name().into(),
        changes: changes(experiment, &parameters),
        runs: parameters.runs,
        seed,
        not_run: Vec::new(),
        points: points.iter().map(shown).collect(),
        comparisons: compare::compare(&points),
        laws,
        failed: 0,
        failures: Vec::new(),
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

fn runs(of: &MeasuredPoint, runs: usize, seed: u64) -> Result<Vec<VirtualRun>, String> {
    let parameters = &of.step.1;
    let k = parameters.servers - parameters.parity;
    let setting = Setting {
        dap: of.variant.dap.with(u8::try_from(k).expect("few servers")),
        servers: parameters.servers,
        delta: u16::try_from(parameters.writers).expect("few writers"),
        readers: parameters.readers,
        writers: parameters.writers,
        bytes: of.size,
        operations: parameters.operations,
        wait_ms: parameters.wait_ms,
    };
    let one = |number| run_of(of.experiment.procedure, &setting, (seed, number));
    (0..runs as u64).map(one).collect()
}

fn run_of(procedure: Procedure, setting: &Setting, seed: (u64, u64)) -> Result<VirtualRun, String> {
    let samples = |of: &[OperationCost], operation| {
        let of = of.iter();
        of.map(|of| sample(of, operation)).collect()
    };
    Ok(match procedure {
        Procedure::Restart => {
            let times = register::restart(setting, seed)?;
            VirtualRun {
                others: vec![
                    ("write_ms", times.write),
                    ("restart_ms", times.until_read),
                    ("restart_writes", times.until_read / times.write),
                    ("rewritten_ms", times.until_write),
                ],
                ..VirtualRun::default()
            }
        }
        Procedure::Stabilization => {
            let time = register::stabilize(setting, seed)?;
            let quantity = match time.was_restarted {
                true => "restarted_ms",
                false => "stabilized_ms",
            };
            VirtualRun {
                others: vec![(quantity, time.took.as_secs_f64() * 1e3)],
                bounded: Some((time.took, time.bound)),
                ..VirtualRun::default()
            }
        }
        _ => {
            let measured = register::run(setting, seed)?;
            let quiet = (
                sample(&measured.quiet_write, Operation::Put),
                sample(&measured.quiet_read, Operation::Get),
            );
            VirtualRun {
                reads: samples(&measured.reads, Operation::Get),
                writes: samples(&measured.writes, Operation::Put),
                quiet: Some(quiet),
                ..VirtualRun::default()
            }
        }
    })
}

fn sample(of: &OperationCost, operation: Operation) -> Sample {
    let counts = Counts {
        rounds: of.rounds,
        configurations: 1,
        sent_bytes: of.sent,
        received_bytes: of.received,
        ..Counts::default()
    };
    Sample {
        client: 0,
        operation,
        begun: Duration::ZERO,
        took: Duration::from_secs_f64(of.ms / 1e3),
        cost: Cost {
            counts,
            ..Cost::default()
        },
    }
}

fn laws_of(point: &MeasuredPoint, runs: &[VirtualRun]) -> Vec<Law> {
    let (name, at) = (point.name(), point.at());
    let (_, parameters) = &point.step;
    let shape = (
        parameters.servers,
        parameters.servers - parameters.parity,
        point.size,
    );
    // Equal in every run, so that the first one that differs is shown.
    let of_run = |run: &VirtualRun| {
        let (write, read) = run.quiet?;
        let costs = (write.cost, read.cost);
        Some(law::of_costs(point.variant, costs, shape, (&at, false)))
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
            .flat_map(|run| run.reads.iter().map(|read| read.cost.counts.sent_bytes));
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

fn changes(experiment: &Experiment, parameters: &Parameters) -> Vec<String> {
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
