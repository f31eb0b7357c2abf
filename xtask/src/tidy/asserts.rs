//! Assertions per thousand lines of shipped code: the least that each crate has, which only rises.

use super::code::test_files;
use crate::findings::Finding;
use crate::source::find_word;
use crate::tree::Tree;

/// Assertions per thousand lines of code, without comments and tests.
const LEAST: &[(&str, usize)] = &[
    ("crates/client/src/", 2),
    ("crates/core/src/", 20),
    ("crates/net/src/", 5),
    ("crates/node/src/", 21),
    ("crates/store/src/", 24),
];

/// Crates with fewer assertions than they had.
pub(crate) fn too_few(tree: &Tree) -> Vec<Finding> {
    let of = |(folder, least): &(&str, usize)| {
        let (lines, asserts) = count(tree, folder);
        let found = (1000 * asserts).checked_div(lines)?;
        (found < *least).then(|| {
            let message = format!(
                "{asserts} assertions in {lines} lines of code, {found} of a thousand and not {least}: \
                 state what the new code relies on"
            );
            Finding::new(folder.trim_end_matches('/'), 0, message)
        })
    };
    LEAST.iter().filter_map(of).collect()
}

fn count(tree: &Tree, folder: &str) -> (usize, usize) {
    let tests = test_files(tree);
    let is_shipped = |path: &str| path.starts_with(folder) && !tests.contains(path);
    let (mut lines, mut asserts) = (0, 0);
    for (_, _, source) in tree.sources().filter(|(path, ..)| is_shipped(path)) {
        let shipped = &source.shipped;
        lines += shipped
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count();
        let words = ["assert", "assert_eq", "assert_ne"];
        let is_macro = |at: &usize, word: &str| shipped[at + word.len()..].starts_with('!');
        for word in words {
            let found = find_word(shipped, word).into_iter();
            asserts += found.filter(|at| is_macro(at, word)).count();
        }
    }
    (lines, asserts)
}
