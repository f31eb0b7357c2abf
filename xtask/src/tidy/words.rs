//! Words that `docs/style.md` forbids, in documents and in comments. Their number may only fall.

use crate::findings::Finding;
use crate::source::find_word;
use crate::tree::{Tree, has_extension};
use std::cmp::Ordering;

/// The words, and how often each is there.
const WORDS: &[(&str, usize)] = &[
    ("whoever", 32),
    ("whatever", 35),
    ("nobody", 35),
    ("somebody", 12),
    ("everybody", 6),
    ("anybody", 6),
    ("be it", 0),
    ("for the sake", 0),
    ("lets go", 0),
    ("let go", 10),
    ("told", 41),
    ("says of", 5),
];
/// Pages that speak about these words.
const ABOUT: [&str; 2] = ["docs/style.md", "xtask/src/tidy/words.rs"];

/// A word is there more often than before; or less often, and its number is to follow.
pub(crate) fn forbidden(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (word, most) in WORDS {
        let times = |(path, text): (&str, &str)| -> usize {
            let lines = text.lines().filter(|line| is_prose(path, line));
            lines
                .map(|line| find_word(&line.to_lowercase(), word).len())
                .sum()
        };
        let found: usize = tree.texts().map(times).sum();
        let message = match found.cmp(most) {
            Ordering::Equal => continue,
            Ordering::Greater => "docs/style.md has what to write instead",
            // The tree of a test does not have them all.
            Ordering::Less if !tree.exists(ABOUT[1]) => continue,
            Ordering::Less => "lower its number",
        };
        let message = format!("'{word}' is there {found} times, not {most}: {message}");
        findings.push(Finding::new(ABOUT[1], 1, message));
    }
    findings
}

/// True if the line is for people: in a document, or a comment.
fn is_prose(path: &str, line: &str) -> bool {
    let is_comment = has_extension(path, "rs") && line.trim_start().starts_with("//");
    !ABOUT.contains(&path) && (is_comment || has_extension(path, "md"))
}
