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

/// What tells the configurations of a lattice apart: a version for each server that was ever a member.
///
/// Version 0 is that of a member from the beginning. Each coming and going raises the version by 1, and a server that comes
/// later begins at 2: even versions are those of members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    versions: BTreeMap<ServerId, u32>,
    /// The domain is removed, and each join with this one says so.
    removed: bool,
}

impl Membership {
    /// That of the first configuration of a domain: nothing precedes it.
    pub fn first(members: impl IntoIterator<Item = ServerId>) -> Membership {
        let versions = members.into_iter().map(|member| (member, 0)).collect();
        Membership::of_versions(versions, false)
    }

    /// With these versions, as they are stored and sent.
    pub(super) fn of_versions(versions: BTreeMap<ServerId, u32>, removed: bool) -> Membership {
        Membership { versions, removed }
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

    /// This one, with the server as a member from now on. The same if it is one.
    #[must_use]
    pub fn with(&self, server: ServerId) -> Membership {
        match self.versions.get(&server) {
            None => self.at(server, 2),
            Some(version) if !is_of_member(*version) => self.at(server, version + 1),
            Some(_) => self.clone(),
        }
    }

    /// This one, with the server as no member from now on. The same if it is none.
    #[must_use]
    pub fn without(&self, server: ServerId) -> Membership {
        match self.versions.get(&server) {
            Some(version) if is_of_member(*version) => self.at(server, version + 1),
            Some(_) | None => self.clone(),
        }
    }

    /// This one, with these servers as its members from now on.
    #[must_use]
    pub fn of_members(&self, members: &[ServerId]) -> Membership {
        let goes = |server: &ServerId| !members.contains(server);
        let gone = self.members().into_iter().filter(goes);
        let left = gone.fold(self.clone(), |left, server| left.without(server));
        let changed = members
            .iter()
            .fold(left, |changed, server| changed.with(*server));
        assert!(self.is_within(&changed), "changes lead upwards");
        changed
    }

    /// This one, and the domain is removed.
    #[must_use]
    pub fn removal(&self) -> Membership {
        let removed = true;
        Membership {
            removed,
            ..self.clone()
        }
    }

    /// Whether the domain is removed.
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
        assert!(
            self.is_within(&joined) && other.is_within(&joined),
            "a join is above what it joins"
        );
        joined
    }

    /// Whether the other one has every change that this one has (`≤`).
    pub fn is_within(&self, other: &Membership) -> bool {
        let reaches = |(server, version): (&ServerId, &u32)| {
            let known = other.versions.get(server);
            known.is_some_and(|known| known >= version)
        };
        self.versions.iter().all(reaches) && (other.removed || !self.removed)
    }

    /// Whether the other one has every change of this one, and more (`<`).
    pub fn precedes(&self, other: &Membership) -> bool {
        self != other && self.is_within(other)
    }

    /// How many changes led here: rises along the order within a domain. `None`: more than an index can say.
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
    /// Whether the other one comes after this one in their domain: the one order of configurations, of both families
    /// (`[L-1 one-order]`). In a sequence that of the indices, in a lattice that of the memberships.
    pub fn precedes(&self, later: &Configuration) -> bool {
        let domain = |c: &Configuration| (c.id.domain, c.id.partition);
        domain(self) == domain(later)
            && match (&self.descriptor.lattice, &later.descriptor.lattice) {
                (None, None) => self.id.index < later.id.index,
                (Some(membership), Some(above)) => membership.precedes(above),
                (None, Some(_)) | (Some(_), None) => false,
            }
    }

    /// Whether successors of which none precedes the other may come after it ([`Decider::branches`]).
    pub fn branches(&self) -> bool {
        self.descriptor.decided_by.branches()
    }

    /// Whether it is the other one or comes after it.
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

    /// The member that leads: it makes what is posted here, if what comes next is proposed by a leader (`[R-31 designated-leader]`).
    pub fn leader(&self) -> Option<ServerId> {
        self.descriptor.decided_by.owner()?;
        self.members.iter().copied().min()
    }

    /// The same, proposed by a leader: `owner` alone may propose at ballot 0 what comes after it (`[R-11 owned-ballot]`).
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

