//! The redundancy of a domain and of the cluster, in sentences.

use super::{ClusterStatus, DomainHealth, ServerHealth};
use crate::units::{show_age, show_count};

impl DomainHealth {
    /// Describes the redundancy of a domain: whether every server holds its element of every object, and the age of that
    /// finding; or the servers that a restart of objects waits for.
    pub fn show_redundancy(&self) -> String {
        if !self.waits_for.is_empty() {
            let servers = self.waits_for.join(", ");
            return format!("waits for {servers} to restart counters of objects");
        }
        let missing: u64 = self.missing.values().sum();
        if missing > 0 {
            let servers = self.missing.iter();
            let servers: Vec<_> = servers.map(|(name, it)| format!("{name} {it}")).collect();
            return format!("{missing} missing: {}", servers.join(", "));
        }
        match self.proven_seconds {
            Some(seconds) if self.objects.is_some() => {
                format!("whole as of {} ago", show_age(seconds))
            }
            _ => format!("not known of {}", self.not_proven.join(", ")),
        }
    }

    /// The longest time since a verification of a record.
    pub fn show_verified(&self) -> String {
        let seconds = self.unscrubbed_seconds;
        seconds.map_or("-".into(), |seconds| {
            format!("within {}", show_age(seconds))
        })
    }
}

impl ClusterStatus {
    /// The number of missing elements, and the age of that news.
    pub fn show_redundancy(&self) -> String {
        let is_unproven = |it: &&ServerHealth| {
            it.domains != Some(0) && it.status.answered().is_none_or(|it| it.proven_ms.is_none())
        };
        let unproven = self.servers.iter().filter(is_unproven);
        let unproven: Vec<&str> = unproven.map(|it| it.server.name.as_str()).collect();
        match (self.lacking(), self.proven()) {
            (0, Some(age)) => format!(
                "every server held its part of every object as of {} ago",
                show_age(age.as_secs())
            ),
            (0, None) => format!(
                "not known yet to hold their part of every object: {}",
                unproven.join(", ")
            ),
            (lacking, _) => format!(
                "{} missing: `areo repair ls` names the objects",
                show_count(lacking, "element")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::problems::tests::cluster;
    use crate::{Health, ServerStatus};
    use std::collections::BTreeMap;

    #[test]
    fn redundancy_is_proven_or_said_to_be_unknown() {
        let said = |answers: [(Option<u64>, u64); 2]| {
            let mut status = cluster(2, &[1, 2], &[], Vec::new());
            for (server, (proven_ms, lacking)) in status.servers.iter_mut().zip(answers) {
                server.status = Health::Answered(ServerStatus {
                    proven_ms,
                    lacking,
                    ..ServerStatus::default()
                });
            }
            status.show_redundancy()
        };
        assert_eq!(
            said([(Some(5000), 0), (Some(300_000), 0)]),
            "every server held its part of every object as of 5 min ago"
        );
        assert_eq!(
            said([(Some(5000), 0), (None, 0)]),
            "not known yet to hold their part of every object: s2"
        );
        assert_eq!(
            said([(Some(5000), 3), (None, 0)]),
            "3 elements missing: `areo repair ls` names the objects"
        );
    }

    #[test]
    fn a_domain_is_said_to_be_whole_only_if_that_is_known() {
        let mut health = DomainHealth {
            serving: 4,
            serves: true,
            writes: false,
            full: vec!["s2".into()],
            objects: Some(12_034),
            missing: BTreeMap::new(),
            not_proven: Vec::new(),
            proven_seconds: Some(3 * 3600),
            unscrubbed_seconds: None,
            waits_for: Vec::new(),
        };
        assert_eq!(health.show_redundancy(), "whole as of 3 h ago");
        assert_eq!(health.show_verified(), "-");
        health.unscrubbed_seconds = Some(300);
        assert_eq!(health.show_verified(), "within 5 min");
        health.proven_seconds = None;
        health.not_proven = vec!["s1".into(), "s4".into()];
        assert_eq!(health.show_redundancy(), "not known of s1, s4");
        health.missing = [("s2", 4), ("s4", 3)].map(|(s, it)| (s.into(), it)).into();
        assert_eq!(health.show_redundancy(), "7 missing: s2 4, s4 3");
        assert_eq!(
            serde_json::to_value(&health).unwrap(),
            serde_json::json!({
                "serving": 4, "serves": true, "writes": false, "full": ["s2"],
                "objects": 12034, "missing": {"s2": 4, "s4": 3}, "not_proven": ["s1", "s4"],
                "proven_seconds": null, "unscrubbed_seconds": 300, "waits_for": [],
            })
        );
        health.waits_for = vec!["s4".into()];
        assert_eq!(
            health.show_redundancy(),
            "waits for s4 to restart counters of objects"
        );
    }
}
