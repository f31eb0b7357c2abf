//! SM over erasure codes: members that stay keep their elements when changes meet (`docs/spec`, `[R-32 slots-stay]`).

use super::gate::{Gate, GatedEnv};
use super::merging::{ORDER, changed, contains, first_of, installed};
use super::reconfigure;
use crate::world::{World, server};
use areo_core::config::{Configuration, Dap, Decider};
use areo_core::dsm::Client;
use areo_core::reconfig::ReconfigError;
use areo_core::server::record::Header;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const OBJECTS: usize = 20;
const SIZE: usize = 300;
const CODED: Dap = Dap::Ec { k: 3 };

fn key(number: usize) -> String {
    format!("key {number}")
}

fn text(number: usize) -> String {
    format!("{number:0SIZE$}")
}

/// A domain on the first five servers, with objects of which each server has a fragment.
fn filled(servers: usize, seed: u64) -> (World, Arc<Configuration>) {
    let c = first_of(Decider::Agreement, CODED, 5);
    let world = World::of(&c, servers, seed);
    let actor = world.actor(&c);
    for number in 0..OBJECTS {
        actor.put(&key(number), &text(number));
    }
    world.settle();
    (world, c)
}

fn assert_holds_everything(world: &World, c: &Arc<Configuration>) {
    let reader = world.actor(c);
    for number in 0..OBJECTS {
        let (_, read) = reader.get(&key(number));
        assert_eq!(read, Some(text(number)), "{c:?}");
    }
}

/// The index of the element of each member, for objects that are placed in every way.
fn indices(c: &Configuration, member: usize) -> Vec<u8> {
    let position = c.position(server(member)).expect("it is a member");
    let index = |hash| c.element_index(position, hash);
    (0..60).map(index).collect()
}

/// Checks that each member holds another element of each object, and that the data fragments are those of a full
/// domain.
fn assert_distinct(c: &Configuration) {
    for hash in 0..60 {
        let of = |position| c.element_index(position, hash);
        let distinct: BTreeSet<u8> = (0..c.n()).map(of).collect();
        assert_eq!(distinct.len(), c.n(), "{c:?}");
        assert!(distinct.iter().all(|index| *index < c.code().n()));
    }
}

/// Members that stay are sent nothing, whether `n` grows, falls or stays; new members are sent their elements.
#[test]
fn members_that_stay_adopt_all_that_they_have() {
    let (world, mut last) = filled(9, 1);
    let changes: [(&[usize], &[usize]); 6] = [
        (&[], &[5]),
        (&[2], &[6]),
        (&[0], &[]),
        (&[5, 6], &[0, 7]),
        (&[], &[2, 5, 8]),
        (&[1, 3, 8], &[]),
    ];
    for (leaving, coming) in changes {
        let next = changed(&last, |it| {
            let it = leaving
                .iter()
                .fold(it.clone(), |it, number| it.without(server(*number)));
            coming
                .iter()
                .fold(it, |it, number| it.with(server(*number)))
        });
        let adopted = |number: &usize| world.adopted(*number);
        let all: Vec<usize> = (0..9).collect();
        let before: Vec<usize> = all.iter().map(adopted).collect();
        let sent = world.put_bytes();
        let actor = world.actor(&last);
        let done = installed(
            world.run(reconfigure(actor.client(), &last, &next)),
            "a change alone",
        );
        world.settle();
        assert!(contains(&done, &next) && done.members() == next.members());
        assert_distinct(&done);
        for number in &all {
            let stays = last.position(server(*number)).is_some()
                && next.position(server(*number)).is_some();
            let adopts = adopted(number) - before[*number];
            assert_eq!(adopts, if stays { OBJECTS } else { 0 }, "{number} {next:?}");
        }
        let most = last.code().fragment_length(SIZE) + 100;
        let sent = world.put_bytes() - sent;
        assert!(sent <= coming.len() * OBJECTS * most, "{sent} {next:?}");
        // Any of them may be away.
        for away in next.members().iter() {
            let away = (0..9).find(|number| server(*number) == *away);
            let away = away.expect("a server of this world");
            world.crash(away);
            assert_holds_everything(&world, &done);
            world.restart(away, false);
        }
        last = done;
    }
}

/// The configurations that servers know.
fn known(world: &World, seen: &mut BTreeMap<u32, Arc<Configuration>>) {
    for number in 0..world.servers() {
        world.disk(number, |disk| {
            for header in disk.headers() {
                if let Header::Pointer { pointer, .. } = header {
                    let c = &pointer.configuration;
                    seen.insert(c.id().index, c.clone());
                }
            }
        });
    }
}

/// In all configurations that come into use: no two members have one element, and those of the first one keep theirs.
fn assert_slots_stay(first: &Configuration, seen: &BTreeMap<u32, Arc<Configuration>>, case: &str) {
    for c in seen.values() {
        assert_distinct(c);
        for number in 0..5 {
            if c.position(server(number)).is_some() {
                assert_eq!(indices(first, number), indices(c, number), "{case}: {c:?}");
            }
        }
    }
}

