//! Rounds of operations in a quiet system (`docs/spec` 3.3, 3.4; issue 4 point 8).

use super::announce;
use crate::world::{self, Actor, Message, World, configuration, successor};
use areo_core::config::{Collect, Configuration, Dap, Options, Thrift};
use areo_core::dap::Scope;
use areo_core::pointer::Pointer;
use areo_core::reconfig::sequence;
use std::sync::Arc;

fn with(options: Options, dap: Dap) -> Arc<Configuration> {
    world::with(&configuration(3, dap, 1, 0), options)
}

/// Quorum calls that `act` takes.
fn rounds(world: &World, act: impl FnOnce()) -> usize {
    let before = world.gathers();
    act();
    world.gathers() - before
}

fn write_and_read(world: &World, actor: &Actor, reader: &Actor) -> [usize; 2] {
    let write = rounds(world, || assert_ne!(actor.put("k", "v").number, 0));
    world.settle();
    let read = rounds(world, || {
        assert_eq!(reader.get("k").1.as_deref(), Some("v"));
    });
    [write, read]
}

/// Ares takes 4 rounds for a write and for a read; Ares II takes 2, and 1 for a read of what is known to be at a quorum.
#[test]
fn ares_takes_four_rounds_and_ares_2_two_or_one() {
    for dap in [Dap::Abd, Dap::Ec { k: 1 }] {
        for collect in [Collect::On, Collect::Off, Collect::Paper] {
            for (piggyback, expected) in [(false, [4, 4]), (true, [2, 1])] {
                let options = Options {
                    piggyback,
                    collect,
                    ..Options::default()
                };
                let c = with(options, dap);
                let world = World::new(&c, 1);
                let taken = write_and_read(&world, &world.actor(&c), &world.actor(&c));
                assert_eq!(taken, expected, "{options:?}");
            }
        }
    }
    let ares = with(Options::ARES, Dap::Abd);
    let world = World::new(&ares, 1);
    assert_eq!(
        write_and_read(&world, &world.actor(&ares), &world.actor(&ares)),
        [4, 4]
    );
}

/// A read of what is at fewer than a quorum, and not confirmed, writes it back: 2 rounds.
#[test]
fn a_read_of_an_incomplete_version_takes_two_rounds() {
    let c = with(Options::default(), Dap::Abd);
    let world = World::new(&c, 1);
    world.hold(|m| m.is_put() && !m.at(&[0]));
    assert!(world.run(world.actor(&c).write("k", "v")).is_err());
    world.lose(Message::is_put);
    world.release();
    // The version must be met.
    world.hold(|m| m.at(&[2]));
    let reader = world.actor(&c);
    let taken = rounds(&world, || {
        assert_eq!(reader.get("k").1.as_deref(), Some("v"));
    });
    assert_eq!(taken, 2);
}

/// Each configuration on the way costs a round; with Ares, that has no pointers on its replies, two.
#[test]
fn a_hop_costs_a_round() {
    for (options, write, read, hop) in [(Options::default(), 2, 1, 1), (Options::ARES, 4, 4, 2)] {
        for hops in 0..4 {
            let c = with(options, Dap::Abd);
            let world = World::of(&c, 3 * 4, 1);
            let mut last = c.clone();
            for step in 1..=hops {
                let next = successor(&last, 3 * step, 3, Dap::Abd);
                announce(&world, &last, &Pointer::pending(&next));
                last = next;
            }
            // A client for each, so that none knows the way.
            let taken = write_and_read(&world, &world.actor(&c), &world.actor(&c));
            assert_eq!(
                taken,
                [write + hop * hops, read + hop * hops],
                "{options:?}, {hops}"
            );
        }
    }
}

/// A final configuration costs the way to it once: the client starts there the next time (`[A-7 freshest-start]`), also with
/// another operation.
#[test]
fn the_way_to_a_final_configuration_is_gone_once() {
    let c = with(Options::default(), Dap::Abd);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    actor.put("k", "v");
    super::move_to(&world, &actor, &successor(&c, 3, 3, Dap::Abd));
    world.settle();
    let reader = world.actor(&c);
    assert_eq!(rounds(&world, || drop(reader.get("k"))), 2);
    assert_eq!(rounds(&world, || drop(reader.get("k"))), 1);
    assert_eq!(
        rounds(&world, || assert_eq!(reader.put("other", "v").number, 1)),
        2
    );
}

/// A pending pointer that is at fewer than a quorum is put there before it is made use of: one round more
/// (`[A-4 from-the-asked]`, decision 0007).
#[test]
fn a_pointer_at_a_minority_costs_a_round() {
    let c = with(Options::default(), Dap::Abd);
    let world = World::of(&c, 6, 1);
    let next = successor(&c, 3, 3, Dap::Abd);
    world.hold(|m| m.at(&[1, 2]) && m.is_config());
    let (env, from, pointer) = (world.env(), c.clone(), Pointer::pending(&next));
    let put = async move { sequence::put_config(&env, &from, &pointer).await };
    assert!(world.run(put).is_err(), "it stays at server 0");
    world.lose(Message::is_config);
    world.release();
    world.hold(|m| m.at(&[2]));
    let writer = world.actor(&c);
    assert_eq!(
        rounds(&world, || assert_eq!(writer.put("k", "v").number, 1)),
        2 + 1 + 1
    );
}

