//! The place of a server that is taken, or was taken by a process whose log had come further: `[X-31 log-position]`,
//! `[X-32 stood-still]`, `[X-33 registered-address]`.

use super::cells::record;
use crate::world::{Actor, World, configuration, server};
use areo_core::config::Dap;
use areo_core::manager::{Registration, StartOutcome};
use areo_core::message::ServerRecord;
use areo_core::starts::{StartPhase, Starts};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// The result of a start from this directory, with the addresses that it asked and the starts that it wrote.
struct Started {
    outcome: StartOutcome,
    asked: Vec<String>,
    written: Vec<Starts>,
}

/// A process starts that listens elsewhere; `occupied`: another one answers where the server was registered.
fn start(world: &World, actor: &Actor, starts: Starts, position: u64, occupied: bool) -> Started {
    let (client, root) = (actor.client(), actor.c.clone());
    let own = ServerRecord {
        position: Some(position),
        ..ServerRecord::at_address(server(0), "elsewhere".into())
    };
    let asked = Rc::new(RefCell::new(Vec::new()));
    let written = Rc::new(RefCell::new(Vec::new()));
    let (asking, writing) = (asked.clone(), written.clone());
    let started = async move {
        let mut starting = StartPhase::new(starts);
        let write = |starts| {
            writing.borrow_mut().push(starts);
            Ok::<(), Infallible>(())
        };
        let answers = async |known: &ServerRecord| {
            asking.borrow_mut().push(known.address.clone());
            occupied
        };
        client
            .root(&root)
            .start(&mut starting, &own, write, answers)
            .await
    };
    let outcome = world.run(started).expect("a quorum answers");
    Started {
        outcome,
        asked: asked.take(),
        written: written.take(),
    }
}

fn at(position: u64) -> ServerRecord {
    ServerRecord {
        position: Some(position),
        ..record(0, 3, 77)
    }
}

const CONFIRMED: Starts = Starts {
    incarnation: 3,
    unconfirmed: None,
};
/// Also what a copy of the directory says that was made while the start was under way.
const BEGUN: Starts = Starts {
    incarnation: 3,
    unconfirmed: Some(77),
};

/// Each member in turn has missed the registration, and the last records of all came back from their disks.
fn each_way(test: impl Fn(&World, &Actor)) {
    for absent in 0..3 {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&c, 1);
        let actor = world.actor(&c);
        world.hold(move |m| m.at(&[absent]));
        assert_eq!(actor.register(at(40)), Registration::Registered);
        world.release();
        for number in (0..3).filter(|number| *number != absent) {
            world.crash(number);
            world.restart(number, true);
        }
        test(&world, &actor);
    }
}

#[test]
fn a_start_asks_where_its_server_was_registered_before_it_registers_anything() {
    for starts in [CONFIRMED, BEGUN] {
        each_way(|world, actor| {
            let refused = start(world, actor, starts, 41, true);
            let address = "host-3-77".to_owned();
            assert_eq!(refused.asked, std::slice::from_ref(&address));
            assert_eq!(refused.outcome, StartOutcome::Occupied { address });
            assert_eq!(refused.written, [], "it can be started again and again");
            // The process that answers there is not disturbed.
            assert_eq!(actor.register(at(42)), Registration::Registered);
            let moved = start(world, actor, starts, 42, false);
            assert!(matches!(moved.outcome, StartOutcome::Confirmed(_)));
            let over = Registration::Outdated { registered: 4 };
            assert_eq!(actor.register(at(42)), over);
        });
    }
}

#[test]
fn a_log_that_ends_before_what_was_registered_of_it_is_that_of_a_copy() {
    for starts in [CONFIRMED, BEGUN] {
        each_way(|world, actor| {
            let behind = start(world, actor, starts, 39, false);
            let (position, registered) = (39, 40);
            let refused = StartOutcome::Behind {
                position,
                registered,
            };
            assert_eq!(behind.outcome, refused);
            assert_eq!(behind.written, []);
            // An earlier one is known to be outdated by its number alone.
            let before = Starts {
                incarnation: 2,
                unconfirmed: None,
            };
            let outdated = StartOutcome::Outdated { registered: 3 };
            assert_eq!(start(world, actor, before, 99, false).outcome, outdated);
            let own = start(world, actor, starts, 40, false);
            assert!(matches!(own.outcome, StartOutcome::Confirmed(_)));
        });
    }
}

/// It abstains for every object, so that nothing depends on the end of its log.
#[test]
fn a_server_that_abstains_may_have_lost_the_end_of_its_log() {
    each_way(|world, actor| {
        let (client, root) = (actor.client(), actor.c.clone());
        let own = at(7);
        let started = async move {
            let mut starting = StartPhase::new(CONFIRMED).abstaining(true);
            let write = |_| Ok::<(), Infallible>(());
            let root = client.root(&root);
            root.start(&mut starting, &own, write, async |_| false)
                .await
        };
        let outcome = world.run(started).expect("a quorum answers");
        assert!(matches!(outcome, StartOutcome::Confirmed(_)));
    });
}

/// Renewals may come in any order, and a smaller position says nothing.
#[test]
fn of_two_positions_of_one_start_the_larger_stays() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    for position in [5, 9, 7] {
        assert_eq!(actor.register(at(position)), Registration::Registered);
    }
    for number in 0..3 {
        world.crash(number);
        world.restart(number, true);
    }
    let (client, root) = (actor.client(), actor.c.clone());
    let servers = world.run(async move { client.root(&root).servers().await });
    let known = servers.expect("a quorum answers").remove(&server(0));
    assert_eq!(known.expect("it is registered").position, Some(9));
}
