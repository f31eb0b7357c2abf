use super::*;
use crate::{may_be_replaced, may_start};
use areo_core::config::{Configuration, ConfigurationId, Dap, Descriptor, ServerId};
use areo_core::element::{Element, Form};
use areo_core::limits;
use areo_core::message::{Access, Answer, Body, Labels, Levels, Note, Program, ServerRecord, Want};
use areo_core::object::{DomainId, Name};
use areo_core::pointer::Successors;
use areo_core::server::Identity;
use areo_core::server::record::{ElementHeader, Header};
use areo_core::starts::Starts;
use areo_core::tag::{Tag, Writer};
use areo_store::records::MemoryRecords;
use areo_store::{Disk, LogOptions, MemoryDisk};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

mod beside;
mod notes;
mod pulse;
mod scrub_race;
mod tombstones;

const SIZES: Sizes = Sizes {
    batch: 1 << 20,
    slack: 8 << 10,
    scrub: 64 << 10,
};
const NOW: Instant = Instant(5);
/// Room for two segments, and the files beside them.
const TWO_SEGMENTS: u64 = (8 << 20) + (64 << 10);

type Answers = Vec<(u32, Result<Reply, Refusal>)>;

fn root() -> Arc<Configuration> {
    let servers = vec![ServerId(1)];
    let descriptor = Descriptor::new(DomainId(0), servers, Dap::Abd);
    Configuration::new(descriptor).expect("one server is enough")
}

fn shard() -> Shard<u32> {
    Shard::new(Identity {
        id: ServerId(1),
        incarnation: 1,
        root: root(),
        durable: true,
        max_value_bytes: 1 << 20,
        max_unconfirmed: limits::UNCONFIRMED_ELEMENTS,
        max_ranked: limits::RANKED_VERSIONS,
    })
}

/// A node over a new log.
fn node_on(disk: &MemoryDisk) -> Node<Records<MemoryDisk>, u32> {
    let mut shard = shard();
    let options = LogOptions {
        store_id: 1,
        segment_bytes: 4 << 20,
        reclaim_dead_percent: 50,
        extent: 0,
    };
    let recover = |header, damaged| shard.recover(header, damaged);
    let (records, _) = Records::open(disk.clone(), options, recover).expect("the disk is new");
    shard.recovered(false);
    shard.serve();
    Node::new(shard, records, SIZES)
}

/// A request that changes something durable.
fn register(server: u128) -> Request {
    Request::Know(ServerRecord {
        id: ServerId(server),
        incarnation: 1,
        start: 1,
        resumed: false,
        name: format!("s{server}"),
        address: "host:1".into(),
        admin: String::new(),
        generation: None,
        leaving: 0,
        position: None,
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    })
}

/// A put of an object of its own.
fn put(object: u32, payload_bytes: usize) -> Request {
    let element = Element {
        form: Form::Copy,
        deleted: false,
        length: payload_bytes as u64,
        metadata: Bytes::new(),
        payload: vec![7; payload_bytes].into(),
        checksum: None,
    };
    let access = Access::Put {
        tag: Tag {
            number: 1,
            writer: Writer::default(),
        },
        element,
        write_back: false,
    };
    let name = Name::user(&object.to_string()).expect("a key");
    Request::Configured {
        configuration: root().id(),
        descriptor: Some(root()),
        successors: Successors::default(),
        body: Body::Access(vec![(name, access)]),
    }
}

fn push<K: Keep>(node: &mut Node<K, u32>, caller: u32, request: Request) {
    node.push(Job::Request {
        request,
        caller,
        deadline: None,
    });
}

fn callers(answers: &Answers) -> Vec<u32> {
    answers.iter().map(|(caller, _)| *caller).collect()
}

fn refusals(answers: &Answers) -> Vec<Option<Refusal>> {
    let refusal = |answer: &Result<Reply, Refusal>| answer.as_ref().err().copied();
    answers.iter().map(|(_, answer)| refusal(answer)).collect()
}

