//! Uploads of conditional domains, whose manifests registers choose: what writers leave goes, and a writer that is only slow proposes
//! nothing whose blocks are gone (`[W-11 given-up]`).

use crate::large::uploader::{BLOCK_BYTES, Upload, get, look, sweep};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::world::{Actor, Message, World, configuration, name};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::Client;
use areo_core::dsm::conditional::{Condition, WriteDecision};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::dsm::large::{self, PublishError};
use areo_core::dsm::sweep::Count;
use areo_core::error::WriteError;
use areo_core::message::Access;
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

const OLD: &str = "the old value";
const NEW: &str = "the new value, longer";
const N: usize = 4;

/// The point at which a writer stops that has all its blocks at quorums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// The commit was accepted by this number of servers.
    Committed(usize),
    /// The manifest was accepted by this number of servers.
    Accepted(usize),
}

const STEPS: [Until; 7] = [
    Until::Committed(0),
    Until::Committed(1),
    Until::Committed(N),
    Until::Accepted(0),
    Until::Accepted(1),
    Until::Accepted(2),
    Until::Accepted(N),
];

fn is_accept(message: &Message) -> bool {
    matches!(message.access(), Some(Access::Accept(_)))
}

pub fn write(world: &World, actor: &Actor, text: &str) {
    let upload = Upload::begin(actor, text);
    let written = world.run(async move { upload.write("k").await });
    written.expect("nothing goes wrong");
    world.settle();
}

pub fn found(world: &World, actor: &Actor) -> Option<String> {
    get(world, actor, "k").filter(|text| !text.is_empty())
}

/// Puts all blocks of the upload.
pub fn put_blocks(world: &World, upload: &Upload) {
    let (putting, blocks) = (upload.clone(), 0..upload.pieces().len());
    assert!(world.run(async move { putting.put_blocks(blocks).await }));
    world.settle();
}

/// Runs the steps; what is in flight at the end is lost, and so is the writer.
fn leave(world: &World, c: &Arc<Configuration>, until: Until) {
    let upload = Upload::begin(&world.actor(c), NEW);
    put_blocks(world, &upload);
    let (servers, is_last): (usize, fn(&Message) -> bool) = match until {
        Until::Committed(servers) => (servers, Message::is_cell_accept),
        Until::Accepted(servers) => (servers, is_accept),
    };
    // Requests get to the first servers, answers to no client.
    let arrives: Vec<usize> = (0..servers).collect();
    world.hold(move |m| is_last(m) && (m.is_reply() || !m.at(&arrives)));
    let ended = world.run(async move { upload.publish("k").await });
    let ended = ended.expect_err("it hears nothing");
    let is_expected = match until {
        // The commit alone makes nothing a version.
        Until::Committed(_) => matches!(ended, PublishError::Write(WriteError::NotApplied(_))),
        Until::Accepted(_) => matches!(ended, PublishError::Write(WriteError::Unknown(_))),
    };
    assert!(is_expected, "{until:?}: {ended:?}");
    world.lose(is_last);
    world.release();
    world.settle();
}

/// Cells at a member that say that an upload is committed.
fn commits(world: &World, number: usize) -> usize {
    let is_commit = |header: &&Header| match header {
        Header::Cell { acceptor, .. } => {
            let accepted = acceptor.accepted.as_ref();
            accepted.is_some_and(|(_, value)| large::committed(value).is_some())
        }
        _ => false,
    };
    world.disk(number, |disk| disk.headers().filter(is_commit).count())
}

/// A writer that ends after any step: its value is there with all its blocks, or is not and never will be, whichever servers
/// a sweep and a reader hear from.
#[test]
fn what_a_writer_leaves_is_chosen_or_swept() {
    for (k, until, before) in [1, 2]
        .into_iter()
        .flat_map(|k| STEPS.map(|until| (k, until)))
        .flat_map(|(k, until)| [None, Some(OLD)].map(|before| (k, until, before)))
    {
        for (without, unheard) in (0..N).flat_map(|it| (0..N).map(move |other| (it, other))) {
            let case = format!(
                "k={k}, {until:?} over {before:?}, sweep without {without}, read without {unheard}"
            );
            let c = configuration(N, Dap::Conditional { k }, 1, 2);
            let world = World::new(&c, 3);
            let actor = world.actor(&c);
            if before.is_some() {
                write(&world, &actor, OLD);
            }
            leave(&world, &c, until);
            world.crash(without);
            for _ in 0..2 {
                world.run(sweep(&actor)).expect("a quorum is up");
            }
            let after = world.run(look(&actor)).expect("a quorum is up");
            assert_eq!(after.orphans(), Count::default(), "{case}");
            world.restart(without, false);
            world.crash(unheard);
            let found = self::found(&world, &actor);
            let is_new = found.as_deref() == Some(NEW);
            assert!(is_new || found.as_deref() == before, "{case}: {found:?}");
            match until {
                Until::Committed(_) | Until::Accepted(0) => assert!(!is_new, "{case}"),
                Until::Accepted(N) => assert!(is_new, "{case}"),
                Until::Accepted(_) => {}
            }
            assert_eq!(after.live.uploads, u64::from(found.is_some()), "{case}");
            world.restart(unheard, false);
            // A sweep hears of the cells of a quorum: of those of each server once in these.
            for away in 0..N {
                world.crash(away);
                world.run(sweep(&actor)).expect("a quorum is up");
                world.restart(away, false);
                // What was sent to it meanwhile would begin a cell anew, for the next sweep to forget.
                world.lose(|message| message.at(&[away]));
                world.settle();
            }
            world.pass(Duration::from_secs(5));
            let may_be_aborted = matches!(until, Until::Committed(0 | 1));
            for number in (0..N).filter(|_| !may_be_aborted) {
                let live = usize::from(found.is_some());
                assert_eq!(commits(&world, number), live, "{case}: at {number}");
            }
        }
    }
}

