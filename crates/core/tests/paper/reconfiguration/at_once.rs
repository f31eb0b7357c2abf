//! Several reconfigurers at once, in a sequence: their changes are merged, or refused by name (`docs/spec` `[A-13 change-after-its-base]`,
//! `[A-14 merged-changes]`).

use super::gate::{Gate, GatedEnv, until_death};
use super::{reconfigure, resume};
use crate::world::{Chaos, Message, World, configuration, server, successor, with};
use areo_core::config::{Collect, Configuration, Dap, Decider, Descriptor, Options};
use areo_core::consensus::AsDescribed;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::reconfig::change::{Change, Contradiction};
use areo_core::reconfig::merged;
use areo_core::reconfig::{LeaveOff, ReconfigError, ReconfigOutcome, Reconfigurer};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

type Ended = Rc<RefCell<Option<Result<ReconfigOutcome, ReconfigError>>>>;

/// Makes a change of `change.base()`, of configurations that tolerate a crash.
fn make<E: Env>(
    client: Client<E>,
    change: &Change,
) -> impl Future<Output = Result<ReconfigOutcome, ReconfigError>> + use<E> {
    let change = change.clone();
    async move {
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &AsDescribed(|| client.next_writer()),
            progress: &|_| {},
            patience: client.leader_patience(),
        };
        merged::make(&by, change.base(), &change, &async |joined: &Change| {
            joined.made().n() > joined.made().quorums().quorum()
        })
        .await
    }
}

/// A change of the fields of `base` that `of` sets.
fn change(base: &Arc<Configuration>, of: impl FnOnce(&mut Descriptor)) -> Change {
    let mut wanted = base.descriptor().clone();
    of(&mut wanted);
    Change::new(base, &wanted).expect("a valid change")
}

/// Server `new` takes the place of server `old`.
fn replace(base: &Arc<Configuration>, old: usize, new: usize) -> Change {
    change(base, |wanted| {
        let place = base.position(server(old)).expect("a member");
        wanted.members[place] = server(new);
    })
}

fn remove(base: &Arc<Configuration>, old: usize) -> Change {
    change(base, |wanted| {
        wanted.members.retain(|it| *it != server(old));
    })
}

fn ended(world: &World, ended: &Ended) -> Result<ReconfigOutcome, ReconfigError> {
    while ended.borrow().is_none() {
        assert!(world.step(), "it ends");
    }
    ended.borrow_mut().take().expect("it has ended")
}

/// The configuration of a change that was made.
fn made(ended: Result<ReconfigOutcome, ReconfigError>, case: &str) -> Arc<Configuration> {
    match ended {
        Ok(ReconfigOutcome::Installed(c) | ReconfigOutcome::Superseded(c)) => c,
        other => panic!("{case}: {other:?}"),
    }
}

/// The last configuration of the domain.
fn last(world: &World, c: &Arc<Configuration>) -> Arc<Configuration> {
    let (client, known) = (world.actor(c).client(), c.clone());
    let path = world.run(async move { client.domain(&known).path().await });
    let path = path.expect("a quorum is up");
    assert_eq!(path.len(), 1, "nothing is pending");
    path[0].clone()
}

/// The members as decider, and an external service.
fn deciders() -> [Decider; 2] {
    [Decider::Members, "etcd=a:1".parse().expect("it decides")]
}

/// A replicated domain of the first `n` of `servers`, with an object.
fn world_of(
    decided_by: &Decider,
    n: usize,
    servers: usize,
    seed: u64,
) -> (World, Arc<Configuration>) {
    let descriptor = Descriptor {
        decided_by: decided_by.clone(),
        ..configuration(n, Dap::Abd, 1, 8).descriptor().clone()
    };
    let c = Configuration::new(descriptor).expect("a valid descriptor");
    let world = World::of(&c, servers, seed);
    world.actor(&c).put("k", "v");
    world.settle();
    (world, c)
}

