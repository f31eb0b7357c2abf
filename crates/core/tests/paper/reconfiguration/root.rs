//! The root domain is reconfigured like any other: names of domains, where these are, and the register of servers move with
//! it (`algorithms.md` 3.6, `[X-11]`, `[X-20]`, `[X-21]`).

use crate::paper::cells::record;
use crate::world::{Actor, World, configuration, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::manager::{self, Creation, Registration, reconfiguration};
use areo_core::message::{Body, Reply, Request, ServerRecord};
use areo_core::object::DomainId;
use areo_core::pointer::Pointer;
use areo_core::reconfig::ares::Reconfigured;
use std::sync::Arc;

fn register(world: &World, actor: &Actor, record: ServerRecord) -> Registration {
    let (client, root) = (actor.client(), actor.c.clone());
    let registered = async move { manager::register(&client, &root, record).await };
    world.run(registered).expect("a quorum is up")
}

fn create(world: &World, actor: &Actor, name: &'static str, domain: u128) -> Creation {
    let (client, root) = (actor.client(), actor.c.clone());
    let first = Configuration::new(Descriptor {
        domain: DomainId(domain),
        index: 0,
        ..root.descriptor().clone()
    });
    let first = first.expect("it differs in its domain only");
    let created = async move { manager::create_domain(&client, &root, name, &first).await };
    world.run(created).expect("a quorum is up")
}

#[test]
fn names_and_servers_move_with_the_root_domain() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    for number in 0..6 {
        assert_eq!(
            register(&world, &actor, record(number, 2, 7)),
            Registration::Registered
        );
    }
    assert_eq!(create(&world, &actor, "photos", 11), Creation::Created);
    let next = successor(&root, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    for number in 0..3 {
        world.crash(number);
    }
    // Whoever comes now finds the root domain through any server that is left.
    let found = root_known_to(&world, 3);
    let late = world.actor(&found);
    let (client, c) = (late.client(), found.clone());
    let servers = world.run(async move { manager::servers(&client, &c).await });
    assert_eq!(servers.expect("a quorum is up").len(), 6);
    assert!(
        matches!(create(&world, &late, "photos", 12), Creation::Exists(c) if c.id().domain == DomainId(11))
    );
    // An older state than what the old members had registered.
    assert_eq!(
        register(&world, &late, record(1, 2, 8)),
        Registration::Outdated { registered: 2 }
    );
    assert_eq!(
        register(&world, &late, record(1, 3, 8)),
        Registration::Registered
    );
}

/// Reconfigures the domain of `from`, and tells the directory.
fn move_with_directory(world: &World, from: &Actor, next: &Arc<Configuration>) {
    let (client, root, wanted) = (from.client(), from.c.clone(), next.clone());
    let done = world.run(async move {
        let wanted = wanted.descriptor();
        reconfiguration::reconfigure(&client, &root, &root, wanted, &|_| {}).await
    });
    assert_eq!(done, Ok(Reconfigured::Installed(next.clone())));
}

/// What a server says of the root domain to whoever asks it first.
fn root_known_to(world: &World, number: usize) -> Arc<Configuration> {
    match world.ask(number, Request::Directory) {
        Ok(Reply::Directory(directory)) => directory.root,
        other => panic!("{other:?} is no directory"),
    }
}

/// Another domain's reconfiguration is known to the directory: who looks the domain up starts at its last configuration.
#[test]
fn the_directory_says_where_a_domain_is() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    assert_eq!(create(&world, &actor, "photos", 11), Creation::Created);
    let find = |actor: &Actor| {
        let (client, root) = (actor.client(), actor.c.clone());
        let found = async move { manager::find_domain(&client, &root, "photos").await };
        world.run(found).expect("a quorum").expect("it exists")
    };
    let first: Arc<Configuration> = find(&actor);
    let next = successor(&first, 3, 3, Dap::Abd);
    let (client, root_of, from, wanted) = (actor.client(), root, first, next.clone());
    let done = world.run(async move {
        let wanted = wanted.descriptor();
        reconfiguration::reconfigure(&client, &root_of, &from, wanted, &|_| {}).await
    });
    done.expect("quorums are up");
    assert_eq!(find(&world.actor(&actor.c)), next);
}

/// The power goes everywhere when a first member of the root domain knows where that is going to: its servers still confirm
/// each other, although that has to be made known to a quorum first, of servers of which none serves.
#[test]
fn servers_start_together_while_the_root_domain_moves() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let next = successor(&root, 3, 3, Dap::Abd);
    let announced = Request::Configured {
        configuration: root.id(),
        descriptor: Some(root.clone()),
        pointer: Some(Pointer::pending(&next)),
        body: Body::ReadConfig,
    };
    world.ask(0, announced).expect("it serves");
    for number in 0..6 {
        world.crash(number);
        world.start_unconfirmed(number);
    }
    // Whichever quorum answers: one that knows, one that does not.
    for number in 0..6 {
        assert_eq!(
            register(&world, &world.actor(&root), record(number, 2, 7)),
            Registration::Registered
        );
    }
}
