//! CAS and CASGC (`docs/spec` 2.9), and what CASSS shares with them: rounds and bytes, what of a write is seen before its last round, marks through crashes,
//! what stays, and moves to and from other kinds.

use super::reconfiguration::{announce, move_to};
use crate::world::{Actor, Message, World, configuration, name, server, successor, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dap;
use areo_core::error::WriteError;
use areo_core::limits;
use areo_core::message::{Access, Answer, Note, Refusal, Want};
use areo_core::pointer::Pointer;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::timing;
use std::collections::BTreeSet;
use std::sync::Arc;

const LONG: &str = "a value that is longer than a copy may be, of some bytes";
const KINDS: [Dap; 3] = [Dap::Cas { k: 3 }, Dap::CasGc { k: 3 }, Dap::CasSs { k: 3 }];

fn world(dap: Dap, delta: u16) -> (World, Actor, Actor) {
    let c = configuration(5, dap, delta, 16);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// A write of which no server, or only these, hear the last round. Returns its version.
fn unfinished(
    world: &World,
    writer: &Actor,
    (key, text): (&str, &str),
    at: &'static [usize],
) -> Tag {
    world.hold(move |m| m.is_fin() && !m.at(at));
    let failed = world.run(writer.write(key, text));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.lose(Message::is_fin);
    world.release();
    world.held(0, key).stored.last().expect("it was stored").0
}

/// Additional rounds of a write: FIN2 of `casss`.
fn rounds_more(dap: Dap) -> usize {
    usize::from(dap == KINDS[2])
}

fn fin(tag: Tag, want: Want) -> Access {
    let complete = false;
    Access::Finalize {
        tag,
        want,
        complete,
    }
}

fn tag(number: u64) -> Tag {
    let client = ClientId(5);
    let writer = Writer { client, counter: 1 };
    Tag { number, writer }
}

/// Query, PRE, FIN, and of CASSS FIN2; and one round to read, which sends exactly the value.
#[test]
fn a_write_takes_three_rounds_or_four_and_a_quiet_read_one() {
    for dap in KINDS {
        let (world, writer, reader) = world(dap, 1);
        let tag = writer.put("k", LONG);
        assert_eq!(world.gathers(), 3 + rounds_more(dap), "{dap:?}");
        world.settle();
        let elements = dap::elements(&writer.c, &name("k"), &value(LONG));
        let bytes: usize = elements.iter().map(|it| it.payload.len()).sum();
        assert_eq!(
            world.put_bytes(),
            bytes,
            "PRE carries the elements, FIN nothing"
        );
        let (rounds, down, up) = (world.gathers(), world.element_bytes(), world.put_bytes());
        assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
        assert_eq!(world.gathers() - rounds, 1, "{dap:?}");
        assert_eq!(world.element_bytes() - down, LONG.len(), "{dap:?}");
        assert_eq!(world.put_bytes(), up, "a read puts nothing");
    }
}

/// Without piggybacking each phase asks what comes next: what the experiments count on.
#[test]
fn without_piggybacking_a_round_is_added_to_each_phase() {
    use areo_core::config::Options;
    for dap in KINDS {
        let c = crate::world::with(&configuration(5, dap, 1, 16), Options::ARES);
        let world = World::new(&c, 1);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        writer.put("k", LONG);
        assert_eq!(world.gathers(), 5 + rounds_more(dap), "{dap:?}");
        world.settle();
        let rounds = world.gathers();
        reader.get("k");
        // All members have the version: writing it back asks none, and is no round.
        assert_eq!(world.gathers() - rounds, 4 + rounds_more(dap), "{dap:?}");
    }
}

/// A reader that finds a version whose writer ended half way through FIN completes it with tags: no value goes up. From then
/// on every quorum shows it (`[CAS-2 quorum-of-marks]`).
#[test]
fn a_slow_read_writes_back_tags_and_no_data() {
    for dap in KINDS {
        for text in [LONG, "a copy"] {
            let (world, writer, reader) = world(dap, 1);
            writer.put("k", "before");
            world.settle();
            let tag = unfinished(&world, &writer, ("k", text), &[0]);
            let (rounds, down, up) = (world.gathers(), world.element_bytes(), world.put_bytes());
            assert_eq!(reader.get("k"), (tag, Some(text.into())));
            assert_eq!(world.gathers() - rounds, 2, "{dap:?}");
            assert_eq!(world.put_bytes(), up, "no element goes up");
            assert!(
                world.element_bytes() - down <= text.len() + "before".len(),
                "{dap:?}"
            );
            world.release();
            world.hold(|m| m.at(&[0]));
            assert_eq!(reader.get("k"), (tag, Some(text.into())), "{dap:?}");
        }
    }
}

/// A large element comes with FIN: its length makes no difference.
#[test]
fn a_large_value_takes_no_more_rounds() {
    for dap in KINDS {
        let (world, writer, reader) = world(dap, 1);
        let long = LONG.repeat(20_000);
        assert!(long.len() as u64 > 3 * limits::INLINE_BYTES);
        let tag = writer.put("k", &long);
        world.settle();
        let (rounds, down) = (world.gathers(), world.element_bytes());
        let found = world.run(reader.read("k")).unwrap();
        assert_eq!((found.tag, found.length), (tag, long.len() as u64));
        assert_eq!(world.gathers() - rounds, 2, "{dap:?}");
        assert_eq!(world.element_bytes() - down, long.len(), "{dap:?}");
    }
}

/// Before FIN nothing of a version is there: for reads, stats, listings, other writers and the transfer; and a tombstone
/// hides nothing (`[CAS-8 finalized-listing]`). What comes after is larger all the same.
#[test]
fn a_version_is_invisible_before_its_last_round() {
    for dap in KINDS {
        let (world, writer, reader) = world(dap, 1);
        let old = writer.put("k", "old");
        world.settle();
        unfinished(&world, &writer, ("k", LONG), &[]);
        unfinished(&world, &writer, ("new", LONG), &[]);
        world.hold(Message::is_fin);
        assert!(world.run(writer.delete("k")).is_err());
        world.lose(Message::is_fin);
        world.release();
        assert_eq!(world.held(0, "k").stored.len(), 3, "they are held");
        assert_eq!(reader.get("k"), (old, Some("old".into())));
        assert_eq!(world.run(reader.stat("k")).unwrap().tag, old);
        assert_eq!(reader.get("new"), (Tag::INITIAL, None));
        let page = world.run(reader.list("", "", 10)).unwrap();
        let listed: Vec<_> = page
            .entries
            .iter()
            .map(|it| (it.key.as_str(), it.tag))
            .collect();
        assert_eq!(listed, [("k", old)]);
        let next = successor(&reader.c, 0, 5, Dap::Abd);
        move_to(&world, &reader, &next);
        assert_eq!(reader.get("k"), (old, Some("old".into())), "{dap:?}");
        assert_eq!(world.actor(&next).get("new").1, None);
        assert!(reader.put("k", "newer") > old);
    }
}

/// Schedule T16: FIN, of a writer or of a reader, before PRE; PRE twice. The mark is not lowered, and the element is stored;
/// FIN alone makes no version (`[CAS-4 no-zombies]`).
#[test]
fn rounds_may_come_in_any_order() {
    for dap in KINDS {
        let (world, actor, _) = world(dap, 1);
        let elements = dap::elements(&actor.c, &name("k"), &value(LONG));
        let put = || Access::Put {
            tag: tag(2),
            element: elements[0].clone(),
            write_back: false,
        };
        assert_eq!(
            world.access(0, "k", fin(tag(2), Want::Element)),
            Ok(Answer::Stored)
        );
        let held = world.held(0, "k");
        assert_eq!((held.stable, held.stored.len()), (tag(2), 0), "{dap:?}");
        for _ in 0..2 {
            assert_eq!(world.access(0, "k", put()), Ok(Answer::Stored));
            let held = world.held(0, "k");
            assert_eq!((held.stable, held.stored.len()), (tag(2), 1), "{dap:?}");
        }
        let given = world.access(0, "k", fin(tag(2), Want::Element));
        assert!(matches!(given, Ok(Answer::Fetched(_))), "{given:?}");
        assert_eq!(
            world.access(0, "k", fin(tag(1), Want::Tags)),
            Ok(Answer::Stored)
        );
        assert_eq!(world.held(0, "k").stable, tag(2));
    }
}

/// `[CAS-1 durable-marks]`: what FIN was answered for is there after a crash; `[N-1 bounded-numbers]` holds for it, too; and
/// no note raises a mark, for that would be forgotten.
#[test]
fn a_mark_outlives_a_crash_and_comes_by_a_round_only() {
    for dap in KINDS {
        let (world, actor, _) = world(dap, 1);
        assert_eq!(
            world.access(0, "k", fin(tag(3), Want::Tags)),
            Ok(Answer::Stored)
        );
        world.crash(0);
        world.restart(0, false);
        assert_eq!(world.held(0, "k").stable, tag(3), "{dap:?}");
        let beyond = tag(limits::NUMBER);
        for refused in [beyond, Tag::INITIAL] {
            let answer = world.access(0, "k", fin(refused, Want::Tags));
            assert_eq!(answer, Err(Refusal::TooLarge));
        }
        let confirm = Note::Confirm {
            configuration: actor.c.id(),
            name: name("k"),
            tag: tag(4),
        };
        world.tell(0, confirm);
        assert_eq!(world.held(0, "k").stable, tag(3), "{dap:?}");
    }
    let (world, _, _) = world(Dap::Ec { k: 3 }, 1);
    let answer = world.access(0, "k", fin(tag(3), Want::Tags));
    assert_eq!(answer, Err(Refusal::Malformed));
}

/// A member that knows of a version and has no element of it may be the only one of a quorum to know: a new version is larger
/// all the same. What is listed would not say so.
#[test]
fn a_writer_counts_marks_and_not_what_is_listed() {
    for dap in [Dap::Cas { k: 1 }, Dap::CasGc { k: 1 }, Dap::CasSs { k: 1 }] {
        let c = configuration(3, dap, 1, 16);
        let world = World::new(&c, 1);
        let (writer, other) = (world.actor(&c), world.actor(&c));
        writer.put("k", "old");
        world.settle();
        world.hold(|m| (m.is_put() && m.at(&[2])) || (m.is_fin() && m.at(&[0])));
        writer.put("k", LONG);
        let tag = writer.put("k", LONG);
        world.lose(|m| m.is_put() || m.is_fin());
        world.release();
        world.crash(1);
        assert!(other.put("k", "newer") > tag, "{dap:?}");
        assert_eq!(writer.get("k").1.as_deref(), Some("newer"));
    }
}

/// `[CAS-6 finalized-trimming]`: CASGC keeps the delta + 1 largest finalized versions and everything above; of a quiet object
/// the last. CAS keeps everything, and shows delta + 1.
#[test]
fn finalized_versions_go_and_others_stay() {
    for dap in KINDS {
        let (world, writer, reader) = world(dap, 1);
        for _ in 0..10 {
            writer.put("k", LONG);
        }
        world.settle();
        let pre = unfinished(&world, &writer, ("k", LONG), &[]);
        let is_cas = dap == KINDS[0];
        for number in 0..5 {
            assert_eq!(world.numbers(number, "k"), [9, 10, 11], "{dap:?}");
            let elements = world.disk(number, |disk| disk.elements());
            assert_eq!(elements, if is_cas { 11 } else { 3 }, "{dap:?}");
        }
        world.pass(timing::QUIET * 4);
        writer.put("other", LONG);
        world.settle();
        for number in 0..5 {
            let elements = world.disk(number, |disk| disk.elements());
            assert_eq!(elements, if is_cas { 12 } else { 3 }, "{dap:?}");
            assert_eq!(world.held(number, "k").stored.last().unwrap().0, pre);
        }
        assert_eq!(reader.get("k").0.number, 10, "{dap:?}");
    }
}

/// A read whose version goes for newer ones between its two rounds asks again, and returns the newest.
#[test]
fn a_read_that_is_overtaken_asks_again() {
    let (world, writer, reader) = world(Dap::CasGc { k: 3 }, 0);
    writer.put("k", "first, which is longer than a copy");
    world.settle();
    unfinished(
        &world,
        &writer,
        ("k", "second, which is longer than a copy"),
        &[0],
    );
    world.hold(|m| m.is_taking() && !m.is_reply());
    let read = world.spawn(reader.read("k"));
    while world.in_flight(Message::is_taking) < 3 {
        assert!(world.step(), "the reader asks for elements");
    }
    let third = writer.put("k", LONG);
    world.settle();
    world.release();
    while read.borrow().is_none() {
        assert!(world.step(), "the read ends");
    }
    let found = read.borrow_mut().take().expect("it has ended").unwrap();
    assert_eq!(found.tag, third);
}

/// A member may know that a version is complete and have nothing of it, and the others of the quorum that answers have not
/// heard that it is: the listing names it, and knows what it is (`[CAS-8 finalized-listing]`).
#[test]
fn a_listing_names_what_one_member_knows_and_another_holds() {
    for dap in [Dap::Cas { k: 1 }, Dap::CasGc { k: 1 }, Dap::CasSs { k: 1 }] {
        let c = configuration(3, dap, 1, 16);
        let world = World::new(&c, 1);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        writer.put("gone", LONG);
        world.settle();
        world.hold(|m| (m.is_put() && m.at(&[2])) || (m.is_fin() && m.at(&[0])));
        let tag = writer.put("k", LONG);
        world.run(writer.delete("gone")).expect("it is there");
        world.lose(|m| m.is_put() || m.is_fin());
        world.release();
        world.crash(1);
        let page = world
            .run(reader.list("", "", 10))
            .expect("two of three answer");
        let listed = page
            .entries
            .iter()
            .map(|it| (it.key.as_str(), it.tag, it.length));
        let listed: Vec<_> = listed.collect();
        assert_eq!(listed, [("k", tag, LONG.len() as u64)], "{dap:?}");
    }
}

/// A domain goes from kind to kind, and back. Between codes of one form no element is sent.
#[test]
fn a_domain_moves_from_kind_to_kind() {
    let first = configuration(5, Dap::Abd, 1, 8);
    let world = World::of(&first, 9, 1);
    let actor = world.actor(&first);
    let mut last = first.clone();
    for (place, dap, moves) in [
        (0, Dap::CasGc { k: 3 }, false),
        (0, Dap::Ec { k: 3 }, false),
        (0, Dap::CasSs { k: 3 }, false),
        (0, Dap::Cas { k: 3 }, false),
        (4, Dap::CasGc { k: 2 }, true),
        (4, Dap::CasSs { k: 2 }, false),
        (0, Dap::Abd, true),
    ] {
        let text = format!("{LONG} before {dap} comes");
        let tag = actor.put("k", &text);
        actor.put("small", "v");
        actor.put("gone", "v");
        world.run(actor.delete("gone")).expect("it is there");
        world.settle();
        let (next, sent) = (successor(&last, place, 5, dap), world.put_bytes());
        move_to(&world, &actor, &next);
        world.settle();
        assert_eq!(world.put_bytes() > sent, moves, "{dap}");
        for reader in [&actor, &world.actor(&next)] {
            assert_eq!(reader.get("k"), (tag, Some(text.clone())), "{dap}");
        }
        let page = world.run(actor.list("", "", 10)).unwrap();
        let keys: BTreeSet<&str> = page.entries.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, BTreeSet::from(["k", "small"]), "{dap}");
        last = next;
    }
}

/// `[CAS-5 published-before-final]`: when the pointer is final, every quorum of the target shows what was transferred or
/// adopted, although no message follows.
#[test]
fn what_was_moved_is_published_before_the_pointer_is_final() {
    for from in [Dap::Abd, Dap::Ec { k: 3 }] {
        for silent in 0..5 {
            let first = configuration(5, from, 1, 8);
            let world = World::of(&first, 5, 1);
            let actor = world.actor(&first);
            let tag = actor.put("k", LONG);
            world.settle();
            let next = successor(&first, 0, 5, KINDS[1 + silent % 2]);
            move_to(&world, &actor, &next);
            world.lose(|_| true);
            world.hold(move |m| m.at(&[silent]));
            let reader = world.actor(&next);
            assert_eq!(
                reader.get("k"),
                (tag, Some(LONG.into())),
                "{from}, {silent}"
            );
        }
    }
}

/// `[CAS-3 fin-decides]`: a put whose FIN meets a pending successor goes on there, although its PRE met none.
#[test]
fn a_put_goes_on_where_its_last_round_shows_a_successor() {
    for dap in KINDS {
        let c = configuration(5, dap, 1, 8);
        let world = World::of(&c, 9, 1);
        let writer = world.actor(&c);
        let next: Arc<Configuration> = successor(&c, 4, 5, Dap::Abd);
        world.hold(|m| m.is_fin() && !m.is_reply());
        let write = world.spawn(writer.write("k", LONG));
        while world.in_flight(Message::is_fin) < 5 {
            assert!(world.step(), "the writer comes to its last round");
        }
        announce(&world, &c, &Pointer::pending(&next));
        world.release();
        while write.borrow().is_none() {
            assert!(world.step(), "the write ends");
        }
        let tag = write.borrow_mut().take().expect("it has ended").unwrap();
        world.settle();
        assert_eq!(next.position(server(5)), Some(1));
        let held = world.disk(5, |disk| disk.elements());
        assert_eq!(held, 1, "{dap:?}: it is in the next configuration");
        assert_eq!(world.actor(&c).get("k"), (tag, Some(LONG.into())));
    }
}

/// Ten thousand writes leave delta + 1 versions, and a small reply to each query.
#[test]
fn many_writes_leave_few_versions() {
    let (world, writer, _) = world(Dap::CasGc { k: 3 }, 5);
    for _ in 0..10_000 {
        writer.put("k", "v");
    }
    world.settle();
    for number in 0..5 {
        assert!(world.held(number, "k").stored.len() <= 6);
        assert!(world.disk(number, |disk| disk.elements()) <= 6);
    }
}