/// Even the reply to a query waits for earlier changes (`[X-10 durable-replies]`).
#[test]
fn replies_leave_when_the_commit_has_ended() {
    let mut node = node_on(&MemoryDisk::new());
    push(&mut node, 1, register(2));
    push(&mut node, 2, Request::Status);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert!(
        turn.released.replies.is_empty(),
        "{:?}",
        callers(&turn.released.replies)
    );
    let commit = turn.commit.expect("a record is to be written");
    push(&mut node, 3, Request::Directory);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert!(turn.released.replies.is_empty(), "it reflects the commit");
    assert!(!node.is_ready(), "it waits for the commit");
    let turn = node.committed(commit.run()).expect("it is written");
    assert_eq!(callers(&turn.released.replies), [1, 2]);
    assert!(node.is_ready());
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert!(turn.commit.is_none(), "a query changes nothing");
    assert_eq!(callers(&turn.released.replies), [3]);
}

#[test]
fn a_commit_that_failed_shows_nothing() {
    let disk = MemoryDisk::new();
    let mut node = node_on(&disk);
    push(&mut node, 1, register(2));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    disk.fail_sync(0);
    let commit = turn.commit.expect("a record is to be written");
    assert!(node.committed(commit.run()).is_err());
    push(&mut node, 2, Request::Directory);
    assert!(!node.is_ready(), "nothing is asked of it any more");
    let upkeep = node.upkeep(NOW, &mut ()).expect("it does nothing");
    assert!(upkeep.turn.is_none());
}

/// A node that has written something.
fn node_at_work(disk: &MemoryDisk) -> Node<Records<MemoryDisk>, u32> {
    let mut node = node_on(disk);
    push(&mut node, 1, register(2));
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    let commit = turn.commit.expect("a record is to be written");
    let _ = node.committed(commit.run()).expect("it is written");
    node
}

/// Sends puts of 256 KiB, each followed by a request that changes nothing, and returns the replies.
fn put_and_ask(
    node: &mut Node<Records<MemoryDisk>, u32>,
    objects: Range<u32>,
) -> Vec<Option<Refusal>> {
    let mut answers = Vec::new();
    for caller in objects {
        push(node, caller, put(caller, 256 << 10));
        push(node, caller, Request::Status);
        let turn = node.turn(NOW, &mut ()).expect("it goes on");
        answers.extend(refusals(&turn.released.replies));
        if let Some(commit) = turn.commit {
            let turn = node.committed(commit.run()).expect("there was room");
            answers.extend(refusals(&turn.released.replies));
        }
    }
    answers
}

/// A full disk refuses writes that it has no room for, and requests that change nothing are answered.
#[test]
fn a_full_disk_is_still_read() {
    let disk = MemoryDisk::with_capacity(TWO_SEGMENTS);
    let mut node = node_at_work(&disk);
    disk.set_capacity(Some(0));
    let answers = put_and_ask(&mut node, 2..100);
    assert_eq!(answers[..2], [None, None], "the first segment has room");
    assert_eq!(answers[194..], [Some(Refusal::Full), None]);
    // 4 MiB take no sixteen of them: the spare is for what frees records.
    let taken = answers.iter().step_by(2).filter(|answer| answer.is_none());
    assert!(taken.count() < 16);
}

/// A note is recorded in room that was made for it, or not at all.
#[test]
fn a_full_disk_takes_notes_while_it_has_room_for_them() {
    let disk = MemoryDisk::with_capacity(TWO_SEGMENTS);
    let mut node = node_at_work(&disk);
    disk.set_capacity(Some(0));
    put_and_ask(&mut node, 2..30);
    // Each of them takes a page, and all together more than the disk has.
    for server in 3..2100 {
        let Request::Know(record) = register(server) else {
            unreachable!("it is that request");
        };
        node.push(Job::Note(Note::Serving(record)));
        let turn = node.turn(NOW, &mut ()).expect("it is only full");
        if let Some(commit) = turn.commit {
            let _ = node.committed(commit.run()).expect("there was room");
        }
    }
    let known = node.shard().server().registered().count();
    assert!((2..2000).contains(&known), "{known}");
}

