//! One look at a cluster: the status of its servers and domains, and the views that servers have of each other and of their disks.

use crate::exit::Outcome;
use crate::session::failure;
use areo_client::{
    CLASS, Client, ClusterStatus, DomainInfo, Maintenance, ROOT_DOMAIN, ServerHealth, ServerId,
    ServerInfo, ServerView,
};
use areo_steward::records::{DomainRecord, Observer};
use areo_steward::signal::{Sample, ServerSample, Syncs, ViewSample};
use std::collections::BTreeMap;
use std::time::Duration;

/// The cluster as of now, within about this time. A server that does not answer has no view.
///
/// # Errors
/// The domains cannot be listed: a change would be judged by some of them, and made in all.
pub(super) async fn sample(client: &Client, patience: Duration, now_ms: u64) -> Outcome<Sample> {
    let (status, views) = tokio::join!(
        client.status_within(patience),
        client.views_within(patience)
    );
    if let Err(error) = &status.domains {
        return Err(failure(error.clone()));
    }
    let domains = status.all_domains();
    let mut sample = Sample {
        domains: domains.iter().map(|it| domain(&status, it)).collect(),
        ..servers(&status.servers, &views)
    };
    for (it, health) in sample.servers.iter_mut().zip(&status.servers) {
        note_labels(it, &health.server, now_ms);
    }
    Ok(sample)
}

/// Notes what operators say of a server. Its maintenance is judged by the clock of this instance.
fn note_labels(sample: &mut ServerSample, server: &ServerInfo, now_ms: u64) {
    let maintenance = server.maintenance.as_ref().filter(|it| it.holds(now_ms));
    sample.zone = server.zone().map(ToOwned::to_owned);
    sample.class = server.labels.get(CLASS).cloned();
    sample.to_empty = server.is_to_empty();
    sample.maintenance = maintenance.map(Maintenance::until);
}

/// The servers and their views. Servers that the cluster does not know are left out of a view.
fn servers(servers: &[ServerHealth], views: &BTreeMap<ServerId, ServerView>) -> Sample {
    let mut sample = Sample::default();
    let name_of = |id: ServerId| servers.iter().find(|it| it.server.id == id);
    for health in servers {
        let (server, answered) = (&health.server, health.status.answered());
        let view = views.get(&server.id);
        sample.views.push(ViewSample {
            observer: Observer::Instance,
            server: server.name.clone(),
            is_reachable: answered.is_some(),
            answer_ms: None,
        });
        for peer in view.iter().flat_map(|it| &it.peers) {
            if let Some(seen) = name_of(peer.server) {
                sample.views.push(ViewSample {
                    observer: Observer::Server(server.name.clone()),
                    server: seen.server.name.clone(),
                    is_reachable: peer.is_connected,
                    answer_ms: None,
                });
            }
        }
        sample.servers.push(ServerSample {
            name: server.name.clone(),
            serves: answered.is_some_and(|it| it.serving),
            leaving: server.leaving,
            incarnation: Some(health.incarnation()),
            stored_bytes: answered.map(|it| it.stored_bytes),
            is_full: health.is_full(),
            ..seen_by_itself(view)
        });
    }
    sample
}

/// The part of a sample that is the view of a server itself.
fn seen_by_itself(view: Option<&ServerView>) -> ServerSample {
    let Some(view) = view else {
        return ServerSample::default();
    };
    let used = view.disk_bytes.saturating_sub(view.disk_free_bytes);
    ServerSample {
        corrupted: Some(view.corrupted),
        syncs: Some(Syncs {
            count: view.syncs,
            seconds: Duration::from_micros(view.sync_us).as_secs_f64(),
        }),
        sync_running_ms: view.sync_running_ms.unwrap_or(0),
        used_bytes: (view.disk_bytes > 0).then_some(used),
        capacity_bytes: view.disk_bytes,
        ..ServerSample::default()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{Health, PeerView, ServerStatus};

    fn server(name: &str, id: u128) -> ServerHealth {
        ServerHealth {
            server: ServerInfo {
                name: name.into(),
                id: ServerId(id),
                address: String::new(),
                admin: String::new(),
                incarnation: 1,
                leaving: false,
                version: String::new(),
                level: 0,
                labels: BTreeMap::new(),
                maintenance: None,
            },
            status: Health::Unreachable {
                reason: "timed out".into(),
            },
            domains: None,
        }
    }

    #[test]
    fn the_views_of_servers_are_read_by_their_names() {
        let mut full = server("s1", 1);
        full.status = Health::Answered(ServerStatus {
            serving: true,
            stored_bytes: 70,
            full: true,
            ..ServerStatus::default()
        });
        let peer = |id, is_connected| PeerView {
            server: ServerId(id),
            is_connected,
        };
        let view = ServerView {
            peers: vec![peer(2, false), peer(3, true), peer(4, true)],
            syncs: 30,
            sync_us: 1_500_000,
            sync_running_ms: Some(21_250),
            disk_bytes: 1000,
            disk_free_bytes: 150,
            corrupted: 3,
        };
        let known = [full, server("s2", 2), server("s3", 3)];
        let sample = servers(&known, &[(ServerId(1), view)].into());
        let expected = ServerSample {
            name: "s1".into(),
            serves: true,
            incarnation: Some(0),
            corrupted: Some(3),
            syncs: Some(Syncs {
                count: 30,
                seconds: 1.5,
            }),
            sync_running_ms: 21_250,
            stored_bytes: Some(70),
            is_full: true,
            used_bytes: Some(850),
            capacity_bytes: 1000,
            ..ServerSample::default()
        };
        assert_eq!(sample.servers[0], expected);
        let silent = ServerSample {
            name: "s2".into(),
            incarnation: Some(1),
            ..ServerSample::default()
        };
        assert_eq!(sample.servers[1], silent);
        let by = |observer: &Observer| {
            let views = sample.views.iter().filter(|it| it.observer == *observer);
            let views = views.map(|it| (it.server.clone(), it.is_reachable));
            views.collect::<Vec<_>>()
        };
        let seen = |name: &str, is_reachable| (name.to_owned(), is_reachable);
        assert_eq!(
            by(&Observer::Server("s1".into())),
            [seen("s2", false), seen("s3", true)],
            "4 is no server of the cluster"
        );
        assert_eq!(
            by(&Observer::Instance),
            [seen("s1", true), seen("s2", false), seen("s3", false)]
        );
    }

    #[test]
    fn a_disk_of_unknown_size_is_not_used() {
        let sample = seen_by_itself(Some(&ServerView::default()));
        assert_eq!((sample.used_bytes, sample.capacity_bytes), (None, 0));
    }
}
