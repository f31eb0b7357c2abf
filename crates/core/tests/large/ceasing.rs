//! Uploads that begin in a conditional domain and end where it is none any more (`[W-13 ceasing-to-be-conditional]`,
//! `[W-11 given-up]`): each becomes a version with all its blocks, or none, and none stays for ever.

use crate::large::ranked::{found, put_blocks, write};
use crate::large::uploader::{Upload, look, sweep};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::paper::reconfiguration::{announce, move_to};
use crate::world::{Actor, World, configuration, name, successor};
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

/// A conditional domain, and the configuration after it, of other servers.
fn world() -> (World, Arc<Configuration>, Arc<Configuration>, Actor) {
    let c = configuration(N, Dap::Conditional { k: 1 }, 1, 2);
    let next = successor(&c, N, N, Dap::Abd);
    let world = World::of(&c, 2 * N, 3);
    let actor = world.actor(&c);
    (world, c, next, actor)
}

/// A writer stands still before any of its calls while the domain changes its kind, and before a later one while a sweep looks.
#[test]
fn a_writer_that_meets_the_move_is_read_or_leaves_nothing() {
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
    for _ in 0..2 {
        world.run(sweep(&actor)).expect("a quorum is up");
    }
    let now = found(&world, &actor);
    let is_written = now.as_deref() == Some(NEW);
    assert!(is_written || now.as_deref() == before, "{case}: {now:?}");
    match result {
        Ok(_) => assert!(is_written, "{case}"),
        Err(PublishError::Swept) => assert!(!is_written && seen == now, "{case}: {seen:?}"),
        Err(PublishError::Write(WriteError::NotApplied(failed))) => {
            assert!(failed.is_not_conditional(), "{case}: {failed:?}");
            assert!(!is_written && seen == now, "{case}: {seen:?}");
        }
        // The old configuration is gone.
        Err(PublishError::Write(WriteError::Unknown(_))) => assert!(is_moved, "{case}"),
    }
    let after = world.run(look(&actor)).expect("a quorum is up");
    assert_eq!(after.orphans(), Count::default(), "{case}");
    Some(is_written)
}
