//! Large objects move with their domain: blocks, manifests, and the cells of uploads.

use crate::large::uploader::{Upload, get, look, sweep};
use crate::world::{Actor, Message, World, configuration, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::consensus::Members;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::reconfig::change::Change;
use areo_core::reconfig::merged;
use areo_core::reconfig::transfer::Progress;
use areo_core::reconfig::{ReconfigOutcome, Reconfigurer};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const TEXT: &str = "moves with its domain";

/// Reconfigures to `n` servers from `first` on; whether that came to be.
pub fn reconfigure(
    actor: &Actor,
    first: usize,
    n: usize,
    dap: Dap,
) -> impl Future<Output = bool> + use<> {
    let told = |_| {};
    reconfigure_telling(actor, first, n, (dap, told))
}

fn reconfigure_telling<P: Fn(Progress)>(
    actor: &Actor,
    first: usize,
    n: usize,
    (dap, progress): (Dap, P),
) -> impl Future<Output = bool> + use<P> {
    let (client, c) = (actor.client(), actor.c.clone());
    async move {
        let next = successor(&c, first, n, dap);
        let change = Change::new(&c, next.descriptor()).expect("it comes next");
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &Members(|| client.next_writer()),
            progress: &progress,
            patience: client.leader_patience(),
        };
        let ended = merged::make(&by, &c, &change, &async |_: &Change| true).await;
        matches!(ended, Ok(ReconfigOutcome::Installed(_)))
    }
}

fn world() -> (World, Arc<Configuration>) {
    let c = configuration(3, Dap::Abd, 1, 2);
    let world = World::of(&c, 7, 5);
    (world, c)
}

#[test]
fn an_upload_goes_on_in_the_next_configuration() {
    let (world, c) = world();
    let writer = world.actor(&c);
    let upload = Upload::begin(&writer, TEXT);
    let (half, all) = (3, upload.pieces().len());
    let putting = upload.clone();
    assert!(world.run(async move { putting.put_blocks(0..half).await }));
    assert!(world.run(reconfigure(&world.actor(&c), 3, 4, Dap::Ec { k: 2 })));
    let rest = upload.clone();
    assert!(world.run(async move { rest.put_blocks(half..all).await }));
    world.run(async move { upload.publish("k").await }).unwrap();
    world.settle();
    assert_eq!(get(&world, &writer, "k").as_deref(), Some(TEXT));
    let left = world.run(look(&writer)).unwrap();
    assert_eq!(
        (left.live.blocks, left.orphans()),
        (all as u64, Count::default())
    );
}

/// The progress counts each byte and each object once, for every way of keeping them.
#[test]
fn what_is_moved_is_counted_once() {
    for (from, to) in [
        (Dap::Abd, Dap::Ec { k: 2 }),
        (Dap::Conditional { k: 1 }, Dap::Conditional { k: 2 }),
        (Dap::Abd, Dap::Conditional { k: 2 }),
    ] {
        is_counted_once(from, to);
    }
}

fn is_counted_once(from: Dap, to: Dap) {
    let c = configuration(3, from, 1, 2);
    let world = World::of(&c, 7, 5);
    let actor = world.actor(&c);
    let upload = Upload::begin(&actor, TEXT);
    let written = world.run(async move { upload.write("k").await });
    written.expect("a quorum is up");
    actor.put("small", "tiny");
    world.settle();
    let sum: Rc<Cell<(u64, u64)>> = Rc::default();
    let told = sum.clone();
    let progress = move |progress| {
        if let Progress::Transferring { objects, bytes } = progress {
            let (all, sum) = told.get();
            told.set((all + objects, sum + bytes));
        }
    };
    let moving = reconfigure_telling(&actor, 3, 4, (to, progress));
    assert!(world.run(moving));
    let expected = (2, (TEXT.len() + "tiny".len()) as u64);
    assert_eq!(sum.get(), expected, "{from:?} to {to:?}");
}

/// A decision about an upload before the move holds after it: a commit whose manifest was not put yet is finished, an
/// abort stays an abort.
#[test]
fn the_fate_of_an_upload_moves() {
    for commits in [true, false] {
        let (world, c) = world();
        let writer = world.actor(&c);
        let upload = Upload::begin(&writer, TEXT);
        let (putting, publishing) = (upload.clone(), upload.clone());
        let all = upload.pieces().len();
        assert!(world.run(async move { putting.put_blocks(0..all).await }));
        if commits {
            world.hold(Message::is_put);
            let ended = world.run(async move { publishing.publish("k").await });
            assert!(matches!(ended, Err(PublishError::Write(_))), "{ended:?}");
            world.lose(Message::is_put);
            world.release();
        } else {
            assert_eq!(
                world.run(sweep(&world.actor(&c))).unwrap().removed.uploads,
                1
            );
        }
        assert!(world.run(reconfigure(&world.actor(&c), 3, 4, Dap::Ec { k: 2 })));
        world.settle();
        let other = world.actor(&c);
        if commits {
            assert_eq!(world.run(sweep(&other)).unwrap().live.uploads, 1);
            assert_eq!(get(&world, &writer, "k").as_deref(), Some(TEXT));
        } else {
            let ended = world.run(async move { upload.publish("k").await });
            assert_eq!(ended, Err(PublishError::Swept));
            assert_eq!(get(&world, &writer, "k"), None);
        }
    }
}
