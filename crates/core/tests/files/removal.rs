//! Removing files, and sweeping what removals and writers left.

use crate::files::editor::{Editor, bytes, cut, digest};
use crate::world::{Message, World, configuration};
use areo_core::config::Dap;
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::fragment::file::FileError;
use areo_core::fragment::sweep::FileSweep;
use areo_core::fragment::update::{Chunk, Source, UpdateError};
use areo_core::fragment::{block, identify};
use areo_core::message::Access;
use bytes::Bytes;
use std::collections::BTreeSet;

const KIB: usize = 1 << 10;
const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 3 }];

fn is_gone(editor: &Editor, world: &World) -> bool {
    matches!(world.run(editor.reads()), Err(FileError::NotFound { .. }))
}

/// `[V-1 weak-coverability]`: the removal and an update cover the same version of the genesis block, and both succeed.
/// Whichever has the larger writer, the removal is what is read from then on: it takes the blocks away.
#[test]
fn an_update_at_the_same_time_never_brings_a_removed_file_back() {
    let mut orders = BTreeSet::new();
    for seed in 1..9 {
        let c = configuration(5, DAPS[seed as usize % 2], 1, 64);
        let world = World::new(&c, seed);
        let (editor, late) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let content = bytes(60 * KIB, 1);
        editor.push_alone(&content);
        late.pull();
        orders.insert(editor.actor().client().id() < late.actor().client().id());
        // So much that the genesis block gets another hint.
        let more = [&content[..], &bytes(80 * KIB, 2)].concat();
        let is_genesis_put = |m: &Message| m.is_of_genesis() && m.is_put() && !m.is_reply();
        let (push, puts) = world.begin(is_genesis_put, late.writes(&more));
        assert_eq!(puts.len(), 5, "it writes the genesis block");
        world.run(editor.removes()).expect("it is there");
        world.put_back(puts);
        world.settle();
        let updated = push.borrow_mut().take().expect("it has ended");
        assert!(updated.expect("a quorum").conflicts.is_empty(), "both");
        assert!(is_gone(&Editor::new(&world, &c), &world), "and not broken");
        editor.sweep(true);
        assert_eq!(editor.sweep(false), FileSweep::default());
        let again = Editor::new(&world, &c);
        again.push_alone(b"again");
        assert_eq!(Editor::new(&world, &c).pull(), b"again");
    }
    assert_eq!(orders.len(), 2, "each of them was the larger writer once");
}

/// A removal that dies after its first step has removed the file, and left its blocks.
#[test]
fn what_an_interrupted_removal_leaves_is_swept_and_takes_no_edits() {
    for dap in DAPS {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let (editor, late) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let mut content = bytes(60 * KIB, 1);
        let blocks = editor.push_alone(&content).chain.data().len() as u64;
        late.pull();
        let there = editor.sweep(true);
        assert_eq!((there.live.files, there.live.blocks), (1, blocks));
        assert_eq!(there.live.bytes, content.len() as u64);
        assert_eq!(there.removed.blocks, 0);
        let is_block_put = |m: &Message| m.is_of_block() && m.is_put();
        world.hold(is_block_put);
        let removal = world.spawn(editor.removes());
        world.settle();
        world.lose(is_block_put);
        world.release();
        drop(removal);
        let left = FileSweep {
            removed: there.live,
            ..FileSweep::default()
        };
        assert_eq!(editor.sweep(false), left, "nothing goes");
        // A client that knows the old blocks can still write them, and learns that no file has them.
        content[30 * KIB] ^= 1;
        let updated = late.push(&content);
        assert_eq!(updated.written, 0);
        assert!(!updated.conflicts.is_empty());
        assert!(updated.conflicts.iter().all(|conflict| conflict.removed));
        assert_eq!(editor.sweep(true).removed.blocks, blocks);
        assert_eq!(editor.sweep(false), FileSweep::default(), "they are gone");
        // Of another file of the same name they are no blocks either.
        let again = Editor::new(&world, &c);
        again.push_alone(&content);
        assert_eq!(editor.sweep(true).live.blocks, blocks);
        assert!(Editor::new(&world, &c).pull() == content);
        assert_eq!(late.push(&content[1..]).written, 0, "its base is gone");
        assert!(Editor::new(&world, &c).pull() == content);
    }
}

