//! Promises for registers of which nothing comes go into the floors of their buckets of names (`[W-16 ballot-floor]`).

use crate::world::{Message, World, configuration};
use areo_core::config::Dap;
use areo_core::limits;
use areo_core::manager::Deletion;
use areo_core::message::{Access, Answer, Ballot, RankedVersions, Want};
use areo_core::server::record::Header;
use areo_core::tag::{ClientId, Tag, Writer};

fn world() -> World {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    World::new(&c, 1)
}

fn ballot(number: u64) -> Ballot {
    let client = ClientId(number);
    let proposer = Writer { client, counter: 1 };
    Ballot { number, proposer }
}

/// Asks a member about a name, with a ballot or without.
fn rank(world: &World, at: usize, key: &str, ballot: Option<Ballot>) -> RankedVersions {
    let (want, have) = (Want::Tags, Tag::INITIAL);
    let access = Access::Rank { ballot, want, have };
    match world.access(at, key, access) {
        Ok(Answer::Ranked(held)) => *held,
        other => panic!("{other:?}"),
    }
}

/// Records of registers, and of floors, on the disk of a server.
fn kept(world: &World, at: usize) -> (usize, usize) {
    world.disk(at, |disk| {
        let registers = disk
            .headers()
            .filter(|it| matches!(it, Header::Register { .. }));
        let floors = disk
            .headers()
            .filter(|it| matches!(it, Header::BallotFloor { .. }));
        (registers.count(), floors.count())
    })
}

fn name_of(number: u64) -> String {
    format!("absent/{number}")
}

/// Conditions that did not hold on absent names left a promise for each name at each server for ever.
#[test]
fn promises_for_absent_names_go_into_floors() {
    let world = world();
    for number in 1..=1000 {
        assert!(rank(&world, 0, &name_of(number), Some(ballot(number))).granted);
    }
    assert_eq!(kept(&world, 0), (1000, 0));
    world.gone_over(0);
    // A proposer that prepared in this round may be about to propose.
    assert_eq!(kept(&world, 0), (1000, 0));
    rank(&world, 0, "of the second round", Some(ballot(1001)));
    world.gone_over(0);
    let (registers, floors) = kept(&world, 0);
    assert_eq!(registers, 1, "that of the second round");
    assert!(floors <= 256, "{floors}");
    let shown = |at: u64| rank(&world, 0, &name_of(at), None).promised;
    let before: Vec<Ballot> = (1..=1000).map(shown).collect();
    for (promised, number) in before.iter().zip(1..) {
        assert!(*promised >= ballot(number), "{number}: {promised:?}");
    }
    // A refused ballot leaves nothing.
    let refused = rank(&world, 0, &name_of(1), Some(Ballot::default()));
    assert!(!refused.granted && refused.promised == before[0]);
    world.crash(0);
    world.restart(0, true);
    let after: Vec<Ballot> = (1..=1000).map(shown).collect();
    assert_eq!(before, after, "also where old records come back");
    world.gone_over(0);
    world.gone_over(0);
    assert_eq!(kept(&world, 0).0, 0, "those that came back went again");
}

/// A name whose promise went into a floor is written as any other, and what is recorded of it is later than any old record.
#[test]
fn a_name_below_a_floor_is_written_and_comes_back() {
    for seed in 0..20 {
        let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
        let world = World::new(&c, seed);
        let actor = world.actor(&c);
        // Several promises, so that old records have larger counts of changes.
        for _ in 0..5 {
            assert_eq!(world.run(actor.delete("k")), Ok(Deletion::NotFound));
            world.pass(std::time::Duration::from_millis(1));
        }
        world.settle();
        for server in 0..3 {
            world.gone_over(server);
            world.gone_over(server);
            assert_eq!(kept(&world, server), (0, 1));
        }
        let written = actor.put("k", "written");
        world.settle();
        for server in 0..3 {
            world.crash(server);
            world.restart(server, true);
        }
        assert_eq!(actor.get("k"), (written, Some("written".into())), "{seed}");
    }
}

/// A register with an accepted version, or one that is known to be chosen, stays.
#[test]
fn a_register_of_which_something_is_here_stays() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let written = actor.put("k", "written");
    world.settle();
    for server in 0..3 {
        for _ in 0..4 {
            world.gone_over(server);
        }
        assert_eq!(kept(&world, server), (1, 0));
    }
    assert_eq!(actor.get("k"), (written, Some("written".into())));
    let Ok(Deletion::Deleted(_)) = world.run(actor.delete("k")) else {
        panic!("it was there");
    };
    world.settle();
    for _ in 0..4 {
        world.gone_over(0);
    }
    assert_eq!(kept(&world, 0), (1, 0), "a tombstone is a version");
}

/// A version that a quorum has accepted stays where no member knows that it is chosen: its writer heard of no answer.
#[test]
fn a_version_that_may_be_chosen_stays() {
    let c = configuration(3, Dap::Conditional { k: 1 }, 1, 8);
    let world = World::new(&c, 1);
    let accepts = |it: &Message| matches!(it.access(), Some(Access::Accept(_)));
    world.hold(move |it| accepts(it) && it.is_reply());
    let writer = world.actor(&c);
    let unanswered = world.spawn(writer.write("k", "written"));
    world.settle();
    drop(unanswered);
    for server in 0..3 {
        for _ in 0..4 {
            world.gone_over(server);
        }
        assert_eq!(kept(&world, server), (1, 0));
    }
    world.lose(|_| true);
    world.release();
    let (_, found) = world.actor(&c).get("k");
    assert_eq!(found.as_deref(), Some("written"));
}

/// One ballot that is far from all clocks does not reach the other names of its bucket.
#[test]
fn a_ballot_far_from_clocks_goes_into_no_floor() {
    let world = world();
    let far = limits::REMEMBERED_BALLOT + 1;
    rank(&world, 0, "far", Some(ballot(far)));
    for _ in 0..4 {
        world.gone_over(0);
    }
    assert_eq!(kept(&world, 0), (1, 0));
    assert_eq!(rank(&world, 0, "far", None).promised, ballot(far));
}

/// A promise that was repeated is as old as its last repetition.
#[test]
fn a_promise_in_use_stays() {
    let world = world();
    for round in 1..=6 {
        rank(&world, 0, "k", Some(ballot(round)));
        world.gone_over(0);
        assert_eq!(kept(&world, 0), (1, 0), "round {round}");
    }
    world.gone_over(0);
    assert_eq!(kept(&world, 0), (0, 1));
    assert_eq!(rank(&world, 0, "k", None).promised, ballot(6));
}

/// A record of a floor that no execution produces is damage: what was promised of the names of its bucket is not known.
#[test]
fn a_floor_that_is_not_possible_is_damage() {
    let world = world();
    rank(&world, 0, "k", Some(ballot(7)));
    world.gone_over(0);
    world.gone_over(0);
    world.crash(0);
    let bend = |header: &mut Header| {
        if let Header::BallotFloor { floor, .. } = header {
            floor.promised.number = u64::MAX;
        }
    };
    assert_eq!(world.disk(0, |disk| disk.bend(bend)), 1);
    world.restart(0, false);
    let (ballot, want, have) = (None, Want::Tags, Tag::INITIAL);
    let access = Access::Rank { ballot, want, have };
    let refused = world.access(0, "k", access);
    assert_eq!(refused, Err(areo_core::message::Refusal::Damaged));
}
