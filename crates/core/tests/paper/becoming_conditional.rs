//! A domain of the kind `abd` or `ec` becomes conditional (`[W-12 becoming-conditional]`): what it holds keeps its versions, operations
//! that are under way go on as proposers, none of them is applied twice, and from then on writes have one winner.

use crate::paper::reconfiguration::{announce, move_to, reconfigure};
use crate::world::{
    Actor, Chaos, Message, World, configuration, name, successor, text, value, with,
};
use areo_core::config::{Configuration, Dap, Options};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::error::{Obstacle, WriteError};
use areo_core::manager::Deletion;
use areo_core::message::{Access, Answer, Body, Request};
use areo_core::pointer::{Pointer, Successors};
use areo_core::reconfig::ReconfigError;
use areo_core::tag::Tag;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A configuration, and a conditional one that comes after it: of the same servers, of others, and of some of them.
fn moves() -> Vec<(Arc<Configuration>, Arc<Configuration>)> {
    let from = [(3, Dap::Abd), (4, Dap::Ec { k: 2 }), (5, Dap::Ec { k: 3 })];
    let to = [(0, 3, 1), (2, 4, 2), (5, 5, 3)];
    let pairs = from.into_iter().flat_map(|from| to.map(|to| (from, to)));
    let made = pairs.map(|((n, dap), (first, members, k))| {
        let c = configuration(n, dap, 1, 8);
        let next = successor(&c, first, members, Dap::Conditional { k });
        (c, next)
    });
    made.collect()
}

fn world(c: &Arc<Configuration>) -> (World, Actor, Actor) {
    let world = World::of(c, 10, 1);
    (world.clone(), world.actor(c), world.actor(c))
}

/// Matches the puts to members other than the first `reached` ones, and the answers to all puts.
fn put_beyond(reached: usize) -> impl Fn(&Message) -> bool + Clone {
    let reached: Vec<usize> = (0..reached).collect();
    move |m| m.is_put() && (m.is_reply() || !m.at(&reached))
}

/// The version that a conditional write found instead of the one in its condition.
fn conflict(world: &World, actor: &Actor, version: Tag) -> (Tag, Option<String>) {
    match world.run(actor.cover("k", "this is not to be written", version)) {
        Ok(CoverableOutcome::Unchanged(found)) => (found.tag, found.value.as_ref().map(text)),
        other => panic!("{other:?}: {version} is not the newest"),
    }
}

/// Moves a domain from `c` to `next`, in which users' objects are kept in another way. Every client finds what was there, under its version,
/// and goes on from it; the servers that are left keep nothing. Returns the world, a client that moved, one that came later, and the first
/// and second version of `k`.
pub fn moved_with_its_versions(
    (world, a, b): (World, Actor, Actor),
    c: &Arc<Configuration>,
    next: &Arc<Configuration>,
) -> (World, Actor, Actor, [Tag; 2]) {
    let first = a.put("k", "the first value");
    a.put("l", "another");
    a.put("gone", "for some time");
    let deleted = world.run(b.delete("gone"));
    assert!(matches!(deleted, Ok(Deletion::Deleted(_))), "{deleted:?}");
    world.settle();
    move_to(&world, &a, next);
    world.settle();
    let late = world.actor(next);
    for actor in [&a, &b, &late] {
        let found = (first, Some("the first value".to_owned()));
        assert_eq!(actor.get("k"), found, "{c:?} to {next:?}");
        assert_eq!(actor.keys(), ["k", "l"]);
        assert_eq!(world.run(actor.delete("gone")), Ok(Deletion::NotFound));
        assert!(actor.get("never").0.is_initial());
    }
    let second = b.change("k", "the second value", first);
    assert!(first < second);
    for old in (0..c.n()).filter(|old| !next.members().contains(&c.members()[*old])) {
        assert_eq!(world.disk(old, |disk| disk.elements()), 0);
    }
    (world, a, late, [first, second])
}

#[test]
fn what_a_domain_holds_keeps_its_versions() {
    for (c, next) in moves() {
        let moved = moved_with_its_versions(world(&c), &c, &next);
        let (world, a, late, [first, second]) = moved;
        assert_eq!(conflict(&world, &a, first).0, second);
        let (domain, value) = (late.domain(), value("made anew"));
        let made = world.run(async move { domain.put_if(&name("gone"), &value, None).await });
        assert!(matches!(made, Ok(CoverableOutcome::Changed(_))), "{made:?}");
    }
}

