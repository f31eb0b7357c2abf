//! Versions of which few elements are left, and members that state something else than the others (`[W-18 lost-version]`).

use crate::paper::reconfiguration::{announce, reconfigure};
use crate::paper::redundancy::round;
use crate::world::{Actor, World, configuration, name, server, successor, text, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dap;
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::dsm::holdings::MemberHolding;
use areo_core::element::ReplyElement;
use areo_core::error::{Unavailable, WriteError};
use areo_core::manager::Deletion;
use areo_core::message::{Access, Answer, Body, Reply, Request};
use areo_core::object::Metadata;
use areo_core::pointer::{Pointer, Successors};
use areo_core::reconfig::ReconfigError;
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const SLOW: Duration = Duration::from_millis(20);

/// Runs it to its end; what is sent to and from server 3 arrives 20 ms later than the rest.
fn finish<T>(world: &World, ended: &Rc<RefCell<Option<T>>>) -> T {
    let mut last = world.now();
    while ended.borrow().is_none() {
        if world.now().since(last) >= SLOW {
            last = world.now();
            world.deliver(|m| m.at(&[3]));
        }
        if !world.step() {
            world.deliver(|m| m.at(&[3]));
            world.pass(Duration::from_millis(1));
        }
    }
    ended.borrow_mut().take().expect("it has ended")
}

/// Lets a writer die whose elements reach members 0 and 1 alone, after a complete first version.
fn dies_half_way(world: &World, dap: Dap) -> Tag {
    let c = configuration(4, dap, 1, 8);
    let (a, b) = (world.actor(&c), world.actor(&c));
    let first = a.put("k", "the first value, which is long");
    world.settle();
    world.pass(Duration::from_millis(1));
    let writer = b.client().id();
    let is_of_writer = move |access: &Access| match access {
        Access::Accept(it) => !it.settles && it.tag.writer.client == writer,
        Access::Put {
            tag,
            write_back: false,
            ..
        } => tag.writer.client == writer,
        _ => false,
    };
    world.hold(move |m| {
        let is_held = m.is_reply() || !m.at(&[0, 1]);
        is_held && m.access().is_some_and(is_of_writer)
    });
    drop(world.spawn(b.write("k", "a value of a dead writer, long")));
    world.settle();
    world.pass(Duration::from_secs(3));
    // Its connections are gone with it: nothing is sent again.
    world.lose(|_| true);
    first
}

#[test]
fn a_slow_member_is_waited_for_where_one_element_rotted_and_a_writer_died() {
    for dap in [Dap::Ec { k: 2 }, Dap::Conditional { k: 2 }] {
        for (rots, slow) in [(true, true), (true, false), (false, true)] {
            let c = configuration(4, dap, 1, 8);
            let world = World::of(&c, 10, 1);
            let first = dies_half_way(&world, dap);
            if rots {
                world.disk(0, |disk| {
                    disk.rot(|h| matches!(h, Header::Element(it) if it.tag > first))
                });
                world.crash(0);
                world.restart(0, false);
                world.settle();
            }
            if slow {
                world.hold(|m| m.at(&[3]));
            }
            let d = world.actor(&c);
            let read = finish(&world, &world.spawn(d.read("k")));
            assert!(read.is_ok(), "{dap:?}, {rots}, {slow}: {read:?}");
            let put = d.cover("k", "a conditional write, long", first);
            let put = finish(&world, &world.spawn(put));
            assert!(put.is_ok(), "{dap:?}, {rots}, {slow}: {put:?}");
        }
    }
}

#[test]
fn a_member_that_states_something_else_keeps_no_reader_out() {
    for dap in [Dap::Ec { k: 2 }, Dap::Conditional { k: 2 }] {
        for bent in 0..4 {
            let c = configuration(4, dap, 1, 8);
            let world = World::of(&c, 10, 1);
            let (a, b) = (world.actor(&c), world.actor(&c));
            a.put("k", "the first value, which is long");
            world.settle();
            world.latency(Duration::from_millis(1));
            world.bend_replies(move |from, reply| {
                let Reply::Access(answers) = reply else {
                    return;
                };
                for answer in answers.iter_mut().filter(|_| from == server(bent)) {
                    let element = match answer {
                        Answer::Held(held) => held.element.as_mut().map(|it| &mut it.1),
                        Answer::Ranked(held) => held.element.as_mut().map(|it| &mut it.1),
                        Answer::Fetched(element) => Some(element),
                        _ => None,
                    };
                    if let Some(ReplyElement::Whole(element)) = element {
                        element.metadata = Bytes::from_static(b"");
                        element.length -= 1;
                    }
                }
            });
            let read = world.run(b.read("k"));
            let value = read.map(|found| found.value.as_ref().map(text));
            let expected = Some("the first value, which is long".into());
            assert_eq!(value, Ok(expected), "{dap:?}, member {bent}");
        }
    }
}

/// A domain of four servers with the objects `b` and `k`; the element of `k` has rotted at these members.
fn rotten(members: &[usize]) -> (World, Arc<Configuration>, Actor, Tag) {
    rotten_of(Dap::Conditional { k: 2 }, members)
}

fn rotten_of(dap: Dap, members: &[usize]) -> (World, Arc<Configuration>, Actor, Tag) {
    let c = configuration(4, dap, 1, 8);
    let world = World::of(&c, 12, 1);
    let actor = world.actor(&c);
    actor.put("b", "another object, which is long");
    world.pass(Duration::from_millis(1));
    let tag = actor.put("k", "the value that is lost, long");
    world.settle();
    for member in members {
        let is_of_k = |header: &Header| match header {
            Header::Element(it) => it.name == name("k"),
            _ => false,
        };
        assert_eq!(world.disk(*member, |disk| disk.rot(is_of_k)), 1);
        world.crash(*member);
        world.restart(*member, false);
    }
    world.settle();
    world.pass(Duration::from_millis(1));
    (world, c, actor, tag)
}

/// The lost objects: name, version, and number of elements that are left.
fn lost(failed: &Unavailable) -> Vec<(String, Tag, usize)> {
    let lost = failed.lost_versions().iter();
    let lost = lost.map(|it| (it.name.key().to_owned(), it.tag, it.found));
    lost.collect()
}

#[test]
fn a_lost_value_is_an_error_that_names_it_and_takes_no_ballot() {
    let (world, _, actor, tag) = rotten(&[0, 1, 2]);
    let failed = world.run(actor.read("k")).expect_err("one element is left");
    assert_eq!(lost(&failed), [("k".into(), tag, 1)]);
    let is_register = |header: &&Header| matches!(header, Header::Register { .. });
    let promised = || world.disk(3, |disk| disk.headers().filter(is_register).count());
    let before = promised();
    let read = world.run(actor.read("k"));
    assert!(read.is_err());
    assert_eq!(promised(), before, "nothing is promised for it");
    // Its condition does not hold, and the version cannot be settled: that is no conflict, and nothing was written.
    let put = world.run(actor.cover("k", "a write on an older one", Tag::INITIAL));
    assert!(matches!(put, Err(WriteError::NotApplied(_))), "{put:?}");
    assert_eq!(actor.keys(), ["b", "k"]);
    assert_eq!(
        actor.get("b").1.as_deref(),
        Some("another object, which is long")
    );
    let put = world.run(actor.cover("k", "a write on what is lost", tag));
    assert!(matches!(put, Ok(CoverableOutcome::Changed(_))), "{put:?}");
    assert_eq!(actor.get("k").1.as_deref(), Some("a write on what is lost"));
}

/// Repair looks at it in every round, as long as it is not written over.
#[test]
fn repair_takes_no_ballot_for_what_is_lost() {
    let (world, c, _, tag) = rotten(&[0, 1, 2]);
    let promised = || -> Vec<Header> {
        let is_register = |header: &&Header| matches!(header, Header::Register { .. });
        let of = |member| -> Vec<Header> {
            world.disk(member, |disk| {
                disk.headers().filter(is_register).cloned().collect()
            })
        };
        (0..4).flat_map(of).collect()
    };
    let before = promised();
    for number in [0, 3, 0] {
        let ended = round(&world, number, &c);
        assert!(ended.lacking > 0 || number == 3, "{ended:?} of {tag:?}");
        world.settle();
        world.pass(Duration::from_mins(2));
    }
    assert_eq!(promised(), before);
}

#[test]
fn a_value_with_a_member_out_of_reach_is_not_taken_for_lost() {
    let (world, c, actor, _) = rotten(&[0]);
    world.crash(3);
    let read = world.run(actor.read("k"));
    assert!(read.is_ok(), "two elements are there: {read:?}");
    let (world, _, actor, _) = rotten(&[0, 1]);
    world.crash(3);
    let failed = world.run(actor.read("k")).expect_err("one is there");
    assert_eq!(lost(&failed), [], "another one may come back");
    world.restart(3, false);
    let read = world.run(actor.read("k"));
    assert!(read.is_ok(), "{:?}: {read:?}", c.id());
}

#[test]
fn a_transfer_that_meets_a_lost_object_moves_all_others_and_names_it() {
    for removes in [true, false] {
        let (world, c, actor, tag) = rotten(&[0, 1, 2]);
        let next = successor(&c, 4, 4, Dap::Conditional { k: 2 });
        let calls = world.gathers();
        let ended = world.run(reconfigure(actor.client(), &c, &next));
        let Err(ReconfigError::Pending(failed)) = ended else {
            panic!("it has not everything: {ended:?}")
        };
        assert_eq!(lost(&failed), [("k".into(), tag, 1)]);
        assert!(
            world.gathers() - calls < 60,
            "it does not ask again and again"
        );
        let other = world.actor(&c);
        assert_eq!(other.keys(), ["b", "k"], "the others are listed");
        assert_eq!(
            other.get("b").1.as_deref(),
            Some("another object, which is long")
        );
        let failed = world.run(other.read("k")).expect_err("it is lost");
        assert_eq!(lost(&failed), [("k".into(), tag, 1)]);
        if removes {
            let removed = world.run(other.delete("k"));
            assert!(matches!(removed, Ok(Deletion::Deleted(_))), "{removed:?}");
        } else {
            other.put("k", "written over, while it is pending");
        }
        let ended = world.run(reconfigure(actor.client(), &c, &next));
        assert!(ended.is_ok(), "{ended:?}");
        let expected = match removes {
            true => "",
            false => "written over, while it is pending",
        };
        let after = world.actor(&next);
        assert_eq!(after.get("k").1.as_deref(), Some(expected));
        assert_eq!(
            after.get("b").1.as_deref(),
            Some("another object, which is long")
        );
    }
}

/// The older version that the earlier of two sources holds does not come back in place of the lost one.
#[test]
fn an_older_version_does_not_come_back_in_place_of_a_lost_one() {
    let c = configuration(4, Dap::Conditional { k: 2 }, 1, 8);
    let world = World::of(&c, 16, 1);
    let actor = world.actor(&c);
    actor.put("k", "the first value, which is long");
    world.settle();
    let next = successor(&c, 4, 4, Dap::Conditional { k: 2 });
    let pointer = Pointer::pending(&next);
    announce(&world, &c, &pointer);
    world.pass(Duration::from_millis(1));
    let tag = actor.put("k", "the second one, in the next configuration");
    world.settle();
    for member in 4..7 {
        let is_of_k = |header: &Header| matches!(header, Header::Element(_));
        assert_eq!(world.disk(member, |disk| disk.rot(is_of_k)), 1);
        world.crash(member);
        world.restart(member, false);
    }
    world.settle();
    let last = successor(&next, 8, 4, Dap::Conditional { k: 2 });
    for _ in 0..2 {
        let ended = world.run(reconfigure(actor.client(), &c, &last));
        let Err(ReconfigError::Pending(failed)) = ended else {
            panic!("it has not everything: {ended:?}")
        };
        assert_eq!(lost(&failed), [("k".into(), tag, 1)]);
    }
    actor.put("k", "the third one");
    let ended = world.run(reconfigure(actor.client(), &c, &last));
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(
        world.actor(&last).get("k").1.as_deref(),
        Some("the third one")
    );
}

/// The kinds in which a member names what it has lost, with members of four of which too few elements are left.
fn lossy() -> [(Dap, &'static [usize]); 5] {
    [
        (Dap::Ec { k: 2 }, &[0, 1, 2]),
        (Dap::Cas { k: 2 }, &[0, 1, 2]),
        (Dap::CasGc { k: 2 }, &[0, 1, 2]),
        (Dap::Abd, &[0, 1, 2, 3]),
        (Dap::AbdPublished, &[0, 1, 2, 3]),
    ]
}

/// Members that have lost their elements say so. They keep no reader out where the others have enough elements, and reading mends them.
#[test]
fn an_object_is_read_where_enough_elements_are_left() {
    for (dap, damaged) in [
        (Dap::Ec { k: 2 }, &[0, 1][..]),
        (Dap::Cas { k: 2 }, &[1, 2]),
        (Dap::CasGc { k: 2 }, &[0, 3]),
        (Dap::Abd, &[0, 1, 3]),
    ] {
        let (world, c, actor, tag) = rotten_of(dap, damaged);
        let read = world.run(actor.read("k"));
        let read = read.map(|found| (found.tag, found.value.as_ref().map(text)));
        let expected = Some("the value that is lost, long".to_owned());
        assert_eq!(read, Ok((tag, expected)), "{dap:?}");
        world.settle();
        let held = world.run(async move {
            let domain = actor.client().domain(&c);
            domain.holdings(&c, &name("k"), tag).await
        });
        let holds = |it: &MemberHolding| *it == MemberHolding::Version;
        assert!(
            held.iter().filter(|it| holds(it)).count() >= 3,
            "{dap:?}: {held:?}"
        );
    }
}

/// A majority of which one has lost its copy, beside one that is away.
#[test]
fn one_lost_copy_and_one_member_away_of_three() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    let tag = actor.put("k", "a value");
    world.settle();
    world.disk(0, |disk| disk.rot(|h| matches!(h, Header::Element(_))));
    world.crash(0);
    world.restart(0, false);
    world.crash(2);
    world.settle();
    let read = world.run(world.actor(&c).read("k")).map(|found| found.tag);
    assert_eq!(read, Ok(tag));
}

#[test]
fn a_lost_value_is_an_error_by_name_in_every_kind_and_is_written_over_or_removed() {
    for (dap, damaged) in lossy() {
        for removes in [false, true] {
            let (world, _, actor, tag) = rotten_of(dap, damaged);
            let failed = world.run(actor.read("k")).expect_err("it is lost");
            let found = 4 - damaged.len();
            assert_eq!(lost(&failed), [("k".into(), tag, found)], "{dap:?}");
            assert_eq!(actor.keys(), ["b", "k"], "{dap:?}: it is listed");
            if removes {
                let removed = world.run(actor.delete("k"));
                assert!(
                    matches!(removed, Ok(Deletion::Deleted(it)) if it > tag),
                    "{removed:?}"
                );
                assert_eq!(actor.get("k").1.as_deref(), Some(""), "{dap:?}");
            } else {
                let over = actor.put("k", "written over");
                assert!(over > tag, "{dap:?}: {over} is above {tag}");
                assert_eq!(actor.get("k").1.as_deref(), Some("written over"), "{dap:?}");
            }
            assert_eq!(
                actor.get("b").1.as_deref(),
                Some("another object, which is long")
            );
        }
    }
}

/// A member that is away may have an element.
#[test]
fn what_a_member_away_may_have_is_not_called_lost() {
    for (dap, damaged) in lossy() {
        let (away, damaged) = damaged.split_last().expect("several");
        let (world, _, actor, tag) = rotten_of(dap, damaged);
        world.crash(*away);
        let failed = world.run(actor.read("k")).expect_err("too few are there");
        assert_eq!(lost(&failed), [], "{dap:?}: another one may come back");
        let listed = world.run(actor.list("", "", 100));
        let listed = listed.map(|page| page.entries);
        let listed = listed.unwrap_or_else(|failed| panic!("{dap:?}: {failed}"));
        let listed: Vec<_> = listed.iter().map(|it| (&*it.key, it.damaged)).collect();
        assert_eq!(listed, [("b", false), ("k", true)], "{dap:?}");
        world.restart(*away, false);
        let read = world.run(actor.read("k")).map(|found| found.tag);
        assert_eq!(read, Ok(tag), "{dap:?}");
    }
}

/// A version that its writer left at one member, which has lost it: it is not complete, and does not hide the one before it.
#[test]
fn an_unfinished_version_that_is_lost_hides_nothing() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }, Dap::Cas { k: 2 }] {
        let c = configuration(4, dap, 1, 8);
        let world = World::of(&c, 10, 1);
        let first = dies_half_way(&world, dap);
        for member in [0, 1] {
            let is_newer = |h: &Header| matches!(h, Header::Element(it) if it.tag > first);
            assert_eq!(world.disk(member, |disk| disk.rot(is_newer)), 1);
            world.crash(member);
            world.restart(member, false);
            world.settle();
        }
        let read = world.run(world.actor(&c).read("k")).map(|found| found.tag);
        assert_eq!(read, Ok(first), "{dap:?}");
    }
}