/// One is stopped before each of its calls in turn while another one makes its change. Both are made in the end, and in one
/// configuration wherever the first one had posted its change.
#[test]
fn changes_of_two_reconfigurers_are_both_made() {
    for decided_by in deciders() {
        let mut merged = 0;
        for limit in 0.. {
            let case = format!("{decided_by}, stopped before call {limit}");
            let (world, c) = world_of(&decided_by, 3, 6, 1);
            let [one, other] = [replace(&c, 0, 3), replace(&c, 1, 4)];
            let gate = Gate::after(limit);
            let late = world.spawn(make(Client::new(GatedEnv::new(world.env(), &gate)), &one));
            while late.borrow().is_none() && !gate.is_reached() {
                assert!(world.step(), "it ends, or stops");
            }
            let stopped = gate.is_reached();
            let done = made(world.run(make(world.actor(&c).client(), &other)), &case);
            assert!(other.is_in(&done), "{case}");
            let written = world.actor(&c).put("k", "w");
            gate.open();
            let done = made(ended(&world, &late), &case);
            assert!(one.is_in(&done), "{case}");
            world.settle();
            let last = last(&world, &c);
            assert!(one.is_in(&last) && other.is_in(&last), "{case}");
            assert_eq!(last.members()[..], [3, 4, 2].map(server), "{case}");
            assert!(last.id().index == 1 || limit == 0 || !stopped || last.id().index == 2);
            merged += usize::from(last.id().index == 1);
            for known in [&c, &last] {
                let (tag, text) = world.actor(known).get("k");
                assert_eq!((tag, text.as_deref()), (written, Some("w")), "{case}");
            }
            world.assert_one_chain();
            if !stopped {
                break;
            }
        }
        // A service outside is asked before the next call: the first one is alone, or has posted nothing.
        assert_eq!(merged > 0, decided_by == Decider::Members);
    }
}

/// It posts its change with the call that reads the last configuration, so that one that comes after that makes both.
#[test]
fn a_change_that_was_posted_is_made_by_the_next() {
    for decided_by in deciders() {
        let (world, c) = world_of(&decided_by, 3, 6, 1);
        let [one, other] = [replace(&c, 0, 3), replace(&c, 1, 4)];
        let gate = Gate::after(1);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let dead = world.run(until_death(gate, make(client, &one)));
        assert!(dead.is_none(), "it hears no answer");
        world.settle();
        assert_eq!(last(&world, &c), c, "nothing was decided");
        let done = made(world.run(make(world.actor(&c).client(), &other)), "merged");
        assert_eq!(
            (done.id().index, &done.members()[..]),
            (1, &[3, 4, 2].map(server)[..])
        );
        // What was posted went with its configuration.
        world.settle();
        let third = made(
            world.run(make(world.actor(&c).client(), &replace(&done, 3, 5))),
            "alone",
        );
        assert_eq!(
            (third.id().index, &third.members()[..]),
            (2, &[5, 4, 2].map(server)[..])
        );
    }
}

/// An entry is worth nothing before it is durable: the members lose their power after they have it.
#[test]
fn what_was_posted_survives_the_power() {
    let (world, c) = world_of(&Decider::Members, 3, 6, 1);
    let [one, other] = [replace(&c, 0, 3), replace(&c, 1, 4)];
    let gate = Gate::after(1);
    let dead = world.run(until_death(
        gate.clone(),
        make(Client::new(GatedEnv::new(world.env(), &gate)), &one),
    ));
    assert!(dead.is_none());
    world.settle();
    for number in 0..3 {
        world.crash(number);
        world.restart(number, false);
    }
    let done = made(world.run(make(world.actor(&c).client(), &other)), "merged");
    assert!(one.is_in(&done) && other.is_in(&done));
}

/// Messages come in any order, and some are doubled: r reconfigurers, of which each replaces another server. All changes are
/// made, in one configuration at best, and in as many as there are reconfigurers at worst.
#[test]
fn changes_of_several_reconfigurers_are_all_made() {
    const SEEDS: u64 = 40;
    for decided_by in deciders() {
        for r in 2..=4 {
            let mut installed = 0;
            let mut once = false;
            for seed in 0..SEEDS {
                let (world, c) = world_of(&decided_by, 5, 9, seed);
                world.random(Chaos {
                    lose: 0,
                    duplicate: [0, 50][world.below(2)],
                    pass_time: 0,
                });
                let changes: Vec<Change> = (0..r).map(|it| replace(&c, it, 5 + it)).collect();
                let start = |change| world.spawn(make(world.actor(&c).client(), change));
                let started: Vec<Ended> = changes.iter().map(start).collect();
                for (change, started) in changes.iter().zip(&started) {
                    let case = format!("{decided_by}, {r}, seed {seed}");
                    let done = made(ended(&world, started), &case);
                    assert!(change.is_in(&done), "{case}: {done:?}");
                }
                world.settle();
                let last = last(&world, &c);
                let index = last.id().index;
                assert!(changes.iter().all(|change| change.is_in(&last)));
                assert!((1..=r as u32).contains(&index), "{index}");
                assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
                world.assert_one_chain();
                installed += u64::from(index);
                once |= index == 1;
            }
            assert!(once, "{decided_by}: {r} became one");
            assert!(installed < SEEDS * r as u64, "{decided_by}: {installed}");
        }
    }
}

