//! Ranked registers: conditional writes with one winner, over replication and erasure coding and over several configurations
//! (`[W-1 promise]` to `[W-10 configuration-first]`).

use crate::paper::reconfiguration::{announce, move_to, reconfigure};
use crate::paper::redundancy::{look, round};
use crate::world::{Actor, Chaos, Message, World, configuration, name, successor, text, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::conditional::{Condition, Wish, WriteDecision};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::dsm::redundancy::{MemberListing, ObjectRedundancy};
use areo_core::error::{Obstacle, WriteError};
use areo_core::manager::Deletion;
use areo_core::message::{Access, Proposal, Refusal, Want};
use areo_core::pointer::Pointer;
use areo_core::tag::Tag;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Configurations of three to five servers, replicated and coded. The coded ones store values of more than 8 bytes as
/// fragments.
fn shapes() -> [Arc<Configuration>; 3] {
    [(3, 1), (4, 2), (5, 3)].map(|(n, k)| configuration(n, Dap::Conditional { k }, 1, 8))
}

fn world(c: &Arc<Configuration>) -> (World, Actor, Actor) {
    let world = World::of(c, 10, 1);
    (world.clone(), world.actor(c), world.actor(c))
}

/// The version that a conditional write found instead of the one in its condition.
fn conflict(world: &World, actor: &Actor, version: Tag) -> (Tag, Option<String>) {
    match world.run(actor.cover("k", "this is not to be written", version)) {
        Ok(CoverableOutcome::Unchanged(found)) => (found.tag, found.value.as_ref().map(text)),
        other => panic!("{other:?}: {version} is not the newest"),
    }
}

#[test]
fn a_quiet_write_takes_two_rounds_and_a_read_one() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        a.put("k", "the first value");
        world.settle();
        let rounds = |act: &dyn Fn()| {
            // Clocks go on, so that a ballot is above earlier ones.
            world.pass(Duration::from_millis(1));
            let before = world.gathers();
            act();
            world.settle();
            world.gathers() - before
        };
        assert_eq!(rounds(&|| drop(b.get("k"))), 1, "{c:?}");
        assert_eq!(
            rounds(&|| {
                b.put("k", "the second value");
            }),
            2,
            "{c:?}"
        );
        let (version, found) = a.get("k");
        assert_eq!(found.as_deref(), Some("the second value"));
        assert_eq!(
            rounds(&|| {
                b.change("k", "the third value", version);
            }),
            2
        );
        // A conflict: the version is known to be chosen, and its value comes with another round.
        assert!(rounds(&|| drop(conflict(&world, &a, version))) <= 2);
        let deleted = rounds(&|| {
            let deleted = world.run(a.delete("k"));
            assert!(matches!(deleted, Ok(Deletion::Deleted(_))), "{deleted:?}");
        });
        assert_eq!(deleted, 2, "{c:?}");
    }
}

/// Ballots begin at the time of day. One client is a day ahead of the others: after a write of it, another one is refused once, and
/// nothing else changes.
#[test]
fn a_clock_that_is_a_day_off_costs_a_round() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let ahead = b.ahead(Duration::from_hours(24));
        let rounds = |by: &Actor, text: &str| {
            world.pass(Duration::from_millis(1));
            let before = world.gathers();
            by.put("k", text);
            world.settle();
            world.gathers() - before
        };
        assert_eq!(rounds(&a, "the first value"), 2);
        assert_eq!(rounds(&ahead, "by the one ahead"), 2);
        assert_eq!(rounds(&a, "by the one behind"), 3, "{c:?}: it is refused");
        assert_eq!(rounds(&a, "by the one behind again"), 2, "it has heard");
        assert_eq!(rounds(&ahead, "by the one ahead again"), 2);
        // A read says it, too.
        let reader = world.actor(&c);
        let read = reader.get("k").1;
        assert_eq!(read.as_deref(), Some("by the one ahead again"));
        assert_eq!(rounds(&reader, "by another one behind"), 2);
    }
}

