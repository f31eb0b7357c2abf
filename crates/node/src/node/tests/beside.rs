//! Reads beside a commit that is held up by its disk (`[X-10 durable-replies]`).

use super::*;
use areo_core::dap;
use areo_core::element::Value;
use areo_core::pointer::Pointer;

type LogNode = Node<Records<MemoryDisk>, u32>;

/// A node with objects 1 and 2 on its disk.
fn node_with_objects(disk: &MemoryDisk) -> LogNode {
    let mut node = node_on(disk);
    for object in [1, 2] {
        push(&mut node, object, put(object, 10 << 10));
        let turn = node.turn(NOW, &mut ()).expect("the disk works");
        let commit = turn.commit.expect("a record is to be written");
        let _ = node.committed(commit.run()).expect("it is written");
    }
    node
}

/// Begins a commit of what the request changes; it is written when the test says so.
fn hold(node: &mut LogNode, caller: u32, request: Request) -> Commit<<MemoryDisk as Disk>::File> {
    push(node, caller, request);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(callers(&turn.released.replies), [0; 0]);
    turn.commit.expect("a record is to be written")
}

/// The callers that a turn answers.
fn answered(node: &mut LogNode) -> Vec<u32> {
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert!(turn.commit.is_none(), "one commit at a time");
    assert!(!node.is_ready(), "each job was looked at once");
    callers(&turn.released.replies)
}

/// A request to the root configuration.
fn asked(successors: Successors, body: Body) -> Request {
    Request::Configured {
        configuration: root().id(),
        descriptor: None,
        successors,
        body,
    }
}

/// Reads waited for the sync of any writer: with 10 ms for a sync, a read of an object that had no writers took 39 ms.
#[test]
fn a_read_of_another_object_is_answered_while_the_commit_is_written() {
    let mut node = node_with_objects(&MemoryDisk::new());
    let commit = hold(&mut node, 10, put(3, 1 << 10));
    push(&mut node, 11, query(3));
    push(&mut node, 12, query(1));
    push(&mut node, 13, put(1, 1 << 10));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    let [(12, Ok(reply))] = &turn.released.replies[..] else {
        panic!("{:?}", callers(&turn.released.replies));
    };
    assert_eq!(said_by(reply), Said::Element, "read beside the commit");
    assert_eq!((node.is_ready(), node.waiting()), (false, 2));
    // What joined the batch has changed nothing yet.
    push(&mut node, 14, query(1));
    push(&mut node, 15, Request::Directory);
    assert_eq!(answered(&mut node), [14, 15]);
    let turn = node.committed(commit.run()).expect("it is written");
    assert_eq!(callers(&turn.released.replies), [10]);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(callers(&turn.released.replies), [11, 13], "in their order");
    assert_eq!((turn.commit.is_none(), node.waiting()), (true, 0));
}

/// A read waits for no request of its turn: it is answered before they change anything.
#[test]
fn a_read_leaves_the_turn_before_the_batch_is_gathered() {
    let mut node = node_with_objects(&MemoryDisk::new());
    for (caller, request) in [(10, put(3, 1 << 10)), (11, query(3)), (12, query(2))] {
        push(&mut node, caller, request);
    }
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(callers(&turn.released.replies), [11, 12]);
    let commit = turn.commit.expect("a record is to be written");
    let turn = node.committed(commit.run()).expect("it is written");
    assert_eq!(callers(&turn.released.replies), [10]);
}

/// A request that is no plain read of something with a name waits for each commit.
#[test]
fn other_requests_join_the_next_batch_in_their_order() {
    let mut node = node_with_objects(&MemoryDisk::new());
    let commit = hold(&mut node, 10, put(3, 1 << 10));
    let servers = asked(Successors::default(), Body::Servers);
    let requests = [Request::Status, servers, query(3)];
    for (caller, request) in (11..).zip(requests) {
        push(&mut node, caller, request);
    }
    assert_eq!(answered(&mut node), [0; 0]);
    push(&mut node, 14, Request::Status);
    let _ = node.committed(commit.run()).expect("it is written");
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(callers(&turn.released.replies), [11, 12, 13, 14]);
}

