//! The status of a cluster: its servers, its domains, and both in short.

use super::{ClusterId, ConfigurationInfo, DomainInfo, Maintenance, Member, ServerInfo};
use crate::error::Error;
use crate::view;
use areo_core::config::ServerId;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// The health of a domain, put together from the reports of its servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainHealth {
    /// Members of its final configuration that answer and serve.
    pub serving: usize,
    /// A quorum of every configuration in use serves: reads and writes succeed, writes if there is room.
    pub serves: bool,
    /// A quorum of every configuration in use serves and has room for writes.
    pub writes: bool,
    /// Members whose disks have no room for writes, by name.
    pub full: Vec<String>,
    /// Objects, tombstones included; `None` if no server has counted them since its start.
    pub objects: Option<u64>,
    /// Elements that servers lack, as far as these know, by the names of the servers; none that lacks nothing.
    pub missing: BTreeMap<String, u64>,
    /// Servers that do not answer, or have not gone over the objects since their start, by name.
    pub not_proven: Vec<String>,
    /// The time since the last of them went over the objects; `None` if one has not.
    pub proven_seconds: Option<u64>,
    /// The longest time, at most, since a server verified one of its records; `None` if that is not known of each server with a
    /// disk, or none has a disk.
    pub unscrubbed_seconds: Option<u64>,
    /// Servers without which the counters of some objects cannot be restarted, by name: they are silent, and others wait for them.
    pub waits_for: Vec<String>,
}

pub use areo_core::message::ServerStatus;

/// The state of a cluster, as far as this client can see.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Id of the cluster.
    pub cluster: ClusterId,
    /// The root domain. Whether a change of it is pending is not asked.
    pub root: DomainInfo,
    /// The root domain tolerates no crash: one sentence, with the remedy.
    pub root_warning: Option<String>,
    /// The level up to which the cluster is finalized ([`crate::Client::finalize`]).
    pub level: u32,
    /// The level that a program must know for a server of it to be started. Above `level`: finalizing was begun, and did not come to its end.
    pub required_level: u32,
    /// The servers, in order of their names.
    pub servers: Vec<ServerHealth>,
    /// The domains, by name; or why they cannot be listed. Bytes stored per byte written are those of their shapes.
    pub domains: Result<Vec<DomainInfo>, Error>,
}

/// A cluster in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterSummary {
    /// Id of the cluster.
    #[serde(serialize_with = "view::text")]
    pub cluster: ClusterId,
    /// Number of servers in the directory.
    pub servers: usize,
    /// Servers that answer and serve.
    pub serving: usize,
    /// The level up to which the cluster is finalized.
    pub level: u32,
    /// The level that a program must know for a server of it to be started.
    pub required_level: u32,
    /// Answers that an operation on domains and servers needs.
    pub root_quorum: usize,
    /// The root domain tolerates no crash: one sentence, with the remedy.
    pub root_warning: Option<String>,
    /// Fragments and copies of values, on the servers that answered.
    pub element_bytes: u64,
    /// The size of their stores.
    pub stored_bytes: u64,
    /// Tombstones of objects that users deleted, on the servers that answered.
    pub tombstones: u64,
    /// For how long the oldest change of a domain has been pending, as far as the servers know; `None` without one.
    pub pending_seconds: Option<u64>,
    /// Elements that servers lack, as far as those know that answered.
    pub lacking: u64,
    /// The time since the last of the servers went over all its objects; `None` if one has not since its start, or does not answer.
    pub proven_seconds: Option<u64>,
    /// Domains without a quorum that serves, by name; the root domain is `@root`. Of domains that are not known nothing is said.
    pub without_quorum: Vec<String>,
    /// Domains in which writes fail, though a quorum serves, because disks are full.
    pub without_room: Vec<String>,
}

impl ClusterStatus {
    /// The root domain, and the domains that are known.
    pub fn all_domains(&self) -> Vec<DomainInfo> {
        let known = self.domains.iter().flatten().cloned();
        std::iter::once(self.root.clone()).chain(known).collect()
    }

