//! Decided-once cells in a domain whose configuration changes (`docs/spec` `[X-20 decided-once]`,
//! `docs/decisions/0007-what-a-pointer-does.md`).

use super::{announce, move_to, reconfigure, resume};
use crate::paper::cells::{ballot, cell, learn, propose, step_at};
use crate::world::{Chaos, Message, World, configuration, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::manager::Creation;
use areo_core::message::{Body, CellReply, CellRequest, Reply, Request};
use areo_core::object::DomainId;
use areo_core::pointer::Pointer;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const UNHEARD: Bytes = Bytes::from_static(b"unheard");
const DECIDED: Bytes = Bytes::from_static(b"decided");

/// An acceptor of c0 accepts a value alone, in a large ballot. c0 is closed; a proposer that does not hear that acceptor
/// has another value decided in c1, in a small ballot. Returns c1.
fn decided_unheard(world: &World, c: &Arc<Configuration>) -> Arc<Configuration> {
    let (ballot, value) = (ballot(9), UNHEARD);
    let accept = CellRequest::Accept { ballot, value };
    assert_eq!(step_at(world, 0, accept), CellReply::Accepted);
    let next = successor(c, 3, 3, Dap::Abd);
    announce(world, c, &Pointer::pending(&next));
    world.hold(|m| m.at(&[0]));
    let decided = world.run(propose(&world.actor(c), "decided"));
    assert_eq!(decided, Ok(DECIDED));
    world.lose(Message::is_note);
    world.release();
    world.settle();
    next
}

/// One step of the cell at a server, in any configuration.
fn step(
    world: &World,
    number: usize,
    (c, pointer): (&Arc<Configuration>, Option<Pointer>),
    step: CellRequest,
) -> CellReply {
    let request = Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: pointer.into(),
        body: Body::Cell { cell: cell(), step },
    };
    match world.ask(number, request).map(Reply::open) {
        Ok((_, Some(Reply::Cell(reply)))) => reply,
        other => panic!("{other:?} answers no step"),
    }
}

/// The rule by which one of two acceptances counts: one in c0, one in c1.
#[derive(Clone, Copy)]
enum Order {
    /// The acceptance of the larger ballot counts, as `[X-20 decided-once]` says.
    Ballots,
    /// The acceptance in the later configuration counts.
    Configurations,
}

/// The decision in c1 of the next proposer, which hears from that acceptor.
fn decided_next(order: Order) -> Bytes {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 6, 1);
    let next = decided_unheard(&world, &c);
    let pointer = Some(Pointer::pending(&next));
    let closed = step(&world, 0, (&c, pointer), CellRequest::Query);
    let CellReply::Promised {
        accepted: Some(earlier),
    } = closed
    else {
        panic!("{closed:?}: it has accepted a value")
    };
    let mut later = None;
    for number in 3..6 {
        let ballot = ballot(10);
        let prepare = CellRequest::Prepare { ballot };
        match step(&world, number, (&next, None), prepare) {
            CellReply::Promised { accepted } => later = later.max(accepted),
            other => panic!("{other:?}: the ballot is the largest"),
        }
    }
    let later = later.expect("a value was decided");
    assert!(earlier.0 > later.0, "the earlier ballot is the larger one");
    let (_, value) = match order {
        Order::Ballots => earlier.max(later),
        Order::Configurations => later,
    };
    for number in 3..6 {
        let (ballot, value) = (ballot(10), value.clone());
        let accept = CellRequest::Accept { ballot, value };
        assert_eq!(
            step(&world, number, (&next, None), accept),
            CellReply::Accepted
        );
    }
    let learned = world.run(learn(&world.actor(&c))).expect("a quorum is up");
    learned.expect("it was decided")
}

/// Decision 0007: `[X-20 decided-once]` as it stands decides twice; later configurations first decides once.
#[test]
fn ballots_compared_over_configurations_decide_twice() {
    assert_eq!(decided_next(Order::Ballots), UNHEARD, "the counterexample");
    assert_eq!(decided_next(Order::Configurations), DECIDED);
}

/// `[X-20 decided-once]`: the same schedule, by the proposers and the transfers of this system.
#[test]
fn what_was_decided_in_a_later_configuration_stays_decided() {
    for (steps, absent) in (0..3).flat_map(|steps| [0, 1].map(|absent| (steps, absent))) {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::of(&c, 12, 1);
        decided_unheard(&world, &c);
        // A quorum of c0 with that acceptor, or one without it.
        world.hold(move |m| m.at(&[absent]));
        let again = |text| world.run(propose(&world.actor(&c), text));
        if steps == 0 {
            assert_eq!(again("late"), Ok(DECIDED), "without server {absent}");
        }
        let mut last = successor(&c, 3, 3, Dap::Abd);
        if steps == 1 {
            let resumed = world.run(resume(world.actor(&c).client(), &c));
            assert_eq!(resumed, Ok(Some(last.clone())));
        }
        // The way is longer by one if the first one was not finished before.
        last = successor(&last, 6, 3, Dap::Abd);
        let client = world.actor(&c).client();
        let done = world.run(reconfigure(client, &c, &last));
        assert!(done.is_ok(), "{done:?}");
        let learned = world.run(learn(&world.actor(&c)));
        assert_eq!(learned, Ok(Some(DECIDED)), "{steps}, without {absent}");
        assert_eq!(again("late"), Ok(DECIDED), "{steps}, without {absent}");
    }
}