/// A writer proposes, is overtaken, and stands still before any of its calls, while a sweep gives it up.
#[test]
fn a_writer_that_tries_again_asks_whether_it_was_given_up() {
    let mut outcomes = [0, 0];
    for before in [None, Some(OLD)] {
        for reached in [0, 1] {
            for limit in 0.. {
                let case =
                    format!("over {before:?}, stopped before call {limit}, {reached} reached");
                let Some(is_written) = run(before, reached, limit, &case) else {
                    assert!(limit > 5, "{case}: it has more calls");
                    break;
                };
                outcomes[usize::from(is_written)] += 1;
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

/// One case: whether it is written; `None`: the writer was not stopped.
fn run(before: Option<&str>, reached: usize, limit: usize, case: &str) -> Option<bool> {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    if before.is_some() {
        write(&world, &actor, OLD);
    }
    let upload = Upload::begin(&actor, NEW);
    put_blocks(&world, &upload);
    let gate = Gate::after(limit);
    let (client, known) = (Client::new(GatedEnv::new(world.env(), &gate)), c.clone());
    let (blocks, metadata) = upload.manifest();
    let (ended, proposed) = world.begin(
        move |m| is_accept(m) && !(0..reached).any(|server| m.at(&[server])),
        async move {
            let domain = client.domain(&known);
            domain.publish(&name("k"), &blocks, metadata).await
        },
    );
    if !gate.is_reached() {
        // Another one is promised a larger ballot by those that the proposal has not reached.
        world.crash(0);
        let impossible = Tag::first(actor.client().next_upload());
        let refused = world.run(actor.cover("k", "never", impossible));
        assert!(
            matches!(refused, Ok(CoverableOutcome::Unchanged(_))),
            "{case}: {refused:?}"
        );
        world.restart(0, false);
    }
    world.put_back(proposed);
    while ended.borrow().is_none() && !gate.is_reached() {
        assert!(world.step(), "{case}: it ends, or stops");
    }
    let was_stopped = ended.borrow().is_none();
    let swept = world.run(sweep(&actor));
    swept.expect("a quorum is up");
    let seen = self::found(&world, &actor);
    gate.open();
    while ended.borrow().is_none() {
        assert!(world.step(), "{case}: it ends");
    }
    let result = ended.borrow_mut().take().expect("it has ended");
    world.settle();
    world.run(sweep(&actor)).expect("a quorum is up");
    let found = self::found(&world, &actor);
    let is_written = found.as_deref() == Some(NEW);
    assert!(
        is_written || found.as_deref() == before,
        "{case}: {found:?}"
    );
    match result {
        Ok(_) => assert!(is_written, "{case}"),
        Err(PublishError::Swept) => assert!(!is_written && seen == found, "{case}: {seen:?}"),
        // It proposed on an object that was never written, and only a sweep may write a tombstone there.
        Err(PublishError::Write(WriteError::Unknown(_))) => assert!(before.is_none(), "{case}"),
        Err(other) => panic!("{case}: {other:?}"),
    }
    let after = world.run(look(&actor)).expect("a quorum is up");
    assert_eq!(after.orphans(), Count::default(), "{case}");
    was_stopped.then_some(is_written)
}

/// The first attempt was applied, and its answer got lost: what the second one has sent is of no version.
#[test]
fn a_request_that_is_repeated_leaves_no_blocks() {
    let c = configuration(N, Dap::Conditional { k: 2 }, 1, 2);
    let world = World::of(&c, N, 1);
    let actor = world.actor(&c);
    let attempt = || {
        let upload = Upload::begin(&actor, NEW);
        put_blocks(&world, &upload);
        let (client, c) = (actor.client(), actor.c.clone());
        let (blocks, metadata) = upload.manifest();
        let request = (Condition::Always, 7);
        let written = world.run(async move {
            let domain = client.domain(&c);
            let key = name("k");
            let published = domain.publish_if(&key, &blocks, metadata, request);
            published.await
        });
        world.settle();
        match written {
            Ok(WriteDecision::Written { tag, .. }) => tag,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(attempt(), attempt(), "one version");
    let left = world.run(look(&actor)).expect("all are up");
    let pieces = NEW.len().div_ceil(BLOCK_BYTES) as u64;
    assert_eq!(
        (left.live.blocks, left.orphans()),
        (pieces, Count::default())
    );
    assert_eq!(found(&world, &actor).as_deref(), Some(NEW));
}
