//! The published protocol loses a write (`docs/spec` 3.5 item 1; schedules T1 and T2 of section 8), and closing does
//! not (`[A-8 closed-get]`). `docs/decisions/0006-transfer-closes-what-it-reads.md` draws the schedule.

use crate::world::{Message, World, configuration, name, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::dap::{self, Scope};
use areo_core::gather::Visit;
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use std::sync::Arc;

/// The kind of requests that read the old configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    /// Requests without the pointer to the new configuration, as published.
    Open,
    Closing,
}

/// A write and a reconfiguration at once, in the one order of deliveries that matters. Server 0 is the last to hear of the
/// new configuration, server 1 is not heard by the reader of the old one. Returns what is read at the end.
fn read_after(c: &Arc<Configuration>, transfer: Transfer) -> Option<String> {
    let (n, quorum) = (c.n(), c.quorums().quorum());
    let world = World::of(c, 2 * n, 1);
    world.actor(c).put("k", "old");
    world.settle();
    let members: Vec<usize> = (0..n).collect();
    let (early, last): (Vec<usize>, Vec<usize>) = ((1..quorum).collect(), vec![0]);
    let but = |left_out: usize| -> Vec<usize> { (0..n).filter(|s| *s != left_out).collect() };

    // The write has its tag; its put reaches all but one of a quorum, which know of nothing new.
    let to_members = members.clone();
    world.hold(move |m| m.at(&to_members) && (m.is_put() || m.is_note()));
    let write = world.spawn(world.actor(c).write("k", "new"));
    world.settle();
    deliver(&world, Message::is_put, &early);

    // The new configuration is announced to a quorum, which server 0 is not one of.
    let next = successor(c, n, n, c.dap());
    let pointer = Pointer::pending(&next);
    let away = last.clone();
    world.hold(move |m| m.at(&away) && m.is_config());
    let (env, from) = (world.env(), c.clone());
    let announced = pointer.clone();
    let put = async move { sequence::put_config(&env, &from, &announced).await };
    world.run(put).expect("a quorum is there");

    // The transfer reads from a quorum without server 1.
    world.hold(|m| m.at(&[1]) && m.is_query());
    let at = match transfer {
        Transfer::Open => Visit::new(c),
        Transfer::Closing => Visit::closing(c, &pointer),
    };
    let (env, quorum_of) = (world.env(), but(1));
    assert!(quorum_of.len() >= quorum);
    let get = async move { dap::get_data(&env, &at, &name("k"), None, Scope::Whole).await };
    let found = world.run(get).expect("a quorum is there");

    // Only now the put reaches server 0.
    deliver(&world, Message::is_put, &last);
    world.release();
    world.settle();

    // The rest of the reconfiguration.
    let (env, to) = (world.env(), Visit::new(&next));
    let value = found.value.expect("it was written");
    let holders = vec![false; n];
    let put =
        async move { dap::put_data(&env, &to, &name("k"), found.tag, &value, &holders).await };
    world.run(put).expect("a quorum is there");
    let (env, from) = (world.env(), c.clone());
    let finalized = Pointer::finalized(&next);
    let put = async move { sequence::put_config(&env, &from, &finalized).await };
    world.run(put).expect("a quorum is there");
    while write.borrow().is_none() {
        assert!(world.step(), "the write ends");
    }
    let written = write.borrow_mut().take().expect("it has ended");
    written.expect("and was acknowledged");
    world.actor(c).get("k").1
}

/// Delivers such requests to these servers, and what they answer.
fn deliver(world: &World, is_such: fn(&Message) -> bool, servers: &[usize]) {
    let reached = world.deliver(|m| is_such(m) && !m.is_reply() && m.at(servers));
    assert_eq!(reached, servers.len(), "each is under way once");
    world.deliver(|m| is_such(m) && m.is_reply() && m.at(servers));
    world.settle();
}

fn configurations() -> [Arc<Configuration>; 3] {
    [
        configuration(3, Dap::Abd, 1, 0),
        configuration(5, Dap::Ec { k: 3 }, 1, 0),
        configuration(4, Dap::Ec { k: 2 }, 1, 0),
    ]
}

#[test]
fn a_transfer_that_does_not_close_loses_an_acknowledged_write() {
    for c in configurations() {
        let read = read_after(&c, Transfer::Open);
        assert_eq!(read.as_deref(), Some("old"), "{c:?}: the counterexample");
    }
}

#[test]
fn a_transfer_that_closes_loses_nothing() {
    for c in configurations() {
        let read = read_after(&c, Transfer::Closing);
        assert_eq!(read.as_deref(), Some("new"), "{c:?}");
    }
}
