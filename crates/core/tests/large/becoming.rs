//! Uploads that begin in a domain of the kind `abd` and end in a conditional one (`[W-12 becoming-conditional]`, `[W-11 given-up]`): none
//! is lost, and none stays for ever.

use crate::large::ranked::{found, put_blocks, write};
use crate::large::uploader::{Upload, look, sweep};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::paper::reconfiguration::{announce, move_to};
use crate::world::{Actor, Message, World, configuration, name, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::Client;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::error::WriteError;
use areo_core::pointer::Pointer;
use std::sync::Arc;

const OLD: &str = "the old value";
const NEW: &str = "the new value, longer";
const N: usize = 3;

/// How far a writer gets that has all its blocks at quorums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// The commit was accepted by this number of servers.
    Committed(usize),
    /// The manifest was stored by so many.
    Put(usize),
}

const STEPS: [Until; 6] = [
    Until::Committed(0),
    Until::Committed(1),
    Until::Committed(N),
    Until::Put(1),
    Until::Put(2),
    Until::Put(N),
];

/// A domain of the kind `abd`, and the conditional configuration after it, of other servers.
fn world() -> (World, Arc<Configuration>, Arc<Configuration>, Actor) {
    let c = configuration(N, Dap::Abd, 1, 2);
    let next = successor(&c, N, N, Dap::Conditional { k: 1 });
    let world = World::of(&c, 2 * N, 3);
    let actor = world.actor(&c);
    (world, c, next, actor)
}

fn is_manifest_put(message: &Message) -> bool {
    message.is_put() && !message.is_of_block()
}

/// Runs the steps; what is in flight at the end is lost, and so is the writer.
fn leave(world: &World, c: &Arc<Configuration>, until: Until) {
    let upload = Upload::begin(&world.actor(c), NEW);
    put_blocks(world, &upload);
    let (servers, is_last): (usize, fn(&Message) -> bool) = match until {
        Until::Committed(servers) => (servers, Message::is_cell_accept),
        Until::Put(servers) => (servers, is_manifest_put),
    };
    let arrives: Vec<usize> = (0..servers).collect();
    world.hold(move |m| is_last(m) && (m.is_reply() || !m.at(&arrives)));
    let ended = world.run(async move { upload.publish("k").await });
    ended.expect_err("it hears nothing");
    world.lose(is_last);
    world.release();
    world.settle();
}

/// A writer ends after any step, and the domain becomes conditional: its value is there with all its blocks, or is not and never will
/// be, whichever servers a sweep and a reader hear from.
#[test]
fn what_a_writer_leaves_is_current_or_swept_after_the_move() {
    for (until, before) in STEPS
        .iter()
        .flat_map(|until| [None, Some(OLD)].map(|it| (*until, it)))
    {
        for (is_moved, without, unheard) in [false, true]
            .into_iter()
            .flat_map(|it| (0..N).flat_map(move |a| (0..N).map(move |b| (it, a, b))))
        {
            let case = format!(
                "{until:?} over {before:?}, moved: {is_moved}, sweep without {without}, read without {unheard}"
            );
            let (world, c, next, actor) = world();
            if before.is_some() {
                write(&world, &actor, OLD);
            }
            leave(&world, &c, until);
            match is_moved {
                true => move_to(&world, &actor, &next),
                false => announce(&world, &c, &Pointer::pending(&next)),
            }
            world.settle();
            let crash = |number: usize| [number, N + number].map(|number| world.crash(number));
            let restart = |number| [number, N + number].map(|it| world.restart(it, false));
            crash(without);
            for _ in 0..2 {
                world.run(sweep(&actor)).expect("a quorum is up");
            }
            let after = world.run(look(&actor)).expect("a quorum is up");
            assert_eq!(after.orphans(), Count::default(), "{case}");
            restart(without);
            crash(unheard);
            let seen = found(&world, &actor);
            let is_new = seen.as_deref() == Some(NEW);
            assert!(is_new || seen.as_deref() == before, "{case}: {seen:?}");
            match until {
                Until::Put(2..) => assert!(is_new, "{case}"),
                Until::Committed(0 | 1) => assert!(!is_new, "{case}"),
                Until::Committed(_) | Until::Put(_) => {}
            }
            assert_eq!(after.live.uploads, u64::from(seen.is_some()), "{case}");
            restart(unheard);
            if !is_moved {
                move_to(&world, &actor, &next);
                assert_eq!(found(&world, &actor), seen, "{case}: after the move");
            }
        }
    }
}

/// A writer stands still before any of its calls while the domain becomes conditional, and before a later one while a sweep gives its
/// upload up.
#[test]
fn a_writer_that_meets_the_move_asks_whether_it_was_given_up() {
    let mut outcomes = [0, 0];
    for before in [None, Some(OLD)] {
        for is_moved in [false, true] {
            for first in 0.. {
                let mut is_stopped = false;
                for more in 0.. {
                    let case = format!(
                        "over {before:?}, moved: {is_moved}, the move before call {first}, the sweep {more} calls later"
                    );
                    let Some(is_written) = run(before, is_moved, (first, more), &case) else {
                        break;
                    };
                    is_stopped = true;
                    outcomes[usize::from(is_written)] += 1;
                }
                if !is_stopped {
                    assert!(first >= 3, "it has more calls");
                    break;
                }
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

/// One case: whether it is written; `None`: the writer was not stopped twice.
fn run(
    before: Option<&str>,
    is_moved: bool,
    (first, more): (usize, usize),
    case: &str,
) -> Option<bool> {
    let (world, c, next, actor) = world();
    if before.is_some() {
        write(&world, &actor, OLD);
    }
    let upload = Upload::begin(&actor, NEW);
    put_blocks(&world, &upload);
    let gate = Gate::after(first);
    let (client, known) = (Client::new(GatedEnv::new(world.env(), &gate)), c.clone());
    let (blocks, metadata) = upload.manifest();
    let ended = world.spawn(async move {
        let domain = client.domain(&known);
        domain.publish(&name("k"), &blocks, metadata).await
    });
    world.settle();
    if !gate.is_reached() {
        return None;
    }
    match is_moved {
        true => move_to(&world, &actor, &next),
        false => announce(&world, &c, &Pointer::pending(&next)),
    }
    gate.go_on(more);
    world.settle();
    while ended.borrow().is_none() && !gate.is_reached() {
        assert!(world.step(), "{case}: it ends, or stops");
    }
    if ended.borrow().is_some() {
        return None;
    }
    world.run(sweep(&actor)).expect("a quorum is up");
    let seen = found(&world, &actor);
    gate.open();
    while ended.borrow().is_none() {
        assert!(world.step(), "{case}: it ends");
    }
    let result = ended.borrow_mut().take().expect("it has ended");
    world.settle();
    world.run(sweep(&actor)).expect("a quorum is up");
    let now = found(&world, &actor);
    let is_written = now.as_deref() == Some(NEW);
    assert!(is_written || now.as_deref() == before, "{case}: {now:?}");
    match result {
        Ok(_) => assert!(is_written, "{case}"),
        Err(PublishError::Swept) => assert!(!is_written && seen == now, "{case}: {seen:?}"),
        // It put its manifest where nothing was, and only a sweep may write a tombstone there.
        Err(PublishError::Write(WriteError::Unknown(_))) => assert!(before.is_none(), "{case}"),
        Err(other) => panic!("{case}: {other:?}"),
    }
    let after = world.run(look(&actor)).expect("a quorum is up");
    assert_eq!(after.orphans(), Count::default(), "{case}");
    Some(is_written)
}
