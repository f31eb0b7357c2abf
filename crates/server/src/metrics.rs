//! The metrics of a server, as Prometheus reads them. Names, units and meanings stand in `docs/metrics.md`.
//!
//! Nothing here names a key, an object or a writer: labels are of closed lists, or name a server or a domain. So the
//! number of series grows with the servers and domains, and not with the stored objects.

mod connections;
mod disk;
mod domains;
mod kind;
mod process;
mod repair;

use std::time::Duration;

use connections::Connections;
use disk::Disk;
use domains::Domains;
use process::Process;
use repair::{Repair, Scrub};

pub(crate) use disk::{DiskLook, DiskWatch};
pub(crate) use kind::Kind;

use crate::cluster::DomainView;
use areo_core::manager::repair::Round;
use areo_core::message::{Refusal, ServerStatus};
use areo_net::Traffic;
use areo_net::listener::Counts;
use areo_net::metrics::{Adding, Peers, SECONDS, text};
use areo_telemetry::export::ExportCounts;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};

/// Upper bounds of the buckets for requests in one commit.
const REQUESTS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0];

/// The counters of one server. Shared by its threads.
pub(crate) struct Metrics {
    registry: Registry,
    /// A histogram of each kind, so that nothing is looked up for a request.
    seconds: [Histogram; Kind::ALL.len()],
    refusals: IntCounterVec,
    sync_seconds: Histogram,
    commit_requests: Histogram,
    pub(crate) corrupted: IntCounter,
    adopted: IntCounter,
    repair: Repair,
    scrub: Scrub,
    domains: Domains,
    waiting: IntGauge,
    connections: Connections,
    peers: Peers,
    received: IntCounter,
    sent: IntCounter,
    status: Status,
    disk: Disk,
    process: Process,
    traces: Traces,
}

/// Figures that are counted elsewhere, at the moment of a request.
#[derive(Default)]
pub(crate) struct ExternalMetrics {
    pub(crate) status: ServerStatus,
    /// Requests in the inbox.
    pub(crate) waiting: usize,
    pub(crate) disk: DiskLook,
    /// Bytes verified, and how old the oldest verification of a record is.
    pub(crate) scrubbed: (u64, Option<Duration>),
    /// Counts of the connections to the port for clients and servers.
    pub(crate) callers: Counts,
    /// Connections to the admin port, and idle ones that were closed.
    pub(crate) administrators: (usize, u64),
    pub(crate) traffic: Traffic,
    pub(crate) exported: ExportCounts,
    /// The last second of the certificate that this server shows.
    pub(crate) certificate: Option<u64>,
}

/// Metrics of the spans that were to be exported.
struct Traces {
    exported: IntCounter,
    overflowed: IntCounter,
    refused: IntCounter,
}

/// Figures that the server gives at the moment of a request.
struct Status {
    serving: IntGauge,
    objects: IntGauge,
    versions: IntGauge,
    element_bytes: IntGauge,
    stored_bytes: IntGauge,
    damaged: IntGauge,
    tombstones: IntGauge,
    full: IntGauge,
    configurations: IntGauge,
    pending: IntGauge,
    pending_seconds: IntGauge,
    trimmed: IntCounter,
    repaired: IntCounter,
    lacking: IntGauge,
    proven_seconds: IntGauge,
    incarnation: IntGauge,
}

impl Metrics {
    /// Registers all metrics, with nothing counted.
    pub(crate) fn new() -> Metrics {
        let registry = Registry::new();
        let add = Adding(&registry);
        let by_request = add.times(
            "areo_server_request_seconds",
            "From the arrival of a request to its reply, the wait for the disk included.",
            "request",
        );
        let seconds = Kind::ALL.map(|kind| by_request.with_label_values(&[kind.word()]));
        Metrics {
            seconds,
            refusals: add.counters(
                "areo_server_refusals_total",
                "Requests that were refused.",
                &["reason"],
            ),
            sync_seconds: add.histogram(
                "areo_store_sync_seconds",
                "Making one commit durable.",
                &SECONDS,
            ),
            commit_requests: add.histogram(
                "areo_store_commit_requests",
                "Requests that shared one commit.",
                &REQUESTS,
            ),
            corrupted: add.counter(
                "areo_store_corrupted_elements_total",
                "Elements that did not match their checksums; each is repaired from other servers.",
            ),
            adopted: add.counter(
                "areo_server_adopted_elements_total",
                "Elements that a new configuration took over from an older one here, instead of being sent them.",
            ),
            repair: Repair::new(&add),
            scrub: Scrub::new(&add),
            domains: Domains::new(&add),
            waiting: add.gauge(
                "areo_server_waiting_requests",
                "Requests that wait for the commit before them.",
            ),
            connections: Connections::new(&add),
            peers: Peers::new(
                &add,
                "areo_server_peers",
                "1 at the state of the connection to another server.",
            ),
            received: add.counter(
                "areo_server_received_bytes_total",
                "Bytes from clients and servers, with their frames.",
            ),
            sent: add.counter(
                "areo_server_sent_bytes_total",
                "Bytes to clients and servers, with their frames.",
            ),
            status: Status::new(&add),
            disk: Disk::new(&add),
            process: Process::new(&add),
            traces: Traces::new(&add),
            registry,
        }
    }

