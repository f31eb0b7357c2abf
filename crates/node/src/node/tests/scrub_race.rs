//! A scrub that comes upon the record of an element that was repaired since.

use super::*;

/// A write-back of the version that is damaged, as a read or a repair sends it.
fn write_back(object: u32, payload_bytes: usize) -> Request {
    let mut request = put(object, payload_bytes);
    if let Request::Configured {
        body: Body::Access(accesses),
        ..
    } = &mut request
    {
        for (_, access) in accesses {
            if let Access::Put { write_back, .. } = access {
                *write_back = true;
            }
        }
    }
    request
}

fn query(object: u32) -> Request {
    let name = Name::user(&object.to_string()).expect("a key");
    Request::Configured {
        configuration: root().id(),
        descriptor: None,
        successors: Successors::default(),
        body: Body::Access(vec![(name, Access::query(Want::Element, Tag::INITIAL))]),
    }
}

fn ask(
    node: &mut Node<Records<MemoryDisk>, u32>,
    request: Request,
    watch: &mut Damaged,
) -> Option<Refusal> {
    push(node, 9, request);
    let turn = node.turn(NOW, watch).expect("the disk works");
    let mut replies = turn.released.replies;
    if let Some(commit) = turn.commit {
        replies.extend(
            node.committed(commit.run())
                .expect("it is written")
                .released
                .replies,
        );
    }
    match &replies[..] {
        [(_, Ok(reply))] => reply.refusal(),
        [(_, Err(refusal))] => Some(*refusal),
        others => panic!("{others:?}"),
    }
}

#[test]
fn what_was_repaired_is_not_taken_for_damaged_again() {
    let mut node = node_with_damage();
    let mut damaged = Damaged::default();
    let mut now = 0;
    while damaged.0 == 0 {
        now += 1;
        upkeep(&mut node, now, &mut damaged);
        assert!(now < 100);
    }
    assert_eq!(
        ask(&mut node, query(0), &mut damaged),
        Some(Refusal::Damaged)
    );
    assert_eq!(
        ask(&mut node, write_back(0, 10 << 10), &mut damaged),
        None,
        "it is repaired"
    );
    // No request comes before the store is looked after.
    for _ in 0..3 {
        now += 1;
        upkeep(&mut node, now, &mut damaged);
    }
    assert_eq!(
        ask(&mut node, query(0), &mut damaged),
        None,
        "and goes on to"
    );
    assert_eq!(damaged.0, 1);
}
