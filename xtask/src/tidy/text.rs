//! Rules about every text file that a person writes.

use super::links::prose;
use crate::findings::Finding;
use crate::source::find_word;
use crate::tree::{Tree, has_extension};

/// Words that mean that something is not done. Split, so that this file does not contain them.
const MARKERS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("TO", "DO"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
];

/// Notes about work that is left. What is left belongs into an issue, where it is seen.
pub(crate) fn markers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, text) in lines(tree) {
        for marker in MARKERS
            .iter()
            .filter(|marker| !find_word(text, marker).is_empty())
        {
            findings.push(Finding::new(
                path,
                line,
                format!("`{marker}`: do it now, or open an issue"),
            ));
        }
    }
    findings
}

/// Rows of tables with another number of cells than the head of their table: a page shows them cut, or empty.
pub(crate) fn ragged_tables(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.markdown() {
        let mut head = 0;
        let mut before = 0;
        for (number, line) in prose(text).filter(|(_, line)| line.starts_with('|')) {
            let cells = line.replace("\\|", "").matches('|').count() - 1;
            if number != before + 1 {
                head = cells;
            }
            before = number;
            if cells != head {
                let message = format!("a row of {cells} cells in a table of {head}");
                findings.push(Finding::new(path, number, message));
            }
        }
    }
    findings
}

/// Paths of one machine.
pub(crate) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, text) in lines(tree) {
        for start in MACHINE_PATHS {
            // `crates/tmp/a` or `https://host/tmp/` name something else.
            let begins = |at: usize| {
                text[..at]
                    .chars()
                    .next_back()
                    .is_none_or(|letter| !(letter.is_alphanumeric() || "._-/~$}".contains(letter)))
            };
            if text.match_indices(start).any(|(at, _)| begins(at)) {
                let message = format!(
                    "`{start}`: a path of one machine; use a relative one, or a temporary directory"
                );
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// Tabs, carriage returns, spaces at the end of a line, no line end at the end of the file.
pub(crate) fn whitespace(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, text) in lines(tree) {
        if text.contains('\r') {
            findings.push(Finding::new(
                path,
                line,
                "carriage return: end lines with a line feed alone",
            ));
        } else if text.contains('\t') {
            findings.push(Finding::new(path, line, "tab: use spaces"));
        } else if text.ends_with(char::is_whitespace) {
            findings.push(Finding::new(
                path,
                line,
                "whitespace at the end of the line: remove it",
            ));
        }
    }
    for (path, text) in written(tree).filter(|(_, text)| !text.is_empty() && !text.ends_with('\n'))
    {
        findings.push(Finding::new(
            path,
            text.lines().count(),
            "no line end at the end of the file: add one",
        ));
    }
    findings
}

/// Text files written by people: not lock files, not golden data, not recorded output.
fn written(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    const EXTENSIONS: &[&str] = &["rs", "md", "toml", "sh", "yml", "yaml", "html", "css", "js"];
    tree.texts().filter(|(path, _)| {
        let name = path
            .rsplit('/')
            .next()
            .expect("a path has a last component");
        EXTENSIONS
            .iter()
            .any(|extension| has_extension(path, extension))
            || matches!(name, "LICENSE" | ".gitignore")
            || path.starts_with(".ci/")
    })
}

/// Path, number from 1, and text without the line feed, of every line of every written file.
fn lines(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    written(tree).flat_map(|(path, text)| {
        text.split_terminator('\n')
            .enumerate()
            .map(move |(index, line)| (path, index + 1, line))
    })
}
