//! Domains whose configurations are a lattice: several successors of a configuration at a time, kept and shown whole
//! (`docs/spec`, `[L-1 one-order]`, `[R-24 spread-all-known]`, `[R-25 whole-sets]`).

use crate::world::{World, configuration, name, server, successor};
use areo_core::config::{Configuration, Dap, Descriptor, Membership};
use areo_core::limits;
use areo_core::message::{Access, Body, Refusal, Reply, Request, Want};
use areo_core::pointer::{Pointer, Successors};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use std::sync::Arc;

/// The configuration of this membership.
pub fn of(membership: &Membership) -> Arc<Configuration> {
    let descriptor = Descriptor {
        index: membership.size().expect("few changes"),
        members: membership.members(),
        lattice: Some(membership.clone()),
        ..configuration(1, Dap::Abd, 1, 0).descriptor().clone()
    };
    Configuration::new(descriptor).expect("a valid descriptor")
}

/// A first configuration of three servers, and one after the other that each has one server more than the one before.
fn chain<const N: usize>() -> [Arc<Configuration>; N] {
    let mut membership = Membership::first((0..3).map(server));
    std::array::from_fn(|place| {
        if place > 0 {
            membership = membership.with(server(2 + place));
        }
        of(&membership)
    })
}

fn set(pointers: impl IntoIterator<Item = Pointer>) -> Successors {
    Successors::new(pointers.into_iter().collect()).expect("they are ascending")
}

fn ask(
    (world, number): (&World, usize),
    c: &Arc<Configuration>,
    successors: Successors,
    body: Body,
) -> Result<(Successors, Option<Reply>), Refusal> {
    let request = Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors,
        body,
    };
    world.ask(number, request).map(Reply::open)
}

/// The successors that server 0 shows after a request with these pointers.
fn shown(world: &World, c: &Arc<Configuration>, sent: Successors) -> Result<Successors, Refusal> {
    ask((world, 0), c, sent, Body::ReadConfig).map(|(shown, _)| shown)
}

#[test]
fn a_server_keeps_every_pending_successor_and_shows_them_whole() {
    let [bottom, a, b, c] = chain();
    let world = World::of(&bottom, 6, 1);
    let pending = Pointer::pending;
    let nothing = Successors::default;
    // In any order, one by one and together.
    for (sent, expected) in [
        (set([pending(&b)]), set([pending(&b)])),
        (set([pending(&a)]), set([pending(&a), pending(&b)])),
        (nothing(), set([pending(&a), pending(&b)])),
        (
            set([pending(&b), pending(&c)]),
            set([&a, &b, &c].map(pending)),
        ),
    ] {
        assert_eq!(shown(&world, &bottom, sent), Ok(expected.clone()));
        world.crash(0);
        world.restart(0, false);
        assert_eq!(shown(&world, &bottom, nothing()), Ok(expected));
    }
    let query = Access::query(Want::Element, Tag::INITIAL);
    let body = Body::Access(vec![(name("k"), query)]);
    let answered = ask((&world, 0), &bottom, nothing(), body.clone()).expect("it serves");
    assert_eq!(answered.0.len(), 3, "with each answer");
    assert!(answered.1.is_some(), "pending ones withhold nothing");
    // What is final takes the place of what it reaches, and withholds.
    let last = set([Pointer::finalized(&b)]);
    assert_eq!(shown(&world, &bottom, last.clone()), Ok(last.clone()));
    let withheld = ask((&world, 0), &bottom, nothing(), body);
    assert_eq!(withheld, Ok((last, None)));
}

