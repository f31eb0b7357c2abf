//! The cluster as this server sees it: of each domain, which members serve, and which of them have room for writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use areo_client::ROOT_DOMAIN as ROOT;
use areo_core::config::{Configuration, Members, ServerId};
use areo_core::dsm::Client;
use areo_core::gather::survey_for;
use areo_core::message::{Reply, Request, ServerRecord, ServerStatus};
use areo_net::env::NetEnv;
use serde_json::{Value, json};

/// The longest time for one question.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// The longest wait for silent servers if the other servers are quorums.
const SHORT: Duration = Duration::from_millis(500);
/// The additional wait for silent servers if the other servers are no quorums.
const REST: Duration = Duration::from_millis(1500);
/// The pause between two looks for the metrics.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);

/// Domains with their latest final configurations, by name.
pub(crate) type Domains = Vec<(String, Arc<Configuration>)>;

/// The state of the cluster, for `/health/cluster`.
pub(crate) struct ClusterHealth {
    /// A quorum of the root domain and of every domain serves, and has room for writes.
    pub(crate) ready: bool,
    /// An object, as JSON.
    pub(crate) text: String,
}

impl ClusterHealth {
    /// The answer of a server that does not serve itself, and so knows nothing of others.
    pub(crate) fn unknown() -> ClusterHealth {
        ClusterHealth::of(false, &[])
    }

    fn of(ready: bool, domains: &[Value]) -> ClusterHealth {
        let text = json!({ "ready": ready, "domains": domains }).to_string();
        ClusterHealth { ready, text }
    }
}

/// The state of one domain, according to its members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DomainView {
    /// Its name; that of the root domain is `@root`.
    pub(crate) domain: String,
    /// The index of its configuration.
    pub(crate) configuration: u32,
    /// Servers of the configuration.
    pub(crate) members: usize,
    /// Members that an operation needs.
    pub(crate) quorum: usize,
    /// Members that answer and serve.
    pub(crate) serving: usize,
    /// Servers among them whose disks have no room for users' writes.
    pub(crate) full: Vec<ServerId>,
}

impl DomainView {
    fn new(domain: String, c: &Configuration, statuses: &Statuses) -> DomainView {
        let status = |id: &ServerId| Some((*id, statuses.get(id)?)).filter(|(_, it)| it.serving);
        let serving = c.members().iter().filter_map(status);
        let full = serving.clone().filter(|(_, status)| status.full);
        DomainView {
            domain,
            configuration: c.id().index,
            members: c.n(),
            quorum: c.quorums().quorum(),
            serving: serving.count(),
            full: full.map(|(id, _)| id).collect(),
        }
    }

    /// True if a quorum serves.
    pub(crate) fn serves(&self) -> bool {
        self.serving >= self.quorum
    }

    /// True if a quorum serves and has room for writes.
    pub(crate) fn takes_writes(&self) -> bool {
        self.serving >= self.quorum + self.full.len()
    }

    /// True if a quorum serves, and writes fail for want of room.
    pub(crate) fn lacks_room(&self) -> bool {
        self.serves() && !self.takes_writes()
    }

    fn json(&self, servers: &BTreeMap<ServerId, ServerRecord>) -> Value {
        let name = |id: &ServerId| match servers.get(id) {
            Some(record) => record.name.clone(),
            None => id.to_string(),
        };
        json!({
            "domain": self.domain,
            "configuration": self.configuration,
            "servers": self.members,
            "quorum": self.quorum,
            "serving": self.serving,
            "serves": self.serves(),
            "writes": self.takes_writes(),
            "full": self.full.iter().map(name).collect::<Vec<_>>(),
        })
    }
}

/// The statuses that servers reported, by server.
type Statuses = BTreeMap<ServerId, ServerStatus>;

/// The cluster as this server sees it.
pub(crate) struct ClusterView {
    /// The root domain, and the domains that are known.
    pub(crate) domains: Vec<DomainView>,
    /// The root domain says which domains there are.
    is_complete: bool,
}

impl ClusterView {
    /// The answer to `/health/cluster`.
    pub(crate) fn health(&self, servers: &BTreeMap<ServerId, ServerRecord>) -> ClusterHealth {
        let all_work = self.domains.iter().all(DomainView::takes_writes);
        let domains: Vec<Value> = self.domains.iter().map(|it| it.json(servers)).collect();
        ClusterHealth::of(self.is_complete && all_work, &domains)
    }
}

