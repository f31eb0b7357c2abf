//! The results of a measurement over distances.

use super::{Layout, Options, SERVERS, SITES};
use crate::failures::Failures;
use crate::load::{Latencies, LoadEnd, Operation, Times};
use crate::system::{self, Machine};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A measurement. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// `wide-area`: which report this is.
    pub report: String,
    /// Time of the run, in milliseconds since 1970.
    pub made_at_ms: u64,
    /// The command line of the measurement.
    pub command: String,
    pub machine: Machine,
    pub sites: Vec<String>,
    /// The round trip of each site with each, in milliseconds, as the proxy makes it.
    pub round_trips_ms: Vec<Vec<f64>>,
    /// Percentage of pieces of data that were held up as if a packet had been lost.
    pub loss_percent: u8,
    /// Bytes of a value.
    pub size: usize,
    pub points: Vec<Point>,
    /// Counts that differ from the ones that every machine must have, in sentences.
    pub broken: Vec<String>,
    /// Number of failed operations.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
}

/// One operation from one site to one domain.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// The shape of the domain, such as `abd [3,1]`.
    pub shape: String,
    /// The number of its servers that have to answer.
    pub quorum: usize,
    /// The site of each of its servers.
    pub servers: Vec<String>,
    /// The site of the client.
    pub client: String,
    pub operation: Operation,
    /// The site of another client that puts the same object all the time, if there is one.
    pub beside: Option<String>,
    /// Round trip from the client to the farthest server of the nearest quorum, in milliseconds.
    pub round_trip_ms: f64,
    /// Operations that took as many rounds.
    pub by_rounds: Vec<ByRounds>,
}

/// Operations with one number of rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ByRounds {
    /// The number of rounds.
    pub rounds: u64,
    /// The times that they took.
    pub times: Times,
    /// Their median in round trips to the farthest server of the closest quorum.
    pub round_trips: f64,
}

impl ByRounds {
    fn of(rounds: u64, latencies: &Latencies, trip_ms: f64) -> Option<ByRounds> {
        let times = latencies.times()?;
        Some(ByRounds {
            rounds,
            round_trips: times.p50_us / 1e3 / trip_ms,
            times,
        })
    }
}

impl Report {
    pub(super) fn new(options: &Options) -> Report {
        let sites = 0..SITES.len();
        let trips = |one: usize| {
            let all = sites
                .clone()
                .map(|other| ms(options.round_trip(one, other)));
            all.collect()
        };
        Report {
            report: "wide-area".into(),
            made_at_ms: system::now_ms(),
            command: options.command.clone(),
            machine: Machine::this(),
            sites: SITES.map(str::to_owned).to_vec(),
            round_trips_ms: sites.clone().map(trips).collect(),
            loss_percent: options.loss_percent,
            size: options.size,
            points: Vec::new(),
            broken: Vec::new(),
            failed: 0,
            failures: Vec::new(),
        }
    }

    pub(super) fn failed_with(&mut self, others: Failures) {
        let mut all = Failures {
            count: self.failed,
            first: std::mem::take(&mut self.failures),
        };
        all.merge(others);
        (self.failed, self.failures) = (all.count, all.first);
    }

    pub(super) fn add(
        &mut self,
        layout: &Layout,
        (client, beside, operation): (usize, Option<usize>, Operation),
        trip: Duration,
        ended: LoadEnd,
    ) {
        self.failed_with(ended.failures);
        let name = |site: usize| SITES[site].to_owned();
        let servers = layout.servers.iter().map(|server| name(SERVERS[*server]));
        let mut by_rounds: BTreeMap<u64, Latencies> = BTreeMap::new();
        for sample in &ended.samples {
            let latencies = by_rounds.entry(sample.cost.counts.rounds).or_default();
            latencies.record(sample.took);
        }
        let point = Point {
            shape: layout.shape().to_string(),
            quorum: layout.shape().quorum(),
            servers: servers.collect(),
            client: name(client),
            operation,
            beside: beside.map(name),
            round_trip_ms: ms(trip),
            by_rounds: by_rounds
                .iter()
                .filter_map(|(rounds, latencies)| ByRounds::of(*rounds, latencies, ms(trip)))
                .collect(),
        };
        self.broken.extend(point.broken());
        self.points.push(point);
    }
}