/// A regular read takes one round, writes nothing back, and goes along the sequence as any other.
#[test]
fn a_regular_read_takes_one_round_and_writes_nothing_back() {
    let c = with(Options::default(), Dap::AbdPublished);
    let world = World::new(&c, 1);
    world.hold(|m| m.is_put() && !m.at(&[0]));
    assert!(world.run(world.actor(&c).write("k", "v")).is_err());
    world.lose(Message::is_put);
    world.release();
    let reader = world.actor(&c);
    let name = world::name("k");
    let regular = || {
        let domain = reader.domain();
        let name = name.clone();
        let found = world.run(async move { domain.read_regular(&name, Scope::Whole).await });
        found.unwrap().tag.number
    };
    let before = world.put_bytes();
    let mut found = Vec::new();
    let taken = rounds(&world, || found.extend((0..20).map(|_| regular())));
    assert_eq!(taken, 20);
    assert_eq!(world.put_bytes(), before, "nothing is written back");
    assert!(
        found.contains(&1),
        "it is at one member of three: {found:?}"
    );
    // What completed is found wherever the sequence ends.
    assert_ne!(reader.put("k", "w").number, 0);
    let next = successor(&c, 0, 3, Dap::AbdPublished);
    announce(&world, &c, &Pointer::pending(&next));
    let newest = world.actor(&c).put("k", "x").number;
    assert_eq!(regular(), newest);
}

/// In quiet times a thrifty call asks exactly a quorum, and a read finds what a put left, also at other members.
#[test]
fn a_thrifty_call_asks_exactly_a_quorum() {
    let kinds = [
        (3, Dap::Abd),
        (5, Dap::Abd),
        (4, Dap::AbdPublished),
        (5, Dap::Ec { k: 3 }),
        (5, Dap::Cas { k: 3 }),
    ];
    let thrift = [Thrift::Off, Thrift::Queries, Thrift::Calls];
    for (thrift, (n, dap)) in thrift
        .into_iter()
        .flat_map(|it| kinds.map(|kind| (it, kind)))
    {
        let options = Options {
            thrift,
            ..Options::default()
        };
        let c = world::with(&configuration(n, dap, 1, 0), options);
        let world = World::new(&c, 1);
        // Each member is described the configuration once.
        assert_ne!(world.actor(&c).put("before", "v").number, 0);
        for number in 0..30 {
            world.actor(&c).put(&format!("before {number}"), "v");
            world.settle();
        }
        let quorum = c.quorums().quorum();
        let queried = [n, quorum][usize::from(thrift != Thrift::Off)];
        let spares_puts = thrift == Thrift::Calls && dap.is_replicated();
        let written = [n, quorum][usize::from(spares_puts)];
        for number in 0..20 {
            let text = format!("value {number}");
            let requests = |act: &dyn Fn()| {
                let before = (world.requests(), world.gathers());
                act();
                world.settle();
                (world.requests() - before.0, world.gathers() - before.1)
            };
            let case = format!("{dap} {n}, {thrift:?}");
            let put = requests(&|| assert_ne!(world.actor(&c).put("k", &text).number, 0));
            assert_eq!(put.0, queried + (put.1 - 1) * written, "{case}");
            let get = requests(&|| {
                assert_eq!(world.actor(&c).get("k").1.as_deref(), Some(&text[..]));
            });
            // After a thrifty put the member that is asked for the value may have none: another one is asked. One that has it needs no
            // write-back.
            let most = queried + (get.1 - 1) * written + usize::from(spares_puts);
            let least = if spares_puts { queried } else { most };
            assert!((least..=most).contains(&get.0), "{case}: {get:?}");
            if dap != Dap::AbdPublished && !spares_puts {
                assert_eq!(get.1, 1, "{case}: what was put everywhere is read at once");
            }
        }
    }
}

/// A member of the quorum is away: the others are asked at once, or after a while.
#[test]
fn a_thrifty_call_asks_the_others_for_one_that_is_away() {
    let thrift = [Thrift::Queries, Thrift::Calls];
    for (thrift, dap) in thrift
        .into_iter()
        .flat_map(|it| [(it, Dap::Abd), (it, Dap::Ec { k: 1 })])
    {
        let options = Options {
            thrift,
            ..Options::default()
        };
        let c = with(options, dap);
        let world = World::new(&c, 1);
        world.crash(0);
        for number in 0..20 {
            let text = format!("value {number}");
            assert_ne!(world.actor(&c).put("k", &text).number, 0);
            assert_eq!(world.actor(&c).get("k").1.as_deref(), Some(&text[..]));
        }
    }
}
