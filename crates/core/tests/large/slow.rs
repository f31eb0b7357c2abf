//! A writer that stands still before any of its quorum calls, while others sweep, write over and delete, in every order.
//! Exhaustive in both; with and without messages that come late.

use crate::large::uploader::{Upload, get, look, sweep};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::world::{Actor, World, configuration, name};
use areo_core::config::Dap;
use areo_core::dsm::Client;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;

const SLOW: &str = "the slow value";

/// An operation of another client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Sweep,
    Write,
    Delete,
}

/// All sequences of up to three steps.
fn sequences() -> Vec<Vec<Step>> {
    let mut all = vec![Vec::new()];
    for begin in 0.. {
        let Some(sequence) = all.get(begin).filter(|it| it.len() < 3).cloned() else {
            break;
        };
        let longer =
            [Step::Sweep, Step::Write, Step::Delete].map(|step| [&*sequence, &[step]].concat());
        all.extend(longer);
    }
    all
}

/// Carries out one step; the text afterwards.
fn take(world: &World, actor: &Actor, (number, step): (usize, Step)) -> Option<String> {
    match step {
        Step::Sweep => drop(world.run(sweep(actor)).expect("a quorum is up")),
        Step::Write => {
            let upload = Upload::begin(actor, &format!("value {number}"));
            let written = world.run(async move { upload.write("k").await });
            written.expect("nobody else is at it");
        }
        Step::Delete => drop(world.run(actor.delete("k")).expect("a quorum is up")),
    }
    world.settle();
    get(world, actor, "k").filter(|text| !text.is_empty())
}

/// One case. Returns whether the writer was stopped.
fn run(dap: Dap, limit: usize, steps: &[Step], late: bool) -> bool {
    let case = format!("{dap}, stopped before call {limit}, {steps:?}, late messages: {late}");
    let c = configuration(3, dap, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let gate = Gate::after(limit);
    let upload = Upload::begin(&actor, SLOW);
    let (blocks, metadata) = upload.manifest();
    let contents = upload.contents();
    let client = Client::new(GatedEnv::new(world.env(), &gate));
    if late {
        world.hold(|m| m.at(&[0]));
    }
    let known = c.clone();
    let ended = world.spawn(async move {
        let manifest = (&blocks, metadata);
        client
            .domain(&known)
            .write_large(&name("k"), manifest, &contents)
            .await
    });
    while ended.borrow().is_none() && !gate.is_reached() {
        assert!(world.step(), "{case}: it ends, or stops");
    }
    let stopped = ended.borrow().is_none();
    let aside = world.set_aside(|m| late && m.at(&[0]));
    world.release();
    let mut seen = Vec::new();
    for step in steps.iter().copied().enumerate() {
        seen.push(take(&world, &actor, step));
    }
    gate.open();
    world.put_back(aside);
    while ended.borrow().is_none() {
        assert!(world.step(), "{case}: it ends");
    }
    world.settle();
    let result = ended.borrow_mut().take().expect("it has ended");
    for _ in 0..2 {
        seen.push(take(&world, &actor, (0, Step::Sweep)));
    }
    let was_seen = seen.iter().flatten().any(|text| text == SLOW);
    match result {
        Ok(tag) => {
            let found = world.run(actor.stat("k")).expect("a quorum is up");
            assert!(found.tag >= tag, "{case}: {:?} after {tag:?}", found.tag);
        }
        Err(PublishError::Swept) => assert!(!was_seen, "{case}: {seen:?}"),
        Err(PublishError::Write(error)) => panic!("{case}: {error:?}"),
    }
    let swept = world.run(look(&actor)).expect("a quorum is up");
    assert_eq!(swept.orphans(), Count::default(), "{case}");
    assert!(swept.live.uploads <= 1, "{case}: {swept:?}");
    stopped
}

#[test]
fn a_slow_writer_does_no_harm_and_is_told_the_truth() {
    let mut cases = 0;
    for dap in [Dap::Abd, Dap::Ec { k: 1 }, Dap::Conditional { k: 1 }] {
        for (steps, late) in sequences()
            .into_iter()
            .flat_map(|it| [(it.clone(), false), (it, true)])
        {
            for limit in 0.. {
                cases += 1;
                if !run(dap, limit, &steps, late) {
                    assert!(limit > 5, "it has more calls than {limit}");
                    break;
                }
            }
        }
    }
    assert!(cases > 1200, "{cases}");
}
