//! Removals by writers themselves: of replaced values, and of values that they gave up.

use crate::large::uploader::{Upload, get, look, sweep_as};
use crate::world::{Actor, Message, World, configuration};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::error::WriteError;
use areo_core::manager::Deletion;
use areo_core::message::{Reply, Request};
use std::sync::Arc;

const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 2 }];

fn begin(dap: Dap) -> (Arc<Configuration>, World, Actor) {
    let c = configuration(4, dap, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    (c, world, actor)
}

fn write(world: &World, actor: &Actor, text: &str) {
    let upload = Upload::begin(actor, text);
    let written = world.run(async move { upload.write("k").await });
    written.expect("nothing goes wrong");
    world.settle();
}

/// Uploads that are live, and what is left over.
fn there(world: &World, actor: &Actor) -> (u64, Count) {
    let swept = world.run(look(actor)).expect("a quorum is there");
    (swept.live.uploads, swept.orphans())
}

/// Every kind of write over a value in blocks, by any client.
#[test]
fn what_is_replaced_goes_with_the_write() {
    let nothing = Count::default();
    for dap in DAPS {
        let (c, world, actor) = begin(dap);
        write(&world, &actor, "first value");
        write(&world, &world.actor(&c), "second value");
        assert_eq!(there(&world, &actor), (1, nothing), "another large value");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("second value"));

        world.run(actor.write("k", "tiny")).unwrap();
        assert_eq!(there(&world, &actor), (0, nothing), "a small one");

        write(&world, &actor, "third value");
        let version = world.run(actor.stat("k")).unwrap().tag;
        let covered = world.run(actor.cover("k", "tiny", version)).unwrap();
        assert!(
            matches!(covered, CoverableOutcome::Changed(_)),
            "{covered:?}"
        );
        assert_eq!(there(&world, &actor), (0, nothing), "a coverable write");

        write(&world, &actor, "fourth value");
        let deleted = world.run(actor.delete("k")).unwrap();
        assert!(matches!(deleted, Deletion::Deleted(_)), "{deleted:?}");
        assert_eq!(there(&world, &actor), (0, nothing), "a deletion");
    }
}

/// The elements of removed blocks do not wait for the quiet time of the object: else a server that is sent large values holds two
/// seconds' worth of old ones. Those of a value that is not in blocks do, for its readers (`[X-3 unconfirmed-cap]`).
#[test]
fn elements_of_removed_blocks_go_at_once() {
    for dap in DAPS {
        let (_, world, actor) = begin(dap);
        let stored = |number| match world.ask(number, Request::Status) {
            Ok(Reply::Status(status)) => status.element_bytes,
            other => panic!("{other:?} is no status"),
        };
        // Which server has which fragment depends on the block's name.
        let all = || (0..4).map(stored).sum::<u64>();
        write(&world, &actor, "first value");
        let once = all();
        assert!(once > 0);
        for _ in 0..5 {
            write(&world, &actor, "other value");
            assert_eq!(all(), once, "{dap:?}: of the same length");
        }
    }
    let (_, world, actor) = begin(Dap::Ec { k: 2 });
    for text in ["a value", "another"] {
        world.run(actor.write("k", text)).unwrap();
        world.settle();
    }
    assert_eq!(world.numbers(0, "k"), [1, 2], "a user's object has readers");
}

/// A write that does not write leaves everything where it is.
#[test]
fn a_conflict_removes_nothing() {
    let (_, world, actor) = begin(Dap::Abd);
    write(&world, &actor, "first value");
    let old = world.run(actor.stat("k")).unwrap().tag;
    write(&world, &actor, "second value");
    let covered = world.run(actor.cover("k", "tiny", old)).unwrap();
    assert!(
        matches!(covered, CoverableOutcome::Unchanged(_)),
        "{covered:?}"
    );
    assert_eq!(get(&world, &actor, "k").as_deref(), Some("second value"));
}

