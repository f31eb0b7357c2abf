//! A conditional domain becomes one of the kind `abd` or `ec` (`[W-13 ceasing-to-be-conditional]`): what it holds keeps its versions,
//! the last version of each object is decided once, what lost never appears, and nothing is applied twice.

use crate::paper::becoming_conditional::moved_with_its_versions;
use crate::paper::reconfiguration::{announce, move_to, reconfigure};
use crate::world::{Actor, Message, World, configuration, name, successor, text, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::error::WriteError;
use areo_core::manager::{DeleteError, Deletion};
use areo_core::message::{Access, Answer, Ballot, Want};
use areo_core::pointer::Pointer;
use areo_core::reconfig::{LeaveOff, ReconfigError, ReconfigOutcome};
use areo_core::tag::{Tag, Writer};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A conditional configuration, and one that is not and comes after it: of other servers, of the same, and of some of them.
fn moves() -> Vec<(Arc<Configuration>, Arc<Configuration>)> {
    let from = [(3, 1), (4, 2), (5, 3)];
    let to = [
        (5, 3, Dap::Abd),
        (0, 3, Dap::Ec { k: 1 }),
        (2, 5, Dap::Ec { k: 3 }),
    ];
    let pairs = from.into_iter().flat_map(|from| to.map(|to| (from, to)));
    let made = pairs.map(|((n, k), (first, members, dap))| {
        let c = configuration(n, Dap::Conditional { k }, 1, 8);
        let next = successor(&c, first, members, dap);
        (c, next)
    });
    made.collect()
}

fn world(c: &Arc<Configuration>) -> (World, Actor, Actor) {
    let world = World::of(c, 16, 1);
    (world.clone(), world.actor(c), world.actor(c))
}

/// The operation's proposal comes to these members, and nothing is heard of it; to the others it is on its way.
fn begin<T: 'static>(
    world: &World,
    reached: &[usize],
    operation: impl Future<Output = T> + 'static,
) -> (Rc<RefCell<Option<T>>>, Vec<Message>) {
    let reached = reached.to_vec();
    let late = move |m: &Message| m.is_proposal() && (m.is_reply() || !m.at(&reached));
    world.begin(late, operation)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Won {
    Yes,
    No,
}

/// The result of a conditional write. It was not applied either if the domain has ceased to be conditional.
fn won(case: &str, ended: &Result<CoverableOutcome, WriteError>) -> Won {
    match ended {
        Ok(CoverableOutcome::Changed(_)) => Won::Yes,
        Ok(CoverableOutcome::Unchanged(_)) => Won::No,
        Err(WriteError::NotApplied(failed)) if failed.is_not_conditional() => Won::No,
        Err(error) => panic!("{case}: {error:?}"),
    }
}

#[test]
fn what_a_domain_holds_keeps_its_versions() {
    for (c, next) in moves() {
        let (_, _, late, _) = moved_with_its_versions(world(&c), &c, &next);
        let made = late.put("new", "made afterwards");
        assert_eq!(made.number, 1 << 48, "above all that was proposed before");
    }
}

/// The pointer is known, and nothing was moved yet.
#[test]
fn operations_go_on_while_the_domain_moves() {
    for (c, next) in moves() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        a.put("gone", "for some time");
        world.run(b.delete("gone")).expect("it is there");
        world.settle();
        announce(&world, &c, &Pointer::pending(&next));
        assert_eq!(b.get("k"), (first, Some("the first value".to_owned())));
        assert_eq!(world.run(b.stat("k")).expect("a quorum").tag, first);
        let second = b.put("k", "the second value");
        assert!(second > first);
        // A client that takes the domain for a conditional one is not promised what cannot be kept.
        let late = world.run(world.actor(&c).cover("k", "not written", second));
        assert_eq!(won("late", &late), Won::No, "{late:?}");
        assert_eq!(a.get("k"), (second, Some("the second value".to_owned())));
        assert_eq!(world.run(a.delete("gone")), Ok(Deletion::NotFound));
        assert_eq!(a.keys(), ["k"]);
        assert!(a.get("never").0.is_initial());
        let made = a.put("new", "made meanwhile");
        let deleted = world.run(world.actor(&c).delete("k"));
        assert!(matches!(deleted, Ok(Deletion::Deleted(_))), "{deleted:?}");
        move_to(&world, &a, &next);
        assert_eq!(world.run(b.delete("k")), Ok(Deletion::NotFound));
        assert_eq!(b.get("new"), (made, Some("made meanwhile".to_owned())));
    }
}

