//! The results of a comparison.

use super::{Breakdown, KillReport};
use crate::limits::Limit;
use crate::load::{Measurement, Operation, Times};
use crate::spread::Spread;
use crate::system::{self, Machine};
use crate::target::{About, TargetName};
use serde::Serialize;

/// Everything that was measured of one load on one store.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    pub target: TargetName,
    /// The operation of clients.
    pub operation: Operation,
    /// Bytes of a value.
    pub size: usize,
    /// The number of clients.
    pub clients: usize,
    /// The measurement of each run.
    pub runs: Vec<Measurement>,
}

impl Point {
    /// A figure of each run.
    pub fn spread(&self, of: impl Fn(&Measurement) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(of))
    }

    /// A latency of each run, in microseconds.
    pub fn latency(&self, of: impl Fn(&Times) -> f64) -> Spread {
        let times = |run: &Measurement| match self.operation {
            Operation::Put | Operation::PutIf => run.put,
            Operation::Get => run.get,
            Operation::Increment => run.increment,
            Operation::List | Operation::ListFolder => run.list,
        };
        Spread::of(self.runs.iter().filter_map(times).map(|times| of(&times)))
    }

    /// CPU time of clients and servers together by bytes of a value, in nanoseconds.
    pub fn cpu_ns_per_byte(&self) -> Spread {
        self.spread(|run| (run.client_cpu_us + run.server_cpu_us) * 1e3 / self.size as f64)
    }

    /// Operations that failed in all runs.
    pub fn failed(&self) -> u64 {
        self.runs.iter().map(|run| run.failed).sum()
    }

    fn is_same_load(&self, other: &Point) -> bool {
        (self.operation, self.size, self.clients) == (other.operation, other.size, other.clients)
    }
}

/// The ratio of two stores, run by run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The ratio of throughput: above 1 is more.
    pub throughput: Spread,
    /// The ratio of CPU time of clients and servers together, per operation: below 1 is less.
    pub cpu: Spread,
}

/// The first store against another, under the same load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedTargets {
    pub target: TargetName,
    /// The store that it is compared with.
    pub with: TargetName,
    /// The operation of clients.
    pub operation: Operation,
    /// Bytes of a value.
    pub size: usize,
    /// The number of clients.
    pub clients: usize,
    /// The first one's figures by the other one's, of the same run.
    pub ratio: Ratio,
}

/// A comparison. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// `peers`: which report this is.
    pub report: String,
    /// Time of the run, in milliseconds since 1970.
    pub made_at_ms: u64,
    /// The command line of the comparison.
    pub command: String,
    pub machine: Machine,
    pub targets: Vec<About>,
    pub points: Vec<Point>,
    /// The first store against the others.
    pub ratios: Vec<ComparedTargets>,
    /// The breakdowns of the time of operations, of stores that tell.
    pub breakdowns: Vec<Breakdown>,
    /// A member of each store killed under load, if that was asked for.
    pub killed: Vec<KillReport>,
    /// The limits of the machine.
    pub limits: Vec<Limit>,
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        command: &str,
        targets: Vec<About>,
        points: Vec<Point>,
    ) -> Report {
        Report {
            report: "peers".into(),
            made_at_ms: system::now_ms(),
            command: command.into(),
            machine,
            ratios: compared(&targets, &points),
            targets,
            points,
            breakdowns: Vec::new(),
            killed: Vec::new(),
            limits: Vec::new(),
        }
    }
}

fn compared(targets: &[About], points: &[Point]) -> Vec<ComparedTargets> {
    let Some(first) = targets.first() else {
        return Vec::new();
    };
    let of_first = points.iter().filter(|point| point.target == first.target);
    let against = |point| {
        let others = points.iter();
        let others = others.filter(move |other: &&Point| {
            other.target != first.target && other.is_same_load(point)
        });
        others.map(move |other| compare(point, other))
    };
    of_first.flat_map(against).collect()
}

