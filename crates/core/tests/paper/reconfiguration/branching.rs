//! DynaStore (`docs/spec` 6.6): successors of which neither precedes the other, and what becomes of them.

use super::gate::{Gate, GatedEnv};
use super::merging::{LATE, ORDER, changed, contains, first, installed, membership};
use super::{reconfigure, resume};
use crate::world::{Content, Message, World, server};
use areo_core::config::{Configuration, Decider};
use areo_core::consensus::snapshot::FIRST_CELL;
use areo_core::dsm::Client;
use areo_core::message::{Body, Request};
use areo_core::object::Name;
use areo_core::pointer::{Pointer, Successors};
use areo_core::reconfig::sequence;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use areo_core::server::record::Header;
use std::sync::Arc;

/// Seven servers, of which the first four are members, and what they hold.
fn begun(seed: u64) -> (World, Arc<Configuration>) {
    let c = first(Decider::Snapshot, 4);
    let world = World::of(&c, 7, seed);
    world.actor(&c).put("k", "v");
    world.settle();
    (world, c)
}

/// A quorum knows the successor from now on.
fn announce(world: &World, c: &Arc<Configuration>, next: &Arc<Configuration>) {
    let (env, c, pointer) = (world.env(), c.clone(), Pointer::pending(next));
    let put = world.run(async move { sequence::put_config(&env, &c, &pointer).await });
    put.expect("a quorum answers");
    world.settle();
}

/// The pending successors of a configuration that a server has on disk.
fn recorded(world: &World, number: usize, c: &Arc<Configuration>) -> Vec<Arc<Configuration>> {
    world.disk(number, |disk| {
        let pointers = disk.headers().filter_map(|header| match header {
            Header::Pointer { key, pointer } if *key == c.id() && !pointer.is_final() => {
                Some(pointer.configuration.clone())
            }
            _ => None,
        });
        pointers.collect()
    })
}

fn joined(one: &Configuration, other: &Configuration) -> Arc<Configuration> {
    changed(one, |it| it.join(membership(other)))
}

/// A client finds the last put value from every configuration.
fn assert_kept(world: &World, starts: &[&Arc<Configuration>], expected: &str) {
    for start in starts {
        let (_, text) = world.actor(start).get("k");
        assert_eq!(text.as_deref(), Some(expected), "{start:?}");
    }
    world.assert_one_chain();
}

/// Both have one index.
#[test]
fn a_server_keeps_successors_beside_each_other() {
    let (world, c) = begun(1);
    let next = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
    for next in &next {
        announce(&world, &c, next);
    }
    world.crash(0);
    world.restart(0, false);
    let mut known = recorded(&world, 0, &c);
    known.sort_by_key(|c| c.id());
    let mut expected = next.to_vec();
    expected.sort_by_key(|c| c.id());
    assert_eq!(known, expected);
    let shown = world.ask(0, asked(&c, Successors::default()));
    let (shown, _) = shown.expect("it serves").open();
    let shown = shown.iter().map(|it| it.configuration.clone());
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// Asks for successors, and brings some.
fn asked(c: &Arc<Configuration>, successors: Successors) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors,
        body: Body::ReadConfig,
    }
}

/// `[R-30 walks-join]`: operations go along both successors, and end at the join of the two, which they make known on their way.
#[test]
fn operations_end_where_successors_come_together() {
    let (world, c) = begun(1);
    let [a, b] = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
    announce(&world, &c, &a);
    announce(&world, &c, &b);
    world.actor(&c).put("k", "w");
    let both = joined(&a, &b);
    for beside in [&a, &b] {
        let is_known = |number: &usize| recorded(&world, *number, beside).contains(&both);
        let knowing = (0..world.servers()).filter(is_known).count();
        assert!(
            knowing >= beside.quorums().quorum(),
            "{beside:?}: {knowing}"
        );
    }
    assert_kept(&world, &[&c, &a, &b, &both], "w");
    let done = world.run(resume(world.actor(&c).client(), &c));
    assert_eq!(done, Ok(Some(both.clone())));
    world.settle();
    assert_kept(&world, &[&c, &a, &b, &both], "w");
    for old in [&c, &a, &b] {
        let left = (0..world.servers()).any(|number| !recorded(&world, number, old).is_empty());
        assert!(!left, "{old:?} is collected");
    }
}

/// The graph that users see of two sibling successors and their join. Looking at the graph makes the join known.
#[test]
fn the_graph_of_configurations_is_what_members_know() {
    let (world, c) = begun(1);
    let mut beside = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
    for next in &beside {
        announce(&world, &c, next);
    }
    beside.sort_by_key(|c| c.id());
    let (actor, known) = (world.actor(&c), c.clone());
    let graph = world.run(async move { actor.client().domain(&known).graph().await });
    let graph = graph.expect("a quorum answers");
    let nodes: Vec<_> = graph
        .iter()
        .map(|node| node.configuration.clone())
        .collect();
    let [a, b] = &beside;
    assert_eq!(nodes, [c, a.clone(), b.clone(), joined(a, b)]);
    let successors: Vec<_> = graph.iter().map(|node| node.successors.clone()).collect();
    assert_eq!(successors, [vec![1, 2], vec![3], vec![3], vec![]]);
}

