//! A domain is removed by a last configuration that keeps nothing; its name may be used again.

use crate::world::{World, configuration, successor, text};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dsm::Client;
use areo_core::error::Response;
use areo_core::manager::{Creation, Removal, RemovalError};
use areo_core::message::Refusal;
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
    let (client, root, first) = (Client::new(world.env()), root.clone(), first(root, domain));
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
