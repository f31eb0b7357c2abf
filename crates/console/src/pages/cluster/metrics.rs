//! The numbers that servers show at their admin ports: which other servers they reach, how fast their disks are, what they refuse.

use areo_client::ServerHealth;
use areo_telemetry::admin;
use futures_util::future::join_all;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest wait for an admin port.
const PATIENCE: Duration = Duration::from_secs(1);

/// The numbers about one server. One that is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Numbers {
    /// Other servers that have a connection to it.
    pub(super) reached_by: Option<u64>,
    /// Other servers that show whether they have one.
    pub(super) watched_by: Option<u64>,
    /// An upper bound of the time in which 99 of 100 commits were on its disk, since its start.
    pub(super) sync_p99_seconds: Option<f64>,
    /// Requests that it refused since its start, by reason.
    pub(super) refusals: Option<BTreeMap<String, u64>>,
    /// The last second of its certificate, since 1970; 0: it has none.
    #[serde(rename = "certificate_expiry_seconds")]
    pub(super) certificate: Option<u64>,
}

/// The numbers of one server about itself, and about its connections.
#[derive(Debug, Default, PartialEq)]
struct ServerNumbers {
    /// Other servers, and true for those that are connected. An idle one is not shown.
    peers: BTreeMap<String, bool>,
    sync_p99_seconds: Option<f64>,
    refusals: BTreeMap<String, u64>,
    certificate: Option<u64>,
}

/// Asks the admin ports of the servers that showed their status to the key of the session: both need the grant `status`, and the console itself may ask
/// more than its visitors.
pub(super) async fn look(servers: &[ServerHealth]) -> Vec<Numbers> {
    let ask = servers.iter().map(async |it| {
        it.status.answered()?;
        let text = admin::get(&it.server.admin, "/metrics", PATIENCE).await;
        Some(read(&text.ok()?))
    });
    let names: Vec<&str> = servers.iter().map(|it| it.server.name.as_str()).collect();
    joined(&names, &join_all(ask).await)
}

/// The numbers about each of these servers.
fn joined(names: &[&str], shown: &[Option<ServerNumbers>]) -> Vec<Numbers> {
    let about = |(place, name): (usize, &&str)| {
        let others = shown.iter().enumerate().filter(|(it, _)| *it != place);
        let views = others.filter_map(|(_, it)| it.as_ref()?.peers.get(*name));
        let views: Vec<bool> = views.copied().collect();
        let own = shown[place].as_ref();
        let is_watched = !views.is_empty();
        Numbers {
            reached_by: is_watched.then(|| views.iter().filter(|it| **it).count() as u64),
            watched_by: is_watched.then_some(views.len() as u64),
            sync_p99_seconds: own.and_then(|it| it.sync_p99_seconds),
            refusals: own.map(|it| it.refusals.clone()),
            certificate: own.and_then(|it| it.certificate),
        }
    };
    names.iter().enumerate().map(about).collect()
}

fn read(metrics: &str) -> ServerNumbers {
    let mut own = ServerNumbers::default();
    // Upper bounds in seconds, and how many commits took no longer.
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for sample in admin::samples(metrics) {
        match sample.name {
            "areo_server_peers" => own.peers.extend(sample.peer()),
            "areo_server_certificate_expiry_timestamp_seconds" => {
                own.certificate = sample.value.parse().ok();
            }
            "areo_server_refusals_total" if sample.value != "0" => {
                let reason = sample.label("reason").unwrap_or_default();
                *own.refusals.entry(reason).or_default() += sample.value.parse().unwrap_or(0);
            }
            name if name.strip_suffix("_bucket") == Some("areo_store_sync_seconds") => {
                let bound = sample.label("le").and_then(|it| it.parse().ok());
                buckets.extend(bound.zip(sample.value.parse().ok()));
            }
            _ => {}
        }
    }
    own.sync_p99_seconds = p99(&buckets);
    own
}

/// The bound of the first bucket that has 99 of 100.
fn p99(buckets: &[(f64, f64)]) -> Option<f64> {
    let total = buckets.iter().map(|(_, count)| *count).fold(0.0, f64::max);
    let has_enough = |(_, count): &&(f64, f64)| *count >= total * 0.99;
    let found = buckets.iter().filter(has_enough).map(|(bound, _)| *bound);
    (total > 0.0).then(|| found.fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_servers_are_read_from_their_metrics() {
        let text = "\
# TYPE areo_server_peers gauge
areo_server_peers{server=\"s1\",state=\"connected\"} 1
areo_server_peers{server=\"s1\",state=\"unreachable\"} 0
areo_server_peers{server=\"s3\",state=\"unreachable\"} 1
areo_server_refusals_total{reason=\"busy\"} 3
areo_server_refusals_total{reason=\"full\"} 0
areo_store_sync_seconds_bucket{le=\"0.001\"} 98
areo_store_sync_seconds_bucket{le=\"0.005\"} 99
areo_store_sync_seconds_bucket{le=\"+Inf\"} 100
areo_store_sync_seconds_count 100
areo_server_certificate_expiry_timestamp_seconds 1800000000
";
        let own = read(text);
        let peers = BTreeMap::from([("s1".into(), true), ("s3".into(), false)]);
        let expected = ServerNumbers {
            peers,
            sync_p99_seconds: Some(0.005),
            refusals: BTreeMap::from([("busy".into(), 3)]),
            certificate: Some(1_800_000_000),
        };
        assert_eq!(own, expected);
        let numbers = joined(&["s1", "s2", "s3"], &[None, Some(own), None]);
        assert_eq!(
            (numbers[0].reached_by, numbers[0].watched_by),
            (Some(1), Some(1))
        );
        assert_eq!((numbers[1].reached_by, numbers[1].watched_by), (None, None));
        assert_eq!(
            (numbers[2].reached_by, numbers[2].watched_by),
            (Some(0), Some(1))
        );
        assert_eq!(numbers[1].sync_p99_seconds, Some(0.005));
        assert_eq!(numbers[0].refusals, None);
        assert_eq!(read("no metrics"), ServerNumbers::default());
    }
}
