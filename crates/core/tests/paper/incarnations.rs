//! The reincarnation service (`docs/spec` 2.12): clients that are called by their hardware and by how often one was started there.

use crate::paper::reconfiguration::root::move_with_directory;
use crate::world::{Actor, Message, World, configuration, successor};
use areo_core::config::Dap;
use areo_core::error::WriteError;
use areo_core::tag::ClientId;
use std::collections::BTreeSet;

const HARDWARE: u32 = 7;

fn id(number: u64) -> ClientId {
    ClientId(u64::from(HARDWARE) << 32 | number)
}

fn start(
    actor: &Actor,
    hardware: u32,
) -> impl Future<Output = Result<ClientId, WriteError>> + use<> {
    let (client, root) = (actor.client(), actor.c.clone());
    async move { client.root(&root).reincarnate(hardware).await }
}

/// `[CASSS-8 new-number]`: each start has a number that none had before, the first one too, which finds 0; with any minority of
/// servers away, after all have started again, and where the root domain has moved to others.
#[test]
fn each_start_has_a_number_of_its_own() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&root, 6, 1);
    for away in 0..3 {
        world.crash(away);
        let actor = world.actor(&root);
        let before = actor.client().id();
        let started = world.run(start(&actor, HARDWARE)).expect("a quorum is up");
        assert_eq!(started, id(1 + away as u64));
        assert_ne!(started, before);
        let written = actor.put("k", "value");
        assert_eq!(written.writer.client, started, "it writes under that name");
        world.restart(away, false);
    }
    assert_eq!(
        world.run(start(&world.actor(&root), 8)),
        Ok(ClientId(8 << 32 | 1)),
        "other hardware has numbers of its own"
    );
    for number in 0..3 {
        world.crash(number);
        world.restart(number, false);
    }
    assert_eq!(world.run(start(&world.actor(&root), HARDWARE)), Ok(id(4)));
    let next = successor(&root, 3, 3, Dap::Abd);
    move_with_directory(&world, &world.actor(&root), &next);
    world.settle();
    for known in [&root, &next] {
        let actor = world.actor(known);
        let number = if *known == root { 5 } else { 6 };
        assert_eq!(world.run(start(&actor, HARDWARE)), Ok(id(number)));
    }
}

/// A start that was cut off in the second phase leaves its client as it was. The next one is above all that succeeded.
#[test]
fn a_start_that_was_cut_off_gives_no_name() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    assert_eq!(world.run(start(&world.actor(&root), HARDWARE)), Ok(id(1)));
    for heard in 0..3 {
        world.hold(move |m| m.is_put() && !m.at(&[heard]) && !m.is_reply());
        let actor = world.actor(&root);
        let before = actor.client().id();
        let failed = world.run(start(&actor, HARDWARE));
        assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
        assert_eq!(actor.client().id(), before);
        world.lose(Message::is_put);
        world.release();
    }
    let started = world.run(start(&world.actor(&root), HARDWARE));
    let started = started.expect("a quorum is up");
    assert!((id(2)..=id(5)).contains(&started), "{started:?}");
    let next = world.run(start(&world.actor(&root), HARDWARE));
    assert!(next.expect("a quorum is up") > started);
}

/// In the study two clients at a time must not be of one hardware, since they may get one number. Here their writes differ all the same.
#[test]
fn two_of_one_hardware_have_no_writer_in_common() {
    let root = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&root, 1);
    let actors = [world.actor(&root), world.actor(&root)];
    let starts = actors.each_ref().map(|it| world.spawn(start(it, HARDWARE)));
    for started in starts {
        assert_eq!(world.finish(&started), Ok(id(1)), "one name");
    }
    let mut writers = BTreeSet::new();
    for round in 0..20 {
        for actor in &actors {
            let tag = actor.put(&format!("k{round}"), "value");
            assert_eq!(tag.writer.client, id(1));
            assert!(writers.insert(tag.writer), "{tag}");
        }
    }
}
