//! The cluster as a client sees it: servers, configurations, how everything is.

use crate::experimental::Experimental;
use crate::{Decider, Error, ServerId, Shape};
use areo_core::config::Configuration;
use areo_core::error::Response;
use areo_core::message::ServerRecord;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use areo_core::message::ServerStatus;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidClusterId {
    /// What was given.
    pub text: String,
}

impl fmt::Display for InvalidClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not the id of a cluster: those have 32 hexadecimal digits and are not 0",
            self.text
        )
    }
}

impl std::error::Error for InvalidClusterId {}

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its id, which never changes.
    pub id: ServerId,
    /// What people call it.
    pub name: String,
    /// Where it listens for clients, host and port.
    pub address: String,
    /// Where its admin port listens.
    pub admin: String,
    /// Counts its starts.
    pub incarnation: u64,
}

impl From<&ServerRecord> for ServerInfo {
    fn from(record: &ServerRecord) -> ServerInfo {
        ServerInfo {
            id: record.id,
            name: record.name.clone(),
            address: record.address.clone(),
            admin: record.admin.clone(),
            incarnation: record.incarnation,
        }
    }
}

/// One configuration of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationInfo {
    /// Its index in the domain's sequence, from 0.
    pub index: u32,
    /// Algorithm, n, k, and what follows from them.
    pub shape: Shape,
    /// Slack of erasure-coded lists.
    pub delta: u16,
    /// Values up to so many bytes are kept as full copies.
    pub copy_bytes: u32,
    /// Which optimisations of Ares II are made use of.
    pub experimental: Experimental,
    /// Who decides which configuration comes next.
    pub decided_by: Decider,
    /// Its members, in order.
    pub members: Vec<Member>,
}

/// A member of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: ServerId,
    /// Its name; the beginning of its id if the directory does not know it.
    pub name: String,
    /// Where it listens, if the directory knows it.
    pub address: Option<String>,
}

/// A domain with its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainInfo {
    /// Its name.
    pub name: String,
    /// Its random id, as 32 hexadecimal digits: a name that is used again is another domain.
    pub id: String,
    /// Its latest final configuration that is known.
    pub configuration: ConfigurationInfo,
    /// The pending ones after it; `None` if that was not asked, or no quorum answered.
    pub pending: Option<Vec<ConfigurationInfo>>,
}

/// How a cluster is, as far as this client can see.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Which.
    pub cluster: ClusterId,
    /// The configuration of the root domain.
    pub root: ConfigurationInfo,
    /// The servers, in order of their names.
    pub servers: Vec<ServerHealth>,
    /// The domains, by name; or why they cannot be listed. Bytes stored per byte written are those of their shapes.
    pub domains: Result<Vec<DomainInfo>, Error>,
}

impl ClusterStatus {
    /// Servers that answer and serve.
    pub fn serving(&self) -> usize {
        self.answered().filter(|status| status.serving).count()
    }

    /// Bytes of all elements on the servers that answered: fragments and copies of values, without what the store adds.
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

    fn answered(&self) -> impl Iterator<Item = &ServerStatus> {
        self.servers
            .iter()
            .filter_map(|health| health.status.answered())
    }
}

/// How one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// Which.
    pub server: ServerInfo,
    /// What it said.
    pub status: Health,
}

/// Whether a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does; so it is.
    Answered(ServerStatus),
    /// It does not.
    Unreachable {
        /// Why, as far as it is known: `connection refused`, `timed out`, `is another server`, ...
        reason: String,
    },
}

impl Health {
    /// What the server said.
    pub fn answered(&self) -> Option<&ServerStatus> {
        match self {
            Health::Answered(status) => Some(status),
            Health::Unreachable { .. } => None,
        }
    }
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

    /// All servers in the order in which people count: s2 before s10.
    pub(crate) fn sorted(&self) -> Vec<ServerInfo> {
        let mut servers: Vec<ServerInfo> = self.records.values().map(ServerInfo::from).collect();
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

/// Why a server that gave no status did not: what its connection says, or that it was too late.
pub(crate) fn unreachable(reason: Option<String>) -> Health {
    let reason = reason.unwrap_or_else(|| Response::Silent.to_string());
    Health::Unreachable { reason }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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
