//! Notes about restarts of counters: drawn, and examples.

use super::examples;
use super::{parts, strategies};
use areo_core::config::ServerId;
use areo_core::element::Form;
use areo_core::message::{
    HeldVersions, Note, ObjectReport, Phase, Reply, RestartNote, ServerStatus, Stance,
};
use areo_core::object::DomainId;
use proptest::collection::vec;
use proptest::prelude::*;

fn stance() -> impl Strategy<Value = Stance<u64>> {
    let phase = prop_oneof![
        Just(Phase::Idle),
        any::<u64>().prop_map(Phase::Agreeing),
        any::<u64>().prop_map(Phase::Applying),
        Just(Phase::Recovering),
    ];
    (phase, any::<bool>()).prop_map(|(phase, all)| Stance { phase, all })
}

fn told() -> impl Strategy<Value = ObjectReport> {
    let object = (parts::name(), any::<bool>(), strategies::held());
    object.prop_map(|(name, abstains, held)| ObjectReport {
        name,
        abstains,
        held: HeldVersions {
            element: None,
            ..held
        },
    })
}

pub(super) fn any_note() -> impl Strategy<Value = Note> {
    let numbers = any::<(u128, bool, u64, u64)>();
    let of = (parts::configuration_id(), numbers);
    (of, [stance(), stance()], vec(told(), 0..4)).prop_map(
        |((configuration, (from, asks, turn, heard)), [stance, echo], objects)| {
            Note::Restart(Box::new(RestartNote {
                configuration,
                from: ServerId(from),
                asks,
                turn,
                heard,
                stance,
                echo,
                objects: objects.into(),
            }))
        },
    )
}

/// A member that agrees on two objects.
pub(super) fn note() -> Note {
    let stored = vec![
        (examples::tag(0x61), Form::Copy),
        (examples::tag(0x62), Form::Trimmed),
    ];
    let held = HeldVersions {
        stored,
        floor: examples::tag(0x60),
        stable: examples::tag(0x61),
        seen: examples::tag(0x63),
        ..HeldVersions::default()
    };
    let object = |key, abstains, held| ObjectReport {
        name: examples::name(key),
        abstains,
        held,
    };
    let objects = [
        object("k", true, held),
        object("photos/ä.jpg", false, HeldVersions::default()),
    ];
    Note::Restart(Box::new(RestartNote {
        configuration: examples::id(),
        from: ServerId(0x0102),
        asks: true,
        turn: 0x1_0000_0007,
        heard: 0x2_0000_0005,
        stance: Stance {
            phase: Phase::Agreeing(0x0a0b),
            all: true,
        },
        echo: Stance {
            phase: Phase::Idle,
            all: false,
        },
        objects: objects.into(),
    }))
}

/// A server that waits for another one.
pub(super) fn waits() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        waits: vec![(DomainId(0x0d), ServerId(0x0102))],
        ..ServerStatus::default()
    }))
}