/// An `abd` member acknowledges a put below its largest version, and keeps no trace of it. Where it loses the element of that version it
/// still speaks for the smaller one.
#[test]
fn an_acknowledged_copy_below_a_lost_one_hides_what_is_older() {
    for (dap, n) in [Dap::Abd, Dap::AbdPublished]
        .into_iter()
        .flat_map(|dap| [(dap, 3), (dap, 5)])
    {
        let c = configuration(n, dap, 1, 8);
        let world = World::of(&c, n, 1);
        let actor = world.actor(&c);
        let first = actor.put("k", "the first value");
        world.settle();
        let next = |tag: Tag| {
            tag.next(actor.client().next_writer())
                .expect("far from the end")
        };
        let (written, unfinished) = (next(first), next(next(first)));
        let put = |member: usize, tag: Tag| {
            let element = dap::elements(&c, &name("k"), &value("a newer value"))[0].clone();
            let put = Access::Put {
                tag,
                element,
                write_back: false,
            };
            assert_eq!(world.access(member, "k", put), Ok(Answer::Stored));
        };
        // A quorum acknowledges it: of five, member 2 has its element as well.
        put(0, unfinished);
        (0..=n / 2).for_each(|member| put(member, written));
        for member in [0, 1] {
            let is_newer = |h: &Header| matches!(h, Header::Element(it) if it.tag > first);
            assert_eq!(world.disk(member, |disk| disk.rot(is_newer)), 1);
            world.crash(member);
            world.restart(member, false);
            world.settle();
        }
        if n == 5 {
            world.hold(|message| message.at(&[2]));
        }
        let reader = world.actor(&c);
        let read = world.spawn(reader.read("k"));
        world.settle();
        world.release();
        let read = world.finish(&read).map(|found| found.tag);
        match n {
            3 => assert_eq!(
                lost(&read.expect_err("no copy is left")),
                [("k".into(), written, 0)]
            ),
            _ => assert_eq!(read, Ok(written), "{dap:?}"),
        }
    }
}

