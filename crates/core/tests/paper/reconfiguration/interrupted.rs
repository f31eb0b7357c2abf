//! Reconfigurers that are slow, or die, after any of their quorum calls, while others go on (schedules T7 to T9 of
//! `docs/spec` section 8; 3.5 items 12 to 16). Every place is tried: what the schedules of the specification pick is
//! among them.

use super::gate::{Gate, GatedEnv, until_death};
use super::{move_to, reconfigure, resume};
use crate::world::{Actor, Message, World, configuration, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::Client;
use areo_core::pointer::Pointer;
use areo_core::reconfig::{LeaveOff, ReconfigError, ReconfigOutcome};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Members of each configuration, of which one may be missing.
const N: usize = 4;

/// The first configuration, and the domain in it: three objects and one deleted one.
fn domain(dap: Dap, seed: u64) -> (World, Arc<Configuration>) {
    let c = configuration(N, dap, 3, 0);
    let world = World::of(&c, 6 * N, seed);
    let actor = world.actor(&c);
    for key in ["changed", "deleted", "left", "removed"] {
        actor.put(key, "old");
    }
    world.run(actor.delete("removed")).expect("it is there");
    world.settle();
    (world, c)
}

/// The operations during a reconfiguration: they change one object, delete one, and create one.
fn operate(world: &World, actor: &Actor) {
    assert_eq!(actor.get("left").1.as_deref(), Some("old"));
    actor.put("changed", "new");
    world.run(actor.delete("deleted")).expect("a quorum is up");
    actor.put("created", "new");
}

/// Checks the objects afterwards, for clients that start from any configuration.
fn assert_all_is_there(world: &World, known: &[&Arc<Configuration>], operated: bool, case: &str) {
    let new = if operated { "new" } else { "old" };
    for (turn, c) in known.iter().enumerate() {
        let actor = world.actor(c);
        let case = format!("{case}, from the {turn}th known");
        let text = |key: &str| actor.get(key).1.filter(|text| !text.is_empty());
        assert_eq!(text("left").as_deref(), Some("old"), "{case}");
        assert_eq!(text("changed").as_deref(), Some(new), "{case}");
        assert_eq!(text("created").is_some(), operated, "{case}");
        assert_eq!(text("deleted").is_some(), !operated, "{case}");
        assert_eq!(text("removed"), None, "{case}");
        assert_eq!(actor.get("never written").0, areo_core::tag::Tag::INITIAL);
        let listed = world.run(actor.list("", "", 100)).expect("a quorum is up");
        assert_eq!(listed.entries.len(), 3, "{case}");
    }
    world.assert_one_chain();
}

type ReconfigEnd = Rc<RefCell<Option<Result<ReconfigOutcome, ReconfigError>>>>;

/// Begins a reconfiguration that stops before its call number `limit`. Returns whether it got there.
fn begin(
    world: &World,
    c: &Arc<Configuration>,
    next: &Arc<Configuration>,
    limit: usize,
) -> (Rc<Gate>, ReconfigEnd, bool) {
    let gate = Gate::after(limit);
    let client = Client::new(GatedEnv::new(world.env(), &gate));
    let ended = world.spawn(reconfigure(client, c, next));
    while ended.borrow().is_none() && !gate.is_reached() {
        assert!(world.step(), "it ends, or stops");
    }
    let stopped = ended.borrow().is_none();
    (gate, ended, stopped)
}

/// The actions of others while the reconfigurer is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    Operate,
    /// Finish what it left, and operate.
    Resume,
    /// Install a configuration of their own, and operate in it.
    Reconfigure,
    /// Operate; two more configurations follow.
    ReconfigureTwice,
    /// A member of each of the two configurations dies for good.
    MembersDie,
}

fn others(world: &World, c: &Arc<Configuration>, next: &Arc<Configuration>, what: Others) {
    let actor = world.actor(c);
    let change = |first: usize| {
        let other = successor(next, first, N, Dap::Abd);
        let done = world.run(reconfigure(actor.client(), c, &other));
        assert!(
            matches!(
                done,
                Ok(ReconfigOutcome::Installed(_)) | Err(ReconfigError::Contradicts(..))
            ),
            "{done:?}"
        );
    };
    match what {
        Others::Operate => operate(world, &actor),
        Others::Resume => {
            world
                .run(resume(actor.client(), c))
                .expect("a quorum is up");
            operate(world, &actor);
        }
        Others::Reconfigure => {
            change(2 * N);
            operate(world, &actor);
        }
        Others::ReconfigureTwice => {
            operate(world, &actor);
            change(2 * N);
            change(3 * N);
        }
        Others::MembersDie => {
            world.crash(N - 1);
            world.crash(2 * N - 1);
            operate(world, &actor);
        }
    }
}

