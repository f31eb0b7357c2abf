//! The restart of counters (`docs/spec` 2.11): records that say impossible tags are no longer there, what was written is, and what
//! happens while one member is silent.

use crate::world::{Actor, Content, Message, World, WorldEnv, configuration, name, server, value};
use areo_core::config::Dap;
use areo_core::error::WriteError;
use areo_core::limits::NUMBER;
use areo_core::message::{
    Access, Answer, Gossip, GossipMarks, HeldVersions, Note, ObjectReport, Phase, Refusal,
    RestartNote, Want, digest,
};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use areo_core::timing;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be, of some bytes";
const CASSS: Dap = Dap::CasSs { k: 3 };

fn world() -> (World, Actor, Actor) {
    let c = configuration(5, CASSS, 1, 16);
    let world = World::new(&c, 1);
    world.let_servers_speak();
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// The numbers of all tags of these records become impossible, and the server starts again.
fn bend(world: &World, number: usize, filter: fn(&Header) -> bool) {
    world.crash(number);
    bend_records(world, number, filter);
    world.restart(number, false);
    assert_eq!(world.status(number).damaged, 1);
}

fn bend_records(world: &World, number: usize, filter: fn(&Header) -> bool) {
    let bent = world.disk(number, |disk| {
        disk.bend(|header| {
            if !filter(header) {
                return;
            }
            match header {
                Header::Element(element) => element.tag.number |= NUMBER,
                Header::Marks { marks, .. } => marks.stable.number |= NUMBER,
                _ => {}
            }
        })
    });
    assert!(bent > 0, "there are such records");
}

fn is_element(header: &Header) -> bool {
    matches!(header, Header::Element(_))
}

fn is_any(header: &Header) -> bool {
    matches!(header, Header::Element(_) | Header::Marks { .. })
}

fn is_restart(message: &Message) -> bool {
    matches!(message.content, Content::Note(Note::Restart(_)))
}

fn pass(world: &World, notes: u32) {
    for _ in 0..notes {
        world.pass(timing::RESTART);
        world.settle();
    }
}

/// Restarts within this many notes of each member.
const NOTES: u32 = 40;

fn damaged(world: &World) -> u64 {
    (0..5).map(|number| world.status(number).damaged).sum()
}

fn pass_until_sound(world: &World) {
    let mut notes = 0;
    while damaged(world) > 0 || (0..5).any(|number| is_refusing(world, number)) {
        pass(world, 1);
        notes += 1;
        assert!(notes < NOTES, "{} are damaged", damaged(world));
    }
}

/// True if it is in a restart.
fn is_refusing(world: &World, number: usize) -> bool {
    let tag = Tag {
        number: NUMBER - 1,
        ..Tag::LARGEST
    };
    let fence = Access::Fence {
        upto: Tag::INITIAL,
        spared: tag,
    };
    world.access(number, "k", fence) == Err(Refusal::Restarting)
}

/// A version whose records became impossible at some members, or at all of them, is there again, under its tag or a larger one, and a
/// write comes right after it.
#[test]
fn what_was_written_is_there_again_whatever_became_impossible() {
    for struck in 1..=5 {
        for filter in [is_element, is_any] {
            let (world, writer, reader) = world();
            writer.put("k", "before");
            let before = writer.put("k", LONG);
            world.settle();
            for number in 0..struck {
                bend(&world, number, filter);
            }
            pass_until_sound(&world);
            let (tag, text) = reader.get("k");
            assert_eq!(text.as_deref(), Some(LONG), "{struck}");
            assert_eq!(tag.writer, before.writer);
            // Where not one possible number is left none can be gone on from.
            let all_gone = struck == 5;
            let least = if all_gone { 1 } else { before.number };
            assert!((least..=3).contains(&tag.number), "{struck} {tag}");
            let after = writer.put("k", "after");
            assert_eq!(after.number, tag.number + 1);
            assert_eq!(reader.get("k"), (after, Some("after".into())));
            // It is so after a crash of all, also where records come back that had been freed.
            for number in 0..5 {
                world.crash(number);
                world.restart(number, struck % 2 == 0);
            }
            assert!(struck % 2 == 0 || damaged(&world) == 0);
            pass_until_sound(&world);
            assert_eq!(reader.get("k"), (after, Some("after".into())));
        }
    }
}

/// The number of members that may fail may also abstain. While another member is down the object is read and written,
/// and servers show whom they wait for. Nothing is agreed on without that member (`[CASSS-6 largest-decodable]`:
/// lists of all).
#[test]
fn one_that_is_down_is_waited_for_and_the_object_goes_on() {
    let (world, writer, reader) = world();
    writer.put("k", LONG);
    world.settle();
    let c = writer.c.clone();
    bend(&world, 1, is_any);
    world.crash(4);
    pass(&world, NOTES);
    let damage = |number: usize| world.status(number).damaged;
    assert_eq!((damage(1), damage(0)), (1, 0));
    assert_eq!(world.status(1).waits, [(c.id().domain, server(4))]);
    assert!(!(0..4).any(|number| is_refusing(&world, number)));
    world.restart(4, false);
    pass_until_sound(&world);
    assert_eq!(world.status(1).waits, []);
    let written = writer.put("k", "another");
    assert_eq!(reader.get("k"), (written, Some("another".into())));
}

/// If one member more abstains than may fail, no read succeeds before the restart; afterwards reads succeed.
#[test]
fn an_object_without_a_quorum_is_there_again() {
    let (world, writer, reader) = world();
    let before = writer.put("k", LONG);
    world.settle();
    for number in [0, 3] {
        bend(&world, number, is_any);
    }
    assert!(world.run(reader.read("k")).is_err(), "no quorum speaks");
    pass_until_sound(&world);
    assert_eq!(reader.get("k"), (before, Some(LONG.into())));
}

/// The number of members that take part in a restart: they refuse requests.
fn agreeing(world: &World) -> usize {
    let is_agreeing = |number: &usize| is_refusing(world, *number);
    (0..5).filter(is_agreeing).count()
}

/// `[CASSS-7 frozen-while-agreeing]`: while members agree nothing of the object changes: no gossip is joined, and what would
/// change it is refused for the time being. What changes nothing is answered.
#[test]
fn nothing_changes_while_members_agree() {
    let (world, writer, reader) = world();
    let before = writer.put("k", LONG);
    world.settle();
    world.pass(timing::GOSSIP);
    world.settle();
    bend(&world, 1, is_any);
    // One of them hears nothing more once others agree.
    let mut notes = 0;
    while agreeing(&world) < 4 {
        pass(&world, 1);
        if agreeing(&world) > 0 {
            world.hold(|m| is_restart(m) && m.at(&[4]));
        }
        notes += 1;
        assert!(notes < NOTES, "{} agree", agreeing(&world));
    }
    pass(&world, NOTES);
    assert!(agreeing(&world) >= 4);
    let held = world.held(0, "k");
    let far = Tag {
        number: 1000,
        ..before
    };
    let marks = GossipMarks {
        largest: far,
        finalized: far,
        complete: far,
    };
    let gossip = Note::Gossip(Gossip {
        configuration: writer.c.id(),
        from: server(2),
        objects: [(name("k"), marks)].into(),
    });
    world.tell(0, gossip);
    assert_eq!(world.held(0, "k"), held, "it is not joined");
    let finalize = |tag| Access::Finalize {
        tag,
        want: Want::Tags,
        complete: false,
    };
    let refused = Err(Refusal::Restarting);
    assert_eq!(world.access(0, "k", finalize(far)), refused);
    assert_eq!(world.access(0, "k", finalize(before)), Ok(Answer::Stored));
    assert_eq!(world.query(1, "k"), Err(Refusal::Restarting));
    assert_eq!(reader.get("k").1.as_deref(), Some(LONG), "it is read");
    // A write waits, and has its way afterwards.
    let patient = WorldEnv::new(world.clone(), Duration::from_mins(1));
    let domain = writer.client().with(patient).domain(&writer.c);
    let write = world.spawn(async move { domain.put(&name("k"), &value("after")).await });
    world.pass(Duration::from_secs(5));
    assert!(write.borrow().is_none(), "it waits");
    world.release();
    pass_until_sound(&world);
    let written = world.finish(&write).expect("it has its way");
    assert_eq!(reader.get("k"), (written, Some("after".into())));
}

/// Notes of a restart that come late, twice, from outside, or with drawn numbers: they cost time at most.
#[test]
fn notes_that_no_member_said_change_nothing() {
    let (world, writer, reader) = world();
    let before = writer.put("k", LONG);
    world.settle();
    bend(&world, 1, is_any);
    world.hold(is_restart);
    pass(&world, 3);
    let notes = world.set_aside(is_restart);
    let said: Vec<RestartNote> = notes
        .into_iter()
        .filter_map(|message| match message.content {
            Content::Note(Note::Restart(note)) => Some(*note),
            _ => None,
        })
        .collect();
    assert!(said.len() >= 4, "{said:?}");
    world.release();
    let held = HeldVersions::default();
    let report = ObjectReport {
        name: name("k"),
        abstains: false,
        held,
    };
    let (objects, nothing) = (vec![report], Vec::new());
    let value = digest(&objects);
    let mut forged = Vec::new();
    for phase in [Phase::Recovering, Phase::Agreeing(7), Phase::Applying(7)] {
        forged.push((phase, &objects));
    }
    for phase in [Phase::Agreeing, Phase::Applying] {
        forged.push((phase(value), &objects));
        forged.push((phase(digest(&nothing)), &nothing));
    }
    let heard = (1 << 32..).take(6).chain([0, u64::MAX]);
    for (heard, note) in heard.flat_map(|heard| said.iter().map(move |note| (heard, note))) {
        for (number, (phase, objects)) in
            (0..5).flat_map(|at| forged.iter().map(move |it| (at, it)))
        {
            let mut note = note.clone();
            (note.heard, note.turn) = (heard, u64::MAX);
            (note.stance.phase, note.objects) = (*phase, objects.as_slice().into());
            (note.stance.all, note.echo) = (true, note.stance);
            world.tell(number, Note::Restart(Box::new(note)));
        }
        pass(&world, 1);
    }
    pass_until_sound(&world);
    assert_eq!(reader.get("k"), (before, Some(LONG.into())));
    let written = writer.put("k", "after");
    assert_eq!(written.number, before.number + 1);
    for note in said {
        world.tell(0, Note::Restart(Box::new(note)));
    }
    pass(&world, NOTES);
    assert_eq!(reader.get("k"), (written, Some("after".into())));
}

/// A version whose FIN has come to a member that then lost it: it may be what a client knows to be written, and it is not passed over.
#[test]
fn a_version_that_may_be_finalized_is_not_passed_over() {
    let (world, writer, reader) = world();
    writer.put("k", "a value before that is longer than a copy");
    world.settle();
    // FIN comes to one member, which abstains after that.
    world.hold(|m| m.is_fin() && !m.at(&[1]) && !m.is_reply());
    let write = world.run(writer.write("k", LONG));
    assert!(matches!(write, Err(WriteError::Unknown(_))), "{write:?}");
    world.lose(Message::is_fin);
    world.release();
    bend(&world, 1, is_any);
    pass_until_sound(&world);
    assert_eq!(reader.get("k").1.as_deref(), Some(LONG));
}

/// The elements of these versions are damaged, and the server starts again.
fn rot(world: &World, number: usize, which: fn(u64) -> bool) {
    world.crash(number);
    let is_chosen = |header: &Header| match header {
        Header::Element(element) => which(element.tag.number),
        _ => false,
    };
    assert!(world.disk(number, |disk| disk.rot(is_chosen)) > 0);
    world.restart(number, false);
    assert_eq!(world.status(number).damaged, 1);
}

/// `[CASSS-9 agreed-end-of-abstention]`: more members abstain for damaged elements than a quorum can do without, so that the object waited
/// for ever; all agree on what is left. As long as enough elements are, that is the last write.
#[test]
fn an_abstention_of_too_many_ends_when_all_agree() {
    for n in [1, 5] {
        let k = if n == 5 { 2 } else { 1 };
        let c = configuration(n, Dap::CasSs { k }, 1, 16);
        let world = World::new(&c, 1);
        world.let_servers_speak();
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        let written = writer.put("k", LONG);
        world.settle();
        // q = 4: two are more than a quorum can do without, and three elements are left.
        let struck = if n == 5 { 2 } else { 1 };
        for number in 0..struck {
            rot(&world, number, |_| true);
        }
        assert!(world.run(reader.read("k")).is_err(), "no quorum speaks");
        let damage = || -> u64 { (0..n).map(|number| world.status(number).damaged).sum() };
        assert_eq!(damage(), struck as u64);
        pass(&world, NOTES);
        assert_eq!(damage(), 0, "{n}");
        // A scrub had come upon the record before it was freed.
        world.distrust(0, c.id(), &name("k"), written);
        assert_eq!(damage(), 0, "it is not held any more");
        if n == 5 {
            assert_eq!(reader.get("k"), (written, Some(LONG.into())));
        }
        let after = writer.put("k", "after");
        assert_eq!(
            after.number,
            written.number + 1,
            "what was lost is remembered"
        );
        for number in 0..n {
            world.crash(number);
            world.restart(number, false);
        }
        assert_eq!(reader.get("k"), (after, Some("after".into())));
    }
}

/// If fewer members abstain, reads and writes repair them, and no agreement begins. An agreement needs to hear from
/// all members.
#[test]
fn an_abstention_that_a_quorum_can_do_without_ends_by_itself() {
    let (world, writer, reader) = world();
    let before = writer.put("k", LONG);
    world.settle();
    rot(&world, 1, |_| true);
    pass(&world, NOTES);
    assert_eq!(world.status(1).damaged, 1, "no client came");
    assert_eq!(world.status(1).waits, []);
    assert_eq!(reader.get("k"), (before, Some(LONG.into())));
    world.settle();
    assert_eq!(world.status(1).damaged, 0, "the read mends it");
    // One more than a quorum can do without, and one that is down: it may have what the others lost.
    rot(&world, 1, |_| true);
    rot(&world, 2, |_| true);
    world.crash(4);
    pass(&world, 2 * NOTES);
    assert_eq!([1, 2].map(|number| world.status(number).damaged), [1, 1]);
    let waits = [(writer.c.id().domain, server(4))];
    assert_eq!(world.status(1).waits, waits);
    world.restart(4, false);
    pass_until_sound(&world);
    assert_eq!(reader.get("k"), (before, Some(LONG.into())));
}

/// The largest version that a server held and does not hold any more.
fn floor(world: &World, number: usize) -> Tag {
    let query = Access::Query {
        want: Want::Tags,
        have: Tag::INITIAL,
        announced: None,
    };
    match world.access(number, "k", query) {
        Ok(Answer::Held(held)) => held.floor,
        other => panic!("it answers, not {other:?}"),
    }
}

/// If too few elements are left, reads fail until the next write. That write comes after the lost version, even if
/// only the members that lost it remember it.
#[test]
fn a_lost_version_is_written_over_by_one_that_comes_after_it() {
    for (struck, marks_too) in [(3, false), (5, false), (5, true)] {
        let (world, writer, reader) = world();
        writer.put("k", "a value before that is longer than a copy");
        let lost = writer.put("k", LONG);
        world.settle();
        // All at once, so that none hears of it from another one that is to lose it.
        (0..struck).for_each(|number| world.crash(number));
        for number in 0..struck {
            let is_lost =
                |header: &Header| matches!(header, Header::Element(it) if it.tag.number == 2);
            assert_eq!(world.disk(number, |disk| disk.rot(is_lost)), 1);
            if marks_too {
                bend_records(&world, number, |it| matches!(it, Header::Marks { .. }));
            }
        }
        (0..struck).for_each(|number| world.restart(number, false));
        pass_until_sound(&world);
        // Where nothing says any more that the lost one was final, the version before is what is left.
        let is_lost = world.run(reader.read("k")).is_err();
        assert_eq!(is_lost, !marks_too);
        for number in 0..struck {
            assert_eq!(floor(&world, number), lost, "{struck} {marks_too}");
        }
        let after = writer.put("k", "after");
        assert_eq!(after.number, lost.number + 1, "{struck} {marks_too}");
        assert_eq!(reader.get("k"), (after, Some("after".into())));
    }
}

/// A member abstains for its element and has a wrong mark. Others join that while it abstains, so that none comes out later, when a
/// write ends the abstention.
#[test]
fn one_that_abstains_goes_on_saying_its_marks() {
    const WRONG: u64 = 50;
    let (world, writer, reader) = world();
    writer.put("k", LONG);
    world.settle();
    world.crash(1);
    let bent = world.disk(1, |disk| {
        disk.rot(is_element);
        disk.bend(|header| {
            if let Header::Marks { marks, .. } = header {
                marks.stable.number = WRONG;
            }
        })
    });
    assert!(bent > 0, "there is such a record");
    world.restart(1, false);
    assert_eq!(world.status(1).damaged, 1);
    pass(&world, NOTES);
    assert_eq!(world.status(1).damaged, 1, "a quorum can do without it");
    for number in [0, 2, 3, 4] {
        assert_eq!(world.held(number, "k").stable.number, WRONG);
    }
    let after = writer.put("k", "after");
    assert_eq!(after.number, WRONG + 1);
    world.settle();
    assert_eq!(damaged(&world), 0);
    assert_eq!(reader.get("k"), (after, Some("after".into())));
}

/// An element in the record of an impossible version is found rotten, by a scrub: the object abstains for that record already. The tag is
/// that of no version, and is not remembered as one that was held.
#[test]
fn a_rotten_element_of_an_impossible_version_uses_no_number_up() {
    let (world, writer, reader) = world();
    writer.put("k", LONG);
    world.settle();
    bend(&world, 1, is_element);
    let far = Tag {
        number: NUMBER | 1,
        ..Tag::LARGEST
    };
    world.distrust(1, writer.c.id(), &name("k"), far);
    pass_until_sound(&world);
    let written = writer.put("k", "after");
    assert_eq!(written.number, 2);
    // The record is gone.
    world.distrust(1, writer.c.id(), &name("k"), far);
    assert_eq!(damaged(&world), 0);
    assert_eq!(reader.get("k"), (written, Some("after".into())));
}