/// The pointer is known, and nothing was moved yet: every operation is decided in the conditional configuration.
#[test]
fn operations_go_on_as_proposers_while_the_domain_moves() {
    let paper = Options {
        piggyback: false,
        ..Options::default()
    };
    for (c, piggyback) in moves()
        .into_iter()
        .flat_map(|(c, _)| [(c.clone(), true), (c, false)])
    {
        let c = if piggyback { c } else { with(&c, paper) };
        let next = successor(&c, 4, 3, Dap::Conditional { k: 1 });
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        a.put("gone", "for some time");
        world.run(b.delete("gone")).expect("it is there");
        world.settle();
        announce(&world, &c, &Pointer::pending(&next));
        assert_eq!(b.get("k"), (first, Some("the first value".to_owned())));
        assert_eq!(world.run(b.stat("k")).expect("a quorum").tag, first);
        let second = b.put("k", "the second value");
        assert_eq!(conflict(&world, &a, first).0, second);
        let third = a.change("k", "the third value", second);
        assert_eq!(world.run(a.delete("gone")), Ok(Deletion::NotFound));
        assert_eq!(a.keys(), ["k"]);
        assert!(a.get("never").0.is_initial());
        move_to(&world, &a, &next);
        assert_eq!(b.get("k"), (third, Some("the third value".to_owned())));
    }
}

/// A member that knows of the conditional configuration takes nothing in any more, and says why.
#[test]
fn a_closed_member_stores_no_put() {
    for (c, next) in moves() {
        let (world, a, _) = world(&c);
        let first = a.put("k", "the first value");
        world.settle();
        announce(&world, &c, &Pointer::pending(&next));
        let element = areo_core::dap::elements(&c, &name("k"), &value("a late value"));
        let before = world.held(0, "k");
        let accesses = [false, true].map(|write_back| Access::Put {
            tag: first.next(a.client().next_writer()).unwrap(),
            element: element[0].clone(),
            write_back,
        });
        for access in accesses {
            let answer = world.access(0, "k", access);
            let is_closed = matches!(&answer, Ok(Answer::Ranked(held)) if held.closed);
            assert!(is_closed, "{answer:?}");
        }
        assert_eq!(world.held(0, "k"), before);
    }
}

/// The put of a writer reaches some members before the domain becomes conditional, and the others after it.
#[test]
fn a_put_that_is_under_way_is_written_once() {
    for (c, next) in moves() {
        for reached in 0..=c.n() {
            for unheard in 0..c.n() {
                let case = format!("{c:?}, {reached} reached, {unheard} not heard");
                let (world, a, b) = world(&c);
                a.put("k", "the first value");
                world.settle();
                let (late, held) = world.begin(put_beyond(reached), a.write("k", "the late value"));
                announce(&world, &c, &Pointer::pending(&next));
                world.crash(unheard);
                // Whether it is there is decided from now on.
                let (seen, _) = b.get("k");
                world.put_back(held);
                let tag = world.finish(&late).expect("it was written");
                let (now, read) = b.get("k");
                assert_eq!(
                    (now, read.as_deref()),
                    (tag, Some("the late value")),
                    "{case}"
                );
                assert!(seen <= tag, "{case}");
                world.restart(unheard, false);
                move_to(&world, &b, &next);
                assert_eq!(b.get("k").0, tag, "{case}");
            }
        }
    }
}

/// The put comes to a quorum of members, whose answers are lost. Returns what is on its way to the others.
fn reach_a_quorum(world: &World, c: &Arc<Configuration>) -> Vec<Message> {
    let quorum = c.quorums().quorum();
    world.hold(put_beyond(quorum));
    world.settle();
    world.lose(|m| m.is_put() && m.is_reply());
    let rest = world.set_aside(Message::is_put);
    world.release();
    assert_eq!(rest.len(), c.n() - quorum);
    rest
}

/// The put of a writer came to a quorum and was read, and another one was written over it, before its writer heard anything. It is
/// not written again.
#[test]
fn a_put_that_was_written_over_is_not_written_again() {
    for (c, next) in moves() {
        for chain in [0, 1, 20] {
            let (world, a, b) = world(&c);
            a.put("k", "the first value");
            world.settle();
            let late = world.spawn(a.write("k", "the late value"));
            let rest = reach_a_quorum(&world, &c);
            assert_eq!(b.get("k").1.as_deref(), Some("the late value"));
            let over = b.put("k", "another value");
            announce(&world, &c, &Pointer::pending(&next));
            for number in 0..chain {
                b.put("k", &format!("value {number} after it"));
            }
            let newest = b.get("k");
            world.put_back(rest);
            match world.finish(&late) {
                Ok(tag) => assert!(tag < over && chain < 20, "chain {chain}: {tag}"),
                Err(WriteError::Unknown(failed)) => {
                    let is_outrun = matches!(failed.obstacle.as_deref(), Some(Obstacle::Outrun(_)));
                    assert!(chain == 20 && is_outrun, "chain {chain}: {failed:?}");
                }
                other => panic!("{c:?}, chain {chain}: {other:?}"),
            }
            assert_eq!(b.get("k"), newest, "{c:?}, chain {chain}");
        }
    }
}

