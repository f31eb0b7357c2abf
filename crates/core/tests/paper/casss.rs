//! CASSS (`docs/spec` 2.10): what members say to each other, and what stays of an object however its writers end.

use crate::paper::reconfiguration::move_to;
use crate::world::{Actor, Content, Message, World, configuration, name, server, successor, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dap;
use areo_core::error::WriteError;
use areo_core::limits::{GOSSIP_BYTES, NUMBER, UNCONFIRMED_ELEMENTS};
use areo_core::message::{Access, Answer, Gossip, GossipMarks, Note, Refusal, Want};
use areo_core::object::Name;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::timing;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be, of some bytes";
const CASSS: Dap = Dap::CasSs { k: 3 };

fn world(delta: u16) -> (World, Actor, Actor) {
    let c = configuration(5, CASSS, delta, 16);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

fn tag(number: u64) -> Tag {
    let client = ClientId(5);
    let writer = Writer { client, counter: 1 };
    Tag { number, writer }
}

/// A write that ends when its messages for which `filter` holds are lost. Returns its version.
fn dies(world: &World, key: &str, writer: &Actor, filter: fn(&Message) -> bool) -> Tag {
    world.hold(move |m| filter(m) && !m.is_reply());
    let failed = world.run(writer.write(key, LONG));
    assert!(matches!(failed, Err(WriteError::Unknown(_))), "{failed:?}");
    world.lose(filter);
    world.release();
    world.settle();
    let held = (0..world.servers()).map(|number| world.held(number, key).max_tag());
    held.max().expect("there are servers")
}

/// The notes of all servers in the next period, in the order of their numbers: recipient and gossip.
fn said(world: &World) -> Vec<(usize, Gossip)> {
    world.hold(Message::is_note);
    world.pass(timing::GOSSIP);
    let notes = world.set_aside(Message::is_note);
    world.release();
    let said = notes
        .into_iter()
        .filter_map(|message| match message.content {
            Content::Note(Note::Gossip(gossip)) => {
                let to = (0..world.servers()).find(|number| server(*number) == message.server);
                Some((to.expect("it is known"), gossip))
            }
            _ => None,
        });
    said.collect()
}

fn gossip(c: &Configuration, from: usize, key: &str, marks: GossipMarks) -> Note {
    Note::Gossip(Gossip {
        configuration: c.id(),
        from: server(from),
        objects: [(name(key), marks)].into(),
    })
}

fn marks(largest: u64, finalized: u64, complete: u64) -> GossipMarks {
    let of = |number| {
        if number == 0 {
            Tag::INITIAL
        } else {
            tag(number)
        }
    };
    GossipMarks {
        largest: of(largest),
        finalized: of(finalized),
        complete: of(complete),
    }
}

/// FIN2: what a quorum has finalized is known to be complete.
#[test]
fn a_write_ends_with_its_version_known_to_be_complete() {
    let (world, writer, _) = world(1);
    let tag = writer.put("k", LONG);
    world.settle();
    for number in 0..5 {
        let held = world.held(number, "k");
        assert_eq!((held.stable, held.complete), (tag, tag), "{number}");
    }
}

/// One member that knows a version to be complete is enough for a read of one round, where marks are not a quorum; unless the
/// member that is asked for its copy is the one that is silent, or has no mark.
#[test]
fn a_member_that_knows_a_version_to_be_complete_saves_a_round() {
    let mut quick = 0;
    for late in 0..5 {
        let first = (late + 1) % 5;
        for absent in (2..5).map(|place| (late + place) % 5) {
            let (world, writer, reader) = world(1);
            // FIN comes to all but one, FIN2 to one.
            world.hold(move |m| m.is_fin() && m.at(&[late]));
            world.hold(move |m| m.completes() && !m.at(&[first]));
            let write = world.spawn(writer.write("k", "v"));
            world.settle();
            assert!(write.borrow().is_none(), "its last round has no quorum");
            world.lose(Message::is_fin);
            world.release();
            world.hold(move |m| m.at(&[absent]));
            let rounds = world.gathers();
            assert_eq!(reader.get("k").1.as_deref(), Some("v"));
            quick += usize::from(world.gathers() - rounds == 1);
        }
    }
    assert!(quick >= 9, "{quick} of 15");
}

/// A writer ends in the middle of FIN: what one member knows all know soon, without a client; and that it is complete.
#[test]
fn gossip_finishes_what_a_writer_left_in_the_middle_of_fin() {
    let (world, writer, reader) = world(1);
    writer.put("k", "before");
    world.settle();
    let left = dies(&world, "k", &writer, |m| m.is_fin() && !m.at(&[2]));
    assert_eq!(world.held(2, "k").stable, left);
    assert!(world.held(0, "k").stable < left);
    world.let_servers_speak();
    world.pass(timing::GOSSIP);
    world.settle();
    assert!((0..5).all(|number| world.held(number, "k").stable == left));
    world.pass(timing::GOSSIP);
    world.settle();
    for number in 0..5 {
        assert_eq!(world.held(number, "k").complete, left, "{number}");
        world.crash(number);
        world.restart(number, false);
        let held = world.held(number, "k");
        assert_eq!(
            (held.stable, held.complete),
            (left, left),
            "as its disk says"
        );
    }
    let rounds = world.gathers();
    assert_eq!(reader.get("k"), (left, Some(LONG.into())));
    assert_eq!(world.gathers() - rounds, 1);
}

/// Notes are joined: lost, doubled, late ones, and those of a server that is no member, change nothing that is known; a number that
/// is not possible is not believed, and nothing is begun for a version that no round has finalized.
#[test]
fn gossip_only_joins() {
    let (world, actor, _) = world(1);
    let c = &actor.c;
    world.held(0, "k");
    let hear = |from, marks| {
        world.tell(0, gossip(c, from, "k", marks));
        let held = world.held(0, "k");
        (held.seen.number, held.stable.number, held.complete.number)
    };
    assert_eq!(hear(1, marks(9, 0, 0)), (0, 0, 0), "it is not here");
    assert_eq!(hear(1, marks(9, 5, 0)), (9, 5, 0));
    for _ in 0..2 {
        assert_eq!(hear(1, marks(9, 5, 3)), (9, 5, 3), "doubled");
    }
    assert_eq!(hear(2, marks(4, 4, 1)), (9, 5, 3), "late");
    // A quorum of four, with its own: 5, 5, 4, 4.
    assert_eq!(
        hear(3, marks(4, 4, 1)),
        (9, 5, 4),
        "a quorum has the fourth"
    );
    assert_eq!(hear(3, marks(3, 3, 3)), (9, 5, 4), "late");
    assert_eq!(hear(7, marks(20, 20, 20)), (9, 5, 4), "no member");
    assert_eq!(hear(0, marks(20, 20, 20)), (9, 5, 4), "itself");
    let beyond = GossipMarks {
        largest: tag(NUMBER),
        ..marks(9, 9, 9)
    };
    assert_eq!(hear(1, beyond), (9, 5, 4), "not possible");
    assert_eq!(hear(1, marks(6, 6, 7)), (9, 5, 4), "no server says that");
    // What is not here is above all that a writer chooses from.
    assert_eq!(actor.put("k", LONG).number, 10);
}

/// `[CAS-2 quorum-of-marks]`: a member takes a mark for complete that a quorum has, and not for less.
#[test]
fn a_mark_of_fewer_than_a_quorum_is_not_complete() {
    let (world, actor, _) = world(1);
    world.held(0, "k");
    for from in 1..=4 {
        world.tell(0, gossip(&actor.c, from, "k", marks(5, 5, 0)));
        let is_complete = world.held(0, "k").complete == tag(5);
        assert_eq!(is_complete, from >= 3, "{from} others, and itself");
    }
}

/// `[CASSS-3 bounded-versions]`: however many writes, and whether FIN2 comes or not.
#[test]
fn many_writes_leave_few_versions() {
    let (world, writer, _) = world(5);
    for _ in 0..10_000 {
        writer.put("k", "v");
    }
    world.settle();
    for number in 0..5 {
        assert_eq!(world.held(number, "k").stored.len(), 6);
        assert!(world.disk(number, |disk| disk.elements()) <= 6);
    }
}

/// The cap bounds the versions where no FIN2 arrives and members hear nothing of each other.
#[test]
fn versions_are_bounded_without_the_last_round() {
    let c = configuration(5, CASSS, 5, 16);
    let world = World::new(&c, 1);
    let writer = world.actor(&c);
    for _ in 0..200 {
        world.hold(|m| m.completes() && !m.is_reply());
        let write = world.spawn(writer.write("k", "v"));
        world.settle();
        assert!(write.borrow().is_none(), "it waits for its last round");
        world.lose(Message::completes);
        world.release();
    }
    for number in 0..5 {
        let stored = world.held(number, "k").stored.len();
        assert!(
            stored <= UNCONFIRMED_ELEMENTS + 5 + 3,
            "{stored} at {number}"
        );
    }
}

/// `[CASSS-3 bounded-versions]`: a mark without its element is no version. It pushes none out that can be read, written or quiet.
#[test]
fn a_mark_without_its_element_pushes_no_element_out() {
    let (world, writer, reader) = world(1);
    let older = writer.put("k", LONG);
    let whole = writer.put("k", LONG);
    world.settle();
    for number in 3..7 {
        world.tell(0, gossip(&reader.c, 1, "k", marks(number, number, number)));
        let held = world.held(0, "k");
        assert_eq!(held.complete, tag(number));
        assert!(
            held.stores(whole) && held.stores(older),
            "{number} is a mark without an element"
        );
    }
    world.pass(timing::QUIET * 4);
    assert!(world.held(0, "k").stores(whole), "when it is quiet, too");
}

/// Writers died between PRE and FIN until members are at their cap: a writer finishes the newest of them, and what is below goes
/// (`[CASSS-3 bounded-versions]`).
#[test]
fn what_dead_writers_left_is_finished() {
    let c = configuration(5, CASSS, 0, 16);
    let world = World::capped(&c, 5, 1, 4);
    let (writer, reader) = (world.actor(&c), world.actor(&c));
    let old = writer.put("k", "old");
    world.settle();
    let mut last = old;
    for _ in 0..4 {
        last = dies(&world, "k", &writer, Message::is_fin);
    }
    assert_eq!(reader.get("k").0, old, "no round has finalized them");
    let put = world.access(
        0,
        "k",
        Access::Put {
            tag: tag(900),
            element: dap::elements(&c, &name("k"), &value(LONG))[0].clone(),
            write_back: false,
        },
    );
    assert_eq!(put, Err(Refusal::Busy), "the cap is reached");
    let next = writer.put("k", "next");
    world.settle();
    assert!(next > last);
    assert_eq!(reader.get("k"), (next, Some("next".into())));
    for number in 0..5 {
        assert_eq!(world.numbers(number, "k"), [next.number], "{number}");
    }
}

/// Too few members have elements of the newest version that dead writers left: it is dropped, for good (`[CAS-4 no-zombies]`).
#[test]
fn what_dead_writers_left_at_too_few_members_is_dropped() {
    let c = configuration(5, CASSS, 0, 16);
    let world = World::capped(&c, 5, 1, 4);
    let (writer, reader) = (world.actor(&c), world.actor(&c));
    let old = writer.put("k", LONG);
    world.settle();
    let mut late = Vec::new();
    for _ in 0..4 {
        world.hold(|m| m.is_put() && !m.at(&[0, 1]));
        let failed = world.run(writer.write("k", LONG));
        assert!(failed.is_err(), "{failed:?}");
        late.extend(world.set_aside(Message::is_put));
        world.release();
        world.settle();
    }
    assert_eq!(world.held(0, "k").stored.len(), 5);
    // Two of five are at their cap: more than a quorum can do without.
    let next = writer.put("k", LONG);
    assert_eq!(reader.get("k"), (next, Some(LONG.into())));
    world.put_back(late);
    world.settle();
    world.pass(timing::QUIET * 4);
    writer.put("k", LONG);
    world.settle();
    assert!(next > old);
    for number in 0..5 {
        assert_eq!(
            world.held(number, "k").stored.len(),
            1,
            "{number}: no zombies"
        );
    }
}

/// A mark of which no member has an element: a read asks again, and does not keep members busy, until a write takes the place of the
/// mark (`[CASSS-4 stabilization-bound]`).
#[test]
fn a_read_of_a_mark_without_elements_asks_more_and_more_seldom() {
    let (world, writer, reader) = world(1);
    writer.put("k", LONG);
    world.settle();
    for number in 0..5 {
        let from = (number + 1) % 5;
        world.tell(number, gossip(&writer.c, from, "k", marks(9, 9, 9)));
    }
    let (rounds, begun) = (world.gathers(), world.now());
    let found = world.run(reader.read("k"));
    assert!(found.is_err(), "{found:?}");
    let (rounds, time) = (world.gathers() - rounds, world.now().since(begun));
    let least = 20 * time.as_secs() as usize;
    assert!(time >= Duration::from_secs(2), "{time:?}");
    assert!(
        (least / 4..2 * least).contains(&rounds),
        "{rounds} in {time:?}"
    );
    let written = writer.put("k", "v");
    assert_eq!(written.number, 10);
    assert_eq!(reader.get("k"), (written, Some("v".into())));
}

/// A member sends at most [`GOSSIP_BYTES`] in a period, and little about each object. Changes come first, and every
/// object has its turn.
#[test]
fn gossip_is_bounded_and_the_turn_comes_round() {
    let (world, writer, _) = world(0);
    writer.put("k", "v");
    world.settle();
    world.let_servers_speak();
    for (_, gossip) in said(&world) {
        assert_eq!(gossip.objects.len(), 1);
        let bytes = Gossip::HEAD_BYTES + GossipMarks::bytes(2);
        assert!(bytes <= 200, "a quiet object costs little");
    }
    let keys: Vec<String> = (0..2000).map(|number| format!("key-{number:04}")).collect();
    for key in &keys {
        let fin = Access::Finalize {
            tag: tag(1),
            want: Want::Tags,
            complete: true,
        };
        assert_eq!(world.access(0, key, fin), Ok(Answer::Stored));
    }
    let entry = GossipMarks::bytes(1 + keys[0].len());
    let periods = (2001 * entry).div_ceil(GOSSIP_BYTES - Gossip::HEAD_BYTES - entry);
    // First all that changed, then everything in turn.
    for changed in [true, false] {
        let mut heard = BTreeSet::new();
        for period in 0..=periods {
            if changed && period == 1 {
                let fin = Access::Finalize {
                    tag: tag(2),
                    want: Want::Tags,
                    complete: true,
                };
                assert_eq!(world.access(0, "a new one", fin), Ok(Answer::Stored));
            }
            let from_first = said(&world).into_iter().filter(|(to, _)| *to == 1);
            let from_first = from_first.filter(|(_, gossip)| gossip.from == server(0));
            let notes: Vec<Gossip> = from_first.map(|(_, gossip)| gossip).collect();
            assert_eq!(notes.len(), 1, "one note for each member");
            let names = notes[0].objects.iter().map(|(name, _)| name);
            let bytes = names.map(|name| GossipMarks::bytes(name.as_bytes().len()));
            assert!(bytes.sum::<usize>() + Gossip::HEAD_BYTES <= GOSSIP_BYTES);
            heard.extend(notes[0].objects.iter().map(|(name, _)| name.clone()));
            if changed && period == 1 {
                assert!(
                    heard.contains(&name("a new one")),
                    "what changed comes first"
                );
            }
        }
        let all: BTreeSet<Name> = keys.iter().map(|key| name(key)).collect();
        assert!(all.is_subset(&heard), "{} of 2000", heard.len());
    }
}

/// Members of other kinds say nothing; nor do those of a configuration with a final successor, and they do not listen.
#[test]
fn only_members_of_a_configuration_in_use_speak() {
    let first = configuration(5, CASSS, 1, 16);
    let world = World::of(&first, 10, 1);
    world.let_servers_speak();
    let actor = world.actor(&first);
    actor.put("k", LONG);
    world.settle();
    let configurations = |said: Vec<(usize, Gossip)>| -> BTreeSet<_> {
        said.into_iter()
            .map(|(_, gossip)| gossip.configuration)
            .collect()
    };
    assert_eq!(configurations(said(&world)), BTreeSet::from([first.id()]));
    let second: Arc<Configuration> = successor(&first, 5, 5, CASSS);
    move_to(&world, &actor, &second);
    world.settle();
    assert_eq!(configurations(said(&world)), BTreeSet::from([second.id()]));
    let late = gossip(&first, 1, "k", marks(9, 9, 9));
    world.tell(0, late);
    let third = successor(&second, 0, 5, Dap::Ec { k: 3 });
    move_to(&world, &actor, &third);
    world.settle();
    assert_eq!(configurations(said(&world)), BTreeSet::new());
    assert_eq!(actor.get("k").1.as_deref(), Some(LONG));
}
