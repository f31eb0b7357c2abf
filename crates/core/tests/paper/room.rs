//! Full disks and dead writers: what a refused put leaves keeps no reader and no writer from the object (`docs/spec`
//! `[EC-11 acceptance-test]`, `[X-1 support-threshold]`, `[X-3 unconfirmed-cap]`).

use crate::world::{Actor, Message, World, WorldEnv, configuration, name, successor, value, with};
use areo_core::config::{Dap, Options};
use areo_core::consensus::fate::{self, Fate};
use areo_core::element::Form;
use areo_core::error::WriteError;
use areo_core::gather::Visit;
use areo_core::limits::UNCONFIRMED_ELEMENTS;
use areo_core::message::{Access, Answer, Refusal};
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use areo_core::timing::QUIET;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be";
/// Each kind with the members whose disks are full: more than may fail.
const KINDS: [(Dap, &[usize]); 2] = [(Dap::Ec { k: 3 }, &[3, 4]), (Dap::Abd, &[2, 3, 4])];

fn world(dap: Dap) -> (World, Actor, Actor) {
    let c = configuration(5, dap, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// A version of which k members hold a fragment: the disks of the others became full after the writer had asked them.
/// Returns the version before it, and it.
fn leave_a_version(world: &World, writer: &Actor, full: &[usize]) -> (Tag, Tag) {
    let old = writer.put("k", LONG);
    world.settle();
    world.hold(|m| m.is_put() && !m.is_reply());
    let write = world.spawn(writer.write("k", "another value, as long as the first one was"));
    world.settle();
    for number in full {
        world.disk(*number, |disk| disk.is_full = true);
    }
    world.release();
    world.settle();
    let refused = write.borrow_mut().take().expect("it has ended");
    assert!(refused.is_err(), "{refused:?}");
    let left = world.held(0, "k").max_tag();
    let holds = |number: &usize| world.held(*number, "k").stores(left);
    assert!((0..5).all(|number| holds(&number) != full.contains(&number)));
    (old, left)
}

/// Reads, with the answers of one member late: all that are sent before it has read are lost.
fn read_without(world: &World, reader: &Actor, absent: usize) -> Tag {
    world.hold(move |m| m.at(&[absent]));
    let (tag, _) = reader.get("k");
    world.lose(move |m| m.at(&[absent]));
    world.release();
    tag
}

/// A disk that is full has some room for write-backs. So every read succeeds, and none returns less than an earlier one.
#[test]
fn a_write_back_has_room_on_a_full_disk() {
    for ((dap, full), first) in KINDS
        .into_iter()
        .flat_map(|kind| (0..5).map(move |n| (kind, n)))
    {
        let (world, writer, reader) = world(dap);
        let (old, left) = leave_a_version(&world, &writer, full);
        let mut newest = old;
        for absent in (0..5).map(|number| (first + number) % 5) {
            let tag = read_without(&world, &reader, absent);
            assert!(tag >= newest, "{tag} after {newest} without {absent}");
            newest = tag;
        }
        assert_eq!(newest, left, "a reader that could read it completed it");
    }
}

/// If even a write-back has no room, every member's answer shows that the version is not complete, and reads return
/// the version before it.
#[test]
fn a_version_that_cannot_be_completed_is_passed_over() {
    for (dap, full) in KINDS {
        let (world, writer, reader) = world(dap);
        let (old, left) = leave_a_version(&world, &writer, full);
        for number in full {
            world.disk(*number, |disk| disk.is_stuffed = true);
        }
        for _ in 0..3 {
            assert_eq!(reader.get("k"), (old, Some(LONG.into())));
        }
        // Without the answer of a holder of the version before it, the version may be complete there.
        world.hold(|m| m.at(&[4]));
        let read = world.run(reader.read("k"));
        assert!(read.is_err(), "{read:?}");
        world.release();
        for number in full {
            world.disk(*number, |disk| {
                (disk.is_full, disk.is_stuffed) = (false, false);
            });
        }
        assert_eq!(reader.get("k").0, left);
    }
}

/// Six members, k = 4: a version at three of them cannot be read, and two busy members are more than a quorum can do without.
fn wide() -> (World, Actor, Actor) {
    let c = configuration(6, Dap::Ec { k: 4 }, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// Fills members 0, 1, 2 up to the cap with versions of which the others hold nothing: their writers died in the middle.
fn strand(world: &World, writer: &Actor) {
    strand_at_the_end(world, writer);
    for number in 0..3 {
        assert!(world.held(number, "k").stored.len() >= UNCONFIRMED_ELEMENTS);
    }
}

/// [`strand`] in the configuration where the sequence of the writer's domain ends.
fn strand_at_the_end(world: &World, writer: &Actor) {
    world.hold(|m| m.is_put() && m.at(&[3, 4, 5]));
    for _ in 0..UNCONFIRMED_ELEMENTS {
        assert!(world.run(writer.write("k", LONG)).is_err());
        world.lose(|m| m.is_put() && m.at(&[3, 4, 5]));
    }
    world.release();
    world.settle();
}

/// Writes the pointer to a pending successor.
fn begin_a_change(world: &World, actor: &Actor) {
    let next = successor(&actor.c, 0, 6, Dap::Ec { k: 4 });
    let (client, c, pending) = (actor.client(), actor.c.clone(), Pointer::pending(&next));
    let known = world.run(async move { sequence::put_config(&client.env, &c, &pending).await });
    known.expect("a quorum takes it");
}

/// Every put of such an object failed for ever, in a healthy cluster and after a restart: the read that should have made room
/// confirmed the old version, which freed nothing.
#[test]
fn unreadable_versions_do_not_keep_writers_out() {
    for down in [None, Some(0), Some(5)] {
        let (world, writer, reader) = wide();
        let old = writer.put("k", LONG);
        world.settle();
        strand(&world, &writer);
        if let Some(down) = down {
            world.crash(down);
        }
        let calls = world.gathers();
        let tag = world.actor(&reader.c).put("k", "it goes through now");
        assert!(
            tag > old && world.gathers() - calls < 150,
            "{}",
            world.gathers() - calls
        );
        assert_eq!(reader.get("k"), (tag, Some("it goes through now".into())));
        world.settle();
        world.pass(QUIET * 3);
        for number in (0..6).filter(|number| Some(*number) != down) {
            assert_eq!(world.numbers(number, "k"), [tag.number], "server {number}");
        }
        // The next ones take what puts take.
        let calls = world.gathers();
        writer.put("k", LONG);
        assert_eq!(world.gathers() - calls, 2);
    }
}

/// Fence, decision and drop survive restarts: a put that is late brings nothing back, and no cell stays for long.
#[test]
fn a_dropped_version_does_not_come_back() {
    let (world, writer, reader) = wide();
    writer.put("k", LONG);
    world.settle();
    strand(&world, &writer);
    let stranded = world.held(0, "k").max_tag();
    let element = areo_core::dap::elements(&reader.c, &name("k"), &value(LONG));
    world.actor(&reader.c).put("k", "it goes through now");
    // No client says that it did: what is above the version confirmed before stays unconfirmed.
    world.lose(Message::is_note);
    for (number, element) in element.iter().enumerate() {
        world.crash(number);
        world.restart(number, true);
        let put = Access::Put {
            tag: stranded,
            element: element.clone(),
            write_back: number % 2 == 0,
        };
        let refused = world.access(number, "k", put);
        assert_eq!(refused, Err(Refusal::Fenced), "server {number}");
        assert!(!world.held(number, "k").stores(stranded));
    }
    let tag = writer.put("k", LONG);
    world.settle();
    for number in 0..6 {
        assert_eq!(world.held(number, "k").stable, tag);
        let cells = world.disk(number, |disk| {
            let cell = |header: &&Header| matches!(header, Header::Cell { .. });
            disk.headers().filter(cell).count()
        });
        assert_eq!(cells, 0, "what is superseded needs no fate");
    }
}

/// A fence up to this tag that spares no version.
fn fence(upto: Tag) -> Access {
    let spared = Tag::INITIAL;
    Access::Fence { upto, spared }
}

/// A writer whose version was fenced off in the middle of its put has it kept if others could complete it in its place. If
/// not, it gives it up: kept by a writer that then dies, it would stay for ever and be unreadable.
#[test]
fn a_writer_behind_the_fence_keeps_what_others_can_read() {
    for holders in 1..=4 {
        let (world, writer, reader) = wide();
        let old = writer.put("k", LONG);
        world.settle();
        world.hold(move |m| m.is_put() && !m.is_reply() && !m.at(&[0, 1, 2, 3][..holders]));
        let slow = world.spawn(writer.write("k", "the slow one, as long as it must be"));
        world.settle();
        let tag = world.held(0, "k").max_tag();
        for number in holders..6 {
            let fenced = world.access(number, "k", fence(tag));
            assert!(matches!(fenced, Ok(Answer::Held(_))), "{fenced:?}");
        }
        world.release();
        world.pass(Duration::from_millis(500));
        let written = slow.borrow_mut().take().expect("it has ended");
        let is_kept = holders == 4;
        match written {
            Ok(written) => assert!(is_kept && written == tag),
            Err(WriteError::Unknown(_)) => assert!(!is_kept),
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(reader.get("k").0, if is_kept { tag } else { old });
    }
}

/// A reader can return what it alone could put together, although a fence is in its way; and passes over what was dropped.
#[test]
fn a_reader_behind_the_fence_decides() {
    for dropped in [false, true] {
        let (world, writer, reader) = wide();
        let old = writer.put("k", LONG);
        world.settle();
        world.hold(|m| m.is_put() && !m.is_reply() && m.at(&[4, 5]));
        assert!(world.run(writer.write("k", "four of six have it")).is_err());
        world.lose(|m| m.is_put() && m.at(&[4, 5]));
        world.release();
        world.settle();
        let tag = world.held(0, "k").max_tag();
        for number in [4, 5] {
            let fenced = world.access(number, "k", fence(tag));
            assert!(matches!(fenced, Ok(Answer::Held(_))), "{fenced:?}");
        }
        if dropped {
            let (client, c) = (writer.client(), reader.c.clone());
            let fate = world.run(async move {
                let (at, name) = (Visit::new(&c), name("k"));
                let writer = || client.next_writer();
                fate::decide(&client.env, &at, (&name, tag), Fate::Dropped, writer).await
            });
            assert_eq!(fate, Ok(Fate::Dropped));
        }
        let expected = if dropped { old } else { tag };
        assert_eq!(reader.get("k").0, expected);
        assert_eq!(reader.get("k").0, expected);
    }
}

/// Four members that take one unconfirmed version each; the fourth of a writer that died is at this member only.
fn one_at_its_cap(number: usize) -> (World, Actor, Actor) {
    let c = configuration(4, Dap::Ec { k: 2 }, 1, 0);
    let world = World::capped(&c, 4, 1, 1);
    let (writer, reader) = (world.actor(&c), world.actor(&c));
    writer.put("k", LONG);
    world.settle();
    let elsewhere = move |m: &Message| m.is_put() && !m.is_reply() && !m.at(&[number]);
    world.hold(elsewhere);
    assert!(world.run(writer.write("k", LONG)).is_err());
    world.lose(elsewhere);
    world.release();
    world.settle();
    (world, writer, reader)
}

/// A member at its cap leaves a quorum of the others; one that is silent as well leaves none. A writer waited for the silent
/// one until its time was over, and so did every writer after it: none made room.
#[test]
fn a_member_at_its_cap_and_a_silent_one_keep_no_writer_out() {
    for silent in 1..4 {
        for is_based in [false, true] {
            let (world, writer, reader) = one_at_its_cap(0);
            let (old, _) = reader.get("k");
            world.crash(silent);
            let tag = match is_based {
                // Its version is not announced: the put meets the cap.
                true => writer.change("k", "it goes through now", old),
                false => writer.put("k", "it goes through now"),
            };
            assert_eq!(reader.get("k"), (tag, Some("it goes through now".into())));
        }
    }
}

/// A member that is full is not one that keeps a version out: it takes a write-back. Where one raised a fence and another was
/// full, a writer had its version dropped, a reader completed it and returned it, and the next reader passed it over.
#[test]
fn a_version_is_dropped_only_where_a_fence_keeps_it_from_every_quorum() {
    let (world, writer, reader) = one_at_its_cap(2);
    let late = |m: &Message| m.is_put() && !m.is_reply() && m.at(&[1, 3]);
    world.hold(late);
    let _slow = world.spawn(writer.write("k", "the slow one, as long as it must be"));
    world.settle();
    let tag = world.held(0, "k").max_tag();
    let fenced = world.access(3, "k", fence(tag));
    assert!(matches!(fenced, Ok(Answer::Held(_))), "{fenced:?}");
    assert_eq!(world.deliver(|m| m.is_put() && m.at(&[3])), 1);
    world.settle();
    // What the writer sent to the second member arrives now.
    assert!(world.deliver(late) > 0);
    world.release();
    assert_eq!(read_without(&world, &reader, 3), tag);
    assert!(world.lose(Message::is_note) > 0);
    world.disk(0, |disk| {
        disk.rot(|_| true);
        (disk.is_full, disk.is_stuffed) = (true, true);
    });
    world.crash(0);
    world.restart(0, false);
    let lost = world.held(0, "k").stored.pop();
    assert_eq!(lost, Some((tag, Form::Trimmed)));
    assert_eq!(world.actor(&reader.c).get("k").0, tag);
}

/// A put that would be refused is not sent: a cluster whose disks are full keeps nothing of it, and the writer knows that.
#[test]
fn a_version_is_not_sent_where_no_quorum_has_room() {
    for (dap, full) in KINDS {
        let (world, writer, reader) = world(dap);
        let old = writer.put("k", LONG);
        world.settle();
        for number in full {
            world.disk(*number, |disk| disk.is_full = true);
        }
        let bytes = world.put_bytes();
        let refused = world.run(writer.write("k", LONG));
        let Err(WriteError::NotApplied(unavailable)) = refused else {
            panic!("{refused:?}")
        };
        assert!(unavailable.lacks_room());
        assert_eq!(world.put_bytes(), bytes);
        assert!((0..5).all(|number| world.held(number, "k").max_tag() == old));
        // A removal frees, and needs no room.
        world.run(reader.delete("k")).unwrap();
    }
}

/// A coverable write has its tag from the version that it is based on. Unreadable versions above it fill the cap: they
/// go, and its own is spared.
#[test]
fn a_coverable_write_makes_room_above_its_own_version() {
    let (world, writer, reader) = wide();
    let old = writer.put("k", LONG);
    world.settle();
    strand(&world, &writer);
    let tag = reader.change("k", "based on the old version, which is the newest", old);
    assert_eq!(tag.number, old.number + 1);
    assert_eq!(reader.get("k").0, tag);
    world.settle();
    world.pass(QUIET * 3);
    for number in 0..6 {
        assert_eq!(world.numbers(number, "k"), [tag.number]);
    }
}

/// The configuration at whose end members are full need not be final. A client that took it for one read nothing of the one
/// before any more: what was complete there was gone for it.
#[test]
fn room_in_a_pending_configuration_makes_it_no_final_one() {
    let (world, writer, reader) = wide();
    let old = writer.put("other", LONG);
    world.settle();
    begin_a_change(&world, &writer);
    // From here on the versions are those of the second configuration.
    strand_at_the_end(&world, &writer);
    let _ = world.run(reader.write("k", LONG));
    assert_eq!(reader.get("other"), (old, Some(LONG.into())));
}

/// Regression: where servers do not show pointers on their replies, a writer that was refused at the cap of a
/// configuration with a pending successor asked again there until its time was over. Now it makes room in the
/// successor.
#[test]
fn a_writer_at_the_cap_goes_on_to_a_successor_that_no_reply_shows() {
    let c = configuration(6, Dap::Ec { k: 4 }, 1, 0);
    let silent = Options {
        piggyback: false,
        ..Options::default()
    };
    let c = with(&c, silent);
    let world = World::new(&c, 1);
    let (writer, other) = (world.actor(&c), world.actor(&c));
    writer.put("k", LONG);
    world.settle();
    let patient = WorldEnv::new(world.clone(), Duration::from_hours(1));
    let (client, at) = (other.client().with(patient), c.clone());
    let (put, late) = world.begin(|m| m.is_put() && !m.is_reply(), async move {
        let domain = client.domain(&at);
        domain
            .write(&name("k"), &value("after all the others"))
            .await
    });
    strand(&world, &writer);
    begin_a_change(&world, &writer);
    world.put_back(late);
    let calls = world.gathers();
    world.pass(Duration::from_secs(10));
    let written = put.borrow_mut().take();
    assert!(matches!(written, Some(Ok(_))), "{written:?}");
    assert!(world.gathers() - calls < 50, "{}", world.gathers() - calls);
}

/// `[N-1 bounded-numbers]`: what a fence spares is recorded, and a record that says an impossible tag is damage.
#[test]
fn a_fence_spares_no_impossible_version() {
    let (world, writer, _) = wide();
    let tag = writer.put("k", LONG);
    let impossible = Tag {
        number: u64::MAX,
        ..tag
    };
    let upto = Tag {
        number: tag.number + 1,
        ..tag
    };
    for (upto, spared) in [(upto, impossible), (impossible, upto)] {
        let refused = world.access(0, "k", Access::Fence { upto, spared });
        assert_eq!(refused, Err(Refusal::TooLarge));
    }
    assert!(world.held(0, "k").fence.is_initial());
}