/// A conditional put that may have been written over: nothing shows its outcome.
#[test]
fn a_conditional_put_that_may_have_been_written_over_is_unknown() {
    for (c, next) in moves() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        world.settle();
        let late = world.spawn(a.cover("k", "the late value", first));
        let rest = reach_a_quorum(&world, &c);
        let over = b.put("k", "another value");
        announce(&world, &c, &Pointer::pending(&next));
        world.put_back(rest);
        let late = world.finish(&late);
        let Err(WriteError::Unknown(failed)) = late else {
            panic!("{late:?}");
        };
        let is_outrun = matches!(failed.obstacle.as_deref(), Some(Obstacle::Outrun(_)));
        assert!(is_outrun, "{failed:?}");
        assert_eq!(b.get("k").0, over);
    }
}

/// A conditional put reaches one member before the domain becomes conditional; a write that another quorum lets through is in its
/// place, or it is found.
#[test]
fn a_conditional_put_that_is_under_way_wins_or_conflicts() {
    for (c, next) in moves() {
        for reached in 0..c.n() {
            for unheard in 0..c.n() {
                let case = format!("{c:?}, {reached} reached, {unheard} not heard");
                let (world, one, other) = world(&c);
                // Whose number of the same size is the larger one.
                let (a, b) = if reached % 2 == 0 {
                    (one, other)
                } else {
                    (other, one)
                };
                let first = a.put("k", "the first value");
                world.settle();
                let (late, held) =
                    world.begin(put_beyond(reached), a.cover("k", "the late value", first));
                announce(&world, &c, &Pointer::pending(&next));
                world.crash(unheard);
                let early = world.run(b.cover("k", "the early value", first));
                world.put_back(held);
                let late = world.finish(&late);
                let won = |ended: &Result<CoverableOutcome, WriteError>| match ended {
                    Ok(CoverableOutcome::Changed(_)) => true,
                    Ok(CoverableOutcome::Unchanged(_)) => false,
                    Err(error) => panic!("{case}: {error:?}"),
                };
                assert_ne!(won(&early), won(&late), "{case}: {early:?}, {late:?}");
                let expected = if won(&late) {
                    "the late value"
                } else {
                    "the early value"
                };
                assert_eq!(b.get("k").1.as_deref(), Some(expected), "{case}");
            }
        }
    }
}

/// A tombstone is a version like others.
#[test]
fn a_deletion_that_is_under_way_is_written_once() {
    for (c, next) in moves() {
        for reached in 0..=c.n() {
            let (world, a, b) = world(&c);
            a.put("k", "the first value");
            world.settle();
            let (late, held) = world.begin(put_beyond(reached), a.delete("k"));
            announce(&world, &c, &Pointer::pending(&next));
            b.get("k");
            world.put_back(held);
            let late = world.finish(&late);
            assert!(matches!(late, Ok(Deletion::Deleted(_))), "{late:?}");
            assert_eq!(world.run(b.delete("k")), Ok(Deletion::NotFound));
            assert_eq!(b.keys(), Vec::<String>::new());
            move_to(&world, &b, &next);
            world.settle();
            assert_eq!(b.keys(), Vec::<String>::new());
        }
    }
}

/// Two changes are pending: what the first configuration holds, and what the second one does, is there in the third.
#[test]
fn the_larger_version_of_two_configurations_becomes_current() {
    for (from, between) in [(Dap::Abd, Dap::Ec { k: 2 }), (Dap::Ec { k: 1 }, Dap::Abd)] {
        for larger in [0, 1] {
            for moved in [false, true] {
                let c = configuration(3, from, 1, 8);
                let second = successor(&c, 3, 3, between);
                let third = successor(&second, 6, 3, Dap::Conditional { k: 1 });
                let (world, a, b) = world(&c);
                a.put("k", "the first value");
                world.settle();
                let tag = |number| Tag {
                    number,
                    writer: a.client().next_writer(),
                };
                // Written back by a reader that was slow, or put by a writer that saw both.
                let (older, newer) = (tag(5), tag(6));
                let [in_first, in_second] = match larger {
                    0 => [newer, older],
                    _ => [older, newer],
                };
                put_everywhere(&world, &c, (in_first, "in the first"));
                put_everywhere(&world, &second, (in_second, "in the second"));
                announce(&world, &c, &Pointer::pending(&second));
                announce(&world, &second, &Pointer::pending(&third));
                let expected = ["in the first", "in the second"][larger];
                if moved {
                    let done = world.run(reconfigure(b.client(), &c, &third));
                    assert!(done.is_ok(), "{done:?}");
                }
                let (found, read) = b.get("k");
                assert_eq!(
                    (found, read.as_deref()),
                    (newer, Some(expected)),
                    "{from}, {moved}"
                );
                a.change("k", "the next value", newer);
            }
        }
    }
}