/// A server ended when it had no descriptor for a segment.
#[test]
fn a_node_without_descriptors_refuses_by_name_and_goes_on() {
    let disk = MemoryDisk::new();
    let mut node = node_at_work(&disk);
    disk.set_scarcity(Some(u64::MAX));
    let answers = put_and_ask(&mut node, 2..42);
    assert_eq!(answers[78..], [Some(Refusal::Exhausted), None]);
    let upkeep = node.upkeep(NOW, &mut ()).expect("it goes on");
    assert!(upkeep.turn.is_some_and(|turn| turn.commit.is_none()));
    disk.set_scarcity(None);
    let answers = put_and_ask(&mut node, 42..82);
    assert_eq!(answers[..2], [None, None], "there are descriptors again");
    assert_eq!(answers[78..], [None, None]);
}

#[test]
fn who_does_not_wait_any_more_is_refused() {
    let mut node = node_on(&MemoryDisk::new());
    for (caller, deadline) in [(1, Some(NOW)), (2, Some(Instant(6))), (3, None)] {
        node.push(Job::Request {
            request: Request::Directory,
            caller,
            deadline,
        });
    }
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(callers(&turn.released.replies), [1, 2, 3]);
    let late = Some(Refusal::DeadlinePassed);
    assert_eq!(refusals(&turn.released.replies), [late, None, None]);
    node.drain();
    push(&mut node, 4, Request::Directory);
    let turn = node.turn(NOW, &mut ()).expect("the disk works");
    assert_eq!(refusals(&turn.released.replies), [Some(Refusal::Draining)]);
}

/// Two versions of an object: the older one was let go, and its record came back.
fn versions(key: ConfigurationId, object: usize) -> [Header; 2] {
    let name = format!("{object:->width$}", width = limits::KEY_BYTES);
    let name = Name::user(&name).expect("a key");
    [1, 2].map(|number| {
        let writer = Writer::default();
        Header::Element(ElementHeader {
            key,
            name: name.clone(),
            tag: Tag { number, writer },
            floor: Tag::INITIAL,
            form: Form::Copy,
            deleted: false,
            length: 0,
            bytes: 0,
            metadata: Bytes::new(),
        })
    })
}

/// A server without a disk that started again under its id was counted for versions that it no longer had.
#[test]
fn a_server_without_a_disk_starts_once() {
    let begun = Starts {
        incarnation: 1,
        unconfirmed: Some(7),
    };
    assert!(may_start(true, Starts::NONE));
    assert!(!may_start(true, begun));
    assert!(may_start(false, begun));
    let replaced = [(true, true), (true, false), (false, true), (false, false)];
    assert_eq!(
        replaced.map(|(in_memory, is_drawn)| may_be_replaced(in_memory, is_drawn)),
        [true, false, false, false]
    );
}

/// A server that has to remember more after its start than a batch usually takes went on for ever with turns that took
/// nothing.
#[test]
fn every_turn_takes_something_however_much_is_owed() {
    let (root, mut shard) = (root(), shard());
    shard.recover(Header::Configuration(root.clone()), false);
    let objects = usize::try_from(SIZES.batch).expect("it fits") / limits::KEY_BYTES;
    for header in (0..objects).flat_map(|object| versions(root.id(), object)) {
        shard.recover(header, false);
    }
    shard.recovered(false);
    let mut node = Node::new(shard, MemoryRecords::default(), SIZES);
    assert!(node.owed_bytes() > SIZES.batch);
    push(&mut node, 1, Request::Status);
    let turn = node.turn(NOW, &mut ()).expect("memory does not fail");
    assert_eq!(callers(&turn.released.replies), [1]);
    assert!(matches!(turn.released.replies[0].1, Ok(Reply::Status(_))));
}

