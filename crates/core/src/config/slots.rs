//! Slots: which elements of an `[n, k]` code the members of a lattice hold (`docs/spec`, `[R-32 slots-stay]`).
//!
//! In a sequence a member's place in the list says its element. In a lattice members come and go one by one, and places and `n` change for
//! those that stay; their slots do not, so that they adopt what they have. A slot is part of what is agreed on: the version of a
//! member says it, as soon as one configuration with that member has been in use.

use super::lattice::PERIOD;
use super::{Descriptor, Membership, ServerId};
use crate::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The slots that there are.
const SLOTS: usize = limits::MEMBERS;

const _: () = assert!(
    2 * SLOTS as u32 <= PERIOD - 2,
    "a version says each slot and is even"
);

/// The slot that the version of a member says.
fn said(version: u32) -> Option<u8> {
    assert!(version.is_multiple_of(2), "it is of a member");
    let place = version % PERIOD / 2;
    u8::try_from(place.checked_sub(1)?).ok()
}

/// The version of a member that says this slot, of the coming that `version` is of.
fn saying(version: u32, slot: u8) -> u32 {
    let said = version - version % PERIOD + 2 * (u32::from(slot) + 1);
    assert_eq!(self::said(said), Some(slot), "it says it");
    said
}

impl Membership {
    /// The slot of each member, by id, where versions say slots. A member keeps the slot that its version says; of several that say one
    /// the first has it, by id. The others take free ones.
    pub(super) fn slots(&self) -> BTreeMap<ServerId, u8> {
        assert!(self.has_slots(), "of a coded domain");
        let members = self.members();
        let said = |member: &ServerId| (*member, said(self.versions()[member]));
        let said: Vec<(ServerId, Option<u8>)> = members.iter().map(said).collect();
        let mut taken = BTreeSet::new();
        let mut slots = BTreeMap::new();
        for (member, slot) in &said {
            if let Some(slot) = slot.filter(|slot| taken.insert(*slot)) {
                slots.insert(*member, slot);
            }
        }
        for (member, lost) in &said {
            if !slots.contains_key(member) {
                // Above the one that another member has, so that the version of this one rises where it says so.
                let from = lost.unwrap_or(0);
                let mut free = (from..SLOTS as u8).chain(0..from);
                let slot = free.find(|slot| taken.insert(*slot));
                slots.insert(*member, slot.expect("there are as many as members"));
            }
        }
        assert_eq!(slots.len(), members.len(), "each member has one");
        assert_eq!(taken.len(), members.len(), "and no two the same");
        slots
    }

    /// This one, whose members say the slots that they have; the same where versions say none. What is proposed next contains it, so that
    /// no member that stays loses its slot to one that comes.
    #[must_use]
    pub fn settled(&self) -> Membership {
        if !self.has_slots() {
            return self.clone();
        }
        let mut versions = self.versions().clone();
        for (member, slot) in self.slots() {
            let version = versions.get_mut(&member).expect("of a member");
            *version = (*version).max(saying(*version, slot));
        }
        let settled = Membership::of_versions(versions, self.is_removal()).with_slots();
        assert!(self.is_within(&settled), "versions rise");
        assert_eq!(self.members(), settled.members(), "and no member changes");
        settled
    }
}

/// The slot of each member of a configuration of a coded lattice: the fragment that the member holds.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Slots of the members, by position.
    of_members: Arc<[u8]>,
    /// Slots below this one take turns, by object.
    turning: u8,
}

impl Slots {
    /// `None`: positions say it, or the descriptor contradicts its membership and is refused.
    pub(super) fn of(descriptor: &Descriptor) -> Option<Slots> {
        let membership = descriptor.lattice.as_ref()?;
        let fits = membership.members() == descriptor.members && descriptor.members.len() <= SLOTS;
        let is_coded = fits && membership.has_slots() && descriptor.dap.is_coded();
        // Of a domain that is to tolerate a crash there are as many members at least. The number never changes, as that of the members does.
        let turning = (usize::from(descriptor.dap.k()) + 2).min(SLOTS);
        is_coded.then(|| Slots {
            of_members: membership.slots().into_values().collect(),
            turning: turning as u8,
        })
    }

    /// Indices of elements are below this one.
    pub(super) fn width(&self) -> u8 {
        let last = self.of_members.iter().max();
        let last = last.expect("a configuration has members");
        self.turning.max(last + 1)
    }

    pub(super) fn element_index(&self, position: usize, placement_hash: u64) -> u8 {
        let (slot, turning) = (self.of_members[position], u64::from(self.turning));
        let index = match u64::from(slot) < turning {
            true => ((u64::from(slot) + placement_hash % turning) % turning) as u8,
            false => slot,
        };
        assert!(index < self.width(), "the code has it");
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, Dap, Decider, Descriptor, InvalidConfiguration};
    use crate::object::DomainId;

    fn first() -> Membership {
        Membership::first((1..=5).map(ServerId)).with_slots()
    }

    fn of(membership: &Membership) -> Descriptor {
        Descriptor {
            index: membership.size().unwrap(),
            lattice: Some(membership.clone()),
            decided_by: Decider::Agreement,
            ..Descriptor::new(DomainId(1), membership.members(), Dap::Ec { k: 3 })
        }
    }

    fn slots(membership: &Membership) -> Vec<(u128, u8)> {
        let slots = membership.slots().into_iter();
        slots.map(|(member, slot)| (member.0, slot)).collect()
    }

