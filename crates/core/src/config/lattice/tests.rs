//! The laws of memberships, and descriptors that contradict them.

use super::*;
use crate::config::testing::replicated;
use crate::config::{Dap, Descriptor};
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
