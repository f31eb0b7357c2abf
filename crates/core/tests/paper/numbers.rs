//! Numbers of tags and ballots are bounded (`docs/spec` `[N-1 bounded-numbers]`): what no execution produces is taken from
//! no client, and found on a disk it is damage.

use crate::paper::reconfiguration::reconfigure;
use crate::world::{Actor, World, configuration, name, server, successor};
use areo_core::config::{Configuration, Dap, Descriptor, InvalidConfiguration};
use areo_core::element::{Element, Form};
use areo_core::error::{Obstacle, WriteError};
use areo_core::limits;
use areo_core::message::{Access, Answer, Ballot, Body, CellRequest, Note, Refusal, Reply, Want};
use areo_core::reconfig::ReconfigError;
use areo_core::server::record::Header;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::timing;
use bytes::Bytes;

const WRITER: Writer = Writer {
    client: ClientId(99),
    counter: 1,
};

fn world(dap: Dap) -> (World, Actor) {
    let c = configuration(5, dap, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c))
}

fn tag(number: u64) -> Tag {
    let writer = WRITER;
    Tag { number, writer }
}

fn element(text: &'static str) -> Element {
    Element {
        form: Form::Copy,
        deleted: false,
        length: text.len() as u64,
        metadata: Bytes::new(),
        payload: Bytes::from_static(text.as_bytes()),
        checksum: None,
    }
}

fn put(number: u64, write_back: bool) -> Access {
    Access::Put {
        tag: tag(number),
        element: element("from outside"),
        write_back,
    }
}

fn access(world: &World, server: usize, access: Access) -> Answer {
    let body = Body::Access(vec![(name("k"), access)]);
    match world.ask_configured(server, body) {
        Ok(Reply::Access(mut answers)) => answers.remove(0),
        other => panic!("{other:?}"),
    }
}

/// One put with the largest number that there is made an object unwritable for ever, and ended every process that wrote it.
#[test]
fn a_number_that_is_not_possible_is_refused_and_the_object_stays_writable() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }, Dap::CasSs { k: 3 }] {
        let (world, actor) = world(dap);
        actor.put("k", "before");
        world.settle();
        for number in [limits::NUMBER, 1 << 63, u64::MAX] {
            let (tag, want) = (tag(number), Want::Tags);
            let refused = Answer::Refused(Refusal::TooLarge);
            for server in 0..5 {
                for hostile in [
                    put(number, false),
                    put(number, true),
                    Access::Adopt(tag),
                    Access::query(want, tag),
                    Access::Fetch { tag, payload: true },
                ] {
                    assert_eq!(access(&world, server, hostile), refused);
                }
                let configuration = actor.c.id();
                let name = name("k");
                world.tell(
                    server,
                    Note::Confirm {
                        configuration,
                        name,
                        tag,
                    },
                );
            }
        }
        let written = actor.put("k", "after");
        assert!(written.number < 10, "{written}");
        assert_eq!(actor.get("k"), (written, Some("after".into())));
    }
}

/// The last possible number is taken, and what comes after it is an error of the operation: no process ends.
#[test]
fn after_the_last_number_a_write_ends_with_a_sentence() {
    let (world, actor) = world(Dap::Abd);
    actor.put("k", "before");
    let last = limits::NUMBER - 1;
    for server in 0..5 {
        assert_eq!(access(&world, server, put(last, false)), Answer::Stored);
    }
    let Err(WriteError::NotApplied(failed)) = world.run(actor.write("k", "after")) else {
        panic!("nothing can come after it")
    };
    let Some(Obstacle::NumbersUsedUp(used_up)) = failed.obstacle.as_deref() else {
        panic!("{failed}")
    };
    assert_eq!(used_up.largest, tag(last));
    let Err(WriteError::NotApplied(_)) = world.run(actor.cover("k", "after", tag(last))) else {
        panic!("nothing can come after it")
    };
    let deleted = world.run(actor.delete("k"));
    assert!(deleted.is_err(), "a tombstone is a version, too");
    assert_eq!(actor.get("k").1.as_deref(), Some("from outside"));
    actor.put("another", "key");
}

