//! The root domain is reconfigured like any other: names of domains, where these are, and the register of servers move with
//! it (`docs/spec` 3.6, `[X-11 damage-abstains]`, `[X-20 decided-once]`, `[X-21 directory-join]`).

use crate::paper::cells::record;
use crate::world::{Actor, World, configuration, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::manager::{Creation, Registration};
use areo_core::message::{Body, Enrolment, Refusal, Reply, Request, ServerRecord};
use areo_core::object::DomainId;
use areo_core::pointer::{Pointer, Successors};
use areo_core::reconfig::ReconfigOutcome;
use areo_core::reconfig::change::Change;
use areo_core::server::record::Header;
use areo_core::timing;
use std::sync::Arc;
use std::time::Duration;

fn create(world: &World, actor: &Actor, name: &'static str, domain: u128) -> Creation {
    let (client, root) = (actor.client(), actor.c.clone());
    let first = Configuration::new(Descriptor {
        domain: DomainId(domain),
        index: 0,
        ..root.descriptor().clone()
    });
    let first = first.expect("it differs in its domain only");
    let created = async move { client.root(&root).create_domain(name, &first).await };
    world.run(created).expect("a quorum is up")
}

#[test]
fn names_and_servers_move_with_the_root_domain() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    for number in 0..6 {
        assert_eq!(
            actor.register(record(number, 2, 7)),
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
    // A new client finds the root domain through any server that is left.
    let found = root_known_to(&world, 3);
    let late = world.actor(&found);
    let (client, c) = (late.client(), found.clone());
    let servers = world.run(async move { client.root(&c).servers().await });
    assert_eq!(servers.expect("a quorum is up").len(), 6);
    assert!(
        matches!(create(&world, &late, "photos", 12), Creation::Exists(c) if c.id().domain == DomainId(11))
    );
    // An older state than what the old members had registered.
    assert_eq!(
        late.register(record(1, 2, 8)),
        Registration::Outdated { registered: 2 }
    );
    assert_eq!(late.register(record(1, 3, 8)), Registration::Registered);
}

/// No later start of it is registered, wherever the root domain has gone (`[X-27 forgotten-server]`).
#[test]
fn a_forgotten_server_stays_forgotten_when_the_root_domain_moves() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    for number in 0..6 {
        let registered = actor.register(record(number, 2, 7));
        assert_eq!(registered, Registration::Registered);
    }
    let (client, c) = (actor.client(), root.clone());
    let forgotten = async move { client.root(&c).forget(&record(1, 2, 7)).await };
    world.run(forgotten).expect("a quorum is up");
    let next = successor(&root, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    let late = world.actor(&root_known_to(&world, 3));
    let returned = late.register(record(1, 3, 8));
    assert!(
        matches!(returned, Registration::Outdated { .. }),
        "{returned:?}"
    );
}

/// Reconfigures the domain of `from`, and tells the directory.
pub fn move_with_directory(world: &World, from: &Actor, next: &Arc<Configuration>) {
    let (client, root, wanted) = (from.client(), from.c.clone(), next.clone());
    let done = world.run(async move {
        let change = Change::new(&root, wanted.descriptor()).expect("a valid change");
        let domain = client.domain(&root);
        domain
            .reconfigure(&root, &change, &async |_: &_| true, &|_| {})
            .await
    });
    assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
}

/// A client that has seen the root domain move looks domains up by the members that it has now: the first ones may be gone for good.
#[test]
fn a_client_looks_domains_up_though_the_first_members_of_the_root_domain_are_gone() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    assert_eq!(create(&world, &actor, "photos", 11), Creation::Created);
    move_with_directory(&world, &actor, &successor(&root, 3, 3, Dap::Abd));
    world.settle();
    for number in 0..3 {
        world.crash(number);
    }
    let client = actor.client();
    let found = world.run(async move { client.root(&root).find_domain("photos").await });
    let found = found.expect("a quorum of its members is up");
    assert!(found.is_some_and(|it| it.id().domain == DomainId(11)));
}

/// There is no server to tell where the root domain is now: clients find out by its members.
#[test]
fn a_root_domain_moves_though_no_server_is_registered() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    move_with_directory(&world, &actor, &successor(&root, 3, 3, Dap::Abd));
    let (client, c) = (actor.client(), root);
    let servers = world.run(async move { client.root(&c).servers().await });
    assert_eq!(servers.expect("a quorum is up").len(), 0);
}

/// The server's first answer about the root domain.
fn root_known_to(world: &World, number: usize) -> Arc<Configuration> {
    match world.ask(number, Request::Directory) {
        Ok(Reply::Directory(directory)) => directory.root,
        other => panic!("{other:?} is no directory"),
    }
}

/// The directory knows the reconfiguration of another domain: a client that looks the domain up starts at its last
/// configuration.
#[test]
fn the_directory_says_where_a_domain_is() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let actor = world.actor(&root);
    assert_eq!(create(&world, &actor, "photos", 11), Creation::Created);
    let find = |actor: &Actor| {
        let (client, root) = (actor.client(), actor.c.clone());
        let found = async move { client.root(&root).find_domain("photos").await };
        world.run(found).expect("a quorum").expect("it exists")
    };
    let first: Arc<Configuration> = find(&actor);
    let next = successor(&first, 3, 3, Dap::Abd);
    let (client, root_of, from, wanted) = (actor.client(), root, first, next.clone());
    let done = world.run(async move {
        let change = Change::new(&from, wanted.descriptor()).expect("a valid change");
        let domain = client.domain(&from);
        domain
            .reconfigure(&root_of, &change, &async |_: &_| true, &|_| {})
            .await
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
        successors: (&Pointer::pending(&next)).into(),
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
            world.actor(&root).register(record(number, 2, 7)),
            Registration::Registered
        );
    }
}

