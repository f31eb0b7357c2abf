//! The metrics of a gateway, as Prometheus reads them. Names, units and meanings stand in `docs/metrics.md`.
//!
//! No label names a bucket, a key or a caller: values come from closed lists.

use crate::wire::Code;
use http::StatusCode;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};
use std::time::Instant;

/// The operation of a request that is refused before its operation is known.
const NONE: &str = "none";
/// The class of a request whose caller did not wait for the response.
const CANCELLED: &str = "cancelled";
/// Upper bounds of the buckets for times, in seconds: from an object in memory to an upload of many gigabytes.
const SECONDS: [f64; 14] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0,
];
const UNIQUE: &str = "names are constants, valid and unlike each other";

/// The way to something that the gateway remembers; the label `how`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recall {
    /// The gateway remembered it.
    Kept,
    /// The cluster was asked.
    Asked,
}

impl Recall {
    fn word(self) -> &'static str {
        match self {
            Recall::Kept => "kept",
            Recall::Asked => "asked",
        }
    }
}

/// The metrics of one gateway. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    refused: IntCounterVec,
    /// Bytes of bodies of requests.
    pub(super) received: IntCounter,
    /// Bytes of bodies of responses.
    pub(super) sent: IntCounter,
    connections: IntGauge,
    callers: IntCounterVec,
    signing_keys: IntCounterVec,
}

/// Makes metrics and registers them.
struct Adding<'a>(&'a Registry);

impl Adding<'_> {
    fn add<M: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: prometheus::Result<M>,
    ) -> M {
        let metric = metric.expect(UNIQUE);
        self.0.register(Box::new(metric.clone())).expect(UNIQUE);
        metric
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }
}

impl Metrics {
    /// Registers all metrics, with nothing counted.
    pub(super) fn new() -> Metrics {
        let registry = Registry::new();
        let add = Adding(&registry);
        let times = HistogramOpts::new(
            "areo_s3_request_seconds",
            "From the head of a request until its response begins.",
        );
        let times = times.buckets(SECONDS.to_vec());
        let how = &["how"];
        let metrics = Metrics {
            requests: add.counters(
                "areo_s3_requests_total",
                "Requests by the class of their status; cancelled: the caller did not wait for the response.",
                &["operation", "class"],
            ),
            seconds: add.add(HistogramVec::new(times, &["operation"])),
            refused: add.counters(
                "areo_s3_errors_total",
                "Responses that are errors, by the code of S3.",
                &["code"],
            ),
            received: add.counter(
                "areo_s3_received_bytes_total",
                "Bytes of bodies of requests.",
            ),
            sent: add.counter("areo_s3_sent_bytes_total", "Bytes of bodies of responses."),
            connections: add.add(IntGauge::new(
                "areo_s3_connections",
                "Connections of callers, with those that have sent nothing yet.",
            )),
            callers: add.counters(
                "areo_s3_caller_lookups_total",
                "Looks for the client with the grants of a caller.",
                how,
            ),
            signing_keys: add.counters(
                "areo_s3_signing_key_lookups_total",
                "Looks for the key that signs the requests of a caller for a day.",
                how,
            ),
            registry,
        };
        // They are there from the first look on.
        for how in [Recall::Kept, Recall::Asked] {
            metrics.callers.with_label_values(&[how.word()]);
            metrics.signing_keys.with_label_values(&[how.word()]);
        }
        metrics.seconds.with_label_values(&[NONE]);
        metrics.requests.with_label_values(&[NONE, "4xx"]);
        let refused = [Code::AccessDenied, Code::ServiceUnavailable];
        for code in refused {
            metrics.refused.with_label_values(&[code.word()]);
        }
        metrics
    }

    /// All of it, in the text format of Prometheus.
    pub(super) fn text(&self) -> String {
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .expect("memory takes what is written");
        String::from_utf8(text).expect("the format is text")
    }

    /// Counts an error of a response.
    pub(super) fn error(&self, code: Code) {
        self.refused.with_label_values(&[code.word()]).inc();
    }

    /// Counts a look for the client of a caller.
    pub(super) fn caller(&self, how: Recall) {
        self.callers.with_label_values(&[how.word()]).inc();
    }

    /// Counts a look for a signing key.
    pub(super) fn signing_key(&self, how: Recall) {
        self.signing_keys.with_label_values(&[how.word()]).inc();
    }

    /// Counts a connection until the value is dropped.
    pub(super) fn connection(&self) -> CountedConnection {
        self.connections.inc();
        CountedConnection(self.connections.clone())
    }

    /// Counts a request that begins now, when the value is dropped.
    pub(super) fn request(&self) -> CountedRequest<'_> {
        CountedRequest {
            metrics: self,
            operation: NONE,
            begun: Instant::now(),
            class: CANCELLED,
        }
    }
}

/// Counts a connection as open until it is dropped.
pub(super) struct CountedConnection(IntGauge);

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A request that is being answered.
pub(super) struct CountedRequest<'a> {
    metrics: &'a Metrics,
    /// The name of its operation, once that is known.
    pub(super) operation: &'static str,
    begun: Instant,
    class: &'static str,
}

impl CountedRequest<'_> {
    /// The response has this status.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.class = match status.as_u16() / 100 {
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
    }
}

impl Drop for CountedRequest<'_> {
    fn drop(&mut self) {
        let labels = [self.operation, self.class];
        self.metrics.requests.with_label_values(&labels).inc();
        let seconds = self.metrics.seconds.with_label_values(&[self.operation]);
        seconds.observe(self.begun.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(metrics: &Metrics, line: &str) {
        let text = metrics.text();
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }

    #[test]
    fn a_request_is_counted_once_with_its_operation_and_the_class_of_its_status() {
        let metrics = Metrics::new();
        for status in [200, 204, 304, 404, 503] {
            let mut request = metrics.request();
            request.operation = "GetObject";
            request.answered(StatusCode::from_u16(status).unwrap());
        }
        for (class, times) in [("2xx", 2), ("3xx", 1), ("4xx", 1), ("5xx", 1)] {
            let labels = format!("class=\"{class}\",operation=\"GetObject\"");
            has(
                &metrics,
                &format!("areo_s3_requests_total{{{labels}}} {times}"),
            );
        }
        has(
            &metrics,
            "areo_s3_request_seconds_count{operation=\"GetObject\"} 5",
        );
        drop(metrics.request());
        has(
            &metrics,
            "areo_s3_requests_total{class=\"cancelled\",operation=\"none\"} 1",
        );
    }

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let metrics = Metrics::new();
        let (first, second) = (metrics.connection(), metrics.connection());
        has(&metrics, "areo_s3_connections 2");
        drop(first);
        has(&metrics, "areo_s3_connections 1");
        drop(second);
        has(&metrics, "areo_s3_connections 0");
    }

    #[test]
    fn errors_and_looks_are_counted_by_their_words() {
        let metrics = Metrics::new();
        metrics.error(Code::NoSuchKey);
        metrics.caller(Recall::Asked);
        metrics.signing_key(Recall::Kept);
        has(&metrics, "areo_s3_errors_total{code=\"NoSuchKey\"} 1");
        has(&metrics, "areo_s3_errors_total{code=\"AccessDenied\"} 0");
        has(&metrics, "areo_s3_caller_lookups_total{how=\"asked\"} 1");
        has(&metrics, "areo_s3_caller_lookups_total{how=\"kept\"} 0");
        has(
            &metrics,
            "areo_s3_signing_key_lookups_total{how=\"kept\"} 1",
        );
    }
}