/// The fate of the requests of a reconfigurer's last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lost,
    /// Only one member gets one.
    One,
    Arrive,
}

/// A reconfigurer dies after each of its calls. What it wanted is made whole, by others, or not at all; theirs is made.
#[test]
fn of_a_reconfigurer_that_dies_all_is_made_or_nothing() {
    for decided_by in deciders() {
        for fate in [Fate::Lost, Fate::One, Fate::Arrive] {
            let (mut whole, mut nothing) = (0, 0);
            for limit in 0.. {
                let case = format!("{decided_by}, {fate:?}, death after {limit}");
                let (world, c) = world_of(&decided_by, 3, 7, 1);
                let dying = change(&c, |it| (it.members[0], it.delta) = (server(3), 9));
                let gate = Gate::after(limit);
                let client = Client::new(GatedEnv::new(world.env(), &gate));
                let died = world.run(until_death(gate, make(client, &dying))).is_none();
                match fate {
                    Fate::Lost => drop(world.lose(|_| true)),
                    Fate::One => drop(world.lose(|m: &Message| !m.at(&[1, 4]))),
                    Fate::Arrive => {}
                }
                world.settle();
                let second = replace(&c, 1, 5);
                let done = made(world.run(make(world.actor(&c).client(), &second)), &case);
                assert!(second.is_in(&done), "{case}");
                world.settle();
                let last = last(&world, &c);
                let has = [
                    last.position(server(3)).is_some(),
                    last.descriptor().delta == 9,
                ];
                assert_eq!(has[0], has[1], "{case}");
                (whole, nothing) = (whole + usize::from(has[0]), nothing + usize::from(!has[0]));
                assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"), "{case}");
                world.assert_one_chain();
                if !died {
                    break;
                }
            }
            assert!(whole > 3 && nothing > 0, "{whole} {nothing}");
        }
    }
}

/// Two changes of `base` each, and what both are about.
fn contradictions(base: &Arc<Configuration>) -> Vec<([Change; 2], Contradiction)> {
    let all = |of: &[usize]| {
        let members = of.iter().map(|it| server(*it)).collect();
        change(base, |wanted| wanted.members = members).naming_all()
    };
    let dap = |dap| change(base, |wanted| wanted.dap = dap);
    let delta = |delta| change(base, |wanted| wanted.delta = delta);
    let decider = |text: &str| {
        let decider = text.parse().expect("it decides");
        change(base, |wanted| wanted.decided_by = decider)
    };
    let options = |collect| change(base, |wanted| wanted.options.collect = collect);
    let (servers, replaced) = (Contradiction::Servers, Contradiction::Replaced(server(0)));
    vec![
        ([replace(base, 0, 3), replace(base, 0, 4)], replaced),
        ([all(&[0, 1, 3]), all(&[0, 1, 4])], servers),
        ([dap(Dap::Abd), dap(Dap::Cas { k: 1 })], Contradiction::Dap),
        ([delta(8), delta(9)], Contradiction::Delta),
        (
            ["etcd=a:1", "etcd=b:1"].map(decider),
            Contradiction::Decider,
        ),
        (
            [Collect::Off, Collect::Paper].map(options),
            Contradiction::Options,
        ),
    ]
}

/// One of two contradicting changes is made. The other one is refused by name, wherever it is stopped, and no part of
/// it is made then or later.
#[test]
fn a_change_that_contradicts_another_one_is_refused_by_name() {
    let base = configuration(3, Dap::Ec { k: 1 }, 1, 8);
    for (pair, about) in contradictions(&base) {
        let mut refused = [0, 0];
        for limit in 0.. {
            let world = World::of(&base, 6, 1);
            let gate = Gate::after(limit);
            let client = Client::new(GatedEnv::new(world.env(), &gate));
            let late = world.spawn(make(client, &pair[0]));
            while late.borrow().is_none() && !gate.is_reached() {
                assert!(world.step(), "it ends, or stops");
            }
            let stopped = gate.is_reached();
            let other = world.run(make(world.actor(&base).client(), &pair[1]));
            gate.open();
            let ends = [ended(&world, &late), other];
            world.settle();
            let winner = usize::from(ends[0].is_err());
            let first = made(ends[winner].clone(), "one is made");
            let expected = Err(ReconfigError::Contradicts(first.clone(), about));
            assert_eq!(ends[1 - winner], expected, "before call {limit}");
            refused[1 - winner] += 1;
            assert_eq!(first.id().index, 1);
            let later = make(world.actor(&base).client(), &replace(&first, 1, 5));
            let last = made(world.run(later), "what comes later");
            assert!(!pair[1 - winner].is_in(&last), "nothing of it is made");
            world.assert_one_chain();
            if !stopped {
                break;
            }
        }
        assert!(refused[0] > 0 && refused[1] > 1, "{about:?}: {refused:?}");
    }
}

