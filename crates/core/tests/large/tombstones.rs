//! Tombstones of blocks of uploads go when no member has the block any more (`[X-30 dropped-tombstones]`).

use crate::large::uploader::{Upload, get, look, sweep};
use crate::paper::redundancy::round;
use crate::world::{Actor, Disk, World, configuration, name, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::large::block_name;
use areo_core::dsm::sweep::Count;
use areo_core::element::Value;
use areo_core::message::{Access, Body};
use areo_core::object::{Kind, Name};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const N: usize = 4;
const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 2 }];

fn begin(dap: Dap) -> (Arc<Configuration>, World, Actor) {
    let c = configuration(N, dap, 1, 2);
    let world = World::of(&c, N, 1);
    let actor = world.actor(&c);
    (c, world, actor)
}

fn write(world: &World, actor: &Actor, text: &str) -> Upload {
    let upload = Upload::begin(actor, text);
    let writing = upload.clone();
    let written = world.run(async move { writing.write("k").await });
    written.expect("a quorum is up");
    world.settle();
    upload
}

/// Blocks of uploads of which a server has some record.
fn blocks(world: &World, number: usize) -> usize {
    let is_block = |header: &Header| match header {
        Header::Element(element) => element.name.is_upload_block(),
        Header::Marks { name, .. } => name.is_upload_block(),
        _ => false,
    };
    world.disk(number, |disk| {
        disk.headers().filter(|it| is_block(it)).count()
    })
}

fn all_blocks(world: &World) -> Vec<usize> {
    (0..N).map(|number| blocks(world, number)).collect()
}

/// A round of repair at each server, once all is quiet.
fn rounds(world: &World, c: &Arc<Configuration>) {
    world.pass(Duration::from_secs(5));
    for number in (0..N).filter(|number| world.is_up(*number)) {
        round(world, number, c);
    }
}

fn reclaim(world: &World) {
    for number in 0..N {
        world.disk(number, Disk::reclaim);
    }
}

/// A tombstone stays as long as the store may find its block again. Then both are removed, from memory and from disk.
#[test]
fn tombstones_go_when_no_block_can_come_back() {
    for dap in DAPS {
        let (c, world, actor) = begin(dap);
        for number in 0..20 {
            write(&world, &actor, &format!("value {number:02}"));
        }
        rounds(&world, &c);
        let objects = |number| world.status(number).objects;
        assert!((0..N).all(|at| objects(at) >= 41), "{dap}: they may return");
        let of_users = |number| world.status(number).tombstones;
        assert_eq!([0, 1, 2, 3].map(of_users), [0; N], "{dap}: nothing deleted");
        reclaim(&world);
        rounds(&world, &c);
        assert_eq!([0, 1, 2, 3].map(objects), [3; N], "{dap}: key, 2 blocks");
        assert!(all_blocks(&world).iter().all(|it| *it <= 4), "{dap}");
        // Old tombstones and marks come back, and go again; no block does.
        for number in 0..N {
            world.crash(number);
            world.restart(number, true);
        }
        let seen = world.run(look(&actor)).expect("all are up");
        assert_eq!((seen.live.blocks, seen.orphans()), (2, Count::default()));
        rounds(&world, &c);
        assert_eq!([0, 1, 2, 3].map(objects), [3; N], "{dap}: key, 2 blocks");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("value 19"));
    }
}

/// A block whose tombstone has come in the last batch: the store hears with the next one that the record of the block is superseded, and knows
/// nothing of it until then. A tombstone that went before would let the block come back.
#[test]
fn a_tombstone_stays_until_the_store_knows_what_it_superseded() {
    let (c, world, actor) = begin(Dap::Abd);
    let block = block_name(actor.client().next_upload(), 0);
    let first = Tag::first(actor.client().next_writer());
    let second = first.next(first.writer).expect("two follows one");
    for (tag, value) in [
        (first, value("content")),
        (second, Value::tombstone(Bytes::new())),
    ] {
        let element = areo_core::dap::elements(&c, &block, &value).remove(0);
        let write_back = false;
        let access = Access::Put {
            tag,
            element,
            write_back,
        };
        let put = world.ask_configured(0, Body::Access(vec![(block.clone(), access)]));
        assert!(put.is_ok(), "{put:?}");
    }
    world.drop_tombstones(0, c.id(), std::slice::from_ref(&block));
    assert_eq!(blocks(&world, 0), 1, "the tombstone is there");
    world.drop_tombstones(0, c.id(), std::slice::from_ref(&block));
    assert_eq!(blocks(&world, 0), 1, "the store may find the block again");
    world.disk(0, Disk::reclaim);
    world.drop_tombstones(0, c.id(), &[block]);
    assert_eq!(blocks(&world, 0), 0);
}

