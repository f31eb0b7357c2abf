//! Several editors at once: edits of different parts all prevail, of the same block one, and nothing is torn.

use crate::files::editor::{Editor, bytes, cut};
use crate::files::reconfigured;
use crate::world::{World, configuration};
use areo_core::config::Dap;
use bytes::Bytes;

const KIB: usize = 1 << 10;
const DAPS: [Dap; 2] = [Dap::Abd, Dap::Ec { k: 3 }];

/// A byte in the middle of chunk `number`, so that no other chunk changes (nearly always; the test looks).
fn within(content: &[u8], number: usize) -> usize {
    let chunks = cut(content);
    let start: usize = chunks[..number].iter().map(Bytes::len).sum();
    start + chunks[number].len() / 3
}

#[test]
fn ten_writers_of_ten_parts_all_prevail() {
    for dap in DAPS {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let content = bytes(200 * KIB, 1);
        Editor::new(&world, &c).push_alone(&content);
        let writers: Vec<Editor> = (0..10).map(|_| Editor::new(&world, &c)).collect();
        assert!(writers.iter().all(|writer| writer.pull() == content));
        let mut expected = content.clone();
        let mut pushes = Vec::new();
        for (number, writer) in writers.iter().enumerate() {
            let mut edited = content.clone();
            let place = within(&content, 3 * number);
            edited[place] ^= 1;
            expected[place] ^= 1;
            pushes.push(world.spawn(writer.writes(&edited)));
        }
        world.settle();
        for push in pushes {
            let updated = push
                .borrow_mut()
                .take()
                .expect("it has ended")
                .expect("a quorum");
            assert!(updated.conflicts.is_empty(), "{:?}", updated.conflicts);
        }
        for reader in [&Editor::new(&world, &c), &writers[0]] {
            assert!(reader.pull() == expected, "all edits are there");
        }
        // The next edits of one who has never read the others' do not undo those.
        let (mut edited, place) = (content.clone(), within(&content, 3));
        edited[place] ^= 3;
        expected[place] ^= 2;
        writers[1].push_alone(&edited);
        assert!(Editor::new(&world, &c).pull() == expected);
    }
}

#[test]
fn of_two_writers_of_one_block_one_prevails_and_the_other_is_told() {
    for dap in DAPS {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let content = bytes(60 * KIB, 1);
        let (a, b) = (Editor::new(&world, &c), Editor::new(&world, &c));
        a.push_alone(&content);
        b.pull();
        let place = within(&content, 4);
        let edited = |by: u8| {
            let mut edited = content.clone();
            edited[place] = by;
            edited
        };
        a.push_alone(&edited(1));
        let lost = b.push(&edited(2));
        assert_eq!((lost.written, lost.conflicts.len()), (0, 1));
        assert_eq!(
            lost.success_ratio().to_bits(),
            0_f64.to_bits(),
            "[B-7 success-ratio]"
        );
        assert!(!lost.conflicts[0].removed);
        assert!(a.pull() == edited(1));
        // A second try is refused again: b's content is not based on the stored one. After reading it is ([B-6 reread-after-loss]).
        assert_eq!(b.push(&edited(2)).conflicts.len(), 1);
        assert!(b.pull() == edited(1));
        b.push_alone(&edited(2));
        assert!(a.pull() == edited(2));
    }
}

/// Oracle O5, T14: concurrent splits of one block, and of its neighbour, which is emptied. Whichever edit prevails, the list is
/// whole, and every block is one that a writer wrote.
#[test]
fn concurrent_splits_leave_a_connected_list() {
    for seed in 1..60 {
        let c = configuration(5, DAPS[seed as usize % 2], 1, 64);
        let world = World::new(&c, seed);
        let content = bytes(40 * KIB, seed);
        let writers: Vec<Editor> = (0..4).map(|_| Editor::new(&world, &c)).collect();
        writers[0].push_alone(&content);
        for writer in &writers {
            writer.pull();
        }
        let cuts = cut(&content);
        let before: usize = cuts[..3].iter().map(Bytes::len).sum();
        let split = |seed| {
            let more = bytes(20 * KIB, seed);
            [&content[..before + 100], &more, &content[before + 100..]].concat()
        };
        let without: Vec<u8> =
            [&content[..before], &content[before + 2 * cuts[3].len()..]].concat();
        let news = [split(100 + seed), split(200 + seed), without];
        world.random(crate::world::Chaos {
            lose: 0,
            duplicate: 20,
            pass_time: 5,
        });
        let pushes: Vec<_> = writers
            .iter()
            .zip(&news)
            .map(|(w, new)| world.spawn(w.writes(new)))
            .collect();
        let reader = Editor::new(&world, &c);
        for _ in 0..3 {
            // Every block that is read is whole: `pull` looks at digests; the end is reached over links.
            reader.pull();
        }
        world.settle();
        assert!(pushes.iter().all(|push| push.borrow().is_some()));
        let end = reader.pull();
        let known: Vec<_> = news
            .iter()
            .chain([&content])
            .flat_map(|new| cut(new))
            .collect();
        assert!(
            cut(&end)
                .iter()
                .filter(|piece| known.contains(piece))
                .count()
                >= 3
        );
        let chain = reader.base.borrow().clone().unwrap();
        let first: Vec<_> = writers[3].base.borrow().clone().unwrap().blocks;
        let stay = first
            .iter()
            .filter(|old| chain.blocks.iter().any(|now| now.id == old.id));
        assert_eq!(
            stay.count(),
            first.len(),
            "[B-1 never-unlinked]: no block was dropped"
        );
    }
}

#[test]
fn a_file_moves_with_its_domain_while_it_is_edited() {
    for (from, to) in DAPS.into_iter().zip([DAPS[1], DAPS[0]]) {
        let c = configuration(5, from, 1, 64);
        let world = World::of(&c, 10, 1);
        let (editor, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let mut content = bytes(100 * KIB, 1);
        editor.push_alone(&content);
        assert!(reader.pull() == content);
        content[50 * KIB] ^= 1;
        let push = world.spawn(editor.writes(&content));
        let moving = reconfigured(&world, editor.actor(), 5, to);
        world.settle();
        assert!(moving.borrow().is_some());
        let updated = push
            .borrow_mut()
            .take()
            .expect("it has ended")
            .expect("a quorum");
        assert!(updated.conflicts.is_empty());
        assert!(reader.pull() == content, "who knew the old configuration");
        content[10] ^= 1;
        editor.push_alone(&content);
        assert!(Editor::new(&world, &c).pull() == content);
    }
}