/// A record that is larger than a period's share was verified in every period: large values made it as fast as the disk.
#[test]
fn verification_keeps_its_rate_and_says_how_far_it_is() {
    let mut node = node_on(&MemoryDisk::new());
    for object in 0..16 {
        push(&mut node, object, put(object, 200 << 10));
        let turn = node.turn(NOW, &mut ()).expect("the disk works");
        let commit = turn.commit.expect("a record is to be written");
        let _ = node.committed(commit.run()).expect("it is written");
    }
    let mut period = |now| {
        let before = node.scrubbing().bytes;
        let upkeep = node.upkeep(Instant(now), &mut ()).expect("it works");
        if let Some(commit) = upkeep.turn.and_then(|turn| turn.commit) {
            let _ = node.committed(commit.run()).expect("it is written");
        }
        let scrubbing = *node.scrubbing();
        (scrubbing.bytes - before, scrubbing.oldest(Instant(now)))
    };
    let share = SIZES.scrub;
    let (mut verified, mut periods, mut first) = (0, 0, None);
    while first.is_none() {
        periods += 1;
        let (bytes, oldest) = period(periods);
        verified += bytes;
        assert!(periods < 1000, "it gets on");
        assert!(
            verified <= periods * share + (210 << 10),
            "period {periods}"
        );
        first = oldest;
    }
    // From anywhere to the end, and all once more.
    assert!(verified >= 16 * (200 << 10), "{verified}");
    assert!(first < Some(Duration::from_nanos(periods)));
    // A round takes that long, and what was verified first is as old.
    let round = 16 * (200 << 10) / share;
    assert!(first >= Some(Duration::from_nanos(round - 2)), "{first:?}");

    // A later process goes on there, and knows how old what was verified is.
    let progress = node
        .scrub_progress(Instant(periods))
        .expect("there is a disk");
    assert_eq!(progress.all_age, first);
    let mut later = node_on(&MemoryDisk::new());
    let slept = Duration::from_mins(1);
    let aged = |age: Option<Duration>| age.map(|age| age + slept);
    let progress = ScrubProgress {
        round_age: aged(progress.round_age),
        all_age: aged(progress.all_age),
        ..progress
    };
    later.resume_scrub(NOW, progress);
    assert_eq!(
        later.scrub_progress(NOW).map(|it| it.all_age),
        Some(progress.all_age)
    );
    assert_eq!(later.scrubbing().oldest(NOW), aged(first));
    push(&mut later, 1, Request::Status);
    let turn = later.turn(NOW, &mut ()).expect("the disk works");
    let unscrubbed = match &turn.released.replies[..] {
        [(1, Ok(Reply::Status(status)))] => status.unscrubbed_ms,
        others => panic!("{others:?}"),
    };
    assert_eq!(unscrubbed, Some(60_000));
}

/// The parts of an answer to a query that damage changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Element,
    /// The tag of the lost version, without an element (`[X-40 named-loss]`).
    Loss,
}