/// Schedules T7 and T9, 3.5 items 14 to 16: a reconfigurer is stopped before each of its calls in turn, with requests to one
/// member of each configuration still under way; others read, write, delete, create, finish it for it, or install one or
/// two configurations and collect; then it goes on, and late requests arrive. Nothing is lost, and it ends with an answer.
#[test]
fn a_slow_reconfigurer_does_no_harm() {
    let daps = [(Dap::Abd, Dap::Ec { k: 2 }), (Dap::Ec { k: 2 }, Dap::Abd)];
    let all = [
        Others::Operate,
        Others::Resume,
        Others::Reconfigure,
        Others::ReconfigureTwice,
        Others::MembersDie,
    ];
    let mut superseded = 0;
    for (from, to) in daps {
        for (what, late) in all
            .into_iter()
            .flat_map(|what| [(what, false), (what, true)])
        {
            for limit in 0.. {
                let case = format!("{from} to {to}, {what:?} before call {limit}, late: {late}");
                let (world, c) = domain(from, 1);
                let next = successor(&c, N, N, to);
                if late {
                    world.hold(|m| m.at(&[0, N]));
                }
                let (gate, ended, stopped) = begin(&world, &c, &next, limit);
                let aside = world.set_aside(|m| late && m.at(&[0, N]));
                world.release();
                others(&world, &c, &next, what);
                gate.open();
                world.put_back(aside);
                while ended.borrow().is_none() {
                    assert!(world.step(), "{case}: it ends");
                }
                world.settle();
                let result = ended.borrow_mut().take().expect("it has ended");
                superseded += usize::from(matches!(result, Ok(ReconfigOutcome::Superseded(_))));
                let last = match result {
                    Ok(
                        ReconfigOutcome::Installed(c)
                        | ReconfigOutcome::Superseded(c)
                        | ReconfigOutcome::Unchanged(c),
                    )
                    | Err(ReconfigError::Contradicts(c, _)) => c,
                    Err(error) => panic!("{case}: {error:?}"),
                };
                assert_all_is_there(&world, &[&c, &last], true, &case);
                let after = successor(&last, 5 * N, N, from);
                let done = world.run(reconfigure(world.actor(&c).client(), &c, &after));
                let Ok(ReconfigOutcome::Installed(after)) = done else {
                    panic!("{case}: {done:?}")
                };
                assert_all_is_there(&world, &[&c, &last, &after], true, &case);
                if !stopped {
                    assert!(limit > 8, "{case}: it has more calls than these");
                    break;
                }
            }
        }
    }
    assert!(superseded > 20, "{superseded} were superseded");
}

/// The fate of the requests of a reconfigurer's last call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    /// Only the first member of each configuration gets one.
    One,
    /// Every member gets one.
    Arrive,
}

/// A reconfigurer dies after its call number `limit`. Returns whether it got there.
fn die(
    world: &World,
    c: &Arc<Configuration>,
    next: &Arc<Configuration>,
    (limit, fate): (usize, Fate),
) -> bool {
    let gate = Gate::after(limit);
    let client = Client::new(GatedEnv::new(world.env(), &gate));
    let run = until_death(gate, reconfigure(client, c, next));
    let died = world.run(run).is_none();
    let first = |m: &Message| (0..6).any(|group| m.at(&[group * N]));
    match fate {
        Fate::Lost => drop(world.lose(|_| true)),
        Fate::One => drop(world.lose(|m| !first(m))),
        Fate::Arrive => {}
    }
    world.settle();
    died
}

/// Schedule T8, 3.5 item 12: a reconfigurer dies after each of its calls; then another, after each of its own; then
/// operations, and a reconfiguration by a third one, succeed, and nothing is lost.
#[test]
fn reconfigurers_that_die_leave_nothing_behind_that_others_cannot_finish() {
    for fate in [Fate::Lost, Fate::One, Fate::Arrive] {
        for first in 0.. {
            let mut got_there = true;
            for second in 0.. {
                let case = format!("deaths after {first} and {second}, {fate:?}");
                let dap = [Dap::Abd, Dap::Ec { k: 2 }][(first + second) % 2];
                let (world, c) = domain(dap, 1);
                let one = successor(&c, N, N, Dap::Ec { k: 2 });
                let two = successor(&one, 2 * N, N, Dap::Abd);
                got_there = die(&world, &c, &one, (first, fate));
                let died = die(&world, &c, &two, (second, fate));
                // With, or without, an operation between the death and what follows.
                let early = (first + second) % 3 > 0;
                let actor = world.actor(&c);
                if early {
                    operate(&world, &actor);
                    assert_all_is_there(&world, &[&c], true, &case);
                }
                if second % 2 == 0 {
                    let resumed = world.run(resume(actor.client(), &c));
                    assert!(resumed.is_ok(), "{case}: {resumed:?}");
                    assert_all_is_there(&world, &[&c], early, &case);
                }
                let three = successor(&two, 3 * N, N, dap);
                let done = world.run(reconfigure(world.actor(&c).client(), &c, &three));
                let last = match done {
                    Ok(ReconfigOutcome::Installed(last))
                    | Err(ReconfigError::Contradicts(last, _)) => last,
                    other => panic!("{case}: {other:?}"),
                };
                if !early {
                    operate(&world, &world.actor(&c));
                }
                assert_all_is_there(&world, &[&c, &last], true, &case);
                if !died {
                    // The shortest ends with a contradiction.
                    assert!(second > 5, "{case}: it has more calls than these");
                    break;
                }
            }
            if !got_there {
                assert!(first > 8, "it has more calls than {first}");
                break;
            }
        }
    }
}