    /// The cluster in short.
    pub fn summary(&self) -> ClusterSummary {
        let domains = self.all_domains();
        let health = domains
            .iter()
            .map(|it| (it.name.clone(), self.health_of(it)));
        let health: Vec<_> = health.collect();
        let named = |is_so: fn(&DomainHealth) -> bool| {
            let those = health.iter().filter(|(_, it)| is_so(it));
            those.map(|(name, _)| name.clone()).collect()
        };
        ClusterSummary {
            without_quorum: named(|it| !it.serves),
            without_room: named(|it| it.serves && !it.writes),
            cluster: self.cluster,
            servers: self.servers.len(),
            serving: self.serving(),
            level: self.level,
            required_level: self.required_level,
            root_quorum: self.root.configuration.shape.quorum(),
            root_warning: self.root_warning.clone(),
            element_bytes: self.element_bytes(),
            stored_bytes: self.stored_bytes(),
            tombstones: self.answered().map(|status| status.tombstones).sum(),
            pending_seconds: self.oldest_pending().map(|age| age.as_secs()),
            lacking: self.lacking(),
            proven_seconds: self.proven().map(|age| age.as_secs()),
        }
    }

    /// Adds the members of domains that are in no directory: servers in memory that have ended, so that another one has taken
    /// their place there.
    pub(crate) fn add_unregistered(&mut self) {
        let domains = self.domains.iter().flatten();
        let of_domain = |domain: &DomainInfo| {
            let pending = domain.pending.iter().flatten();
            let all = pending.chain([&domain.configuration]);
            all.flat_map(|c| c.members.clone()).collect::<Vec<_>>()
        };
        let members = domains.flat_map(of_domain);
        let members: Vec<Member> = members
            .chain(self.root.configuration.members.clone())
            .collect();
        for member in members.into_iter().filter(|it| it.address.is_none()) {
            if self.servers.iter().any(|it| it.server.id == member.id) {
                continue;
            }
            self.servers.push(ServerHealth {
                server: ServerInfo {
                    name: member.name,
                    id: member.id,
                    address: String::new(),
                    admin: String::new(),
                    incarnation: 0,
                    leaving: false,
                    version: String::new(),
                    level: 0,
                    labels: BTreeMap::new(),
                    maintenance: None,
                },
                status: Health::unreachable(Some("not registered".into())),
                domains: None,
            });
        }
    }

    /// Counts for each server how many domains need it.
    pub(crate) fn count_domains(&mut self) {
        for position in 0..self.servers.len() {
            let needed = self.domains_of(self.servers[position].server.id);
            self.servers[position].domains = needed;
        }
    }

    /// The number of domains that need the server; `None` if not all of them answered.
    fn domains_of(&self, server: ServerId) -> Option<u64> {
        let has = |c: &ConfigurationInfo| c.members.iter().any(|member| member.id == server);
        let mut needed = u64::from(has(&self.root.configuration));
        for domain in self.domains.as_ref().ok()? {
            let pending = domain.pending.as_ref()?;
            let needs = has(&domain.configuration) || pending.iter().any(has);
            needed += u64::from(needs);
        }
        Some(needed)
    }

    /// Servers that answer and serve.
    pub fn serving(&self) -> usize {
        self.answered().filter(|status| status.serving).count()
    }

    /// Elements that servers lack, as far as those know that answered.
    pub(super) fn lacking(&self) -> u64 {
        self.answered().map(|status| status.lacking).sum()
    }

    /// Bytes of all elements on the servers that answered: fragments and copies of values, without the overhead of
    /// the store.
    pub fn element_bytes(&self) -> u64 {
        self.answered().map(|status| status.element_bytes).sum()
    }

    /// Bytes that the stores of the servers that answered take.
    pub fn stored_bytes(&self) -> u64 {
        self.answered().map(|status| status.stored_bytes).sum()
    }

    /// For how long the oldest change has been pending that a domain shows, to a millisecond, as far as servers know that
    /// did not start since then. `None` if no domain shows one.
    pub fn oldest_pending(&self) -> Option<Duration> {
        let mut domains = self.domains.iter().flatten();
        let shows = |domain: &DomainInfo| domain.pending.as_ref().is_some_and(|p| !p.is_empty());
        if !domains.any(shows) {
            return None;
        }
        // One that was away when a change ended may still take it for pending: it counts only beside a real one.
        let ages = self.answered().filter(|status| status.pending > 0);
        ages.map(|status| Duration::from_millis(status.pending_ms))
            .max()
    }

    /// The time since the last of the servers went over all its objects; `None` if one has not since its start, or does not answer. A server that no
    /// domain needs has none.
    pub fn proven(&self) -> Option<Duration> {
        let needed = self.servers.iter().filter(|it| it.domains != Some(0));
        let mut oldest = Duration::ZERO;
        for server in needed {
            let ms = server.status.answered()?.proven_ms?;
            oldest = oldest.max(Duration::from_millis(ms));
        }
        Some(oldest)
    }

