//! The cluster as a client sees it: servers, configurations, how everything is.

use crate::experimental::Experimental;
use crate::reconfig_kind::ReconfigKind;
use crate::shape::Shape;
use crate::view;
use areo_core::config::{Configuration, Decider, ServerId};
use areo_core::message::{Levels, ServerRecord};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

mod domain_health;
mod labels;
mod problems;
mod redundancy;
mod room;
mod status;
mod versions;

use labels::EMPTY;
pub(crate) use labels::ZONE;
pub use labels::{CLASS, InvalidLabel, LabelChange, Maintenance};
pub use problems::Problem;
pub use room::{DomainWithoutRoom, ROOT_DOMAIN, show_domain, show_lack_of_room};
pub use status::{ClusterStatus, ClusterSummary, DomainHealth, Health, ServerHealth, ServerStatus};

/// A cluster: a random number, drawn when its first servers are made. Shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u128);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no id of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not the id of a cluster: those have 32 hexadecimal digits and are not 0")]
pub struct InvalidClusterId {
    /// The text that was given.
    pub text: String,
}

impl FromStr for ClusterId {
    type Err = InvalidClusterId;

    fn from_str(text: &str) -> Result<ClusterId, InvalidClusterId> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16);
        match number {
            Ok(number) if digits && number != 0 => Ok(ClusterId(number)),
            _ => Err(InvalidClusterId { text: text.into() }),
        }
    }
}

/// A server as the cluster's directory knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// The name that people use; serialised as `server`.
    #[serde(rename = "server")]
    pub name: String,
    /// Its id, which never changes.
    #[serde(serialize_with = "view::text")]
    pub id: ServerId,
    /// The address at which it listens for clients, host and port.
    pub address: String,
    /// The address of its admin port.
    pub admin: String,
    /// Number of the server's current start.
    pub incarnation: u64,
    /// It is to go: nothing that chooses servers chooses it.
    pub leaving: bool,
    /// The version of the program of its last start; empty of one that did not say.
    pub version: String,
    /// The largest level of a cluster that this program knows.
    pub level: u32,
    /// Labels that operators gave it, by key.
    pub labels: BTreeMap<String, String>,
    /// The last maintenance of it, which may be over.
    pub maintenance: Option<Maintenance>,
}

impl ServerInfo {
    /// It is labelled as one that is to be emptied.
    pub fn is_to_empty(&self) -> bool {
        self.labels.contains_key(EMPTY)
    }

    /// The zone that it is labelled with.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get(ZONE).map(String::as_str)
    }
}

impl From<&ServerRecord> for ServerInfo {
    fn from(record: &ServerRecord) -> ServerInfo {
        ServerInfo {
            id: record.id,
            name: record.name.clone(),
            address: record.address.clone(),
            admin: record.admin.clone(),
            incarnation: record.incarnation,
            leaving: record.is_leaving(),
            version: record.program.version.clone(),
            level: record.program.level,
            labels: labels::shown(&record.labels),
            maintenance: labels::maintenance(&record.labels),
        }
    }
}

/// One configuration of a domain. Serialised in one object with its shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigurationInfo {
    /// Its index in the domain's sequence, from 0, or the number of changes that led to it from the first one; serialised as
    /// `configuration`.
    #[serde(rename = "configuration")]
    pub index: u32,
    /// Algorithm, n, k, and what follows from them.
    #[serde(flatten)]
    pub shape: Shape,
    /// Slack of erasure-coded lists.
    pub delta: u16,
    /// Largest value in bytes that is kept as full copies; serialised as `copy_limit_bytes`.
    #[serde(rename = "copy_limit_bytes")]
    pub copy_bytes: u32,
    /// The decider of the next configuration; serialised as `consensus`.
    #[serde(rename = "consensus", serialize_with = "view::text")]
    pub decided_by: Decider,
    /// The way in which the domain is reconfigured.
    pub reconfig: ReconfigKind,
    /// Name of the server that makes posted changes, if one leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Options of experiments; serialised as a list of settings.
    #[serde(serialize_with = "settings")]
    pub experimental: Experimental,
    /// Its members, in order; serialised as `servers`.
    #[serde(rename = "servers")]
    pub members: Vec<Member>,
}

