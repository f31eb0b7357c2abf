//! Cells of uploads go when their uploads are written over, and what is decided about one afterwards does no harm
//! (`docs/decisions/0021-cells-go-with-their-uploads.md`).

use crate::large::uploader::{Upload, get, look, sweep};
use crate::world::{Actor, World, configuration, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::sweep::Count;
use areo_core::message::{Ballot, Body, CellRequest};
use areo_core::server::record::Header;
use std::sync::Arc;
use std::time::Duration;

const N: usize = 4;
const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 2 }];

fn begin(dap: Dap) -> (Arc<Configuration>, World, Actor) {
    let c = configuration(N, dap, 1, 2);
    let world = World::of(&c, 2 * N, 1);
    let actor = world.actor(&c);
    (c, world, actor)
}

fn write(world: &World, actor: &Actor, text: &str) {
    let upload = Upload::begin(actor, text);
    let written = world.run(async move { upload.write("k").await });
    written.expect("a quorum is up");
    world.settle();
}

/// Cells of uploads on each disk, at rest.
fn cells(world: &World) -> Vec<usize> {
    world.pass(Duration::from_secs(5));
    let is_upload = |header: &Header| matches!(header, Header::Cell { cell, .. } if cell.starts_with(b"upload-"));
    let count = |number| {
        world.disk(number, |disk| {
            disk.headers().filter(|it| is_upload(it)).count()
        })
    };
    (0..world.servers()).map(count).collect()
}

/// Two hundred uploads of one object, by writers that live for one upload each: one cell is left, that of the last.
#[test]
fn there_are_as_many_cells_as_live_uploads() {
    for dap in DAPS {
        let (c, world, _) = begin(dap);
        for number in 0..200 {
            write(&world, &world.actor(&c), &format!("value {number}"));
        }
        assert_eq!(cells(&world), [1, 1, 1, 1, 0, 0, 0, 0], "{dap}");
        world.run(world.actor(&c).delete("k")).expect("it is there");
        assert_eq!(cells(&world), [0; 2 * N], "{dap}");
    }
}

/// Writers that leave what they replace, a server that is away, restarts by which records come back, and a move to other
/// servers: sweeps forget what those left.
#[test]
fn sweeps_forget_what_writers_could_not() {
    for dap in DAPS {
        let (c, world, actor) = begin(dap);
        for number in 0..20 {
            write(
                &world,
                &actor.keeping_replaced(),
                &format!("value {number}"),
            );
        }
        assert_eq!(cells(&world)[..N], [20; N], "{dap}: they are left");
        world.crash(3);
        for number in 20..40 {
            write(&world, &actor, &format!("value {number}"));
        }
        world.restart(3, true);
        for number in 0..3 {
            world.crash(number);
            world.restart(number, true);
        }
        let next = successor(&c, N, N, Dap::Abd);
        for moved in [false, true] {
            if moved {
                let client = actor.client();
                let by = crate::paper::reconfiguration::reconfigure(client, &c, &next);
                assert!(world.run(by).is_ok());
            }
            // A sweep hears of the cells of a quorum: of those of each server once in these. Requests to the server that is away
            // come when it is back.
            for without in [Some(0), Some(1), None] {
                let away = without.map(|number| number + if moved { N } else { 0 });
                if let Some(number) = away {
                    world.crash(number);
                }
                world.run(sweep(&actor)).expect("a quorum is up");
                world.settle();
                if let Some(number) = away {
                    world.restart(number, false);
                }
                world.settle();
            }
            let left = cells(&world);
            assert!(left.iter().all(|count| *count <= 1), "{dap}: {left:?}");
            assert_eq!(get(&world, &actor, "k").as_deref(), Some("value 39"));
            let swept = world.run(look(&actor)).expect("a quorum is up");
            assert_eq!((swept.live.uploads, swept.orphans()), (1, Count::default()));
        }
    }
}

