//! The versions that servers keep, and reads and writes at the cap (`docs/spec` `[X-2 get-tag-maximum]` to
//! `[X-4 confirm-write-backs]`).

use crate::world::{Actor, Message, World, configuration, name};
use areo_core::config::Dap;
use areo_core::dap;
use areo_core::error::WriteError;
use areo_core::gather::Visit;
use areo_core::limits::UNCONFIRMED_ELEMENTS;
use areo_core::message::{Access, Answer, Note, Refusal};
use areo_core::tag::{Tag, Writer};
use areo_core::timing::QUIET;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be";

fn world(delta: u16, copy_bytes: u32) -> (World, Actor, Actor) {
    let c = configuration(5, Dap::Ec { k: 3 }, delta, copy_bytes);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

fn get_tag(world: &World, actor: &Actor) -> Tag {
    let (client, c) = (actor.client(), actor.c.clone());
    let tag =
        world.run(async move { dap::get_tag(&client.env, &Visit::new(&c), &name("k")).await });
    tag.expect("a quorum answers")
}

/// An object that was written meanwhile is looked at again after another quiet time.
fn rest(world: &World) {
    world.pass(QUIET * 2);
    world.pass(QUIET * 2);
}

/// Brings a version to these servers only.
fn straggler(world: &World, writer: &Actor, at: &'static [usize]) {
    world.hold(move |m| m.is_put() && !m.at(at));
    let failed = world.run(writer.write("k", LONG));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.lose(|m| m.is_put() || m.is_note());
    world.release();
}

/// `[X-2 get-tag-maximum]`: a confirmation can arrive before the put that it confirms, and get-tag knows of it.
#[test]
fn a_tag_confirmed_before_its_put_counts() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 0);
        let world = World::new(&c, 1);
        let writer = world.actor(&c);
        writer.put("k", "first");
        world.settle();
        let late: &[usize] = if dap == Dap::Abd { &[2, 3, 4] } else { &[4] };
        // All put requests to these are late; a majority, or a quorum, holds the version without them.
        let late: &'static [usize] = if dap == Dap::Abd { &late[1..] } else { late };
        world.hold(move |m| m.is_put() && m.at(late));
        let tag = writer.put("k", "second");
        world.settle();
        for number in late {
            let held = world.held(*number, "k");
            assert!(!held.stores(tag));
            assert_eq!((held.stable, held.max_tag()), (tag, tag));
        }
        assert_eq!(get_tag(&world, &writer), tag);
    }
}

/// `[X-3 unconfirmed-cap]`: with any number of writers, an element at or above the confirmed one stays.
#[test]
fn nothing_at_or_above_the_confirmed_version_is_evicted() {
    let (world, writer, reader) = world(1, 0);
    let confirmed = writer.put("k", LONG);
    world.settle();
    for _ in 0..10 {
        straggler(&world, &writer, &[0, 1]);
    }
    rest(&world);
    for number in [0, 1] {
        assert_eq!(
            world.held(number, "k").stored.len(),
            11,
            "far more than delta + 1"
        );
        assert!(world.held(number, "k").stores(confirmed));
    }
    assert_eq!(reader.get("k"), (confirmed, Some(LONG.into())));
}

/// `[X-3 unconfirmed-cap]`: below the confirmed version the delta + 1 largest stay for readers under way, until the object
/// is quiet; then one version is stored.
#[test]
fn at_rest_one_version_is_stored() {
    let (world, writer, reader) = world(2, 0);
    let mut tags = Vec::new();
    for _ in 0..9 {
        tags.push(writer.put("k", LONG));
        world.settle();
    }
    for number in 0..5 {
        let held = world.held(number, "k");
        assert_eq!(
            held.stored.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
            tags[6..]
        );
        assert_eq!((held.floor, held.stable), (tags[5], tags[8]));
    }
    rest(&world);
    for number in 0..5 {
        let held = world.held(number, "k");
        assert_eq!(
            held.stored.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
            tags[8..]
        );
        assert_eq!(held.floor, tags[7]);
        assert_eq!(world.disk(number, |disk| disk.elements()), 1, "nor on disk");
    }
    assert_eq!(reader.get("k"), (tags[8], Some(LONG.into())));
}

/// A writer that never pauses keeps delta + 1 versions, and no more.
#[test]
fn a_busy_object_keeps_no_more_than_it_needs() {
    let (world, writer, _) = world(2, 0);
    for _ in 0..20 {
        writer.put("k", LONG);
        world.pass(Duration::from_millis(500));
        for number in 0..5 {
            assert!(world.held(number, "k").stored.len() <= 3);
        }
    }
}

/// A put of what trimming would evict at once is acknowledged, and remembered in the floor: durably.
#[test]
fn a_put_far_below_the_confirmed_version_only_raises_the_floor() {
    let (world, writer, _) = world(0, 0);
    world.hold(|m| m.is_put() && m.at(&[4]) && !m.is_reply());
    let late = writer.put("k", LONG);
    // The second write reaches the fifth server, its confirmation too; the first one's put comes last.
    world.release();
    world.hold(move |m| {
        m.at(&[4]) && matches!(m.access(), Some(Access::Put { tag, .. }) if *tag == late)
    });
    let newer = writer.put("k", LONG);
    world.settle();
    assert_eq!(world.held(4, "k").floor, Tag::INITIAL);
    assert_eq!(world.deliver(|m| m.is_put() && m.at(&[4])), 1);
    for _ in 0..3 {
        let held = world.held(4, "k");
        assert_eq!((held.stored.len(), held.floor), (1, late));
        assert!(held.stores(newer));
        world.crash(4);
        world.restart(4, true);
    }
}

