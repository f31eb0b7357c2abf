//! The cost of an upload, and its object as one object.

use crate::large::uploader::{Upload, get, look, read, sweep};
use crate::world::{World, configuration, name, value};
use areo_core::config::Dap;
use areo_core::dsm::sweep::Count;
use areo_core::element::Value;
use areo_core::object::{Blocks, Metadata, Part};

const TEXT: &str = "in blocks of four";

fn run<T: 'static>(world: &World, future: impl Future<Output = T> + 'static) -> T {
    world.run(future)
}

#[test]
fn a_block_takes_one_round_and_the_manifest_three() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }] {
        let c = configuration(4, dap, 1, 2);
        let world = World::new(&c, 1);
        let upload = Upload::begin(&world.actor(&c), TEXT);
        let before = world.gathers();
        let blocks = upload.pieces().len();
        let putting = upload.clone();
        assert!(run(
            &world,
            async move { putting.put_blocks(0..blocks).await }
        ));
        assert_eq!(
            world.gathers() - before,
            blocks,
            "a new name needs no query"
        );
        let before = world.gathers();
        run(&world, async move { upload.publish("k").await }).unwrap();
        assert_eq!(world.gathers() - before, 3, "get-tag, commit, put-data");
        world.settle();
        let before = world.gathers();
        let reader = world.actor(&c);
        assert_eq!(get(&world, &reader, "k").as_deref(), Some(TEXT));
        assert_eq!(world.gathers() - before, 1 + blocks);
    }
}

/// A manifest lists parts of any length, in blocks of any width with any numbers; a removal removes those.
#[test]
fn a_value_may_have_several_parts() {
    let c = configuration(4, Dap::Ec { k: 2 }, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let part = |first, length, block_bytes| Part {
        lane: None,
        first,
        length,
        block_bytes,
    };
    let parts = vec![part(900, 7, 4), part(3, 0, 1), part(0, 10, 3)];
    let blocks = Blocks::of_parts(actor.client().next_upload(), parts).unwrap();
    let pieces = blocks.iter().map(|block| block.range);
    let pieces = pieces.map(|range| value(&TEXT[range.start as usize..range.end as usize]));
    let contents: Vec<Value> = pieces.collect();
    let metadata = Metadata {
        blocks: Some(blocks.clone().into()),
        ..Metadata::default()
    };
    let metadata = metadata.encode().unwrap();
    let (client, at) = (actor.client(), c.clone());
    let write = async move {
        let domain = client.domain(&at);
        let manifest = (&blocks, metadata);
        domain.write_large(&name("k"), manifest, &contents).await
    };
    run(&world, write).unwrap();
    world.settle();
    assert_eq!(get(&world, &actor, "k").as_deref(), Some(TEXT));
    assert_eq!(world.run(look(&actor)).unwrap().live.blocks, 6);
    actor.put("k", "short");
    world.run(sweep(&actor)).unwrap();
    assert_eq!(world.run(look(&actor)).unwrap().live.blocks, 0);
}

#[test]
fn a_large_object_is_listed_and_described_as_one() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let upload = Upload::begin(&actor, TEXT);
    let tag = run(&world, async move { upload.write("k").await }).unwrap();
    let page = world.run(actor.list("", "", 10)).unwrap();
    let listed: Vec<_> = page
        .entries
        .iter()
        .map(|e| (&*e.key, e.tag, e.length))
        .collect();
    assert_eq!(listed, [("k", tag, TEXT.len() as u64)]);
    let about = world.run(actor.stat("k")).unwrap();
    assert_eq!((about.tag, about.length), (tag, TEXT.len() as u64));
}

/// Over a large object, and under one, other writes are what they always are; blocks that are no longer needed, and were
/// left to a sweep, are found, and removed once, by a sweep.
#[test]
fn what_is_left_to_a_sweep_is_swept() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }] {
        let c = configuration(4, dap, 1, 2);
        let world = World::new(&c, 1);
        let actor = world.actor(&c).keeping_replaced();
        let large = |text: &str| {
            let upload = Upload::begin(&actor, text);
            run(&world, async move { upload.write("k").await }).unwrap();
        };
        let swept = || run(&world, sweep(&actor)).unwrap();
        large("first value");
        let (first, none) = (
            Count {
                uploads: 1,
                blocks: 3,
                bytes: 11,
            },
            Count::default(),
        );
        assert_eq!((swept().live, swept().removed), (first, none));
        large("second");
        assert_eq!(run(&world, look(&actor)).unwrap().replaced, first);
        let after = swept();
        assert_eq!((after.removed, after.orphans()), (first, first));
        assert_eq!(swept().orphans(), none, "a sweep is done once");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("second"));
        actor.put("k", "small");
        assert_eq!(swept().removed.blocks, 2);
        large("third");
        run(&world, actor.delete("k")).unwrap();
        assert_eq!(swept().removed.blocks, 2);
        assert_eq!(get(&world, &actor, "k"), None);
        assert_eq!(swept(), areo_core::dsm::sweep::UploadSweep::default());
    }
}

/// A reader that has the manifest when the blocks go reads the object again, and returns the newer version whole.
#[test]
fn a_reader_that_loses_a_block_starts_again() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let [old, new] = ["old version", "new version"].map(|text| Upload::begin(&actor, text));
    run(&world, async move { old.write("k").await }).unwrap();
    world.settle();
    // The manifest comes, the blocks do not.
    let is_block = |m: &crate::world::Message| m.is_query() && m.is_of_block() && !m.is_reply();
    let (reading, held) = world.begin(is_block, read(&world.actor(&c), "k"));
    assert!(!held.is_empty(), "it has asked for blocks");
    run(&world, async move { new.write("k").await }).unwrap();
    let left = run(&world, look(&actor)).unwrap();
    assert_eq!((left.live.uploads, left.orphans()), (1, Count::default()));
    world.put_back(held);
    while reading.borrow().is_none() {
        assert!(world.step(), "the read ends");
    }
    let found = reading.borrow_mut().take().unwrap().unwrap();
    assert_eq!(
        crate::large::uploader::version(found).1.as_deref(),
        Some("new version")
    );
}