fn said_by(reply: &Reply) -> Said {
    match reply {
        Reply::Access(answers) => match &answers[..] {
            [Answer::Held(held)] => match (held.stored.last(), &held.element) {
                (Some((_, Form::Trimmed)), None) => Said::Loss,
                (Some((tag, _)), Some((carried, _))) if tag == carried => Said::Element,
                _ => panic!("{held:?}"),
            },
            others => panic!("{others:?}"),
        },
        others => panic!("{others:?}"),
    }
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

#[derive(Default)]
struct Damaged(u32);

impl Watch<u32> for Damaged {
    fn damaged(&mut self, _version: Tag) {
        self.0 += 1;
    }
}

/// A node of two objects, of which the first one is damaged on its disk.
fn node_with_damage() -> Node<Records<MemoryDisk>, u32> {
    let disk = MemoryDisk::new();
    let mut node = node_on(&disk);
    for object in 0..2 {
        push(&mut node, object, put(object, 10 << 10));
        let turn = node.turn(NOW, &mut ()).expect("the disk works");
        let commit = turn.commit.expect("a record is to be written");
        let _ = node.committed(commit.run()).expect("it is written");
    }
    damage_payloads(&disk, 7);
    node
}

/// Flips a bit of the first payload of this byte in each file.
fn damage_payloads(disk: &MemoryDisk, byte: u8) {
    let payload = [byte; 1 << 10];
    for file in &disk.list().expect("the disk works") {
        let content = disk.content(file).expect("it is listed");
        if let Some(at) = content.windows(payload.len()).position(|it| it == payload) {
            disk.flip(file, at, 1);
        }
    }
}

fn upkeep(node: &mut Node<Records<MemoryDisk>, u32>, now: u64, watch: &mut Damaged) {
    let upkeep = node.upkeep(Instant(now), watch).expect("it works");
    if let Some(commit) = upkeep.turn.and_then(|turn| turn.commit) {
        let _ = node.committed(commit.run()).expect("it is written");
    }
}

/// Verification finds a damaged record in each round, as long as it is not repaired.
#[test]
fn damage_is_reported_once() {
    let mut node = node_with_damage();
    let (mut damaged, mut rounds, mut oldest) = (Damaged::default(), 0, None);
    for now in 1..1000 {
        upkeep(&mut node, now, &mut damaged);
        let verified = node.scrubbing().oldest(Instant(now));
        rounds += u32::from(verified.is_some() && verified <= oldest);
        oldest = verified;
    }
    assert!(rounds > 2, "{rounds}");
    assert_eq!(damaged.0, 1);
}

#[test]
fn damage_that_a_read_finds_is_reported() {
    let mut node = node_with_damage();
    node.sizes.scrub = 0;
    let mut damaged = Damaged::default();
    upkeep(&mut node, 1, &mut damaged);
    assert_eq!(damaged.0, 0, "nothing was read");
    for (object, said) in [(0, Said::Loss), (0, Said::Loss), (1, Said::Element)] {
        push(&mut node, object, query(object));
        let turn = node.turn(NOW, &mut damaged).expect("the disk works");
        let [(_, Ok(reply))] = &turn.released.replies[..] else {
            panic!("a query changes nothing, and is answered at once")
        };
        assert_eq!(said_by(reply), said);
    }
    upkeep(&mut node, NOW.0 + 1, &mut damaged);
    assert_eq!(damaged.0, 1);
}

/// Notes when the disk is full, and when it has room again.
#[derive(Default)]
struct Room(Vec<bool>);

impl Watch<u32> for Room {
    fn disk_full(&mut self, is_full: bool) {
        self.0.push(is_full);
    }
}

/// The status says that the disk is full while writes are refused, and no longer.
#[test]
fn a_full_disk_says_so_until_it_has_room() {
    let disk = MemoryDisk::new();
    let (mut node, mut room) = (node_on(&disk), Room::default());
    let says = |node: &mut Node<Records<MemoryDisk>, u32>, room: &mut Room| {
        push(node, 0, Request::Status);
        let turn = node.turn(NOW, room).expect("it is only full");
        let [(_, Ok(Reply::Status(status)))] = &turn.released.replies[..] else {
            panic!("a status is answered at once")
        };
        status.full
    };
    assert!(!says(&mut node, &mut room));
    // The first segment has room for some.
    let mut refused = false;
    for caller in 0..20 {
        disk.set_capacity(Some(0));
        push(&mut node, caller, put(caller, 512 << 10));
        let turn = node.turn(NOW, &mut room).expect("it is only full");
        refused = refusals(&turn.released.replies) == [Some(Refusal::Full)];
        assert_eq!(says_after(&mut node, turn, &mut room, says), refused);
        if refused {
            break;
        }
    }
    assert!(refused, "the segments take no more");
    let upkeep = |node: &mut Node<Records<MemoryDisk>, u32>, room: &mut Room| {
        let upkeep = node.upkeep(NOW, room).expect("it works");
        if let Some(commit) = upkeep.turn.and_then(|turn| turn.commit) {
            let _ = node.committed(commit.run()).expect("it is written");
        }
    };
    upkeep(&mut node, &mut room);
    assert!(says(&mut node, &mut room));
    disk.set_capacity(None);
    upkeep(&mut node, &mut room);
    assert!(!says(&mut node, &mut room));
    assert_eq!(room.0, [true, false], "each is said once");
}

/// The result of `says`, once the turn's commit has ended.
fn says_after(
    node: &mut Node<Records<MemoryDisk>, u32>,
    turn: Turn<Records<MemoryDisk>, u32>,
    room: &mut Room,
    says: impl Fn(&mut Node<Records<MemoryDisk>, u32>, &mut Room) -> bool,
) -> bool {
    if let Some(commit) = turn.commit {
        let _ = node.committed(commit.run()).expect("it is written");
    }
    says(node, room)
}