/// A writer creates blocks that it does not come to link, before the file is removed or after: while the file is there they
/// stay, then they go.
#[test]
fn blocks_of_dead_and_slow_writers_go_with_their_file() {
    for is_slow in [false, true] {
        let c = configuration(5, Dap::Ec { k: 3 }, 1, 64);
        let world = World::new(&c, 1);
        let (editor, writer) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let content = bytes(60 * KIB, 1);
        let blocks = editor.push_alone(&content).chain.data().len() as u64;
        writer.pull();
        let more = [&content[..], &bytes(20 * KIB, 2)].concat();
        let stays: fn(&Message) -> bool = match is_slow {
            true => |m| m.is_of_block() && m.is_put() && !m.is_reply(),
            false => Message::is_query,
        };
        let (push, stopped) = world.begin(stays, writer.writes(&more));
        let there = editor.sweep(true);
        assert_eq!(there.live.blocks > blocks, !is_slow);
        assert_eq!(there.removed.blocks, 0, "they may be linked yet");
        assert!(editor.pull() == content);
        world.run(editor.removes()).expect("it is there");
        if is_slow {
            world.put_back(stopped);
            world.settle();
            let updated = push.borrow_mut().take().expect("it has ended");
            let conflicts = updated.expect("a quorum").conflicts;
            assert!(!conflicts.is_empty());
            assert!(conflicts.iter().all(|conflict| conflict.removed));
        }
        let left = editor.sweep(true);
        // One that comes to its end has removed them itself.
        assert_eq!(left.removed.blocks > 0, !is_slow);
        assert_eq!(left.live.blocks, 0);
        assert_eq!(editor.sweep(false), FileSweep::default());
    }
}

/// Why blocks that nothing leads to stay while their file is there: the put that links them may be at one server, which
/// did not answer the sweep. A sweep that trusts what it sees breaks the file.
#[test]
fn blocks_that_nothing_seems_to_lead_to_may_be_linked_already() {
    for trusts in [false, true] {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&c, 1);
        let (writer, sweeper) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let content = bytes(60 * KIB, 1);
        let old = writer.push_alone(&content).chain;
        let more = [&content[..], &bytes(20 * KIB, 2)].concat();
        // The creates go on to their end. The links come to one server, and their writer dies.
        world.hold(Message::is_query);
        let push = world.spawn(writer.writes(&more));
        world.settle();
        world.release();
        world.hold(|m| m.is_put() && !m.at(&[0]));
        world.settle();
        world.lose(|m| m.is_put() && !m.at(&[0]));
        world.release();
        assert!(push.borrow().is_none());
        drop(push);
        // The sweep's looks are answered by the others, as often as it looks.
        world.hold(|m| m.at(&[0]));
        let walked = world.run(sweeper.walks()).unwrap();
        assert_eq!(walked.blocks.len(), old.blocks.len(), "the old list");
        assert_eq!(sweeper.sweep(true).removed.blocks, 0);
        let reached: Vec<_> = walked.data().iter().map(|block| block.id).collect();
        let unreached: Vec<_> = (1..100)
            .map(|counter| areo_core::tag::Writer {
                client: writer.actor().client().id(),
                counter,
            })
            .filter(|id| !reached.contains(&Some(*id)))
            .collect();
        for id in unreached.into_iter().filter(|_| trusts) {
            let (client, c) = (sweeper.actor().client(), c.clone());
            world.run(async move {
                let (name, tombstone) = (block::name(id), Value::tombstone(Bytes::new()));
                let found = client.domain(&c).stat(&name).await.unwrap();
                if !found.tag.is_initial() {
                    let tag = found.tag.next(client.next_writer()).unwrap();
                    let version = (tag, &tombstone);
                    client.domain(&c).put_version(&name, version).await.unwrap();
                }
            });
        }
        world.lose(|m| m.at(&[0]));
        world.release();
        world.crash(1);
        let read = world.run(Editor::new(&world, &c).reads());
        match trusts {
            true => assert!(matches!(read, Err(FileError::Broken { .. })), "{read:?}"),
            false => assert!(read.unwrap() == more, "the write is finished"),
        }
    }
}

/// The number of blocks that exist, and the number that the file consists of.
fn blocks(editor: &Editor) -> (u64, usize) {
    editor.pull();
    let chain = editor.base.borrow().clone().expect("it was read");
    (editor.sweep(false).live.blocks, chain.data().len())
}