/// Asks the root domain which domains there are, or takes those that were `known`, and asks each of their members how it is, once.
///
/// `env` makes the world of one question. Each question has a deadline of its own: a root domain without a quorum takes all the time of
/// its question, and the members of other domains are still to be heard.
pub(crate) async fn look(
    client: &Client<NetEnv>,
    env: impl Fn() -> NetEnv,
    root: &Arc<Configuration>,
    known: &mut Domains,
) -> ClusterView {
    let domains = client.with(env()).root(root).domains().await;
    let is_complete = domains.is_ok();
    if let Ok(domains) = domains {
        *known = domains;
    }
    let root = client.sequences().start(root);
    let named = [(ROOT.to_owned(), root)];
    let all: Domains = named.into_iter().chain(known.iter().cloned()).collect();
    let members = all.iter().flat_map(|(_, c)| c.members().iter().copied());
    let mut silent: BTreeSet<ServerId> = members.collect();
    let mut statuses = Statuses::new();
    let mut views = Vec::new();
    // Silent servers are waited for where they decide something.
    for patience in [SHORT, REST] {
        ask(&env(), &mut silent, &mut statuses, patience).await;
        let view =
            |(name, c): &(String, Arc<Configuration>)| DomainView::new(name.clone(), c, &statuses);
        views = all.iter().map(view).collect();
        if silent.is_empty() || views.iter().all(DomainView::takes_writes) {
            break;
        }
    }
    ClusterView {
        domains: views,
        is_complete,
    }
}

/// Moves those that answer in time from the one to the other.
async fn ask(
    env: &NetEnv,
    silent: &mut BTreeSet<ServerId>,
    statuses: &mut Statuses,
    patience: Duration,
) {
    let members: Members = silent.iter().copied().collect();
    let replies = survey_for(env, &members, Request::Status, Some(patience)).await;
    for (id, reply) in members.iter().zip(replies) {
        if let Some(Reply::Status(status)) = reply {
            silent.remove(id);
            statuses.insert(*id, *status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::config::{Dap, Descriptor};
    use areo_core::object::DomainId;

    fn view(n: u128, k: u8, serving: u128, full: u128) -> DomainView {
        let members = (1..=n).map(ServerId).collect();
        let descriptor = Descriptor::new(DomainId(7), members, Dap::Ec { k });
        let c = Configuration::new(descriptor).expect("it tolerates a crash");
        let status = |id| {
            let status = ServerStatus {
                serving: id <= serving,
                full: id <= full,
                ..ServerStatus::default()
            };
            (ServerId(id), status)
        };
        // The last server is silent, and another one is no member.
        let all = (1..n).chain([n + 1]).map(status);
        DomainView::new("d".into(), &c, &all.collect())
    }

    #[test]
    fn a_domain_works_with_a_quorum_that_has_room() {
        let works = |view: DomainView| (view.serving, view.serves(), view.takes_writes());
        assert_eq!(works(view(5, 3, 4, 0)), (4, true, true));
        assert_eq!(works(view(5, 3, 3, 0)), (3, false, false));
        assert_eq!(works(view(5, 3, 4, 1)), (4, true, false));
        assert_eq!(works(view(3, 1, 2, 0)), (2, true, true));
        assert_eq!(works(view(3, 1, 2, 1)), (2, true, false));
    }

    #[test]
    fn the_answer_names_servers_without_room() {
        let seen = ClusterView {
            domains: vec![view(3, 1, 2, 1)],
            is_complete: true,
        };
        let record = ServerRecord {
            name: "s1".into(),
            ..ServerRecord::at_address(ServerId(1), String::new())
        };
        let health = seen.health(&BTreeMap::from([(ServerId(1), record)]));
        assert!(!health.ready, "writes fail");
        let answer: Value = serde_json::from_str(&health.text).expect("it is JSON");
        assert_eq!(
            answer["domains"][0],
            json!({
                "domain": "d", "configuration": 0, "servers": 3, "quorum": 2, "serving": 2, "serves": true, "writes": false,
                "full": ["s1"],
            })
        );
    }
}
