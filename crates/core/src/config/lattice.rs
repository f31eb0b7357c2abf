//! Configurations that are a lattice: what a domain without consensus is reconfigured over (`docs/spec`,
//! reconfiguration; Jehl and Meling, "The Case for Reconfiguration without Consensus").
//!
//! A membership says how often each server has come or gone. Two changes of one membership have a join, which has both: so
//! two operators who change a domain at the same time agree on the join, and not on one of the two.
//!
//! Servers keep a configuration's place by its index ([`ConfigurationId`]), which is the size of its membership. Along the order
//! the size only rises. Two memberships of which neither precedes the other may have one size: an index alone never says that
//! one configuration precedes another ([`Configuration::precedes`], `[L-1 one-order]`).

use super::{Configuration, Dap, Decider, Descriptor, InvalidConfiguration, ServerId};
use crate::limits;
use crate::tag::Writer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rise of a server's version from one coming to the next, where versions include slots: room for an even version
/// without a slot, for one with each slot, and for the odd version of the server that went, which is the largest.
pub(super) const PERIOD: u32 = 512;

/// The identity of a configuration in a lattice: a version for each server that was ever a member.
///
/// Version 0 is that of a member from the beginning. Each coming and going raises the version by 1, and a server that comes
/// later begins at 2: even versions are those of members. In a coded domain a version says the slot of a member, too, and
/// comings are [`PERIOD`] apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    versions: BTreeMap<ServerId, u32>,
    /// The domain is removed, and each join with this one says so.
    removed: bool,
    /// The domain is coded.
    has_slots: bool,
}

impl Membership {
    /// The membership of the first configuration of a domain: nothing precedes it.
    pub fn first(members: impl IntoIterator<Item = ServerId>) -> Membership {
        let versions = members.into_iter().map(|member| (member, 0)).collect();
        Membership::of_versions(versions, false)
    }

    /// A membership with these versions, as they are stored and sent.
    pub(super) fn of_versions(versions: BTreeMap<ServerId, u32>, removed: bool) -> Membership {
        Membership {
            versions,
            removed,
            has_slots: false,
        }
    }

    /// These members in a coded domain: versions include slots (`[R-32 slots-stay]`).
    #[must_use]
    pub fn with_slots(self) -> Membership {
        Membership {
            has_slots: true,
            ..self
        }
    }

    /// True if the domain is coded, so that versions say slots.
    pub fn has_slots(&self) -> bool {
        self.has_slots
    }

    /// The difference of a server's versions from one coming to the next.
    fn period(&self) -> u32 {
        match self.has_slots {
            true => PERIOD,
            false => 2,
        }
    }

    /// The largest version of a server before it comes again: it went, whichever slot it had.
    fn last_before_coming(&self, version: u32) -> u32 {
        version | (self.period() - 1)
    }

    /// The version of each server that was ever a member.
    pub fn versions(&self) -> &BTreeMap<ServerId, u32> {
        &self.versions
    }

    /// Its members, by id.
    pub fn members(&self) -> Vec<ServerId> {
        let is_member = |(_, version): &(&ServerId, &u32)| is_of_member(**version);
        let members = self.versions.iter().filter(is_member);
        members.map(|(server, _)| *server).collect()
    }

    /// Its members, and as many of those that went as it takes to be `least`: the first ones, by id.
    fn members_filled(&self, least: usize) -> Vec<ServerId> {
        let gone = |(_, version): &(&ServerId, &u32)| !is_of_member(**version);
        let gone = self.versions.iter().filter(gone).map(|(server, _)| *server);
        let mut members = self.members();
        members.extend(gone.take(least.saturating_sub(members.len())));
        members.sort_unstable();
        assert!(
            members.len() >= least.min(self.versions.len()),
            "all that there are"
        );
        members
    }

    /// The next membership, with the server as a member; unchanged if it is one already.
    #[must_use]
    pub fn with(&self, server: ServerId) -> Membership {
        match self.versions.get(&server) {
            None => self.at(server, self.period()),
            Some(version) if !is_of_member(*version) => {
                self.at(server, self.last_before_coming(*version) + 1)
            }
            Some(_) => self.clone(),
        }
    }