/// A writer that loses removes the blocks that it wanted to link; what others linked is left alone.
#[test]
fn what_a_loser_created_is_removed() {
    for dap in DAPS {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let (writer, loser) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let content = bytes(60 * KIB, 1);
        writer.push_alone(&content);
        loser.pull();
        let middle = 30 * KIB;
        let (mut edited, more) = (content.clone(), bytes(30 * KIB, 2));
        edited[middle] ^= 1;
        writer.push_alone(&edited);
        // One more block somewhere else is linked.
        let split = [
            &bytes(9 * KIB, 3),
            &content[..middle],
            &more,
            &content[middle..],
        ];
        let updated = loser.push(&split.concat());
        assert_eq!(updated.conflicts.len(), 1);
        assert!(updated.conflicts[0].lost > 2, "{:?}", updated.conflicts);
        assert!(updated.written > 0, "the rest was written");
        let (there, in_file) = blocks(&Editor::new(&world, &c));
        assert_eq!(there, in_file as u64, "{dap:?}");
        // It goes on from there.
        let whole = loser.pull();
        loser.push_alone(&[&whole[..], &more].concat());
    }
}

/// Chunks of which the last one is not there any more when it is to be sent.
struct IncompleteChunks(Vec<Bytes>);

impl Source for IncompleteChunks {
    type Error = &'static str;

    async fn load(&self, chunk: usize) -> Result<Bytes, Self::Error> {
        match chunk + 1 == self.0.len() {
            true => Err("the file has changed"),
            false => Ok(self.0[chunk].clone()),
        }
    }
}

/// Chunks of an update that is given up when all of them are sent.
struct GivenUp(Vec<Bytes>);

impl Source for GivenUp {
    type Error = &'static str;

    async fn load(&self, chunk: usize) -> Result<Bytes, Self::Error> {
        Ok(self.0[chunk].clone())
    }

    fn before_links(&self) -> Result<(), Self::Error> {
        Err("given up")
    }
}

/// An update that ends before its links removes what it has created.
#[test]
fn what_an_update_created_goes_with_it() {
    for dap in DAPS {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let editor = Editor::new(&world, &c);
        let content = bytes(60 * KIB, 1);
        editor.push_alone(&content);
        let before = blocks(&editor);
        assert_eq!(before.0, before.1 as u64);
        let more = [&content[..], &bytes(40 * KIB, 2)].concat();

        // A reader of the local file finds it changed.
        let pieces = cut(&more);
        let chunks: Vec<Chunk> = pieces
            .iter()
            .map(|piece| Chunk {
                digest: digest(piece),
                length: piece.len() as u64,
            })
            .collect();
        let base = editor.base.borrow().clone().expect("it was read");
        let domain = editor.actor().client().domain(&c);
        let [failed, given_up] = world.run(async move {
            let digests: Vec<_> = chunks.iter().map(|chunk| chunk.digest).collect();
            let updates = identify::updates(&base.digests(), &digests);
            let what = (&chunks[..], &updates[..]);
            let file = block::genesis("a file").expect("a short name");
            let file = domain.file(&file);
            let incomplete = IncompleteChunks(pieces.clone());
            let failed = file.update(&base, what, (&incomplete, None)).await;
            let given_up = file.update(&base, what, (&GivenUp(pieces), None)).await;
            [failed, given_up]
        });
        assert_eq!(failed, Err(UpdateError::Source("the file has changed")));
        assert_eq!(given_up, Err(UpdateError::Source("given up")));
        assert_eq!(blocks(&editor), before, "{dap:?}");

        // There is no room for all of it.
        for server in 2..5 {
            world.disk(server, |disk| disk.is_full = true);
        }
        let failed = world.run(editor.writes(&more)).unwrap_err();
        assert!(matches!(
            failed,
            UpdateError::Write(WriteError::NotApplied(_))
        ));
        assert_eq!(blocks(&editor), before, "{dap:?}");
    }
}

/// A link that may have been written leads somewhere.
#[test]
fn what_may_be_linked_is_left_alone() {
    let c = configuration(5, Dap::Abd, 1, 64);
    let world = World::new(&c, 1);
    let editor = Editor::new(&world, &c);
    let content = bytes(60 * KIB, 1);
    editor.push_alone(&content);
    let more = [&content[..], &bytes(40 * KIB, 2)].concat();
    // The creates go through, the link gets to one server, and no client knows.
    let is_link =
        |m: &Message| matches!(m.access(), Some(Access::Put { tag, .. }) if tag.number == 2);
    world.hold(move |m| is_link(m) && (m.is_reply() || !m.at(&[0])));
    let updated = world.run(editor.writes(&more)).expect("all was created");
    assert!(!updated.failed.is_empty(), "its outcome is unknown");
    world.lose(is_link);
    world.release();
    world.crash(1);
    world.crash(2);
    assert!(Editor::new(&world, &c).pull() == more);
}