    /// For the connections to other servers.
    pub(crate) fn peers(&self) -> Peers {
        self.peers.clone()
    }

    /// A request of this kind was answered.
    pub(crate) fn answered(&self, kind: Kind, after: Duration) {
        self.seconds[kind as usize].observe(after.as_secs_f64());
    }

    /// A request was refused.
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.refusals.with_label_values(&[word_of(refusal)]).inc();
    }

    /// Counts elements that were taken over; most requests ask for none.
    pub(crate) fn adopted(&self, elements: usize) {
        self.adopted.inc_by(elements as u64);
    }

    /// The server went over its objects once more.
    pub(crate) fn gone_over(&self, round: &Round) {
        self.repair.add(round);
    }

    /// The server looked at the domains of the cluster.
    pub(crate) fn seen(&self, domains: &[DomainView]) {
        self.domains.show(domains);
    }

    /// Counts a durable commit of this number of requests.
    pub(crate) fn committed(&self, requests: usize, after: Duration) {
        self.sync_seconds.observe(after.as_secs_f64());
        self.commit_requests.observe(requests as f64);
    }

    /// The number of commits since the start, and the time that all of them took.
    pub(crate) fn syncs(&self) -> (u64, Duration) {
        let (count, seconds) = (
            self.sync_seconds.get_sample_count(),
            self.sync_seconds.get_sample_sum(),
        );
        (
            count,
            Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        )
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self, present: &ExternalMetrics) -> String {
        self.waiting.set(whole(present.waiting as u64));
        self.connections
            .set(&present.callers, present.administrators);
        raise(&self.received, present.traffic.received_bytes);
        raise(&self.sent, present.traffic.sent_bytes);
        self.status.set(&present.status);
        self.scrub.set(present.scrubbed);
        self.repair.set_oldest(present.scrubbed.1);
        self.disk.set(&present.disk);
        self.process.look(present.certificate);
        self.traces.set(&present.exported);
        text(&self.registry)
    }
}

impl Status {
    fn new(add: &Adding<'_>) -> Status {
        Status {
            serving: add.gauge(
                "areo_server_serving",
                "1 while the server answers for objects.",
            ),
            incarnation: add.gauge(
                "areo_server_incarnation",
                "Counts the starts of this server.",
            ),
            objects: add.gauge("areo_store_objects", "Objects held, deleted ones included."),
            versions: add.gauge("areo_store_versions", "Versions held of them."),
            element_bytes: add.gauge(
                "areo_store_element_bytes",
                "Bytes of fragments and copies held.",
            ),
            stored_bytes: add.gauge("areo_store_bytes", "Bytes that the store takes for them."),
            damaged: add.gauge(
                "areo_store_damaged_objects",
                "Objects of which this server has lost an element, until they are repaired.",
            ),
            tombstones: add.gauge(
                "areo_store_tombstones",
                "Users' objects that were deleted: of each a tombstone stays in memory and on disk.",
            ),
            full: add.gauge(
                "areo_server_disk_full",
                "1 while the disk has no room for users' writes, which are refused.",
            ),
            configurations: add.gauge("areo_server_configurations", "Configurations known here."),
            pending: add.gauge(
                "areo_server_pending_configurations",
                "Configurations whose successor is decided and not final: a client moves them, or died while it did.",
            ),
            pending_seconds: add.gauge(
                "areo_server_pending_seconds",
                "For how long this server has known the oldest of them, since its start at most.",
            ),
            trimmed: add.counter(
                "areo_store_trimmed_versions_total",
                "Versions let go for newer ones.",
            ),
            repaired: add.counter(
                "areo_store_repaired_objects_total",
                "Objects that were damaged and made whole again by a write, by a read that wrote back, or by the server's own repair.",
            ),
            lacking: add.gauge(
                "areo_repair_lacking_objects",
                "Objects that this server lacked when it last went over them.",
            ),
            proven_seconds: add.gauge(
                "areo_repair_proven_seconds",
                "How long ago this server last went over all its objects; -1: not since its start.",
            ),
        }
    }

    fn set(&self, status: &ServerStatus) {
        self.serving.set(i64::from(status.serving));
        self.incarnation.set(whole(status.incarnation));
        self.objects.set(whole(status.objects));
        self.versions.set(whole(status.versions));
        self.element_bytes.set(whole(status.element_bytes));
        self.stored_bytes.set(whole(status.stored_bytes));
        self.damaged.set(whole(status.damaged));
        self.tombstones.set(whole(status.tombstones));
        self.full.set(i64::from(status.full));
        self.configurations.set(whole(status.configurations));
        self.pending.set(whole(status.pending));
        self.pending_seconds.set(whole(status.pending_ms / 1000));
        raise(&self.trimmed, status.trimmed);
        raise(&self.repaired, status.repaired);
        self.lacking.set(whole(status.lacking));
        let proven = status.proven_ms.map(|ms| whole(ms / 1000));
        self.proven_seconds.set(proven.unwrap_or(-1));
    }
}