/// A member that missed the removal gets the tombstones, by its own repair, before any other member drops them.
#[test]
fn a_member_that_was_away_does_not_keep_blocks() {
    for dap in DAPS {
        let (c, world, actor) = begin(dap);
        write(&world, &actor, "value 00");
        world.crash(3);
        world.hold(|m| m.at(&[3]));
        write(&world, &actor, "value 01");
        reclaim(&world);
        rounds(&world, &c);
        assert!(blocks(&world, 0) >= 4, "{dap}: one member is away");
        world.lose(|m| m.at(&[3]));
        world.release();
        world.restart(3, false);
        for _ in 0..3 {
            rounds(&world, &c);
            reclaim(&world);
        }
        assert!(
            all_blocks(&world).iter().all(|it| *it <= 4),
            "{dap}: {:?}",
            all_blocks(&world)
        );
        let seen = world.run(look(&actor)).expect("all are up");
        assert_eq!((seen.live.blocks, seen.orphans()), (2, Count::default()));
        let lacking: u64 = (0..N).map(|at| round(&world, at, &c).lacking).sum();
        assert_eq!(lacking, 0, "{dap}: what was dropped is not lacked");
    }
}

/// A block that comes late finds no tombstone. A sweep finds the block.
#[test]
fn a_block_that_comes_after_its_tombstone_went_is_swept() {
    for dap in DAPS {
        let (c, world, actor) = begin(dap);
        let old = write(&world, &actor, "value 00");
        write(&world, &actor, "value 01");
        reclaim(&world);
        rounds(&world, &c);
        rounds(&world, &c);
        let late = old.clone();
        assert!(world.run(async move { late.put_blocks([1]).await }));
        world.settle();
        let swept = world.run(sweep(&actor)).expect("all are up");
        assert_eq!(swept.removed.blocks, 1, "{dap}");
        world.settle();
        reclaim(&world);
        rounds(&world, &c);
        assert!(all_blocks(&world).iter().all(|it| *it <= 4), "{dap}");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("value 01"));
    }
}

/// A reader under way finds that a block is gone, whether members hold a tombstone, dropped it, or some did.
#[test]
fn a_reader_under_way_begins_again() {
    for dap in DAPS {
        for dropping in 0..=N {
            let (c, world, actor) = begin(dap);
            let old = write(&world, &actor, "value 00");
            write(&world, &actor, "value 01");
            world.pass(Duration::from_secs(5));
            reclaim(&world);
            for number in 0..dropping {
                round(&world, number, &c);
            }
            for without in 0..N {
                world.crash(without);
                let (domain, upload) = (actor.domain(), old.id);
                let block = world.run(async move { domain.get_block(upload, 0).await });
                assert_eq!(block, Ok(None), "{dap}, {dropping} dropped it");
                world.settle();
                world.restart(without, false);
            }
        }
    }
}

/// Tombstones of users' objects and of blocks of files stay: these are written again, and a tombstone hides what is older.
#[test]
fn other_tombstones_stay() {
    for kind in [Kind::User, Kind::Block] {
        let (c, world, actor) = begin(Dap::Abd);
        let file = Name::new(kind, "file-00000000000000010000000000000001").expect("short");
        let first = Tag::first(actor.client().next_upload());
        let second = first.next(first.writer).expect("two follows one");
        let contents = [
            (first, value("content")),
            (second, Value::tombstone(Bytes::new())),
        ];
        for (tag, value) in contents {
            let (domain, file) = (actor.domain(), file.clone());
            let written = world.run(async move { domain.put_version(&file, (tag, &value)).await });
            assert_eq!(written, Ok(()));
            world.settle();
        }
        reclaim(&world);
        rounds(&world, &c);
        let key = c.id();
        world.drop_tombstones(0, key, &[file.clone(), name("k")]);
        let is_kept = |header: &Header| matches!(header, Header::Element(it) if it.name == file && it.deleted);
        for number in 0..N {
            let kept = world.disk(number, |disk| disk.headers().any(is_kept));
            assert!(kept, "{kind:?} at {number}");
        }
    }
}

#[test]
fn blocks_of_uploads_have_names_of_their_own() {
    let (_, _, actor) = begin(Dap::Abd);
    let upload = Upload::begin(&actor, "text");
    assert!(block_name(upload.id, 0).is_upload_block());
    assert!(!name("upload-1").is_upload_block(), "a user's key");
}
