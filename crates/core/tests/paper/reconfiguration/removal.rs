//! A domain is removed by a last configuration that keeps nothing; its name may be used again.

use crate::paper::cells::record;
use crate::world::{self, World, configuration, successor, text};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::dsm::Client;
use areo_core::error::Response;
use areo_core::manager::{Creation, Registration, Removal, RemovalError};
use areo_core::message::{Refusal, Reply, Request};
use areo_core::object::DomainId;
use areo_core::reconfig::ReconfigError;
use std::sync::Arc;

fn first(root: &Configuration, domain: u128) -> Arc<Configuration> {
    let first = Descriptor {
        domain: DomainId(domain),
        ..root.descriptor().clone()
    };
    Configuration::new(first).expect("it differs in its domain only")
}

fn create(world: &World, root: &Arc<Configuration>, domain: u128) -> Creation {
    create_as(world, root, first(root, domain))
}

fn create_as(world: &World, root: &Arc<Configuration>, first: Arc<Configuration>) -> Creation {
    let (client, root) = (Client::new(world.env()), root.clone());
    let created = async move { client.root(&root).create_domain("photos", &first).await };
    world.run(created).expect("a quorum is up")
}

fn remove(world: &World, root: &Arc<Configuration>) -> Result<Removal, RemovalError> {
    let (client, root) = (Client::new(world.env()), root.clone());
    world.run(async move { client.root(&root).remove_domain("photos").await })
}

fn names(world: &World, root: &Arc<Configuration>) -> Vec<String> {
    let (client, root) = (Client::new(world.env()), root.clone());
    let domains = world.run(async move { client.root(&root).domains().await });
    let domains = domains.expect("a quorum is up");
    domains.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_removed_domain_is_gone_and_its_name_free() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    assert_eq!(create(&world, &root, 11), Creation::Created);
    let old = world.actor(&first(&root, 11));
    old.put("k", "old");
    world.settle();
    assert_eq!(remove(&world, &root), Ok(Removal::Removed));
    world.settle();
    assert_eq!(remove(&world, &root), Ok(Removal::NotFound));
    assert_eq!(names(&world, &root), Vec::<String>::new());
    for number in 0..3 {
        assert_eq!(world.disk(number, |disk| disk.elements()), 0);
        world.crash(number);
        world.restart(number, true);
    }
    // A client that still works on it gets an error, and no empty domain.
    let Err(failed) = world.run(old.read("k")) else {
        panic!("it is gone")
    };
    let removed = Response::Refused(Refusal::Removed);
    assert!(
        failed
            .servers
            .iter()
            .any(|(_, response)| *response == removed)
    );
    // The name again: another domain.
    assert_eq!(create(&world, &root, 12), Creation::Created);
    let new = world.actor(&first(&root, 12));
    assert_eq!(new.get("k").1, None);
    new.put("k", "new");
    assert_eq!(names(&world, &root), ["photos"]);
    assert!(
        matches!(create(&world, &root, 13), Creation::Exists(c) if c.id().domain == DomainId(12))
    );
    let found = world.run(new.read("k")).expect("a quorum is up");
    assert_eq!(found.value.as_ref().map(text).as_deref(), Some("new"));
}

/// The state of superseded configurations that are kept goes with the domain: also where a server is no member any more, and where a
/// server finds it again when it starts.
#[test]
fn a_removed_domain_keeps_no_superseded_configuration() {
    for collect in [Collect::Off, Collect::Paper] {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::of(&root, 6, 1);
        for number in 0..6 {
            let registered = world.actor(&root).register(record(number, 1, 7));
            assert_eq!(registered, Registration::Registered);
        }
        let options = Options {
            collect,
            ..Options::default()
        };
        let mut c = world::with(&first(&root, 11), options);
        assert_eq!(create_as(&world, &root, c.clone()), Creation::Created);
        for members in [3, 0, 1] {
            let actor = world.actor(&c);
            actor.put("k", "a value of each configuration");
            c = successor(&c, members, 3, Dap::Abd);
            super::move_to(&world, &actor, &c);
            world.settle();
        }
        let elements = |number| world.disk(number, |disk| disk.elements());
        let is_kept = (0..6).all(|number| elements(number) > 0);
        assert_eq!(is_kept, collect == Collect::Off, "{collect:?}");
        assert_eq!(remove(&world, &root), Ok(Removal::Removed));
        world.settle();
        for number in 0..6 {
            for turn in ["removed", "started"] {
                // Records go with the batch after the one that drops them.
                let latest = Request::Latest {
                    domain: c.id().domain,
                    partition: c.id().partition,
                    known: None,
                };
                let Ok(Reply::Latest(Some(last))) = world.ask(number, latest) else {
                    panic!("it knows the removal");
                };
                assert!(last.dap().is_removal(), "{collect:?}: server {number}");
                assert_eq!(elements(number), 0, "{collect:?}: {number}, {turn}");
                world.crash(number);
                world.restart(number, true);
            }
        }
    }
}

#[test]
fn nothing_comes_after_a_removal() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    assert_eq!(create(&world, &root, 11), Creation::Created);
    assert_eq!(remove(&world, &root), Ok(Removal::Removed));
    let late = world.actor(&first(&root, 11));
    let next = successor(&late.c, 3, 3, Dap::Abd);
    let done = world.run(super::reconfigure(late.client(), &late.c, &next));
    assert_eq!(done, Err(ReconfigError::Removed));
}
