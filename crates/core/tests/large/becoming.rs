//! Uploads that begin in a domain of the kind `abd` and end in a conditional one (`[W-12 becoming-conditional]`, `[W-11 given-up]`): none
//! is lost, and none stays for ever.

use crate::large::meeting::{KindChange, N, NEW, OLD};
use crate::large::ranked::{found, put_blocks, write};
use crate::large::uploader::{Upload, look, sweep};
use crate::paper::reconfiguration::{announce, move_to};
use crate::world::{Message, World};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::error::WriteError;
use areo_core::pointer::Pointer;
use std::sync::Arc;

/// The point at which a writer stops that has all its blocks at quorums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// The commit was accepted by this number of servers.
    Committed(usize),
    /// The manifest was stored by this number of servers.
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

const BECOMING: KindChange = KindChange {
    from: Dap::Abd,
    to: Dap::Conditional { k: 1 },
    sweeps: 1,
};

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
            let (world, c, next, actor) = BECOMING.world();
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

/// A sweep gives up the upload of a writer that meets the change, or the writer is in time.
#[test]
fn a_writer_that_meets_the_move_asks_whether_it_was_given_up() {
    BECOMING.meet(|met| {
        let (case, is_written) = (&met.case, met.is_written);
        match &met.result {
            Ok(_) => assert!(is_written, "{case}"),
            Err(PublishError::Swept) => assert!(!is_written && met.is_as_seen, "{case}"),
            // It put its manifest where nothing was, and only a sweep may write a tombstone there.
            Err(PublishError::Write(WriteError::Unknown(_))) => {
                assert!(met.before.is_none(), "{case}");
            }
            Err(other) => panic!("{case}: {other:?}"),
        }
    });
}
