//! Configurations of the examples.

use areo_core::config::{Configuration, Dap, Decider, Descriptor, Membership, Options, ServerId};
use areo_core::object::DomainId;
use areo_core::pointer::{Pointer, Successors};
use areo_core::tag::{ClientId, Writer};
use std::sync::Arc;

pub(super) fn configuration() -> Arc<Configuration> {
    let descriptor = Descriptor {
        domain: DomainId(0x0d0d_0000_0000_0000_0000_0000_0000_0001),
        partition: 0,
        index: 2,
        members: (1..=5).map(|id| ServerId(0x5e00_0000 + id)).collect(),
        dap: Dap::Ec { k: 3 },
        delta: 5,
        copy_bytes: 16 << 10,
        options: Options::default(),
        decided_by: Decider::Members,
        lattice: None,
        era: 0,
        fixed: false,
    };
    Configuration::new(descriptor).expect("3 of 5 is a code")
}

/// The one after [`configuration`], without the optimisations of Ares II.
pub(super) fn next() -> Arc<Configuration> {
    let descriptor = Descriptor {
        index: 3,
        options: Options::ARES,
        ..configuration().descriptor().clone()
    };
    Configuration::new(descriptor).expect("3 of 5 is a code")
}

/// A configuration of each kind of the papers.
pub(super) fn baselines() -> [Arc<Configuration>; 6] {
    let coded = [Dap::EcPublished { k: 3 }, Dap::EcOptimized { k: 3 }];
    let atomic = [Dap::Cas { k: 3 }, Dap::CasGc { k: 3 }];
    let [first, second] = [Dap::AbdPublished, Dap::CasSs { k: 3 }];
    [coded[0], coded[1], atomic[0], atomic[1], first, second].map(|dap| {
        let descriptor = Descriptor {
            dap,
            ..configuration().descriptor().clone()
        };
        Configuration::new(descriptor).expect("it fits 5 members")
    })
}

/// A configuration whose successor an external service decides.
pub(super) fn outside() -> Arc<Configuration> {
    let endpoints = vec!["10.0.0.1:2379".into(), "etcd-2.example:2379".into()];
    let descriptor = Descriptor {
        decided_by: Decider::Etcd { endpoints },
        ..configuration().descriptor().clone()
    };
    Configuration::new(descriptor).expect("3 of 5 is a code")
}

/// A configuration of a domain that has ceased to be conditional three times.
pub(super) fn ceased() -> Arc<Configuration> {
    let descriptor = Descriptor {
        era: 3,
        ..configuration().descriptor().clone()
    };
    Configuration::new(descriptor).expect("3 of 5 is a code")
}

/// The one of a lattice with this membership.
pub(in crate::testing) fn of_lattice(membership: &Membership) -> Arc<Configuration> {
    let descriptor = Descriptor {
        index: membership.size().expect("few changes"),
        members: membership.members(),
        dap: Dap::Abd,
        lattice: Some(membership.clone()),
        ..configuration().descriptor().clone()
    };
    Configuration::new(descriptor).expect("it has members")
}

/// A configuration of a lattice whose changes a speculating snapshot merges.
pub(super) fn speculating() -> Arc<Configuration> {
    let descriptor = Descriptor {
        decided_by: Decider::Speculation,
        ..of_lattice(&Membership::first((1..=3).map(ServerId)))
            .descriptor()
            .clone()
    };
    Configuration::new(descriptor).expect("it has members")
}

/// A configuration of a coded lattice, in which a server took the place of another one.
pub(super) fn slotted() -> Arc<Configuration> {
    let first = Membership::first((1..=5).map(ServerId)).with_slots();
    let changed = first.settled().without(ServerId(2)).with(ServerId(6));
    let descriptor = Descriptor {
        dap: Dap::Ec { k: 3 },
        decided_by: Decider::Agreement,
        index: changed.size().expect("few changes"),
        members: changed.members(),
        lattice: Some(changed),
        ..configuration().descriptor().clone()
    };
    Configuration::new(descriptor).expect("3 of 5 is a code")
}

/// A configuration of a root domain whose members only people change.
pub(super) fn fixed() -> Arc<Configuration> {
    let members = (1..=3).map(ServerId).collect();
    let descriptor = Descriptor {
        fixed: true,
        ..Descriptor::new(DomainId(0x0f), members, Dap::Abd)
    };
    Configuration::new(descriptor).expect("it has members")
}

/// A configuration of a lattice that a leader proposed.
pub(super) fn led() -> Arc<Configuration> {
    let owner = Writer {
        client: ClientId(0xab),
        counter: 7,
    };
    let descriptor = Descriptor {
        decided_by: Decider::Leader { owner },
        ..speculating().descriptor().clone()
    };
    Configuration::new(descriptor).expect("it has members")
}

/// A configuration with this membership, of a lattice that is reconfigured by a weak snapshot.
fn branching(membership: &Membership) -> Arc<Configuration> {
    let descriptor = Descriptor {
        decided_by: Decider::Snapshot,
        ..of_lattice(membership).descriptor().clone()
    };
    Configuration::new(descriptor).expect("it has members")
}

/// Two pending successors of which neither precedes the other, after a final one.
pub(super) fn beside() -> Successors {
    let first = Membership::first((1..=3).map(ServerId)).with(ServerId(4));
    let [left, right] = [5, 6].map(|server| first.with(ServerId(server)));
    let mut successors = Successors::default();
    for pointer in [
        Pointer::pending(&branching(&left)),
        Pointer::pending(&branching(&right)),
        Pointer::finalized(&branching(&first)),
    ] {
        let rises = successors.insert(pointer);
        assert_eq!(rises, Ok(true), "each is new");
    }
    successors
}

/// A final successor in a lattice, and two pending ones beside it.
pub(super) fn several() -> Successors {
    let first = Membership::first((1..=3).map(ServerId));
    let second = first.without(ServerId(2)).with(ServerId(4));
    let third = second.with(ServerId(5));
    let [first, second, third] = [
        first.with(ServerId(6)),
        second.with(ServerId(6)),
        third.with(ServerId(6)),
    ]
    .map(|membership| of_lattice(&membership));
    let pointers = vec![
        Pointer::finalized(&first),
        Pointer::pending(&second),
        Pointer::pending(&third),
    ];
    Successors::new(pointers).expect("each leads further than the one before")
}
