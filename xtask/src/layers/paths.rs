//! The paths into its own crate that a Rust file names.

use crate::source::line_of;

/// A path from the root of the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) line: usize,
    /// Without `crate`, `self` and `super`, which are resolved; `*` for a glob.
    pub(crate) segments: Vec<String>,
    /// The name it gets: the last segment, or what stands behind `as`.
    pub(crate) name: String,
    pub(crate) form: Form,
    /// True if it starts with none of `crate`, `self` and `super`.
    pub(crate) is_relative: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Place in the code where a path is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In an expression, a type or a bound.
    Code,
    /// In a private `use`.
    Import,
    /// In a `use` that other modules see.
    Export,
}

/// Every path in `code` that starts with `crate`, `self` or `super`, resolved for a file that is module `module`.
pub(crate) fn paths_in(code: &str, module: &[String]) -> Vec<Path> {
    let all = all_paths_in(code, module).into_iter();
    all.filter(|path| !path.is_relative).collect()
}

/// Every path in `code`, resolved for a file that is module `module`. One that starts with none of `crate`, `self` and
/// `super` is taken for a path from the module: to its child, or to a name that it imports or that is another crate.
pub(crate) fn all_paths_in(code: &str, module: &[String]) -> Vec<Path> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    // Inline modules that are open: their depth of braces, their name.
    let mut inline: Vec<(usize, String)> = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while at < tokens.len() {
        let text = |ahead: usize| tokens.get(at + ahead).map_or("", |token| token.text);
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        match text(0) {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.pop_if(|(opened, _)| *opened == depth);
            }
            "mod" if text(2) == "{" => inline.push((depth, text(1).to_owned())),
            word if before != "::" && (word == "use" || is_identifier(word) && text(1) == "::") => {
                let form = match (word, before) {
                    ("use", "pub" | ")") => Form::Export,
                    ("use", _) => Form::Import,
                    _ => Form::Code,
                };
                let is_use = form != Form::Code;
                let mut here = module.to_vec();
                here.extend(inline.iter().map(|(_, name)| name.clone()));
                let mut leaves = Vec::new();
                at = read_tree(&tokens, at + usize::from(is_use), &[], is_use, &mut leaves);
                let resolved = leaves.into_iter().filter_map(|leaf| resolve(leaf, &here));
                found.extend(resolved.map(|path| Path { form, ..path }));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Every leaf of every `use` in `code`, as written.
pub(crate) fn uses_in(code: &str) -> Vec<Path> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.text == "use" {
            read_tree(&tokens, at + 1, &[], true, &mut found);
        }
    }
    found
}

/// Reads a path, or with `groups` a tree of them, from `at`; appends the leaves; returns the position behind.
fn read_tree(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    groups: bool,
    leaves: &mut Vec<Path>,
) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token<'_>| token.text);
    loop {
        if groups && text(at) == "{" {
            at += 1;
            while at < tokens.len() && text(at) != "}" {
                let next = read_tree(tokens, at, &segments, true, leaves);
                // A token that starts no path, such as a stray comma, is passed over.
                at = if text(next) == "," {
                    next + 1
                } else {
                    next.max(at + usize::from(next == at))
                };
            }
            return at + 1;
        }
        if !is_identifier(text(at)) && text(at) != "*" {
            break;
        }
        segments.push(text(at).to_owned());
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if segments.len() > prefix.len() {
        // `use a::{self}` imports `a`.
        let named = segments.iter().rev().find(|segment| *segment != "self");
        let mut name = named.cloned().unwrap_or_default();
        if groups && text(at) == "as" {
            text(at + 1).clone_into(&mut name);
            at += 2;
        }
        leaves.push(Path {
            line,
            segments,
            name,
            form: Form::Code,
            is_relative: false,
        });
    }
    at
}

/// Replaces `crate`, `self` and `super` at the start by what they mean in module `here`, which a path without them begins
/// in; `None` for the crate itself.
fn resolve(path: Path, here: &[String]) -> Option<Path> {
    let mut rest = path.segments.iter().peekable();
    let start = rest.next_if(|segment| matches!(segment.as_str(), "crate" | "self" | "super"));
    let mut base = match start.map(String::as_str) {
        Some("crate") => Vec::new(),
        Some("super") => here[..here.len().saturating_sub(1)].to_vec(),
        _ => here.to_vec(),
    };
    let is_relative = start.is_none();
    while rest.next_if(|segment| *segment == "super").is_some() {
        base.pop();
    }
    base.extend(rest.filter(|segment| *segment != "self").cloned());
    (!base.is_empty()).then_some(Path {
        segments: base,
        is_relative,
        ..path
    })
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line, mut counted) = (0, 1, 0);
    while let Some(letter) = code[at..].chars().next() {
        let length = if is_identifier(&code[at..]) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            code[at..]
                .find(|letter| !is_part(letter))
                .unwrap_or(code.len() - at)
        } else if code[at..].starts_with("::") {
            2
        } else {
            letter.len_utf8()
        };
        if !letter.is_whitespace() {
            line += line_of(&code[counted..], at - counted) - 1;
            counted = at;
            found.push(Token {
                text: &code[at..at + length],
                line,
            });
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::paths_in;

    fn named(code: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(ToString::to_string).collect();
        paths_in(code, &module)
            .iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn use_trees_are_flattened() {
        assert_eq!(
            named(
                "use crate::{tag::{self, Tag}, dap::abd as x, env::*,}; use bytes::Bytes;",
                &["dsm"]
            ),
            ["tag", "tag::Tag", "dap::abd", "env::*"]
        );
        assert_eq!(
            named("pub(crate) use crate::tag::Tag;", &["dsm"]),
            ["tag::Tag"]
        );
    }

    #[test]
    fn relative_paths_are_resolved() {
        assert_eq!(
            named("use super::X; use super::super::tag;", &["dap", "abd"]),
            ["dap::X", "tag"]
        );
        assert_eq!(
            named("use self::child::X; use child::Y;", &["dap"]),
            ["dap::child::X"]
        );
        assert_eq!(
            named(
                "mod inner { use super::X; fn f() { super::super::tag::g() } } use super::tag;",
                &["gather"]
            ),
            ["gather::X", "tag::g", "tag"]
        );
    }

    #[test]
    fn paths_in_expressions_and_types_count() {
        assert_eq!(
            named(
                "fn f(x: crate::tag::Tag) { crate::dsm::g::<u8>(self.x, $crate::env::h()) }",
                &["dap"]
            ),
            ["tag::Tag", "dsm::g", "env::h"]
        );
    }

    #[test]
    fn lines_are_those_of_the_path() {
        let lines: Vec<usize> =
            paths_in("\n\nuse crate::{\n    a::b,\n    c,\n};\ncrate::d::e", &[])
                .iter()
                .map(|path| path.line)
                .collect();
        assert_eq!(lines, [4, 5, 7]);
    }
}
