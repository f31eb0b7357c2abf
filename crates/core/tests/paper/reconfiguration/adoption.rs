//! Adoption (`[X-17 adopted-elements]`): what the new servers hold already is not sent to them, and is as good as if it had
//! been.

use super::{Actor, World, configuration, move_to, successor};
use crate::world::{identity, name, server, value};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::element::{Element, Form};
use areo_core::instant::Instant;
use areo_core::message::{Access, Answer, Body, Reply, Request};
use areo_core::pointer::Successors;
use areo_core::server::record::Header;
use areo_core::shard::Shard;
use areo_core::tag::{Tag, Writer};
use std::sync::Arc;

const OBJECTS: usize = 30;
const SMALL: usize = 6;
/// No multiple of `k`.
const LARGE: usize = 200;
const CODED: Dap = Dap::Ec { k: 3 };

/// The configuration after `c` with these members.
fn with_members(c: &Configuration, members: &[usize], dap: Dap) -> Arc<Configuration> {
    let next = Descriptor {
        members: members.iter().map(|number| server(*number)).collect(),
        ..successor(c, 0, members.len(), dap).descriptor().clone()
    };
    Configuration::new(next).expect("a valid descriptor")
}

/// A domain on the first five of seven servers, with objects of this size and a tombstone.
fn filled(dap: Dap, size: usize) -> (World, Actor, Arc<Configuration>) {
    let c = configuration(5, dap, 1, 8);
    let world = World::of(&c, 7, 1);
    let actor = world.actor(&c);
    for number in 0..OBJECTS {
        actor.put(&format!("key {number}"), &text(number, size));
    }
    actor.put("gone", "soon");
    world.run(actor.delete("gone")).expect("it is there");
    world.settle();
    (world, actor, c)
}

fn text(number: usize, size: usize) -> String {
    format!("{number:0size$}")
}

fn assert_holds_everything(world: &World, c: &Arc<Configuration>, size: usize) {
    let reader = world.actor(c);
    for number in 0..OBJECTS {
        let (_, read) = reader.get(&format!("key {number}"));
        assert_eq!(read, Some(text(number, size)), "{c:?}");
    }
}

/// Elements that each of the first five servers adopted, and bytes that were sent to servers, by moving to `members`.
fn adopted(from: Dap, members: &[usize], to: Dap, size: usize) -> (Vec<usize>, usize) {
    let (world, actor, c) = filled(from, size);
    let (next, before) = (with_members(&c, members, to), world.put_bytes());
    move_to(&world, &actor, &next);
    world.settle();
    let sent = world.put_bytes() - before;
    let adopted = (0..5).map(|number| world.adopted(number)).collect();
    for number in members {
        // The element of each object is there, for every reader.
        assert_eq!(world.disk(*number, |disk| disk.elements()), OBJECTS + 1);
    }
    assert_holds_everything(&world, &next, size);
    (adopted, sent)
}

#[test]
fn only_a_server_that_comes_is_sent_elements() {
    let replaced = [0, 1, 5, 3, 4];
    let all = OBJECTS + 1;
    let kept = vec![all, all, 0, all, all];
    let fragment = 64;
    for (from, to, size, bytes) in [
        (Dap::Abd, Dap::Abd, SMALL, SMALL),
        (Dap::Abd, Dap::Abd, LARGE, LARGE),
        (CODED, CODED, SMALL, SMALL),
        (CODED, Dap::Abd, SMALL, SMALL),
    ] {
        let expected = (kept.clone(), OBJECTS * bytes);
        assert_eq!(
            adopted(from, &replaced, to, size),
            expected,
            "{from:?} {to:?}"
        );
    }
    // Of a value of 200 bytes data fragments have 128 or, at its end, 8 and none; parity has 128.
    for from in [CODED, Dap::Abd] {
        let (holders, bytes) = adopted(from, &replaced, CODED, LARGE);
        assert_eq!(holders, kept, "a fragment is cut from a copy, too");
        assert!(bytes < OBJECTS * 2 * fragment + 1, "{bytes}");
    }
}

#[test]
fn nothing_is_sent_where_only_the_algorithm_changes() {
    let same = [0, 1, 2, 3, 4];
    for (from, to, size) in [
        (Dap::Abd, CODED, LARGE),
        (Dap::Abd, CODED, SMALL),
        (CODED, Dap::Abd, SMALL),
    ] {
        let expected = (vec![OBJECTS + 1; 5], 0);
        assert_eq!(adopted(from, &same, to, size), expected, "{from:?} {to:?}");
    }
    let (holders, bytes) = adopted(CODED, &same, Dap::Abd, LARGE);
    assert_eq!(
        holders, [1; 5],
        "a fragment is no copy; the tombstone is one"
    );
    assert_eq!(bytes, OBJECTS * 5 * LARGE);
}

/// The index of a fragment follows the order of the members (`[X-6 rotating-index]`).
#[test]
fn fragments_of_other_indices_are_not_adopted() {
    let (holders, _) = adopted(CODED, &[1, 2, 3, 4, 0], CODED, LARGE);
    assert_eq!(holders, [1; 5], "the tombstone alone");
    let (holders, _) = adopted(CODED, &[0, 1, 2, 4, 3], CODED, LARGE);
    assert_eq!(holders, [OBJECTS + 1, OBJECTS + 1, OBJECTS + 1, 1, 1]);
    let (holders, _) = adopted(CODED, &[0, 1, 2, 3, 4], Dap::Ec { k: 2 }, LARGE);
    assert_eq!(holders, [1; 5], "another k");
}