/// A posted change does not exclude a contradicting one: the reconfigurer that posted it may be dead, and then only
/// the other change is made.
#[test]
fn a_change_that_contradicts_one_that_was_only_posted_is_made() {
    let base = configuration(3, Dap::Ec { k: 1 }, 1, 8);
    for (pair, about) in contradictions(&base) {
        let world = World::of(&base, 6, 1);
        // Members know the configuration, so that one message posts.
        world.actor(&base).put("k", "v");
        world.settle();
        let gate = Gate::after(1);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let dead = world.run(until_death(gate, make(client, &pair[0])));
        assert!(dead.is_none(), "it posts its change and hears no answer");
        world.settle();
        let done = world.run(make(world.actor(&base).client(), &pair[1]));
        let done = made(done, "nothing is decided against it");
        assert!(pair[1].is_in(&done) && !pair[0].is_in(&done), "{about:?}");
        world.assert_one_chain();
    }
}

/// Two that each leave enough servers would leave too few together. The first one is made, the second one is refused.
#[test]
fn what_is_merged_is_checked_as_what_is_planned() {
    let mut unwanted = 0;
    for limit in 0..4 {
        let (world, c) = world_of(&Decider::Members, 4, 4, 1);
        let gate = Gate::after(limit);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let late = world.spawn(make(client, &remove(&c, 0)));
        while late.borrow().is_none() && !gate.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
        let other = world.run(make(world.actor(&c).client(), &remove(&c, 1)));
        gate.open();
        let ends = [ended(&world, &late), other];
        let refused = ends
            .iter()
            .filter(|it| matches!(it, Err(ReconfigError::Unwanted(_))));
        unwanted += refused.count();
        world.settle();
        assert_eq!(last(&world, &c).n(), 3, "{ends:?}");
    }
    assert_eq!(unwanted, 4);
}

/// Two changes whose join is invalid are not merged: the second one is refused, because k would exceed the number of
/// servers.
#[test]
fn what_cannot_be_is_refused() {
    let c = configuration(4, Dap::Ec { k: 3 }, 1, 8);
    let world = World::of(&c, 4, 1);
    let two = change(&c, |wanted| wanted.members.truncate(3));
    let gate = Gate::after(1);
    let late = world.spawn(make(Client::new(GatedEnv::new(world.env(), &gate)), &two));
    while !gate.is_reached() {
        assert!(world.step(), "it stops");
    }
    let done = world.run(make(world.actor(&c).client(), &remove(&c, 0)));
    assert_eq!(made(done, "alone").n(), 3);
    gate.open();
    let end = ended(&world, &late);
    assert!(matches!(end, Err(ReconfigError::Invalid(_))), "{end:?}");
}

/// Posting takes the place of the call that reads the last configuration's pointers, unless they are read apart.
#[test]
fn an_undisturbed_change_costs_no_call_more() {
    for (options, more) in [(Options::ARES_2, 0), (Options::ARES, 1)] {
        let c = with(&configuration(3, Dap::Abd, 1, 8), options);
        let next = successor(&c, 3, 3, Dap::Abd);
        let world = || {
            let world = World::of(&c, 6, 1);
            world.actor(&c).put("k", "v");
            let (before, client) = (world.gathers(), world.actor(&c).client());
            (world, before, client)
        };
        let (merging, before, client) = world();
        let change = Change::new(&c, next.descriptor()).expect("a valid change");
        let done = merging.run(make(client, &change));
        assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
        let merging = merging.gathers() - before;
        // The same without a mailbox, but for the call that tells the old configuration.
        let (plain, before, client) = world();
        let (known, wanted) = (c.clone(), next.clone());
        let left = plain.run(async move {
            let domain = client.domain(&known);
            domain
                .leave_off(wanted.descriptor(), LeaveOff::Finalized)
                .await
        });
        assert_eq!(left, Ok(Some(next)));
        let plain = plain.gathers() - before;
        assert_eq!(merging, plain + 1 + more, "{options:?}");
    }
}