fn compare(one: &Point, other: &Point) -> ComparedTargets {
    let ratio = |of: fn(&Measurement) -> f64| {
        let runs = one.runs.iter().zip(&other.runs);
        // There is no ratio to nothing, and no cost of nothing.
        let runs = runs.filter(|(one, other)| one.operations > 0 && other.operations > 0);
        Spread::of(runs.map(|(one, other)| of(one) / of(other)))
    };
    ComparedTargets {
        target: one.target,
        with: other.target,
        operation: one.operation,
        size: one.size,
        clients: one.clients,
        ratio: Ratio {
            throughput: ratio(|run| run.per_second),
            cpu: ratio(|run| run.client_cpu_us + run.server_cpu_us),
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run with this number of operations per second, each with this CPU time.
    pub(crate) fn run(operations: u32, cpu_us: f64) -> Measurement {
        let per_second = f64::from(operations);
        let times = Times {
            count: operations.into(),
            mean_us: 1e6 / per_second,
            p50_us: 0.9e6 / per_second,
            p90_us: 1.2e6 / per_second,
            p99_us: 2e6 / per_second,
            p999_us: 3e6 / per_second,
            max_us: 5e6 / per_second,
        };
        Measurement {
            seconds: 1.0,
            operations: operations.into(),
            per_second,
            missed: 0,
            failed: 0,
            failures: Vec::new(),
            get: None,
            put: Some(times),
            increment: None,
            list: None,
            least_of_a_client: 1,
            most_of_a_client: 1,
            counter: None,
            rounds: Some(2.0),
            configurations: Some(1.0),
            reconfigurations: 0,
            client_cpu_us: cpu_us / 4.0,
            server_cpu_us: cpu_us * 0.75,
            wire_bytes: 4_000.0,
            resident_bytes: 50 << 20,
            stored_bytes: 1 << 20,
        }
    }

    pub(crate) fn point(target: TargetName, runs: Vec<Measurement>) -> Point {
        Point {
            target,
            operation: Operation::Put,
            size: 1_024,
            clients: 16,
            runs,
        }
    }

    pub(crate) fn about(target: TargetName) -> About {
        About {
            target,
            version: "1.0".into(),
            servers: 3,
            keeps: "3 replicas".into(),
            durability: "memory".into(),
            connections: "one".into(),
        }
    }

    #[test]
    fn a_spread_is_median_least_and_most() {
        let spread = Spread::of([3.0, 1.0, 10.0]);
        assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 10.0));
        let even = Spread::of([4.0, 1.0, 2.0, 10.0]);
        assert_eq!((even.median, even.min, even.max), (3.0, 1.0, 10.0));
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn cpu_time_is_told_by_byte() {
        let point = point(TargetName::Areo, vec![run(1, 1_024.0), run(1, 2_048.0)]);
        let Spread { median, min, max } = point.cpu_ns_per_byte();
        assert_eq!((median, min, max), (1_500.0, 1_000.0, 2_000.0));
    }

    #[test]
    fn ratios_are_of_the_same_run_and_load() {
        let (areo, etcd) = (TargetName::Areo, TargetName::Etcd);
        let mut other_load = point(etcd, vec![run(1, 1.0)]);
        other_load.clients = 1;
        let points = vec![
            point(areo, vec![run(100, 40.0), run(300, 60.0), run(80, 10.0)]),
            other_load,
            point(etcd, vec![run(50, 80.0), run(100, 80.0), run(10, 80.0)]),
        ];
        let ratios = compared(&[about(areo), about(etcd)], &points);
        let [only] = &ratios[..] else {
            panic!("{ratios:?}")
        };
        assert_eq!((only.target, only.with, only.clients), (areo, etcd, 16));
        let Ratio { throughput, cpu } = only.ratio;
        assert_eq!(
            (throughput.median, throughput.min, throughput.max),
            (3.0, 2.0, 8.0)
        );
        assert_eq!((cpu.median, cpu.min, cpu.max), (0.5, 0.125, 0.75));
        let nothing = compare(
            &point(areo, vec![run(0, 1.0)]),
            &point(etcd, vec![run(0, 1.0)]),
        );
        assert_eq!(nothing.ratio.throughput, Spread::default());
    }
}
