//! Writers that end after each of their steps. What they left is finished or swept, and no reader sees half of it.

use crate::large::uploader::{Upload, get, look, sweep as sweep_all};
use crate::world::{Actor, Message, World, configuration};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::{Ages, Count, UploadSweep};
use areo_core::error::WriteError;
use std::sync::Arc;
use std::time::Duration;

const OLD: &str = "the old value";
const NEW: &str = "the new value, longer";

/// The point at which a writer stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    OneBlock,
    AllBlocks,
    /// The commit was accepted by this number of servers, and no client knows.
    Accepted(usize),
    /// The commit was decided, and the manifest put at this number of servers.
    Put(usize),
}

const STEPS: [Until; 8] = [
    Until::OneBlock,
    Until::AllBlocks,
    Until::Accepted(0),
    Until::Accepted(1),
    Until::Accepted(4),
    Until::Put(0),
    Until::Put(1),
    Until::Put(4),
];

fn world(c: &Arc<Configuration>) -> (World, Actor) {
    let world = World::new(c, 3);
    let actor = world.actor(c);
    let old = Upload::begin(&actor, OLD);
    world
        .run(async move { old.write("k").await })
        .expect("nothing goes wrong");
    world.settle();
    (world, actor)
}

/// Runs the steps; what is in flight at the end is lost. Returns the writer, who may be only slow.
fn leave(world: &World, until: Until) -> Upload {
    let c = configuration(4, Dap::Abd, 1, 0);
    let upload = Upload::begin(&world.actor(&c), NEW);
    let blocks = match until {
        Until::OneBlock => 0..1,
        _ => 0..upload.pieces().len(),
    };
    let putting = upload.clone();
    assert!(world.run(async move { putting.put_blocks(blocks).await }));
    world.settle();
    let (servers, is_last): (usize, fn(&Message) -> bool) = match until {
        Until::OneBlock | Until::AllBlocks => return upload,
        Until::Accepted(servers) => (servers, Message::is_cell_accept),
        Until::Put(servers) => (servers, Message::is_put),
    };
    // Requests get to the first servers, answers to no client.
    let arrives: Vec<usize> = (0..servers).collect();
    world.hold(move |m| is_last(m) && (m.is_reply() || !m.at(&arrives)));
    let publishing = upload.clone();
    let ended = world.run(async move { publishing.publish("k").await });
    let ended = ended.expect_err("it hears nothing");
    assert!(
        matches!(ended, PublishError::Write(WriteError::Unknown(_))),
        "{ended:?}"
    );
    world.lose(is_last);
    world.release();
    world.settle();
    upload
}

/// The object's value at the first sweep after a writer stopped there; `None`: either value.
fn expected(until: Until) -> Option<&'static str> {
    match until {
        Until::OneBlock | Until::AllBlocks | Until::Accepted(0) => Some(OLD),
        // A quorum without that server may abort, one with it finishes the commit.
        Until::Accepted(1) => None,
        Until::Accepted(_) | Until::Put(_) => Some(NEW),
    }
}

#[test]
fn what_a_writer_leaves_is_finished_or_swept() {
    for until in STEPS {
        for without in 0..4 {
            let c = configuration(4, Dap::Abd, 1, 0);
            let (world, actor) = world(&c);
            leave(&world, until);
            // A different quorum each time.
            world.crash(without);
            // The first one may come to the old version before it finishes the new one.
            let sweeps = [(); 2].map(|()| world.run(sweep_all(&actor)).unwrap());
            let removed: u64 = sweeps.iter().map(|swept| swept.removed.uploads).sum();
            let read = get(&world, &actor, "k").unwrap();
            assert!([OLD, NEW].contains(&&*read), "{until:?}: {read}");
            if let Some(expected) = expected(until) {
                assert_eq!(read, expected, "{until:?}, without {without}");
            }
            assert_eq!(removed, 1, "{until:?}: the one or the other");
            let after = world.run(look(&actor)).unwrap();
            assert_eq!(after.orphans(), Count::default(), "{until:?}");
            assert_eq!(after.live.uploads, 1, "{until:?}");
        }
    }
}

/// A full disk has room for all that a sweep needs, after any kind of writer filled it.
#[test]
fn full_disks_can_be_swept() {
    for until in STEPS {
        let c = configuration(4, Dap::Abd, 1, 0);
        let (world, actor) = world(&c);
        leave(&world, until);
        for server in 0..4 {
            world.disk(server, |disk| disk.is_full = true);
        }
        let written = world.run(actor.write("other", "more"));
        assert!(written.is_err(), "the disks are full");
        let sweeps = [(); 2].map(|()| world.run(sweep_all(&actor)));
        let removed = sweeps.map(|swept| swept.unwrap_or_else(|e| panic!("{until:?}: {e:?}")));
        let removed: u64 = removed.iter().map(|swept| swept.removed.uploads).sum();
        assert_eq!(removed, 1, "{until:?}");
    }
}

