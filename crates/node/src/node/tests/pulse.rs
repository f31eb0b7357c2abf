//! A node that stood still, and how far its log has come.

use super::*;
use areo_core::message::Enrolment;
use areo_core::timing::STANDSTILL;

fn later(time: Duration) -> Instant {
    NOW.plus(time)
}

/// Lets the node do all that waits, and returns the answers.
fn done(node: &mut Node<Records<MemoryDisk>, u32>, now: Instant) -> Answers {
    let mut answers = Answers::new();
    while node.is_ready() {
        let turn = node.turn(now, &mut ()).expect("the disk works");
        answers.extend(turn.released.replies);
        if let Some(commit) = turn.commit {
            let turn = node.committed(commit.run()).expect("the disk works");
            answers.extend(turn.released.replies);
        }
    }
    answers
}

/// `[X-32 stood-still]`: another process may have taken its place meanwhile.
#[test]
fn after_a_standstill_nothing_is_answered_until_the_start_is_confirmed_again() {
    let mut node = node_on(&MemoryDisk::new());
    assert_eq!(node.beat(NOW), []);
    push(&mut node, 1, put(1, 10));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    let commit = turn.commit.expect("it writes");
    push(&mut node, 2, put(2, 10));
    let awake = later(STANDSTILL + Duration::from_millis(1));
    assert_eq!(node.beat(awake), [1], "its put may be in no other copy");
    let turn = node.committed(commit.run()).expect("the disk works");
    assert!(turn.released.replies.is_empty());
    assert!(!node.is_serving());
    assert_eq!(done(&mut node, awake), [(2, Err(Refusal::Starting))]);
    assert_eq!(node.standstills(), 1);
    node.serve();
    push(&mut node, 3, put(3, 10));
    let answered = done(&mut node, awake);
    assert!(answered[0].1.is_ok(), "{answered:?}");
}

#[test]
fn a_node_that_is_at_work_now_and_then_serves_on() {
    let mut node = node_on(&MemoryDisk::new());
    for beat in 0..10 {
        assert_eq!(node.beat(later(beat * STANDSTILL)), []);
        assert!(node.is_serving());
    }
}

/// No other process can be the server, and none asks where it was.
#[test]
fn a_node_in_memory_serves_on_after_a_standstill() {
    let mut shard = shard();
    shard.serve();
    let mut node = Node::new(shard, MemoryRecords::default(), SIZES);
    assert_eq!(node.beat(NOW), []);
    assert_eq!(node.beat(later(100 * STANDSTILL)), []);
    assert!(node.is_serving());
    assert_eq!(node.standstills(), 0);
    assert_eq!(node.position(), None);
}

/// A member of the root domain may be the first to know that its own place is taken.
#[test]
fn a_node_that_hears_of_a_later_start_of_itself_abstains() {
    let mut node = node_on(&MemoryDisk::new());
    let start = |id, incarnation| {
        let record = ServerRecord {
            incarnation,
            start: 7,
            ..ServerRecord::at_address(ServerId(id), "host:1".into())
        };
        let (step, record) = (Enrolment::Register, Box::new(record));
        Request::Configured {
            configuration: root().id(),
            descriptor: Some(root()),
            successors: Successors::default(),
            body: Body::Register { step, record },
        }
    };
    for (id, incarnation) in [(1, 1), (2, 9)] {
        push(&mut node, 1, start(id, incarnation));
        assert_eq!(done(&mut node, NOW), [(1, Ok(Reply::Registered))]);
        assert!(node.is_serving(), "start {incarnation} of {id}");
    }
    push(&mut node, 1, start(1, 2));
    push(&mut node, 2, put(1, 10));
    let answers = [(1, Ok(Reply::Registered)), (2, Err(Refusal::Starting))];
    assert_eq!(done(&mut node, NOW), answers, "it votes all the same");
}

/// The position of the log rises with every record that must not be lost (`[X-31 log-position]`).
#[test]
fn a_position_rises_with_what_the_server_must_not_lose() {
    let disk = MemoryDisk::new();
    let mut node = node_on(&disk);
    let mut last = node.position().expect("it keeps a log");
    push(&mut node, 1, put(9, 10));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(node.position(), Some(last), "it is not durable");
    let commit = turn.commit.expect("it writes");
    let _released = node.committed(commit.run()).expect("the disk works");
    for object in 0..3 {
        push(&mut node, 1, put(object, 10));
        done(&mut node, NOW);
        let position = node.position().expect("it keeps a log");
        assert!(position > last);
        last = position;
    }
    push(&mut node, 1, register(7));
    done(&mut node, NOW);
    let registered = node.position();
    assert!(registered > Some(last), "a vote, too");
    node.seal().expect("the disk works");
    assert_eq!(node.position(), registered, "a seal holds nothing");
    drop(node);
    assert!(
        node_on(&disk).position() >= registered,
        "never less after a start"
    );
}
