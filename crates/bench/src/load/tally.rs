//! The results of a load.

use super::{CounterReport, Operation};
use crate::failures::Failures;
use crate::system;
use crate::target::{Cost, Target};
use areo_client::Counts;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// The longest latency of the histogram, in nanoseconds: a longer one counts as this.
const LONGEST_NS: u64 = 600_000_000_000;
/// Digits of a latency that are right.
const DIGITS: u8 = 3;
/// Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Times {
    /// The number of operations.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// The times that operations took.
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let made = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Latencies(made.expect("the bounds are in order"))
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(LONGEST_NS);
        self.0.saturating_record(ns.clamp(1, LONGEST_NS));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The summary of the times; `None` if there were none.
    pub(crate) fn times(&self) -> Option<Times> {
        let histogram = &self.0;
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        (!histogram.is_empty()).then(|| Times {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(histogram.max()),
        })
    }
}

impl FromIterator<Duration> for Latencies {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Latencies {
        let mut latencies = Latencies::default();
        times.into_iter().for_each(|time| latencies.record(time));
        latencies
    }
}

/// An operation that succeeded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample {
    /// The place of the client.
    pub(crate) client: usize,
    pub(crate) operation: Operation,
    /// The time at which it was due, after the clients began.
    pub(crate) begun: Duration,
    pub(crate) took: Duration,
    pub(crate) cost: Cost,
}

/// The result of a load. Figures per operation are of those that succeeded, and 0 if none did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measurement {
    /// Length of the measurement.
    pub seconds: f64,
    /// Operations that succeeded in this time. Latencies are of all that began in it.
    pub operations: u64,
    /// Operations in a second.
    pub per_second: f64,
    /// Operations that were due in this time, and did not begin in it: clients were busy with those before them.
    pub missed: u64,
    /// Operations that failed, also before and after.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
    /// Latencies of gets.
    pub get: Option<Times>,
    /// Latencies of puts, including those on a condition.
    pub put: Option<Times>,
    /// Latencies of increments.
    pub increment: Option<Times>,
    /// Latencies of listings.
    pub list: Option<Times>,
    /// Successful operations of the client with the fewest, in this time.
    pub least_of_a_client: u64,
    /// Successful operations of the client with the most, in this time.
    pub most_of_a_client: u64,
    /// The counter in the end, if clients incremented one.
    pub counter: Option<CounterReport>,
    /// Rounds of an operation, where the store tells.
    pub rounds: Option<f64>,
    /// Configurations that an operation visited, where the store tells.
    pub configurations: Option<f64>,
    /// Reconfigurations that ended in this time.
    pub reconfigurations: u64,
    /// CPU time of the process with the clients, per operation.
    pub client_cpu_us: f64,
    /// CPU time of all server processes, per operation.
    pub server_cpu_us: f64,
    /// Bytes on the loopback, per operation, with the heads of packets.
    pub wire_bytes: f64,
    /// Resident memory of all server processes in the end, in bytes.
    pub resident_bytes: u64,
    /// Bytes on disk of all server processes in the end.
    pub stored_bytes: u64,
}

impl Measurement {
    /// Adds the end of a counter: a wrong one is a failure.
    pub(super) fn count(&mut self, counter: CounterReport) {
        if let Some(wrong) = counter.wrong() {
            self.failed += 1;
            self.failures.insert(0, wrong);
        }
        self.counter = Some(counter);
    }
}

/// The counters of processes so far.
pub(crate) struct Counters {
    client_cpu: Duration,
    server_cpu: Duration,
    loopback_bytes: u64,
    resident_bytes: u64,
    stored_bytes: u64,
}

impl Counters {
    pub(super) fn of(target: &dyn Target) -> Counters {
        let processes = target.processes();
        let each = || processes.iter().copied();
        Counters {
            client_cpu: system::cpu_of_this(),
            server_cpu: each().map(system::cpu_of).sum(),
            loopback_bytes: system::loopback_bytes(),
            resident_bytes: each().map(system::resident_of).sum(),
            stored_bytes: target.stored(),
        }
    }
}

/// The results of readers and writers in one phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseReport {
    /// Length of the phase.
    pub seconds: f64,
    /// Number of successful operations.
    pub operations: u64,
    /// Operations in a second.
    pub per_second: f64,
    /// Rounds of one of them, on average.
    pub rounds: f64,
    /// The longest time in which no operation of any client succeeded, in milliseconds.
    pub longest_gap_ms: f64,
    /// Latencies of reads.
    pub read: Times,
    /// Latencies of writes.
    pub write: Times,
}

/// The counts of a phase.
#[derive(Default)]
pub(crate) struct Tally {
    pub(super) time: Duration,
    get: Latencies,
    put: Latencies,
    increment: Latencies,
    list: Latencies,
    cost: Counts,
    operations: u64,
    /// The count of each client.
    by_client: Vec<u64>,
    pub(super) missed: u64,
    pub(super) reconfigurations: u64,
    longest_gap: Duration,
}

impl Tally {
    /// A tally of this count of clients, which are counted one by one.
    pub(super) fn of(clients: usize) -> Tally {
        Tally {
            by_client: vec![0; clients],
            ..Tally::default()
        }
    }

    /// An operation of the phase succeeded, in the phase or after it.
    pub(super) fn succeeded(&mut self, sample: &Sample, in_time: bool) {
        self.operations += u64::from(in_time);
        if let Some(own) = self.by_client.get_mut(sample.client) {
            *own += u64::from(in_time);
        }
        let latencies = match sample.operation {
            Operation::Get => &mut self.get,
            Operation::Put | Operation::PutIf => &mut self.put,
            Operation::Increment => &mut self.increment,
            Operation::List | Operation::ListFolder => &mut self.list,
        };
        latencies.record(sample.took);
        self.cost.rounds += sample.cost.counts.rounds;
        self.cost.configurations += sample.cost.counts.configurations;
    }

