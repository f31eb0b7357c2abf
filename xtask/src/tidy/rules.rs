//! Rules of the algorithms are cited by number and name, and `docs/spec` defines each under exactly that name.
//!
//! A definition is a heading of a page that consists of the rule in brackets. Everything else in brackets that looks
//! like a rule is a citation. Without a name a reader has to look each number up; with a wrong one the text lies.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::Finding;
use crate::source::line_of;
use crate::tree::{Tree, has_extension};

const PAGES: &str = "docs/spec/";

/// Rules that no code can cite: what keeps them is that no function exists which would do otherwise.
const NOT_IN_CODE: &[&str] = &[concat!("A", "-1")];

/// A rule in brackets.
struct Citation<'a> {
    /// The family and the number.
    id: &'a str,
    /// `None`: what follows the number is no name.
    name: Option<&'a str>,
    line: usize,
}

struct Definition<'a> {
    name: &'a str,
    path: &'a str,
    line: usize,
}

/// Citations without a name, or with another one than the definition's; rules that are defined twice, or cited nowhere.
pub(crate) fn misnamed(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let defined = definitions(tree, &mut findings);
    let mut in_code = BTreeSet::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_searched(path)) {
        for cited in citations(text) {
            if has_extension(path, "rs") {
                in_code.insert(cited.id);
            }
            if let Some(message) = what_is_wrong(&cited, defined.get(cited.id)) {
                findings.push(Finding::new(path, cited.line, message));
            }
        }
    }
    for (id, definition) in defined {
        if !in_code.contains(id) && !NOT_IN_CODE.contains(&id) {
            let message = format!("{id} is cited by no code: cite it where it is kept");
            findings.push(Finding::new(definition.path, definition.line, message));
        }
    }
    findings
}

fn is_searched(path: &str) -> bool {
    let extensions = ["rs", "md", "toml", "patch"];
    extensions.iter().any(|it| has_extension(path, it))
}

fn what_is_wrong(cited: &Citation<'_>, definition: Option<&Definition<'_>>) -> Option<String> {
    let id = cited.id;
    let Some(Definition { name, .. }) = definition else {
        return Some(format!("{id} is no heading of a page in {PAGES}"));
    };
    match cited.name {
        Some(cited) if cited == *name => None,
        Some(cited) => Some(format!("{id} is named '{name}', not '{cited}'")),
        None => Some(format!(
            "{id} without its name: write '{id} {name}' between the brackets, on one line"
        )),
    }
}

fn definitions<'a>(
    tree: &'a Tree,
    findings: &mut Vec<Finding>,
) -> BTreeMap<&'a str, Definition<'a>> {
    let mut defined: BTreeMap<&str, Definition<'_>> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for (path, text) in tree.markdown().filter(|(path, _)| path.starts_with(PAGES)) {
        for (index, line) in text.lines().enumerate() {
            let title = line.trim_start_matches('#');
            if title.len() == line.len() || !title.starts_with(" [") || !title.ends_with(']') {
                continue;
            }
            let line = index + 1;
            let Some((id, Some(name))) = cited_at(title.trim_start()) else {
                continue;
            };
            let definition = Definition { name, path, line };
            if !names.insert(name) || defined.insert(id, definition).is_some() {
                let message = format!("{id}, or the name '{name}', is defined twice");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    defined
}

fn citations(text: &str) -> impl Iterator<Item = Citation<'_>> {
    text.match_indices('[').filter_map(|(at, _)| {
        let (id, name) = cited_at(&text[at..])?;
        let line = line_of(text, at);
        Some(Citation { id, name, line })
    })
}

/// The rule that this text begins with: capitals, a hyphen and digits behind a bracket; and its name, if a name and the closing
/// bracket follow.
fn cited_at(text: &str) -> Option<(&str, Option<&str>)> {
    let inside = text.strip_prefix('[')?;
    let family = length_of(inside, |letter| letter.is_ascii_uppercase());
    let number = inside[family..].strip_prefix('-')?;
    let digits = length_of(number, |letter| letter.is_ascii_digit());
    let (id, rest) = inside.split_at(family + 1 + digits);
    // Otherwise something else is in the brackets, a checksum for instance.
    let ends = !rest.starts_with(|letter: char| letter.is_alphanumeric());
    if family == 0 || digits == 0 || !ends {
        return None;
    }
    let name = rest.strip_prefix(' ').unwrap_or_default();
    let length = length_of(name, |letter| letter.is_ascii_lowercase() || letter == '-');
    let (name, rest) = name.split_at(length);
    Some((
        id,
        Some(name).filter(|_| length > 0 && rest.starts_with(']')),
    ))
}

fn length_of(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_part(letter)).unwrap_or(text.len())
}
