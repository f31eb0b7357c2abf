//! Versions at a quorum are brought to the members that lack them, by the rules of a reader's write-back (`docs/spec`
//! `[X-25 full-redundancy]`, `[X-26 self-repair]`).

use super::reconfiguration::reconfigure;
use crate::world::{
    Actor, Message, World, WorldEnv, configuration, name, server, successor, value, with,
};
use areo_core::config::{Configuration, ConfigurationId, Dap, Options, Thrift};
use areo_core::dap;
use areo_core::dsm::holdings::MemberHolding;
use areo_core::dsm::redundancy::{Incomplete, MemberListing, ObjectRedundancy};
use areo_core::manager::repair::{DomainRound, RepairHost, RepairPace, Repairer};
use areo_core::message::{Access, Answer};
use areo_core::object::{Kind, Name};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use std::sync::Arc;
use std::time::Duration;

const LONG: &str = "a value that is longer than a copy may be";

fn world(n: usize, dap: Dap) -> (World, Actor, Actor) {
    let c = configuration(n, dap, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

fn shapes() -> [(usize, Dap); 2] {
    [(3, Dap::Abd), (5, Dap::Ec { k: 3 })]
}

/// The lists of the members, for the objects of users.
pub(super) fn look(world: &World, actor: &Actor, c: &Arc<Configuration>) -> Vec<ObjectRedundancy> {
    let (domain, c) = (actor.domain(), c.clone());
    let page = world.run(async move { domain.redundancy(&c, Kind::User, "").await });
    page.expect("a quorum lists them").objects
}

/// A server that has nothing else to do.
struct Host(World, usize);

impl RepairHost for Host {
    fn busy_percent(&self) -> u8 {
        0
    }

    fn distrust(&self, key: ConfigurationId, name: &Name, tag: Tag) {
        self.0.distrust(self.1, key, name, tag);
    }

    fn drop_tombstones(&self, key: ConfigurationId, blocks: &[Name]) {
        self.0.drop_tombstones(self.1, key, blocks);
    }
}

/// A round of this server over the one domain that there is.
pub fn round(world: &World, number: usize, c: &Arc<Configuration>) -> DomainRound {
    let actor = world.actor(c);
    let (of_world, c) = (world.clone(), c.clone());
    let pace = RepairPace {
        bytes_per_s: 1 << 20,
        page: Duration::from_millis(1),
    };
    let round = world.run(async move {
        let host = Host(of_world.clone(), number);
        let env = move || -> WorldEnv { of_world.env() };
        let mut repairer = Repairer::new(actor.client(), env, server(number), &c, pace);
        repairer.round(&host).await
    });
    assert_eq!(round.domains.len(), 1, "{round:?}");
    round.domains.into_iter().next().expect("it was counted")
}

#[test]
fn a_member_that_was_away_gets_its_elements() {
    for (n, dap) in shapes() {
        for absent in 0..n {
            let (world, writer, reader) = world(n, dap);
            let c = writer.c.clone();
            writer.put("old", LONG);
            world.settle();
            world.hold(move |m| m.at(&[absent]));
            let (old, new) = (writer.put("old", "newer"), writer.put("new", LONG));
            world.lose(move |m| m.at(&[absent]));
            world.release();
            let seen = look(&world, &reader, &c);
            let keys: Vec<_> = seen.iter().map(|it| (it.name.key(), it.tag)).collect();
            assert_eq!(keys, [("new", new), ("old", old)]);
            for object in &seen {
                let lacks: Vec<usize> = (0..n).filter(|at| object.lacking()[*at]).collect();
                assert_eq!(lacks, [absent], "{dap:?} {object:?}");
            }
            // Another server finds nothing to do: each repairs itself.
            assert_eq!(round(&world, (absent + 1) % n, &c).repaired, 0);
            let done = round(&world, absent, &c);
            assert_eq!((done.repaired, done.lacking, done.ended), (2, 0, None));
            assert_eq!(done.bytes, (LONG.len() + "newer".len()) as u64);
            assert!(
                look(&world, &reader, &c)
                    .iter()
                    .all(ObjectRedundancy::is_full)
            );
            assert_eq!(round(&world, absent, &c).bytes, 0, "it is done once");
            // What is older goes, as after a write that the member took part in.
            world.settle();
            assert_eq!(world.held(absent, "old").stable, old);
            world.crash((absent + 1) % n);
            assert_eq!(reader.get("new"), (new, Some(LONG.into())));
        }
    }
}

/// A tombstone is a version like others: without it the member would go on listing what was deleted.
#[test]
fn a_member_that_missed_a_deletion_gets_the_tombstone() {
    let (world, writer, reader) = world(3, Dap::Abd);
    let c = writer.c.clone();
    writer.put("k", LONG);
    world.settle();
    world.hold(|m| m.at(&[2]));
    world.run(writer.delete("k")).unwrap();
    world.lose(|m| m.at(&[2]));
    world.release();
    assert_eq!(round(&world, 2, &c).repaired, 1);
    assert!(
        look(&world, &reader, &c)
            .iter()
            .all(ObjectRedundancy::is_full)
    );
}

#[test]
fn a_damaged_element_is_made_again() {
    for (n, dap) in shapes() {
        let (world, writer, reader) = world(n, dap);
        let (c, tag) = (writer.c.clone(), writer.put("k", LONG));
        world.settle();
        assert!(world.disk(1, |disk| disk.rot(|_| true)) > 0);
        world.crash(1);
        world.restart(1, false);
        assert!(!world.held(1, "k").stores(tag), "it found out");
        let seen = look(&world, &reader, &c);
        assert_eq!(seen[0].listed[1], MemberListing::Damaged);
        let done = round(&world, 1, &c);
        assert_eq!((done.repaired, done.lacking), (1, 0), "{done:?}");
        assert!(world.held(1, "k").stores(tag));
    }
}

/// `[X-29 cross-check]`: its checksum is right, so that no scrub finds it, and a read that takes it in returns other bytes.
#[test]
fn an_element_of_another_value_is_found_and_made_again() {
    // So long that no fragment is empty, and alike but for their bytes.
    let [long, other] = ["long", "else"].map(|word| word.repeat(500));
    for (n, dap) in shapes() {
        for wrong in 0..n {
            let (world, writer, reader) = world(n, dap);
            let c = writer.c.clone();
            world.hold(move |m| m.at(&[wrong]));
            let tag = writer.put("k", &long);
            world.lose(move |m| m.at(&[wrong]));
            world.release();
            let element = dap::elements(&c, &name("k"), &value(&other)).swap_remove(wrong);
            let put = Access::Put {
                tag,
                element,
                write_back: true,
            };
            assert_eq!(world.access(wrong, "k", put), Ok(Answer::Stored));
            assert!(look(&world, &reader, &c)[0].is_full(), "it is listed");
            // The others find nothing wrong with what they hold.
            let of_other = round(&world, (wrong + 1) % n, &c);
            assert_eq!((of_other.checks.sound, of_other.repaired), (1, 0));
            let found = round(&world, wrong, &c);
            assert_eq!(found.checks.differing, 1, "{found:?}");
            assert_eq!((found.repaired, found.lacking), (1, 0));
            assert_eq!(round(&world, wrong, &c).checks.sound, 1, "it is whole");
            for gone in (0..n).filter(|at| *at != wrong).take(1) {
                world.crash(gone);
            }
            assert_eq!(reader.get("k"), (tag, Some(long.clone())));
        }
    }
}

#[test]
fn a_member_that_is_away_is_not_waited_for_for_ever() {
    let (world, writer, reader) = world(3, Dap::Abd);
    let c = writer.c.clone();
    world.hold(|m| m.at(&[2]));
    writer.put("k", LONG);
    let seen = look(&world, &reader, &c);
    assert_eq!(
        seen[0].listed,
        [
            MemberListing::Newest,
            MemberListing::Newest,
            MemberListing::Unknown
        ]
    );
    let domain = reader.domain();
    let lacking = [false, false, true];
    let done = world.run(async move { domain.complete(&c, &seen[0], &lacking).await });
    let done = done.unwrap();
    assert_eq!(done.holdings, [MemberHolding::Silent]);
    assert!(!done.is_done());
}

/// A server that completes a version for a reader may find that all members have got it meanwhile. It asked no member then, and waited for an answer until its deadline.
#[test]
fn a_version_that_no_member_lacks_is_completed_at_once() {
    for (n, dap) in shapes() {
        let (world, writer, reader) = world(n, dap);
        let (c, tag) = (writer.c.clone(), writer.put("k", LONG));
        world.settle();
        let seen = look(&world, &reader, &c);
        let (domain, lacking, begun) = (reader.domain(), vec![false; n], world.now());
        let done = world.run(async move { domain.complete(&c, &seen[0], &lacking).await });
        let done = done.unwrap();
        assert_eq!((done.tag, done.holdings.len()), (tag, 0));
        assert!(done.is_done());
        assert_eq!(world.now(), begun, "nothing was waited for");
    }
}

/// A version that no read may return is not spread: it is at one member, and older ones are complete.
#[test]
fn an_unfinished_version_is_brought_to_no_member() {
    let (world, writer, reader) = world(5, Dap::Ec { k: 3 });
    let (c, complete) = (writer.c.clone(), writer.put("k", LONG));
    world.settle();
    // A put that comes to one member, whose client then ends.
    world.hold(|m: &Message| m.is_put() && !m.at(&[0]));
    let other = world.actor(&c);
    let put = world.spawn(other.write("k", "another long value, torn"));
    world.settle();
    world.lose(|m: &Message| m.is_put());
    drop(put);
    world.release();
    assert!(look(&world, &reader, &c)[0].tag > complete);
    for number in 0..5 {
        let done = round(&world, number, &c);
        assert_eq!((done.repaired, done.lacking), (0, 0), "{number}");
    }
    assert_eq!(reader.get("k"), (complete, Some(LONG.into())));
    let torn = look(&world, &reader, &c);
    assert_eq!(
        torn[0]
            .listed
            .iter()
            .filter(|it| **it == MemberListing::Newest)
            .count(),
        1
    );
}

/// A removal that ended half way is at members that a read need not ask, again and again: in the worst case they answer last, or are
/// those that a thrifty call spares. A member that misses it hears it all the same, and completes it as a reader does.
#[test]
fn a_removal_that_ended_half_way_comes_to_all() {
    let shapes = [(3, Dap::Abd, 1), (6, Dap::Ec { k: 2 }, 2)];
    for thrift in [Thrift::Off, Thrift::Queries, Thrift::Calls] {
        for (n, dap, few, first) in shapes
            .into_iter()
            .flat_map(|(n, dap, few)| (0..n).map(move |first| (n, dap, few, first)))
        {
            let options = Options {
                thrift,
                ..Options::ARES_2
            };
            let c = with(&configuration(n, dap, 1, 0), options);
            let world = World::new(&c, 1);
            let writer = world.actor(&c);
            let written = writer.put("k", LONG);
            world.settle();
            let is_missed = move |m: &Message| {
                let mut reached = (0..few).map(|at| (first + at) % n);
                m.is_put() && !reached.any(|it| m.at(&[it]))
            };
            world.hold(is_missed);
            let removal = world.spawn(world.actor(&c).delete("k"));
            // A thrifty put asks the others, too.
            world.pass(Duration::from_millis(100));
            assert!(removal.borrow().is_none(), "{dap:?}: it is at too few");
            world.lose(is_missed);
            world.release();
            let listed = look(&world, &writer, &c).remove(0);
            let missed = listed.lacking().iter().filter(|lacks| **lacks).count();
            assert!(listed.tag > written && missed == n - few, "{listed:?}");
            for number in 0..n {
                let done = round(&world, number, &c);
                assert_eq!((done.lacking, done.ended), (0, None), "{dap:?}, {number}");
            }
            assert!(
                look(&world, &writer, &c)[0].is_full(),
                "{thrift:?} {dap:?}: from member {first} on"
            );
            world.settle();
            for number in 0..n {
                assert_eq!(world.held(number, "k").stable, listed.tag, "{dap:?}");
            }
        }
    }
}

/// One member alone knows that a version is final, and its answer comes last: a read that others decide returns an older one
/// (`[CAS-2 quorum-of-marks]`). The members that miss the version get it all the same.
#[test]
fn a_version_that_one_member_knows_to_be_final_comes_to_all() {
    for dap in [Dap::Cas { k: 1 }, Dap::CasGc { k: 1 }] {
        let (world, writer, reader) = world(3, dap);
        let c = writer.c.clone();
        // It is at members 1 and 2, and final at 2. Then its client ends.
        world.hold(|m| m.at(&[0]) || m.is_fin() && !m.at(&[2]));
        let other = world.actor(&c);
        let put = world.spawn(other.write("k", LONG));
        world.settle();
        world.lose(|m| m.at(&[0]) || m.is_fin() && !m.at(&[2]));
        drop(put);
        world.release();
        let tag = look(&world, &reader, &c)[0].tag;
        assert!(!tag.is_initial(), "member 2 lists it");
        for number in [0, 1] {
            let done = round(&world, number, &c);
            assert_eq!(done.lacking, 0, "{dap:?}, member {number}: {done:?}");
        }
        assert!(look(&world, &reader, &c)[0].is_full());
        assert_eq!(reader.get("k"), (tag, Some(LONG.into())));
    }
}

/// An unreadable object does not count as repaired, and does not keep others from being repaired.
#[test]
fn one_unreadable_object_stops_no_other() {
    let (world, writer, _) = world(5, Dap::Ec { k: 3 });
    let c = writer.c.clone();
    world.hold(|m| m.at(&[4]));
    for key in ["a", "b", "c"] {
        writer.put(key, LONG);
    }
    world.lose(|m| m.at(&[4]));
    world.release();
    // Elements of 'b' rot at two of the four that have one.
    for number in [0, 1] {
        let of_b = |header: &Header| matches!(header, Header::Element(it) if it.name == name("b"));
        assert!(world.disk(number, |disk| disk.rot(of_b)) > 0);
    }
    let done = round(&world, 4, &c);
    assert_eq!((done.repaired, done.lacking, done.ended), (2, 1, None));
}

#[test]
fn a_domain_that_is_being_reconfigured_is_left_to_its_transfer() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::of(&c, 4, 1);
    let writer = world.actor(&c);
    let tag = writer.put("k", LONG);
    let next = successor(&c, 1, 3, Dap::Abd);
    // The successor is decided and known, and its client ends before the transfer.
    world.hold(|m: &Message| m.is_put() && m.at(&[1, 2, 3]));
    let moving = world.spawn(reconfigure(writer.client(), &c, &next));
    world.settle();
    let found = round(&world, 2, &c);
    assert_eq!(found.ended, Some(Incomplete::Moving), "{found:?}");
    world.release();
    world.settle();
    drop(moving);
    let resumed = reconfigure(writer.client(), &c, &next);
    world.run(resumed).unwrap();
    // The new member misses nothing, and the one that left has nothing to do.
    let done = round(&world, 3, &c);
    assert_eq!((done.objects, done.lacking, done.ended), (1, 0, None));
    let seen = look(&world, &writer, &next);
    assert!(seen[0].is_full() && seen[0].tag == tag, "{seen:?}");
}