    /// The next membership, without the server as a member; unchanged if it is none.
    #[must_use]
    pub fn without(&self, server: ServerId) -> Membership {
        match self.versions.get(&server) {
            Some(version) if is_of_member(*version) => {
                self.at(server, self.last_before_coming(*version))
            }
            Some(_) | None => self.clone(),
        }
    }

    /// The next membership, with these servers as the members. Members that stay keep their slots.
    #[must_use]
    pub fn of_members(&self, members: &[ServerId]) -> Membership {
        let known = self.members();
        let goes = |server: &ServerId| !members.contains(server);
        let gone: Vec<ServerId> = known.iter().copied().filter(goes).collect();
        if gone.is_empty() && members.iter().all(|server| known.contains(server)) {
            return self.clone();
        }
        let left = gone.into_iter();
        let left = left.fold(self.settled(), |left, server| left.without(server));
        let changed = members
            .iter()
            .fold(left, |changed, server| changed.with(*server));
        assert!(self.precedes(&changed), "changes lead upwards");
        changed
    }

    /// The last membership, which marks the domain as removed.
    #[must_use]
    pub fn removal(&self) -> Membership {
        let removed = true;
        Membership {
            removed,
            ..self.clone()
        }
    }

    /// True if the domain is removed.
    pub fn is_removal(&self) -> bool {
        self.removed
    }

    fn at(&self, server: ServerId, version: u32) -> Membership {
        let mut changed = self.clone();
        changed.versions.insert(server, version);
        assert!(self.precedes(&changed), "a change leads upwards");
        assert!(!changed.precedes(self), "and not back");
        changed
    }

    /// The least membership that neither of the two is above: it has the changes of both.
    #[must_use]
    pub fn join(&self, other: &Membership) -> Membership {
        let mut joined = self.clone();
        for (server, version) in &other.versions {
            let known = joined.versions.entry(*server).or_insert(*version);
            *known = (*known).max(*version);
        }
        joined.removed |= other.removed;
        joined.has_slots |= other.has_slots;
        assert!(
            self.is_within(&joined) && other.is_within(&joined),
            "a join is above what it joins"
        );
        joined
    }

    /// True if the other one has every change that this one has (`≤`).
    pub fn is_within(&self, other: &Membership) -> bool {
        let reaches = |(server, version): (&ServerId, &u32)| {
            let known = other.versions.get(server);
            known.is_some_and(|known| known >= version)
        };
        self.versions.iter().all(reaches)
            && (other.removed || !self.removed)
            && (other.has_slots || !self.has_slots)
    }

    /// True if the other one has every change of this one, and more (`<`).
    pub fn precedes(&self, other: &Membership) -> bool {
        self != other && self.is_within(other)
    }

    /// The number of changes that led here: rises along the order within a domain. `None`: more than an index can say.
    pub fn size(&self) -> Option<u32> {
        let mut versions = self.versions.values();
        versions.try_fold(u32::from(self.removed), |size, version| {
            size.checked_add(*version)
        })
    }
}

fn is_of_member(version: u32) -> bool {
    version.is_multiple_of(2)
}

impl Configuration {
    /// True if the other one comes after this one in their domain: the one order of configurations, of both families (`[L-1 one-order]`). In a
    /// sequence that of the indices, in a lattice that of the memberships.
    pub fn precedes(&self, later: &Configuration) -> bool {
        let domain = |c: &Configuration| (c.id.domain, c.id.partition);
        domain(self) == domain(later)
            && match (&self.descriptor.lattice, &later.descriptor.lattice) {
                (None, None) => self.id.index < later.id.index,
                (Some(membership), Some(above)) => membership.precedes(above),
                (None, Some(_)) | (Some(_), None) => false,
            }
    }

    /// The number of members that the configurations of this domain that come after this one have at least (`[R-3 never-too-few]`): as many as it
    /// takes to tolerate a crash, or as many as there are, if these are fewer.
    pub fn least_members(&self) -> usize {
        let membership = self.descriptor.lattice.as_ref();
        let there = membership.map_or(self.n(), |membership| membership.members().len());
        let tolerating = usize::from(self.dap().k()) + 2;
        limits::LATTICE_MEMBERS.max(tolerating).min(there)
    }

