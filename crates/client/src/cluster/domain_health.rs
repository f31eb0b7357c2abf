//! The health of a domain, as its servers know it: whether it works, and how redundant it is.

use super::{ClusterStatus, ConfigurationInfo, DomainHealth, DomainInfo, ServerHealth};
use std::collections::BTreeMap;
use std::time::Duration;

impl ClusterStatus {
    /// The members of this configuration that answer and serve.
    pub fn serving_of(&self, c: &ConfigurationInfo) -> impl Iterator<Item = &ServerHealth> {
        let is_member = |it: &&ServerHealth| c.members.iter().any(|m| m.id == it.server.id);
        let serves = |it: &&ServerHealth| it.status.answered().is_some_and(|it| it.serving);
        self.servers.iter().filter(is_member).filter(serves)
    }

    /// True if a quorum of this configuration serves; for writes, only members with room count.
    pub fn has_quorum(&self, c: &ConfigurationInfo, with_room: bool) -> bool {
        let takes_part = |it: &&ServerHealth| !with_room || !it.is_full();
        self.serving_of(c).filter(takes_part).count() >= c.shape.quorum()
    }

    /// The health of this domain, according to its members.
    pub fn health_of(&self, domain: &DomainInfo) -> DomainHealth {
        let full = self.serving_of(&domain.configuration);
        let full = full.filter(|it| it.is_full());
        let mut health = DomainHealth {
            serving: self.serving_of(&domain.configuration).count(),
            serves: domain.in_use().all(|c| self.has_quorum(c, false)),
            writes: domain.in_use().all(|c| self.has_quorum(c, true)),
            full: full.map(|it| it.server.name.clone()).collect(),
            objects: None,
            missing: BTreeMap::new(),
            not_proven: Vec::new(),
            proven_seconds: None,
            unscrubbed_seconds: None,
            waits_for: Vec::new(),
        };
        let members = &domain.configuration.members;
        let is_member = |it: &&ServerHealth| members.iter().any(|m| m.id == it.server.id);
        let (mut proven_ms, mut unscrubbed_ms) = (Some(0), Vec::new());
        for server in self.servers.iter().filter(is_member) {
            let name = &server.server.name;
            let status = server.status.answered();
            let waits = status.into_iter().flat_map(|it| &it.waits);
            let waits = waits.filter(|(of, _)| format!("{:032x}", of.0) == domain.id);
            for (_, server) in waits {
                let member = members.iter().find(|m| m.id == *server);
                health
                    .waits_for
                    .extend(member.map(|member| member.name.clone()));
            }
            let mut standings = status.into_iter().flat_map(|it| &it.domains);
            let standing = standings.find(|it| format!("{:032x}", it.domain.0) == domain.id);
            if let Some(standing) = standing {
                health.objects = health.objects.max(Some(standing.objects));
                if standing.lacking > 0 {
                    health.missing.insert(name.clone(), standing.lacking);
                }
            }
            let age = standing.and_then(|it| it.proven_ms);
            if age.is_none() {
                health.not_proven.push(name.clone());
            }
            proven_ms = proven_ms.zip(age).map(|(one, other)| one.max(other));
            if status.is_none_or(|it| it.durable) {
                unscrubbed_ms.push(status.and_then(|it| it.unscrubbed_ms));
            }
        }
        health.waits_for.sort_unstable();
        health.waits_for.dedup();
        let seconds = |ms| Duration::from_millis(ms).as_secs();
        health.proven_seconds = proven_ms.map(seconds);
        let all: Option<Vec<u64>> = unscrubbed_ms.into_iter().collect();
        health.unscrubbed_seconds = all.and_then(|all| all.into_iter().max()).map(seconds);
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::names;
    use crate::cluster::{ClusterId, Health, ServerStatus};
    use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
    use areo_core::message::DomainStanding;
    use areo_core::object::DomainId;

    fn cluster(statuses: Vec<Health>) -> (ClusterStatus, DomainInfo) {
        let names = names(&["s1", "s2", "s3", "s4"]);
        let members = (1..=3).map(ServerId).collect();
        let c = Configuration::new(Descriptor::new(DomainId(7), members, Dap::Abd)).unwrap();
        let servers = names.sorted().into_iter().zip(statuses);
        let health = |(server, status)| ServerHealth {
            server,
            status,
            domains: None,
        };
        let status = ClusterStatus {
            cluster: ClusterId(1),
            root: names.domain("@root", &c),
            root_warning: None,
            level: 0,
            required_level: 0,
            servers: servers.map(health).collect(),
            domains: Ok(Vec::new()),
        };
        (status, names.domain("d", &c))
    }

    fn answered(lacking: u64, proven_ms: Option<u64>, unscrubbed_ms: Option<u64>) -> Health {
        let standing = |domain| DomainStanding {
            domain: DomainId(domain),
            objects: 10 * u64::try_from(domain).unwrap(),
            lacking,
            proven_ms,
        };
        Health::Answered(ServerStatus {
            durable: true,
            unscrubbed_ms,
            domains: vec![standing(6), standing(7)],
            waits: vec![
                (DomainId(6), ServerId(1)),
                (DomainId(7), ServerId(2)),
                (DomainId(7), ServerId(9)),
            ],
            ..ServerStatus::default()
        })
    }

    #[test]
    fn a_domain_is_as_redundant_as_its_members_say() {
        let whole = |ms| answered(0, Some(ms), Some(ms * 2));
        let silent = || Health::unreachable(None);
        // The fourth server is no member.
        let (status, domain) = cluster(vec![whole(1000), whole(3000), whole(2000), silent()]);
        let health = status.health_of(&domain);
        assert_eq!(health.objects, Some(70));
        assert!(health.missing.is_empty() && health.not_proven.is_empty());
        assert_eq!(health.proven_seconds, Some(3));
        assert_eq!(health.unscrubbed_seconds, Some(6));

        assert_eq!(health.waits_for, ["s2"]);

        let lacks = answered(5, None, None);
        let (status, domain) = cluster(vec![whole(1000), lacks, silent()]);
        let health = status.health_of(&domain);
        assert_eq!(health.missing, BTreeMap::from([("s2".into(), 5)]));
        assert_eq!(health.not_proven, ["s2", "s3"]);
        assert_eq!(
            (health.proven_seconds, health.unscrubbed_seconds),
            (None, None)
        );
    }
}