/// Numbers do not begin anew in the next configuration, of any kind: the version keeps its tag there, for a client that comes from
/// the configuration before as for a new one, and other objects are written as before (0048).
#[test]
fn the_last_number_is_the_last_in_the_next_configuration_too() {
    let kinds = [Dap::Abd, Dap::Ec { k: 3 }, Dap::CasSs { k: 3 }, Dap::Abd];
    let first = configuration(5, kinds[0], 1, 0);
    let world = World::of(&first, 10, 1);
    let early = world.actor(&first);
    let last = limits::NUMBER - 1;
    for server in 0..5 {
        assert_eq!(access(&world, server, put(last, false)), Answer::Stored);
    }
    let mut c = first;
    for (round, dap) in kinds.into_iter().enumerate().skip(1) {
        let next = successor(&c, round % 2 * 5, 5, dap);
        let moved = world.run(reconfigure(early.client(), &c, &next));
        moved.expect("all are up");
        c = next;
        let expected = (tag(last), Some("from outside".to_owned()));
        for actor in [&early, &world.actor(&c)] {
            assert_eq!(actor.get("k"), expected, "{dap:?}");
            let failed = world.run(actor.write("k", "after"));
            let Err(WriteError::NotApplied(failed)) = failed else {
                panic!("nothing can come after it")
            };
            let obstacle = failed.obstacle.as_deref();
            assert!(matches!(obstacle, Some(Obstacle::NumbersUsedUp(_))));
            let copied = actor.put("copy", "from outside");
            assert!(copied.number < 10, "{copied}");
        }
    }
}

/// A server that answers with a number which is not possible counts in no quorum; it ends no client.
#[test]
fn a_reply_that_is_not_possible_is_not_believed() {
    let (world, actor) = world(Dap::Abd);
    let before = actor.put("k", "before");
    world.settle();
    for field in 0..5 {
        world.bend_replies(move |from, reply| {
            let bends = from == server(0) || from == server(1);
            let Some(answers) = reply.answers_mut().filter(|_| bends) else {
                return;
            };
            for answer in answers {
                if let Answer::Held(held) = answer {
                    match field {
                        0 => held.stored.push((tag(u64::MAX), Form::Copy)),
                        1 => held.floor = tag(limits::NUMBER),
                        2 => held.fence = tag(u64::MAX),
                        3 => held.seen = tag(u64::MAX),
                        _ => held.stable = tag(u64::MAX),
                    }
                }
            }
        });
        let written = actor.put("k", "after");
        assert!(written > before && written.number < 10, "{written}");
        assert_eq!(actor.get("k").0, written);
    }
}

/// Found on a disk it is damage: the server abstains for that object, also after a restart, and speaks of others.
#[test]
fn a_record_that_is_not_possible_is_damage() {
    for field in 0..5 {
        let (world, actor) = world(Dap::Ec { k: 3 });
        let first = actor.put("k", "before");
        actor.put("other", "value");
        world.settle();
        let bend = |header: &mut Header| match header {
            Header::Element(element) if element.name == name("k") => match field {
                0 => element.tag = tag(u64::MAX),
                1 => element.floor = tag(limits::NUMBER),
                _ => {}
            },
            Header::Marks {
                name: of, marks, ..
            } if *of == name("k") => match field {
                2 => marks.floor = tag(u64::MAX),
                3 => marks.stable = tag(u64::MAX),
                4 => marks.complete = tag(u64::MAX),
                _ => {}
            },
            _ => {}
        };
        // So that there are marks.
        let second = actor.put("k", "again");
        assert!(second > first);
        world.pass(timing::QUIET * 4);
        for start in 0..3 {
            world.crash(0);
            if start == 0 {
                assert!(world.disk(0, |disk| disk.bend(bend)) > 0, "{field}");
            }
            world.restart(0, false);
            assert_eq!(world.query(0, "k"), Err(Refusal::Damaged), "{field}");
            assert!(world.query(0, "other").is_ok(), "{field}");
        }
        assert_eq!(actor.get("k").0, second);
        // It may have held any version, so that none but the largest of all tells that nothing is lost.
        let third = actor.put("k", "anew");
        world.settle();
        assert_eq!(world.query(0, "k"), Err(Refusal::Damaged), "{field}");
        assert_eq!(actor.get("k"), (third, Some("anew".into())));
    }
}

