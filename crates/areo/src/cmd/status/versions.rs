//! The versions of the servers, while they are not all of one, or not finalized.

use areo_client::ClusterStatus;
use std::collections::BTreeMap;

/// The state of an upgrade: the servers of each version, or that the upgrade can be finalized.
pub(super) fn sentence(status: &ClusterStatus) -> Option<String> {
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let registered = || status.servers.iter().map(|it| &it.server);
    let registered = || registered().filter(|server| !server.version.is_empty());
    for server in registered() {
        servers
            .entry(&server.version)
            .or_default()
            .push(&server.name);
    }
    if servers.len() > 1 {
        let runs = |(version, names): (&&str, &Vec<&str>)| {
            format!("areo {version} on {}", names.join(", "))
        };
        let runs: Vec<String> = servers.iter().map(runs).collect();
        return Some(runs.join("; "));
    }
    let level = registered().map(|server| server.level).min()?;
    (level > status.level).then(|| {
        format!("every server knows level {level}: `areo cluster finalize` ends the upgrade")
    })
}

#[cfg(test)]
mod tests {
    use super::super::problems::tests::cluster;
    use super::*;

    #[test]
    fn an_upgrade_is_shown_until_it_is_final() {
        let sentence_of = |servers: [(&str, u32); 3], level| {
            let status = cluster(3, &[1, 2, 3], &[], Vec::new());
            let mut status = ClusterStatus { level, ..status };
            for (it, (version, level)) in status.servers.iter_mut().zip(servers) {
                (it.server.version, it.server.level) = (version.into(), level);
            }
            sentence(&status)
        };
        let (old, new) = (("0.1.0", 0), ("0.2.0", 1));
        assert_eq!(sentence_of([old, old, old], 0), None);
        let mixed = "areo 0.1.0 on s2, s3; areo 0.2.0 on s1";
        assert_eq!(sentence_of([new, old, old], 0).as_deref(), Some(mixed));
        let ready = "every server knows level 1: `areo cluster finalize` ends the upgrade";
        assert_eq!(sentence_of([new, new, new], 0).as_deref(), Some(ready));
        assert_eq!(sentence_of([new, new, new], 1), None);
        // A member that is in no directory says nothing.
        assert_eq!(sentence_of([new, ("", 0), new], 1), None);
    }
}
