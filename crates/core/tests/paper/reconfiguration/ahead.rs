//! The pending configuration is asked before the answer of the final one is in.

use super::{Actor, World, announce, configuration, resume, successor};
use crate::world::Message;
use areo_core::config::{Configuration, Dap};
use areo_core::pointer::Pointer;
use areo_core::reconfig::transfer::{TransferOutcome, transfer};
use std::sync::Arc;

/// A domain of which the next configuration is pending, and a client that knows that. `k` was written before.
fn pending() -> (World, Actor, [Arc<Configuration>; 2]) {
    let c = configuration(3, Dap::Abd, 1, 8);
    let next = successor(&c, 3, 3, Dap::Abd);
    let world = World::of(&c, 6, 1);
    world.actor(&c).put("k", "old");
    world.settle();
    announce(&world, &c, &Pointer::pending(&next));
    let actor = world.actor(&c);
    assert_eq!(actor.get("another").1, None);
    world.settle();
    (world, actor, [c, next])
}

fn asks_the_old(message: &Message) -> bool {
    message.is_query() && message.at(&[0, 1, 2]) && !message.is_reply()
}

/// While its questions to the old servers are on their way the domain moves; the new ones answered before they had it.
fn move_on(world: &World, c: &Arc<Configuration>) {
    let late = world.set_aside(asks_the_old);
    assert_eq!(late.len(), 3, "both configurations are asked at once");
    world.settle();
    let resumed = world.run(resume(world.actor(c).client(), c));
    assert!(resumed.expect("quorums are there").is_some());
    world.settle();
    world.put_back(late);
}

#[test]
fn an_answer_that_was_given_before_the_transfer_does_not_count() {
    let (world, actor, [c, _]) = pending();
    let read = world.spawn(actor.read("k"));
    move_on(&world, &c);
    while read.borrow().is_none() {
        assert!(world.step(), "the read ends");
    }
    let found = read
        .borrow_mut()
        .take()
        .expect("it has ended")
        .expect("a quorum");
    assert_eq!(
        found
            .value
            .map(|value| crate::world::text(&value))
            .as_deref(),
        Some("old")
    );

    let (world, actor, [c, next]) = pending();
    let write = world.spawn(actor.write("k", "new"));
    move_on(&world, &c);
    while write.borrow().is_none() {
        assert!(world.step(), "the write ends");
    }
    let tag = write
        .borrow_mut()
        .take()
        .expect("it has ended")
        .expect("a quorum");
    assert_eq!(tag.number, 2, "above what was transferred");
    assert_eq!(world.actor(&next).get("k").1.as_deref(), Some("new"));
}

/// A read takes the value from the old configuration and the tag from the new one, and knows so who holds it.
#[test]
fn a_version_that_was_transferred_is_read_in_one_go() {
    let (world, actor, [c, next]) = pending();
    let (env, sources, target) = (world.env(), [c], next);
    let moved = async move { transfer(&env, &sources, &target, &|_| {}).await };
    assert_eq!(world.run(moved), Ok(TransferOutcome::Complete));
    world.settle();
    let (rounds, bytes) = (world.gathers(), world.element_bytes());
    assert_eq!(actor.get("k").1.as_deref(), Some("old"));
    assert_eq!(world.element_bytes() - bytes, "old".len(), "sent once");
    assert_eq!(
        world.gathers() - rounds,
        2,
        "one call for each configuration"
    );
}

/// Members with full disks are asked for the largest tag alone. If the domain has moved by then, the next configuration has
/// it, and perhaps had it not yet when it was asked ahead.
#[test]
fn an_answer_from_before_the_transfer_does_not_count_where_disks_are_full() {
    let (world, actor, [c, next]) = pending();
    for number in 0..3 {
        world.disk(number, |disk| disk.is_full = true);
    }
    let asks = |m: &Message| m.is_query() && !m.is_reply();
    world.hold(asks);
    let write = world.spawn(actor.write("k", "new"));
    world.settle();
    assert_eq!(world.deliver(asks), 6, "both are asked at once");
    world.settle();
    let late = world.set_aside(asks);
    assert_eq!(late.len(), 3, "the old one is asked once more");
    world.release();
    for number in 0..3 {
        world.disk(number, |disk| disk.is_full = false);
    }
    let resumed = world.run(resume(world.actor(&c).client(), &c));
    assert_eq!(resumed, Ok(Some(next)));
    world.settle();
    world.put_back(late);
    world.settle();
    let tag = write.borrow_mut().take().expect("it has ended");
    assert_eq!(
        tag.expect("a quorum").number,
        2,
        "above what was transferred"
    );
}