/// A member that knows of the next configuration takes in what closes it, and nothing else.
#[test]
fn a_closed_member_takes_closing_ballots_only() {
    for (c, next) in moves() {
        let (world, a, _) = world(&c);
        a.put("k", "the first value");
        world.settle();
        let rank = |number| Access::Rank {
            ballot: Some(Ballot {
                number,
                proposer: Writer::default(),
            }),
            want: Want::Tags,
            have: Tag::INITIAL,
        };
        let granted = |number| match world.access(0, "k", rank(number)) {
            Ok(Answer::Ranked(answer)) => answer.granted,
            other => panic!("{other:?}"),
        };
        assert!(!granted(1 << 61), "it is not closed");
        assert!(granted(1 << 60));
        announce(&world, &c, &Pointer::pending(&next));
        assert!(!granted((1 << 61) - 1));
        assert!(granted((1 << 61) + 2));
        assert!(!granted((1 << 61) + 1));
        // What closes it is durable.
        world.crash(0);
        world.restart(0, false);
        assert!(!granted((1 << 61) + 1));
        assert!(granted((1 << 61) + 3));
    }
}

/// The proposal of a writer reaches some members before the domain moves, and the others after it.
#[test]
fn a_write_that_is_under_way_is_applied_once() {
    for (c, next) in moves() {
        for reached in 0..=c.n() {
            for unheard in 0..c.n() {
                for moved in [false, true] {
                    let case = format!("{c:?}, {reached} reached, {unheard} not heard, {moved}");
                    let (world, a, b) = world(&c);
                    a.put("k", "the first value");
                    world.settle();
                    let members: Vec<usize> = (0..reached).collect();
                    let (late, held) = begin(&world, &members, a.write("k", "the late value"));
                    announce(&world, &c, &Pointer::pending(&next));
                    if moved {
                        let done = world.run(reconfigure(b.client(), &c, &next));
                        assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
                    } else {
                        world.crash(unheard);
                    }
                    // Whether it is there is decided from now on.
                    let (seen, _) = b.get("k");
                    world.put_back(held);
                    let written = match world.finish(&late) {
                        Err(WriteError::Unknown(_)) if moved => None,
                        written => Some(written.unwrap_or_else(|e| panic!("{case}: {e:?}"))),
                    };
                    let (now, read) = world.actor(&c).get("k");
                    if let Some(tag) = written {
                        assert_eq!(
                            (now, read.as_deref()),
                            (tag, Some("the late value")),
                            "{case}"
                        );
                    }
                    assert!(seen <= now, "{case}");
                    if !moved {
                        world.restart(unheard, false);
                        move_to(&world, &b, &next);
                        assert_eq!(b.get("k").0, now, "{case}");
                    }
                }
            }
        }
    }
}

/// Two conditional writers on one version, each with its proposal at some members; whichever quorums readers hear from, they agree, and
/// what lost never appears, also not after later writes.
#[test]
fn of_two_conditional_writes_one_wins_and_the_other_never_appears() {
    for (c, next) in moves() {
        let mut winners = [0; 3];
        for (of_a, of_b) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, c.n() - 1)] {
            for (unheard, then) in (0..c.n()).flat_map(|a| (0..c.n()).map(move |b| (a, b))) {
                let case = format!("{c:?}, {of_a} and {of_b}, without {unheard}, then {then}");
                winners[race(
                    &(c.clone(), next.clone()),
                    (of_a, of_b),
                    (unheard, then),
                    &case,
                )] += 1;
            }
        }
        // Of coded elements one is too few to be chosen.
        let is_coded = c.dap().k() > 1;
        assert!(winners[1..].iter().all(|count| *count > 0), "{winners:?}");
        assert_eq!(winners[0] == 0, is_coded, "{winners:?}");
    }
}

