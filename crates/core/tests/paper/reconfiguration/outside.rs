//! The service outside that decides which configuration comes next (Ares II; `docs/spec` 3.1,
//! `[X-16 decider-in-descriptor]`).

use super::{move_to, reconfigure};
use crate::world::{Actor, CallReach, World, configuration, successor};
use areo_core::config::{Configuration, Dap, Decider, Descriptor};
use areo_core::consensus::outside::key_after;
use areo_core::manager::domains;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use bytes::Bytes;
use std::sync::Arc;

const SERVICE: &str = "etcd=a:1,b:2";

/// The configuration with `service` as the decider of its successor.
fn decided_by(c: &Configuration, service: &str) -> Arc<Configuration> {
    let descriptor = Descriptor {
        decided_by: service.parse().expect("it names somebody"),
        ..c.descriptor().clone()
    };
    Configuration::new(descriptor).expect("who decides changes nothing else")
}

fn world() -> (World, Arc<Configuration>, Actor) {
    let c = decided_by(&configuration(3, Dap::Abd, 1, 8), SERVICE);
    let world = World::of(&c, 12, 1);
    let actor = world.actor(&c);
    actor.put("k", "v");
    world.settle();
    (world, c, actor)
}

/// The members are not asked: their cells stay empty, and the key says what was decided.
#[test]
fn the_service_decides_and_the_members_do_not() {
    let (world, c, actor) = world();
    let next = successor(&c, 3, 5, Dap::Ec { k: 3 });
    world.hold(|m| m.is_prepare() || m.is_cell_accept());
    move_to(&world, &actor, &next);
    assert_eq!(world.in_flight(|m| m.is_prepare() || m.is_cell_accept()), 0);
    let domain = format!("{:032x}", c.id().domain.0);
    assert_eq!(key_after(&c.id()), format!("/areo/{domain}/0/1"));
    let decided = world.outside().decided.clone();
    assert_eq!(
        decided.into_iter().collect::<Vec<_>>(),
        [(key_after(&c.id()), next.encoded().clone())]
    );
    assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
}

/// One of two contradicting reconfigurers wins, and the other one learns which.
#[test]
fn of_two_reconfigurers_one_wins() {
    let mut lost = 0;
    for seed in 0..20 {
        let c = decided_by(&configuration(3, Dap::Abd, 1, 8), SERVICE);
        let world = World::of(&c, 12, seed);
        world.actor(&c).put("k", "v");
        let wanted = [
            successor(&c, 3, 3, Dap::Abd),
            successor(&c, 6, 4, Dap::Ec { k: 2 }),
        ];
        let start = |next| world.spawn(reconfigure(world.actor(&c).client(), &c, next));
        let ends = [start(&wanted[0]), start(&wanted[1])];
        while ends.iter().any(|end| end.borrow().is_none()) {
            assert!(world.step(), "both end");
        }
        let key = key_after(&c.id());
        let decided = world.outside().decided[&key].clone();
        let winner = wanted.iter().position(|c| *c.encoded() == decided);
        let winner = winner.expect("somebody proposed it");
        for (who, end) in ends.iter().enumerate() {
            let end = end.borrow().clone().expect("it has ended");
            match end {
                Ok(ReconfigOutcome::Installed(c)) => assert!(who == winner && c == wanted[winner]),
                Err(ReconfigError::Contradicts(c, _)) => {
                    assert!(who != winner && c == wanted[winner]);
                    lost += 1;
                }
                // One that began after the other had ended goes on from there.
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("v"));
    }
    assert!(lost > 0, "some met");
}

/// Without the service nothing is decided, and reads and writes go on; when it is back, the change can be made.
#[test]
fn without_the_service_the_domain_is_as_it_was() {
    let (world, c, actor) = world();
    let next = successor(&c, 3, 3, Dap::Abd);
    world.outside().reached = CallReach::Refused;
    let end = world.run(reconfigure(actor.client(), &c, &next));
    let Err(ReconfigError::Undecided(undecided)) = end else {
        panic!("{end:?}")
    };
    assert!(undecided.handed_over, "members have the change");
    let expected = "etcd=a:1,b:2 did not decide: nobody answers";
    assert_eq!(undecided.to_string(), expected);
    assert_eq!(path(&world, &actor), 1);
    actor.put("k", "w");
    world.outside().reached = CallReach::Answered;
    move_to(&world, &actor, &next);
    assert_eq!(world.actor(&c).get("k").1.as_deref(), Some("w"));
}

/// It decided, and no client heard of it: the next reconfigurer installs that first, as after a reconfigurer that died
/// between consensus and put-config (3.5 item 12 a).
#[test]
fn what_was_decided_unheard_is_installed_by_the_next() {
    let (world, c, actor) = world();
    let unheard = successor(&c, 3, 3, Dap::Abd);
    world.outside().reached = CallReach::Decided;
    let end = world.run(reconfigure(actor.client(), &c, &unheard));
    assert!(
        matches!(&end, Err(ReconfigError::Undecided(it)) if it.handed_over),
        "{end:?}"
    );
    assert_eq!(path(&world, &actor), 1, "no server has heard of it");
    world.outside().reached = CallReach::Answered;
    let wanted = successor(&c, 6, 3, Dap::Abd);
    let end = world.run(reconfigure(world.actor(&c).client(), &c, &wanted));
    assert!(
        matches!(&end, Err(ReconfigError::Contradicts(c, _)) if *c == unheard),
        "{end:?}"
    );
    move_to(
        &world,
        &world.actor(&c),
        &successor(&unheard, 6, 3, Dap::Abd),
    );
    assert_eq!(world.outside().decided.len(), 2);
}

/// `[X-16 decider-in-descriptor]`: who decides is said by the configuration before: a domain moves to a service and away
/// from it again.
#[test]
fn each_configuration_says_who_decides_after_it() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let world = World::of(&c, 12, 1);
    let actor = world.actor(&c);
    let mut last = c.clone();
    for (step, (service, decisions)) in [(SERVICE, 0), (SERVICE, 1), ("members", 2), ("members", 2)]
        .into_iter()
        .enumerate()
    {
        let next = decided_by(&successor(&last, step + 1, 3, Dap::Abd), service);
        move_to(&world, &actor, &next);
        assert_eq!(world.outside().decided.len(), decisions, "step {step}");
        last = next;
    }
    assert_eq!(last.descriptor().decided_by, Decider::Members);
}