impl Traces {
    fn new(add: &Adding<'_>) -> Traces {
        let lost = add.counters(
            "areo_telemetry_lost_spans_total",
            "Spans that no collector has: too many waited, or it did not take them.",
            &["reason"],
        );
        Traces {
            exported: add.counter(
                "areo_telemetry_exported_spans_total",
                "Spans that the collector has taken.",
            ),
            overflowed: lost.with_label_values(&["queue_full"]),
            refused: lost.with_label_values(&["collector"]),
        }
    }

    /// Takes over the counts of the exporter.
    fn set(&self, exported: &ExportCounts) {
        raise(&self.exported, exported.delivered);
        raise(&self.overflowed, exported.overflowed);
        raise(&self.refused, exported.refused);
    }
}

/// Takes over a count that was made elsewhere.
fn raise(counter: &IntCounter, now: u64) {
    counter.inc_by(now.saturating_sub(counter.get()));
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// One word for each reason.
pub(crate) fn word_of(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Busy => "busy",
        Refusal::Full => "full",
        Refusal::Damaged => "damaged",
        Refusal::Draining => "draining",
        Refusal::Starting => "starting",
        Refusal::WrongCluster => "wrong_cluster",
        Refusal::WrongServer => "wrong_server",
        Refusal::Unauthorised => "unauthorised",
        Refusal::UnknownConfiguration => "unknown_configuration",
        Refusal::TooLarge => "too_large",
        Refusal::Malformed => "malformed",
        Refusal::UnknownRequest => "unknown",
        Refusal::RolledBack => "rolled_back",
        Refusal::UnsupportedVersion => "unsupported_version",
        Refusal::DeadlinePassed => "deadline_passed",
        Refusal::Removed => "removed",
        Refusal::Forked => "forked",
        Refusal::Fenced => "fenced",
        Refusal::RegisterFull => "register_full",
        Refusal::Restarting => "restarting",
        Refusal::Exhausted => "exhausted",
        Refusal::OldProgram => "old_program",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_there_from_the_first_look_on_and_counts() {
        let metrics = Metrics::new();
        let status = ServerStatus {
            serving: true,
            objects: 7,
            trimmed: 8,
            repaired: 9,
            tombstones: 13,
            full: true,
            pending: 1,
            pending_ms: 61_999,
            ..ServerStatus::default()
        };
        metrics.answered(Kind::Cell, Duration::from_millis(3));
        metrics.refused(Refusal::Full);
        metrics.committed(5, Duration::from_millis(2));
        let exported = ExportCounts {
            delivered: 4,
            refused: 6,
            ..ExportCounts::default()
        };
        let present = ExternalMetrics {
            status,
            waiting: 2,
            scrubbed: (10, Some(Duration::from_secs(62))),
            administrators: (4, 5),
            traffic: Traffic {
                received_bytes: 11,
                sent_bytes: 12,
            },
            exported,
            ..ExternalMetrics::default()
        };
        // Looking again counts nothing twice.
        metrics.text(&present);
        let text = metrics.text(&present);
        for line in [
            "areo_server_serving 1",
            "areo_store_objects 7",
            "areo_store_tombstones 13",
            "areo_server_disk_full 1",
            "areo_server_waiting_requests 2",
            "areo_server_connections{class=\"admin\"} 4",
            "areo_server_received_bytes_total 11",
            "areo_server_sent_bytes_total 12",
            "areo_server_pending_configurations 1",
            "areo_server_pending_seconds 61",
            "areo_store_trimmed_versions_total 8",
            "areo_store_repaired_objects_total 9",
            "areo_store_scrubbed_bytes_total 10",
            "areo_store_oldest_unscrubbed_seconds 62",
            "areo_server_request_seconds_count{request=\"cell\"} 1",
            "areo_server_request_seconds_count{request=\"access\"} 0",
            "areo_server_request_seconds_bucket{request=\"cell\",le=\"0.005\"} 1",
            "areo_server_refusals_total{reason=\"full\"} 1",
            "areo_store_commit_requests_sum 5",
            "areo_store_corrupted_elements_total 0",
            "areo_telemetry_exported_spans_total 4",
            "areo_telemetry_lost_spans_total{reason=\"collector\"} 6",
            "areo_telemetry_lost_spans_total{reason=\"queue_full\"} 0",
        ] {
            assert!(
                text.lines().any(|known| known == line),
                "no '{line}' in {text}"
            );
        }
        let described = |name: &str| text.contains(&format!("# HELP {name} "));
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        for name in names.filter_map(|line| line.split(' ').next()) {
            let is_ours = name.starts_with("areo_") || name.starts_with("process_");
            assert!(is_ours && described(name), "{name}");
        }
    }

    #[test]
    fn the_number_of_series_does_not_depend_on_what_is_asked() {
        let series = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
        let metrics = Metrics::new();
        let look = || series(&metrics.text(&ExternalMetrics::default()));
        let before = look();
        for i in 0..1000 {
            metrics.answered(
                Kind::ALL[i % Kind::ALL.len()],
                Duration::from_micros(i as u64),
            );
        }
        assert_eq!(look(), before);
    }
}
