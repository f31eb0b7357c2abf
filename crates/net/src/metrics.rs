//! The costs of operations, as Prometheus reads them: counters of the whole process. `Meter` has the costs of one
//! operation.
//!
//! The owner of a registry makes its counters with [`Adding`], and has those of its calls counted by a [`Calls`] of them
//! ([`crate::network::Network::count`]). Counting is adding to atomics that are found without looking anything up.

use std::cell::Cell;
use std::time::Duration;

use areo_core::env::Work;
use prometheus::{
    Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::peer::Status;

/// Upper bounds of the buckets for times, in seconds: from a request in memory to a disk that is in trouble.
pub const SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];

/// Makes metrics and registers them. All names are constants that are unlike each other.
pub struct Adding<'a>(pub &'a Registry);

const UNIQUE: &str = "names are constants, valid and unlike each other";

impl Adding<'_> {
    /// A value that goes up and down.
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        let gauge = IntGauge::new(name, help).expect(UNIQUE);
        self.0.register(Box::new(gauge.clone())).expect(UNIQUE);
        gauge
    }

    /// A value with fractions that goes up and down.
    pub fn fraction(&self, name: &str, help: &str) -> Gauge {
        let gauge = Gauge::new(name, help).expect(UNIQUE);
        self.0.register(Box::new(gauge.clone())).expect(UNIQUE);
        gauge
    }

    /// Values that go up and down, by labels whose values are few.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        let gauges = IntGaugeVec::new(Opts::new(name, help), labels).expect(UNIQUE);
        self.0.register(Box::new(gauges.clone())).expect(UNIQUE);
        gauges
    }

    /// Makes and registers a counter.
    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        let counter = IntCounter::new(name, help).expect(UNIQUE);
        self.0.register(Box::new(counter.clone())).expect(UNIQUE);
        counter
    }

    /// A distribution, with these upper bounds of buckets.
    pub fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        let histogram = Histogram::with_opts(options).expect(UNIQUE);
        self.0.register(Box::new(histogram.clone())).expect(UNIQUE);
        histogram
    }

    /// Times by a label whose values come from a closed list.
    pub fn times(&self, name: &str, help: &str, label: &str) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        let histograms = HistogramVec::new(options, &[label]).expect(UNIQUE);
        self.0.register(Box::new(histograms.clone())).expect(UNIQUE);
        histograms
    }

    /// Counters by labels whose values come from closed lists.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        let counters = IntCounterVec::new(Opts::new(name, help), labels).expect(UNIQUE);
        self.0.register(Box::new(counters.clone())).expect(UNIQUE);
        counters
    }
}

/// Everything that is registered, as Prometheus reads it.
pub fn text(registry: &Registry) -> String {
    let mut text = Vec::new();
    TextEncoder::new()
        .encode(&registry.gather(), &mut text)
        .expect("memory takes what is written");
    String::from_utf8(text).expect("the format is text")
}

/// The cost of the operations of a client together. Clones count into the same.
#[derive(Clone)]
pub struct Calls {
    rounds: IntCounter,
    failed_rounds: IntCounter,
    quorum_wait_seconds: Histogram,
    configurations: IntCounter,
    sent_bytes: IntCounter,
    received_bytes: IntCounter,
    encode_seconds: Histogram,
    encoded_bytes: IntCounter,
    decode_seconds: Histogram,
    decoded_bytes: IntCounter,
    retries: IntCounter,
    forks: IntCounter,
    adopted: IntCounter,
    moved: IntCounter,
    moved_bytes: IntCounter,
}

impl Calls {
    /// Registers the metrics, with nothing counted.
    pub fn new(add: &Adding<'_>) -> Calls {
        let elements = add.counters(
            "areo_client_reconfiguration_elements_total",
            "Elements of new configurations that this client brought about: sent, or adopted by servers that had what they are made of.",
            &["how"],
        );
        Calls {
            rounds: add.counter(
                "areo_client_rounds_total",
                "Quorum calls, of operations and of looking for servers.",
            ),
            failed_rounds: add.counter(
                "areo_client_failed_rounds_total",
                "Quorum calls that no quorum answered in time, or that one could not.",
            ),
            quorum_wait_seconds: add.histogram(
                "areo_client_quorum_wait_seconds",
                "From the first request of a quorum call to the reply that decided it.",
                &SECONDS,
            ),
            configurations: add.counter(
                "areo_client_configurations_visited_total",
                "Different configurations that operations asked something, added up.",
            ),
            sent_bytes: add.counter(
                "areo_client_sent_bytes_total",
                "Bytes of requests: messages with payload, without frames and without what was sent again.",
            ),
            received_bytes: add.counter(
                "areo_client_received_bytes_total",
                "Bytes of answers that came before their calls were decided.",
            ),
            encode_seconds: add.histogram(
                "areo_client_encode_seconds",
                "Computing the parity of one value.",
                &SECONDS,
            ),
            encoded_bytes: add.counter(
                "areo_client_encoded_bytes_total",
                "Bytes of the values of which parity was computed.",
            ),
            decode_seconds: add.histogram(
                "areo_client_decode_seconds",
                "Computing missing data of one value from parity.",
                &SECONDS,
            ),
            decoded_bytes: add.counter(
                "areo_client_decoded_bytes_total",
                "Bytes of the values of which data was computed from parity.",
            ),
            forks: add.counter(
                "areo_client_forks_total",
                "Times that two configurations of one index were seen.",
            ),
            retries: add.counter(
                "areo_client_ec_retries_total",
                "Reads that asked a configuration again, because the answers of a quorum fitted no version.",
            ),
            adopted: elements.with_label_values(&["adopted"]),
            moved: elements.with_label_values(&["sent"]),
            moved_bytes: add.counter(
                "areo_client_reconfiguration_sent_bytes_total",
                "Bytes of those that were sent.",
            ),
        }
    }