    /// Checks that a descriptor's index, members and kind are those that its membership says, and that the rest of it is
    /// possible in a lattice: its objects are replicated, and its members alone establish what comes next.
    pub(super) fn check_lattice(&self) -> Result<(), InvalidConfiguration> {
        let descriptor = &self.descriptor;
        let fits = match &descriptor.lattice {
            None => matches!(
                descriptor.decided_by,
                Decider::Members | Decider::Etcd { .. }
            ),
            Some(membership) => {
                let keeps_copies = descriptor.dap.is_replicated() || membership.removed;
                membership.size() == Some(descriptor.index)
                    && self.members_of(membership) == descriptor.members
                    && membership.removed == descriptor.dap.is_removal()
                    && membership.versions().len() <= limits::LATTICE_SERVERS
                    && (!self.branches() || descriptor.members.len() >= limits::LATTICE_MEMBERS)
                    && keeps_copies
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
mod tests {
    use super::super::testing::replicated;
    use super::super::{Dap, Descriptor};
    use super::*;
    use std::sync::Arc;

    /// Every one of three servers, of which the first two are members from the beginning, up to version 3.
    fn small() -> Vec<Membership> {
        let mut all = Vec::new();
        for first in 0..4 {
            for second in 0..4 {
                for third in [None, Some(2), Some(3)] {
                    let versions = [(1, Some(first)), (2, Some(second)), (3, third)];
                    let known = versions.into_iter();
                    let known = known.filter_map(|(id, version)| Some((ServerId(id), version?)));
                    let present = Membership::of_versions(known.collect(), false);
                    all.extend([present.removal(), present]);
                }
            }
        }
        all
    }

    #[test]
    fn small_memberships_are_a_lattice() {
        let all = small();
        for a in &all {
            assert_eq!(a.join(a), *a);
            assert!(a.is_within(a) && !a.precedes(a));
            for b in &all {
                let joined = a.join(b);
                assert_eq!(joined, b.join(a));
                assert!(a.is_within(&joined) && b.is_within(&joined));
                assert_eq!(
                    a.is_within(b),
                    joined == *b,
                    "the order is that of the join"
                );
                assert_eq!(a.is_within(b) && b.is_within(a), a == b);
                for c in &all {
                    assert_eq!(joined.join(c), a.join(&b.join(c)));
                    assert!(!(a.precedes(b) && b.precedes(c)) || a.precedes(c));
                    let is_above_both = a.is_within(c) && b.is_within(c);
                    assert!(!is_above_both || joined.is_within(c), "it is the least");
                }
            }
        }
    }

    #[test]
    fn size_rises_along_the_order_and_says_nothing_else() {
        let all = small();
        let mut same_size = 0;
        for a in &all {
            for b in &all {
                assert!(!a.precedes(b) || a.size() < b.size());
                same_size += u32::from(a != b && a.size() == b.size());
            }
        }
        assert!(
            same_size > 0,
            "two memberships of one size need not be the same"
        );
        let versions = [(ServerId(1), u32::MAX), (ServerId(2), 1)];
        assert_eq!(Membership::of_versions(versions.into(), false).size(), None);
    }

    #[test]
    fn memberships_survive_alone() {
        for membership in small() {
            let encoded = membership.encode();
            assert_eq!(Membership::decode(&encoded), Ok(membership));
            let cut = Membership::decode(&encoded[..encoded.len() - 1]);
            assert!(cut.is_err());
        }
        assert!(Membership::decode(&[]).is_err());
    }

    #[test]
    fn members_are_chosen_and_removals_stay() {
        let all = small();
        for membership in &all {
            let chosen = [ServerId(2), ServerId(3)];
            let changed = membership.of_members(&chosen);
            assert_eq!(changed.members(), chosen);
            assert_eq!(changed.of_members(&chosen), changed);
            assert_eq!(changed.is_removal(), membership.is_removal());
            for other in &all {
                assert!(other.join(&membership.removal()).is_removal());
            }
        }
    }

    #[test]
    fn changes_lead_upwards_and_commute() {
        for membership in small() {
            for server in (1..=3).map(ServerId) {
                let (with, without) = (membership.with(server), membership.without(server));
                assert!(membership.is_within(&with) && membership.is_within(&without));
                assert!(with.members().contains(&server));
                assert!(!without.members().contains(&server));
                let again = without.with(server);
                assert!(without.precedes(&again) && again.members().contains(&server));
                for other in (1..=3).map(ServerId).filter(|other| *other != server) {
                    let both = with.without(other);
                    assert_eq!(both, membership.without(other).with(server));
                    assert_eq!(
                        both,
                        with.join(&membership.without(other)),
                        "as one does each"
                    );
                }
            }
        }
    }

    fn of(membership: &Membership) -> Descriptor {
        Descriptor {
            index: membership.size().unwrap(),
            members: membership.members(),
            lattice: Some(membership.clone()),
            ..replicated(1).descriptor().clone()
        }
    }

    #[test]
    fn configurations_of_a_lattice_survive_and_are_ordered_by_their_memberships() {
        let first = Membership::first((1..=3).map(ServerId));
        let (left, right) = (first.with(ServerId(4)), first.with(ServerId(5)));
        let made = |membership: &Membership| Configuration::new(of(membership)).unwrap();
        let [bottom, left, right, top] = [&first, &left, &right, &left.join(&right)].map(made);
        let removal = top.descriptor().lattice.clone().map(|it| it.removal());
        let removal = top.with_membership(removal.unwrap()).unwrap();
        assert!(removal.dap().is_removal());
        for c in [&bottom, &left, &right, &top, &removal] {
            let read = Configuration::decode(c.encoded().clone()).unwrap();
            assert_eq!((&read, read.descriptor()), (c, c.descriptor()));
            assert!(!c.precedes(c) && c.is_at_least(c));
        }
        let is_below = |a: &Arc<Configuration>, b: &Arc<Configuration>| {
            a.precedes(b) && b.is_at_least(a) && !b.precedes(a)
        };
        assert!(is_below(&bottom, &left) && is_below(&bottom, &top));
        assert!(is_below(&left, &top) && is_below(&right, &top));
        assert!(is_below(&top, &removal) && is_below(&left, &removal));
        assert!(!left.precedes(&right) && !right.precedes(&left));
        assert_eq!(left.id().index, right.id().index);
        let sequence = replicated(3);
        assert!(!sequence.precedes(&left) && !left.precedes(&sequence));
        let elsewhere = Descriptor {
            partition: 1,
            ..top.descriptor().clone()
        };
        assert!(!bottom.precedes(&Configuration::new(elsewhere).unwrap()));
    }

    #[test]
    fn a_descriptor_that_contradicts_its_membership_is_refused() {
        let membership = Membership::first((1..=3).map(ServerId)).with(ServerId(4));
        let right = || of(&membership);
        assert!(Configuration::new(right()).is_ok());
        let wrong = [
            Descriptor {
                index: 1,
                ..right()
            },
            Descriptor {
                members: (1..=3).map(ServerId).collect(),
                ..right()
            },
            Descriptor {
                members: (1..=4).rev().map(ServerId).collect(),
                ..right()
            },
            Descriptor {
                dap: Dap::Ec { k: 2 },
                ..right()
            },
            Descriptor {
                dap: Dap::Conditional { k: 1 },
                ..right()
            },
            Descriptor {
                dap: Dap::Removed,
                ..right()
            },
            Descriptor {
                lattice: Some(membership.removal()),
                index: right().index + 1,
                ..right()
            },
            Descriptor {
                decided_by: "etcd=a:1".parse().unwrap(),
                ..right()
            },
            Descriptor {
                decided_by: Decider::Agreement,
                lattice: None,
                ..right()
            },
            Descriptor {
                decided_by: Decider::Speculation,
                lattice: None,
                ..right()
            },
        ];
        for descriptor in wrong {
            let refused = Configuration::new(descriptor);
            assert_eq!(refused, Err(InvalidConfiguration::Lattice));
        }
        let huge = [(ServerId(1), u32::MAX - 1), (ServerId(2), 2)];
        let huge = Descriptor {
            lattice: Some(Membership::of_versions(huge.into(), false)),
            members: vec![ServerId(1), ServerId(2)],
            ..right()
        };
        assert_eq!(Configuration::new(huge), Err(InvalidConfiguration::Lattice));
    }
}