    #[test]
    fn each_slot_can_be_said() {
        for coming in [0, PERIOD, 7 * PERIOD] {
            assert_eq!(said(coming), None);
            for slot in 0..SLOTS as u8 {
                let version = saying(coming, slot);
                assert_eq!(said(version), Some(slot));
                assert_eq!(saying(version, slot), version);
                assert!(coming < version && version < coming + PERIOD - 1);
            }
        }
    }

    /// Servers get slots in any order of their ids: a new member takes a free slot, and a member that stays keeps its
    /// slot.
    #[test]
    fn who_comes_takes_what_is_free() {
        let first = first();
        assert_eq!(slots(&first), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]);
        let more = first.settled().with(ServerId(0));
        let expected = [(0, 5), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4)];
        assert_eq!(slots(&more), expected);
        let replaced = more.settled().without(ServerId(2)).with(ServerId(9));
        let expected = [(0, 5), (1, 0), (3, 2), (4, 3), (5, 4), (9, 1)];
        assert_eq!(slots(&replaced), expected);
        let back = replaced.settled().without(ServerId(1)).with(ServerId(2));
        let expected = [(0, 5), (2, 0), (3, 2), (4, 3), (5, 4), (9, 1)];
        assert_eq!(slots(&back), expected);
        assert_eq!(back.settled().settled(), back.settled());
    }

    /// Two successors of one configuration were decided at once, so that a server that came with both has two slots.
    #[test]
    fn a_slot_that_two_members_say_is_that_of_one() {
        let base = first().settled();
        let one = base.with(ServerId(9)).settled();
        let both = base.with(ServerId(9)).with(ServerId(8)).settled();
        let of = |membership: &Membership, member| membership.slots()[&ServerId(member)];
        assert_eq!((of(&one, 9), of(&both, 8), of(&both, 9)), (5, 5, 6));
        for joined in [one.join(&both), both.join(&one)] {
            assert_eq!((of(&joined, 8), of(&joined, 9)), (5, 6));
        }
        // As above, but the one that is said by two is the larger one for neither.
        let swapped = base.with(ServerId(8)).settled().join(&one);
        assert_eq!((of(&swapped, 8), of(&swapped, 9)), (5, 6));
        let settled = swapped.settled();
        assert!(swapped.precedes(&settled), "the version of 9 rises");
        let alone = settled.without(ServerId(8));
        assert_eq!(of(&alone, 9), 6, "it keeps the other one");
    }

    /// A removal is larger than each slot, and a later coming than each removal.
    #[test]
    fn a_removal_is_not_undone_by_a_slot() {
        let base = first();
        let gone = base.without(ServerId(5));
        let joined = gone.join(&base.settled());
        assert!(!joined.members().contains(&ServerId(5)));
        assert!(gone.is_within(&joined) && base.settled().is_within(&joined));
        let again = joined.with(ServerId(5));
        assert!(again.join(&gone).members().contains(&ServerId(5)));
        assert_eq!(
            again.versions()[&ServerId(5)],
            PERIOD,
            "one that says no slot"
        );
        assert_eq!(again.with(ServerId(5)), again);
        let comes = base.with(ServerId(6));
        assert_eq!(comes.versions()[&ServerId(6)], PERIOD);
    }

    #[test]
    fn as_many_slots_as_members() {
        let most = Membership::first((1..=SLOTS as u128).map(ServerId)).with_slots();
        let settled = most.settled();
        let slots: BTreeSet<u8> = settled.slots().into_values().collect();
        assert_eq!(slots.len(), SLOTS);
        let replaced = settled.without(ServerId(100)).with(ServerId(1000));
        assert_eq!(replaced.slots()[&ServerId(1000)], 99);
        assert!(Configuration::new(of(&replaced)).is_ok());
        let all = Descriptor {
            dap: Dap::Ec { k: 255 },
            ..of(&most)
        };
        assert_eq!(Configuration::new(all).unwrap().code().n(), 255);
    }

    #[test]
    fn coded_lattices_survive_and_others_are_refused() {
        let right = || of(&first().settled().with(ServerId(9)).without(ServerId(1)));
        let c = Configuration::new(right()).unwrap();
        let read = Configuration::decode(c.encoded().clone()).unwrap();
        assert_eq!((&read, read.descriptor()), (&c, c.descriptor()));
        let known = right().lattice.unwrap();
        let removal = c.with_membership(known.removal()).unwrap();
        let read = Configuration::decode(removal.encoded().clone()).unwrap();
        assert_eq!(read.descriptor(), removal.descriptor());
        for membership in [known.clone(), known.removal()] {
            assert_eq!(
                Membership::decode(&membership.encode()),
                Ok(membership.clone())
            );
        }
        let plain = Membership::first((1..=5).map(ServerId));
        assert!(plain.is_within(&first()) && !first().is_within(&plain));
        let wrong = [
            Descriptor {
                dap: Dap::Abd,
                ..right()
            },
            Descriptor {
                dap: Dap::CasGc { k: 3 },
                ..right()
            },
            Descriptor {
                decided_by: Decider::Speculation,
                ..right()
            },
            Descriptor {
                decided_by: Decider::Snapshot,
                ..right()
            },
            Descriptor {
                decided_by: Decider::Members,
                ..right()
            },
            of(&plain),
            Descriptor {
                members: right().members,
                ..of(&Membership::first((1..=300).map(ServerId)).with_slots())
            },
        ];
        for descriptor in wrong {
            let refused = Configuration::new(descriptor);
            assert_eq!(refused, Err(InvalidConfiguration::Lattice));
        }
    }
}
