//! What must be durable before what, and that a server that starts again says what it said (`docs/spec`
//! `[C-3 durable-first]`, `[X-2 get-tag-maximum]`, `[X-10 durable-replies]`, `[X-13 highest-final]`).

use crate::world::{Disk, World, configuration, identity, name, server, value};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dap;
use areo_core::dap::versions::Marks;
use areo_core::element::{Element, Form, Handle, ReplyElement};
use areo_core::instant::Instant;
use areo_core::message::{Access, Answer, Body, HeldVersions, Note, Refusal, Reply, Request, Want};
use areo_core::pointer::Successors;
use areo_core::server::record::{ElementHeader, Header, Step};
use areo_core::shard::Shard;
use areo_core::tag::{ClientId, Tag, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn tag(number: u64) -> Tag {
    let writer = Writer {
        client: ClientId(1),
        counter: number,
    };
    Tag { number, writer }
}

fn request(c: &Arc<Configuration>, access: Access) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: Successors::default(),
        body: Body::Access(vec![(name("k"), access)]),
    }
}

fn element(c: &Configuration, number: u64) -> Element {
    dap::elements(c, &name("k"), &value(&format!("version {number}")))[0].clone()
}

fn put(c: &Arc<Configuration>, number: u64) -> Request {
    let element = element(c, number);
    request(
        c,
        Access::Put {
            tag: tag(number),
            element,
            write_back: false,
        },
    )
}

fn query(c: &Arc<Configuration>) -> Request {
    request(c, Access::query(Want::Element, Tag::INITIAL))
}

fn shard(c: &Arc<Configuration>) -> Shard<&'static str> {
    let mut shard = Shard::new(identity(server(0), 1, c));
    shard.serve();
    shard
}

fn held(reply: &Result<Reply, Refusal>) -> &HeldVersions {
    match reply {
        Ok(Reply::Access(answers)) => match &answers[0] {
            Answer::Held(held) => held,
            answer => panic!("{answer:?} answers no query"),
        },
        reply => panic!("{reply:?} answers no query"),
    }
}

fn version(reply: &Result<Reply, Refusal>) -> (Tag, Vec<u8>) {
    match &held(reply).element {
        Some((tag, ReplyElement::Whole(element))) => (*tag, element.payload.to_vec()),
        other => panic!("{other:?} is no element"),
    }
}

/// `[X-10 durable-replies]`: a batch is closed, made durable, released. A query that saw a put is released with it, not
/// before, and by then everything that it reflects is among the steps.
#[test]
fn replies_are_released_with_the_batch_that_they_reflect() {
    let c = configuration(3, Dap::Abd, 1, 64);
    let (mut shard, mut disk) = (shard(&c), Disk::default());
    shard.receive(Instant(0), "writer", put(&c, 1));
    shard.receive(Instant(0), "reader", query(&c));
    let steps = shard.close();
    let appended = |step: &Step| match step {
        Step::Append { header, .. } => match &**header {
            Header::Element(element) => Some(element.tag),
            _ => None,
        },
        Step::Free(_) | Step::Bury { .. } => None,
    };
    assert_eq!(
        steps.iter().filter_map(appended).collect::<Vec<_>>(),
        [tag(1)]
    );
    // A crash here loses the batch, and no reply has shown it.
    disk.apply(steps);
    let replies = shard.release(&disk).replies;
    assert_eq!(
        replies[0],
        ("writer", Ok(Reply::Access(vec![Answer::Stored])))
    );
    assert_eq!(version(&replies[1].1), (tag(1), b"version 1".to_vec()));
}

#[test]
#[should_panic(expected = "the batch is closed")]
fn nothing_joins_a_batch_that_is_being_made_durable() {
    let c = configuration(3, Dap::Abd, 1, 64);
    let mut shard = shard(&c);
    let _ = shard.close();
    shard.receive(Instant(0), "late", query(&c));
}

