//! The costs of operations on files: rounds, messages, bytes (better than the papers, who read block after block).

use crate::files::editor::{Editor, bytes};
use crate::world::{World, configuration};
use areo_core::config::Dap;

/// Bytes of a file with about a thousand blocks.
const LARGE: usize = 6 << 20;

fn world(dap: Dap) -> (World, Editor, Editor) {
    let c = configuration(5, dap, 1, 64);
    let world = World::new(&c, 1);
    (
        world.clone(),
        Editor::new(&world, &c),
        Editor::new(&world, &c),
    )
}

/// The read takes at most three message exchanges with each server, and no byte of data.
#[test]
fn an_unchanged_file_of_a_thousand_blocks_is_read_again_in_one_exchange() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let (world, editor, reader) = world(dap);
        let updated = editor.push_alone(&bytes(LARGE, 1));
        let blocks = updated.chain.data().len();
        assert!((800..1024).contains(&blocks), "{blocks} blocks");
        for who in [&editor, &reader] {
            let known = world.run(who.walks()).unwrap();
            *who.base.borrow_mut() = Some(known.clone());
            world.settle();
            let (calls, sent) = (world.gathers(), world.element_bytes());
            assert_eq!(world.run(who.walks()).unwrap(), known);
            assert_eq!(world.gathers() - calls, 1, "one message to each server");
            assert_eq!(world.element_bytes(), sent, "no data");
        }
    }
}

/// A client that knows nothing of a file reads its list in three exchanges: the genesis block, and all blocks that
/// its hint names.
#[test]
fn an_unknown_file_is_read_along_the_hint_of_its_genesis_block() {
    let (world, editor, reader) = world(Dap::Ec { k: 3 });
    editor.push_alone(&bytes(LARGE, 1));
    let calls = world.gathers();
    let chain = world.run(reader.walks()).unwrap();
    assert!(chain.data().len() > 800);
    assert_eq!(chain.hinted, chain.data().len());
    assert!(world.gathers() - calls <= 3, "{}", world.gathers() - calls);
}

/// A hint that leaves out much is written anew, beside what is written anyway.
#[test]
fn a_hint_keeps_up_with_the_file() {
    let (world, editor, _) = world(Dap::Abd);
    let all = bytes(600 << 10, 1);
    for end in (1..=30).map(|part| part * (20 << 10)) {
        editor.push_alone(&all[..end]);
        let reader = Editor::new(&world, &editor.actor().c);
        let calls = world.gathers();
        let chain = world.run(reader.walks()).unwrap();
        let missing = chain.data().len() - chain.hinted.min(chain.data().len());
        assert!(missing <= 8 + chain.data().len() / 8, "{missing} missing");
        assert!(world.gathers() - calls <= 2 + missing);
    }
}

/// An edit of one byte sends the chunks that changed, and takes at most five rounds; these go on side by side.
#[test]
fn an_edit_of_one_byte_sends_at_most_two_blocks_in_three_rounds() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let (world, editor, _) = world(dap);
        let mut content = bytes(400 << 10, 1);
        editor.push_alone(&content);
        for place in (0..content.len()).step_by(37_777) {
            content[place] ^= 1;
            let calls = world.gathers();
            let updated = editor.push_alone(&content);
            assert!((1..=2).contains(&updated.written), "{}", updated.written);
            assert!(updated.written_bytes <= 2 * (8 << 10));
            let calls = world.gathers() - calls;
            assert!(calls <= 5, "{calls} quorum calls");
        }
    }
}
