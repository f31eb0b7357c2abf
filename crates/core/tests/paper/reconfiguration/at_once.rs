//! Two reconfigurers that both make their configuration of the same one (`docs/spec` `[A-13 change-after-its-base]`).

use super::gate::{Gate, GatedEnv};
use super::move_to;
use crate::world::{World, configuration, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::consensus::AsDescribed;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::reconfig::ares::{self, AresError, ReconfigOutcome, Reconfigurer};
use std::sync::Arc;

/// Appends `next` if the sequence ends with `base` still.
fn append<E: Env>(
    client: Client<E>,
    base: &Arc<Configuration>,
    next: &Arc<Configuration>,
) -> impl Future<Output = Result<ReconfigOutcome, AresError>> + use<E> {
    let (base, next) = (base.clone(), next.clone());
    async move {
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &AsDescribed(|| client.next_writer()),
            progress: &|_| {},
        };
        ares::reconfigure_after(&by, &base, &base, next.descriptor()).await
    }
}

/// The second one is stopped before each of its calls in turn while the first one installs its configuration. It never
/// appends its own after that one, which would undo the change of the first.
#[test]
fn a_change_follows_only_the_configuration_that_it_was_made_from() {
    let (mut lost, mut installed) = (0, 0);
    for limit in 0.. {
        let c = configuration(3, Dap::Abd, 1, 8);
        let world = World::of(&c, 9, 1);
        world.actor(&c).put("k", "v");
        let [first, second] = [3, 6].map(|from| successor(&c, from, 3, Dap::Abd));
        let gate = Gate::after(limit);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let ended = world.spawn(append(client, &c, &second));
        while ended.borrow().is_none() && !gate.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
        let stopped = gate.is_reached();
        let other = world.run(append(world.actor(&c).client(), &c, &first));
        gate.open();
        while ended.borrow().is_none() {
            assert!(world.step(), "it ends");
        }
        let ended = ended.borrow_mut().take().expect("it has ended");
        match (
            ended.expect("a quorum is up"),
            other.expect("a quorum is up"),
        ) {
            (ReconfigOutcome::Lost(c), ReconfigOutcome::Installed(winner)) => {
                assert!(c == first && winner == first, "before call {limit}");
                lost += 1;
            }
            (ReconfigOutcome::Installed(winner), ReconfigOutcome::Lost(c)) => {
                assert!(c == second && winner == second, "before call {limit}");
                installed += 1;
            }
            both => panic!("before call {limit}: {both:?}"),
        }
        assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
        world.assert_one_chain();
        if !stopped {
            break;
        }
    }
    assert!(lost > 1 && installed > 3, "{lost} {installed}");
}

/// It is made after the other one, once its reconfigurer has looked at that.
#[test]
fn a_change_that_was_late_is_made_after_the_other_one() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let world = World::of(&c, 9, 1);
    let first = successor(&c, 3, 3, Dap::Abd);
    move_to(&world, &world.actor(&c), &first);
    let second = successor(&first, 6, 3, Dap::Abd);
    let late = world.run(append(world.actor(&c).client(), &c, &second));
    assert_eq!(late, Ok(ReconfigOutcome::Lost(first.clone())));
    let done = world.run(append(world.actor(&c).client(), &first, &second));
    assert_eq!(done, Ok(ReconfigOutcome::Installed(second)));
}