#[test]
fn a_change_of_any_kind_goes_on_where_a_lost_object_was_written_over() {
    for (dap, damaged) in lossy() {
        for removes in [true, false] {
            let (world, c, actor, tag) = rotten_of(dap, damaged);
            let next = successor(&c, 4, 4, dap);
            let ended = world.run(reconfigure(actor.client(), &c, &next));
            let Err(ReconfigError::Pending(failed)) = ended else {
                panic!("{dap:?}: it has not everything: {ended:?}")
            };
            assert_eq!(lost(&failed)[0].1, tag, "{dap:?}");
            let other = world.actor(&c);
            assert_eq!(other.keys(), ["b", "k"], "{dap:?}");
            let failed = world.run(other.read("k")).expect_err("it is lost");
            assert_eq!(lost(&failed)[0].1, tag, "{dap:?}");
            if removes {
                let removed = world.run(other.delete("k"));
                assert!(matches!(removed, Ok(Deletion::Deleted(_))), "{removed:?}");
            } else {
                other.put("k", "written over, while it is pending");
                let read = other.get("k").1;
                assert_eq!(read.as_deref(), Some("written over, while it is pending"));
            }
            let ended = world.run(reconfigure(actor.client(), &c, &next));
            assert!(ended.is_ok(), "{dap:?}: {ended:?}");
            let after = world.actor(&next);
            let expected = match removes {
                true => "",
                false => "written over, while it is pending",
            };
            assert_eq!(after.get("k").1.as_deref(), Some(expected), "{dap:?}");
            assert_eq!(
                after.get("b").1.as_deref(),
                Some("another object, which is long")
            );
        }
    }
}