#[test]
fn a_server_refuses_what_cannot_be_shown_or_contradicts_what_it_knows() {
    let all: [Arc<Configuration>; limits::SUCCESSORS + 2] = chain();
    let (bottom, above) = all.split_first().expect("there are some");
    let world = World::of(bottom, 3, 1);
    let (most, beyond) = above.split_at(limits::SUCCESSORS - 1);
    let most = set(most.iter().map(Pointer::pending));
    assert_eq!(shown(&world, bottom, most.clone()), Ok(most.clone()));
    let beside = of(&Membership::first((0..3).map(server)).with(server(60)));
    let sequence = successor(&configuration(3, Dap::Abd, 1, 0), 0, 3, Dap::Abd);
    for other in [beside, sequence] {
        for status in [Pointer::pending, Pointer::finalized] {
            let refused = shown(&world, bottom, set([status(&other)]));
            assert_eq!(refused, Err(Refusal::Forked), "{other:?}");
        }
    }
    let back = ask(
        (&world, 0),
        &above[0],
        set([Pointer::pending(bottom)]),
        Body::ReadConfig,
    );
    assert_eq!(back, Err(Refusal::Malformed));
    assert_eq!(shown(&world, bottom, Successors::default()), Ok(most));
    let [last, one_more] = [&beyond[0], &beyond[1]].map(|c| set([Pointer::pending(c)]));
    let all = shown(&world, bottom, last).expect("there is room for it");
    assert_eq!(all.len(), limits::SUCCESSORS);
    assert_eq!(shown(&world, bottom, one_more), Err(Refusal::Full));
    assert_eq!(shown(&world, bottom, Successors::default()), Ok(all));
}

/// A sequence is as it was: a configuration has one pending successor.
#[test]
fn a_sequence_has_one_pending_successor() {
    let first = configuration(3, Dap::Abd, 1, 0);
    let next = successor(&first, 0, 3, Dap::Abd);
    let later = successor(&next, 0, 3, Dap::Abd);
    let world = World::of(&first, 3, 1);
    let both = set([Pointer::pending(&next), Pointer::pending(&later)]);
    assert_eq!(shown(&world, &first, both), Err(Refusal::Malformed));
    let nothing = shown(&world, &first, Successors::default());
    assert_eq!(nothing, Ok(Successors::default()));
}

/// The pointers of a configuration that the disk of a server holds.
fn recorded(world: &World, number: usize, c: &Arc<Configuration>) -> Vec<Arc<Configuration>> {
    world.disk(number, |disk| {
        let pointers = disk.headers().filter_map(|header| match header {
            Header::Pointer { key, pointer } if *key == c.id() => Some(&pointer.configuration),
            _ => None,
        });
        pointers.cloned().collect()
    })
}

/// Two changes at once: one member of the first configuration knows one successor, another member the other one. A write visits
/// both, in the order of the lattice, and leaves no configuration behind that a later operation could begin at and miss it.
#[test]
fn an_operation_visits_all_successors_and_makes_all_that_it_knows_known_on_its_way() {
    let [bottom, a, b] = chain();
    let world = World::of(&bottom, 5, 1);
    world.actor(&bottom).put("k", "v");
    world.settle();
    for (number, next) in [(0, &a), (1, &b)] {
        let sent = set([Pointer::pending(next)]);
        ask((&world, number), &bottom, sent, Body::ReadConfig).expect("it serves");
    }
    // A quorum in which one member knows each.
    world.hold(|message| message.at(&[2]));
    let written = world.actor(&bottom).put("k", "w");
    for number in [0, 1] {
        let mut known = recorded(&world, number, &bottom);
        known.sort_by_key(|c| c.id());
        assert_eq!(known, [a.clone(), b.clone()], "at a quorum of the first");
    }
    let knowing = |number: &usize| recorded(&world, *number, &a) == std::slice::from_ref(&b);
    assert!(
        (0..4).filter(knowing).count() >= 3,
        "at a quorum of the nearest"
    );
    // A client that meets the other members, and one that begins at the nearest.
    world.release();
    world.settle();
    world.hold(|message| message.at(&[0]));
    for start in [&bottom, &a, &b] {
        let (tag, text) = world.actor(start).get("k");
        assert_eq!((tag, text.as_deref()), (written, Some("w")), "{start:?}");
    }
}