/// Returns who wins, or 2.
fn race(
    (c, next): &(Arc<Configuration>, Arc<Configuration>),
    (of_a, of_b): (usize, usize),
    (unheard, then): (usize, usize),
    case: &str,
) -> usize {
    let (world, a, reader) = world(c);
    let b = world.actor(c).ahead(Duration::from_secs(1));
    let first = reader.put("k", "the first value");
    // It hears of the ballot.
    a.get("k");
    world.settle();
    let (one, held_one) = begin(&world, &[], a.cover("k", "one", first));
    // The first member does not hear of the second ballot.
    world.hold(|m| m.at(&[0]));
    let high: Vec<usize> = (c.n() - of_b..c.n()).collect();
    world.hold(move |m| m.is_proposal() && (m.is_reply() || !m.at(&high)));
    let other = world.spawn(b.cover("k", "other", first));
    world.settle();
    let held_other = world.set_aside(Message::is_proposal);
    world.lose(|m| m.at(&[0]));
    world.release();
    world.hold(move |m| m.is_proposal() && (m.is_reply() || of_a == 0 || !m.at(&[0])));
    world.put_back(held_one);
    world.settle();
    let held_one = world.set_aside(Message::is_proposal);
    world.release();
    announce(&world, c, &Pointer::pending(next));
    world.crash(unheard);
    let seen = reader.get("k");
    world.restart(unheard, false);
    world.crash(then);
    assert_eq!(world.actor(c).get("k"), seen, "{case}");
    let over = reader.put("k", "a later value");
    world.put_back(held_one);
    world.put_back(held_other);
    let ends = [world.finish(&one), world.finish(&other)];
    let ends = ends.map(|ended| won(case, &ended) == Won::Yes);
    let (expected, winner) = match ends {
        [true, false] => ("one", 0),
        [false, true] => ("other", 1),
        [false, false] => ("the first value", 2),
        [true, true] => panic!("{case}: both have won"),
    };
    assert_eq!(seen.1.as_deref(), Some(expected), "{case}");
    let newest = (over, Some("a later value".to_owned()));
    assert_eq!(world.actor(c).get("k"), newest, "{case}");
    world.restart(then, false);
    move_to(&world, &reader, next);
    assert_eq!(world.actor(c).get("k"), newest, "{case}");
    winner
}

/// A domain ceases to be conditional before the object is written: there is no version to decide about, and a write that is late comes below all that
/// was written since then.
#[test]
fn a_creation_that_is_late_covers_nothing() {
    for (c, next) in moves() {
        for reached in 0..c.quorums().quorum() {
            for unheard in 0..c.n() {
                for moved in [false, true] {
                    let case = format!("{c:?}, {reached} reached, {unheard} not heard, {moved}");
                    let (world, a, b) = world(&c);
                    let members: Vec<usize> = (0..reached).collect();
                    let creation = a.cover("k", "the late value", Tag::INITIAL);
                    let (late, held) = begin(&world, &members, creation);
                    announce(&world, &c, &Pointer::pending(&next));
                    world.crash(unheard);
                    let (seen, _) = b.get("k");
                    let over = b.put("k", "a later value");
                    world.restart(unheard, false);
                    if moved {
                        move_to(&world, &b, &next);
                    }
                    world.put_back(held);
                    match world.finish(&late) {
                        Ok(CoverableOutcome::Changed(tag)) => assert!(tag < over, "{case}"),
                        Err(WriteError::Unknown(_)) if moved => {}
                        ended => {
                            assert_eq!(won(&case, &ended), Won::No);
                            assert!(seen.is_initial(), "{case}");
                        }
                    }
                    let newest = (over, Some("a later value".to_owned()));
                    for actor in [&a, &b, &world.actor(&c)] {
                        assert_eq!(actor.get("k"), newest, "{case}");
                    }
                }
            }
        }
    }
}

