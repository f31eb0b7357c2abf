//! Versions of which few elements are left, and members that state something else than the others (`[W-18 lost-version]`).

use crate::paper::reconfiguration::{announce, reconfigure};
use crate::paper::redundancy::round;
use crate::world::{Actor, World, configuration, name, server, successor, text};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::element::ReplyElement;
use areo_core::error::{Unavailable, WriteError};
use areo_core::manager::Deletion;
use areo_core::message::{Access, Answer, Reply};
use areo_core::pointer::Pointer;
use areo_core::reconfig::ares::AresError;
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
        let Err(AresError::Pending(failed)) = ended else {
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
        let Err(AresError::Pending(failed)) = ended else {
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

/// In the other kinds a member whose record is damaged abstains, so that two of four are enough to keep an object from being read.
#[test]
fn an_object_for_which_no_quorum_speaks_holds_up_no_listing_and_no_other_object() {
    for dap in [Dap::Ec { k: 2 }, Dap::Cas { k: 2 }, Dap::Abd] {
        let damaged: &[usize] = if dap == Dap::Abd { &[0, 1, 2] } else { &[0, 1] };
        let (world, c, actor, tag) = rotten_of(dap, damaged);
        assert_eq!(actor.keys(), ["b", "k"], "{dap:?}");
        let next = successor(&c, 4, 4, dap);
        let ended = world.run(reconfigure(actor.client(), &c, &next));
        let Err(AresError::Pending(failed)) = ended else {
            panic!("{dap:?}: it has not everything: {ended:?}")
        };
        let lost = lost(&failed);
        assert_eq!(lost.len(), 1, "{dap:?}: {failed:?}");
        assert_eq!((&*lost[0].0, lost[0].1), ("k", tag), "{dap:?}");
        let other = world.actor(&c);
        assert_eq!(other.keys(), ["b", "k"], "{dap:?}");
        let value = other.get("b").1;
        assert_eq!(value.as_deref(), Some("another object, which is long"));
    }
}
