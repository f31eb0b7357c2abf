//! Writers that die, and servers that are away.

use crate::files::editor::{Editor, bytes};
use crate::world::{Message, World, configuration};
use areo_core::config::Dap;
use areo_core::error::WriteError;
use areo_core::fragment::update::UpdateError;
use areo_core::timing::QUIET;

const KIB: usize = 1 << 10;

/// T15: the new blocks are there, and nothing leads to them.
#[test]
fn a_writer_that_dies_between_creates_and_link_leaves_the_old_content() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let (writer, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let content = bytes(60 * KIB, 1);
        writer.push_alone(&content);
        let more = [&content[..], &bytes(40 * KIB, 2)].concat();
        // Creates need no query; the links do.
        world.hold(Message::is_query);
        let push = world.spawn(writer.writes(&more));
        world.settle();
        assert!(push.borrow().is_none(), "it waits for its links");
        world.lose(Message::is_query);
        world.release();
        assert!(reader.pull() == content, "the old content");
        // The next one is not disturbed by what lies about.
        let next = [&content[..], b"and more"].concat();
        reader.push_alone(&next);
        assert!(Editor::new(&world, &c).pull() == next);
    }
}

/// If the new blocks cannot be written, the file stays as it was.
#[test]
fn a_push_without_a_quorum_changes_nothing() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let (writer, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
    let content = bytes(30 * KIB, 1);
    writer.push_alone(&content);
    world.crash(0);
    world.crash(1);
    let more = [&content[..], &bytes(20 * KIB, 2)].concat();
    let failed = world.run(writer.writes(&more)).unwrap_err();
    assert!(
        matches!(failed, UpdateError::Write(WriteError::NotApplied(_))),
        "{failed:?}"
    );
    world.restart(0, false);
    world.restart(1, false);
    assert!(reader.pull() == content);
    writer.push_alone(&more);
    assert!(reader.pull() == more);
}

/// Reads and writes continue while f servers are down.
#[test]
fn files_survive_the_crash_of_f_servers() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let (writer, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let mut content = bytes(60 * KIB, 1);
        writer.push_alone(&content);
        for crashed in 0..5 {
            world.crash(crashed);
            content[1000 * crashed] ^= 1;
            writer.push_alone(&content);
            assert!(reader.pull() == content);
            assert!(Editor::new(&world, &c).pull() == content);
            world.restart(crashed, false);
            world.settle();
        }
    }
}

/// `[X-3 unconfirmed-cap]`, `[X-4 confirm-write-backs]`: members keep older versions of blocks whose confirmations were
/// lost. Blocks are read many at once; that says it again as reading one by one does, in no round of its own.
#[test]
fn whoever_reads_the_list_confirms_again_what_members_do_not_know() {
    let c = configuration(5, Dap::Ec { k: 3 }, 1, 64);
    let world = World::new(&c, 1);
    let (writer, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
    let mut content = bytes(60 * KIB, 1);
    writer.push_alone(&content);
    reader.pull();
    content[30 * KIB] ^= 1;
    world.hold(Message::is_note);
    let updated = writer.push_alone(&content);
    assert!(updated.written > 0);
    assert!(world.lose(Message::is_note) > 0);
    world.release();
    let blocks = updated.chain.blocks.len();
    let elements = || {
        // An object that was written meanwhile is looked at again after another quiet time.
        world.pass(QUIET * 2);
        world.pass(QUIET * 2);
        (0..5).map(|number| world.disk(number, |disk| disk.elements()))
    };
    assert!(elements().all(|elements| elements > blocks));
    let calls = world.gathers();
    assert_eq!(world.run(reader.walks()).unwrap().blocks.len(), blocks);
    assert_eq!(world.gathers() - calls, 1, "no block is read alone");
    assert!(elements().all(|elements| elements == blocks));
    // It is not sent when all members know.
    world.run(reader.walks()).unwrap();
    assert_eq!(world.in_flight(Message::is_note), 0);
}
