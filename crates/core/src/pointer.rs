//! The successors of a configuration: pointers, and their one order (`docs/spec` 3.2, `[A-2 pointers-rise]`,
//! `[A-3 merge-by-rank]`).
//!
//! ```text
//! none  <  (k+1, pending)  <  (k+1, final)  <  (k+2, final)  <  (k+3, final)  < ...
//! ```
//!
//! A server of configuration k takes a pointer only upwards, and a pending one only to k + 1, so that all pointers of a
//! domain form one chain. Clients merge what they hear by the same order. Nothing else compares pointers.
//!
//! In a domain whose configurations are a lattice a configuration may have several pending successors at a time, none of which
//! takes the place of another: [`Successors`] are all that is known, shown and taken in whole (`[R-25 whole-sets]`). A final
//! pointer takes the place of every one that does not lead further. In a sequence that leaves one pointer at most.
//!
//! Each index is decided once, and the configurations of a lattice that come into use are comparable. Two of which neither
//! precedes the other are a [`Fork`]: what decides forgot (a service outside that lost its data), or has a bug. Neither of the
//! two takes the other's place; a client or server that sees both says so and goes no further.

use crate::config::{Configuration, ConfigurationId};
use crate::limits;
use std::fmt;
use std::sync::Arc;

/// The status of the installation of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// Decided; it may not have the state of its predecessors yet.
    Pending,
    /// It received the state of its predecessors: whoever starts here misses nothing.
    Final,
}

/// The place of a pointer among those of one configuration: by index, and there by status, and by digest.
pub type Rank = (u32, Status, u64);

/// The next configuration, as a server or a client knows it (`nextC`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// The configuration, in full: a server that gets the pointer may have to describe it to others (`[X-13 highest-final]`).
    pub configuration: Arc<Configuration>,
    /// The status of its installation.
    pub status: Status,
}

impl Pointer {
    /// A configuration that was decided.
    pub fn pending(configuration: &Arc<Configuration>) -> Pointer {
        Pointer {
            configuration: configuration.clone(),
            status: Status::Pending,
        }
    }

    /// A configuration that received the state of its predecessors.
    pub fn finalized(configuration: &Arc<Configuration>) -> Pointer {
        Pointer {
            configuration: configuration.clone(),
            status: Status::Final,
        }
    }

    /// The index that it points to.
    pub fn index(&self) -> u32 {
        self.configuration.id().index
    }

    /// True if the state is there.
    pub fn is_final(&self) -> bool {
        self.status == Status::Final
    }

    /// True if the two may be of one domain although neither precedes the other: in DynaStore, unless both are final.
    fn is_beside(&self, other: &Pointer) -> bool {
        let (one, two) = (&self.configuration, &other.configuration);
        let domain = |c: &Configuration| (c.id().domain, c.id().partition);
        let branch = one.branches() && two.branches() && domain(one) == domain(two);
        branch && !(self.is_final() && other.is_final())
    }

    /// Its place in the order. Two pointers of one configuration's chain with the same rank are the same.
    pub fn rank(&self) -> Rank {
        let id = self.configuration.id();
        (id.index, self.status, id.digest)
    }

    /// True if it may stand at configuration `k`: it leads upwards within the same domain, and in a sequence a pending one leads to the very next
    /// configuration (`[A-2 pointers-rise]`). In a lattice the indices alone do not say that it leads upwards ([`Pointer::leads_on_from_known`]).
    pub fn leads_on_from(&self, k: &ConfigurationId) -> bool {
        let to = self.configuration.id();
        let same_domain = (to.domain, to.partition) == (k.domain, k.partition);
        let is_step = self.configuration.descriptor().lattice.is_none() && !self.is_final();
        let upwards = match is_step {
            true => Some(to.index) == k.index.checked_add(1),
            false => to.index > k.index,
        };
        same_domain && upwards
    }

    /// [`Self::leads_on_from`] if the configuration itself is known. A final pointer also leads on from siblings of
    /// the configuration: they are superseded.
    pub fn leads_on_from_known(&self, c: &Configuration) -> bool {
        let supersedes = c.branches() && self.is_final() && !c.is_at_least(&self.configuration);
        self.leads_on_from(&c.id()) && (c.precedes(&self.configuration) || supersedes)
    }
}

/// All that is known to come after one configuration: pointers, ascending, of which at most the first is final. Of a sequence
/// there is one at most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Successors(Vec<Pointer>);

