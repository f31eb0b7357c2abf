//! Servers in memory: each start is another server, which takes the place of the one before it in the register
//! (`[X-12 memory-identity]`, `[X-28 memory-replaced]`).

use crate::paper::cells::record;
use crate::paper::reconfiguration::root::move_with_directory;
use crate::world::{Actor, World, configuration, server, successor};
use areo_core::config::{Dap, ServerId};
use areo_core::limits;
use areo_core::manager::{Naming, Registration, StartOutcome};
use areo_core::message::{Enrolment, Refusal, Request, ServerRecord};
use areo_core::server::record::Header;
use areo_core::starts::{StartPhase, Starts};
use std::collections::BTreeMap;
use std::convert::Infallible;

const ADDRESS: &str = "host:1";

/// The record of a process that starts at the address, as a server that was never there.
fn drawn(id: ServerId, address: &str) -> ServerRecord {
    ServerRecord {
        generation: Some(0),
        ..ServerRecord::at_address(id, address.into())
    }
}

/// A process starts at the address.
fn start(world: &World, actor: &Actor, id: ServerId) -> Registration {
    start_as(world, actor, drawn(id, ADDRESS))
}

fn start_as(world: &World, actor: &Actor, record: ServerRecord) -> Registration {
    let (client, root) = (actor.client(), actor.c.clone());
    let started = async move {
        let mut starting = StartPhase::new(Starts::NONE);
        let write = |_| Ok::<(), Infallible>(());
        client
            .root(&root)
            .start(&mut starting, &record, write, async |_| false)
            .await
    };
    match world.run(started).expect("a quorum answers") {
        StartOutcome::Confirmed(_) => Registration::Registered,
        StartOutcome::Outdated { registered } => Registration::Outdated { registered },
        other => unreachable!("it keeps no log: {other:?}"),
    }
}

fn servers(world: &World, actor: &Actor) -> BTreeMap<ServerId, ServerRecord> {
    let (client, root) = (actor.client(), actor.c.clone());
    let listed = async move { client.root(&root).servers().await };
    world.run(listed).expect("a quorum answers")
}

#[test]
fn a_server_in_memory_can_be_restarted_more_often_than_a_register_has_entries() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    let actor = world.actor(&root);
    for restart in 0..limits::REGISTERED_SERVERS + 10 {
        // Descending, as random ids may be.
        let id = server(20_000 - restart);
        assert_eq!(
            start(&world, &actor, id),
            Registration::Registered,
            "{restart}"
        );
    }
    let known = servers(&world, &actor);
    let generations: Vec<_> = known.values().map(|record| record.generation).collect();
    assert_eq!(generations, [Some(limits::REGISTERED_SERVERS as u64 + 9)]);
}

/// Each restart had a name decided: a cell that the members of the root domain kept for ever.
#[test]
fn restarts_of_a_server_in_memory_leave_one_name() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    let actor = world.actor(&root);
    let name = |record: &ServerRecord, wanted| {
        let (client, root, record) = (actor.client(), actor.c.clone(), record.clone());
        let named = async move { client.root(&root).name_server(&record, wanted).await };
        world.run(named).expect("a quorum answers")
    };
    let named = |name: &str| Naming::Named(name.into());
    for restart in 0..100 {
        for (address, expected) in [(ADDRESS, "s4"), ("host:2", "s5")] {
            let number = 20_000 - 2 * restart - usize::from(address == ADDRESS);
            let record = drawn(server(number), address);
            // Also if it asks for the name that the one before it had.
            let wanted = (restart % 3 == 2).then_some(expected);
            assert_eq!(name(&record, wanted), named(expected), "{restart}");
            let name = expected.to_owned();
            let started = start_as(&world, &actor, ServerRecord { name, ..record });
            assert_eq!(started, Registration::Registered);
        }
    }
    world.settle();
    for member in 0..3 {
        let cells = world.disk(member, |disk| {
            let is_name = |it: &&Header| matches!(it, Header::Cell { cell, .. } if cell.starts_with(b"server/"));
            disk.headers().filter(is_name).count()
        });
        assert!(cells <= 2, "{cells} names at member {member}");
    }
    // Elsewhere its name is taken, also by a server with a directory.
    let last = servers(&world, &actor);
    let by = |name: &str| {
        let mut ids = last.values().filter(|it| it.name == name).map(|it| it.id);
        Naming::Taken {
            by: ids.next().expect("it is registered"),
        }
    };
    assert_eq!(name(&drawn(server(7), "host:3"), Some("s4")), by("s4"));
    assert_eq!(name(&drawn(server(7), ADDRESS), Some("s5")), by("s5"));
    let durable = ServerRecord::at_address(server(8), ADDRESS.into());
    assert_eq!(name(&durable, Some("s4")), by("s4"));
    assert_eq!(name(&durable, None), named("s6"));
}