/// One-shot writers, whose confirmations are never sent, fill every server up to its cap. The write that finds them full
/// reads, confirms what is complete, and goes on with the same tag (`[X-3 unconfirmed-cap]`, `[X-8 same-pair-retry]`). It
/// used to ask for ever.
#[test]
fn a_write_at_the_cap_goes_through_although_every_confirmation_was_lost() {
    let (world, _, reader) = world(1, 0);
    for _ in 0..UNCONFIRMED_ELEMENTS {
        world.actor(&reader.c).put("k", LONG);
        world.settle_puts_and_lose_notes();
    }
    for number in 0..5 {
        assert_eq!(world.held(number, "k").stored.len(), UNCONFIRMED_ELEMENTS);
    }
    let writer = world.actor(&reader.c);
    let rounds = world.gathers();
    let tag = writer.put("k", "the next one, of which there must be only one version");
    assert_eq!(tag.number, UNCONFIRMED_ELEMENTS as u64 + 1);
    assert_eq!(
        world.gathers() - rounds,
        4,
        "get-tag, the read, get-tag again, and the put"
    );
    rest(&world);
    for number in 0..5 {
        assert_eq!(
            world
                .held(number, "k")
                .stored
                .iter()
                .map(|(tag, _)| *tag)
                .collect::<Vec<_>>(),
            [tag]
        );
    }
}

/// More members than may fail are full of versions that never completed, and the newest readable version is only
/// elsewhere. A reader has to complete it to return it: its write-back is taken in above the cap (`[X-3 unconfirmed-cap]`).
/// Without that neither reads nor writes of the object would ever succeed again.
#[test]
fn a_read_completes_a_version_at_members_that_are_full() {
    for (copy_bytes, elsewhere) in [(0, [2, 3, 4].as_slice()), (64, [4].as_slice())] {
        let (world, writer, reader) = world(1, copy_bytes);
        let first = writer.put("k", LONG);
        world.settle();
        for _ in 0..UNCONFIRMED_ELEMENTS {
            straggler(&world, &writer, &[0, 1]);
        }
        let element = areo_core::dap::elements(&reader.c, &name("k"), &crate::world::value(LONG));
        let newest = Tag {
            number: world.held(0, "k").max_tag().number + 1,
            ..first
        };
        // Its writer asked before the members were full.
        for number in elsewhere {
            let put = Access::Put {
                tag: newest,
                element: element[*number].clone(),
                write_back: false,
            };
            assert_eq!(world.access(*number, "k", put), Ok(Answer::Stored));
        }
        assert!(newest > first && !world.held(0, "k").stores(newest));
        // A put of its own is busy there ...
        let busy = Tag {
            number: newest.number + 1,
            writer: Writer {
                counter: 1,
                ..Writer::default()
            },
        };
        let put = |write_back| Access::Put {
            tag: busy,
            element: element[0].clone(),
            write_back,
        };
        assert_eq!(world.access(0, "k", put(false)), Err(Refusal::Busy));
        // ... but a client that meets the newest version completes it, and that makes room.
        world.hold(|m| m.is_query() && m.at(&[1]));
        assert_eq!(reader.get("k"), (newest, Some(LONG.into())));
        world.release();
        world.settle();
        assert_eq!(world.access(0, "k", put(false)), Ok(Answer::Stored));
        let next = writer.put("k", LONG);
        assert!(next > newest);
        assert_eq!(reader.get("k").0, next);
    }
}

/// Versions do not stay because a confirmation was lost: the next read says it again.
#[test]
fn a_read_confirms_again_what_members_do_not_know() {
    let (world, writer, reader) = world(1, 0);
    for _ in 0..5 {
        writer.put("k", LONG);
        world.settle_puts_and_lose_notes();
    }
    let tag = world.held(0, "k").max_tag();
    assert_eq!(world.held(0, "k").stored.len(), 5);
    let rounds = world.gathers();
    assert_eq!(reader.get("k").0, tag);
    assert_eq!(
        world.gathers() - rounds,
        1,
        "the version is at every quorum"
    );
    rest(&world);
    for number in 0..5 {
        assert_eq!(world.held(number, "k").stored.len(), 1);
    }
    // It is not sent when all members know.
    reader.get("k");
    world.run(reader.stat("k")).unwrap();
    assert_eq!(world.in_flight(Message::is_note), 0);
}

/// `[X-13 highest-final]`: a confirmation for another configuration of the same index says nothing about this one.
#[test]
fn a_confirmation_for_another_configuration_is_ignored() {
    let (world, writer, _) = world(1, 0);
    world.hold(Message::is_note);
    let tag = writer.put("k", LONG);
    let mut note = Note::Confirm {
        configuration: configuration(5, Dap::Abd, 1, 0).id(),
        name: name("k"),
        tag,
    };
    world.tell(0, note.clone());
    assert_eq!(world.held(0, "k").stable, Tag::INITIAL);
    if let Note::Confirm { configuration, .. } = &mut note {
        *configuration = writer.c.id();
    }
    world.tell(0, note);
    assert_eq!(world.held(0, "k").stable, tag);
}

/// `[X-4 confirm-write-backs]`: a read that wrote back confirms, so that servers can trim.
#[test]
fn a_completed_write_back_confirms() {
    let (world, writer, reader) = world(1, 0);
    world.hold(Message::is_note);
    let tag = writer.put("k", LONG);
    world.lose(Message::is_note);
    world.release();
    straggler(&world, &writer, &[0, 1, 2]);
    world.hold(|m| m.at(&[4]) && m.is_query());
    let (newer, _) = reader.get("k");
    assert!(newer > tag);
    world.release();
    world.settle();
    for number in 0..5 {
        assert_eq!(world.held(number, "k").stable, newer);
    }
}
