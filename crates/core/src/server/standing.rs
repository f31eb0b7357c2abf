//! How a server is, and what it says of itself.

use super::{Identity, Server};
use crate::config::ServerId;
use crate::instant::{Instant, PastMoment};
use crate::limits;
use crate::message::{
    DomainStanding, LeaderStanding, Note, ServerRecord, ServerStatus, Transferred,
};
use crate::object::DomainId;
use std::collections::BTreeMap;

/// What is known of the elements that the server should have.
#[derive(Default)]
pub(super) struct Standing {
    domains: BTreeMap<DomainId, KnownDomain>,
    /// When it last went over everything.
    proven: Option<Instant>,
    /// All records that were there then have been verified since.
    verified: Option<PastMoment>,
    /// How far it is with the changes that it makes as a leader.
    leads: BTreeMap<DomainId, Transferred>,
}

#[derive(Clone, Copy, Default)]
struct KnownDomain {
    objects: u64,
    lacking: u64,
    proven: Option<Instant>,
}

fn ms_since(now: Instant, moment: impl Into<PastMoment>) -> u64 {
    let age = moment.into().age(now);
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

impl Server {
    /// What it says to other servers of its own accord. It leaves when the steps taken with it are durable.
    pub(crate) fn take_sends(&mut self) -> Vec<(ServerId, Note)> {
        match self.serving {
            true => {
                let Identity {
                    id, incarnation, ..
                } = self.identity;
                let mut sends = self.registry.introduce(id, incarnation);
                sends.extend(self.take_gossip());
                sends
            }
            false => Vec::new(),
        }
    }

    /// The records of servers that changed since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<ServerRecord> {
        self.registry.take_news()
    }

    /// It has gone over the objects of these domains, of all its domains or some (`[X-26 self-repair]`).
    pub(crate) fn gone_over(&mut self, now: Instant, found: &[DomainStanding], is_all: bool) {
        assert!(self.serving, "before that it is no member");
        let Standing {
            domains, proven, ..
        } = &mut self.standing;
        for standing in found {
            let known = domains.entry(standing.domain).or_default();
            known.lacking = standing.lacking;
            // Of a part of the objects the number says nothing.
            if standing.proven_ms.is_some() {
                (known.objects, known.proven) = (standing.objects, Some(now));
            }
        }
        if is_all {
            domains.retain(|domain, _| found.iter().any(|it| it.domain == *domain));
            *proven = Some(now);
        }
    }

    /// All records that were there then have been verified since.
    pub(crate) fn verified(&mut self, since: Option<PastMoment>) {
        self.standing.verified = since;
    }

    /// As the leader of a domain it has moved so much more there. `None`: it has made the changes, or begins again.
    pub(crate) fn leads(&mut self, domain: DomainId, moved: Option<Transferred>) {
        let leads = &mut self.standing.leads;
        match moved {
            Some(moved) => leads.entry(domain).or_default().add(moved),
            None => drop(leads.remove(&domain)),
        }
        assert!(leads.len() <= limits::LEADER_WINDOW, "not more at once");
    }

    pub(super) fn status(&self, now: Instant) -> ServerStatus {
        let known = &self.standing;
        let leads = known.leads.iter();
        let leads = leads.map(|(domain, transferred)| LeaderStanding {
            domain: *domain,
            transferred: *transferred,
        });
        let domains = known.domains.iter().map(|(domain, it)| DomainStanding {
            domain: *domain,
            objects: it.objects,
            lacking: it.lacking,
            proven_ms: it.proven.map(|at| ms_since(now, at)),
        });
        let mut status = ServerStatus {
            incarnation: self.identity.incarnation,
            serving: self.serving,
            durable: self.identity.durable,
            configurations: self.states.len() as u64,
            trimmed: self.ledger.trimmed,
            repaired: self.ledger.repaired,
            lacking: known.domains.values().map(|it| it.lacking).sum(),
            proven_ms: known.proven.map(|at| ms_since(now, at)),
            unscrubbed_ms: known.verified.map(|at| ms_since(now, at)),
            domains: domains.take(limits::STANDINGS).collect(),
            leads: leads.collect(),
            ..ServerStatus::default()
        };
        for state in self.states.values() {
            state.count(now, &mut status);
        }
        status
    }
}