/// Writes with a condition by clients of which one is a day ahead: the clock decides neither who wins nor what is a conflict.
#[test]
fn a_clock_that_is_a_day_off_decides_no_condition() {
    for c in shapes() {
        for behind in [false, true] {
            let (world, a, b) = world(&c);
            // Of two clients one is a day ahead of the other.
            let ahead = b.ahead(Duration::from_hours(24));
            let (first, second) = if behind { (&ahead, &a) } else { (&a, &ahead) };
            let one = first.change("k", "the first value", Tag::INITIAL);
            assert_eq!(conflict(&world, second, Tag::INITIAL).0, one);
            let two = second.change("k", "the second value", one);
            let newest = (two, Some("the second value".to_owned()));
            assert_eq!(conflict(&world, first, one), newest);
            assert_eq!(first.get("k"), newest, "nothing was written");
            let before = world.gathers();
            let three = first.change("k", "the third value", two);
            world.settle();
            let rounds = world.gathers() - before;
            assert!(rounds <= 3, "{c:?}: {rounds} rounds");
            assert!(three > two && two > one, "versions rise without the clock");
        }
    }
}

#[test]
fn a_write_happens_on_the_version_that_it_names_or_not_at_all() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let first = a.change("k", "the first value", Tag::INITIAL);
        let second = b.change("k", "the second value", first);
        let newest = (second, Some("the second value".to_owned()));
        for stale in [first, Tag::INITIAL] {
            assert_eq!(conflict(&world, &a, stale), newest);
        }
        assert_eq!(a.get("k"), newest, "nothing was written");
        assert_eq!(world.run(a.delete("none")), Ok(Deletion::NotFound));
        let Ok(Deletion::Deleted(tombstone)) = world.run(b.delete("k")) else {
            panic!("it was there");
        };
        assert_eq!(world.run(b.delete("k")), Ok(Deletion::NotFound));
        let (domain, value) = (a.domain(), value("made anew"));
        let absent = async move { domain.put_if(&name("k"), &value, None).await };
        let made = world.run(absent);
        assert!(
            matches!(made, Ok(CoverableOutcome::Changed(tag)) if tag > tombstone),
            "{made:?}"
        );
    }
}

/// Alice and Bob both have version 1 and write at the same time: elsewhere both may succeed.
#[test]
fn of_two_writes_on_one_version_one_succeeds() {
    for c in shapes() {
        for seed in 0..200 {
            let world = World::of(&c, 10, seed);
            let actors: Vec<Actor> = (0..3).map(|_| world.actor(&c)).collect();
            let first = actors[0].put("k", "the first value");
            world.random(Chaos {
                lose: 20,
                duplicate: 50,
                pass_time: 50,
            });
            let ended: Vec<_> = actors
                .iter()
                .enumerate()
                .map(|(who, actor)| {
                    world.spawn(actor.cover("k", &format!("by writer {who}"), first))
                })
                .collect();
            while ended.iter().any(|ended| ended.borrow().is_none()) {
                world.step();
            }
            let changed = |ended: &&Rc<RefCell<Option<Result<CoverableOutcome, WriteError>>>>| {
                matches!(*ended.borrow(), Some(Ok(CoverableOutcome::Changed(_))))
            };
            let winners = ended.iter().filter(changed).count();
            let unknown = ended
                .iter()
                .filter(|ended| matches!(*ended.borrow(), Some(Err(_))))
                .count();
            assert!(
                winners <= 1 && winners + unknown >= 1,
                "seed {seed}: {winners} of {c:?}"
            );
        }
    }
}

/// Clients count up one counter, each time on the version that it read, while messages are lost and servers crash. What was
/// acknowledged is counted once, and what failed was not counted.
#[test]
fn no_increment_is_lost_or_doubled() {
    for (shape, c) in shapes().iter().enumerate() {
        for seed in 0..150 {
            let world = World::of(c, 10, seed << 8 | shape as u64);
            let counts = counted(&world, c, &|_| {});
            counts.check(&world, c, &format!("seed {seed}, shape {shape}"));
        }
    }
}