/// A foreign value under the key ends in an error sentence, and no successor is announced.
#[test]
fn what_cannot_come_next_is_told() {
    let (world, c, actor) = world();
    let next = successor(&c, 3, 3, Dap::Abd);
    let later = successor(&next, 3, 3, Dap::Abd);
    let key = key_after(&c.id());
    world
        .outside()
        .decided
        .insert(key.clone(), later.encoded().clone());
    let end = world.run(reconfigure(actor.client(), &c, &next));
    let Err(ReconfigError::Undecided(undecided)) = end else {
        panic!("{end:?}")
    };
    assert!(
        undecided.reason.contains("/0/1' cannot come next"),
        "{undecided}"
    );
    world
        .outside()
        .decided
        .insert(key, Bytes::from_static(b"x"));
    let end = world.run(reconfigure(actor.client(), &c, &next));
    assert!(matches!(end, Err(ReconfigError::Decided(_))), "{end:?}");
    assert_eq!(path(&world, &actor), 1);
}

/// A removal is a reconfiguration, and asks the service, too.
#[test]
fn a_removal_asks_the_service() {
    let root = configuration(3, Dap::Abd, 1, 8);
    let world = World::of(&root, 3, 1);
    let actor = world.actor(&root);
    let descriptor = Descriptor {
        domain: areo_core::object::DomainId(11),
        ..decided_by(&root, SERVICE).descriptor().clone()
    };
    let first = Configuration::new(descriptor).expect("a valid descriptor");
    let (client, at) = (actor.client(), root.clone());
    let made = world.run(async move { client.root(&at).create_domain("x", &first).await });
    assert_eq!(made, Ok(domains::Creation::Created));
    let (client, at) = (actor.client(), root);
    let removed = world.run(async move { client.root(&at).remove_domain("x").await });
    assert_eq!(removed, Ok(domains::Removal::Removed));
    assert_eq!(world.outside().decided.len(), 1);
}

/// Length of the sequence that can be seen.
fn path(world: &World, actor: &Actor) -> usize {
    let (client, c) = (actor.client(), actor.c.clone());
    let path = world.run(async move { client.domain(&c).path().await });
    path.expect("a quorum").len()
}
