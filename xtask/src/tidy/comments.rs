//! Doc comments that begin without a subject, or are too short to explain anything. The number of each kind may only fall.

use crate::findings::Finding;
use crate::tree::Tree;
use std::cmp::Ordering;

/// A kind of bad doc comment.
struct Measure {
    /// The end of a sentence about doc comments of this kind.
    what: &'static str,
    is_bad: fn(&str) -> bool,
    /// The number of such comments today.
    most: usize,
}

const MEASURES: &[Measure] = &[
    Measure {
        what: "begins with a word such as 'what', 'of' or 'when'",
        is_bad: is_elliptic,
        most: 0,
    },
    Measure {
        what: "begins with 'the same'",
        is_bad: |comment| comment.to_lowercase().starts_with("the same"),
        most: 0,
    },
    Measure {
        what: "has three words or fewer",
        is_bad: |comment| comment.split_whitespace().count() <= 3,
        most: 77,
    },
];
/// First words after which a comment does not name its item.
const OPENINGS: &[&str] = &[
    "what", "how", "whether", "where", "which", "when", "who", "whom", "whose", "of", "as", "by",
    "from", "to", "at", "so", "and", "with",
];
/// The file with the numbers.
const ABOUT: &str = "xtask/src/tidy/comments.rs";

/// More doc comments are of a kind than before; or fewer, and the number is to follow.
pub(crate) fn worse(tree: &Tree) -> Vec<Finding> {
    let sources = tree.rust().filter(|(path, _)| !is_help(path));
    let comments: Vec<(&str, usize, String)> = sources
        .flat_map(|(path, text)| doc_comments(text).map(move |(line, it)| (path, line, it)))
        .collect();
    let mut findings = Vec::new();
    for Measure { what, is_bad, most } in MEASURES {
        let bad = comments.iter().filter(|(.., comment)| is_bad(comment));
        let found = bad.clone().count();
        match found.cmp(most) {
            Ordering::Greater => findings.extend(bad.map(|(path, line, _)| {
                let message = format!(
                    "the comment {what}, as {found} do where {most} may: say more in a new one (docs/style.md)"
                );
                Finding::new(path, *line, message)
            })),
            // The tree of a test does not have them all.
            Ordering::Less if tree.exists(ABOUT) => {
                let message = format!(
                    "{found} doc comments, not {most}, each of which {what}: lower `most` to {found}"
                );
                findings.push(Finding::new(ABOUT, 1, message));
            }
            Ordering::Less | Ordering::Equal => {}
        }
    }
    findings
}

/// True if the doc comments of the file are the help of a command line, which has its own style.
fn is_help(path: &str) -> bool {
    path.contains("/src/args")
}

/// The doc comments of a file: the number of the first line, and the text in one line.
fn doc_comments(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let comment = line.trim().strip_prefix("///");
        let comment = comment.filter(|comment| !comment.starts_with('/'));
        match (comment, comments.last_mut().filter(|_| is_open)) {
            (Some(more), Some((_, known))) => {
                known.push(' ');
                known.push_str(more.trim());
            }
            (Some(first), None) => comments.push((at + 1, first.trim().to_owned())),
            (None, _) => {}
        }
        is_open = comment.is_some();
    }
    comments.into_iter()
}

fn is_elliptic(comment: &str) -> bool {
    let first = comment.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let first = first.map(str::to_lowercase).next();
    first.is_some_and(|first| OPENINGS.contains(&first.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_without_a_subject_is_elliptic() {
        for bad in [
            "What is kept.",
            "of the object",
            "Whether it is so.",
            "So many.",
        ] {
            assert!(is_elliptic(bad), "{bad}");
        }
        for good in [
            "Whatever",
            "The tag.",
            "`what`",
            "Offers one.",
            "",
            "True if so.",
        ] {
            assert!(!is_elliptic(good), "{good}");
        }
    }

    #[test]
    fn lines_of_one_comment_are_joined() {
        let text = "/// One\n    /// and two.\nfn f() {}\n//// None.\n/// Three.\n";
        let found: Vec<_> = doc_comments(text).collect();
        assert_eq!(found, [(1, "One and two.".into()), (5, "Three.".into())]);
    }

    #[test]
    fn help_is_not_measured_and_others_are_found_in_their_places() {
        let tree = Tree::planted(&[
            ("crates/a/src/args.rs", "/// What is put\nx: X,\n"),
            (
                "crates/a/src/b.rs",
                "mod c;\n/// The same as the one above it.\nfn f() {}\n",
            ),
        ]);
        let places = worse(&tree)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        assert_eq!(places.len(), 1);
        assert!(places[0].starts_with("crates/a/src/b.rs:2: "), "{places:?}");
    }
}