/// The writer died with its version at one member of the target, after the sources had it. They are left then.
#[test]
fn a_version_at_one_member_does_not_stand_in_for_a_lost_one() {
    for (dap, damaged) in [
        (Dap::Abd, &[0, 1, 2, 3][..]),
        (Dap::AbdPublished, &[0, 1, 2, 3]),
    ] {
        let (world, c, actor, tag) = rotten_of(dap, damaged);
        let next = successor(&c, 4, 4, dap);
        let ended = world.run(reconfigure(actor.client(), &c, &next));
        assert!(matches!(ended, Err(ReconfigError::Pending(_))), "{ended:?}");
        let over = tag
            .next(actor.client().next_writer())
            .expect("far from the end");
        let element = dap::elements(&next, &name("k"), &value("again"))[0].clone();
        let put = Access::Put {
            tag: over,
            element,
            write_back: false,
        };
        let request = Request::Configured {
            configuration: next.id(),
            descriptor: Some(next.clone()),
            successors: Successors::default(),
            body: Body::Access(vec![(name("k"), put)]),
        };
        assert!(world.ask(4, request).is_ok(), "{dap:?}");
        // As long as a transfer does not hear of it, the object is lost.
        let mut ended = world.run(reconfigure(actor.client(), &c, &next));
        while let Err(ReconfigError::Pending(failed)) = &ended {
            assert_eq!(lost(failed)[0].1, tag, "{dap:?}");
            ended = world.run(reconfigure(actor.client(), &c, &next));
        }
        assert!(ended.is_ok(), "{dap:?}: {ended:?}");
        world.crash(4);
        let read = world.run(world.actor(&next).read("k"));
        assert_eq!(read.map(|found| found.tag), Ok(over), "{dap:?}");
    }
}

