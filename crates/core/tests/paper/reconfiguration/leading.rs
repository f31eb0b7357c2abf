//! L-Rambo step by step (`docs/spec` 6.5): what a leader proposes, and at which ballot.

use super::gate::{Gate, GatedEnv, until_death};
use super::merging::{LEADER, changed, contains, first, installed, membership};
use super::reconfigure;
use crate::world::{Actor, Message, World, server};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::consensus::SUCCESSOR_CELL;
use areo_core::dsm::Client;
use areo_core::message::Ballot;
use areo_core::reconfig::ReconfigError;
use areo_core::server::record::Header;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Four servers of six, and a change that brings the fifth, and one that brings the sixth.
pub(super) fn led() -> (World, Arc<Configuration>, [Arc<Configuration>; 2]) {
    let c = first(LEADER, 4);
    let world = World::of(&c, 6, 1);
    // Members know the configuration, so that one message posts.
    world.actor(&c).put("k", "v");
    world.settle();
    let changes = [4, 5].map(|new| changed(&c, |it| it.with(server(new))));
    (world, c, changes)
}

/// The actor makes `next`, which goes.
fn made(world: &World, by: &Actor, next: &Arc<Configuration>) -> Arc<Configuration> {
    let done = world.run(reconfigure(by.client(), &by.c, next));
    world.settle();
    installed(done, "nothing is in its way")
}

/// A client posts the change, and dies.
pub(super) fn post_and_die(world: &World, c: &Arc<Configuration>, next: &Arc<Configuration>) {
    // It looks, and posts.
    let gate = Gate::after(2);
    let client = Client::new(GatedEnv::new(world.env(), &gate));
    let died = world.run(until_death(gate, reconfigure(client, c, next)));
    assert_eq!(died, None);
    world.settle();
}

/// A client that makes one change after the other asks for promises until it owns ballot 0, and not then; another client asks.
#[test]
fn who_proposed_a_configuration_needs_no_promises_in_it() {
    let c = first(LEADER, 4);
    let world = World::of(&c, 5, 1);
    let [one, other] = [world.actor(&c), world.actor(&c)];
    let changes = [
        (&one, 16),
        (&one, 15),
        (&one, 15),
        (&other, 16),
        (&one, 16),
        (&one, 15),
    ];
    let mut last = c;
    let mut taken = Vec::new();
    for (number, (by, _)) in changes.iter().enumerate() {
        // The fifth server comes and goes.
        let next = changed(&last, |it| match number % 2 {
            0 => it.with(server(4)),
            _ => it.without(server(4)),
        });
        let before = world.gathers();
        let done = world.run(reconfigure(by.client(), &last, &next));
        taken.push(world.gathers() - before);
        last = installed(done, "nothing is in its way");
        world.settle();
    }
    assert_eq!(taken, changes.map(|(_, rounds)| rounds));
}

/// The next reconfigurer makes the changes that others posted, together with its own.
#[test]
fn a_leader_makes_what_others_posted() {
    let (world, c, [one, other]) = led();
    post_and_die(&world, &c, &one);
    let last = made(&world, &world.actor(&c), &other);
    assert!(contains(&last, &one) && contains(&last, &other));
    assert_eq!(
        membership(&last).size(),
        membership(&c).size().map(|size| size + 4),
        "each server came once, in one configuration"
    );
}

/// Together they would leave too few members: the second is made alone, and the first refused afterwards.
#[test]
fn a_leader_leaves_out_what_leaves_too_few() {
    let (world, c, _) = led();
    let [one, other] = [0, 1].map(|gone| changed(&c, |it| it.without(server(gone))));
    post_and_die(&world, &c, &one);
    let last = made(&world, &world.actor(&c), &other);
    assert_eq!(membership(&last), membership(&other));
    let refused = world.run(reconfigure(world.actor(&c).client(), &c, &one));
    let (members, least) = (2, 3);
    assert_eq!(refused, Err(ReconfigError::TooFew { members, least }));
}

/// A refused change is not made by others later, unlike under lattice agreement.
#[test]
fn what_is_refused_is_not_posted() {
    let (world, c, [more, _]) = led();
    let few = changed(&c, |it| it.without(server(0)).without(server(1)));
    let refused = world.run(reconfigure(world.actor(&c).client(), &c, &few));
    let (members, least) = (2, 3);
    assert_eq!(refused, Err(ReconfigError::TooFew { members, least }));
    let last = made(&world, &world.actor(&c), &more);
    assert_eq!(membership(&last), membership(&more));
}

/// Values that acceptors had accepted, by configuration and ballot.
type Accepted = BTreeMap<(ConfigurationId, Ballot), Bytes>;

/// Adds what acceptors have now: of one ballot there is one value.
fn observe(world: &World, accepted: &mut Accepted) {
    for number in 0..world.servers() {
        world.disk(number, |disk| {
            for header in disk.headers() {
                let Header::Cell {
                    key,
                    cell,
                    acceptor,
                } = header
                else {
                    continue;
                };
                let Some((ballot, value)) = &acceptor.accepted else {
                    continue;
                };
                if cell == SUCCESSOR_CELL {
                    let known = accepted.entry((*key, *ballot)).or_insert(value.clone());
                    assert_eq!(known, value, "{ballot:?} of {key:?}");
                }
            }
        });
    }
}

/// `[R-11 owned-ballot]`: the owner's proposal came to one member, and it heard no answer. It proposes something else afterwards, at
/// another ballot.
#[test]
fn ballot_0_is_used_once() {
    let (world, c, _) = led();
    let owner = world.actor(&c);
    let mut accepted = Accepted::new();
    let replaced = |c: &Arc<Configuration>, old, new| {
        changed(c, |it| it.without(server(old)).with(server(new)))
    };
    let last = made(&world, &owner, &replaced(&c, 0, 4));
    world.hold(|m: &Message| m.is_cell_accept() && !m.at(&[1]));
    let first = world.run(reconfigure(owner.client(), &last, &replaced(&last, 1, 5)));
    assert!(matches!(first, Err(ReconfigError::Pending(_))), "{first:?}");
    observe(&world, &mut accepted);
    assert!(
        accepted.keys().any(|(_, ballot)| ballot.number == 0),
        "one member has it"
    );
    world.lose(Message::is_cell_accept);
    world.release();
    // That one is late from now on.
    world.hold(|m: &Message| m.is_cell_accept() && m.at(&[1]));
    let second = world.spawn(reconfigure(owner.client(), &last, &replaced(&last, 2, 0)));
    while second.borrow().is_none() {
        assert!(world.step(), "it ends");
        observe(&world, &mut accepted);
    }
    world.release();
    world.settle();
    let ended = second.borrow_mut().take().expect("it has ended");
    installed(ended, "a quorum answers");
    assert!(
        accepted.keys().any(|(_, ballot)| ballot.number > 0),
        "it asked for promises"
    );
    world.assert_one_chain();
}
