//! Single contact mode (`docs/spec` 6.7): servers answer a query for later configurations, too.

use super::merging::{changed, first};
use super::{announce, resume};
use crate::world::{Message, World, server, with};
use areo_core::config::{Configuration, Decider, Options};
use areo_core::pointer::Pointer;
use std::sync::Arc;

fn options(single_contact: bool) -> Options {
    Options {
        single_contact,
        ..Options::default()
    }
}

/// Seven servers, of which the first four are members, and an object that they have.
fn begun(single_contact: bool) -> (World, Arc<Configuration>) {
    let c = with(&first(Decider::Agreement, 4), options(single_contact));
    let world = World::of(&c, 7, 1);
    world.actor(&c).put("k", "v");
    world.settle();
    (world, c)
}

/// Adds a server to the domain, and leaves that pending. Its members know the new configuration from then on.
fn grown(world: &World, c: &Arc<Configuration>, new: usize) -> Arc<Configuration> {
    let next = changed(c, |it| it.with(server(new)));
    announce(world, c, &Pointer::pending(&next));
    world.settle();
    world.actor(c).get("other");
    world.settle();
    next
}

/// `[R-20 answers-for-later]`: members of several configurations are asked in the first of them alone.
#[test]
fn a_server_is_asked_once() {
    let requests = [true, false].map(|single_contact| {
        let (world, c) = begun(single_contact);
        let mut last = c.clone();
        [4, 5, 6].map(|new| {
            let before = world.requests();
            let (_, text) = world.actor(&c).get("k");
            assert_eq!(text.as_deref(), Some("v"));
            world.settle();
            let asked = world.requests() - before;
            last = grown(&world, &last, new);
            world.actor(&c).put("k", "v");
            world.settle();
            asked
        })
    });
    // Of four members the first three answer for the others; of six two more are needed.
    assert_eq!(requests, [[4, 4, 7], [4, 9, 15]]);
}

/// The answers of members for a later configuration do not count once the object may have moved there after the
/// answers. Otherwise a quorum would combine answers from before the move with a member that the transfer left out.
#[test]
fn answers_from_before_a_move_do_not_count() {
    let (world, c) = begun(true);
    let next = grown(&world, &c, 4);
    let reader = world.actor(&c);
    let read = world.spawn(reader.read("k"));
    for replies in [false, true] {
        world.deliver(|m| m.is_reply() == replies && m.at(&[0, 1]));
    }
    let late = world.set_aside(Message::is_query);
    assert!(!late.is_empty(), "it waits for a third member");
    // The object comes to four members of the next configuration, which becomes final.
    world.hold(|m| m.at(&[4]) && m.is_put());
    let done = world.run(resume(world.actor(&c).client(), &c));
    assert_eq!(done, Ok(Some(next)));
    world.lose(|m| m.at(&[4]) && m.is_put());
    world.release();
    world.settle();
    assert!(read.borrow().is_none(), "it has two answers");
    world.hold(|m| m.is_query() && m.at(&[2, 3]));
    world.put_back(late);
    for replies in [false, true] {
        world.deliver(|m| m.is_reply() == replies && m.at(&[2, 3]));
    }
    let found = world.finish(&read).expect("a quorum answers");
    assert_eq!(
        found.value.as_ref().map(crate::world::text).as_deref(),
        Some("v")
    );
}