/// 3.5 item 11: many reconfigurers die between pending and final, one after the other; all of their configurations are in
/// use, and one reconfiguration makes an end of it.
#[test]
fn a_long_row_of_pending_configurations_is_finished_at_once() {
    let (world, c) = domain(Dap::Abd, 1);
    let mut last = c.clone();
    for step in 1..=11 {
        let next = successor(
            &last,
            (step % 6) * N,
            N,
            [Dap::Abd, Dap::Ec { k: 2 }][step % 2],
        );
        super::announce(&world, &last, &Pointer::pending(&next));
        last = next;
        world.actor(&c).put("changed", &format!("{step}"));
    }
    operate(&world, &world.actor(&c));
    assert_all_is_there(&world, &[&c], true, "11 pending");
    let resumed = world.run(resume(world.actor(&c).client(), &c));
    assert_eq!(resumed, Ok(Some(last.clone())));
    assert_all_is_there(&world, &[&c, &last], true, "11 pending, finished");
    let next = successor(&last, 0, N, Dap::Abd);
    move_to(&world, &world.actor(&c), &next);
    assert_all_is_there(&world, &[&c, &last, &next], true, "one more");
}

/// 3.5 item 17: who asks for a configuration that is pending already finishes it, and learns if a later one took its place.
#[test]
fn who_finishes_a_pending_configuration_is_told_if_another_took_its_place() {
    let (mut installed, mut superseded) = (0, 0);
    for limit in 0.. {
        let (world, c) = domain(Dap::Abd, 1);
        let next = successor(&c, N, N, Dap::Abd);
        super::announce(&world, &c, &Pointer::pending(&next));
        let (gate, ended, stopped) = begin(&world, &c, &next, limit);
        let later = successor(&next, 2 * N, N, Dap::Abd);
        move_to(&world, &world.actor(&c), &later);
        gate.open();
        world.settle();
        match ended.borrow_mut().take().expect("it has ended") {
            Ok(ReconfigOutcome::Installed(last)) => {
                // Its own at the time, or once more after the later one.
                let again = last.id().index == 3;
                assert!(last == next || again, "before call {limit}: {last:?}");
                installed += 1;
            }
            // The later one has what was asked for, or was there when that was planned.
            Ok(ReconfigOutcome::Superseded(last) | ReconfigOutcome::Unchanged(last)) => {
                assert_eq!(last, later, "before call {limit}");
                superseded += 1;
            }
            other => panic!("before call {limit}: {other:?}"),
        }
        if !stopped {
            break;
        }
    }
    assert!(installed > 0 && superseded > 0);
}

/// A sequence as the papers' experiment on garbage collection begins with: configurations that have everything and are
/// pending, and one that is final, of which only its predecessor knows.
#[test]
fn what_is_left_off_leads_on_step_by_step() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let (world, c) = domain(dap, 1);
        let mut last = c.clone();
        for (step, after) in [
            LeaveOff::Transferred,
            LeaveOff::Transferred,
            LeaveOff::Finalized,
        ]
        .into_iter()
        .enumerate()
        {
            let next = successor(&last, N * (step + 1), N, dap);
            let (client, known, wanted) = (world.actor(&c).client(), c.clone(), next.clone());
            let done = world.run(async move {
                client
                    .domain(&known)
                    .leave_off(wanted.descriptor(), after)
                    .await
            });
            let expected = (after == LeaveOff::Finalized).then_some(next.clone());
            assert_eq!(done, Ok(expected));
            world.settle();
            // Everything is there; the new configuration was visited, and so were all before it.
            let before = world.gathers();
            assert_eq!(world.actor(&c).get("left").1.as_deref(), Some("old"));
            assert!(world.gathers() - before >= step + 2, "step by step");
            assert_all_is_there(&world, &[&c], false, "left off");
            last = next;
        }
        operate(&world, &world.actor(&c));
        assert_all_is_there(&world, &[&c, &last], true, "final");
    }
}