/// Clients count up one counter while the domain moves to other servers, and back.
#[test]
fn no_increment_is_lost_or_doubled_while_the_domain_moves() {
    for (shape, c) in shapes().iter().enumerate() {
        for seed in 0..100 {
            let world = World::of(c, 10, seed << 8 | shape as u64);
            let mover = world.actor(c);
            let next = successor(c, 3, c.n(), c.dap());
            let last = successor(&next, 1, 3, Dap::Conditional { k: 1 });
            let moves = |world: &World| {
                for to in [&next, &last] {
                    world.spawn(reconfigure(mover.client(), &mover.c, to));
                }
            };
            let counts = counted(&world, c, &moves);
            counts.check(&world, c, &format!("seed {seed}, shape {shape}"));
        }
    }
}

#[derive(Default)]
struct Counts {
    succeeded: usize,
    unknown: usize,
    /// Versions on which a write succeeded.
    bases: BTreeSet<Tag>,
}

impl Counts {
    fn check(&self, world: &World, c: &Arc<Configuration>, run: &str) {
        world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        for number in 0..10 {
            if !world.is_up(number) {
                world.restart(number, false);
            }
        }
        world.pass(Duration::from_secs(3));
        let found = world.actor(c).get("k").1;
        let counted: usize = found.map_or(0, |text| text.trim().parse().expect("a count"));
        let (least, most) = (self.succeeded, self.succeeded + self.unknown);
        assert!(
            (least..=most).contains(&counted),
            "{run}: {counted} of {least} to {most}"
        );
        assert_eq!(
            self.bases.len(),
            self.succeeded,
            "{run}: one winner for each version"
        );
    }
}

fn counted(world: &World, c: &Arc<Configuration>, also: &dyn Fn(&World)) -> Counts {
    world.random(Chaos {
        lose: [0, 30][world.below(2)],
        duplicate: 50,
        pass_time: [0, 50][world.below(2)],
    });
    let counts: Rc<RefCell<Counts>> = Rc::default();
    let busy = Rc::new(RefCell::new(3));
    for _ in 0..3 {
        let (actor, counts, busy) = (world.actor(c), counts.clone(), busy.clone());
        world.spawn(async move {
            for _ in 0..4 {
                count_up(&actor, &counts).await;
            }
            *busy.borrow_mut() -= 1;
        });
    }
    let mut steps = 0;
    while *busy.borrow() > 0 {
        steps += 1;
        if steps == 30 {
            also(world);
        }
        let victim = world.below(c.n());
        let down = (0..10).filter(|number| !world.is_up(*number)).count();
        match world.below(60) {
            0 if world.is_up(victim) && down < c.quorums().f() => world.crash(victim),
            1..=6 if !world.is_up(victim) => world.restart(victim, world.below(2) == 0),
            _ => {}
        }
        world.step();
    }
    Rc::try_unwrap(counts).map_or_else(|_| panic!("all have ended"), RefCell::into_inner)
}

async fn count_up(actor: &Actor, counts: &RefCell<Counts>) {
    let Ok(found) = actor.read("k").await else {
        return;
    };
    let count: usize = found
        .value
        .as_ref()
        .map_or(0, |it| text(it).trim().parse().expect("a count"));
    // Long enough for fragments.
    let next = format!("{:>12}", count + 1);
    match actor.cover("k", &next, found.tag).await {
        Ok(CoverableOutcome::Changed(_)) => {
            let mut counts = counts.borrow_mut();
            counts.succeeded += 1;
            counts.bases.insert(found.tag);
        }
        Ok(CoverableOutcome::Unchanged(_)) | Err(WriteError::NotApplied(_)) => {}
        Err(WriteError::Unknown(_)) => counts.borrow_mut().unknown += 1,
    }
}

