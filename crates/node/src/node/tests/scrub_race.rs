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

fn ask(node: &mut Node<Records<MemoryDisk>, u32>, request: Request, watch: &mut Damaged) -> Reply {
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
    let [(_, Ok(_))] = &replies[..] else {
        panic!("{replies:?}")
    };
    let (_, reply) = replies.remove(0);
    reply.expect("it was looked at")
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
    let said = ask(&mut node, query(0), &mut damaged);
    assert_eq!(said_by(&said), Said::Loss);
    let said = ask(&mut node, write_back(0, 10 << 10), &mut damaged);
    assert_eq!(said.refusal(), None, "it is repaired");
    // No request comes before the store is looked after.
    for _ in 0..3 {
        now += 1;
        upkeep(&mut node, now, &mut damaged);
    }
    let said = ask(&mut node, query(0), &mut damaged);
    assert_eq!(said_by(&said), Said::Element, "and stays so");
    assert_eq!(damaged.0, 1);
}
