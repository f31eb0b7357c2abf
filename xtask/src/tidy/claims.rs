//! The pages that lead from the papers to the code, and from bugs to their tests, name things that exist.
//!
//! In [`MAPS`], code in backticks that ends in `.rs` is a file; `file.rs::name` and `a::b::name` are an
//! item of it. Files are looked for from the root, from `crates`, and from `crates/core` with its `src`. Backticks
//! around anything else (a name alone, a formula) are left in peace.

use crate::findings::Finding;
use crate::source::find_word;
use crate::tree::Tree;

/// The pages that are checked.
const MAPS: [&str; 3] = [
    "docs/claims.md",
    "docs/paper-map.md",
    "docs/track-record.md",
];

/// Items of the pages that do not resolve.
pub(crate) fn unresolved(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = MAPS.iter().flat_map(|page| {
        let lines = tree.text(page).unwrap_or_default().lines().enumerate();
        lines.map(|(index, line)| (*page, index, line))
    });
    for (page, index, line) in lines {
        for claim in line.split('`').skip(1).step_by(2) {
            let claim = claim.trim_end_matches("()");
            if let Some(message) = what_is_wrong(tree, claim) {
                findings.push(Finding::new(
                    page,
                    index + 1,
                    format!("`{claim}`: {message}"),
                ));
            }
        }
    }
    findings
}

/// Paths of Rust files that no file has, in the other documents. A path with a capital letter, such as `NAME/tests.rs`, is an example.
pub(crate) fn gone(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let others = tree.markdown().filter(|(page, _)| !MAPS.contains(page));
    for (page, text) in others {
        for (index, line) in text.lines().enumerate() {
            for claim in line.split('`').skip(1).step_by(2) {
                let Some((file, _)) = claim.split_once(".rs") else {
                    continue;
                };
                let file = format!("{file}.rs");
                let is_named =
                    file.contains('/') && is_path(&file) && !file.contains(char::is_uppercase);
                let tail = format!("/{file}");
                if is_named
                    && !tree
                        .paths()
                        .any(|path| path == file || path.ends_with(&tail))
                {
                    findings.push(Finding::new(
                        page,
                        index + 1,
                        format!("`{file}`: no such file"),
                    ));
                }
            }
        }
    }
    findings
}

fn is_path(claim: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_/.:-".contains(letter);
    claim.chars().all(is_part)
}

fn what_is_wrong(tree: &Tree, claim: &str) -> Option<String> {
    if !is_path(claim) {
        return None;
    }
    let (path, items) = match claim.split_once(".rs") {
        Some((file, "")) => (find_file(tree, &format!("{file}.rs")), Vec::new()),
        Some((file, rest)) if rest.starts_with("::") => (
            find_file(tree, &format!("{file}.rs")),
            rest[2..].split("::").collect(),
        ),
        _ if claim.contains("::") => find_module(tree, claim),
        _ => return None,
    };
    let Some(path) = path else {
        return Some(
            "no such file; name it from the root, from `crates`, or from `crates/core`".to_owned(),
        );
    };
    let code = tree.source(&path).map_or("", |source| &source.code);
    let missing = items.iter().find(|item| !defines(code, item));
    missing.map(|item| format!("{path} defines no `{item}`"))
}

fn find_file(tree: &Tree, name: &str) -> Option<String> {
    let homes = ["", "crates/", "crates/core/", "crates/core/src/"];
    homes
        .iter()
        .map(|home| format!("{home}{name}"))
        .find(|path| tree.text(path).is_some())
}

/// The deepest file that a path of modules leads to, and the items behind it.
fn find_module<'a>(tree: &Tree, claim: &'a str) -> (Option<String>, Vec<&'a str>) {
    let mut segments: Vec<&str> = claim.split("::").collect();
    let first = segments[0].strip_prefix("areo_").unwrap_or(segments[0]);
    let mut home = "crates/core/src".to_owned();
    if first == "crate" || tree.exists(&format!("crates/{first}/src")) {
        if first != "crate" {
            home = format!("crates/{first}/src");
        }
        segments.remove(0);
    }
    for depth in (1..=segments.len()).rev() {
        let path = format!("{home}/{}.rs", segments[..depth].join("/"));
        if tree.text(&path).is_some() {
            return (Some(path), segments.split_off(depth));
        }
    }
    (None, segments)
}

/// True if code defines an item, a method or a variant of this name.
fn defines(code: &str, name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "fn",
        "struct",
        "enum",
        "trait",
        "const",
        "static",
        "type",
        "mod",
        "macro_rules!",
    ];
    let is_variant = |at: usize| {
        // A variant stands after `{` or `,` (its attributes and comments aside), and begins with a capital.
        let before = code[..at].trim_end();
        name.starts_with(char::is_uppercase) && before.ends_with(['{', ',', ']'])
    };
    find_word(code, name).into_iter().any(|at| {
        let before = code[..at].trim_end();
        KEYWORDS.iter().any(|keyword| before.ends_with(keyword)) || is_variant(at)
    })
}