/// An object that a person leaves unreadable does not come back with a member, and keeps no write out.
#[test]
fn what_is_left_unreadable_ends_the_change_and_hides_no_write() {
    for (dap, damaged) in lossy() {
        for faster in [false, true] {
            let (world, c, actor, tag) = rotten_of(dap, damaged);
            let next = successor(&c, 4, 4, dap);
            let ended = world.run(reconfigure(actor.client(), &c, &next));
            assert!(matches!(ended, Err(ReconfigError::Pending(_))), "{ended:?}");
            let leave = |from: &Arc<Configuration>| {
                let domain = world.actor(from).domain();
                world.run(async move { domain.leave_unreadable(&name("k"), tag).await })
            };
            if faster {
                let over = world.actor(&c).put("k", "a faster write");
                assert!(tag.mark_of_loss().is_some_and(|mark| mark < over));
            }
            assert_eq!(leave(&c), Ok(!faster), "{dap:?}");
            // Another reconfigurer does so at the same time.
            assert_eq!(leave(&c), Ok(false), "{dap:?}");
            let ended = world.run(reconfigure(actor.client(), &c, &next));
            assert!(ended.is_ok(), "{dap:?}: {ended:?}");
            let after = world.actor(&next);
            let found = world
                .run(after.read("k"))
                .expect("it is the mark, or the write");
            let metadata = found.value.as_ref().map(|it| it.metadata.clone());
            let metadata = Metadata::decode(&metadata.expect("it is a value"));
            let expected = (!faster).then_some(tag);
            assert_eq!(metadata.map(|it| it.lost), Ok(expected), "{dap:?}");
            assert_eq!(after.keys(), ["b", "k"]);
            let over = after.put("k", "again");
            assert!(over > found.tag);
            assert_eq!(after.get("k"), (over, Some("again".into())));
        }
    }
}

/// It can be read again: its disk was found.
#[test]
fn what_can_be_read_is_not_left_unreadable() {
    let (world, _, actor, tag) = rotten_of(Dap::Ec { k: 2 }, &[0, 1]);
    let domain = actor.domain();
    let left = world.run(async move { domain.leave_unreadable(&name("k"), tag).await });
    assert_eq!(left, Ok(false));
    assert_eq!(actor.get("k").0, tag);
}
