//! Reconfiguration while operations go on (`docs/spec` 3): what a domain holds survives the change of its servers, its
//! code and its algorithm.

mod adoption;
mod agreeing;
mod ahead;
mod at_once;
mod branching;
mod cells;
mod contact;
mod forks;
pub mod gate;
mod hand_over;
mod interrupted;
mod late_notes;
mod lattice;
mod leading;
mod led;
mod merging;
mod outside;
mod pointers;
mod removal;
mod remover;
pub mod root;
mod rounds;
mod schedules;
mod slots;

use crate::world::{Actor, World, WorldEnv, configuration, successor};
use areo_core::config::{Configuration, Dap};
use areo_core::consensus::AsDescribed;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::pointer::Pointer;
use areo_core::reconfig::change::Change;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome, Reconfigurer, ares};
use areo_core::reconfig::{merged, sequence};
use std::sync::Arc;

/// Reconfigures the domain of `known` to `next`, but for its index.
pub fn reconfigure<E: Env>(
    client: Client<E>,
    known: &Arc<Configuration>,
    next: &Arc<Configuration>,
) -> impl Future<Output = Result<ReconfigOutcome, ReconfigError>> + use<E> {
    let (known, next) = (known.clone(), next.clone());
    async move {
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &AsDescribed(|| client.next_writer()),
            progress: &|_| {},
            patience: client.leader_patience(),
        };
        // As it is planned: of where the domain is, unless that is no more.
        let path = client.domain(&known).path().await;
        let path = path.map_err(ReconfigError::NotBegun)?;
        let base = path.last().filter(|last| !last.dap().is_removal());
        let base = base.unwrap_or(&known);
        let change = Change::new(base, next.descriptor()).map_err(ReconfigError::Invalid)?;
        merged::make(&by, &known, &change, &async |_: &Change| true).await
    }
}

/// Finishes what others left pending.
fn resume(
    client: Client<WorldEnv>,
    known: &Arc<Configuration>,
) -> impl Future<Output = Result<Option<Arc<Configuration>>, ReconfigError>> + use<> {
    let known = known.clone();
    async move {
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &AsDescribed(|| client.next_writer()),
            progress: &|_| {},
            patience: client.leader_patience(),
        };
        ares::resume(&by, &known).await
    }
}

/// Makes a pointer known to all members of `c`.
pub fn announce(world: &World, c: &Arc<Configuration>, pointer: &Pointer) {
    let (env, from, pointer) = (world.env(), c.clone(), pointer.clone());
    let put = world.run(async move { sequence::put_config(&env, &from, &pointer).await });
    put.expect("a quorum is there");
    world.settle();
}

/// A reconfiguration which must succeed.
pub fn move_to(world: &World, actor: &Actor, next: &Arc<Configuration>) {
    let done = world.run(reconfigure(actor.client(), &actor.c, next));
    assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
}

/// Everything moves: objects, deletions, and what was never written stays unwritten; the old servers keep nothing.
#[test]
fn a_domain_moves_with_all_that_it_holds() {
    let daps = [Dap::Abd, Dap::Ec { k: 3 }, Dap::CasGc { k: 3 }];
    for (from, to) in daps.into_iter().flat_map(|from| daps.map(|to| (from, to))) {
        let c = configuration(5, from, 1, 8);
        let world = World::of(&c, 12, 1);
        let actor = world.actor(&c);
        for number in 0..40 {
            actor.put(&format!("key {number}"), &format!("value {number}"));
        }
        world.run(actor.delete("key 7")).expect("it is there");
        world.settle();
        let next = successor(&c, 5, 5, to);
        move_to(&world, &actor, &next);
        world.settle();
        for reader in [&actor, &world.actor(&c), &world.actor(&next)] {
            for number in 0..40 {
                let expected = (number != 7).then(|| format!("value {number}"));
                let (_, value) = reader.get(&format!("key {number}"));
                assert_eq!(value.filter(|value| !value.is_empty()), expected);
            }
            assert_eq!(reader.get("never written").1, None);
            let listed = world.run(reader.list("", "", 100)).expect("a quorum");
            assert_eq!(listed.entries.len(), 39);
        }
        for old in 0..5 {
            assert_eq!(world.disk(old, |disk| disk.elements()), 0);
        }
        for new in 5..10 {
            assert_eq!(world.disk(new, |disk| disk.elements()), 40);
        }
    }
}

/// A reconfiguration to the current configuration reports that, and changes nothing.
#[test]
fn the_same_configuration_again_changes_nothing() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let done = world.run(reconfigure(actor.client(), &c, &c));
    assert_eq!(done, Ok(ReconfigOutcome::Unchanged(c)));
}

/// A client that starts at the first configuration after ten that were collected; a new one knows only that.
#[test]
fn a_client_finds_its_way_over_ten_collected_configurations() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let world = World::of(&c, 9, 1);
    let (first, late) = (world.actor(&c), world.actor(&c));
    first.put("k", "old");
    let mut last = c.clone();
    for step in 1..=10 {
        last = successor(&last, 3 * (step % 3), 3, Dap::Abd);
        move_to(&world, &first, &last);
    }
    world.settle();
    assert_eq!(late.get("k").1.as_deref(), Some("old"));
    late.put("k", "new");
    assert_eq!(world.actor(&last).get("k").1.as_deref(), Some("new"));
    assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("new"));
}
