//! Parts of a cluster that do not work, or are about to fail, in sentences.

use super::{
    ClusterStatus, ConfigurationInfo, DomainInfo, DomainWithoutRoom, ROOT_DOMAIN, ServerHealth,
    show_domain, show_lack_of_room,
};
use crate::units::show_count;
use serde::Serialize;

/// A sentence about a problem of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// True if operations fail now; serialised as `outage`.
    #[serde(rename = "outage")]
    pub is_outage: bool,
    /// The sentence, for people; serialised as `problem`.
    #[serde(rename = "problem")]
    pub text: String,
}

impl ClusterStatus {
    /// The problems of the cluster, outages first.
    pub fn problems(&self) -> Vec<Problem> {
        let domains = self.all_domains();
        let outages = domains.iter().filter_map(|it| no_quorum(self, it));
        let outages = outages.chain(no_room(self, &domains));
        let risks = incomplete(self).chain(replaced(self));
        let risks = risks.chain(damaged(self)).chain(full(self));
        let risks = risks.chain(domains.iter().filter_map(|it| tolerance(self, it)));
        let problem = |is_outage| move |text| Problem { is_outage, text };
        let all = outages.map(problem(true));
        all.chain(risks.map(problem(false))).collect()
    }
}

fn no_quorum(status: &ClusterStatus, domain: &DomainInfo) -> Option<String> {
    let c = domain.in_use().find(|c| !status.has_quorum(c, false))?;
    let which = match c.index == domain.configuration.index {
        true => String::new(),
        false => format!(" in its pending configuration {}", c.index),
    };
    Some(format!(
        "{} has no quorum{which}: {} of {} needed servers serve{}",
        show_domain(&domain.name),
        status.serving_of(c).count(),
        c.shape.quorum(),
        away(status, c)
    ))
}

/// The members that do not serve, in brackets.
fn away(status: &ClusterStatus, c: &ConfigurationInfo) -> String {
    let serves = |id| status.serving_of(c).any(|it| it.server.id == id);
    let away = c.members.iter().filter(|member| !serves(member.id));
    let away: Vec<&str> = away.map(|member| member.name.as_str()).collect();
    match away.is_empty() {
        true => String::new(),
        false => format!(", not {}", away.join(", ")),
    }
}

/// Domains of which writes fail for want of room, together where it is for the same servers.
fn no_room(status: &ClusterStatus, domains: &[DomainInfo]) -> Vec<String> {
    let lacking = domains.iter().filter(|domain| {
        let health = status.health_of(domain);
        health.serves && !health.writes
    });
    show_lack_of_room(lacking.map(|domain| DomainWithoutRoom {
        domain: &domain.name,
        full: full_members(status, domain),
    }))
}

/// Members of any configuration in use that say that their disks are full.
fn full_members(status: &ClusterStatus, domain: &DomainInfo) -> Vec<String> {
    let is_member = |id| {
        domain
            .in_use()
            .any(|c| c.members.iter().any(|m| m.id == id))
    };
    let full = status.servers.iter().filter(|it| it.is_full());
    let full = full.filter(|it| is_member(it.server.id));
    full.map(|it| it.server.name.clone()).collect()
}

/// Servers whose disks are full, where quorums have room without them.
fn full(status: &ClusterStatus) -> Option<String> {
    let stops_writes = |domain: &DomainInfo| !status.health_of(domain).writes;
    let domains = status.all_domains();
    let named: Vec<String> = domains
        .iter()
        .filter(|it| stops_writes(it))
        .flat_map(|it| full_members(status, it))
        .collect();
    let full = status.servers.iter().filter(|it| it.is_full());
    let full = full.map(|it| it.server.name.as_str());
    let full: Vec<&str> = full.filter(|it| !named.iter().any(|n| n == it)).collect();
    (!full.is_empty()).then(|| format!("{}: disk full", full.join(", ")))
}

fn incomplete(status: &ClusterStatus) -> impl Iterator<Item = String> {
    let incomplete = |it: &&ServerHealth| it.status.answered().is_some_and(|it| it.incomplete);
    status.servers.iter().filter(incomplete).map(|server| {
        format!(
            "{}: records are missing from its log, it answers for no object; another server takes its place once all domains work without it",
            server.server.name
        )
    })
}

/// Servers that are to go, at whose address another one serves: that takes their places.
fn replaced(status: &ClusterStatus) -> impl Iterator<Item = String> {
    let all = status.all_domains().len();
    status.servers.iter().filter_map(move |old| {
        let (left, address) = (
            old.domains.filter(|_| old.server.leaving)?,
            &old.server.address,
        );
        let takes = |it: &&ServerHealth| {
            it.server.address == *address && it.status.answered().is_some_and(|it| it.serving)
        };
        let new = status.servers.iter().find(takes)?;
        let (old, new) = (&old.server, &new.server);
        let domains = show_count(all as u64, "domain");
        (old.id != new.id).then(|| {
            format!(
                "{} takes the place of {}: {left} of {domains} left",
                new.name, old.name
            )
        })
    })
}

fn damaged(status: &ClusterStatus) -> impl Iterator<Item = String> {
    status.servers.iter().filter_map(|server| {
        let damaged = server.status.answered()?.damaged;
        let objects = show_count(damaged, "object");
        (damaged > 0).then(|| format!("{} abstains for {objects}: damaged", server.server.name))
    })
}

/// The sentence for a domain with a quorum that does not tolerate the next crash.
fn tolerance(status: &ClusterStatus, domain: &DomainInfo) -> Option<String> {
    let (c, called) = (&domain.configuration, show_domain(&domain.name));
    let (serving, quorum) = (status.serving_of(c).count(), c.shape.quorum());
    if serving != quorum {
        return None;
    }
    let is_root = domain.name == ROOT_DOMAIN;
    if let Some(warning) = status.root_warning.as_ref().filter(|_| is_root) {
        return Some(warning.clone());
    }
    let names: Vec<&str> = c.members.iter().map(|it| it.name.as_str()).collect();
    Some(match (c.shape.f(), &names[..]) {
        (0, [alone]) => format!("{called} tolerates no crash: it is on {alone} alone"),
        (0, names) => format!(
            "{called} tolerates no crash: it needs all of {}",
            names.join(", ")
        ),
        (_, _) => format!(
            "{called} tolerates no further crash: {serving} of {quorum} needed servers serve{}",
            away(status, c)
        ),
    })
}

#[cfg(test)]
pub(super) mod tests;
