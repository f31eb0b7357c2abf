//! The state of a cluster within a time, with servers that are dead or silent.

use super::domains::domain_error;
use crate::cluster::{ClusterStatus, DomainInfo, ROOT_DOMAIN, ServerHealth, ServerInfo};
use crate::error::Error;
use crate::session::Context;
use areo_core::config::{Configuration, Members, ServerId};
use areo_core::gather;
use areo_core::manager::growth::NoSpare;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of domains that are asked for pending configurations at once.
const DOMAINS_AT_ONCE: usize = 64;

/// The state of every known server and of all domains, within `patience`. Servers that say nothing use up the time of their question, so that
/// questions are asked side by side, or share the time.
pub(super) async fn status(context: &Context, patience: Duration) -> ClusterStatus {
    // The known servers answer while the directory is asked for others.
    let asked = context.cluster().names().sorted();
    let (begun, known) = (Instant::now(), health_of(context, asked.clone(), patience));
    let found = async {
        // Takes half of the time at most.
        context.refresh_within(patience / 4).await;
        let mut others = context.cluster().names().sorted();
        // A server that has moved is asked at its new address.
        others.retain(|it| !asked.contains(it));
        let left = patience.saturating_sub(begun.elapsed());
        tokio::join!(
            health_of(context, others, left),
            domains_in_full(context, left)
        )
    };
    let (known, (mut servers, domains)) = tokio::join!(known, found);
    let is_new = |it: &ServerHealth| servers.iter().all(|new| new.server.id != it.server.id);
    let known: Vec<_> = known.into_iter().filter(is_new).collect();
    servers.extend(known);
    let names = context.cluster().names();
    let order: Vec<ServerId> = names.sorted().into_iter().map(|it| it.id).collect();
    servers.retain(|it| order.contains(&it.server.id));
    servers.sort_by_key(|it| order.iter().position(|id| *id == it.server.id));
    let mut status = ClusterStatus {
        cluster: context.cluster().id,
        root: names.domain(ROOT_DOMAIN, &context.latest()),
        root_warning: root_warning(context),
        level: names.levels().finalized,
        required_level: names.levels().required,
        servers,
        domains,
    };
    status.add_unregistered();
    status.count_domains();
    status
}

/// All domains, each with its pending configurations.
async fn domains_in_full(context: &Context, patience: Duration) -> Result<Vec<DomainInfo>, Error> {
    let client = context.within(patience);
    let domains = client.root(context.root()).domains().await;
    let domains = domains.map_err(|error| domain_error(context, error))?;
    let paths = domains.iter().map(|(_, c)| client.domain(c));
    let paths: Vec<_> = paths.collect();
    let paths = paths.iter().map(areo_core::dsm::Domain::path);
    let paths = gather::join(DOMAINS_AT_ONCE, paths).await;
    let names = context.cluster().names();
    let info = |((name, listed), path): (&(String, Arc<Configuration>), _)| match path {
        Err(_) => names.domain(name, listed),
        Ok(path) => {
            let path: Vec<Arc<Configuration>> = path;
            let pending = path[1..].iter().map(|c| names.configuration(c));
            DomainInfo {
                pending: Some(pending.collect()),
                ..names.domain(name, &path[0])
            }
        }
    };
    Ok(domains.iter().zip(paths).map(info).collect())
}

/// The warning about a root domain that tolerates no crash.
pub(super) fn root_warning(context: &Context) -> Option<String> {
    let names = context.cluster().names();
    let no_spare = NoSpare::of(&context.latest(), names.servers());
    no_spare.map(|it| it.to_string())
}

/// The health of these servers, in their order.
async fn health_of(
    context: &Context,
    servers: Vec<ServerInfo>,
    patience: Duration,
) -> Vec<ServerHealth> {
    let members: Members = servers.iter().map(|server| server.id).collect();
    let health = match members.is_empty() {
        true => Vec::new(),
        false => context.health(&members, patience).await,
    };
    let server = |(server, status)| ServerHealth {
        server,
        status,
        domains: None,
    };
    servers.into_iter().zip(health).map(server).collect()
}