    /// True if successors of which none precedes the other may come after it ([`Decider::branches`]).
    pub fn branches(&self) -> bool {
        self.descriptor.decided_by.branches()
    }

    /// True if it is the other one or comes after it.
    pub fn is_at_least(&self, other: &Configuration) -> bool {
        self == other || other.precedes(self)
    }

    /// The configuration of this domain, which is a lattice, that has this membership and is like this one otherwise.
    ///
    /// # Errors
    /// [`InvalidConfiguration`] if it has no members, too many, or more changes than an index can say.
    pub fn with_membership(
        &self,
        membership: Membership,
    ) -> Result<Arc<Configuration>, InvalidConfiguration> {
        assert!(self.descriptor.lattice.is_some(), "a sequence has none");
        assert!(!self.dap().is_removal(), "nothing comes after a removal");
        let index = membership.size().ok_or(InvalidConfiguration::Index)?;
        let dap = match membership.removed {
            true => Dap::Removed,
            false => self.descriptor.dap,
        };
        Configuration::new(Descriptor {
            index,
            members: self.members_of(&membership),
            dap,
            lattice: Some(membership),
            ..self.descriptor.clone()
        })
    }

    /// The members of a configuration of this domain. Where changes of which none is refused may leave too few, some of those that
    /// went stay members until others come (`[R-29 filled-up]`).
    fn members_of(&self, membership: &Membership) -> Vec<ServerId> {
        match self.branches() {
            true => membership.members_filled(limits::LATTICE_MEMBERS),
            false => membership.members(),
        }
    }

    /// The leader, if a leader proposes the successor: the member that makes the changes posted here
    /// (`[R-31 designated-leader]`).
    pub fn leader(&self) -> Option<ServerId> {
        self.descriptor.decided_by.owner()?;
        self.members.iter().copied().min()
    }

    /// A configuration that a leader proposes: only `owner` may propose its successor at ballot 0
    /// (`[R-11 owned-ballot]`).
    ///
    /// # Errors
    /// As [`Configuration::with_membership`].
    pub fn led_by(
        &self,
        membership: Membership,
        owner: Writer,
    ) -> Result<Arc<Configuration>, InvalidConfiguration> {
        assert!(
            self.descriptor.decided_by.owner().is_some() && owner != Writer::default(),
            "a leader follows a leader"
        );
        let next = self.with_membership(membership)?;
        Configuration::new(Descriptor {
            decided_by: Decider::Leader { owner },
            ..next.descriptor.clone()
        })
    }

    /// Checks that a descriptor's index, members and kind agree with its membership, and that the rest of it is
    /// possible in a lattice: its objects are replicated, or coded with changes merged by lattice agreement, and its
    /// members alone establish the successor.
    pub(super) fn check_lattice(&self) -> Result<(), InvalidConfiguration> {
        let descriptor = &self.descriptor;
        let fits = match &descriptor.lattice {
            None => matches!(
                descriptor.decided_by,
                Decider::Members | Decider::Etcd { .. }
            ),
            Some(membership) => {
                let keeps = match membership.has_slots {
                    true => matches!(descriptor.dap, Dap::Ec { .. }),
                    false => descriptor.dap.is_replicated(),
                };
                let is_established =
                    !membership.has_slots || descriptor.decided_by == Decider::Agreement;
                membership.size() == Some(descriptor.index)
                    && self.members_of(membership) == descriptor.members
                    && membership.removed == descriptor.dap.is_removal()
                    && membership.versions().len() <= limits::LATTICE_SERVERS
                    && (!self.branches() || descriptor.members.len() >= limits::LATTICE_MEMBERS)
                    && (keeps || membership.removed)
                    && is_established
                    && !matches!(descriptor.decided_by, Decider::Etcd { .. })
            }
        };
        match fits {
            true => Ok(()),
            false => Err(InvalidConfiguration::Lattice),
        }
    }
}

#[cfg(test)]
mod tests;