/// `[W-6 ancestors]`: a version that reached one member is found, or not, by the next proposer; its writer learns which.
#[test]
fn a_writer_that_was_overtaken_learns_whether_it_has_written() {
    for c in shapes() {
        for found in [true, false] {
            let (world, a, b) = world(&c);
            let first = a.put("k", "the first value");
            world.settle();
            // The ACCEPT of a reaches as few members as can make it current, or none of those that b asks.
            let reached = if found { c.quorums().intersection() } else { 1 };
            let n = c.n();
            let asked = move |server: usize| match found {
                true => server < c_quorum(n, reached),
                false => server > 0,
            };
            let late = a.cover("k", "the late value", first);
            let writer = a.client().id();
            world.hold(move |message| {
                let is_late = |it: &Proposal| !it.settles && it.tag.writer.client == writer;
                let access = message.access();
                let is_late = matches!(access, Some(Access::Accept(it)) if is_late(it));
                is_late && !(0..reached).any(|server| message.at(&[server]))
            });
            let late = world.spawn(late);
            world.settle();
            assert!(late.borrow().is_none(), "no quorum has it");
            for server in (0..n).filter(|server| !asked(*server)) {
                world.crash(server);
            }
            let written = world.run(b.cover("k", "the early value", first));
            for server in (0..n).filter(|server| !world.is_up(*server)) {
                world.restart(server, false);
            }
            world.release();
            while late.borrow().is_none() {
                world.step();
            }
            let late = late.borrow_mut().take().unwrap();
            if found {
                assert!(matches!(late, Ok(CoverableOutcome::Changed(_))), "{late:?}");
                let Ok(CoverableOutcome::Unchanged(found)) = written else {
                    panic!("{written:?}: the late value was settled");
                };
                let read = found.value.as_ref().map(text);
                assert_eq!(read.as_deref(), Some("the late value"));
            } else {
                let written_early = matches!(written, Ok(CoverableOutcome::Changed(_)));
                assert!(written_early, "{written:?}");
                let refused_late = matches!(late, Ok(CoverableOutcome::Unchanged(_)));
                assert!(refused_late, "{late:?}");
            }
        }
    }
}

/// `[W-6 ancestors]`: a proposal on a deletion that was never chosen reaches one member, and its writer then finds the version
/// before the deletion, which is known to be chosen at a smaller ballot. It may report a conflict only when its own proposal
/// cannot be chosen any more.
#[test]
fn what_a_conflict_reports_as_not_written_never_is() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let (world, deleting, creating) = world(&c);
    let other = world.actor(&c);
    other.put("k", "the first value");
    world.settle();
    let is_held = Rc::new(Cell::new(true));
    let (held, deleter, creator) = (
        is_held.clone(),
        deleting.client().id(),
        creating.client().id(),
    );
    world.hold(move |message| {
        let by = |it: &Proposal| it.tag.writer.client;
        let Some(Access::Accept(it)) = message.access() else {
            return false;
        };
        // The one that deletes hears nothing, and does not try again.
        let is_silenced = by(it) == deleter && message.is_reply();
        let is_late = by(it) == deleter || (by(it) == creator && held.get());
        is_silenced || (is_late && !message.at(&[0]))
    });
    // Clocks go on, so that each ballot is above the ones before.
    let pass = || world.pass(Duration::from_millis(1));
    pass();
    let deleted = world.spawn(deleting.delete("k"));
    pass();
    // Two members list the first value, one the deletion: that is current for those who hear from it.
    world.crash(2);
    let (domain, text_of_it) = (creating.domain(), value("the late value"));
    let created = world.spawn(async move { domain.put_if(&name("k"), &text_of_it, None).await });
    world.settle();
    assert!(deleted.borrow().is_none() && created.borrow().is_none());
    world.crash(0);
    world.restart(2, false);
    // Another one is promised a larger ballot by the others.
    let first = conflict(&world, &other, Tag::INITIAL);
    assert_eq!(first.1.as_deref(), Some("the first value"));
    is_held.set(false);
    while created.borrow().is_none() {
        world.step();
    }
    let created = created.borrow_mut().take().unwrap();
    let Ok(CoverableOutcome::Unchanged(found)) = created else {
        panic!("{created:?}");
    };
    assert_eq!(
        found.tag, first.0,
        "it was there, and the write was not applied"
    );
    world.crash(2);
    world.restart(0, false);
    assert_eq!(other.get("k"), first, "nor is it later");
}