/// A member of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its name; the beginning of its id if the directory does not know it.
    pub name: String,
    /// Id of the server.
    #[serde(serialize_with = "view::text")]
    pub id: ServerId,
    /// The address at which it listens, if the directory knows it.
    pub address: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn settings<S: Serializer>(experimental: &Experimental, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(experimental.settings())
}

/// One configuration of a domain's sequence. Serialised in one object, with `status` finalized or pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SequenceEntry {
    /// It has the state of its predecessors; otherwise it is pending.
    #[serde(rename = "status", serialize_with = "status")]
    pub is_final: bool,
    /// The configuration's shape, members and options.
    #[serde(flatten)]
    pub configuration: ConfigurationInfo,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn status<S: Serializer>(is_final: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status_of(*is_final))
}

/// The word for the status of a configuration.
pub(crate) fn status_of(is_final: bool) -> &'static str {
    if is_final { "finalized" } else { "pending" }
}

impl SequenceEntry {
    /// The word for its status: `finalized` or `pending`.
    pub fn status(&self) -> &'static str {
        status_of(self.is_final)
    }
}

/// The configurations of a domain from the last final one on, and which members know which of them to come next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfigurationGraph {
    /// The configurations, each after those that precede it.
    pub nodes: Vec<SequenceEntry>,
    /// The pointers from one to another one.
    pub edges: Vec<Edge>,
}

/// The members of one configuration know that another one comes after it. Both are places among the nodes of their graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The configuration whose members know it.
    pub from: usize,
    /// The configuration that comes after it.
    pub to: usize,
}

/// A domain with its configuration. Serialised in one object with that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainInfo {
    /// Its name; serialised as `domain`.
    #[serde(rename = "domain")]
    pub name: String,
    /// Its random id, as 32 hexadecimal digits: a name that is used again is another domain.
    pub id: String,
    /// Its latest final configuration that is known.
    #[serde(flatten, serialize_with = "finalized")]
    pub configuration: ConfigurationInfo,
    /// The pending ones after it; `None` if that was not asked, or no quorum answered.
    pub pending: Option<Vec<ConfigurationInfo>>,
}

impl DomainInfo {
    /// The final configuration and the pending ones that are known: operations need a quorum of each.
    pub fn in_use(&self) -> impl Iterator<Item = &ConfigurationInfo> {
        let pending = self.pending.iter().flatten();
        std::iter::once(&self.configuration).chain(pending)
    }
}

/// The configuration, with its status.
fn finalized<S: Serializer>(
    configuration: &ConfigurationInfo,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts<'a> {
        status: &'static str,
        #[serde(flatten)]
        configuration: &'a ConfigurationInfo,
    }
    let status = status_of(true);
    let parts = Parts {
        status,
        configuration,
    };
    parts.serialize(serializer)
}

/// The servers that a client knows, by id. Immutable; replaced as a whole when more is learnt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    records: BTreeMap<ServerId, ServerRecord>,
}

impl Names {
    pub(crate) fn new(records: BTreeMap<ServerId, ServerRecord>) -> Names {
        Names { records }
    }

    pub(crate) fn records(&self) -> &BTreeMap<ServerId, ServerRecord> {
        &self.records
    }

    /// The server's name, or the beginning of its id.
    pub(crate) fn name(&self, server: ServerId) -> String {
        match self.records.get(&server) {
            Some(record) => record.name.clone(),
            None => server.to_string()[..8].into(),
        }
    }

