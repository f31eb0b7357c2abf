//! Waits until a cluster is ready.

use crate::exit::{Code, Failure, Outcome};
use crate::output::visible;
use crate::progress;
use crate::session::{Session, failure};
use areo_client::{Client, ClusterStatus, DomainInfo, show_domain};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// The wait between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Time that every look has, however little is left.
const LEAST: Duration = Duration::from_millis(200);

/// The client and the status, once the cluster is ready for users of this domain.
///
/// # Errors
/// What is missing when the time is up.
pub(super) async fn wait(
    session: &Session,
    domain: &str,
    time: Duration,
) -> Outcome<(Client, ClusterStatus)> {
    let spinner = progress::spinner(session.out, "looking whether the cluster is ready");
    let waited = wait_beside(&spinner, session, domain, time).await;
    spinner.finish_and_clear();
    waited
}

/// Waits beside a spinner that names the missing parts.
async fn wait_beside(
    spinner: &ProgressBar,
    session: &Session,
    domain: &str,
    time: Duration,
) -> Outcome<(Client, ClusterStatus)> {
    let (begun, step) = (Instant::now(), session.timeout()?);
    let left = || time.saturating_sub(begun.elapsed());
    loop {
        // Nor is there a cluster file before `areo up` has made it.
        let missing = match look(session, domain, left().clamp(LEAST, step.max(LEAST))).await {
            Ok(ready) => return Ok(ready),
            Err(failure) if failure.code == Code::Unauthorised => return Err(failure),
            Err(failure) => failure,
        };
        spinner.set_message(visible(&missing.message));
        if left() <= PAUSE {
            let sentence = format!(
                "not ready after {} s: {}",
                time.as_secs_f64(),
                missing.message
            );
            return Err(Failure::new(missing.code, sentence));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn look(session: &Session, domain: &str, time: Duration) -> Outcome<(Client, ClusterStatus)> {
    let begun = Instant::now();
    let client = session.connect_within(time).await?;
    let left = time.saturating_sub(begun.elapsed());
    let client = client.with_timeout(left.max(LEAST));
    let status = client.status().await;
    match missing(&status, domain) {
        None => Ok((client, status)),
        Some(missing) => Err(missing),
    }
}

/// The failure of a cluster that is not ready: the domain is missing, or some configuration in use, of the root
/// domain or of a domain, has no quorum that serves and has room for writes.
pub(super) fn missing(status: &ClusterStatus, domain: &str) -> Option<Failure> {
    if let Some(refused) = refused(status) {
        return Some(refused);
    }
    if let Some(missing) = no_quorum(status, &status.root) {
        return Some(missing);
    }
    let domains = match &status.domains {
        Ok(domains) => domains,
        Err(error) => return Some(failure(error.clone())),
    };
    if !domains.iter().any(|known| known.name == domain) {
        let sentence = format!(
            "there is no domain '{domain}': `areo up` makes 'default', `areo domain create {domain}` any"
        );
        return Some(Failure::new(Code::NotFound, sentence));
    }
    let missing = domains.iter().find_map(|known| {
        no_quorum(status, known).or_else(|| {
            let name = show_domain(&known.name);
            let sentence = format!("no quorum of {name} says whether a change is pending");
            let unknown = Failure::new(Code::Unavailable, sentence);
            known.pending.is_none().then_some(unknown)
        })
    });
    missing.or_else(|| {
        // Quorums serve, so that only want of room is left.
        let outage = status.problems().into_iter().find(|it| it.is_outage)?;
        Some(Failure::new(Code::Unavailable, outage.text))
    })
}

/// The failure of a client whose key may not see how servers are.
pub(super) fn refused(status: &ClusterStatus) -> Option<Failure> {
    let sentence = status.unauthorised()?;
    Some(Failure::new(Code::Unauthorised, sentence))
}

/// The failure of a domain that has, of a configuration in use, fewer serving members than a quorum.
fn no_quorum(status: &ClusterStatus, domain: &DomainInfo) -> Option<Failure> {
    let c = domain.in_use().find(|c| !status.has_quorum(c, false))?;
    let sentence = format!(
        "{} of {} needed servers of {} (configuration {}) serve",
        status.serving_of(c).count(),
        c.shape.quorum(),
        show_domain(&domain.name),
        c.index
    );
    Some(Failure::new(Code::Unavailable, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::domain::tests::domain;
    use areo_client::{
        ClusterId, Dap, Health, ROOT_DOMAIN, ServerHealth, ServerId, ServerInfo, ServerStatus,
    };
    use std::collections::BTreeMap;

    /// Three servers that serve, and a domain on them; the disks of these are full.
    fn cluster(full: &[u128]) -> ClusterStatus {
        let server = |number: u128| ServerHealth {
            server: ServerInfo {
                id: ServerId(number),
                name: format!("s{number}"),
                address: format!("127.0.0.1:{}", 7399 + number),
                admin: String::new(),
                incarnation: 1,
                leaving: false,
                version: "0.1.0".into(),
                level: 0,
                labels: BTreeMap::default(),
                maintenance: None,
            },
            status: Health::Answered(ServerStatus {
                serving: true,
                full: full.contains(&number),
                ..ServerStatus::default()
            }),
            domains: None,
        };
        ClusterStatus {
            cluster: ClusterId(1),
            root: domain(ROOT_DOMAIN, Dap::Abd, 3),
            root_warning: None,
            level: 0,
            required_level: 0,
            servers: (1..=3).map(server).collect(),
            domains: Ok(vec![domain("default", Dap::Ec { k: 1 }, 3)]),
        }
    }

    #[test]
    fn a_key_that_may_not_see_servers_is_no_outage() {
        let mut status = cluster(&[]);
        let reason = "not authorised: key 00000000000000ab lacks the grant 'status'";
        for server in &mut status.servers {
            let reason = reason.into();
            server.status = Health::Unreachable { reason };
        }
        let missing = missing(&status, "default").expect("nothing was seen");
        assert_eq!((missing.code as u8, missing.message.as_str()), (6, reason));
    }

    #[test]
    fn a_cluster_is_ready_where_quorums_have_room() {
        assert_eq!(missing(&cluster(&[]), "default"), None);
        assert_eq!(missing(&cluster(&[2]), "default"), None);
        let full = missing(&cluster(&[2, 3]), "default").expect("writes fail");
        assert_eq!(
            (full.code as u8, full.message.as_str()),
            (
                5,
                "s2, s3: disk full, writes of the root domain and 'default' fail"
            )
        );
        let mut stopped = cluster(&[2, 3]);
        for server in &mut stopped.servers[1..] {
            let reason = "connection refused".into();
            server.status = Health::Unreachable { reason };
        }
        let stopped = missing(&stopped, "default").expect("no quorum serves");
        assert_eq!(
            (stopped.code as u8, stopped.message.as_str()),
            (
                5,
                "1 of 2 needed servers of the root domain (configuration 0) serve"
            )
        );
    }
}