/// A reconfigurer whose proposal loses posts its change at the decided configuration when it comes there, and not after a look at it: one
/// that is far from the members would come too late again and again.
#[test]
fn a_change_that_lost_is_posted_at_once() {
    let (world, c) = world_of(&Decider::Members, 3, 6, 1);
    let [one, other] = [replace(&c, 0, 3), replace(&c, 1, 4)];
    // It posts, asks for promises, has it accepted, and dies before it says so.
    let gate = Gate::after(3);
    let client = Client::new(GatedEnv::new(world.env(), &gate));
    assert_eq!(world.run(until_death(gate, make(client, &one))), None);
    world.lose(Message::is_note);
    let before = world.gathers();
    let late = world.spawn(make(world.actor(&c).client(), &other));
    let is_posting = || world.in_flight(|message| message.is_posting() && !message.is_reply());
    let (mut posts, mut was_posting) = (Vec::new(), false);
    while late.borrow().is_none() {
        if is_posting() > 0 && !was_posting {
            posts.push(world.gathers() - before);
        }
        was_posting = is_posting() > 0;
        assert!(world.step(), "it ends");
    }
    let done = made(ended(&world, &late), "after the dead one");
    assert!(one.is_in(&done) && other.is_in(&done));
    assert_eq!(done.id().index, 2);
    // Again with the descriptor, in the same call.
    posts.dedup();
    // Posted, promised, accepted, announced; what comes after the first one is read.
    assert_eq!(posts, [1, 6]);
}

/// A reconfigurer sees that the domain becomes conditional, and then that its change was decided together with one that makes an end of that. The
/// configuration between the two is final by then: the path begins there (`[W-14 change-of-kind-alone]`).
#[test]
fn a_path_begins_where_a_decided_change_of_the_kind_begins() {
    let (world, c) = world_of(&Decider::Members, 3, 6, 1);
    let kind = |of: &Arc<Configuration>, dap| change(of, |wanted| wanted.dap = dap);
    let dies = |after, change: &Change| {
        let gate = Gate::after(after);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        assert_eq!(world.run(until_death(gate, make(client, change))), None);
        world.lose(Message::is_note);
        world.settle();
    };
    // It posts, asks for promises, has it accepted, and announces it.
    dies(4, &kind(&c, Dap::Conditional { k: 1 }));
    let own = change(&c, |wanted| wanted.members.push(server(3)));
    // It looks, looks again, and posts its change behind the pending one.
    let gate = Gate::after(4);
    let late = world.spawn(make(Client::new(GatedEnv::new(world.env(), &gate)), &own));
    while !gate.is_reached() {
        assert!(world.step(), "it stops before it proposes");
    }
    let between = world.run(resume(world.actor(&c).client(), &c));
    let between = between.expect("a quorum is up").expect("it is pending");
    world.settle();
    dies(3, &kind(&between, Dap::Abd));
    gate.open();
    let done = made(ended(&world, &late), "decided with another one");
    assert!(own.is_in(&done) && done.dap() == Dap::Abd, "{done:?}");
    assert_eq!((between.id().index, done.id().index), (1, 2));
    let (_, text) = world.actor(&done).get("k");
    assert_eq!(text.as_deref(), Some("v"));
}

/// A change that is there already is not posted, and one that was made meanwhile is not made again.
#[test]
fn a_change_that_is_there_already_is_not_posted() {
    let (world, c) = world_of(&Decider::Members, 3, 6, 1);
    let same = change(&c, |_| {});
    world.hold(Message::is_posting);
    let done = world.run(make(world.actor(&c).client(), &same));
    assert_eq!(done, Ok(ReconfigOutcome::Unchanged(c.clone())));
    assert_eq!(world.in_flight(Message::is_posting), 0);
    world.release();
    let next = successor(&c, 3, 3, Dap::Abd);
    let done = world.run(reconfigure(world.actor(&c).client(), &c, &next));
    assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
    let late = Change::new(&c, next.descriptor()).expect("a valid change");
    let done = world.run(make(world.actor(&c).client(), &late));
    let done = done.map(ReconfigOutcome::into_configuration);
    assert_eq!(done, Ok(next.clone()), "it is there");
    assert_eq!(last(&world, &c), next);
}