fn put_everywhere(world: &World, c: &Arc<Configuration>, (tag, content): (Tag, &str)) {
    let elements = areo_core::dap::elements(c, &name("k"), &value(content));
    for (member, element) in c.members().iter().zip(elements) {
        let put = Access::Put {
            tag,
            element,
            write_back: false,
        };
        let number = (member.0 - 1) as usize;
        let answer = world.ask(
            number,
            Request::Configured {
                configuration: c.id(),
                descriptor: Some(c.clone()),
                successors: Successors::default(),
                body: Body::Access(vec![(name("k"), put)]),
            },
        );
        answer.expect("it is taken in");
    }
    world.settle();
}

/// `abd`, `ec` and conditional become each other; other kinds have nothing to do with conditional domains.
#[test]
fn abd_ec_and_conditional_become_each_other() {
    let kinds = [
        Dap::Abd,
        Dap::Ec { k: 1 },
        Dap::CasGc { k: 1 },
        Dap::EcPublished { k: 1 },
        Dap::Conditional { k: 1 },
    ];
    for from in kinds {
        for to in kinds {
            let c = configuration(3, from, 1, 8);
            let (world, a, _) = world(&c);
            a.put("k", "the first value");
            let wanted = successor(&c, 3, 4, to);
            let done = world.run(reconfigure(a.client(), &c, &wanted));
            let may = |kind: Dap| matches!(kind, Dap::Abd | Dap::Ec { .. });
            let is_allowed = match (from.is_conditional(), to.is_conditional()) {
                (false, true) => may(from),
                (true, false) => may(to),
                (before, after) => before == after,
            };
            assert_eq!(done.is_ok(), is_allowed, "{from} to {to}: {done:?}");
            let is_invalid = matches!(done, Err(ReconfigError::Invalid(_)));
            assert_eq!(is_invalid, !is_allowed);
            assert_eq!(a.get("k").1.as_deref(), Some("the first value"));
        }
    }
}

/// Clients count up a counter on the version that they read. From the end of the move on each version has one winner, although
/// some of the clients have not heard of the move.
#[test]
fn writes_have_one_winner_from_the_move_on() {
    for (shape, (c, next)) in moves().iter().enumerate() {
        for seed in 0..40 {
            let world = World::of(c, 10, seed << 8 | shape as u64);
            let mover = world.actor(c);
            mover.put("k", "0");
            world.settle();
            let actors: Vec<Actor> = (0..3).map(|_| world.actor(c)).collect();
            move_to(&world, &mover, next);
            world.random(Chaos {
                lose: [0, 20][world.below(2)],
                duplicate: 50,
                pass_time: 50,
            });
            let (succeeded, unknown) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(0)));
            let busy = Rc::new(RefCell::new(actors.len()));
            for actor in actors {
                let (succeeded, unknown, busy) = (succeeded.clone(), unknown.clone(), busy.clone());
                world.spawn(async move {
                    for _ in 0..3 {
                        let Ok(found) = actor.read("k").await else {
                            continue;
                        };
                        let read = found.value.as_ref().map(text).expect("it was written");
                        let count: usize = read.parse().expect("a count");
                        match actor.cover("k", &(count + 1).to_string(), found.tag).await {
                            Ok(CoverableOutcome::Changed(_)) => *succeeded.borrow_mut() += 1,
                            Err(WriteError::Unknown(_)) => *unknown.borrow_mut() += 1,
                            Ok(CoverableOutcome::Unchanged(_)) | Err(WriteError::NotApplied(_)) => {
                            }
                        }
                    }
                    *busy.borrow_mut() -= 1;
                });
            }
            while *busy.borrow() > 0 {
                world.step();
            }
            world.random(Chaos {
                lose: 0,
                duplicate: 0,
                pass_time: 0,
            });
            world.pass(Duration::from_secs(3));
            let counted: usize = world
                .actor(c)
                .get("k")
                .1
                .expect("there")
                .parse()
                .expect("count");
            let (least, unknown) = (*succeeded.borrow(), *unknown.borrow());
            let may_be = least..=least + unknown;
            assert!(
                may_be.contains(&counted),
                "seed {seed}, shape {shape}: {counted}"
            );
        }
    }
}
