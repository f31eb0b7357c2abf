//! SM and SpSn step by step (`docs/spec` 6.5): reconfigurers that stop between their calls, so that each rule of what merges
//! changes decides.

use super::gate::{Gate, GatedEnv};
use super::merging::{changed, first, installed, membership};
use super::reconfigure;
use crate::world::{World, server};
use areo_core::config::{Configuration, Decider};
use areo_core::dsm::Client;
use areo_core::reconfig::{LeaveOff, ReconfigError, ReconfigOutcome};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The result of a reconfiguration; `None`: it stopped on purpose.
type StagedEnd = Result<Option<ReconfigOutcome>, ReconfigError>;

/// A reconfigurer that stops between its calls.
struct Staged {
    gate: Rc<Gate>,
    ended: Rc<RefCell<Option<StagedEnd>>>,
}

impl Staged {
    /// Begins a reconfiguration from `known` to `next` that stops after this number of calls. Planning the change
    /// takes one more.
    fn begin(
        world: &World,
        known: &Arc<Configuration>,
        next: &Arc<Configuration>,
        calls: usize,
    ) -> Staged {
        Staged::spawn(world, 1 + calls, |client| {
            let ended = reconfigure(client, known, next);
            async move { ended.await.map(Some) }
        })
    }

    /// [`begin`] of a reconfigurer that leaves off when the state is in the new configuration.
    fn begin_to_leave_off(
        world: &World,
        known: &Arc<Configuration>,
        next: &Arc<Configuration>,
        calls: usize,
    ) -> Staged {
        let (known, next) = (known.clone(), next.clone());
        Staged::spawn(world, calls, |client| async move {
            let domain = client.domain(&known);
            let left = domain.leave_off(next.descriptor(), LeaveOff::Transferred);
            left.await.map(|done| done.map(ReconfigOutcome::Installed))
        })
    }

    fn spawn<F>(world: &World, calls: usize, run: impl FnOnce(Client<GatedEnv>) -> F) -> Staged
    where
        F: Future<Output = StagedEnd> + 'static,
    {
        let gate = Gate::after(calls);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let ended = world.spawn(run(client));
        let staged = Staged { gate, ended };
        staged.run(world);
        assert!(staged.gate.is_reached(), "it has more calls");
        staged
    }

    fn run(&self, world: &World) {
        while self.ended.borrow().is_none() && !self.gate.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
    }

    /// Lets it make this number of further calls.
    fn go_on(&self, world: &World, calls: usize) {
        self.gate.go_on(calls);
        self.run(world);
        assert!(self.gate.is_reached(), "it has more calls");
    }

    /// It goes on to its end.
    fn finish(self, world: &World) -> Option<Arc<Configuration>> {
        self.gate.open();
        while self.ended.borrow().is_none() {
            assert!(world.step(), "it ends");
        }
        let ended = self.ended.borrow_mut().take().expect("it has ended");
        let done = ended.expect("its change is made");
        done.map(ReconfigOutcome::into_configuration)
    }
}

/// The deciders that merge changes.
const MERGING: [Decider; 2] = [Decider::Agreement, Decider::Speculation];

/// Four servers, and three changes, each of which brings one.
fn merging(decided_by: Decider) -> (World, Arc<Configuration>, [Arc<Configuration>; 3]) {
    let c = first(decided_by, 4);
    let world = World::of(&c, 7, 1);
    world.actor(&c).put("k", "v");
    let changes = [4, 5, 6].map(|new| changed(&c, |it| it.with(server(new))));
    (world, c, changes)
}

/// All changes are there, in one configuration, and there never were two of which neither came first.
fn assert_merged(world: &World, c: &Arc<Configuration>, changes: &[Arc<Configuration>]) {
    world.settle();
    world.assert_one_chain();
    let all = changes.iter().fold(membership(c).clone(), |all, change| {
        all.join(membership(change))
    });
    let all = changed(c, |_| all);
    let done = world.run(reconfigure(world.actor(c).client(), c, &all));
    assert_eq!(done, Ok(ReconfigOutcome::Unchanged(all)));
}

/// `[R-5 look-again]`: an operation passed to a larger configuration before the nearer one was announced.
#[test]
fn a_reconfigurer_looks_again_when_it_has_announced() {
    for decided_by in MERGING {
        let (world, c, [one, other, _]) = merging(decided_by);
        // Looks, and has it decided.
        let first = Staged::begin(&world, &c, &one, 2);
        // It looks, has it decided in two rounds, and announces it.
        let second = Staged::begin(&world, &c, &other, 4);
        let written = world.actor(&c).put("k", "w");
        let last = first.finish(&world).expect("it is final");
        let (tag, text) = world.actor(&last).get("k");
        assert_eq!((tag, text.as_deref()), (written, Some("w")));
        second.finish(&world);
        assert_merged(&world, &c, &[one, other]);
    }
}

/// `[R-16 agreement-moves]`: what was decided before the successor was announced is made a configuration after another one began
/// at the successor.
#[test]
fn what_was_decided_goes_to_the_successor() {
    for decided_by in MERGING {
        let (world, c, [one, other, third]) = merging(decided_by);
        let first = Staged::begin_to_leave_off(&world, &c, &one, 2);
        let second = Staged::begin(&world, &c, &other, 3);
        assert_eq!(first.finish(&world), None, "everything is in the successor");
        let client = world.actor(&one).client();
        let done = world.run(reconfigure(client, &one, &third));
        installed(done, "from the successor");
        second.finish(&world);
        assert_merged(&world, &c, &[one, other, third]);
    }
}

/// `[R-17 agreement-everywhere]`: one proposes where the path ends, the other one has something decided where it begins.
#[test]
fn changes_are_agreed_on_along_the_path() {
    for decided_by in MERGING {
        let (world, c, [one, other, third]) = merging(decided_by);
        let first = Staged::begin(&world, &c, &one, 2);
        let second = Staged::begin(&world, &c, &other, 3);
        // It announces, and nothing more.
        first.go_on(&world, 1);
        let done = world.run(reconfigure(world.actor(&c).client(), &c, &third));
        installed(done, "along the path");
        second.finish(&world);
        first.finish(&world);
        assert_merged(&world, &c, &[one, other, third]);
    }
}

/// A value that is decided where there is a successor already is proposed at that one, and makes none beside it.
#[test]
fn what_is_decided_beside_a_successor_goes_on_from_that() {
    for decided_by in MERGING {
        let (world, c, [one, other, third]) = merging(decided_by);
        let second = Staged::begin(&world, &c, &other, 1);
        let first = Staged::begin_to_leave_off(&world, &c, &one, 2);
        assert_eq!(first.finish(&world), None, "everything is in the successor");
        // It looks, has its change decided at the successor, and announces it there.
        let later = Staged::begin(&world, &one, &third, 3);
        second.finish(&world);
        later.finish(&world);
        assert_merged(&world, &c, &[one, other, third]);
    }
}