/// A version that is superseded in the same batch stays readable for a reply that was promised it; its record goes with
/// the next batch.
#[test]
fn a_superseded_record_is_kept_for_the_replies_of_its_batch() {
    let c = configuration(3, Dap::Abd, 1, 64);
    let (mut shard, mut disk) = (shard(&c), Disk::default());
    shard.receive(Instant(0), "writer", put(&c, 1));
    disk.apply(shard.close());
    shard.release(&disk);
    shard.receive(Instant(0), "early", query(&c));
    shard.receive(Instant(0), "writer", put(&c, 2));
    shard.receive(Instant(0), "late", query(&c));
    let steps = shard.close();
    assert!(
        !steps.iter().any(|step| matches!(step, Step::Free(_))),
        "{steps:?}"
    );
    disk.apply(steps);
    let replies = shard.release(&disk).replies;
    assert_eq!(version(&replies[0].1), (tag(1), b"version 1".to_vec()));
    assert_eq!(version(&replies[2].1), (tag(2), b"version 2".to_vec()));
    assert_eq!(disk.elements(), 2);
    disk.apply(shard.close());
    assert_eq!(disk.elements(), 1, "now it is gone");
    shard.release(&disk);
}

/// Every history of one server: it is stopped and started at random, with its records in any order and those among them
/// that it had dropped. It never says less than before: no smaller maximum, no support lost, no other bytes.
#[test]
fn a_server_that_starts_again_never_says_less() {
    for (dap, delta) in [(Dap::Abd, 1), (Dap::Ec { k: 2 }, 0), (Dap::Ec { k: 2 }, 2)] {
        let c = configuration(4, dap, delta, 64);
        for seed in 0..400 {
            let world = World::new(&c, seed);
            let mut put_so_far = Vec::new();
            for _ in 0..30 {
                let number = 1 + world.below(8) as u64;
                let (element, write_back) = (element(&c, number), false);
                match world.below(8) {
                    0..=4 => {
                        let access = Access::Put {
                            tag: tag(number),
                            element,
                            write_back,
                        };
                        assert_eq!(world.access(0, "k", access), Ok(Answer::Stored));
                        put_so_far.push(tag(number));
                    }
                    5 if put_so_far.contains(&tag(number)) => {
                        let confirm = Note::Confirm {
                            configuration: c.id(),
                            name: name("k"),
                            tag: tag(number),
                        };
                        world.tell(0, confirm);
                    }
                    6 => world.pass(Duration::from_secs(3)),
                    _ => {}
                }
                let before = world.held(0, "k");
                for _ in 0..world.below(3) {
                    world.crash(0);
                    world.restart(0, world.below(2) == 0);
                    check_restart(&world, &c, dap, &before, &put_so_far);
                }
            }
        }
    }
}

fn check_restart(
    world: &World,
    c: &Arc<Configuration>,
    dap: Dap,
    before: &HeldVersions,
    put: &[Tag],
) {
    let after = world.held(0, "k");
    let largest = |held: &HeldVersions| held.stored.last().map(|(tag, _)| *tag);
    assert_eq!(largest(&after), largest(before));
    assert!(after.floor >= before.floor, "{before:?} became {after:?}");
    for tag in put {
        assert!(
            after.supports(*tag) || dap == Dap::Abd,
            "{tag} was put: {before:?} became {after:?}"
        );
        assert!(!before.stores(*tag) || after.supports(*tag) || dap == Dap::Abd);
    }
    if dap == Dap::Abd {
        assert_eq!(after.stored, before.stored);
    }
    let Some(newest) = largest(&after) else {
        return;
    };
    let answer = world.access(
        0,
        "k",
        Access::Fetch {
            tag: newest,
            payload: true,
        },
    );
    let expected = Element {
        checksum: None,
        ..element(c, newest.number)
    };
    assert_eq!(answer, Ok(Answer::Fetched(ReplyElement::Whole(expected))));
}