/// A pointer is a part of what all replies of its configuration reflect, and one that is known and durable is no change.
#[test]
fn a_pointer_is_waited_for_by_all_reads_of_its_configuration() {
    let mut node = node_with_objects(&MemoryDisk::new());
    let next = Configuration::new(Descriptor {
        index: 1,
        ..root().descriptor().clone()
    });
    let pointer = Pointer::pending(&next.expect("one server is enough"));
    let pointed = asked(Successors::from(&pointer), Body::ReadConfig);
    let commit = hold(&mut node, 10, pointed.clone());
    push(&mut node, 1, query(1));
    push(&mut node, 2, Request::Directory);
    assert_eq!(answered(&mut node), [2]);
    let _ = node.committed(commit.run()).expect("it is written");
    assert_eq!(answered(&mut node), [1]);
    let commit = hold(&mut node, 11, put(3, 1 << 10));
    push(&mut node, 12, pointed);
    assert_eq!(answered(&mut node), [12]);
    let _ = node.committed(commit.run()).expect("it is written");
}

/// A commit that failed ends the node; until that is known to the node, nothing that it reads is shown.
#[test]
fn nothing_is_answered_beside_a_commit_that_has_failed() {
    let disk = MemoryDisk::new();
    let mut node = node_with_objects(&disk);
    let commit = hold(&mut node, 10, put(3, 1 << 10));
    disk.fail_sync(0);
    let written = commit.run();
    assert!(written.is_err());
    push(&mut node, 11, query(1));
    let turn = node.turn(NOW, &mut ());
    let error = turn.map(|_| ()).expect_err("the store is broken");
    assert!(matches!(error, NodeError::Broken { .. }), "{error}");
}

/// A request that is refused needs no batch for that.
#[test]
fn a_read_is_refused_beside_the_commit() {
    let mut node = node_with_objects(&MemoryDisk::new());
    let commit = hold(&mut node, 10, put(3, 1 << 10));
    node.push(Job::Request {
        request: query(1),
        caller: 11,
        deadline: Some(NOW),
    });
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    let late = Some(Refusal::DeadlinePassed);
    assert_eq!(refusals(&turn.released.replies), [late]);
    node.drain();
    push(&mut node, 12, query(1));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    let draining = Some(Refusal::Draining);
    assert_eq!(refusals(&turn.released.replies), [draining]);
    let _ = node.committed(commit.run()).expect("it is written");
}

/// An access to an object of a coded domain, which keeps several versions.
fn coded(access: impl FnOnce(&Configuration, &Name) -> Access) -> Request {
    let dap = Dap::Ec { k: 1 };
    let c = Configuration::new(Descriptor::new(DomainId(1), vec![ServerId(1)], dap));
    let (c, name) = (c.expect("one server is enough"), Name::user("1"));
    let name = name.expect("a key");
    let body = Body::Access(vec![(name.clone(), access(&c, &name))]);
    Request::Configured {
        configuration: c.id(),
        descriptor: Some(c),
        successors: Successors::default(),
        body,
    }
}

fn version(number: u8) -> Tag {
    Tag {
        number: number.into(),
        writer: Writer::default(),
    }
}

/// A node with an object in two versions, of which the older one is damaged on its disk.
fn node_with_a_damaged_version() -> LogNode {
    let disk = MemoryDisk::new();
    let mut node = node_on(&disk);
    for number in [1, 2] {
        let put = coded(|c, name| {
            let value = Value::new(Bytes::new(), vec![number; 10 << 10].into());
            Access::Put {
                tag: version(number),
                element: dap::elements(c, name, &value)[0].clone(),
                write_back: false,
            }
        });
        let commit = hold(&mut node, 1, put);
        let _ = node.committed(commit.run()).expect("it is written");
    }
    damage_payloads(&disk, 1);
    node
}

/// The loss of a version is recorded, and the log's position has to reach that record (`[X-31 log-position]`). Turns that closed no batch took the
/// note away that the next one has such a record.
#[test]
fn a_loss_that_a_read_finds_raises_the_position_whatever_comes_before_its_batch() {
    let mut node = node_with_a_damaged_version();
    let before = node.position();
    let fetch = coded(|_, _| Access::Fetch {
        tag: version(1),
        payload: true,
    });
    for (caller, request) in [(1, fetch), (2, Request::Directory)] {
        push(&mut node, caller, request);
        assert_eq!(answered(&mut node), [caller]);
    }
    assert!(node.owed_bytes() > 0, "the loss is to be recorded");
    // There may be no room for it.
    let turn = node.commit(Batch::Open, Vec::new(), &mut ());
    assert!(turn.expect("it goes on").commit.is_none());
    let upkeep = node.upkeep(NOW, &mut ()).expect("it works");
    let commit = upkeep.turn.and_then(|turn| turn.commit);
    let commit = commit.expect("a record is to be written");
    let _ = node.committed(commit.run()).expect("it is written");
    assert!(node.position() > before);
}
