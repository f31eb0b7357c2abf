//! Chains of decided-once cells: one winner per generation, and every acknowledged one is found (`docs/spec` `[X-41 chain]`).

use crate::paper::reconfiguration::reconfigure;
use crate::world::{Actor, Chaos, Message, World, configuration, successor};
use areo_core::config::Dap;
use areo_core::error::Unavailable;
use areo_core::limits;
use areo_core::manager::{AppendError, Appended, Chain, Link};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

fn chain(actor: &Actor) -> Chain<crate::world::WorldEnv> {
    actor.client().root(&actor.c).chain("test")
}

fn value(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn append(world: &World, actor: &Actor, after: Option<u32>, text: &str) -> Appended {
    let (chain, value) = (chain(actor), value(text));
    let appended = world.run(async move { chain.append(after, &value).await });
    appended.expect("a quorum is up")
}

/// The generation before the first one that is not decided, as a registry reads it.
async fn read_on(
    chain: &Chain<crate::world::WorldEnv>,
    known: Option<u32>,
) -> Result<Option<Link>, Unavailable> {
    let (mut latest, mut next) = (None, known.unwrap_or(0));
    while let Some(value) = chain.at(next).await? {
        let generation = next;
        latest = Some(Link { generation, value });
        next += 1;
    }
    Ok(latest)
}

fn latest(world: &World, actor: &Actor, known: Option<u32>) -> Option<Link> {
    let chain = chain(actor);
    let latest = world.run(async move { read_on(&chain, known).await });
    latest.expect("a quorum is up")
}

/// All generations, page by page.
fn all(world: &World, actor: &Actor) -> Vec<Link> {
    let (mut links, mut after) = (Vec::new(), None);
    loop {
        let chain = chain(actor);
        let page = world.run(async move { chain.page(after).await });
        let page = page.expect("a quorum is up");
        links.extend(page.links);
        match page.end {
            Some(end) => after = Some(end),
            None => return links,
        }
    }
}

/// Acknowledged appends by generation.
type Won = Rc<RefCell<BTreeMap<u32, Bytes>>>;

/// Reads and appends until it has won as often as it wants; what was acknowledged before a read began is found by it.
async fn compete(chain: Chain<crate::world::WorldEnv>, who: usize, won: Won) {
    let mut known = None;
    for attempt in 0..12 {
        let acknowledged = won.borrow().keys().next_back().copied();
        // Every second read is from the beginning.
        let Ok(latest) = read_on(&chain, known.filter(|_| attempt % 2 == 0)).await else {
            continue;
        };
        known = latest.map(|link| link.generation);
        assert!(known >= acknowledged, "{known:?} {acknowledged:?}");
        let value = value(&format!("{who}.{attempt}"));
        if let Ok(Appended::Won { generation }) = chain.append(known, &value).await {
            let before = won.borrow_mut().insert(generation, value);
            assert_eq!(before, None, "generation {generation} has one winner");
        }
    }
}

#[test]
fn of_those_that_append_at_once_one_wins_each_generation_while_the_root_domain_moves() {
    let mut appended = 0;
    for seed in 0..150 {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::of(&c, 6, seed);
        world.random(Chaos {
            lose: [0, 20][world.below(2)],
            duplicate: 50,
            pass_time: 100,
        });
        let won = Won::default();
        let competing: Vec<_> = (0..3)
            .map(|who| {
                let actor = world.actor(&c);
                world.spawn(compete(chain(&actor), who, won.clone()))
            })
            .collect();
        let next = successor(&c, 3, 3, Dap::Abd);
        let moved = world.spawn(reconfigure(world.actor(&c).client(), &c, &next));
        for one in &competing {
            world.finish(one);
        }
        // Without a quorum in time it is pending.
        drop(world.finish(&moved));
        world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        let links = all(&world, &world.actor(&c));
        let found: BTreeMap<u32, Bytes> = links
            .iter()
            .map(|link| (link.generation, link.value.clone()))
            .collect();
        let numbers: Vec<u32> = found.keys().copied().collect();
        let expected: Vec<u32> = (0..).take(found.len()).collect();
        assert_eq!(numbers, expected, "seed {seed}: no gaps");
        for (generation, value) in won.borrow().iter() {
            assert_eq!(found.get(generation), Some(value), "seed {seed}");
        }
        // It may hear of an attempt that the listing did not.
        let latest = latest(&world, &world.actor(&c), None);
        assert!(latest.map(|link| link.generation) >= numbers.last().copied());
        appended += won.borrow().len();
    }
    assert!(appended > 1500, "mostly one of them wins: {appended}");
}

/// A value that a proposer left at one acceptor may have been decided: a reader that hears of it finishes it, and nothing else is that generation.
#[test]
fn the_latest_generation_may_be_one_that_another_proposer_left() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    assert_eq!(latest(&world, &actor, None), None);
    append(&world, &actor, None, "first");
    let is_accept = |m: &Message| m.is_cell_accept();
    world.hold(move |m| is_accept(m) && !m.at(&[0]));
    let (left, text) = (chain(&actor), value("left"));
    let outcome = world.run(async move { left.append(Some(0), &text).await });
    assert!(
        matches!(outcome, Err(AppendError::Unavailable(_))),
        "{outcome:?}"
    );
    world.lose(is_accept);
    world.release();
    world.hold(|m| m.at(&[2]));
    let left = Link {
        generation: 1,
        value: value("left"),
    };
    for known in [None, Some(0), Some(1)] {
        let found = latest(&world, &world.actor(&c), known);
        assert_eq!(found.as_ref(), Some(&left), "{known:?}");
    }
    let lost = append(&world, &world.actor(&c), Some(0), "late");
    assert_eq!(lost, Appended::Lost(left));
}