/// The floor of an eviction is durable with it, and stays when an older record of it is found after a newer one. It used
/// to go back at the second restart.
#[test]
fn floors_survive_any_number_of_restarts() {
    let c = configuration(4, Dap::Ec { k: 2 }, 0, 64);
    for seed in 0..100 {
        let world = World::new(&c, seed);
        for number in 1..=4 {
            let (element, write_back) = (element(&c, number), false);
            let access = Access::Put {
                tag: tag(number),
                element,
                write_back,
            };
            assert_eq!(world.access(0, "k", access), Ok(Answer::Stored));
            world.tell(
                0,
                Note::Confirm {
                    configuration: c.id(),
                    name: name("k"),
                    tag: tag(number),
                },
            );
        }
        assert_eq!(world.held(0, "k").floor, tag(3));
        for resurrect in [true, false, true, false] {
            world.crash(0);
            world.restart(0, resurrect);
            assert_eq!(world.held(0, "k").floor, tag(3), "seed {seed}");
        }
        assert!(
            world.disk(0, |disk| disk.headers().count()) <= 4,
            "what came back went again"
        );
    }
}

/// `[X-13 highest-final]`, `[C-7 describe-unknown]`: state for a configuration is created from its descriptor only, and a
/// request for another one of the same index is refused for good.
#[test]
fn state_is_created_only_from_a_descriptor() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let ask = |configuration: &Arc<Configuration>, descriptor: Option<&Arc<Configuration>>| {
        let request = Request::Configured {
            configuration: configuration.id(),
            descriptor: descriptor.cloned(),
            successors: Successors::default(),
            body: Body::Access(vec![(name("k"), Access::query(Want::Tags, Tag::INITIAL))]),
        };
        world.ask(0, request).map(|_| ())
    };
    assert_eq!(ask(&c, None), Err(Refusal::UnknownConfiguration));
    assert_eq!(ask(&c, Some(&c)), Ok(()));
    assert_eq!(ask(&c, None), Ok(()));
    world.crash(0);
    world.restart(0, true);
    assert_eq!(ask(&c, None), Ok(()), "it is durable");
    let other = configuration(3, Dap::Abd, 2, 0);
    assert_eq!(ask(&other, Some(&other)), Err(Refusal::Forked));
    let elsewhere = Configuration::new(Descriptor {
        index: 1,
        members: vec![server(1), server(2)],
        ..c.descriptor().clone()
    })
    .unwrap();
    assert_eq!(
        ask(&elsewhere, Some(&elsewhere)),
        Err(Refusal::WrongServer),
        "it is no member"
    );
    assert_eq!(
        ask(&elsewhere, Some(&c)),
        Err(Refusal::UnknownConfiguration)
    );
}

/// Two configurations of different indices keep two independent stores (`[C-6 store-per-configuration]`).
#[test]
fn configurations_do_not_share_objects() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let next = Configuration::new(Descriptor {
        index: 1,
        ..c.descriptor().clone()
    })
    .unwrap();
    let (first, second) = (world.actor(&c), world.actor(&next));
    let tag = first.put("k", "first");
    assert_eq!(second.get("k"), (Tag::INITIAL, None));
    second.put("k", "second");
    assert_eq!(first.get("k"), (tag, Some("first".into())));
}

/// A server that waits for its incarnation to be confirmed answers for nothing, and is asked again.
#[test]
fn a_server_that_does_not_serve_yet_is_asked_again() {
    let c = configuration(3, Dap::Abd, 1, 64);
    let mut shard: Shard<()> = Shard::new(identity(server(0), 1, &c));
    shard.receive(Instant(0), (), put(&c, 1));
    let _ = shard.close();
    let replies = shard.release(&Disk::default()).replies;
    assert_eq!(replies, [((), Err(Refusal::Starting))]);
    assert!(Refusal::Starting.may_pass());
}

/// The size limits of a server hold, and an initial tag cannot be put.
#[test]
fn puts_beyond_the_limits_are_refused() {
    let c = configuration(3, Dap::Abd, 1, 64);
    let world = World::new(&c, 1);
    let element = Element {
        length: (16 << 20) + 1,
        ..element(&c, 1)
    };
    let (tag, write_back) = (tag(1), false);
    let access = Access::Put {
        tag,
        element,
        write_back,
    };
    assert_eq!(world.access(0, "k", access), Err(Refusal::TooLarge));
    assert_eq!(world.held(0, "k").stored, [] as [(Tag, Form); 0]);
}