/// A tombstone is a version like others.
#[test]
fn a_deletion_that_is_under_way_is_applied_once() {
    for (c, next) in moves() {
        for reached in 0..=c.n() {
            let (world, a, b) = world(&c);
            a.put("k", "the first value");
            world.settle();
            let members: Vec<usize> = (0..reached).collect();
            let (late, held) = begin(&world, &members, a.delete("k"));
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

/// The domain changes its kind several times. At each step a client operates that has not heard of any change.
#[test]
fn a_domain_goes_there_and_back_again() {
    let kinds = [
        Dap::Abd,
        Dap::Conditional { k: 1 },
        Dap::Ec { k: 2 },
        Dap::Conditional { k: 2 },
        Dap::Abd,
    ];
    for is_slow in [false, true] {
        let c = configuration(3, kinds[0], 1, 8);
        let (world, a, b) = world(&c);
        let mut last = a.put("k", "value 0");
        a.put("l", "stays");
        let mut current = c.clone();
        for (number, kind) in kinds.into_iter().enumerate().skip(1) {
            let next = successor(&current, 3 * number, 4, kind);
            announce(&world, &current, &Pointer::pending(&next));
            let slow = world.actor(&c);
            let actor = if is_slow { &slow } else { &a };
            let expected = format!("value {}", number - 1);
            assert_eq!(actor.get("k"), (last, Some(expected)));
            last = actor.put("k", &format!("value {number}"));
            assert_eq!(b.get("k").0, last);
            let done = world.run(reconfigure(b.client(), &c, &next));
            assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
            assert_eq!(a.get("k").0, last);
            assert_eq!(a.get("l").1.as_deref(), Some("stays"));
            assert!(a.get("never").0.is_initial());
            a.put(&format!("made {number}"), "then");
            current = next;
        }
        assert_eq!(world.actor(&c).keys().len(), 2 + kinds.len() - 1);
    }
}

/// Two changes at once: a change of the kind begins when nothing is pending, so that its reconfigurer first finishes the other one.
#[test]
fn a_change_of_the_kind_begins_where_nothing_is_pending() {
    for kinds in [
        [
            Dap::Conditional { k: 1 },
            Dap::Conditional { k: 1 },
            Dap::Abd,
        ],
        [Dap::Abd, Dap::Conditional { k: 1 }, Dap::Ec { k: 1 }],
        [
            Dap::Conditional { k: 1 },
            Dap::Abd,
            Dap::Conditional { k: 1 },
        ],
        [Dap::Abd, Dap::Ec { k: 1 }, Dap::Conditional { k: 1 }],
    ] {
        let c = configuration(3, kinds[0], 1, 8);
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        let second = successor(&c, 3, 3, kinds[1]);
        let third = successor(&second, 6, 3, kinds[2]);
        let left = leave_off(&world, &a, (&c, &second), LeaveOff::Transferred);
        assert_eq!(left, Ok(None), "{kinds:?}");
        let late = b.put("k", "the second value");
        assert!(late > first);
        let done = world.run(reconfigure(b.client(), &c, &third));
        assert_eq!(
            done,
            Ok(ReconfigOutcome::Installed(third.clone())),
            "{kinds:?}"
        );
        let expected = (late, Some("the second value".to_owned()));
        assert_eq!(world.actor(&c).get("k"), expected, "{kinds:?}");
    }
}

/// A reconfigurer dies between two of its steps: operations go on, and another one finishes.
#[test]
fn another_reconfigurer_finishes_what_one_left() {
    for (c, next) in moves() {
        for after in [None, Some(LeaveOff::Transferred), Some(LeaveOff::Finalized)] {
            let (world, a, b) = world(&c);
            a.put("k", "the first value");
            world.settle();
            match after {
                None => announce(&world, &c, &Pointer::pending(&next)),
                Some(after) => {
                    let left = leave_off(&world, &a, (&c, &next), after);
                    left.expect("it comes so far");
                }
            }
            let second = b.put("k", "the second value");
            world.crash(0);
            let third = world.actor(&c).put("k", "the third value");
            assert!(third > second);
            world.restart(0, false);
            move_on(&world, &b, &c, &next);
            let expected = (third, Some("the third value".to_owned()));
            for actor in [&a, &b, &world.actor(&c), &world.actor(&next)] {
                assert_eq!(actor.get("k"), expected, "{after:?}");
            }
        }
    }
}

/// A reconfigurer that dies after this step.
fn leave_off(
    world: &World,
    actor: &Actor,
    (c, next): (&Arc<Configuration>, &Arc<Configuration>),
    after: LeaveOff,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let (client, known, wanted) = (actor.client(), c.clone(), next.clone());
    world.run(async move {
        client
            .domain(&known)
            .leave_off(wanted.descriptor(), after)
            .await
    })
}

fn move_on(world: &World, by: &Actor, c: &Arc<Configuration>, next: &Arc<Configuration>) {
    let done = world.run(reconfigure(by.client(), c, next));
    let is_there = match &done {
        Ok(ReconfigOutcome::Installed(installed) | ReconfigOutcome::Unchanged(installed)) => {
            installed == next
        }
        _ => false,
    };
    assert!(is_there, "{done:?}");
}

/// PREPARE at a closing ballot.
fn is_closing_prepare(m: &Message) -> bool {
    matches!(m.access(), Some(Access::Rank { ballot: Some(it), .. }) if it.is_closing())
}

/// A conditional write on the first version, "one", which as many members have accepted as make it current, while the domain ceases to be
/// conditional: it may be the last version, or not.
struct OpenVersion {
    world: World,
    reader: Actor,
    late: Rc<RefCell<Option<Result<CoverableOutcome, WriteError>>>>,
    held: Vec<Message>,
}

impl OpenVersion {
    fn new(c: &Arc<Configuration>, next: &Arc<Configuration>) -> OpenVersion {
        let (world, a, reader) = world(c);
        let first = a.put("k", "the first value");
        world.settle();
        let members: Vec<usize> = (0..c.quorums().intersection()).collect();
        let (late, held) = begin(&world, &members, a.cover("k", "one", first));
        announce(&world, c, &Pointer::pending(next));
        OpenVersion {
            world,
            reader,
            late,
            held,
        }
    }

    /// The writer goes on: it has won exactly if its value was seen.
    fn end(self, seen: Option<&str>, case: &str) -> Won {
        self.world.put_back(self.held);
        let has_won = won(case, &self.world.finish(&self.late));
        let expected = match has_won {
            Won::Yes => "one",
            Won::No => "the first value",
        };
        assert_eq!(seen, Some(expected), "{case}");
        has_won
    }
}

/// A client has what it found accepted by one member at a closing ballot, and dies. What others find is decided once all the same,
/// whichever members they hear from.
#[test]
fn what_a_dead_client_began_to_decide_is_decided_once() {
    for (c, next) in moves() {
        let n = c.n();
        let mut winners = [0, 0];
        for code in 0..n.pow(4) {
            let at = |place: u32| code / n.pow(place) % n;
            let [mute, taken, unheard, then] = [at(0), at(1), at(2), at(3)];
            let case = format!("{c:?}, without {mute} at {taken}, without {unheard}, then {then}");
            let open = OpenVersion::new(&c, &next);
            let (world, reader) = (open.world.clone(), open.reader.clone());
            let is_lost = move |m: &Message| m.is_reply() || !m.at(&[taken]);
            world.hold(move |m| m.at(&[mute]) || (m.is_closing_proposal() && is_lost(m)));
            let dead = world.spawn(world.actor(&c).read("k"));
            world.settle();
            assert!(dead.borrow().is_none(), "{case}: it hears no more");
            world.lose(|m| m.at(&[mute]) || m.is_closing_proposal());
            world.release();
            world.crash(unheard);
            let seen = reader.get("k").1;
            let over = reader.put("k", "a later value");
            world.restart(unheard, false);
            world.crash(then);
            let newest = (over, Some("a later value".to_owned()));
            assert_eq!(world.actor(&c).get("k"), newest, "{case}");
            let has_won = open.end(seen.as_deref(), &case);
            winners[usize::from(has_won == Won::Yes)] += 1;
            world.restart(then, false);
            move_on(&world, &reader, &c, &next);
            assert_eq!(world.actor(&c).get("k"), newest, "{case}");
        }
        assert!(winners.iter().all(|count| *count > 0), "{winners:?}");
    }
}

/// A client has asked what is current, and another one decides before it is promised its closing ballot: what it found before is nothing to
/// propose.
#[test]
fn what_was_found_before_a_promise_is_not_decided() {
    for (c, next) in moves() {
        let mut winners = [0, 0];
        for (unheard, then) in (0..c.n()).flat_map(|a| (0..c.n()).map(move |b| (a, b))) {
            let case = format!("{c:?}, without {unheard}, then {then}");
            let open = OpenVersion::new(&c, &next);
            let (world, reader) = (open.world.clone(), open.reader.clone());
            world.hold(move |m| m.at(&[unheard]) || is_closing_prepare(m));
            let slow = world.spawn(world.actor(&c).read("k"));
            world.settle();
            let promises = world.set_aside(is_closing_prepare);
            world.lose(|m| m.at(&[unheard]));
            world.release();
            world.crash(then);
            let seen = reader.get("k");
            world.restart(then, false);
            world.put_back(promises);
            let read = world.finish(&slow).expect("a quorum is there");
            assert_eq!(read.tag, seen.0, "{case}");
            let has_won = open.end(seen.1.as_deref(), &case);
            winners[usize::from(has_won == Won::Yes)] += 1;
        }
        assert!(winners.iter().all(|count| *count > 0), "{winners:?}");
    }
}

/// A conditional deletion that meets the move is not applied, and says so.
#[test]
fn a_conditional_write_that_meets_the_move_is_not_applied() {
    for (c, next) in moves() {
        let (world, a, b) = world(&c);
        let first = a.put("k", "the first value");
        world.settle();
        announce(&world, &c, &Pointer::pending(&next));
        let (domain, late) = (b.domain(), value("late"));
        let written = world.run(async move { domain.put_if(&name("k"), &late, Some(first)).await });
        assert_eq!(won("conditional", &written), Won::No, "{written:?}");
        let found = world.run(a.read("k")).expect("a quorum");
        assert_eq!(
            found.value.as_ref().map(text).as_deref(),
            Some("the first value")
        );
        // Without a condition on a version it goes on.
        let deleted: Result<Deletion, DeleteError> = world.run(b.delete("k"));
        assert!(matches!(deleted, Ok(Deletion::Deleted(_))), "{deleted:?}");
    }
}

/// A reconfigurer comes to a pending configuration that is not conditional, and wants another one of its kind after it. Meanwhile another
/// reconfigurer has finished that one, and had decided that a conditional one comes next. The first one transfers from there.
#[test]
fn what_others_decide_may_change_the_kind_again() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let plain = successor(&c, 0, 3, Dap::Abd);
    let wanted = successor(&plain, 1, 3, Dap::Abd);
    let last = successor(&plain, 1, 3, Dap::Conditional { k: 1 });
    let (world, a, other) = world(&c);
    let version = a.put("k", "the value");
    let pending = leave_off(&world, &a, (&c, &plain), LeaveOff::Transferred);
    assert_eq!(pending, Ok(None));
    world.hold(Message::is_prepare);
    let slow = world.spawn(reconfigure(a.client(), &c, &wanted));
    world.settle();
    let proposal = world.set_aside(Message::is_prepare);
    assert!(!proposal.is_empty(), "it proposes");
    // It is decided, and who proposed it does not hear of that.
    world.hold(|m| m.is_cell_accept() && m.is_reply());
    let (by, known) = (other.client(), c.clone());
    let descriptor = last.descriptor().clone();
    let dead = world.spawn(async move {
        let domain = by.domain(&known);
        domain.leave_off(&descriptor, LeaveOff::Transferred).await
    });
    world.settle();
    assert!(dead.borrow().is_none(), "it hears no more");
    world.lose(Message::is_cell_accept);
    world.release();
    world.put_back(proposal);
    let made = world.finish(&slow);
    assert_eq!(made, Ok(ReconfigOutcome::Installed(last)));
    let newest = (version, Some("the value".to_owned()));
    assert_eq!(world.actor(&c).get("k"), newest);
}