/// The members that are left when as many crash as may, the first `reached` among them.
fn c_quorum(n: usize, reached: usize) -> usize {
    let quorum = (n + reached).div_ceil(2).max(reached);
    quorum.min(n)
}

/// A request that its caller names is carried out once, however often it is sent.
#[test]
fn a_request_that_is_sent_again_has_its_first_success() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let send = |actor: &Actor, text: &str, condition, request| {
            let (domain, value) = (actor.domain(), value(text));
            world.run(async move {
                let wish = Wish {
                    request,
                    ..domain.client.wish(&value, condition)
                };
                domain.decide_write(&name("k"), wish).await
            })
        };
        let tag = |decided: Result<WriteDecision, WriteError>| match decided {
            Ok(WriteDecision::Written { tag, .. }) => tag,
            other => panic!("{other:?}"),
        };
        let absent = Condition::Absent;
        let first = tag(send(&a, "the first value", absent, 7));
        assert_eq!(
            tag(send(&b, "the first value", absent, 7)),
            first,
            "it is the same request"
        );
        for _ in 0..16 {
            send(&b, "another value", Condition::Always, 0).unwrap();
        }
        assert_eq!(
            tag(send(&a, "the first value", absent, 7)),
            first,
            "an ancestor is"
        );
        send(&b, "another value", Condition::Always, 0).unwrap();
        let late = send(&a, "the first value", absent, 7);
        assert!(
            matches!(late, Ok(WriteDecision::Conflict(_))),
            "{late:?}: it is forgotten"
        );
    }
}

/// More versions came after a proposal than versions say of their ancestors: what became of it cannot be known.
#[test]
fn a_writer_that_many_overtook_says_that_it_does_not_know() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let (world, a, b) = world(&c);
    let first = a.put("k", "the first value");
    world.settle();
    let beyond_one = |message: &Message| matches!(message.access(), Some(Access::Accept(it)) if it.tag.number == 2 && !message.at(&[0]));
    let (late, held) = world.begin(beyond_one, a.cover("k", "the late value", first));
    for _ in 0..20 {
        b.put("k", "a later value");
    }
    world.put_back(held);
    while late.borrow().is_none() {
        world.step();
    }
    let late = late.borrow_mut().take().unwrap();
    let Err(WriteError::Unknown(unavailable)) = late else {
        panic!("{late:?}");
    };
    assert!(
        matches!(unavailable.obstacle.as_deref(), Some(Obstacle::Outrun(_))),
        "{unavailable:?}"
    );
}

/// A restarted server has its durable state: promises, versions with their ballots, and the chosen version. Freed
/// state does not return.
#[test]
fn a_register_comes_back_as_it_was() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let rank = |number: usize| {
            let (want, have) = (Want::Tags, Tag::INITIAL);
            let access = Access::Rank {
                ballot: None,
                want,
                have,
            };
            world.access(number, "k", access).unwrap()
        };
        for round in 0..5 {
            a.put("k", &format!("value {round} of this"));
            drop(world.run(b.cover("k", "never", Tag::INITIAL)));
            world.settle();
            for server in 0..c.n() {
                let before = rank(server);
                world.crash(server);
                world.restart(server, round % 2 == 0);
                assert_eq!(rank(server), before, "server {server}, round {round}");
            }
        }
        assert_eq!(a.get("k").1.as_deref(), Some("value 4 of this"));
    }
}

/// An element that rotted away: its server still says what it accepted, and the others have the value.
#[test]
fn a_damaged_element_is_no_lost_promise() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        world.settle();
        world.disk(0, |disk| disk.rot(|_| true));
        world.crash(0);
        world.restart(0, false);
        assert_eq!(b.get("k"), (first, Some("the first value".to_owned())));
        let second = b.change("k", "the second value", first);
        world.settle();
        assert_eq!(a.get("k"), (second, Some("the second value".to_owned())));
    }
}

