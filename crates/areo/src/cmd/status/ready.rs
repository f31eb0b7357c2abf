//! When a cluster is ready, and waiting for it.

use crate::exit::{Code, Failure, Outcome};
use crate::session::{Session, failure};
use areo_client::{Client, ClusterStatus, ConfigurationInfo, ServerHealth};
use std::time::{Duration, Instant};

/// The wait between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Time that every look has, however little is left.
const LEAST: Duration = Duration::from_millis(200);

/// The client and what it sees, once the cluster is ready for users of this domain.
///
/// # Errors
/// What is missing when the time is up.
pub(super) async fn wait(
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
            Err(failure) => failure,
        };
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
    let client = session.connect_within(time).await?.with_timeout(time);
    let status = client.status().await;
    match missing(&status, domain) {
        None => Ok((client, status)),
        Some(missing) => Err(missing),
    }
}

/// What a cluster lacks to be ready: the domain exists, and of the root domain and of each domain a quorum of every
/// configuration in use serves.
fn missing(status: &ClusterStatus, domain: &str) -> Option<Failure> {
    if let Some(missing) = no_quorum("the root domain", &status.root, &status.servers) {
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
    domains.iter().find_map(|known| {
        let name = format!("'{}'", known.name);
        if let Some(missing) = no_quorum(&name, &known.configuration, &status.servers) {
            return Some(missing);
        }
        let Some(pending) = &known.pending else {
            let sentence = format!("no quorum of {name} says whether a change is pending");
            return Some(Failure::new(Code::Unavailable, sentence));
        };
        let mut pending = pending.iter();
        pending.find_map(|c| no_quorum(&name, c, &status.servers))
    })
}

/// What a configuration lacks, if fewer of its members serve than a quorum has.
fn no_quorum(of: &str, c: &ConfigurationInfo, servers: &[ServerHealth]) -> Option<Failure> {
    let serves = |health: &&ServerHealth| {
        let status = health.status.answered();
        status.is_some_and(|status| status.serving)
    };
    let is_member = |health: &&ServerHealth| c.members.iter().any(|m| m.id == health.server.id);
    let serving = servers.iter().filter(serves).filter(is_member).count();
    let quorum = c.shape.quorum();
    (serving < quorum).then(|| {
        let sentence = format!(
            "{serving} of {quorum} needed servers of {of} (configuration {}) serve",
            c.index
        );
        Failure::new(Code::Unavailable, sentence)
    })
}