/// The record of an element of version `number` that says this floor.
fn recorded(c: &Configuration, number: u64, floor: u64) -> Header {
    let element = element(c, number);
    Header::Element(ElementHeader {
        key: c.id(),
        name: name("k"),
        tag: tag(number),
        floor: tag(floor),
        form: element.form,
        deleted: false,
        length: element.length,
        bytes: element.payload.len() as u64,
        metadata: element.metadata,
    })
}

/// Starts a server from these records: its first steps, and the records by their new handles.
fn start(c: &Arc<Configuration>, kept: Vec<Header>) -> (Vec<Step>, BTreeMap<Handle, Header>) {
    let mut shard: Shard<()> = Shard::new(identity(server(0), 1, c));
    let recover = |header: Header| (shard.recover(header.clone(), false), header);
    let records = kept.into_iter().map(recover).collect();
    shard.recovered(false);
    (shard.close(), records)
}

/// `[X-2 get-tag-maximum]`: a version that was dropped and put again has two records if the old one comes back, and only the
/// new one says the floor by now. Whichever is found first, the floor is not lost with the other (found by the simulator,
/// seed 8773).
#[test]
fn a_floor_outlives_the_second_record_of_a_version() {
    let c = configuration(5, Dap::Ec { k: 3 }, 1, 0);
    let described = Header::Configuration(c.clone());
    for order in [[0, 3], [3, 0]] {
        let [first, second] = order.map(|floor| recorded(&c, 1, floor));
        let mut kept = vec![described.clone(), first, second, recorded(&c, 4, 0)];
        // It starts, drops what it does not need, and starts again.
        for _ in 0..3 {
            let (steps, mut records) = start(&c, kept);
            for step in steps {
                match step {
                    Step::Append { handle, header, .. } => drop(records.insert(handle, *header)),
                    Step::Free(handle) | Step::Bury { handle, .. } => {
                        drop(records.remove(&handle));
                    }
                }
            }
            kept = records.into_values().collect();
            let floors = kept.iter().filter_map(|header| match header {
                Header::Element(element) => Some(element.floor),
                Header::Marks { marks, .. } => Some(marks.floor),
                _ => None,
            });
            assert_eq!(
                floors.max(),
                Some(tag(3)),
                "found first: floor {}",
                order[0]
            );
        }
    }
}

/// Records that were dropped come back for as long as the log has not reclaimed them. A server that starts with all that it
/// ever wrote records a floor once, not at every start.
#[test]
fn what_is_recorded_is_not_recorded_at_every_start() {
    for (dap, reversed) in [
        (Dap::Abd, false),
        (Dap::Ec { k: 2 }, false),
        (Dap::Ec { k: 2 }, true),
    ] {
        let c = configuration(4, dap, 0, 64);
        let confirmed = Header::Marks {
            key: c.id(),
            name: name("k"),
            marks: Marks {
                floor: tag(2),
                stable: tag(4),
                ..Marks::default()
            },
        };
        let mut kept = vec![Header::Configuration(c.clone()), confirmed];
        kept.extend((1..=4).map(|number| recorded(&c, number, number - 1)));
        let mut written = Vec::new();
        for _ in 0..4 {
            if reversed {
                kept.reverse();
            }
            let (steps, _) = start(&c, kept.clone());
            let freed = steps
                .iter()
                .filter(|step| !matches!(step, Step::Append { .. }));
            let is_left = kept.len() - freed.count();
            let appended = steps.into_iter().filter_map(|step| match step {
                Step::Append { header, .. } => Some(*header),
                Step::Free(_) | Step::Bury { .. } => None,
            });
            let before = kept.len();
            kept.extend(appended);
            written.push(kept.len() - before);
            // The configuration, the newest element and the marks.
            assert_eq!(is_left + written.last().expect("just pushed"), 3, "{dap:?}");
        }
        assert_eq!(written, [1, 0, 0, 0], "{dap:?}, reversed: {reversed}");
    }
}
