//! The rule that nothing is shown before it is durable, for all that a server shows beside versions.

use super::*;
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::conditional::register::Register;
use areo_core::dap::versions::Marks;
use std::slice;

fn ballot(number: u64) -> Ballot {
    let proposer = Writer::default();
    Ballot { number, proposer }
}

/// The durable records of a server: a floor, an acceptor, a register and a pointer.
fn known(object: usize, cell: &Bytes, pending: &Pointer) -> [KeptRecord; 4] {
    let marks = Marks {
        floor: tag(2),
        ..Marks::default()
    };
    let acceptor = Acceptor {
        accepted: Some((ballot(2), Bytes::new())),
        ..Acceptor::default()
    };
    let register = Register {
        promised: ballot(2),
        ..Register::default()
    };
    [
        KeptRecord::Marks {
            object,
            marks: Box::new(marks),
        },
        KeptRecord::Cell {
            key: KEY,
            cell: cell.clone(),
            acceptor: Box::new(acceptor),
        },
        KeptRecord::Register {
            object,
            register: Box::new(register),
        },
        KeptRecord::Pointer {
            key: KEY,
            pointer: Box::new(pending.clone()),
        },
    ]
}

#[test]
fn what_else_is_shown_before_it_is_durable_is_caught() {
    let (mut scene, mut rule) = (Scene::new(&[]), nothing_unsynced_is_shown::Rule);
    let (server, object, cell) = (0, 0, Bytes::from_static(b"cell"));
    let [pending, last] = [Pointer::pending, Pointer::finalized]
        .map(|pointer| pointer(&configuration(&Decider::Members, &with(&[4]))));
    let known = known(object, &cell, &pending);
    let known = (0..).zip(known).collect();
    scene.truths[server].recovered(known, false);
    assert!(!scene.shows(&mut rule, &held(&[], 2)));
    assert!(scene.shows(&mut rule, &held(&[], 3)), "a floor");
    let fence = HeldVersions {
        fence: tag(1),
        ..HeldVersions::default()
    };
    assert!(scene.shows(&mut rule, &fence));
    assert!(!scene.leads(&mut rule, 0, slice::from_ref(&pending)));
    assert!(scene.leads(&mut rule, 0, slice::from_ref(&last)), "final");
    assert!(scene.leads(&mut rule, 1, &[pending]), "of another one");
    assert!(scene.decides(&mut rule, &cell, &Bytes::new()), "accepted");
    let mut promises = |number| {
        let ranked = &RankedVersions {
            promised: ballot(number),
            ..RankedVersions::default()
        };
        let shown = Observation::Ranked {
            server,
            object,
            ranked,
        };
        scene.tell(&mut rule, &shown)
    };
    assert!(!promises(2) && promises(3));
    let mut accepts = |number| {
        let shown = Observation::AcceptanceShown {
            server,
            key: KEY,
            cell: &cell,
            ballot: ballot(number),
        };
        scene.tell(&mut rule, &shown)
    };
    assert!(!accepts(2) && accepts(3));
    let tag = tag(1);
    let fetched = Observation::Fetched {
        server,
        object,
        tag,
    };
    assert!(scene.tell(&mut rule, &fetched));
    let c = &last.configuration;
    assert!(scene.tell(&mut rule, &Observation::FinalShown { server, c }));
}
