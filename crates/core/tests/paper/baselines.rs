//! The baselines of the papers: EC-DAP as published, and EC-DAPopt (`docs/spec` 2.3, 2.4), with their weak points.

use super::reconfiguration::move_to;
use crate::world::{self, Actor, Message, World, configuration, name, successor, value};
use areo_core::config::{Configuration, Dap, Options};
use areo_core::dap;
use areo_core::element::Form;
use areo_core::error::WriteError;
use areo_core::message::{Access, Answer};
use areo_core::tag::Tag;
use std::collections::BTreeSet;
use std::sync::Arc;

const LONG: &str = "a value that is longer than a copy may be";
const CORRECTED: Dap = Dap::Ec { k: 3 };
const PUBLISHED: Dap = Dap::EcPublished { k: 3 };
const OPTIMIZED: Dap = Dap::EcOptimized { k: 3 };
const BASELINES: [Dap; 2] = [PUBLISHED, OPTIMIZED];

fn c(dap: Dap, piggyback: bool, delta: u16) -> Arc<Configuration> {
    let options = match piggyback {
        true => Options::default(),
        false => Options::ARES,
    };
    world::with(&configuration(5, dap, delta, 8), options)
}

fn world(dap: Dap, delta: u16) -> (World, Actor, Actor) {
    let c = c(dap, true, delta);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// Brings a version to these servers only.
fn straggler(world: &World, writer: &Actor, at: &'static [usize]) -> Tag {
    world.hold(move |m| m.is_put() && !m.at(at));
    let failed = world.run(writer.write("k", LONG));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.lose(Message::is_put);
    world.release();
    world.held(at[0], "k").max_tag()
}

/// The list of a server: every tag, and whether its element is there.
fn list(world: &World, number: usize) -> Vec<(Tag, bool)> {
    let held = world.held(number, "k");
    let listed = held.stored.into_iter();
    listed
        .map(|(tag, form)| (tag, form != Form::Trimmed))
        .collect()
}

/// A list has the elements of the delta + 1 largest versions and the tags of all, for ever: the weak point of 2.3. A server
/// that starts again has the same list.
#[test]
fn the_tags_of_trimmed_versions_stay() {
    for dap in BASELINES {
        let (world, writer, reader) = world(dap, 1);
        let tags: Vec<Tag> = (0..10).map(|_| writer.put("k", LONG)).collect();
        world.settle();
        world.pass(areo_core::timing::QUIET * 4);
        let expected: Vec<(Tag, bool)> = (0..).zip(&tags).map(|(i, tag)| (*tag, i >= 8)).collect();
        for number in 0..5 {
            assert_eq!(list(&world, number), expected, "{dap:?}");
            world.crash(number);
            world.restart(number, true);
            assert_eq!(list(&world, number), expected, "{dap:?}");
            let held = world.held(number, "k");
            assert_eq!((held.floor, held.stable), (Tag::INITIAL, Tag::INITIAL));
            assert_eq!(world.disk(number, |disk| disk.payloads().count()), 10);
            let kept = world.disk(number, |disk| {
                disk.payloads().filter(|it| !it.is_empty()).count()
            });
            assert!(kept <= 2, "{kept} elements");
        }
        assert_eq!(reader.get("k"), (tags[9], Some(LONG.into())));
    }
}

/// A put of less than the delta + 1 largest elements comes into the list without its own, and is acknowledged; a trimmed
/// version that is put again stays without.
#[test]
fn a_late_put_is_listed_without_its_element() {
    let (world, writer, _) = world(PUBLISHED, 1);
    world.hold(|m| m.is_put() && m.at(&[4]));
    let tags: Vec<Tag> = (0..3).map(|_| writer.put("k", LONG)).collect();
    world.lose(Message::is_put);
    world.release();
    let elements = dap::elements(&writer.c, &name("k"), &value(LONG));
    let put = |tag| Access::Put {
        tag,
        element: elements[4].clone(),
        write_back: true,
    };
    for tag in [tags[2], tags[1], tags[0], tags[0]] {
        assert_eq!(world.access(4, "k", put(tag)), Ok(Answer::Stored));
    }
    let expected = vec![(tags[0], false), (tags[1], true), (tags[2], true)];
    assert_eq!(list(&world, 4), expected);
    assert_eq!(list(&world, 0), expected);
    let fetch = |tag| Access::Fetch { tag, payload: true };
    assert_eq!(world.access(4, "k", fetch(tags[0])), Ok(Answer::Evicted));
}

/// More than delta writers that did not end took the elements of the newest complete version from too many members: no
/// read ends before one of them does. The corrected EC-DAP reads on (`trimming.rs`).
#[test]
fn a_read_blocks_behind_more_than_delta_writers() {
    for (dap, ends) in [(CORRECTED, true), (PUBLISHED, false), (OPTIMIZED, false)] {
        let (world, writer, reader) = world(dap, 0);
        let first = writer.put("k", LONG);
        world.settle();
        straggler(&world, &writer, &[0, 1]);
        straggler(&world, &writer, &[2]);
        let read = world.run(reader.read("k"));
        match read {
            Ok(found) => assert!(ends && found.tag == first, "{dap:?}"),
            Err(_) => assert!(!ends, "{dap:?}"),
        }
        // Writes do not block, and the next one that ends is read.
        let next = writer.put("k", LONG);
        assert_eq!(reader.get("k").0, next, "{dap:?}");
    }
}

/// `[EC-6 stale-trim]`: the version that completed before two others were begun is never overlooked, because its tag stays
/// where its element does not.
#[test]
fn a_version_that_lost_its_elements_hides_no_complete_one() {
    for dap in BASELINES {
        let (world, writer, reader) = world(dap, 1);
        world.hold(|m| m.is_put() && m.at(&[4]));
        writer.put("k", LONG);
        let complete = writer.put("k", LONG);
        world.lose(Message::is_put);
        world.release();
        straggler(&world, &writer, &[2]);
        straggler(&world, &writer, &[2]);
        // Lists as in [EC-6 stale-trim]: two with the element of the complete version, one with its tag, one without it.
        assert!(list(&world, 2).contains(&(complete, false)));
        world.hold(|m| m.at(&[3]));
        let read = world.run(reader.read("k"));
        assert!(read.is_err(), "{read:?}");
        world.release();
        assert_eq!(reader.get("k").0, complete);
    }
}

/// Rounds of a write, of a read of another client, of its next read, and of the writer's own; and the bytes of elements that
/// the last two were sent.
#[test]
fn reads_write_back_unless_the_reader_did_before() {
    let length = LONG.len();
    for (dap, piggyback, rounds, bytes) in [
        (PUBLISHED, true, [2, 2, 2, 2], [length, length]),
        (PUBLISHED, false, [4, 4, 4, 4], [length, length]),
        (Dap::AbdPublished, true, [2, 2, 2, 2], [length, length]),
        (Dap::AbdPublished, false, [4, 4, 4, 4], [length, length]),
        (OPTIMIZED, true, [2, 2, 1, 1], [0, 0]),
        (OPTIMIZED, false, [4, 4, 3, 3], [0, 0]),
    ] {
        let c = c(dap, piggyback, 1);
        let world = World::new(&c, 1);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        let mut taken = Vec::new();
        let mut sent = Vec::new();
        let mut count = |act: &dyn Fn()| {
            let (rounds, bytes) = (world.gathers(), world.element_bytes());
            act();
            world.settle();
            taken.push(world.gathers() - rounds);
            sent.push(world.element_bytes() - bytes);
        };
        count(&|| assert_eq!(writer.put("k", LONG).number, 1));
        for actor in [&reader, &reader, &writer] {
            count(&|| assert_eq!(actor.get("k").1.as_deref(), Some(LONG)));
        }
        assert_eq!(
            (taken.as_slice(), &sent[2..]),
            (&rounds[..], &bytes[..]),
            "{dap:?}"
        );
    }
}

/// `[C-9 no-empty-call]`: without piggybacking a read writes back; where all members have shown the version there is no member to ask, and the read
/// ends at once: rounds of reads, and no time passes.
#[test]
fn a_write_back_to_no_member_takes_no_time() {
    let mut rounds = BTreeSet::new();
    for seed in 0..40 {
        let dap = if seed % 2 == 0 { Dap::Abd } else { CORRECTED };
        let c = c(dap, false, 1);
        let world = World::new(&c, seed);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        writer.put("k", LONG);
        world.settle();
        let (before, begun) = (world.gathers(), world.now());
        assert_eq!(reader.get("k").1.as_deref(), Some(LONG));
        rounds.insert(world.gathers() - before);
        assert_eq!(world.now(), begun, "{dap:?}: it waited");
    }
    assert_eq!(Vec::from_iter(rounds), [3, 4]);
}

/// EC-DAPopt: a client that names the version that it brought to a quorum gets nothing older, and gets what is newer.
#[test]
fn an_optimized_query_is_answered_with_what_is_newer() {
    let (world, writer, reader) = world(OPTIMIZED, 5);
    let mut tags: Vec<Tag> = (0..4).map(|_| writer.put("k", LONG)).collect();
    world.settle();
    let query = |have| Access::query(areo_core::message::Want::Tags, have);
    for (position, tag) in tags.iter().enumerate() {
        let Ok(Answer::Held(held)) = world.access(0, "k", query(*tag)) else {
            panic!("it answers")
        };
        let listed: Vec<Tag> = held.stored.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(listed, tags[position..]);
    }
    // The writer has the fourth; the fifth is another client's.
    tags.push(reader.put("k", LONG));
    assert_eq!(writer.get("k"), (tags[4], Some(LONG.into())));
}

/// A domain moves between all kinds with what it holds: small values, large ones, and deletions.
#[test]
fn a_domain_moves_between_the_kinds() {
    let kinds = [
        PUBLISHED,
        CORRECTED,
        Dap::EcOptimized { k: 2 },
        Dap::Abd,
        OPTIMIZED,
        Dap::AbdPublished,
        PUBLISHED,
        Dap::Abd,
    ];
    for piggyback in [true, false] {
        let mut last = c(CORRECTED, piggyback, 1);
        let world = World::of(&last, 12, 1);
        let actor = world.actor(&last);
        for (step, dap) in kinds.into_iter().enumerate() {
            for _ in 0..4 {
                actor.put("k", LONG);
                actor.put("small", &format!("{step}"));
            }
            actor.put("gone", LONG);
            world.run(actor.delete("gone")).expect("it was there");
            world.settle();
            let next = successor(&last, step, 5, dap);
            move_to(&world, &actor, &next);
            world.settle();
            for reader in [&actor, &world.actor(&last)] {
                assert_eq!(reader.get("k").1.as_deref(), Some(LONG));
                assert_eq!(reader.get("small").1, Some(format!("{step}")));
                let listed = world.run(reader.list("", "", 100)).expect("a quorum");
                assert_eq!(listed.entries.len(), 2, "{dap:?}");
            }
            last = next;
        }
    }
}