/// The sweep needs only the age of a block that one server holds. It does not write the block back, because there may
/// be no room.
#[test]
fn full_disks_can_be_swept_of_half_a_block() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }] {
        let c = configuration(4, dap, 1, 2);
        let (world, actor) = world(&c);
        let upload = Upload::begin(&world.actor(&c), NEW);
        world.hold(|m| m.is_put() && (m.is_reply() || !m.at(&[0, 1])));
        let putting = upload.clone();
        assert!(!world.run(async move { putting.put_blocks(0..1).await }));
        world.lose(Message::is_put);
        world.release();
        for server in 0..4 {
            world.disk(server, |disk| disk.is_full = true);
        }
        // So that no client knows whether it is at a quorum.
        world.crash(2);
        assert_eq!(world.run(sweep_all(&actor)).unwrap().removed.uploads, 1);
    }
}

/// Readers come before any sweep: they see one version or the other, and never go back.
#[test]
fn readers_see_one_version_whole_before_and_after_a_sweep() {
    for until in STEPS {
        let c = configuration(4, Dap::Abd, 1, 0);
        let (world, actor) = world(&c);
        leave(&world, until);
        let before = get(&world, &actor, "k").unwrap();
        world.run(sweep_all(&actor)).unwrap();
        let after = get(&world, &actor, "k").unwrap();
        assert!([OLD, NEW].contains(&&*before), "{until:?}: {before}");
        assert!([&*before, NEW].contains(&&*after), "{until:?}: {after}");
    }
}

/// A writer that is only slow finds its upload aborted: nothing was written, and nothing will be.
#[test]
fn a_slow_writer_loses_against_a_sweep() {
    let c = configuration(4, Dap::Abd, 1, 0);
    let (world, actor) = world(&c);
    let slow = leave(&world, Until::AllBlocks);
    assert_eq!(world.run(sweep_all(&actor)).unwrap().removed.uploads, 1);
    let late = slow.clone();
    let ended = world.run(async move { late.publish("k").await });
    assert_eq!(ended, Err(PublishError::Swept));
    assert_eq!(get(&world, &actor, "k").as_deref(), Some(OLD));
    // A block of it that comes later still changes nothing, and what is new of it goes with the next sweep.
    assert!(world.run(async move { slow.put_blocks(0..1).await }));
    assert_eq!(world.run(look(&actor)).unwrap().orphans(), Count::default());
}

/// A sweep that begins before the commit and ends after it does not touch the blocks.
#[test]
fn a_sweep_loses_against_a_commit() {
    let c = configuration(4, Dap::Abd, 1, 0);
    let (world, actor) = world(&c);
    let upload = leave(&world, Until::AllBlocks);
    // The sweep has seen that nothing is decided, and asks for promises.
    world.hold(Message::is_prepare);
    let sweeping = world.spawn(sweep_all(&actor));
    world.settle();
    assert!(world.in_flight(Message::is_prepare) > 0, "it proposes");
    let publishing = upload.clone();
    world
        .run(async move { publishing.publish("k").await })
        .expect("one round, before the sweep's second");
    world.release();
    while sweeping.borrow().is_none() {
        assert!(world.step(), "the sweep ends");
    }
    let swept = sweeping.borrow_mut().take().unwrap().unwrap();
    // The old value was the newest when the sweep came to it.
    assert_eq!((swept.live.uploads, swept.removed.uploads), (2, 0));
    assert_eq!(get(&world, &actor, "k").as_deref(), Some(NEW));
}

const HOUR: Duration = Duration::from_hours(1);
const HOUR_MS: u64 = 3_600_000;

/// A sweep by a client whose clock shows this, which gives up what has stood still for an hour.
fn sweep_at(world: &World, actor: &Actor, now_ms: u64) -> UploadSweep {
    let (client, c) = (actor.client(), actor.c.clone());
    let ages = Ages {
        now_ms,
        unfinished_ms: Some(HOUR_MS),
        replaced_ms: Some(0),
    };
    let swept = world.run(async move { client.domain(&c).sweep(&ages).await });
    swept.expect("a quorum is up")
}

/// Clocks of clients have no say in how long an upload has stood still: one that is hours ahead ends no upload that is under
/// way, one that is hours behind keeps none. Servers say it, and a server that was started later knows of less.
#[test]
fn clocks_of_clients_do_not_end_uploads() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }] {
        let c = configuration(4, dap, 1, 2);
        let (world, actor) = world(&c);
        world.pass(5 * HOUR);
        let upload = Upload::begin(&actor, NEW);
        for block in 0..upload.pieces().len() {
            let putting = upload.clone();
            assert!(world.run(async move { putting.put_blocks([block]).await }));
            let swept = sweep_at(&world, &actor, 10 * HOUR_MS);
            assert_eq!(swept.unfinished.blocks, block as u64 + 1, "{dap}");
            // Slower than that would be too slow, if the first block counted.
            world.pass(HOUR / 2);
        }
        let publishing = upload.clone();
        let published = world.run(async move { publishing.publish("k").await });
        assert!(published.is_ok(), "{dap}: {published:?}");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some(NEW));
        let left = Upload::begin(&actor, NEW);
        assert!(world.run(async move { left.put_blocks([0]).await }));
        for server in 0..4 {
            world.crash(server);
            world.restart(server, true);
        }
        assert_eq!(sweep_at(&world, &actor, 0).unfinished.uploads, 1, "{dap}");
        world.pass(59 * HOUR / 60);
        assert_eq!(sweep_at(&world, &actor, 0).unfinished.uploads, 1, "{dap}");
        world.pass(HOUR / 30);
        assert_eq!(sweep_at(&world, &actor, 0).removed.uploads, 1, "{dap}");
    }
}