#[test]
fn a_server_in_memory_replaces_one_that_a_minority_knows() {
    for absent in 0..3 {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&root, 1);
        let actor = world.actor(&root);
        // The process ended while it registered: with a generation as large as any that a quorum has not heard of.
        world.hold(move |m| m.at(&[0, 1, 2].map(|it| (it + absent) % 3)[..2]));
        let unfinished = ServerRecord {
            address: ADDRESS.into(),
            generation: Some(3),
            ..record(30_000, 1, 7)
        };
        let (client, c) = (actor.client(), root.clone());
        drop(world.spawn(async move {
            let step = Enrolment::Register;
            client.root(&c).register(step, &unfinished).await
        }));
        world.settle();
        world.release();
        let id = server(40);
        assert_eq!(start(&world, &actor, id), Registration::Registered);
        world.settle();
        let known = servers(&world, &actor);
        assert_eq!(known.keys().copied().collect::<Vec<_>>(), [id], "{absent}");
    }
}

#[test]
fn the_register_of_a_new_root_configuration_has_the_last_server_of_each_address() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 10, 1);
    let actor = world.actor(&root);
    let durable = ServerRecord {
        address: ADDRESS.into(),
        ..record(6, 2, 7)
    };
    let (client, c, own) = (actor.client(), root.clone(), durable.clone());
    let registered = world.run(async move {
        let step = Enrolment::Register;
        client.root(&c).register(step, &own).await
    });
    assert_eq!(registered, Ok(Registration::Registered));
    for number in [9, 8] {
        assert_eq!(
            start(&world, &actor, server(number)),
            Registration::Registered
        );
    }
    move_with_directory(&world, &actor, &successor(&root, 3, 3, Dap::Abd));
    world.settle();
    let known = servers(&world, &actor);
    assert_eq!(
        known.keys().copied().collect::<Vec<_>>(),
        [server(6), server(8)]
    );
    assert_eq!(known[&server(6)], durable);
    assert_eq!(
        start(&world, &actor, server(7)),
        Registration::Registered,
        "in the new configuration"
    );
    assert_eq!(
        servers(&world, &actor)[&server(7)].generation,
        Some(2),
        "after those of the old one"
    );
}

#[test]
fn a_full_register_is_named_once_no_quorum_has_room() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    let actor = world.actor(&root);
    let attempt = |number: usize| {
        let (client, c) = (actor.client(), root.clone());
        let another = record(number, 1, 7);
        let step = Enrolment::Register;
        world.run(async move { client.root(&c).register(step, &another).await })
    };
    for member in 0..3 {
        let known = (20_000..).map(|number| Request::Know(record(number, 1, 7)));
        let replies = known.map(|request| world.ask(member, request));
        let mut refused = replies.filter_map(Result::err);
        assert_eq!(refused.next(), Some(Refusal::RegisterFull));
        let has_quorum = member < 1;
        assert_eq!(attempt(10_000 + member).is_ok(), has_quorum, "{member}");
    }
    let unavailable = attempt(10_010).expect_err("no member has room");
    assert!(unavailable.is_register_full(), "{unavailable:?}");
    world.crash(0);
    world.crash(1);
    let unavailable = attempt(10_010).expect_err("no quorum");
    assert!(!unavailable.is_register_full(), "members may come back");
}