/// Writes that replace no value in blocks cost as much as before.
#[test]
fn only_writes_over_blocks_pay_for_it() {
    let (_, world, actor) = begin(Dap::Abd);
    let rounds = |operation: &dyn Fn()| {
        let before = world.gathers();
        operation();
        world.gathers() - before
    };
    let put = || {
        world.run(actor.write("k", "tiny")).unwrap();
    };
    assert_eq!(rounds(&put), 2);
    assert_eq!(rounds(&put), 2);
    let blocks = 3;
    assert_eq!(rounds(&|| write(&world, &actor, "first value")), blocks + 3);
    // The list of the old blocks, and one message to each server for each of them, at once.
    assert_eq!(rounds(&put), 2 + 1 + blocks);
}

/// Until it is known that the new version is at a quorum, the old one may be what readers get.
#[test]
fn an_unknown_outcome_removes_nothing() {
    let (_, world, actor) = begin(Dap::Abd);
    write(&world, &actor, "first value");
    world.hold(|m| m.is_put() && (m.is_reply() || !m.at(&[0])));
    let written = world.run(actor.write("k", "tiny"));
    assert!(
        matches!(written, Err(WriteError::Unknown(_))),
        "{written:?}"
    );
    world.lose(Message::is_put);
    world.release();
    world.crash(0);
    assert_eq!(get(&world, &actor, "k").as_deref(), Some("first value"));
}

/// The write of a large value whose outcome is unknown removes nothing: its manifest may have reached no server.
#[test]
fn an_unknown_manifest_removes_nothing() {
    let (_, world, actor) = begin(Dap::Abd);
    let first = Upload::begin(&actor, "first value");
    let (writing, upload) = (first.clone(), Upload::begin(&actor, "second value"));
    world.run(async move { writing.write("k").await }).unwrap();
    world.settle();
    world.hold(|m| m.is_put() && !m.is_of_block());
    let written = world.run(async move { upload.write("k").await });
    assert!(
        matches!(written, Err(PublishError::Write(WriteError::Unknown(_)))),
        "{written:?}"
    );
    world.lose(Message::is_put);
    world.release();
    let (client, c) = (actor.client(), actor.c.clone());
    for index in 0..first.pieces().len() {
        let (client, c) = (client.clone(), c.clone());
        let block =
            world.run(async move { client.domain(&c).get_block(first.id, index as u32).await });
        assert!(block.unwrap().is_some(), "block {index}");
    }
}

/// Blocks that no quorum has room for are taken back from those that had.
#[test]
fn what_is_refused_is_taken_back() {
    for dap in DAPS {
        let (_, world, actor) = begin(dap);
        write(&world, &actor, "first value");
        for server in [2, 3] {
            world.disk(server, |disk| disk.is_full = true);
        }
        let upload = Upload::begin(&actor, "second value");
        let written = world.run(async move { upload.write("k").await });
        assert!(
            matches!(written, Err(PublishError::Write(WriteError::NotApplied(_)))),
            "{written:?}"
        );
        assert_eq!(there(&world, &actor), (1, Count::default()), "{dap:?}");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("first value"));
    }
}

/// A writer that finds its upload aborted does not wait for the client that aborted it to remove the blocks: that one may be gone.
#[test]
fn what_was_aborted_is_taken_back() {
    let (_, world, actor) = begin(Dap::Abd);
    let slow = Upload::begin(&actor, "first value");
    let putting = slow.clone();
    assert!(world.run(async move { putting.put_blocks(0..3).await }));
    let aborting = sweep_as(actor.client(), actor.c.clone(), Some(0), None);
    let swept = world.run(aborting).unwrap();
    assert_eq!((swept.aborted.uploads, swept.removed.uploads), (1, 0));
    let ended = world.run(async move { slow.publish("k").await });
    assert_eq!(ended, Err(PublishError::Swept));
    assert_eq!(there(&world, &actor), (0, Count::default()));
}