/// Durable, and independent of the old configuration: all servers crash when that is gone, and the server that was sent
/// its elements stays away.
#[test]
fn what_was_adopted_survives_a_crash_without_the_old_configuration() {
    for (from, to) in [(Dap::Abd, Dap::Abd), (CODED, CODED), (Dap::Abd, CODED)] {
        for resurrect in [false, true] {
            let (world, actor, c) = filled(from, LARGE);
            let next = with_members(&c, &[0, 1, 5, 3, 4], to);
            move_to(&world, &actor, &next);
            world.settle();
            for number in 0..7 {
                world.crash(number);
            }
            for number in [0, 1, 2, 3, 4, 6] {
                world.restart(number, resurrect);
            }
            assert_holds_everything(&world, &next, LARGE);
        }
    }
}

/// An unreadable element is not adopted: it is sent, which repairs it.
#[test]
fn a_damaged_element_is_sent() {
    let (world, actor, c) = filled(CODED, LARGE);
    let rotten = |header: &Header| matches!(header, Header::Element(element) if !element.deleted);
    let rotted = world.disk(1, |disk| disk.rot(rotten));
    assert_eq!(rotted, OBJECTS + 1, "the version that was deleted, too");
    let next = with_members(&c, &[0, 1, 5, 3, 4], CODED);
    move_to(&world, &actor, &next);
    world.settle();
    assert_eq!(world.adopted(1), 1, "the tombstone");
    // A quorum with it, of which any three are enough.
    world.crash(0);
    assert_holds_everything(&world, &next, LARGE);
    assert!(world.disk(1, |disk| disk.records().all(|record| !record.rotten)));
}

fn tag(number: u64) -> Tag {
    let writer = Writer::default();
    Tag { number, writer }
}

fn request(c: &Arc<Configuration>, access: Access) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: Successors::default(),
        body: Body::Access(vec![(name("k"), access)]),
    }
}

fn copy(text: &str) -> Access {
    Access::Put {
        tag: tag(1),
        element: Element {
            form: Form::Copy,
            deleted: false,
            length: text.len() as u64,
            metadata: value(text).metadata,
            payload: value(text).contiguous(),
            checksum: None,
        },
        write_back: false,
    }
}

/// Asked of one server: exactly the version that is asked for, from an earlier configuration only.
#[test]
fn a_server_adopts_the_version_that_is_asked_for_and_no_other() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let next = successor(&c, 0, 3, Dap::Abd);
    let world = World::new(&c, 1);
    let asked = |c: &Arc<Configuration>, access| match world.ask(0, request(c, access)) {
        Ok(Reply::Access(mut answers)) => answers.remove(0),
        other => panic!("{other:?}"),
    };
    let adopt = |number| Access::Adopt(tag(number));
    assert_eq!(asked(&next, adopt(1)), Answer::Needed, "nothing is there");
    assert_eq!(asked(&c, copy("old")), Answer::Stored);
    assert_eq!(asked(&next, adopt(2)), Answer::Needed, "another version");
    assert_eq!(asked(&next, adopt(1)), Answer::Stored);
    assert_eq!(asked(&next, adopt(1)), Answer::Stored, "it has it");
    assert_eq!(world.adopted(0), 1, "once");
    let fetch = Access::Fetch {
        tag: tag(1),
        payload: true,
    };
    assert!(matches!(asked(&next, fetch), Answer::Fetched(_)));
    assert_eq!(asked(&c, adopt(3)), Answer::Needed, "a source is earlier");
}

/// A handle of the open batch may name another record in the store: what is only being written is not adopted.
#[test]
fn what_is_not_in_the_store_yet_is_not_adopted() {
    let c = configuration(3, Dap::Abd, 1, 8);
    let next = successor(&c, 0, 3, Dap::Abd);
    let mut shard: Shard<&str> = Shard::new(identity(server(0), 1, &c));
    shard.serve();
    let mut disk = crate::world::Disk::default();
    let adopt = |shard: &mut Shard<&'static str>, disk: &crate::world::Disk| {
        let mut adopt = request(&next, Access::Adopt(tag(1)));
        let adopted = shard.adopt(&mut adopt, disk);
        shard.receive(Instant(0), "adopt", adopt);
        adopted
    };
    shard.receive(Instant(0), "put", request(&c, copy("v")));
    assert_eq!(adopt(&mut shard, &disk), 0);
    disk.apply(shard.close());
    let released = shard.release(&disk).replies;
    let needed = Ok(Reply::Access(vec![Answer::Needed]));
    assert_eq!(released[1], ("adopt", needed));
    assert_eq!(adopt(&mut shard, &disk), 1);
    disk.apply(shard.close());
    let stored = Ok(Reply::Access(vec![Answer::Stored]));
    assert_eq!(shard.release(&disk).replies, [("adopt", stored)]);
}
