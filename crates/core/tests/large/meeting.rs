//! Uploads whose writers meet a change of the domain's kind (`[W-12 becoming-conditional]`, `[W-13 ceasing-to-be-conditional]`).

use crate::large::ranked::{found, put_blocks, write};
use crate::large::uploader::{Upload, look, sweep};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::paper::reconfiguration::{announce, move_to};
use crate::world::{Actor, World, configuration, name, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::Client;
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::pointer::Pointer;
use areo_core::tag::Tag;
use std::sync::Arc;

pub const OLD: &str = "the old value";
pub const NEW: &str = "the new value, longer";
/// Servers of each configuration.
pub const N: usize = 3;

/// A domain that changes from one kind to the other.
#[derive(Clone, Copy)]
pub struct KindChange {
    pub from: Dap,
    pub to: Dap,
    /// Number of sweeps after which only blocks that an object needs are left.
    pub sweeps: usize,
}

/// The outcome of an upload during a change of the configuration.
pub struct Meeting {
    pub case: String,
    /// The value before the upload.
    pub before: Option<&'static str>,
    /// The new configuration was final.
    pub is_moved: bool,
    /// The new value is there in the end.
    pub is_written: bool,
    /// A reader saw after the sweep the value that is there in the end.
    pub is_as_seen: bool,
    pub result: Result<Tag, PublishError>,
}

impl KindChange {
    /// A domain of the first kind, and the configuration of the second after it, of other servers.
    pub fn world(self) -> (World, Arc<Configuration>, Arc<Configuration>, Actor) {
        let c = configuration(N, self.from, 1, 2);
        let next = successor(&c, N, N, self.to);
        let world = World::of(&c, 2 * N, 3);
        let actor = world.actor(&c);
        (world, c, next, actor)
    }

    /// A writer stands still before any of its calls while the domain changes its kind, and before a later one while a sweep looks. Each
    /// time its value is there with all its blocks, or what was there before, and nothing is left.
    pub fn meet(self, judge: impl Fn(&Meeting)) {
        let mut outcomes = [0, 0];
        for (before, is_moved) in [None, Some(OLD)]
            .into_iter()
            .flat_map(|before| [false, true].map(|is_moved| (before, is_moved)))
        {
            for first in 0.. {
                let mut is_stopped = false;
                for more in 0.. {
                    let Some(met) = self.run((before, is_moved), (first, more)) else {
                        break;
                    };
                    judge(&met);
                    is_stopped = true;
                    outcomes[usize::from(met.is_written)] += 1;
                }
                if !is_stopped {
                    assert!(first >= 3, "it has more calls");
                    break;
                }
            }
        }
        assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
    }

    /// One case; `None`: the writer was not stopped twice.
    fn run(
        self,
        (before, is_moved): (Option<&'static str>, bool),
        (first, more): (usize, usize),
    ) -> Option<Meeting> {
        let case = format!(
            "over {before:?}, moved: {is_moved}, the move before call {first}, the sweep {more} calls later"
        );
        let (world, c, next, actor) = self.world();
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
        let result = world.finish(&ended);
        world.settle();
        for _ in 0..self.sweeps {
            world.run(sweep(&actor)).expect("a quorum is up");
        }
        let now = found(&world, &actor);
        let is_written = now.as_deref() == Some(NEW);
        assert!(is_written || now.as_deref() == before, "{case}: {now:?}");
        let after = world.run(look(&actor)).expect("a quorum is up");
        assert_eq!(after.orphans(), Count::default(), "{case}");
        Some(Meeting {
            case,
            before,
            is_moved,
            is_written,
            is_as_seen: seen == now,
            result,
        })
    }
}