/// An attempt of which nothing came is listed, and is no generation; the one before it is the latest.
#[test]
fn an_attempt_of_which_nothing_came_is_no_generation() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    append(&world, &actor, None, "first");
    world.hold(|m: &Message| m.is_cell_accept() && !m.at(&[0]));
    let (left, text) = (chain(&actor), value("left"));
    let outcome = world.run(async move { left.append(Some(0), &text).await });
    assert!(outcome.is_err());
    world.lose(Message::is_cell_accept);
    world.release();
    // The transfer does not hear the one acceptor.
    world.hold(|m| m.at(&[0]));
    let next = successor(&c, 3, 3, Dap::Abd);
    let moved = world.run(reconfigure(world.actor(&c).client(), &c, &next));
    assert!(moved.is_ok(), "{moved:?}");
    world.release();
    let found = latest(&world, &world.actor(&c), None);
    assert_eq!(found.map(|link| link.generation), Some(0));
    let won = append(&world, &world.actor(&c), Some(0), "second");
    assert_eq!(won, Appended::Won { generation: 1 });
}

#[test]
fn many_generations_are_read_in_a_round_for_each_hundred() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let mut after = None;
    for generation in 0..250 {
        let won = append(&world, &actor, after, "x");
        assert_eq!(won, Appended::Won { generation });
        after = Some(generation);
    }
    let before = world.gathers();
    let links = all(&world, &actor);
    let generations: Vec<u32> = links.iter().map(|link| link.generation).collect();
    assert_eq!(generations, (0..250).collect::<Vec<u32>>());
    assert_eq!(world.gathers() - before, 3);
}

#[test]
fn a_chain_is_bounded_and_no_number_wraps() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let refused = |after, bytes: usize| {
        let (chain, value) = (chain(&actor), Bytes::from(vec![7; bytes]));
        world.run(async move { chain.append(after, &value).await })
    };
    let most = limits::CELL_BYTES;
    assert!(matches!(
        refused(None, most),
        Ok(Appended::Won { generation: 0 })
    ));
    let bytes = most + 1;
    assert_eq!(
        refused(Some(0), bytes),
        Err(AppendError::TooLarge { bytes })
    );
    assert_eq!(refused(Some(u32::MAX), 1), Err(AppendError::Full));
    // A client that broke the rule of no gaps, or the last generation of all.
    append(&world, &actor, Some(u32::MAX - 1), "last");
    let chain = chain(&actor);
    let last = world.run(async move { chain.at(u32::MAX).await });
    assert_eq!(last, Ok(Some(value("last"))));
    let links = all(&world, &actor);
    assert_eq!(links.last().map(|link| link.generation), Some(u32::MAX));
}