/// An aborted upload stays aborted: its writer may be slow.
#[test]
fn the_cell_of_an_aborted_upload_stays() {
    let (_, world, actor) = begin(Dap::Abd);
    write(&world, &actor, "old");
    let upload = Upload::begin(&actor, "slow");
    let slow = upload.clone();
    assert!(world.run(async move { slow.put_blocks([0]).await }));
    for _ in 0..3 {
        world.run(sweep(&actor)).expect("a quorum is up");
    }
    assert_eq!(cells(&world)[..N], [2; N]);
    let late = world.run(async move { upload.publish("k").await });
    assert!(late.is_err(), "{late:?}");
    assert_eq!(get(&world, &actor, "k").as_deref(), Some("old"));
}

/// A writer hears late, when others have finished its upload, written it over and forgotten its cell, and a sweep that came
/// across a late block has decided to abort it: it was still written, and its writer gets no other answer.
#[test]
fn a_writer_whose_finished_upload_was_forgotten_is_not_told_that_nothing_was_written() {
    let (c, world, actor) = begin(Dap::Abd);
    let slow = world.actor(&c);
    let upload = Upload::begin(&slow, "slow");
    let putting = upload.clone();
    assert!(world.run(async move { putting.put_blocks([0]).await }));
    world.settle();
    // Only one acceptor hears of the commit.
    let publishing = upload.clone();
    let (ended, late) = world.begin(
        |m| m.is_cell_accept() && (m.is_reply() || !m.at(&[0])),
        async move { publishing.publish("k").await },
    );
    world.crash(3);
    world.run(sweep(&actor)).expect("a quorum is up");
    assert_eq!(
        get(&world, &actor, "k").as_deref(),
        Some("slow"),
        "a sweep finished it"
    );
    world.restart(3, false);
    write(&world, &actor, "newer");
    // What is superseded goes with the next batch.
    assert_eq!(get(&world, &actor, "k").as_deref(), Some("newer"));
    world.settle();
    assert_eq!(cells_of(&world, &upload), 0, "forgotten");
    // A block of it that was not removed.
    let mut again = upload.clone();
    again.text = "slowlate".into();
    assert!(world.run(async move { again.put_blocks([1]).await }));
    world.run(sweep(&actor)).expect("a quorum is up");
    world.settle();
    world.put_back(late);
    world.settle();
    let told = ended.borrow_mut().take().expect("it has ended");
    assert!(told.is_ok(), "{told:?}");
    assert_eq!(get(&world, &actor, "k").as_deref(), Some("newer"));
}

/// The first message of a proposer comes when the cell of the upload is forgotten. The acceptor promises, so that it has a cell
/// again, for which no member has accepted anything.
#[test]
fn a_promise_that_comes_after_its_cell_was_forgotten_goes_with_a_sweep() {
    for dap in DAPS {
        let (_, world, actor) = begin(dap);
        let upload = Upload::begin(&actor, "old");
        let writing = upload.clone();
        let written = world.run(async move { writing.write("k").await });
        written.expect("a quorum is up");
        world.settle();
        write(&world, &actor, "newer");
        assert_eq!(
            cells(&world)[..N],
            [1; N],
            "{dap}: the old one is forgotten"
        );
        let ballot = Ballot {
            number: 1,
            proposer: upload.id,
        };
        let prepare = Body::Cell {
            cell: cell_of(&upload).into(),
            step: CellRequest::Prepare { ballot },
        };
        world.ask_configured(0, prepare).expect("it promises");
        assert_eq!(cells(&world)[..N], [2, 1, 1, 1], "{dap}");
        // So that the sweep hears from the server with the promise.
        world.crash(3);
        world.run(sweep(&actor)).expect("a quorum is up");
        world.settle();
        world.restart(3, false);
        assert_eq!(cells(&world)[..N], [1; N], "{dap}");
        assert_eq!(get(&world, &actor, "k").as_deref(), Some("newer"));
    }
}

fn cell_of(upload: &Upload) -> String {
    format!(
        "upload-{:016x}{:016x}",
        upload.id.client.0, upload.id.counter
    )
}

fn cells_of(world: &World, upload: &Upload) -> usize {
    let cell = cell_of(upload);
    let is_its = |header: &Header| matches!(header, Header::Cell { cell: it, .. } if *it == cell);
    let count = |number| {
        world.disk(number, |disk| {
            disk.headers().filter(|it| is_its(it)).count()
        })
    };
    (0..world.servers()).map(count).sum()
}