/// `[X-20 decided-once]`: a name has one winner, also if the configuration in which it is decided is replaced meanwhile,
/// twice.
#[test]
fn of_two_creators_one_wins_through_reconfigurations() {
    let (mut created, mut moved) = ([0; 2], 0);
    for seed in 0..400 {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::of(&root, 9, seed);
        let lose = [0, 0, 30][world.below(3)];
        world.random(Chaos {
            lose,
            duplicate: 50,
            pass_time: 50,
        });
        let domain = |id| {
            let descriptor = Descriptor {
                domain: DomainId(id),
                ..root.descriptor().clone()
            };
            Configuration::new(descriptor).expect("it differs in its domain only")
        };
        let create = |id| {
            let (client, root, first) = (world.actor(&root).client(), root.clone(), domain(id));
            world.spawn(async move { client.root(&root).create_domain("photos", &first).await })
        };
        let second = successor(&successor(&root, 3, 3, Dap::Abd), 6, 3, Dap::Abd);
        let (client, known) = (world.actor(&root).client(), root.clone());
        let reconfigurations = world.spawn(async move {
            let first = successor(&known, 3, 3, Dap::Abd);
            let one = reconfigure(client.clone(), &known, &first).await;
            let other = reconfigure(client, &known, &second).await;
            usize::from(one.is_ok()) + usize::from(other.is_ok())
        });
        for _ in 0..world.below(60) {
            world.step();
        }
        let creations = [create(11), create(12)];
        while creations.iter().any(|creation| creation.borrow().is_none())
            || reconfigurations.borrow().is_none()
        {
            assert!(world.step(), "everything ends");
        }
        let chaos = Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        };
        world.random(chaos);
        let late = world.run({
            let (client, root, first) = (world.actor(&root).client(), root.clone(), domain(13));
            async move { client.root(&root).create_domain("photos", &first).await }
        });
        let winner = match late.expect("a quorum is up") {
            Creation::Exists(winner) => winner,
            Creation::Created => domain(13),
        };
        for (place, creation) in creations.iter().enumerate() {
            match creation.borrow().clone().expect("it has ended") {
                Ok(Creation::Created) => {
                    assert_eq!(winner, domain(11 + place as u128), "seed {seed}");
                    created[place] += 1;
                }
                Ok(Creation::Exists(told)) => assert_eq!(told, winner, "seed {seed}"),
                // Out of time: it may have won all the same.
                Err(_) => {}
            }
        }
        let (client, c) = (world.actor(&root).client(), root.clone());
        let all = world.run(async move { client.root(&c).domains().await });
        assert_eq!(all, Ok(vec![("photos".into(), winner)]), "seed {seed}");
        moved += reconfigurations.borrow().expect("they have ended");
    }
    assert!(created.iter().all(|wins| *wins > 50), "{created:?}");
    assert!(moved > 400, "{moved} of 800 reconfigurations");
}

/// A cell that was decided before anything changed is where the domain goes, also for a client that starts anew.
#[test]
fn decided_cells_move_with_the_domain() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 9, 1);
    let actor = world.actor(&c);
    assert_eq!(
        world.run(propose(&actor, "first")).expect("quorum"),
        "first"
    );
    let mut last = c.clone();
    for first in [3, 6, 0] {
        last = successor(&last, first, 3, Dap::Abd);
        move_to(&world, &actor, &last);
        world.settle();
        for who in [&actor, &world.actor(&c), &world.actor(&last)] {
            assert_eq!(world.run(learn(who)), Ok(Some("first".into())));
            assert_eq!(world.run(propose(who, "late")), Ok("first".into()));
        }
    }
}

/// One of many domains is looked up without a look at the others, so that a leader begins at once.
#[test]
fn one_of_many_domains_is_looked_up_alone() {
    const DOMAINS: u128 = 20;
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 3, 1);
    let client = world.actor(&root).client();
    let named = |id: u128| {
        let descriptor = Descriptor {
            domain: DomainId(id),
            ..root.descriptor().clone()
        };
        let first = Configuration::new(descriptor).expect("it differs in its domain only");
        (format!("d{id}"), first)
    };
    for (name, first) in (10..10 + DOMAINS).map(named) {
        let root = client.root(&root);
        let created = world.run(async move { root.create_domain(&name, &first).await });
        assert_eq!(created, Ok(Creation::Created));
    }
    world.settle();
    let look = |wanted: fn(DomainId) -> bool| {
        let (root, before) = (client.root(&root), world.requests());
        let found = world.run(async move { root.domains_where(wanted).await });
        world.settle();
        (found, world.requests() - before)
    };
    let (one, asked) = look(|id| id == DomainId(17));
    assert_eq!(one, Ok(vec![named(17)]));
    assert_eq!(asked, 2 * 3, "the directory, and the domain");
    let (all, asked) = look(|_| true);
    assert_eq!(all, Ok((10..10 + DOMAINS).map(named).collect()));
    assert_eq!(asked, (1 + DOMAINS as usize) * 3);
}

/// Members say that a cell is closed, and none shows its successor: the proposer asks again only after pauses.
#[test]
fn a_closed_cell_without_a_successor_is_not_asked_for_without_a_pause() {
    let c = configuration(3, Dap::Abd, 0, 16);
    let world = World::new(&c, 1);
    world.bend_replies(|_, reply| {
        if matches!(reply, Reply::Cell(_)) {
            let accepted = None;
            *reply = Reply::Cell(CellReply::Closed { accepted });
        }
    });
    let until = world.now().plus(Duration::from_secs(1));
    let deciding = world.spawn(propose(&world.actor(&c), "decided"));
    for _ in 0..5_000 {
        if world.now() >= until {
            return;
        }
        assert!(deciding.borrow().is_none(), "it is not decided");
        assert!(world.step(), "it goes on");
    }
    panic!("no second has passed: {} requests", world.requests());
}