/// A configuration becomes final that its reconfigurer found alone, while another one is beside it. A write is stopped before each
/// of its calls meanwhile, so that it also comes to what is superseded by then.
#[test]
fn what_is_beside_a_final_configuration_is_superseded() {
    for limit in 0.. {
        let (world, c) = begun(1);
        let final_one = changed(&c, |it| it.with(server(4)).with(server(5)));
        let beside = changed(&c, |it| it.with(server(6)));
        // It plans, looks, asks one member, announces, and goes along the path again.
        let gate = Gate::after(6);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let late = world.spawn(reconfigure(client, &c, &final_one));
        while !gate.is_reached() {
            assert!(world.step(), "it has more calls");
        }
        announce(&world, &c, &beside);
        let writing = Gate::after(limit);
        let client = Client::new(GatedEnv::new(world.env(), &writing));
        let (domain, value) = (client.domain(&c), crate::world::value("w"));
        let name = Name::user("k").expect("a short key");
        let written = world.spawn(async move { domain.write(&name, &value).await });
        while written.borrow().is_none() && !writing.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
        let stopped = writing.is_reached();
        gate.open();
        let done = world.finish(&late);
        assert_eq!(done, Ok(ReconfigOutcome::Installed(final_one.clone())));
        world.settle();
        writing.open();
        assert!(
            world.finish(&written).is_ok(),
            "stopped before call {limit}"
        );
        assert_kept(&world, &[&c, &final_one], "w");
        let last = world.run(reconfigure(world.actor(&c).client(), &c, &beside));
        let last = installed(last, "it is made after all");
        assert!(contains(&last, &final_one) && contains(&last, &beside));
        assert_kept(&world, &[&c, &final_one, &last], "w");
        if !stopped {
            assert!(limit > 6, "{limit}: it went along all of them");
            break;
        }
    }
}

/// `[R-29 filled-up]`: two changes leave too few together, and neither can be refused any more. One that went stays until others
/// come.
#[test]
fn a_configuration_is_filled_up_with_those_that_went() {
    let (world, c) = begun(1);
    for gone in [0, 1] {
        announce(&world, &c, &changed(&c, |it| it.without(server(gone))));
    }
    world.actor(&c).put("k", "w");
    let done = world.run(resume(world.actor(&c).client(), &c));
    let Ok(Some(last)) = done else {
        panic!("{done:?}")
    };
    assert_eq!(last.members()[..], [0, 2, 3].map(server));
    let change =
        |next: Arc<Configuration>| world.run(reconfigure(world.actor(&c).client(), &c, &next));
    let refused = change(changed(&last, |it| it.without(server(2))));
    let (members, least) = (1, 2);
    assert_eq!(refused, Err(ReconfigError::TooFew { members, least }));
    let more = installed(change(changed(&last, |it| it.with(server(5)))), "one comes");
    assert_eq!(more.members()[..], [2, 3, 5].map(server));
    assert_kept(&world, &[&c, &last, &more], "w");
}

/// The member that all ask first is dead: two reconfigurers may announce two successors. T18 of `docs/spec` section 8.
#[test]
fn changes_are_made_where_the_member_that_is_asked_first_is_dead() {
    const SEEDS: u64 = 60;
    let mut beside = 0;
    for seed in 0..SEEDS {
        let (world, c) = begun(seed);
        world.random(LATE);
        world.crash(0);
        let changes = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
        let start = |next| world.spawn(reconfigure(world.actor(&c).client(), &c, next));
        let started: Vec<_> = changes.iter().map(start).collect();
        let mut several = false;
        while started.iter().any(|ended| ended.borrow().is_none()) {
            assert!(world.step(), "seed {seed}: they end");
            several |= (0..4).any(|number| recorded(&world, number, &c).len() > 1);
        }
        for (ended, change) in started.iter().zip(&changes) {
            let last = installed(world.finish(ended), "with a quorum");
            assert!(contains(&last, change), "seed {seed}");
        }
        assert_kept(&world, &[&c], "v");
        beside += u64::from(several);
    }
    assert!(0 < beside && beside < SEEDS, "{beside}");
}

/// The next reconfigurer announces a change of a dead one that only the member which it asks first knows, and no
/// other change.
#[test]
fn what_one_member_knows_is_announced() {
    for seed in 0..20 {
        let (world, c) = begun(seed);
        let [left, own] = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
        let known = asked(&c, Successors::from(&Pointer::pending(&left)));
        world.ask(0, known).expect("it serves");
        world.random(ORDER);
        let done = world.spawn(reconfigure(world.actor(&c).client(), &c, &own));
        while done.borrow().is_none() {
            assert!(world.step(), "seed {seed}: it ends");
            let several = (0..4).any(|number| recorded(&world, number, &c).len() > 1);
            assert!(!several, "seed {seed}: it has one successor");
        }
        let last = installed(world.finish(&done), "nothing is in its way");
        assert!(
            contains(&last, &left) && contains(&last, &own),
            "seed {seed}"
        );
        assert_kept(&world, &[&c], "v");
    }
}

/// Undisturbed a successor takes three rounds, the first of which is one request and its answer, and the last of which also looks for
/// what others announced.
#[test]
fn a_change_alone_takes_three_rounds() {
    let mut last = first(Decider::Snapshot, 4);
    let world = World::of(&last, 5, 1);
    let actor = world.actor(&last);
    let is_first = |message: &Message| {
        let asks = |request: &Request| matches!(request, Request::Configured { body: Body::Cell { cell, .. }, .. } if cell == FIRST_CELL);
        matches!(&message.content, Content::Request(_, request) if asks(request))
    };
    for number in 0..4 {
        let next = changed(&last, |it| match number % 2 {
            0 => it.with(server(4)),
            _ => it.without(server(4)),
        });
        let before = world.gathers();
        let done = world.spawn(reconfigure(actor.client(), &last, &next));
        // It plans, and looks.
        while world.gathers() < before + 3 {
            assert!(world.step(), "it goes on");
        }
        assert_eq!(world.in_flight(is_first), 1, "one member is asked");
        last = installed(world.finish(&done), "nothing is in its way");
        // As L-Rambo, which the owner of ballot 0 leads: two rounds, and the last one is that which looks again.
        assert_eq!(world.gathers() - before, 15);
        world.settle();
    }
}