/// While the domain moves, and after it: what was written is there, and conditions hold.
#[test]
fn versions_keep_their_names_when_the_domain_moves() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        world.settle();
        let next = successor(&c, 2, c.n() + 1, c.dap());
        announce(&world, &c, &Pointer::pending(&next));
        // Pending: read from the first, written to the second.
        assert_eq!(b.get("k"), (first, Some("the first value".to_owned())));
        let second = b.change("k", "the second value", first);
        assert_eq!(conflict(&world, &a, first).0, second);
        move_to(&world, &a, &next);
        assert_eq!(a.get("k"), (second, Some("the second value".to_owned())));
        a.change("k", "the third value", second);
    }
}

#[test]
fn what_is_no_register_is_not_ranked_and_what_is_takes_no_put() {
    for (dap, ranked) in [(Dap::Abd, false), (Dap::Conditional { k: 1 }, true)] {
        let c = configuration(3, dap, 1, 8);
        let (world, a, _) = world(&c);
        let tag = a.put("k", "the first value");
        let rank = Access::Rank {
            ballot: None,
            want: Want::Tags,
            have: Tag::INITIAL,
        };
        assert_eq!(world.access(0, "k", rank).is_ok(), ranked);
        let adopted = world.access(0, "k", Access::Adopt(tag));
        assert_eq!(adopted == Err(Refusal::Malformed), ranked, "{adopted:?}");
    }
}

/// Servers that missed a write, or hold one that failed, do not make a listing show it.
#[test]
fn a_listing_shows_current_versions() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        a.put("l", "another");
        world.settle();
        // A tombstone with a larger number that one member alone has.
        world.hold(|message| {
            matches!(message.access(), Some(Access::Accept(_))) && !message.at(&[0])
        });
        let lost = world.spawn(a.delete("k"));
        world.settle();
        world.lose(|message| !message.at(&[0]));
        world.release();
        drop(lost);
        let listed = |actor: &Actor| {
            let page = world.run(actor.list("", "", 10)).unwrap();
            let entries = page.entries.into_iter();
            entries
                .map(|entry| (entry.key, entry.tag))
                .collect::<Vec<_>>()
        };
        let (tag, read) = b.get("k");
        let keys: Vec<String> = listed(&b).into_iter().map(|(key, _)| key).collect();
        if read.as_deref() == Some("the first value") {
            assert_eq!((tag, keys), (first, vec!["k".to_owned(), "l".to_owned()]));
        } else {
            assert_eq!(keys, ["l"], "the tombstone was settled");
        }
    }
}

/// A member lets its version go for a later one that it knows to be chosen and does not have. Another one has answered a listing
/// before it had any: the object was there all the time, and the page shows it.
#[test]
fn a_member_without_the_chosen_version_lists_the_object() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    for restarts in [false, true] {
        let (world, a, b) = world(&c);
        let put_without = |member: usize, text: &str| {
            world.hold(move |m| m.is_proposal() && m.at(&[member]));
            let tag = a.put("k", text);
            world.settle();
            world.lose(|m| m.is_proposal() && m.at(&[member]));
            world.release();
            tag
        };
        put_without(1, "the first value");
        world.hold(|m| m.at(&[0, 2]));
        let listing = world.spawn(b.list("", "", 10));
        world.settle();
        world.lose(|m| m.at(&[0]));
        let late = world.set_aside(|m| m.at(&[2]));
        assert_eq!(late.len(), 1, "it is asked");
        world.release();
        let second = put_without(2, "the second value");
        if restarts {
            world.crash(2);
            world.restart(2, true);
        }
        world.put_back(late);
        while listing.borrow().is_none() {
            assert!(world.step(), "a quorum answers");
        }
        let page = listing.borrow_mut().take().expect("it has ended").unwrap();
        let listed: Vec<_> = page
            .entries
            .iter()
            .map(|it| (&it.key[..], it.tag))
            .collect();
        assert_eq!(listed, [("k", second)], "{restarts}");
    }
}

