//! One look at a cluster: the status of its servers and domains, and the views that servers have of each other.

use crate::exit::Outcome;
use crate::session::failure;
use areo_client::{Client, ClusterStatus, DomainInfo, ROOT_DOMAIN, ServerHealth};
use areo_steward::records::{DomainRecord, Observer};
use areo_steward::signal::{Sample, ServerSample, Syncs, ViewSample};
use areo_telemetry::admin;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;

/// The numbers that the admin port of a server shows.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    /// Other servers, and true for those that are connected. An idle one is not shown.
    peers: BTreeMap<String, bool>,
    corrupted: Option<u64>,
    syncs: Syncs,
    /// The age of a sync that has not ended.
    sync_running_ms: u64,
    /// Bytes of its file system, and those that are left; 0: not known.
    disk_bytes: u64,
    free_bytes: u64,
}

impl Shown {
    /// Bytes in use on its disk.
    fn used_bytes(&self) -> Option<u64> {
        (self.disk_bytes > 0).then(|| self.disk_bytes.saturating_sub(self.free_bytes))
    }
}

/// The cluster as of now, within about this time. A server whose admin port does not answer has no view.
///
/// # Errors
/// The domains cannot be listed: a change would be judged by some of them, and made in all.
pub(super) async fn sample(client: &Client, patience: Duration) -> Outcome<Sample> {
    let status = client.status_within(patience).await;
    if let Err(error) = &status.domains {
        return Err(failure(error.clone()));
    }
    let ask = status.servers.iter().map(async |it| {
        let text = admin::get(&it.server.admin, "/metrics", patience).await;
        text.map(|text| parse(&text)).ok()
    });
    let shown = join_all(ask).await;
    let mut sample = Sample {
        domains: status
            .all_domains()
            .iter()
            .map(|it| domain(&status, it))
            .collect(),
        ..Sample::default()
    };
    for (health, shown) in status.servers.iter().zip(shown) {
        let answered = health.status.answered();
        sample.views.push(ViewSample {
            observer: Observer::Instance,
            server: health.server.name.clone(),
            is_reachable: answered.is_some(),
            answer_ms: None,
        });
        let peers = shown.iter().flat_map(|it| &it.peers);
        sample
            .views
            .extend(peers.map(|(server, is_reachable)| ViewSample {
                observer: Observer::Server(health.server.name.clone()),
                server: server.clone(),
                is_reachable: *is_reachable,
                answer_ms: None,
            }));
        sample.servers.push(ServerSample {
            name: health.server.name.clone(),
            serves: answered.is_some_and(|it| it.serving),
            leaving: health.server.leaving,
            corrupted: shown.as_ref().and_then(|it| it.corrupted),
            syncs: shown.as_ref().map(|it| it.syncs),
            sync_running_ms: shown.as_ref().map_or(0, |it| it.sync_running_ms),
            stored_bytes: answered.map(|it| it.stored_bytes),
            is_full: health.is_full(),
            used_bytes: shown.as_ref().and_then(Shown::used_bytes),
            capacity_bytes: shown.as_ref().map_or(0, |it| it.disk_bytes),
            ..ServerSample::default()
        });
    }
    Ok(sample)
}

fn domain(status: &ClusterStatus, domain: &DomainInfo) -> DomainRecord {
    let (health, c) = (status.health_of(domain), &domain.configuration);
    let is_member = |it: &&ServerHealth| c.members.iter().any(|m| m.id == it.server.id);
    let members = status.servers.iter().filter(is_member);
    let bytes = members.filter_map(|it| share(it, health.objects?));
    DomainRecord {
        name: domain.name.clone(),
        members: c.members.iter().map(|it| it.name.clone()).collect(),
        k: c.shape.k(),
        is_replicated: c.shape.k() == 1,
        grows: domain.name == ROOT_DOMAIN,
        // The status does not ask the root domain for its way. Of another one that did not show its way a change may be pending.
        is_pending: match &domain.pending {
            Some(pending) => !pending.is_empty(),
            None => domain.name != ROOT_DOMAIN,
        },
        objects: health.objects.unwrap_or(0),
        member_bytes: bytes.max().unwrap_or(0),
        // One object may lack an element at several members.
        below: health.missing.values().copied().max().unwrap_or(0),
        below_since_ms: None,
    }
}

/// The bytes of a domain at one member, by its part of the member's objects: servers do not count the bytes of each domain.
fn share(member: &ServerHealth, objects: u64) -> Option<u64> {
    let status = member.status.answered()?;
    let part = u128::from(status.element_bytes) * u128::from(objects.min(status.objects));
    u64::try_from(part / u128::from(status.objects.max(1))).ok()
}

fn parse(metrics: &str) -> Shown {
    let mut shown = Shown::default();
    for sample in admin::samples(metrics) {
        match sample.name {
            "areo_store_corrupted_elements_total" => shown.corrupted = sample.value.parse().ok(),
            "areo_store_sync_running_seconds" => {
                let age = Duration::try_from_secs_f64(fraction(sample.value));
                shown.sync_running_ms = age.map_or(0, |it| it.as_millis() as u64);
            }
            "areo_server_disk_bytes" => shown.disk_bytes = number(sample.value),
            "areo_server_disk_free_bytes" => shown.free_bytes = number(sample.value),
            "areo_server_peers" if sample.value != "0" => {
                if let (Some(server), Some(state)) = (sample.label("server"), sample.label("state"))
                {
                    shown.peers.insert(server, state == "connected");
                }
            }
            name => match name.strip_prefix("areo_store_sync_seconds") {
                Some("_count") => shown.syncs.count = number(sample.value),
                Some("_sum") => shown.syncs.seconds = fraction(sample.value),
                _ => {}
            },
        }
    }
    shown
}

/// A count; what is none counts as 0.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// A number with fractions; what is none counts as 0.
fn fraction(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_of_a_server_are_read_from_its_metrics() {
        let text = "\
# TYPE areo_server_peers gauge
areo_server_peers{server=\"s1\",state=\"connected\"} 1
areo_server_peers{server=\"s1\",state=\"unreachable\"} 0
areo_server_peers{server=\"s2\",state=\"connected\"} 0
areo_server_peers{server=\"s2\",state=\"connecting\"} 1
areo_server_peers{server=\"s3\",state=\"connected\"} 0
areo_server_peers{server=\"a\\\"b\\\\\",state=\"connected\"} 1
areo_store_corrupted_elements_total 3
areo_store_sync_seconds_sum 1.5
areo_store_sync_seconds_count 30
areo_store_sync_running_seconds 21.25
areo_server_disk_bytes 1000
areo_server_disk_free_bytes 150
areo_server_serving 1
";
        let shown = parse(text);
        assert_eq!(shown.corrupted, Some(3));
        let syncs = Syncs {
            count: 30,
            seconds: 1.5,
        };
        assert_eq!((shown.syncs, shown.sync_running_ms), (syncs, 21_250));
        assert_eq!((shown.disk_bytes, shown.used_bytes()), (1000, Some(850)));
        assert_eq!(Shown::default().used_bytes(), None);
        let peers: Vec<_> = shown
            .peers
            .iter()
            .map(|(name, it)| (name.as_str(), *it))
            .collect();
        assert_eq!(peers, [("a\"b\\", true), ("s1", true), ("s2", false)]);
        assert_eq!(parse("no metrics"), Shown::default());
    }
}
