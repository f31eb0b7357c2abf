//! Full disks: what a refused put leaves keeps no reader from the object (`algorithms.md` `[EC-11]`, `[X-1]`).

use crate::world::{Actor, World, configuration};
use areo_core::config::Dap;
use areo_core::tag::Tag;

const LONG: &str = "a value that is longer than a copy may be";
/// Each kind with the members whose disks are full: more than may fail.
const KINDS: [(Dap, &[usize]); 2] = [(Dap::Ec { k: 3 }, &[3, 4]), (Dap::Abd, &[2, 3, 4])];

fn world(dap: Dap) -> (World, Actor, Actor) {
    let c = configuration(5, dap, 1, 0);
    let world = World::new(&c, 1);
    (world.clone(), world.actor(&c), world.actor(&c))
}

/// A version of which k members hold a fragment: the disks of the others became full after the writer had asked them.
/// Returns the version before it, and it.
fn leave_a_version(world: &World, writer: &Actor, full: &[usize]) -> (Tag, Tag) {
    let old = writer.put("k", LONG);
    world.settle();
    world.hold(|m| m.is_put() && !m.is_reply());
    let write = world.spawn(writer.write("k", "another value, as long as the first one was"));
    world.settle();
    for number in full {
        world.disk(*number, |disk| disk.is_full = true);
    }
    world.release();
    world.settle();
    let refused = write.borrow_mut().take().expect("it has ended");
    assert!(refused.is_err(), "{refused:?}");
    let left = world.held(0, "k").max_tag();
    let holds = |number: &usize| world.held(*number, "k").stores(left);
    assert!((0..5).all(|number| holds(&number) != full.contains(&number)));
    (old, left)
}

/// Reads, with the answers of one member late: all that are sent before it has read are lost.
fn read_without(world: &World, reader: &Actor, absent: usize) -> Tag {
    world.hold(move |m| m.at(&[absent]));
    let (tag, _) = reader.get("k");
    world.lose(move |m| m.at(&[absent]));
    world.release();
    tag
}

/// A disk that is full has some room for write-backs. So every read succeeds, and none returns less than an earlier one.
#[test]
fn a_write_back_has_room_on_a_full_disk() {
    for ((dap, full), first) in KINDS
        .into_iter()
        .flat_map(|kind| (0..5).map(move |n| (kind, n)))
    {
        let (world, writer, reader) = world(dap);
        let (old, left) = leave_a_version(&world, &writer, full);
        let mut newest = old;
        for absent in (0..5).map(|number| (first + number) % 5) {
            let tag = read_without(&world, &reader, absent);
            assert!(tag >= newest, "{tag} after {newest} without {absent}");
            newest = tag;
        }
        assert_eq!(newest, left, "a reader that could read it completed it");
    }
}

/// Where not even a write-back has room, every member's answer shows that the version is not complete, and the one before
/// it is returned.
#[test]
fn a_version_that_cannot_be_completed_is_passed_over() {
    for (dap, full) in KINDS {
        let (world, writer, reader) = world(dap);
        let (old, left) = leave_a_version(&world, &writer, full);
        for number in full {
            world.disk(*number, |disk| disk.is_stuffed = true);
        }
        for _ in 0..3 {
            assert_eq!(reader.get("k"), (old, Some(LONG.into())));
        }
        // Without the answer of a holder of the version before it, the version may be complete there.
        world.hold(|m| m.at(&[4]));
        let read = world.run(reader.read("k"));
        assert!(read.is_err(), "{read:?}");
        world.release();
        for number in full {
            world.disk(*number, |disk| {
                (disk.is_full, disk.is_stuffed) = (false, false);
            });
        }
        assert_eq!(reader.get("k").0, left);
    }
}
