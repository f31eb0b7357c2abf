//! The state of a server, and its report on itself.

use super::state::standing::ObjectCounts;
use super::{Identity, Server};
use crate::config::ServerId;
use crate::instant::{Instant, PastMoment};
use crate::limits;
use crate::message::{
    DomainStanding, LeaderStanding, Note, ServerRecord, ServerStatus, Transferred,
};
use crate::object::DomainId;
use std::collections::BTreeMap;
use std::time::Duration;

/// For how long a count of more than [`COUNTED_AT_ONCE`] objects is kept, for each of them: so that counting, which looks at all of them,
/// takes a few per cent of the time at most, however often a status is asked for.
const KEPT_PER_OBJECT: Duration = Duration::from_micros(5);
/// The largest number of objects that are counted for every status.
const COUNTED_AT_ONCE: u64 = 10_000;

/// The knowledge of the elements that the server should have.
#[derive(Default)]
pub(super) struct Standing {
    /// The last count of the objects, and when it was made.
    counted: Option<(Instant, ObjectCounts)>,
    domains: BTreeMap<DomainId, KnownDomain>,
    /// The time at which it last went over everything.
    proven: Option<Instant>,
    /// Promises may be old enough to go into floors (`[W-16 ballot-floor]`).
    pub(super) folds: bool,
    /// All records that were there then have been verified since.
    verified: Option<PastMoment>,
    /// Its progress with the changes that it makes as a leader.
    leads: BTreeMap<DomainId, Transferred>,
}

#[derive(Clone, Copy, Default)]
struct KnownDomain {
    objects: u64,
    lacking: u64,
    proven: Option<Instant>,
}

/// True if a count of this many objects is still good at this age.
fn is_kept(objects: u64, age: Duration) -> bool {
    objects > COUNTED_AT_ONCE && age.as_nanos() < KEPT_PER_OBJECT.as_nanos() * u128::from(objects)
}

fn ms_since(now: Instant, moment: impl Into<PastMoment>) -> u64 {
    let age = moment.into().age(now);
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

impl Server {
    /// Notes to other servers of its own accord. It leaves when the steps taken with it are durable.
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
        // It stood still meanwhile (`[X-32 stood-still]`): it goes over them again.
        if !self.serving {
            return;
        }
        let is_whole = |id: DomainId| {
            let mut whole = found.iter().filter(|it| it.proven_ms.is_some());
            whole.any(|it| it.domain == id)
        };
        for (_, state) in self
            .states
            .iter_mut()
            .filter(|(key, _)| is_whole(key.domain))
        {
            state.gone_over();
        }
        self.standing.folds = true;
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

    /// Adds objects and bytes that it has moved as the leader of the domain. `None`: it has made the changes, or
    /// begins again.
    pub(crate) fn leads(&mut self, domain: DomainId, moved: Option<Transferred>) {
        let leads = &mut self.standing.leads;
        match moved {
            Some(moved) => leads.entry(domain).or_default().add(moved),
            None => drop(leads.remove(&domain)),
        }
        assert!(leads.len() <= limits::LEADER_WINDOW, "not more at once");
    }

    /// The objects that it holds, as they were a moment ago at most: the more there are, the longer a count is kept.
    fn counts(&mut self, now: Instant) -> ObjectCounts {
        if let Some((at, counts)) = self.standing.counted
            && is_kept(counts.objects, now.since(at))
        {
            return counts;
        }
        let mut counts = ObjectCounts::default();
        for state in self.states.values() {
            state.count_objects(&mut counts);
        }
        self.standing.counted = Some((now, counts));
        counts
    }

    pub(super) fn status(&mut self, now: Instant) -> ServerStatus {
        let counts = self.counts(now);
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
            serving: self.serving && !self.unreadable,
            incomplete: self.unreadable,
            durable: self.identity.durable,
            configurations: self.states.len() as u64,
            trimmed: self.ledger.trimmed,
            repaired: self.ledger.repaired,
            lacking: known.domains.values().map(|it| it.lacking).sum(),
            proven_ms: known.proven.map(|at| ms_since(now, at)),
            unscrubbed_ms: known.verified.map(|at| ms_since(now, at)),
            domains: domains.take(limits::STANDINGS).collect(),
            leads: leads.collect(),
            objects: counts.objects,
            versions: counts.versions,
            element_bytes: counts.element_bytes,
            damaged: counts.damaged,
            tombstones: counts.tombstones,
            ..ServerStatus::default()
        };
        for state in self.states.values() {
            state.count(now, &mut status);
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_many_objects_is_kept_for_a_while() {
        let ms = Duration::from_millis;
        assert!(!is_kept(COUNTED_AT_ONCE, ms(0)));
        assert!(is_kept(1_000_000, ms(4999)) && !is_kept(1_000_000, ms(5000)));
        assert!(is_kept(20_000, ms(99)) && !is_kept(20_000, ms(100)));
    }
}