/// Decision record 0002: server 1 missed the last registration of server 0, whose disk is then put back. Its own vote and that of
/// server 1 are a quorum. Server 2 knows better, and answers late, but within the patience.
#[test]
fn a_rolled_back_root_member_is_refused_while_one_that_knows_better_may_answer() {
    for late in [Duration::ZERO, timing::REGISTRATION_PATIENCE * 9 / 10] {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&root, 1);
        let actor = world.actor(&root);
        world.hold(|message| message.at(&[1]));
        assert_eq!(
            actor.register(record(0, 2, 7)),
            Registration::Registered,
            "a member that is silent for the patience holds nothing up"
        );
        world.lose(|message| message.at(&[1]));
        world.release();
        world.crash(0);
        world.disk(0, |disk| {
            disk.lose(|header| matches!(header, Header::Registry(_)));
        });
        world.restart(0, false);
        // From the directory of its first start.
        world.hold(|message| message.at(&[2]));
        let (client, c, copy) = (actor.client(), root.clone(), record(0, 1, 5));
        let registered =
            world.spawn(async move { client.root(&c).register(Enrolment::Register, &copy).await });
        world.settle();
        world.pass(late);
        assert!(registered.borrow().is_none(), "one member may still speak");
        world.release();
        world.settle();
        let registered = registered.borrow_mut().take();
        assert_eq!(
            registered,
            Some(Ok(Registration::Outdated { registered: 2 }))
        );
    }
}

/// A server that may turn out to run on a copy counts in no quorum but those of registrations, which wait for the others.
#[test]
fn a_server_whose_start_is_not_confirmed_answers_registrations_and_nothing_else_of_the_root() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    let next = successor(&root, 3, 3, Dap::Abd);
    world.crash(0);
    world.start_unconfirmed(0);
    let ask = |pointer: Option<Pointer>, body| {
        let request = Request::Configured {
            configuration: root.id(),
            descriptor: Some(root.clone()),
            successors: pointer.into(),
            body,
        };
        world.ask(0, request)
    };
    let id = root.id();
    let latest = |known| Request::Latest {
        domain: id.domain,
        partition: id.partition,
        known,
    };
    let starting = Err(Refusal::Starting);
    assert_eq!(
        ask(Some(Pointer::pending(&next)), Body::ReadConfig),
        starting
    );
    assert_eq!(ask(None, Body::Servers), starting);
    let enrol = |step| Body::Register {
        step,
        record: Box::new(record(1, 2, 7)),
    };
    assert_eq!(ask(None, enrol(Enrolment::HandOn)), starting);
    assert_eq!(world.ask(0, latest(Some(next.clone()))), starting);
    assert_eq!(world.ask(0, latest(None)), starting);
    assert_eq!(ask(None, enrol(Enrolment::Ask)), Ok(Reply::Registered));
    // It says where the root domain goes on, and takes note of it.
    let told = ask(Some(Pointer::pending(&next)), enrol(Enrolment::Register));
    let (shown, reply) = told.expect("that is a registration").open();
    assert_eq!(shown, Successors::from(&Pointer::pending(&next)));
    assert_eq!(reply, Some(Reply::Registered));
}

/// Decision record 0017: what one process began, another one of the directory resumes, after a crash; the one that began it is
/// refused if it runs all the same, because one of the two has a copy.
#[test]
fn who_began_a_start_is_refused_once_another_process_has_resumed_it() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    let actor = world.actor(&root);
    let begun = record(0, 2, 7);
    let resumed = ServerRecord {
        resumed: true,
        ..begun.clone()
    };
    assert_eq!(actor.register(begun.clone()), Registration::Registered);
    for _ in 0..2 {
        assert_eq!(actor.register(resumed.clone()), Registration::Registered);
    }
    let outdated = Registration::Outdated { registered: 2 };
    assert_eq!(actor.register(begun.clone()), outdated);
    for number in 0..3 {
        world.crash(number);
        world.restart(number, true);
    }
    assert_eq!(actor.register(begun), outdated, "also after a restart");
    assert_eq!(actor.register(record(0, 3, 8)), Registration::Registered);
}

/// Two numbers of one incarnation, of two processes on copies, meet when the root domain moves: neither is admitted there, and
/// the next incarnation is.
#[test]
fn two_starts_of_one_incarnation_are_both_refused_once_they_have_met() {
    let (one, other) = (record(0, 2, 7), record(0, 2, 8));
    for (first, second) in [(&one, &other), (&other, &one)] {
        let mut joined = first.clone();
        joined.join(second.clone());
        assert_eq!(joined.start, ServerRecord::CONTESTED);
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&root, 1);
        let actor = world.actor(&root);
        for number in 0..3 {
            let known = world.ask(number, Request::Know(first.clone()));
            assert_eq!(known, Ok(Reply::Registered));
            let known = world.ask(number, Request::Know(second.clone()));
            assert_eq!(known, Ok(Reply::Registered));
            world.crash(number);
            world.restart(number, true);
        }
        let outdated = Registration::Outdated { registered: 2 };
        assert_eq!(actor.register(one.clone()), outdated);
        assert_eq!(actor.register(other.clone()), outdated);
        assert_eq!(actor.register(record(0, 3, 9)), Registration::Registered);
    }
}
