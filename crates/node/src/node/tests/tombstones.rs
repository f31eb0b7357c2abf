//! Tombstones of blocks of uploads over a log: they go when the segments of their blocks are gone (`[X-30 dropped-tombstones]`).

use super::*;
use areo_core::object::Kind;

const BLOCKS: u32 = 300;

fn block(number: u32) -> Name {
    let key = format!("upload-00000000000000010000000000000001-{number:08x}");
    Name::new(Kind::Block, &key).expect("a key")
}

/// A put of a block, or of its tombstone.
fn put_block(number: u32, deleted: bool) -> Request {
    let payload_bytes = if deleted { 0 } else { 32 << 10 };
    let mut request = put(number, payload_bytes);
    let Request::Configured {
        body: Body::Access(accesses),
        ..
    } = &mut request
    else {
        unreachable!("a put is an access")
    };
    accesses[0].0 = block(number);
    if let Access::Put { tag, element, .. } = &mut accesses[0].1 {
        tag.number += u64::from(deleted);
        element.deleted = deleted;
    }
    request
}

/// Turns and looks after the store until nothing is left to do.
fn settle(node: &mut Node<Records<MemoryDisk>, u32>) {
    let mut idle = 0;
    for _ in 0..10_000 {
        let (turn, is_idle) = if node.is_ready() {
            (node.turn(NOW, &mut ()).expect("the disk works"), false)
        } else {
            let upkeep = node.upkeep(NOW, &mut ()).expect("the disk works");
            let is_idle = upkeep.wait == UPKEEP_PERIOD;
            (upkeep.turn.expect("no commit is under way"), is_idle)
        };
        // What a batch frees is reclaimed after it.
        idle = if is_idle && turn.commit.is_none() {
            idle + 1
        } else {
            0
        };
        if let Some(commit) = turn.commit {
            let _ = node.committed(commit.run()).expect("it is written");
        }
        if idle == 3 {
            return;
        }
    }
    panic!("there is always more to do");
}

fn objects(node: &mut Node<Records<MemoryDisk>, u32>) -> u64 {
    push(node, 1, Request::Status);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    match turn.released.replies.into_iter().next() {
        Some((_, Ok(Reply::Status(status)))) => status.objects,
        other => panic!("{:?} is no status", other.map(|(_, reply)| reply)),
    }
}

fn drop_all(node: &mut Node<Records<MemoryDisk>, u32>) -> usize {
    let names: Vec<Name> = (0..BLOCKS).map(block).collect();
    let dropped = node.drop_tombstones(root().id(), &names).len();
    settle(node);
    dropped
}

#[test]
fn tombstones_go_when_the_segments_of_their_blocks_are_gone() {
    let disk = MemoryDisk::new();
    let mut node = node_on(&disk);
    for number in 0..BLOCKS {
        push(&mut node, number, put_block(number, false));
    }
    settle(&mut node);
    assert_eq!(drop_all(&mut node), 0, "they are no tombstones");
    for number in 0..BLOCKS {
        push(&mut node, number, put_block(number, true));
    }
    settle(&mut node);
    let dropped = drop_all(&mut node);
    let waiting = BLOCKS as usize - dropped;
    assert!(dropped > 0 && waiting > 0, "{dropped} of full segments");
    assert_eq!(objects(&mut node), waiting as u64);
}

/// A server in memory has no disk that brings anything back.
#[test]
fn in_memory_tombstones_go_at_once() {
    let mut shard = shard();
    shard.serve();
    let mut node: Node<_, u32> = Node::new(shard, MemoryRecords::default(), SIZES);
    for deleted in [false, true] {
        push(&mut node, 1, put_block(1, deleted));
        let _ = node.turn(NOW, &mut ()).expect("it is in memory");
    }
    // What the tombstone replaced goes with the next batch.
    push(&mut node, 1, Request::Status);
    let _ = node.turn(NOW, &mut ()).expect("it is in memory");
    let dropped = node.drop_tombstones(root().id(), &[block(1), block(2)]);
    assert_eq!(dropped, [block(1)]);
    for _ in 0..2 {
        push(&mut node, 1, Request::Status);
        let _ = node.turn(NOW, &mut ()).expect("it is in memory");
    }
    assert_eq!(node.keep().elements(), 0);
}
