//! The ends of operations: the contents of failures, and the tags of writes (`docs/spec` 10.2).

use crate::world::{Message, World, configuration};
use areo_core::config::Dap;
use areo_core::error::{Response, WriteError};
use areo_core::tag::Tag;
use std::collections::BTreeSet;
use std::time::Duration;

/// `[X-9 honest-outcome]`: a write that sent no put was not applied.
#[test]
fn a_write_whose_query_fails_was_not_applied() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    world.crash(1);
    world.crash(2);
    let failed = world.run(world.actor(&c).write("k", "v")).unwrap_err();
    let WriteError::NotApplied(unavailable) = failed else {
        panic!("{failed:?}: no put was sent")
    };
    assert_eq!((unavailable.needed, unavailable.answered()), (2, 1));
    let did: Vec<Response> = unavailable.servers.iter().map(|(_, did)| *did).collect();
    assert_eq!(
        did,
        [
            Response::Answered,
            Response::Unreachable,
            Response::Unreachable
        ]
    );
    assert_eq!(unavailable.waited, Duration::from_secs(2));
}

/// `[X-9 honest-outcome]`: no server could be reached any more when the put was due.
#[test]
fn a_write_whose_put_was_handed_to_no_connection_was_not_applied() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    // The servers know the configuration, so that one answer each is all that get-tag needs.
    world.actor(&c).get("k");
    world.settle();
    world.hold(|_| true);
    let rounds = world.gathers();
    let result = world.spawn(world.actor(&c).write("k", "v"));
    assert_eq!(world.deliver(Message::is_query), 3);
    assert_eq!(world.deliver(|m| m.is_query() && m.is_reply()), 3);
    (0..3).for_each(|number| world.crash(number));
    world.settle();
    world.pass(Duration::from_secs(3));
    let failed = result
        .borrow_mut()
        .take()
        .expect("its time is over")
        .unwrap_err();
    assert!(matches!(failed, WriteError::NotApplied(_)), "{failed:?}");
    assert_eq!(world.gathers() - rounds, 2, "it came to the put");
}

/// `[X-9 honest-outcome]`: one put that was handed over makes it unknown, and it may indeed take effect later.
#[test]
fn a_write_whose_put_was_handed_over_is_unknown_and_may_take_effect_later() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let (writer, reader) = (world.actor(&c), world.actor(&c));
    world.hold(Message::is_put);
    let failed = world.run(writer.write("k", "late")).unwrap_err();
    assert!(matches!(failed, WriteError::Unknown(_)), "{failed:?}");
    assert_eq!(reader.get("k"), (Tag::INITIAL, None));
    world.release();
    world.settle();
    assert_eq!(reader.get("k").1.as_deref(), Some("late"));
}

#[test]
fn a_read_without_a_quorum_says_so() {
    let c = configuration(5, Dap::Ec { k: 3 }, 1, 0);
    let world = World::new(&c, 1);
    world.crash(0);
    world.crash(4);
    let unavailable = world.run(world.actor(&c).read("k")).unwrap_err();
    assert_eq!((unavailable.needed, unavailable.answered()), (4, 3));
}

/// `[X-7 writer-per-write]`: tags are unique, also between tasks of one client that saw the same maximum.
#[test]
fn every_write_has_a_tag_of_its_own() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let (one, two) = (world.actor(&c), world.actor(&c));
    let writes: Vec<_> = (0..9)
        .map(|i| {
            let who = if i % 3 == 0 { &two } else { &one };
            world.spawn(who.write("k", &format!("{i}")))
        })
        .collect();
    world.settle();
    let tags: BTreeSet<Tag> = writes
        .iter()
        .map(|write| write.borrow().clone().expect("done").expect("written"))
        .collect();
    assert_eq!(tags.len(), 9);
    assert!(
        tags.iter().any(|tag| tag.number == 1),
        "they were concurrent"
    );
}

/// `[X-7 writer-per-write]`, schedule T13: an abandoned write and the next one of the same client differ.
#[test]
fn the_write_after_an_abandoned_one_has_another_tag() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let (writer, reader) = (world.actor(&c), world.actor(&c));
    // Its put reaches the first server only.
    world.hold(|m| m.is_put() && m.at(&[1, 2]));
    assert!(world.run(writer.write("k", "abandoned")).is_err());
    world.lose(Message::is_put);
    world.release();
    // Its next write does not meet that server: the same number, and yet another tag.
    world.hold(|m| m.at(&[0]));
    let tag = writer.put("k", "next");
    world.release();
    world.settle();
    let abandoned = tag.number == 1 && tag.writer.counter == 2;
    assert!(
        abandoned,
        "{tag:?} has the number of the abandoned one and a counter of its own"
    );
    assert_eq!(reader.get("k"), (tag, Some("next".into())));
}
