//! Labels of servers: `[X-47 server-labels]`.

use super::cells::record;
use super::reconfiguration::root::move_with_directory;
use crate::world::{Actor, World, configuration, server, successor};
use areo_core::config::Dap;
use areo_core::manager::Registration;
use areo_core::message::ServerRecord;

fn shown(world: &World, actor: &Actor) -> ServerRecord {
    let (client, c) = (actor.client(), actor.c.clone());
    let servers = world.run(async move { client.root(&c).servers().await });
    servers.expect("a quorum answers")[&server(4)].clone()
}

fn label(world: &World, actor: &Actor, of: &ServerRecord, changes: &'static [(&str, &str)]) {
    let (client, c, of) = (actor.client(), actor.c.clone(), of.clone());
    let labelled = world.run(async move { client.root(&c).label(&of, changes).await });
    assert_eq!(labelled, Ok(()));
}

/// Also when the server registers later starts, when it is marked as one that is to go, and when the root domain moves; until they are removed.
#[test]
fn labels_are_remembered_until_they_are_removed() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    let first = record(4, 5, 77);
    assert_eq!(actor.register(first.clone()), Registration::Registered);
    label(&world, &actor, &first, &[("zone", "a"), ("class", "hdd")]);
    // The server knows nothing of it when it starts again, and a client that marks it may know nothing either.
    let again = actor.register(record(4, 6, 78));
    assert_eq!(again, Registration::Registered);
    let (client, root) = (actor.client(), actor.c.clone());
    let marked = world.run(async move { client.root(&root).mark_leaving(&first, true).await });
    assert_eq!(marked, Ok(()));
    let known = shown(&world, &actor);
    assert_eq!(known.labels.get("zone"), Some("a"));
    assert_eq!(known.labels.get("class"), Some("hdd"));
    assert!(known.is_leaving() && known.incarnation == 6, "{known:?}");
    label(&world, &actor, &known, &[("class", "")]);
    let next = successor(&c, 3, 3, Dap::Abd);
    move_with_directory(&world, &actor, &next);
    world.settle();
    for member in 0..3 {
        world.crash(member);
    }
    let late = world.actor(&next);
    let last = shown(&world, &late);
    assert_eq!(last.labels.get("zone"), Some("a"), "{last:?}");
    assert_eq!(last.labels.get("class"), None, "{last:?}");
    // A registration of a start changes no label.
    let mut claims = record(4, 7, 79);
    claims.labels = last.labels.changed([("zone", "b")]);
    assert_eq!(late.register(claims), Registration::Registered);
    assert_eq!(shown(&world, &late).labels.get("zone"), Some("a"));
}

/// Two operators who have seen the same labels: other labels of both stay, and of one label one change.
#[test]
fn two_operators_at_once_lose_no_label_that_only_one_of_them_changes() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    let first = record(4, 5, 77);
    assert_eq!(actor.register(first.clone()), Registration::Registered);
    label(&world, &actor, &first, &[("zone", "b"), ("class", "hdd")]);
    label(&world, &actor, &first, &[("zone", "a"), ("note", "x")]);
    let known = shown(&world, &actor);
    assert_eq!(known.labels.get("zone"), Some("b"), "in each order alike");
    assert_eq!(known.labels.get("class"), Some("hdd"));
    assert_eq!(known.labels.get("note"), Some("x"));
}