/// Ballots are bounded, too: no cell takes one, and an acceptor that has one on its disk abstains.
#[test]
fn ballots_are_bounded() {
    let (world, _) = world(Dap::Abd);
    let cell = Bytes::from_static(b"upload-x");
    let ask = |server: usize, step: CellRequest| {
        let cell = cell.clone();
        world.ask_configured(server, Body::Cell { cell, step })
    };
    let ballot = |number| Ballot {
        number,
        proposer: WRITER,
    };
    let value = Bytes::from_static(b"v");
    for number in [limits::NUMBER, u64::MAX] {
        let ballot = ballot(number);
        assert_eq!(
            ask(0, CellRequest::Prepare { ballot }),
            Err(Refusal::TooLarge)
        );
        let value = value.clone();
        let accept = CellRequest::Accept { ballot, value };
        assert_eq!(ask(0, accept), Err(Refusal::TooLarge));
    }
    let ballot = ballot(7);
    assert!(ask(0, CellRequest::Accept { ballot, value }).is_ok());
    world.crash(0);
    let bend = |header: &mut Header| {
        if let Header::Cell { acceptor, .. } = header {
            acceptor.promised.number = u64::MAX;
        }
    };
    assert_eq!(world.disk(0, |disk| disk.bend(bend)), 1);
    world.restart(0, true);
    assert_eq!(ask(0, CellRequest::Query), Err(Refusal::Damaged));
    assert!(ask(1, CellRequest::Query).is_ok());
}

/// A domain that was led to the last index, by a pointer that no execution produces, has no further configuration: the
/// reconfigurer gets an error, and its process does not end.
#[test]
fn after_the_last_index_comes_no_configuration() {
    let at = |index| {
        let first = configuration(3, Dap::Abd, 1, 0);
        Configuration::new(Descriptor {
            index,
            ..first.descriptor().clone()
        })
    };
    let last = at(limits::INDEX - 1).expect("the last one");
    let world = World::new(&last, 1);
    let moved = world.run(reconfigure(world.actor(&last).client(), &last, &last));
    assert_eq!(
        moved,
        Err(ReconfigError::Invalid(InvalidConfiguration::Index))
    );
}

/// Has all members promise this ballot for the object.
fn promise(world: &World, object: &str, number: u64) {
    let proposer = WRITER;
    let ballot = Some(Ballot { number, proposer });
    let (want, have) = (Want::Tags, Tag::INITIAL);
    for server in 0..5 {
        let rank = Access::Rank { ballot, want, have };
        let body = Body::Access(vec![(name(object), rank)]);
        let promised = world.ask_configured(server, body);
        assert!(matches!(promised, Ok(Reply::Access(_))), "{promised:?}");
    }
}

/// One client proposed the last ballot of an object. A client that heard of that could write no other object any more.
#[test]
fn a_ballot_of_one_object_stays_with_that_object() {
    let (world, actor) = world(Dap::Conditional { k: 3 });
    actor.put("other", "before");
    promise(&world, "used up", limits::CLOSING - 1);
    assert_eq!(actor.get("used up"), (Tag::INITIAL, None));
    let used_up = world.run(actor.write("used up", "one more"));
    let Err(WriteError::NotApplied(failed)) = used_up else {
        panic!("{used_up:?}: no ballot is left");
    };
    let obstacle = failed.obstacle.as_deref();
    assert!(matches!(obstacle, Some(Obstacle::NumbersUsedUp(_))));
    let written = actor.put("other", "after");
    assert!(written.number < 10, "{written}");
}

/// An object with a ballot that is far from all clocks, and not the last one, can be used as any other, by clients that have seen
/// the ballot and by those that have not.
#[test]
fn a_ballot_that_is_far_from_clocks_costs_a_round() {
    for number in [
        limits::REMEMBERED_BALLOT - 1,
        limits::REMEMBERED_BALLOT,
        limits::REMEMBERED_BALLOT + 1,
        limits::CLOSING - 1000,
    ] {
        let (world, actor) = world(Dap::Conditional { k: 3 });
        let another = world.actor(&configuration(5, Dap::Conditional { k: 3 }, 1, 0));
        promise(&world, "far", number);
        for round in 0..3 {
            for by in [&actor, &another] {
                let text = format!("written in round {round} above {number}");
                by.put("far", &text);
                world.settle();
                assert_eq!(actor.get("far").1.as_deref(), Some(&*text));
                by.put("other", "a value");
            }
        }
    }
}