impl Successors {
    /// Checks that the pointers are in the one form in which they are sent and stored; otherwise `None`.
    pub fn new(pointers: Vec<Pointer>) -> Option<Successors> {
        let is_next = |a: &Pointer, b: &Pointer| {
            let follows = a.configuration.precedes(&b.configuration);
            !b.is_final() && (follows || !a.is_final() && a.rank() < b.rank() && a.is_beside(b))
        };
        let mut rest = pointers.iter().skip(1);
        let follow_first = pointers.first().is_none_or(|first| {
            !first.is_final() || rest.all(|it| first.configuration.precedes(&it.configuration))
        });
        let fits =
            pointers.len() <= limits::SUCCESSORS && pointers.is_sorted_by(is_next) && follow_first;
        fits.then_some(Successors(pointers))
    }

    /// The pointers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Pointer> {
        self.0.iter()
    }

    /// Number of pointers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nothing is known to come next.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pointer to the nearest configuration: where an operation goes on.
    pub fn nearest(&self) -> Option<&Pointer> {
        self.0.first()
    }

    /// The final pointer, if there is one.
    pub fn last_final(&self) -> Option<&Pointer> {
        self.nearest().filter(|pointer| pointer.is_final())
    }

    /// True if the pointer says nothing that these do not say: it is among them, or it does not lead further than a final one.
    pub fn says(&self, pointer: &Pointer) -> bool {
        self.0.iter().any(|known| {
            let leads_further = known.configuration.precedes(&pointer.configuration);
            *known == *pointer || known.is_final() && !leads_further
        })
    }

    /// True if the others say nothing that these do not say.
    pub fn cover(&self, others: &Successors) -> bool {
        others.iter().all(|pointer| self.says(pointer))
    }

    /// Takes in the pointer (`[A-3 merge-by-rank]`). Returns whether it says something new.
    ///
    /// # Errors
    /// [`Fork`], and what was known is kept.
    pub fn insert(&mut self, new: Pointer) -> Result<bool, Fork> {
        self.check(&new)?;
        if self.says(&new) {
            return Ok(false);
        }
        if new.is_final() {
            let leads_further = |known: &Pointer| new.configuration.precedes(&known.configuration);
            self.0.retain(leads_further);
        }
        let place = self.0.partition_point(|known| known.rank() < new.rank());
        self.0.insert(place, new);
        assert!(
            self.0.iter().skip(1).all(|known| !known.is_final()),
            "a final pointer is the first"
        );
        assert!(
            self.0.is_sorted_by(|one, next| one.rank() < next.rank()),
            "one pointer of each rank"
        );
        Ok(true)
    }

    /// Takes in all of the others. Returns whether they say something new.
    ///
    /// # Errors
    /// [`Fork`]; what came before it is taken in.
    pub fn join(&mut self, others: &Successors) -> Result<bool, Fork> {
        let mut rises = false;
        for pointer in others.iter() {
            rises |= self.insert(pointer.clone())?;
        }
        assert!(self.cover(others), "what was taken in is known");
        Ok(rises)
    }

    /// The successors that may stand at this configuration.
    #[must_use]
    pub fn above(&self, c: &Configuration) -> Successors {
        let leads_on = |pointer: &&Pointer| pointer.leads_on_from_known(c);
        Successors(self.0.iter().filter(leads_on).cloned().collect())
    }

    /// [`Self::above`], and those that lead to a configuration beside this one: an operation that comes from here has not been there.
    #[must_use]
    pub fn beyond(&self, c: &Configuration) -> Successors {
        let is_beyond = |pointer: &&Pointer| match c.branches() {
            true => !c.is_at_least(&pointer.configuration),
            false => pointer.leads_on_from_known(c),
        };
        Successors(self.0.iter().filter(is_beyond).cloned().collect())
    }

    /// Checks that the pointer can be of the same domain as all of them.
    ///
    /// # Errors
    /// [`Fork`] if it cannot.
    pub fn check(&self, pointer: &Pointer) -> Result<(), Fork> {
        let mut known = self.0.iter();
        known.try_for_each(|known| Fork::check(known, pointer))
    }
}

impl From<&Pointer> for Successors {
    fn from(pointer: &Pointer) -> Successors {
        Successors(vec![pointer.clone()])
    }
}

impl From<&Successors> for Successors {
    fn from(successors: &Successors) -> Successors {
        successors.clone()
    }
}

impl From<Option<Pointer>> for Successors {
    fn from(pointer: Option<Pointer>) -> Successors {
        Successors(pointer.into_iter().collect())
    }
}

/// Two configurations of one domain of which neither precedes the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fork {
    /// The two; the one that was seen first comes first.
    pub configurations: [Arc<Configuration>; 2],
}