    /// Notes a time in which no operation succeeded.
    pub(super) fn gap(&mut self, time: Duration) {
        self.longest_gap = self.longest_gap.max(time);
    }

    /// A phase of such a length with such a gap.
    #[cfg(test)]
    pub(crate) fn phase(time: Duration, longest_gap: Duration) -> Tally {
        Tally {
            time,
            longest_gap,
            ..Tally::default()
        }
    }

    /// The longest time without a success.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.longest_gap
    }

    /// The length of the phase.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    fn recorded(&self) -> u64 {
        let all = [&self.get, &self.put, &self.increment, &self.list];
        all.into_iter().map(Latencies::count).sum()
    }

    pub(crate) fn fared(&self) -> PhaseReport {
        let seconds = self.time.as_secs_f64();
        PhaseReport {
            seconds,
            operations: self.operations,
            per_second: self.operations as f64 / seconds,
            rounds: self.cost.rounds as f64 / self.recorded().max(1) as f64,
            longest_gap_ms: self.longest_gap.as_secs_f64() * 1e3,
            read: self.get.times().unwrap_or_default(),
            write: self.put.times().unwrap_or_default(),
        }
    }

    pub(super) fn measured(
        &self,
        from: &Counters,
        to: &Counters,
        failures: Failures,
    ) -> Measurement {
        let (operations, recorded) = (self.operations, self.recorded());
        let each = |all: f64| match operations {
            0 => 0.0,
            operations => all / operations as f64,
        };
        let us = |from: Duration, to: Duration| each((to.saturating_sub(from)).as_secs_f64() * 1e6);
        let told = |all: u64| (all > 0).then(|| all as f64 / recorded as f64);
        Measurement {
            seconds: self.time.as_secs_f64(),
            operations,
            per_second: operations as f64 / self.time.as_secs_f64(),
            missed: self.missed,
            failed: failures.count,
            failures: failures.first,
            get: self.get.times(),
            put: self.put.times(),
            increment: self.increment.times(),
            list: self.list.times(),
            least_of_a_client: self.by_client.iter().copied().min().unwrap_or_default(),
            most_of_a_client: self.by_client.iter().copied().max().unwrap_or_default(),
            counter: None,
            rounds: told(self.cost.rounds),
            configurations: told(self.cost.configurations),
            reconfigurations: self.reconfigurations,
            client_cpu_us: us(from.client_cpu, to.client_cpu),
            server_cpu_us: us(from.server_cpu, to.server_cpu),
            wire_bytes: each(to.loopback_bytes.saturating_sub(from.loopback_bytes) as f64),
            resident_bytes: to.resident_bytes,
            stored_bytes: to.stored_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(ms: u64, bytes: u64) -> Counters {
        Counters {
            client_cpu: Duration::from_millis(ms),
            server_cpu: Duration::from_millis(3 * ms),
            loopback_bytes: bytes,
            resident_bytes: bytes,
            stored_bytes: 2 * bytes,
        }
    }

    fn sample(took: Duration) -> Sample {
        Sample {
            client: 0,
            operation: Operation::Get,
            begun: Duration::ZERO,
            took,
            cost: Cost::default(),
        }
    }

    #[test]
    fn percentiles_have_three_right_digits_and_costs_are_per_operation() {
        let mut tally = Tally {
            time: Duration::from_secs(2),
            missed: 7,
            ..Tally::of(2)
        };
        for us in 1..=1_000 {
            let mut sample = sample(Duration::from_micros(us));
            sample.cost.counts.rounds = us % 2 + 1;
            sample.client = usize::from(us > 300);
            if us % 2 == 1 {
                sample.operation = Operation::Put;
            }
            tally.succeeded(&sample, us <= 900);
        }
        let mut failures = Failures::default();
        failures.add("no".into());
        let measured = tally.measured(&counters(1, 10), &counters(10, 5_410), failures);
        let close = |found: f64, expected: f64| {
            assert!(
                (found / expected - 1.0).abs() < 2e-3,
                "{found}, not {expected}"
            );
        };
        let (get, put) = (measured.get.unwrap(), measured.put.unwrap());
        assert_eq!((get.count, put.count, measured.failed), (500, 500, 1));
        close(get.p50_us, 500.0);
        close(get.p99_us, 990.0);
        close(put.max_us, 999.0);
        close(put.mean_us, 500.0);
        assert_eq!((measured.operations, measured.missed), (900, 7));
        let of_clients = (measured.least_of_a_client, measured.most_of_a_client);
        assert_eq!(of_clients, (300, 600));
        close(measured.per_second, 450.0);
        close(measured.rounds.unwrap(), 1.5);
        close(measured.client_cpu_us, 10.0);
        close(measured.server_cpu_us, 30.0);
        close(measured.wire_bytes, 6.0);
        assert_eq!(
            (measured.resident_bytes, measured.stored_bytes),
            (5_410, 10_820)
        );
    }

    #[test]
    fn what_takes_for_ever_counts_as_the_longest() {
        let mut tally = Tally::default();
        tally.succeeded(&sample(Duration::from_secs(1_000_000)), true);
        let failures = Failures::default();
        let measured = tally.measured(&counters(0, 0), &counters(0, 0), failures);
        assert!(measured.put.is_none() && measured.rounds.is_none());
        assert!((measured.get.unwrap().p50_us / 600e6 - 1.0).abs() < 2e-3);
    }
}
