//! What comes after a configuration: pointers, and their one order (`docs/spec` 3.2, `[A-2 pointers-rise]`,
//! `[A-3 merge-by-rank]`).
//!
//! ```text
//! none  <  (k+1, pending)  <  (k+1, final)  <  (k+2, final)  <  (k+3, final)  < ...
//! ```
//!
//! A server of configuration k takes a pointer only upwards, and a pending one only to k + 1, so that all pointers of a
//! domain form one chain. Clients merge what they hear by the same order. Nothing else compares pointers.
//!
//! Each index is decided once. Two configurations of one index are a [`Fork`]: what decides forgot (a service outside that
//! lost its data), or has a bug. Neither of the two takes the other's place; who sees both says so and goes no further.

use crate::config::{Configuration, ConfigurationId};
use std::fmt;
use std::sync::Arc;

/// How far a configuration is installed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// Decided; it may not have the state of its predecessors yet.
    Pending,
    /// It received the state of its predecessors: whoever starts here misses nothing.
    Final,
}

/// The next configuration, as a server or a client knows it (`nextC`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// Which configuration, in full: a server that gets the pointer may have to describe it to others (`[X-13 highest-final]`).
    pub configuration: Arc<Configuration>,
    /// How far it is installed.
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

    /// Whether the state is there.
    pub fn is_final(&self) -> bool {
        self.status == Status::Final
    }

    /// Its place in the order. Two pointers of one configuration's chain with the same rank are the same.
    pub fn rank(&self) -> (u32, Status) {
        (self.index(), self.status)
    }

    /// Whether it may stand at configuration `k`: it leads upwards within the same domain, and a pending one leads to the
    /// very next configuration (`[A-2 pointers-rise]`).
    pub fn leads_on_from(&self, k: &ConfigurationId) -> bool {
        let to = self.configuration.id();
        let same_sequence = (to.domain, to.partition) == (k.domain, k.partition);
        let upwards = match self.status {
            Status::Final => to.index > k.index,
            Status::Pending => Some(to.index) == k.index.checked_add(1),
        };
        same_sequence && upwards
    }
}

/// Whether `new` takes the place of `known`: the order of `[A-2 pointers-rise]`, and of nothing else.
pub fn rises(known: Option<&Pointer>, new: &Pointer) -> bool {
    known.is_none_or(|known| new.rank() > known.rank())
}

/// Keeps the larger of the two (`[A-3 merge-by-rank]`). Returns whether it was the new one.
///
/// # Errors
/// [`Fork`], and the known one is kept.
pub fn merge(known: &mut Option<Pointer>, new: Pointer) -> Result<bool, Fork> {
    if let Some(known) = known {
        Fork::check(&known.configuration, &new.configuration)?;
        let sequence = |pointer: &Pointer| {
            let id = pointer.configuration.id();
            (id.domain, id.partition)
        };
        assert_eq!(sequence(known), sequence(&new), "of one sequence");
    }
    let (before, rank) = (known.as_ref().map(Pointer::rank), new.rank());
    let larger = rises(known.as_ref(), &new);
    if larger {
        *known = Some(new);
    }
    let after = known.as_ref().map(Pointer::rank);
    assert!(
        before <= after && after >= Some(rank),
        "what is known rises"
    );
    Ok(larger)
}

/// Two configurations of one index of one domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fork {
    /// The two; the one that was seen first comes first.
    pub configurations: [Arc<Configuration>; 2],
}

impl Fork {
    /// Whether the two can be of one sequence.
    ///
    /// # Errors
    /// [`Fork`] if they have the same place in it and are not the same.
    pub fn check(first: &Arc<Configuration>, second: &Arc<Configuration>) -> Result<(), Fork> {
        let place = |c: &Configuration| (c.id().domain, c.id().partition, c.id().index);
        if place(first) != place(second) || first == second {
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
    use crate::config::Descriptor;
    use crate::config::testing::replicated;
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
            assert!(rises(None, pointer));
            for (other, known) in ascending.iter().enumerate() {
                assert_eq!(rises(Some(known), pointer), position > other);
            }
        }
        let mut known = None;
        assert_eq!(merge(&mut known, f(5)), Ok(true));
        assert_eq!(
            merge(&mut known, p(5)),
            Ok(false),
            "final is never replaced by pending"
        );
        assert_eq!(merge(&mut known, f(6)), Ok(true));
        assert_eq!(known, Some(f(6)));
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
                let mut known = Some(first.clone());
                let configurations = [c.clone(), other.clone()];
                let fork = Fork { configurations };
                assert_eq!(merge(&mut known, second), Err(fork));
                assert_eq!(known, Some(first.clone()), "it is kept");
            }
        }
        assert_eq!(Fork::check(&c, &c), Ok(()));
        assert_eq!(Fork::check(&c, &elsewhere), Ok(()));
        assert_eq!(Fork::check(&c, &configuration(1, 6)), Ok(()));
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