impl Fork {
    /// Checks that the two can be of one domain. Those that are final are comparable in each family, and all are but in DynaStore; in a sequence two
    /// contradict each other if they have one index.
    ///
    /// # Errors
    /// [`Fork`] if they are not the same, and neither precedes the other in their domain.
    pub fn check(first: &Pointer, second: &Pointer) -> Result<(), Fork> {
        match first.is_beside(second) {
            true => Ok(()),
            false => Fork::check_order(&first.configuration, &second.configuration),
        }
    }

    /// [`Fork::check`] for two configurations of which one must precede the other.
    ///
    /// # Errors
    /// As [`Fork::check`].
    pub fn check_order(
        first: &Arc<Configuration>,
        second: &Arc<Configuration>,
    ) -> Result<(), Fork> {
        let domain = |c: &Configuration| (c.id().domain, c.id().partition);
        let is_comparable = first.is_at_least(second) || first.precedes(second);
        if domain(first) != domain(second) || is_comparable {
            return Ok(());
        }
        let configurations = [first.clone(), second.clone()];
        Err(Fork { configurations })
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.configurations;
        let id = first.id();
        write!(
            f,
            "configuration {} of domain {:032x} was decided twice: as {:016x} with members {:?} and as {:016x} with members {:?}",
            id.index,
            id.domain.0,
            id.digest,
            first.members(),
            second.id().digest,
            second.members()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::replicated;
    use crate::config::{Decider, Descriptor, Membership, ServerId};
    use crate::object::DomainId;

    fn configuration(domain: u128, index: u32) -> Arc<Configuration> {
        let descriptor = Descriptor {
            index,
            domain: DomainId(domain),
            ..replicated(1).descriptor().clone()
        };
        Configuration::new(descriptor).unwrap()
    }

    #[test]
    fn pointers_have_the_one_order() {
        let p = |index| Pointer::pending(&configuration(1, index));
        let f = |index| Pointer::finalized(&configuration(1, index));
        // From configuration 4.
        let ascending = [p(5), f(5), f(6), f(7)];
        for (position, pointer) in ascending.iter().enumerate() {
            assert!(!Successors::default().says(pointer));
            for (other, known) in ascending.iter().enumerate() {
                let says = Successors::from(known).says(pointer);
                assert_eq!(says, position <= other);
            }
        }
        let mut known = Successors::default();
        assert_eq!(known.insert(f(5)), Ok(true));
        assert_eq!(
            known.insert(p(5)),
            Ok(false),
            "final is never replaced by pending"
        );
        assert_eq!(known.insert(f(6)), Ok(true));
        assert_eq!(known, Successors::from(&f(6)));
    }

    /// The configurations of three changes of a lattice, one after the other, and one beside them.
    fn of_a_lattice() -> ([Arc<Configuration>; 4], Arc<Configuration>) {
        let made = |membership: Membership| {
            let descriptor = Descriptor {
                index: membership.size().unwrap(),
                members: membership.members(),
                lattice: Some(membership),
                ..replicated(1).descriptor().clone()
            };
            Configuration::new(descriptor).unwrap()
        };
        let first = Membership::first([ServerId(1)]);
        let beside = made(first.with(ServerId(9)).with(ServerId(8)));
        let mut next = first;
        let chain = [2, 3, 4, 5].map(|server| {
            next = next.with(ServerId(server));
            made(next.clone())
        });
        (chain, beside)
    }

    /// Pointers that come in any order make equal sets, in the form in which they are sent.
    #[test]
    fn several_pending_ones_stand_beside_each_other_until_a_final_one_reaches_them() {
        let (chain, beside) = of_a_lattice();
        let mut all: Vec<Pointer> = chain.iter().map(Pointer::pending).collect();
        all.push(Pointer::finalized(&chain[1]));
        let expected = [
            Pointer::finalized(&chain[1]),
            Pointer::pending(&chain[2]),
            Pointer::pending(&chain[3]),
        ];
        for turn in 0..all.len() {
            for reversed in [false, true] {
                let mut order = all.clone();
                order.rotate_left(turn);
                if reversed {
                    order.reverse();
                }
                let mut known = Successors::default();
                for pointer in order {
                    let before = known.clone();
                    let rises = !before.says(&pointer);
                    assert_eq!(known.insert(pointer.clone()), Ok(rises));
                    assert!(known.cover(&before) && known.says(&pointer));
                    assert_eq!(Successors::new(known.0.clone()), Some(known.clone()));
                }
                assert_eq!(known.0, expected);
                assert_eq!(known.last_final(), Some(&expected[0]));
                assert_eq!(known.above(&chain[1]).0, expected[1..]);
                let fork = known.insert(Pointer::pending(&beside));
                assert!(fork.is_err() && known.0 == expected, "it is kept");
            }
        }
        let mut two_pending = Successors::from(&Pointer::pending(&chain[0]));
        two_pending.insert(Pointer::pending(&chain[2])).unwrap();
        assert!(
            !two_pending.says(&Pointer::pending(&chain[1])),
            "each counts"
        );
    }

    /// Two successors of which neither precedes the other: in every order a final one replaces its siblings.
    #[test]
    fn what_is_beside_a_final_one_is_superseded() {
        let first = Membership::first((1..=3).map(ServerId));
        let made = |added: &[u128]| {
            let add = |membership: Membership, id: &u128| membership.with(ServerId(*id));
            let membership = added.iter().fold(first.clone(), add);
            let descriptor = Descriptor {
                index: membership.size().unwrap(),
                members: membership.members(),
                lattice: Some(membership),
                decided_by: Decider::Snapshot,
                ..replicated(1).descriptor().clone()
            };
            Configuration::new(descriptor).unwrap()
        };
        let (p, f) = (Pointer::pending, Pointer::finalized);
        let [a, b, both] = [&[4][..], &[5], &[4, 5]].map(made);
        let all = [p(&a), p(&b), p(&both), f(&a)];
        for turn in 0..24 {
            let mut order = all.to_vec();
            let mut known = Successors::default();
            for left in (1..=4).rev() {
                let next = order.remove(turn / [1, 1, 2, 6][left - 1] % left);
                let rises = !known.says(&next);
                assert_eq!(known.insert(next), Ok(rises));
                assert_eq!(Successors::new(known.0.clone()), Some(known.clone()));
            }
            assert_eq!(known.0, [f(&a), p(&both)]);
            assert!(known.says(&p(&b)) && known.insert(f(&b)).is_err());
        }
        let mut pending = Successors::from(&p(&b));
        assert_eq!(pending.insert(p(&a)), Ok(true));
        assert_eq!((pending.above(&a).len(), pending.beyond(&a).len()), (0, 1));
        assert!(f(&both).leads_on_from_known(&a) && !p(&b).leads_on_from_known(&a));
        assert!(f(&made(&[5, 6])).leads_on_from_known(&a));
        assert_eq!(Successors::new(vec![f(&a), p(&b)]), None);
    }

    #[test]
    fn pointers_that_are_not_ascending_are_not_taken_in() {
        let (chain, beside) = of_a_lattice();
        let [a, b, ..] = &chain;
        let (p, f) = (Pointer::pending, Pointer::finalized);
        for wrong in [
            vec![p(b), p(a)],
            vec![p(a), p(a)],
            vec![p(a), f(b)],
            vec![f(a), f(b)],
            vec![p(a), p(&beside)],
        ] {
            assert_eq!(Successors::new(wrong), None);
        }
        assert!(Successors::new(vec![f(a), p(b)]).is_some());
    }

    #[test]
    fn two_configurations_of_one_index_do_not_merge() {
        let (c, elsewhere) = (configuration(1, 5), configuration(2, 5));
        let other = Configuration::new(Descriptor {
            delta: 9,
            ..c.descriptor().clone()
        });
        let other = other.unwrap();
        for first in [Pointer::pending(&c), Pointer::finalized(&c)] {
            for second in [Pointer::pending(&other), Pointer::finalized(&other)] {
                let mut known = Successors::from(&first);
                let configurations = [c.clone(), other.clone()];
                let fork = Fork { configurations };
                assert_eq!(known.insert(second), Err(fork));
                assert_eq!(known, Successors::from(&first), "it is kept");
            }
        }
        for comparable in [&c, &elsewhere, &configuration(1, 6)] {
            assert_eq!(Fork::check_order(&c, comparable), Ok(()));
        }
    }

    #[test]
    fn pointers_lead_upwards_within_their_domain() {
        let four = configuration(1, 4).id();
        for index in 0..8 {
            let c = configuration(1, index);
            assert_eq!(Pointer::pending(&c).leads_on_from(&four), index == 5);
            assert_eq!(Pointer::finalized(&c).leads_on_from(&four), index > 4);
        }
        let elsewhere = Pointer::finalized(&configuration(2, 5));
        assert!(!elsewhere.leads_on_from(&four));
        let index = u32::MAX;
        let last = ConfigurationId { index, ..four };
        assert!(!Pointer::pending(&configuration(1, 0)).leads_on_from(&last));
    }
}