/// A stat asks for metadata. Where it settles the version it reads the content, too: otherwise it would write an empty value.
#[test]
fn a_stat_settles_the_whole_value() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let reached = c.quorums().intersection();
        world.hold(move |message| {
            let is_accept = matches!(message.access(), Some(Access::Accept(it)) if !it.settles);
            is_accept && !(0..reached).any(|server| message.at(&[server]))
        });
        let late = world.spawn(a.write("k", "a value of some length"));
        world.settle();
        for server in c_quorum(c.n(), reached)..c.n() {
            world.crash(server);
        }
        let found = world.run(b.stat("k")).expect("a quorum is there");
        assert_eq!(found.tag.number, 1);
        drop(late);
        assert_eq!(b.get("k").1.as_deref(), Some("a value of some length"));
    }
}

/// A member is down, and what a reader was to fetch goes for a newer version meanwhile: the reader begins again, and does not wait for
/// the member.
#[test]
fn a_read_whose_version_goes_meanwhile_begins_again() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    for down in 0..3 {
        let (world, a, b) = world(&c);
        a.put("k", "the first value");
        world.settle();
        world.crash(down);
        // The member that is asked for the element may be the one that is down.
        world.hold(Message::is_fetch);
        let read = world.spawn(b.read("k"));
        world.pass(Duration::from_millis(50));
        a.put("k", "the second value");
        world.settle();
        world.release();
        let begun = world.now();
        while read.borrow().is_none() {
            world.step();
        }
        let read = read
            .borrow_mut()
            .take()
            .unwrap()
            .expect("two of three are there");
        assert!(world.now().since(begun) < Duration::from_secs(1));
        assert!(read.value.is_some());
    }
}

/// `[X-25 full-redundancy]`: a member that missed a version, lost its element, or kept one that was never chosen gets the
/// current one by a proposal.
#[test]
fn a_member_that_lacks_the_current_version_gets_it() {
    for c in shapes() {
        let (world, a, b) = world(&c);
        let is_full = |world: &World| look(world, &b, &c).iter().all(ObjectRedundancy::is_full);
        a.put("k", "the first value");
        world.settle();
        world.hold(|m| m.at(&[0]));
        let second = a.put("k", "the second value");
        world.lose(|m| m.at(&[0]));
        world.release();
        assert!(!is_full(&world));
        assert_eq!(round(&world, 1, &c).repaired, 0, "each repairs itself");
        assert_eq!(round(&world, 0, &c).repaired, 1);
        assert!(is_full(&world));
        assert_eq!(round(&world, 0, &c).lacking, 0);

        world.disk(0, |disk| disk.rot(|_| true));
        world.crash(0);
        world.restart(0, false);
        let listed = look(&world, &b, &c).remove(0).listed;
        assert_eq!(
            listed[0],
            MemberListing::Older,
            "it is listed without its element"
        );
        assert_eq!(round(&world, 0, &c).repaired, 1);
        assert!(is_full(&world));

        // A tombstone that one member has, of a client that died: it is chosen now, or goes.
        world.hold(|m| matches!(m.access(), Some(Access::Accept(_))) && !m.at(&[0]));
        let lost = world.spawn(a.delete("k"));
        world.settle();
        world.lose(|m| !m.at(&[0]));
        world.release();
        drop(lost);
        assert!(!is_full(&world));
        round(&world, 0, &c);
        assert!(is_full(&world));
        let (tag, read) = b.get("k");
        assert!(tag > second || read.as_deref() == Some("the second value"));
    }
}

/// A transfer moves what a quorum lists: it must not miss a register whose element rotted away at the members that answer.
#[test]
fn a_register_without_its_element_is_listed() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let (world, a, b) = world(&c);
    world.hold(|m| m.at(&[2]));
    a.put("k", "the first value");
    world.lose(|m| m.at(&[2]));
    world.release();
    world.disk(0, |disk| disk.rot(|_| true));
    world.crash(0);
    world.restart(0, false);
    world.hold(|m| m.at(&[1]));
    assert_eq!(look(&world, &b, &c).len(), 1);
    // The record of the element goes, and only that of the register comes back.
    world.settle();
    world.crash(0);
    world.restart(0, false);
    assert_eq!(look(&world, &b, &c).len(), 1);
}