    /// The servers that are not forgotten.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &ServerRecord> {
        self.records.values().filter(|it| !it.is_forgotten())
    }

    /// The levels of the cluster, as far as records that this client has seen say.
    pub(crate) fn levels(&self) -> Levels {
        Levels::of(self.records.values())
    }

    /// True if people marked the server as leaving.
    pub(crate) fn is_leaving(&self, server: ServerId) -> bool {
        self.records
            .get(&server)
            .is_some_and(ServerRecord::is_leaving)
    }

    /// All servers in the order in which people count: s2 before s10.
    pub(crate) fn sorted(&self) -> Vec<ServerInfo> {
        let mut servers: Vec<ServerInfo> = self.servers().map(ServerInfo::from).collect();
        servers.sort_by_cached_key(|server| (counting_key(&server.name), server.id));
        servers
    }

    pub(crate) fn configuration(&self, configuration: &Configuration) -> ConfigurationInfo {
        let member = |id: &ServerId| Member {
            id: *id,
            name: self.name(*id),
            address: self.records.get(id).map(|record| record.address.clone()),
        };
        ConfigurationInfo {
            index: configuration.id().index,
            shape: Shape::of(configuration),
            delta: configuration.descriptor().delta,
            copy_bytes: configuration.descriptor().copy_bytes,
            experimental: Experimental::in_options(configuration.options()),
            decided_by: configuration.descriptor().decided_by.clone(),
            reconfig: ReconfigKind::of(configuration),
            leader: configuration.leader().map(|leader| self.name(leader)),
            members: configuration.members().iter().map(member).collect(),
        }
    }

    pub(crate) fn domain(&self, name: &str, configuration: &Configuration) -> DomainInfo {
        DomainInfo {
            name: name.into(),
            id: format!("{:032x}", configuration.descriptor().domain.0),
            configuration: self.configuration(configuration),
            pending: None,
        }
    }
}

/// A name split before the digits at its end.
fn counting_key(name: &str) -> (String, u128, String) {
    let letters = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let number = name[letters.len()..].parse().unwrap_or_default();
    (letters.into(), number, name.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use areo_core::config::{Dap, Descriptor};
    use areo_core::message::{Labels, Program};
    use areo_core::object::DomainId;
    use std::sync::Arc;

    /// Configuration 3 of a domain, on the first `n` servers.
    pub(crate) fn on(n: u128, dap: Dap) -> Arc<Configuration> {
        let members = (1..=n).map(ServerId).collect();
        let descriptor = Descriptor {
            index: 3,
            ..Descriptor::new(DomainId(7), members, dap)
        };
        Configuration::new(descriptor).unwrap()
    }

    /// A directory of servers with these names; ids count from 1, ports from 7400.
    pub(crate) fn names(names: &[&str]) -> Names {
        let record = |(position, name): (usize, &&str)| {
            let id = ServerId(position as u128 + 1);
            let record = ServerRecord {
                id,
                incarnation: 1,
                start: 1,
                resumed: false,
                name: (*name).into(),
                address: format!("127.0.0.1:{}", 7400 + position),
                admin: format!("127.0.0.1:{}", 7490 + position),
                generation: None,
                leaving: 0,
                position: None,
                program: Program::default(),
                levels: Levels::default(),
                labels: Labels::default(),
            };
            (id, record)
        };
        Names::new(names.iter().enumerate().map(record).collect())
    }

    #[test]
    fn servers_come_in_the_order_in_which_people_count() {
        let names = names(&["s10", "s2", "b", "s1", "s02"]);
        let sorted: Vec<String> = names.sorted().into_iter().map(|s| s.name).collect();
        assert_eq!(sorted, ["b", "s1", "s02", "s2", "s10"]);
    }

    #[test]
    fn a_server_without_a_record_is_called_by_its_id() {
        let names = names(&["s1"]);
        assert_eq!(names.name(ServerId(1)), "s1");
        assert_eq!(names.name(ServerId(0xabcd << 112)), "abcd0000");
    }

    #[test]
    fn cluster_ids_survive_text() {
        let id = ClusterId(0xfeed);
        assert_eq!(id.to_string().parse(), Ok(id));
        let long = "0".repeat(31) + "+";
        for wrong in [
            "",
            "feed",
            &"0".repeat(32),
            &"g".repeat(32),
            &long,
            &"1".repeat(33),
        ] {
            assert!(wrong.parse::<ClusterId>().is_err(), "{wrong}");
        }
    }
}