    pub(crate) fn began(&self) {
        self.rounds.inc();
    }

    /// A call ended after this time.
    pub(crate) fn ended(&self, is_decided: bool, after: Duration) {
        match is_decided {
            true => self.quorum_wait_seconds.observe(after.as_secs_f64()),
            false => self.failed_rounds.inc(),
        }
    }

    pub(crate) fn visited(&self) {
        self.configurations.inc();
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.sent_bytes.inc_by(bytes);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received_bytes.inc_by(bytes);
    }

    pub(crate) fn worked(&self, work: Work) {
        match work {
            Work::Encoded { bytes, time } => {
                self.encode_seconds.observe(time.as_secs_f64());
                self.encoded_bytes.inc_by(bytes);
            }
            Work::Decoded { bytes, time } => {
                self.decode_seconds.observe(time.as_secs_f64());
                self.decoded_bytes.inc_by(bytes);
            }
            Work::AskedAgain => self.retries.inc(),
            Work::Forked => self.forks.inc(),
            Work::Adopted { elements } => self.adopted.inc_by(elements),
            Work::Moved { elements, bytes } => {
                self.moved.inc_by(elements);
                self.moved_bytes.inc_by(bytes);
            }
        }
    }
}

/// The status of the networks of a process with each server; the labels `server`, by name, and `state`. A server of which nothing was ever asked is
/// not shown. Clones count into the same.
#[derive(Clone)]
pub struct Peers(IntGaugeVec);

/// Values of the label `state`.
const STATES: [&str; 4] = ["connecting", "connected", "unreachable", "refused"];

impl Peers {
    /// No server was asked yet.
    pub fn new(add: &Adding<'_>, name: &str, help: &str) -> Peers {
        Peers(add.gauges(name, help, &["server", "state"]))
    }

    pub(crate) fn of(&self, server: &str) -> LinkMetrics {
        LinkMetrics {
            gauges: STATES.map(|state| self.0.with_label_values(&[server, state])),
            now: Cell::new(None),
        }
    }
}

/// The status of one network with one server.
pub(crate) struct LinkMetrics {
    gauges: [IntGauge; STATES.len()],
    now: Cell<Option<usize>>,
}

impl LinkMetrics {
    /// It stands so from now on; `None`: not at all.
    pub(crate) fn set(&self, status: Option<Status>) {
        let state = status.and_then(|status| match status {
            Status::Idle => None,
            Status::Connecting => Some(0),
            Status::Connected => Some(1),
            Status::Unreachable => Some(2),
            Status::Refused(_) => Some(3),
        });
        if let Some(before) = self.now.replace(state) {
            self.gauges[before].dec();
        }
        if let Some(now) = state {
            self.gauges[now].inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_in_one_state_with_a_server() {
        let registry = Registry::new();
        let peers = Peers::new(&Adding(&registry), "areo_client_peers", "How it stands.");
        let (one, other) = (peers.of("s1"), peers.of("s1"));
        let shown = || {
            let text = text(&registry);
            STATES.map(|state| {
                let series = format!("areo_client_peers{{server=\"s1\",state=\"{state}\"}} ");
                let number = text.lines().find_map(|line| line.strip_prefix(&*series));
                number
                    .expect("it is there")
                    .parse::<i64>()
                    .expect("it is a number")
            })
        };
        one.set(Some(Status::Idle));
        assert_eq!(shown(), [0, 0, 0, 0]);
        one.set(Some(Status::Connecting));
        other.set(Some(Status::Connecting));
        assert_eq!(shown(), [2, 0, 0, 0]);
        one.set(Some(Status::Connected));
        other.set(Some(Status::Unreachable));
        other.set(Some(Status::Unreachable));
        assert_eq!(shown(), [0, 1, 1, 0]);
        other.set(None);
        one.set(None);
        one.set(None);
        assert_eq!(shown(), [0, 0, 0, 0]);
    }

    #[test]
    fn what_operations_do_is_counted_by_what_it_was() {
        let registry = Registry::new();
        let calls = Calls::new(&Adding(&registry));
        let time = Duration::from_millis(3);
        calls.worked(Work::Encoded { bytes: 100, time });
        calls.worked(Work::Decoded { bytes: 200, time });
        calls.worked(Work::AskedAgain);
        calls.worked(Work::Adopted { elements: 3 });
        calls.worked(Work::Moved {
            elements: 2,
            bytes: 20,
        });
        calls.began();
        calls.began();
        calls.ended(true, time);
        calls.ended(false, time);
        let text = text(&registry);
        for line in [
            "areo_client_rounds_total 2",
            "areo_client_failed_rounds_total 1",
            "areo_client_quorum_wait_seconds_count 1",
            "areo_client_quorum_wait_seconds_bucket{le=\"0.005\"} 1",
            "areo_client_quorum_wait_seconds_bucket{le=\"0.0025\"} 0",
            "areo_client_encode_seconds_count 1",
            "areo_client_encoded_bytes_total 100",
            "areo_client_decode_seconds_count 1",
            "areo_client_decoded_bytes_total 200",
            "areo_client_ec_retries_total 1",
            "areo_client_reconfiguration_elements_total{how=\"adopted\"} 3",
            "areo_client_reconfiguration_elements_total{how=\"sent\"} 2",
            "areo_client_reconfiguration_sent_bytes_total 20",
        ] {
            assert!(
                text.lines().any(|known| known == line),
                "no '{line}' in {text}"
            );
        }
    }
}