impl Point {
    /// The name of the point in tables.
    pub fn name(&self) -> String {
        let (operation, shape, client) = (self.operation.word(), &self.shape, &self.client);
        let beside = self.beside.as_ref();
        let beside = beside.map_or(String::new(), |site| format!(" beside a writer at {site}"));
        format!("{operation} of {shape} from {client}{beside}")
    }

    /// The beginning of a row about it: domain, servers, client, operation, who puts beside it; rounds, and how many operations
    /// took so many.
    pub fn words(&self, by: &ByRounds) -> Vec<String> {
        vec![
            self.shape.clone(),
            self.servers.join(" "),
            self.client.clone(),
            self.operation.word().to_owned(),
            self.beside.clone().unwrap_or_default(),
            by.rounds.to_string(),
            by.times.count.to_string(),
        ]
    }

    /// Checks counts that do not depend on the machine (`docs/spec` 7.5): a put takes two rounds, and a get of a
    /// version that is everywhere one.
    fn broken(&self) -> Vec<String> {
        let expected = match (self.operation, &self.beside) {
            (Operation::Get, None) => Some(1),
            (_, None) => Some(2),
            (_, Some(_)) => None,
        };
        let wrong = self.by_rounds.iter();
        let wrong = wrong.filter(|by| expected.is_some_and(|expected| expected != by.rounds));
        let sentence = |by: &ByRounds| {
            let (count, rounds) = (by.times.count, by.rounds);
            format!("{}: {count} operations took {rounds} rounds", self.name())
        };
        wrong.map(sentence).collect()
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(operation: Operation, beside: Option<&str>, rounds: &[(u64, u64)]) -> Point {
        let by_rounds = rounds.iter().map(|(rounds, ms)| {
            let mut latencies = Latencies::default();
            latencies.record(Duration::from_millis(*ms));
            ByRounds::of(*rounds, &latencies, 20.0).unwrap()
        });
        Point {
            shape: "abd [3,1]".into(),
            quorum: 2,
            servers: vec!["A".into(), "B".into(), "C".into()],
            client: "A".into(),
            operation,
            beside: beside.map(str::to_owned),
            round_trip_ms: 20.0,
            by_rounds: by_rounds.collect(),
        }
    }

    #[test]
    fn latency_is_told_in_round_trips() {
        let point = point(Operation::Put, None, &[(2, 41)]);
        let trips = point.by_rounds[0].round_trips;
        assert!((trips - 2.05).abs() < 0.005, "{trips}");
        assert!(ByRounds::of(1, &Latencies::default(), 20.0).is_none());
    }

    #[test]
    fn counts_that_cannot_be_are_told() {
        let broken =
            |operation, beside, rounds: &[(u64, u64)]| point(operation, beside, rounds).broken();
        let (put, get) = (Operation::Put, Operation::Get);
        assert!(broken(put, None, &[(2, 40)]).is_empty());
        assert_eq!(
            broken(put, None, &[(2, 40), (3, 60)]),
            ["put of abd [3,1] from A: 1 operations took 3 rounds"]
        );
        assert!(broken(get, None, &[(1, 20)]).is_empty());
        assert_eq!(broken(get, None, &[(1, 20), (2, 40)]).len(), 1);
        // What is being put may have to be brought to a quorum first.
        let raced = point(get, Some("B"), &[(1, 20), (2, 40)]);
        assert!(raced.broken().is_empty());
        assert_eq!(raced.name(), "get of abd [3,1] from A beside a writer at B");
    }
}