/// One reconfigurer is stopped before each of its calls in turn, while another one makes its change; both add
/// servers, and one removes one.
#[test]
fn changes_at_once_give_no_two_members_one_element() {
    for limit in 0.. {
        let case = format!("stopped before call {limit}");
        let (world, c) = filled(8, 1);
        let one = changed(&c, |it| it.with(server(6)));
        let other = changed(&c, |it| {
            it.without(server(1)).with(server(5)).with(server(7))
        });
        let gate = Gate::after(limit);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let late = world.spawn(reconfigure(client, &c, &other));
        let mut seen = BTreeMap::new();
        while late.borrow().is_none() && !gate.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
        let stopped = gate.is_reached();
        known(&world, &mut seen);
        let done = world.run(reconfigure(world.actor(&c).client(), &c, &one));
        assert!(contains(&installed(done, &case), &one), "{case}");
        known(&world, &mut seen);
        gate.open();
        while late.borrow().is_none() {
            assert!(world.step(), "it ends");
            known(&world, &mut seen);
        }
        let ended = late.borrow_mut().take().expect("it has ended");
        let last = installed(ended, &case);
        assert!(contains(&last, &other), "{case}");
        assert_slots_stay(&c, &seen, &case);
        world.settle();
        assert_holds_everything(&world, &last);
        assert_holds_everything(&world, &c);
        if !stopped {
            assert!(limit > 8, "{case}: it has more calls than these");
            break;
        }
    }
}

/// Three that each bring a server at the same time, in any order of messages.
#[test]
fn servers_that_come_at_once_have_elements_of_their_own() {
    let mut made = BTreeSet::new();
    for seed in 0..80 {
        let (world, c) = filled(8, seed);
        world.random(ORDER);
        let changes = [7, 6, 5].map(|new| changed(&c, |it| it.with(server(new))));
        let make = |change| world.spawn(reconfigure(world.actor(&c).client(), &c, change));
        let ended: Vec<_> = changes.iter().map(make).collect();
        let mut seen = BTreeMap::new();
        while ended.iter().any(|ended| ended.borrow().is_none()) {
            assert!(world.step(), "seed {seed}: they end");
            known(&world, &mut seen);
        }
        assert_slots_stay(&c, &seen, &format!("seed {seed}"));
        let last = seen.values().next_back().expect("there are some");
        assert_eq!(last.n(), 8, "seed {seed}: all came");
        world.settle();
        assert_holds_everything(&world, last);
        made.insert(seen.len());
    }
    assert!(made.first() == Some(&1), "some become one: {made:?}");
    assert!(made.len() > 1, "and others follow each other: {made:?}");
}

/// A domain with k = 3 keeps five servers, of which any one may be away: also where two changes meet that are possible alone
/// (`[R-3 never-too-few]`, `[R-26 refused-stays]`).
#[test]
fn changes_never_leave_fewer_than_tolerate_a_crash() {
    let (members, least) = (4, 5);
    let too_few = Err(ReconfigError::TooFew { members, least });
    let mut refused = 0;
    for limit in 0.. {
        let (world, c) = filled(8, 1);
        let make = |change: &Arc<Configuration>| {
            world.run(reconfigure(world.actor(&c).client(), &c, change))
        };
        let alone = changed(&c, |it| it.without(server(0)));
        assert_eq!(make(&alone), too_few, "nothing is proposed");
        let six = installed(make(&changed(&c, |it| it.with(server(5)))), "one comes");
        let [one, other] = [0, 1].map(|gone| changed(&six, |it| it.without(server(gone))));
        let gate = Gate::after(limit);
        let client = Client::new(GatedEnv::new(world.env(), &gate));
        let late = world.spawn(reconfigure(client, &six, &other));
        while late.borrow().is_none() && !gate.is_reached() {
            assert!(world.step(), "it ends, or stops");
        }
        let stopped = gate.is_reached();
        let first = make(&one);
        assert!(first.is_ok() || first == too_few, "{first:?}");
        gate.open();
        let second = world.finish(&late);
        assert!(second.is_ok() || second == too_few, "{second:?}");
        assert!(first == too_few || second == too_few, "five stay");
        refused += usize::from(first == too_few && stopped);
        let mut seen = BTreeMap::new();
        known(&world, &mut seen);
        let is_enough = |c: &Arc<Configuration>| c.n() >= least;
        assert!(seen.values().all(is_enough), "stopped before call {limit}");
        let more = changed(&c, |it| it.with(server(6)).with(server(7)));
        let mut last = installed(make(&more), "others come");
        for change in [&one, &other] {
            last = installed(make(change), "now there are enough");
        }
        assert!(contains(&last, &one) && contains(&last, &other) && last.n() == 6);
        assert_slots_stay(&c, &seen, "removals that meet");
        assert_holds_everything(&world, &last);
        if !stopped {
            break;
        }
    }
    assert!(
        refused > 2,
        "the second one meets what the first proposed: {refused}"
    );
}
