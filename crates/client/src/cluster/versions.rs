//! The versions of the servers, while they are not all of one, or not finalized.

use super::ClusterStatus;
use std::collections::BTreeMap;

impl ClusterStatus {
    /// The state of an upgrade: the servers of each version while there are several, and the step that is left.
    pub fn show_upgrade(&self) -> Option<String> {
        // A member of a domain that is in no directory has no start.
        let registered = || {
            let servers = self.servers.iter().map(|it| &it.server);
            servers.filter(|server| server.incarnation > 0)
        };
        let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for server in registered() {
            servers
                .entry(&server.version)
                .or_default()
                .push(&server.name);
        }
        let runs = |(version, names): (&&str, &Vec<&str>)| match *version {
            "" => format!("an older version on {}", names.join(", ")),
            version => format!("areo {version} on {}", names.join(", ")),
        };
        let is_mixed = servers.len() > 1;
        let mixed = is_mixed.then(|| servers.iter().map(runs).collect::<Vec<_>>().join("; "));
        let known = registered().map(|server| server.level).min().unwrap_or(0);
        let (level, required) = (self.level, self.required_level);
        let step = if required > level {
            Some(format!(
                "level {required} is required and not final: no program that does not know it starts a server, and `areo cluster finalize` is to be run again"
            ))
        } else if known > level {
            Some(format!(
                "every server knows level {known}: `areo cluster finalize` ends the upgrade"
            ))
        } else {
            None
        };
        let sentences: Vec<String> = mixed.into_iter().chain(step).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::problems::tests::cluster;

    #[test]
    fn an_upgrade_is_shown_until_it_is_final() {
        let status_of = |servers: [(&str, u32); 3], level, required_level| {
            let status = cluster(3, &[1, 2, 3], &[], Vec::new());
            let mut status = ClusterStatus {
                level,
                required_level,
                ..status
            };
            for (it, (version, level)) in status.servers.iter_mut().zip(servers) {
                (it.server.version, it.server.level) = (version.into(), level);
                it.server.incarnation = 1;
            }
            status
        };
        let sentence_of = |servers, level| status_of(servers, level, level).show_upgrade();
        let (old, new) = (("0.1.0", 0), ("0.2.0", 1));
        assert_eq!(sentence_of([old, old, old], 0), None);
        let mixed = "areo 0.1.0 on s2, s3; areo 0.2.0 on s1";
        assert_eq!(sentence_of([new, old, old], 0).as_deref(), Some(mixed));
        let ready = "every server knows level 1: `areo cluster finalize` ends the upgrade";
        assert_eq!(sentence_of([new, new, new], 0).as_deref(), Some(ready));
        assert_eq!(sentence_of([new, new, new], 1), None);
        let patched = ("0.2.1", 1);
        let both = format!("areo 0.2.0 on s1; areo 0.2.1 on s2, s3; {ready}");
        assert_eq!(sentence_of([new, patched, patched], 0), Some(both));
        // The last start of s2 was of a program that said no version: it holds the step up.
        let older = "an older version on s2; areo 0.2.0 on s1, s3";
        assert_eq!(sentence_of([new, ("", 0), new], 0).as_deref(), Some(older));
        let mut unregistered = status_of([new, ("", 0), new], 1, 1);
        unregistered.servers[1].server.incarnation = 0;
        assert_eq!(unregistered.show_upgrade(), None);
        let begun = status_of([new, new, new], 0, 1)
            .show_upgrade()
            .expect("it is not final");
        assert!(
            begun.starts_with("level 1 is required and not final: "),
            "{begun}"
        );
    }
}
