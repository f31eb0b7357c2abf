//! One editor: after every edit the file has the new content, and only what changed is written.

use crate::files::editor::{Editor, bytes, cut};
use crate::world::{World, configuration};
use areo_core::config::Dap;
use areo_core::fragment::file::FileError;
use areo_core::tag::Tag;

const KIB: usize = 1 << 10;

fn edits() -> Vec<(&'static str, Vec<u8>)> {
    let base = bytes(200 * KIB, 1);
    let moved = [&base[150 * KIB..], &base[..150 * KIB]].concat();
    let inserted = [&b"one line more\n"[..], &base].concat();
    let in_the_middle = [&base[..100 * KIB], b"xyz", &base[100 * KIB..]].concat();
    let mut one_byte = base.clone();
    one_byte[90 * KIB] ^= 1;
    vec![
        ("a new file", base.clone()),
        ("nothing", base.clone()),
        ("one byte", one_byte),
        ("back", base.clone()),
        ("an insertion in front", inserted),
        ("an insertion in the middle", in_the_middle),
        ("moved parts", moved),
        ("cut off", base[..50 * KIB].to_vec()),
        ("grown", [&base[..50 * KIB], &bytes(80 * KIB, 2)].concat()),
        ("emptied", Vec::new()),
        ("one byte in all", vec![1]),
        ("all different", bytes(120 * KIB, 3)),
        ("all alike", vec![0; 100 * KIB]),
        ("alike and longer", vec![0; 130 * KIB]),
    ]
}

#[test]
fn after_every_edit_the_file_is_the_content_and_no_block_is_unlinked() {
    for dap in [Dap::Abd, Dap::Ec { k: 3 }] {
        let c = configuration(5, dap, 1, 64);
        let world = World::new(&c, 1);
        let (editor, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
        let mut old: Vec<u8> = Vec::new();
        let mut blocks = Vec::new();
        for (what, content) in edits() {
            let updated = editor.push_alone(&content);
            assert!(
                reader.pull() == content,
                "{what}: the reader who knows an older list"
            );
            let newcomer = Editor::new(&world, &c);
            assert!(newcomer.pull() == content, "{what}: one who knows nothing");
            let before = cut(&old);
            let unknown = cut(&content);
            let unknown = unknown
                .iter()
                .filter(|piece| !before.contains(piece))
                .count();
            let most = match what {
                "nothing" => 0,
                "one byte" | "back" => 2,
                "an insertion in front" | "an insertion in the middle" => 6,
                _ => usize::MAX,
            };
            assert!(
                updated.written <= most,
                "{what}: {} written",
                updated.written
            );
            // What is written beside new chunks: blocks that become empty or get a link.
            assert!(updated.written >= unknown, "{what}");
            let now: Vec<_> = updated.chain.data().iter().map(|block| block.id).collect();
            let stay = now.iter().filter(|id| blocks.contains(*id)).count();
            assert_eq!(stay, blocks.len(), "{what}: [B-1 never-unlinked]");
            (old, blocks) = (content, now);
        }
    }
}

#[test]
fn an_empty_file_is_a_file() {
    let c = configuration(3, Dap::Abd, 1, 0);
    let world = World::new(&c, 1);
    let (editor, reader) = (Editor::new(&world, &c), Editor::new(&world, &c));
    let missing = world.run(reader.reads());
    assert!(matches!(
        missing,
        Err(FileError::NotFound {
            version: Tag::INITIAL
        })
    ));
    editor.push_alone(&[]);
    assert_eq!(reader.pull(), b"");
    editor.push_alone(b"not empty");
    assert_eq!(reader.pull(), b"not empty");
}

#[test]
fn a_removed_file_is_gone_and_its_name_free() {
    let c = configuration(5, Dap::Ec { k: 3 }, 1, 64);
    let world = World::new(&c, 1);
    let (editor, late) = (Editor::new(&world, &c), Editor::new(&world, &c));
    let content = bytes(60 * KIB, 1);
    editor.push_alone(&content);
    assert!(late.pull() == content);
    let blocks = late.base.borrow().clone().unwrap();
    world.run(editor.removes()).expect("it is there");
    assert!(matches!(
        world.run(late.reads()),
        Err(FileError::NotFound { .. })
    ));
    assert!(matches!(
        world.run(editor.removes()),
        Err(FileError::NotFound { .. })
    ));
    // A client that goes on with its old list gets an error.
    let mut edited = content.clone();
    edited[0] ^= 1;
    let updated = late.push(&edited);
    assert_eq!((updated.written, updated.conflicts.len()), (0, 1));
    assert!(updated.conflicts[0].removed);
    for block in blocks.data() {
        let domain = late.actor().client().domain(&c);
        let name = areo_core::fragment::block::name(block.id.unwrap());
        let found = world.run(async move { domain.stat(&name).await }).unwrap();
        assert!(found.value.unwrap().deleted, "no block is left behind");
    }
    // The same name again is another file.
    let again = Editor::new(&world, &c);
    again.push_alone(b"again");
    assert_eq!(Editor::new(&world, &c).pull(), b"again");
}
