//! The level of a cluster: `[X-46 cluster-level]`.

use super::cells::record;
use super::reconfiguration::root::move_with_directory;
use crate::world::{Actor, Message, World, configuration, server, successor};
use areo_core::config::{Dap, ServerId};
use areo_core::manager::{Finalization, Registration, merge_record};
use areo_core::message::{Body, Enrolment, Levels, Program, ServerRecord};
use std::collections::BTreeMap;

/// A start of a program that knows this level.
fn start(number: usize, incarnation: u64, level: u32) -> ServerRecord {
    let version = format!("0.{level}.0");
    ServerRecord {
        program: Program { version, level },
        ..record(number, incarnation, 7)
    }
}

fn finalize(world: &World, actor: &Actor) -> Finalization {
    let (client, root) = (actor.client(), actor.c.clone());
    let finalized = world.run(async move { client.root(&root).finalize().await });
    finalized.expect("a quorum answers")
}

fn servers(world: &World, actor: &Actor) -> BTreeMap<ServerId, ServerRecord> {
    let (client, root) = (actor.client(), actor.c.clone());
    let listed = world.run(async move { client.root(&root).servers().await });
    listed.expect("a quorum answers")
}

#[track_caller]
fn assert_behind(outcome: Finalization, numbers: &[usize], was_required: bool) {
    let Finalization::Behind {
        level: 1,
        is_required,
        servers,
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    let ids: Vec<ServerId> = servers.iter().map(|record| record.id).collect();
    let expected: Vec<ServerId> = numbers.iter().map(|number| server(*number)).collect();
    assert_eq!((ids, is_required), (expected, was_required));
}

/// A root domain at three members with servers 0 to 2, of which some know level 1.
fn cluster(levels: [u32; 3]) -> (World, Actor) {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    for (number, level) in levels.into_iter().enumerate() {
        let registered = actor.register(start(number, 1, level));
        assert_eq!(registered, Registration::Registered);
    }
    (world, actor)
}

#[track_caller]
fn assert_refused(world: &World, actor: &Actor, record: ServerRecord) {
    let refused = world.run(actor.registering(record));
    let refused = refused.expect_err("no quorum registers it");
    assert!(refused.is_old_program(), "{refused:?}");
}

#[test]
fn a_level_is_final_once_every_server_knows_it_and_older_programs_do_not_start_then() {
    let (world, actor) = cluster([1, 0, 1]);
    assert_behind(finalize(&world, &actor), &[1], false);
    // Nothing has changed: the way back is open.
    assert_eq!(actor.register(start(0, 2, 0)), Registration::Registered);
    for number in [0, 1] {
        let upgraded = actor.register(start(number, 3, 1));
        assert_eq!(upgraded, Registration::Registered);
    }
    for before in [0, 1] {
        let expected = Finalization::Finalized { level: 1, before };
        assert_eq!(finalize(&world, &actor), expected, "it may be done again");
    }
    // Of a server that was away, of one that runs, and of a new one.
    for (number, incarnation) in [(1, 4), (2, 2), (5, 1)] {
        assert_refused(&world, &actor, start(number, incarnation, 0));
    }
    assert_eq!(actor.register(start(1, 4, 1)), Registration::Registered);
    assert_eq!(actor.register(start(5, 1, 2)), Registration::Registered);
    let outcome = finalize(&world, &actor);
    assert!(matches!(outcome, Finalization::Behind { level: 2, .. }));
}

/// Members come back from their disks, and the root domain moves to others.
#[test]
fn a_level_stays_where_the_root_domain_goes() {
    let (world, actor) = cluster([1, 1, 1]);
    assert!(matches!(
        finalize(&world, &actor),
        Finalization::Finalized { .. }
    ));
    for number in 0..3 {
        world.crash(number);
        world.restart(number, true);
    }
    assert_refused(&world, &actor, start(0, 2, 0));
    let next = successor(&actor.c, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    let late = world.actor(&next);
    assert_refused(&world, &late, start(4, 1, 0));
    assert_eq!(Levels::of(servers(&world, &late).values()).finalized, 1);
}

/// A server starts between the look at all servers and the first mark: the look after it finds that one.
#[test]
fn a_server_that_was_faster_keeps_a_level_from_being_final() {
    for absent in 0..3 {
        let (world, actor) = cluster([1, 1, 1]);
        let (client, root) = (actor.client(), actor.c.clone());
        world.hold(Message::is_hand_on);
        let finalizing = world.spawn(async move { client.root(&root).finalize().await });
        world.settle();
        // Each member in turn does not hear of it.
        world.hold(move |message| message.at(&[absent]));
        assert_eq!(actor.register(start(4, 1, 0)), Registration::Registered);
        world.release();
        let outcome = world.finish(&finalizing);
        assert_behind(outcome.expect("a quorum answers"), &[4], true);
        // Neither is it confirmed again, nor does it start again.
        for incarnation in [1, 2] {
            assert_refused(&world, &actor, start(4, incarnation, 0));
        }
        let levels = Levels::of(servers(&world, &actor).values());
        assert_eq!((levels.required, levels.finalized), (1, 0), "not used");
        assert_eq!(actor.register(start(4, 2, 1)), Registration::Registered);
        let done = Finalization::Finalized {
            level: 1,
            before: 0,
        };
        assert_eq!(finalize(&world, &actor), done);
    }
}

/// A server registers at one member before that has the mark, and would at another one, which never hears of it: the look after the mark
/// counts members alone that have it.
#[test]
fn a_member_without_the_mark_does_not_say_which_servers_there_are() {
    let (world, actor) = cluster([1, 1, 1]);
    let (client, root) = (actor.client(), actor.c.clone());
    world.hold(|message| message.is_registration() && message.at(&[0, 2]));
    let starting = world.spawn(actor.registering(start(4, 1, 0)));
    world.settle();
    world.hold(|message| message.is_hand_on() && message.at(&[0]));
    world.hold(|message| message.asks_for_servers() && message.at(&[1]));
    let finalizing = world.spawn(async move { client.root(&root).finalize().await });
    world.settle();
    // The member that it is registered at, and the one without the mark.
    world.release();
    world.hold(|message| message.is_hand_on() && message.at(&[0]));
    world.settle();
    world.release();
    let outcome = world.finish(&finalizing);
    let registered = world.finish(&starting);
    let is_final = matches!(outcome, Ok(Finalization::Finalized { .. }));
    assert!(
        !is_final || registered.is_err(),
        "{outcome:?}, {registered:?}"
    );
    assert_behind(outcome.expect("a quorum answers"), &[4], true);
}

/// A start that reached one member before the mark is known to the next members of the root domain, because all records move. It is
/// registered at none of them.
#[test]
fn a_start_that_was_handed_on_is_not_registered() {
    let (world, actor) = cluster([1, 1, 1]);
    let (client, root) = (actor.client(), actor.c.clone());
    world.hold(|message| message.is_registration() && message.at(&[1, 2]));
    let starting = world.spawn(actor.registering(start(4, 1, 0)));
    world.settle();
    world.hold(|message| message.at(&[0]));
    let finalized = world.run(async move { client.root(&root).finalize().await });
    let done = Finalization::Finalized {
        level: 1,
        before: 0,
    };
    assert_eq!(finalized, Ok(done));
    drop(starting);
    world.crash(1);
    world.release();
    let next = successor(&actor.c, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    let late = world.actor(&next);
    assert!(servers(&world, &late).contains_key(&server(4)), "it moved");
    assert_refused(&world, &late, start(4, 1, 0));
}

/// A start raises no level, so that no server with a token alone keeps all programs from starting.
#[test]
fn levels_of_a_start_do_not_count() {
    let (world, actor) = cluster([0, 0, 0]);
    let raising = ServerRecord {
        levels: Levels {
            required: 9,
            finalized: 9,
        },
        ..start(4, 1, 9)
    };
    assert_eq!(actor.register(raising), Registration::Registered);
    assert_eq!(actor.register(start(0, 2, 0)), Registration::Registered);
    let levels = Levels::of(servers(&world, &actor).values());
    assert_eq!(levels, Levels::default());
}

/// A server that is forgotten holds no others up, and is forgotten although its program is too old to start.
#[test]
fn forgotten_servers_do_not_count() {
    let (world, actor) = cluster([1, 1, 0]);
    assert_behind(finalize(&world, &actor), &[2], false);
    let forget = |record: ServerRecord| {
        let (client, root) = (actor.client(), actor.c.clone());
        let forgotten = world.run(async move { client.root(&root).forget(&record).await });
        assert_eq!(forgotten, Ok(()));
    };
    forget(start(2, 1, 0));
    let done = Finalization::Finalized {
        level: 1,
        before: 0,
    };
    assert_eq!(finalize(&world, &actor), done);
    forget(start(5, 1, 0));
    assert!(servers(&world, &actor)[&server(5)].is_forgotten());
}

/// The register keeps one record for an address of servers in memory, and the levels of the record that it replaces.
#[test]
fn a_server_in_memory_that_is_replaced_leaves_the_levels() {
    let in_memory = |number: usize, generation, required| ServerRecord {
        generation: Some(generation),
        levels: Levels {
            required,
            finalized: 0,
        },
        ..ServerRecord::at_address(server(number), "host:1".into())
    };
    for order in [[0, 1], [1, 0]] {
        let records = [in_memory(9, 1, 3), in_memory(4, 2, 0)];
        let (world, actor) = cluster([3, 3, 3]);
        let mut known = BTreeMap::new();
        for at in order {
            merge_record(&mut known, records[at].clone());
            for member in 0..3 {
                let record = Box::new(records[at].clone());
                let step = Enrolment::HandOn;
                let known = world.ask_configured(member, Body::Register { step, record });
                known.expect("it is up");
            }
        }
        assert_eq!(Levels::of(known.values()).required, 3, "{order:?}");
        let kept = servers(&world, &actor);
        assert_eq!(kept.len(), 4, "one of the two");
        assert_eq!(Levels::of(kept.values()).required, 3, "{order:?}");
    }
}
