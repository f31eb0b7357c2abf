//! A server whose record is damaged names what it has lost, or abstains, and never says that something is missing or older
//! (`docs/spec` `[X-11 damage-abstains]`, `[X-40 named-loss]`).

use crate::world::{Actor, Disk, Message, World, configuration, identity, server};
use areo_core::config::Dap;
use areo_core::element::Form;
use areo_core::instant::Instant;
use areo_core::message::{Access, Labels, Levels, Program, Refusal, Request, ServerRecord};
use areo_core::pointer::Successors;
use areo_core::server::record::Header;
use areo_core::shard::Shard;
use areo_core::tag::Tag;
use areo_core::timing::QUIET;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be";

fn world(n: usize, dap: Dap) -> (World, Actor, Actor) {
    let c = configuration(n, dap, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// Lets every element of a server rot; it finds out when it is asked for one.
fn rot(world: &World, number: usize) {
    assert!(world.disk(number, |disk| disk.rot(|_| true)) > 0);
}

/// Lets a server find out that what it holds has rotted: it alone is asked for its element.
fn discover(world: &World, number: usize) {
    rot(world, number);
    world.crash(number);
    world.restart(number, false);
    assert!(names_loss(world, number, "k"));
}

/// True if the server lists a version without its element, and nothing above it.
fn names_loss(world: &World, number: usize, key: &str) -> bool {
    let held = world.query(number, key).expect("it speaks");
    held.stored
        .last()
        .is_some_and(|(_, form)| *form == Form::Trimmed)
}

/// Rot at any one of three: the answer is the newest version or none, with every other quorum.
#[test]
fn rot_on_one_of_three_replicas_never_shows_an_older_version() {
    for rotten in 0..3 {
        for absent in 0..3 {
            let (world, writer, reader) = world(3, Dap::Abd);
            writer.put("k", "old");
            world.settle();
            // The absent one missed the second write.
            world.hold(move |m| m.at(&[absent]));
            let tag = writer.put("k", "new");
            world.lose(move |m| m.at(&[absent]));
            rot(&world, rotten);
            let result = world.run(reader.read("k"));
            // Two answer. If one of them finds that it is damaged there is no quorum, otherwise this is the newest.
            match result {
                Ok(found) => assert_eq!(found.tag, tag),
                Err(unavailable) => {
                    assert!(
                        rotten != absent && unavailable.answered() < 2,
                        "{unavailable}"
                    );
                }
            }
            world.release();
            assert_eq!(
                reader.get("k"),
                (tag, Some("new".into())),
                "{rotten} rotten, {absent} absent"
            );
        }
    }
}

/// A read that meets the damage repairs it, although the version is at a quorum without that member.
#[test]
fn a_read_repairs_a_damaged_member() {
    for (n, dap) in [(3, Dap::Abd), (5, Dap::Ec { k: 3 })] {
        for rotten in 0..n {
            let (world, writer, reader) = world(n, dap);
            let tag = writer.put("k", LONG);
            world.settle();
            discover(&world, rotten);
            // The damaged member answers before the last of the others.
            let last = (rotten + 1) % n;
            world.hold(move |m| m.at(&[last]) && m.is_reply());
            let read = world.spawn(reader.read("k"));
            world.settle();
            assert_eq!(world.deliver(|m| m.is_query() && m.is_reply()), 1);
            world.settle();
            let found = read.borrow_mut().take();
            if found.is_none() {
                // It waits for the element of the one that is held, or for its acknowledgement.
                world.release();
                world.settle();
            }
            let held = world.held(rotten, "k");
            assert_eq!(
                held.stored.last().map(|(tag, _)| *tag),
                Some(tag),
                "{dap:?}, {rotten}"
            );
            assert_eq!(
                world.disk(rotten, |disk| disk.elements()),
                1,
                "the damaged record is gone"
            );
            assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
        }
    }
}

/// The next write repairs the member, too; the lost version is remembered as evicted.
#[test]
fn a_later_put_repairs_a_damaged_member() {
    for (n, dap) in [(3, Dap::Abd), (5, Dap::Ec { k: 3 })] {
        let (world, writer, reader) = world(n, dap);
        let lost = writer.put("k", LONG);
        world.settle();
        discover(&world, 0);
        let tag = writer.put("k", "newer");
        world.settle();
        let held = world.held(0, "k");
        assert_eq!((held.max_tag(), held.floor), (tag, lost));
        let counts = |number| {
            let status = world.status(number);
            (status.trimmed, status.repaired)
        };
        assert_eq!(counts(0).1, 1);
        // The others let the lost version go for this one, some time.
        world.pass(QUIET * 4);
        for number in 1..n {
            assert_eq!(counts(number), (1, 0), "{dap:?}, {number}");
        }
        world.crash(0);
        world.restart(0, true);
        assert_eq!(world.held(0, "k").floor, lost, "durably");
        assert_eq!(reader.get("k"), (tag, Some("newer".into())));
    }
}

/// A put of an older version repairs nothing: the server still names the version that it lost, after a restart as well.
#[test]
fn a_damaged_member_names_its_loss_across_restarts_and_older_puts() {
    for (n, dap) in [(3, Dap::Abd), (5, Dap::Ec { k: 3 })] {
        let (world, writer, _) = world(n, dap);
        // The older put is on its way to server 0 while the newer one is stored there.
        world.hold(|m| m.is_put() && m.at(&[0]) && !m.is_reply());
        let older = writer.put("k", LONG);
        world.release();
        world.hold(move |m| m.at(&[0]) && m.is_put() && put_tag(m) == Some(older));
        let lost = writer.put("k", LONG);
        world.settle();
        discover(&world, 0);
        let names_it = || {
            let named = world.query(0, "k").expect("it speaks").stored.pop();
            named == Some((lost, Form::Trimmed))
        };
        for _ in 0..3 {
            world.crash(0);
            world.restart(0, true);
            assert!(names_it());
        }
        world.release();
        world.settle();
        assert!(names_it(), "only an older version came");
        world.crash(0);
        world.restart(0, true);
        assert!(names_it());
    }
}

fn put_tag(message: &Message) -> Option<Tag> {
    match message.access() {
        Some(Access::Put { tag, .. }) => Some(*tag),
        _ => None,
    }
}

/// Damage that is found while a reply is made: the reply is a refusal, and the next ones name what was lost.
#[test]
fn damage_found_by_a_read_is_named_from_then_on() {
    let (world, writer, reader) = world(3, Dap::Abd);
    let tag = writer.put("k", "v");
    world.settle();
    for number in 0..3 {
        rot(&world, number);
    }
    let _ = world.run(reader.read("k")).unwrap_err();
    assert!((0..3).any(|number| names_loss(&world, number, "k")));
    // A restart finds all of it, and no server says that it knows of nothing.
    for number in 0..3 {
        world.crash(number);
        world.restart(number, true);
        assert!(names_loss(&world, number, "k"));
    }
    let next = writer.put("k", "next");
    assert!(next > tag, "{tag} is not used again");
    assert_eq!(reader.get("k"), (next, Some("next".into())));
}

/// An older version of several: only its own tag is lost, and stays lost.
#[test]
fn damage_below_the_newest_version_counts_as_eviction() {
    let (world, writer, reader) = world(5, Dap::Ec { k: 3 });
    world.hold(Message::is_note);
    let older = writer.put("k", LONG);
    let newest = writer.put("k", LONG);
    world.settle();
    let is_older = move |header: &Header| matches!(header, Header::Element(e) if e.tag == older);
    assert_eq!(world.disk(0, |disk| disk.rot(is_older)), 1);
    for _ in 0..3 {
        world.crash(0);
        world.restart(0, false);
        let held = world.held(0, "k");
        assert_eq!(
            (held.stored.len(), held.floor, held.max_tag()),
            (1, older, newest)
        );
    }
    assert_eq!(reader.get("k"), (newest, Some(LONG.into())));
}

/// A reader finds damage below the newest version: its memory survives the record.
#[test]
fn damage_below_the_newest_version_is_remembered_durably() {
    let (world, writer, _) = world(5, Dap::Ec { k: 3 });
    world.hold(Message::is_note);
    let older = writer.put("k", LONG);
    let newest = writer.put("k", LONG);
    world.settle();
    rot(&world, 0);
    let (tag, payload) = (older, true);
    let fetch = Access::Fetch { tag, payload };
    assert_eq!(world.access(0, "k", fetch), Err(Refusal::Damaged));
    for resurrect in [false, true, false] {
        let held = world.held(0, "k");
        assert_eq!((held.max_tag(), held.floor), (newest, older));
        // Its other record is as rotten, which was not noticed yet.
        world.disk(0, Disk::mend);
        world.crash(0);
        world.restart(0, resurrect);
    }
}

/// Four of five answers allow no version, the fifth would, and all are far away: the read begins again at once, waits
/// longer each time, and ends.
#[test]
fn a_read_that_needs_every_answer_waits_for_the_last_one() {
    let (world, writer, reader) = world(5, Dap::Ec { k: 3 });
    world.hold(|m| m.is_put() && m.at(&[3]));
    let tag = writer.put("k", LONG);
    world.lose(Message::is_put);
    world.release();
    world.settle();
    // The first server loses its fragment, and a write that reaches no other server makes it speak again.
    discover(&world, 0);
    world.hold(|m| m.is_put() && !m.at(&[0]));
    assert!(world.run(writer.write("k", LONG)).is_err());
    world.lose(Message::is_put);
    world.release();
    assert!(world.held(0, "k").floor == tag && !world.held(3, "k").stores(tag));
    world.latency(Duration::from_millis(100));
    let rounds = world.gathers();
    assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
    assert!(world.gathers() - rounds > 2, "it did begin again");
}

/// A damaged key counts in no quorum of a listing, and other keys are not affected; of a kind whose members abstain.
#[test]
fn a_damaged_object_does_not_speak_in_listings() {
    let (world, writer, reader) = world(3, Dap::EcPublished { k: 1 });
    let tag = writer.put("k", LONG);
    writer.put("other", "v");
    world.settle();
    discover_of(&world, 0, "k");
    let keys = |world: &World, prefix: &str| {
        let page = world.run(reader.list(prefix, "", 10));
        let entries = page.expect("the others are listed").entries.into_iter();
        let listed = entries.map(|e| (e.key, e.damaged));
        listed.collect::<Vec<_>>()
    };
    let both = |damaged| vec![("k".into(), damaged), ("other".into(), false)];
    assert_eq!(keys(&world, ""), both(false));
    // With another one out of reach, no quorum can speak for the key: it is listed as damaged.
    world.crash(1);
    assert_eq!(keys(&world, ""), both(true));
    assert_eq!(keys(&world, "o"), vec![("other".into(), false)]);
    world.restart(1, false);
    // Two damaged ones of three: known at once, not at the deadline.
    discover_of(&world, 1, "k");
    let begin = world.now();
    assert_eq!(keys(&world, ""), both(true));
    assert_eq!(world.now(), begin);
    assert!(tag > Tag::INITIAL);
}

fn discover_of(world: &World, number: usize, key: &'static str) {
    let of_key = move |header: &Header| matches!(header, Header::Element(e) if e.name.key() == key);
    assert_eq!(world.disk(number, |disk| disk.rot(of_key)), 1);
    world.crash(number);
    world.restart(number, false);
    assert_eq!(world.query(number, key), Err(Refusal::Damaged));
}

/// A listing leaves out objects that only a damaged server lists: the version that the server lost may never have
/// completed.
#[test]
fn a_listing_shows_nothing_on_the_word_of_a_damaged_server() {
    let (world, writer, reader) = world(3, Dap::Abd);
    writer.put("k", "v");
    world.run(writer.delete("k")).unwrap();
    world.settle();
    world.hold(|m| m.is_put() && !m.at(&[0]));
    assert!(world.run(writer.write("k", LONG)).is_err());
    world.lose(Message::is_put);
    world.release();
    discover(&world, 0);
    let page = world.run(reader.list("", "", 10)).unwrap();
    assert_eq!(page.entries, [], "the object is deleted");
}

/// Records of which not even the keys are known: nothing is answered for any object, cell, or registration.
#[test]
fn a_server_with_unreadable_records_abstains_from_everything() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let mut shard: Shard<()> = Shard::new(identity(server(0), 2, &c));
    shard.recovered(true);
    shard.serve();
    let body = areo_core::message::Body::Access(Vec::new());
    let configured = Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: Successors::default(),
        body,
    };
    let record = ServerRecord {
        id: server(1),
        incarnation: 1,
        start: 1,
        resumed: false,
        name: "s".into(),
        address: "a".into(),
        admin: "b".into(),
        generation: None,
        leaving: 0,
        position: None,
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    };
    shard.receive(Instant(0), (), configured);
    shard.receive(Instant(0), (), Request::Know(record));
    shard.receive(Instant(0), (), Request::Status);
    let steps = shard.close();
    assert_eq!(steps, []);
    let replies: Vec<_> = shard
        .release(&Disk::default())
        .replies
        .into_iter()
        .map(|((), reply)| reply)
        .collect();
    assert_eq!(replies[..2], [Err(Refusal::Damaged), Err(Refusal::Damaged)]);
    assert!(replies[2].is_ok(), "it says how it is");
}