    /// The sentence of a server that refused this client, if one did: the key lacks the grant `status`.
    pub fn unauthorised(&self) -> Option<&str> {
        self.servers.iter().find_map(|server| match &server.status {
            Health::Unreachable { reason } if reason.starts_with(Health::NOT_AUTHORISED) => {
                Some(reason.as_str())
            }
            _ => None,
        })
    }

    fn answered(&self) -> impl Iterator<Item = &ServerStatus> {
        self.servers
            .iter()
            .filter_map(|health| health.status.answered())
    }
}

/// The state of one server. Serialised in one object, with `null` for everything that a silent server did not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// The server as the directory knows it.
    pub server: ServerInfo,
    /// Its answer to a status request.
    pub status: Health,
    /// Domains that have it in their final or in a pending configuration, the root domain included. A server of none can be
    /// stopped for good. `None` if not all domains answered.
    pub domains: Option<u64>,
}

impl ServerHealth {
    /// `serving`, `starting`, `incomplete` if its log lacks records, or why it did not answer.
    pub fn state(&self) -> &str {
        match &self.status {
            Health::Answered(status) if status.serving => "serving",
            Health::Answered(status) if status.incomplete => "incomplete",
            Health::Answered(_) => "starting",
            Health::Unreachable { reason } => reason,
        }
    }

    /// It says that its disk has no room for writes.
    pub fn is_full(&self) -> bool {
        self.status.answered().is_some_and(|status| status.full)
    }

    /// Number of the server's current start: its own answer, or the directory's record of a silent server.
    pub fn incarnation(&self) -> u64 {
        let status = self.status.answered();
        status.map_or(self.server.incarnation, |status| status.incarnation)
    }
}

impl Serialize for ServerHealth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Parts<'a> {
            server: &'a str,
            id: String,
            address: &'a str,
            admin: &'a str,
            state: &'a str,
            incarnation: u64,
            durable: Option<bool>,
            objects: Option<u64>,
            damaged: Option<u64>,
            lacking: Option<u64>,
            proven_seconds: Option<u64>,
            element_bytes: Option<u64>,
            stored_bytes: Option<u64>,
            tombstones: Option<u64>,
            full: Option<bool>,
            domains: Option<u64>,
            leaving: bool,
            version: &'a str,
            level: u32,
            labels: &'a BTreeMap<String, String>,
            maintenance: Option<&'a Maintenance>,
        }
        let (server, status) = (&self.server, self.status.answered());
        let parts = Parts {
            server: &server.name,
            id: server.id.to_string(),
            address: &server.address,
            admin: &server.admin,
            state: self.state(),
            incarnation: self.incarnation(),
            durable: status.map(|status| status.durable),
            objects: status.map(|status| status.objects),
            damaged: status.map(|status| status.damaged),
            lacking: status.map(|status| status.lacking),
            proven_seconds: status
                .and_then(|status| status.proven_ms)
                .map(|ms| ms / 1000),
            element_bytes: status.map(|status| status.element_bytes),
            stored_bytes: status.map(|status| status.stored_bytes),
            tombstones: status.map(|status| status.tombstones),
            full: status.map(|status| status.full),
            domains: self.domains,
            leaving: server.leaving,
            version: &server.version,
            level: server.level,
            labels: &server.labels,
            maintenance: server.maintenance.as_ref(),
        };
        parts.serialize(serializer)
    }
}

/// The answer of a server, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does; so it is.
    Answered(ServerStatus),
    /// The server does not answer.
    Unreachable {
        /// Why, as far as it is known: `connection refused`, `timed out`, `is another server`, ...
        reason: String,
    },
}

impl Health {
    /// Why a server did not answer that is connected and said nothing in time.
    pub const SILENT: &str = "timed out";
    /// The beginning of the reason of a server that refused this client.
    const NOT_AUTHORISED: &str = "not authorised: ";

    /// The health of a server that gave no status: the error of its connection, or that it was too late.
    pub(crate) fn unreachable(reason: Option<String>) -> Health {
        let reason = reason.unwrap_or_else(|| Health::SILENT.into());
        Health::Unreachable { reason }
    }

    /// The state of a server that refused this client with this sentence.
    pub(crate) fn unauthorised(sentence: &str) -> Health {
        let reason = format!("{}{sentence}", Health::NOT_AUTHORISED);
        Health::Unreachable { reason }
    }

    /// The status that the server gave.
    pub fn answered(&self) -> Option<&ServerStatus> {
        match self {
            Health::Answered(status) => Some(status),
            Health::Unreachable { .. } => None,
        }
    }
}
