//! No circle of files within a crate: of two files that need each other, neither is understood, tested or moved alone.
//!
//! An arrow leads from a file to the file that defines an item which it imports or calls by its path. A name that a module hands on
//! (`pub use`) is followed to its definition, and handing it on is no arrow. A file and the folder of its parts are one
//! unit: the file uses its parts without an arrow, so that parts which use its types form no circle with it.

use super::paths::{Form, Path, all_paths_in};
use crate::findings::Finding;
use crate::source::{Source, find_word};
use crate::tidy::test_files;
use crate::tree::Tree;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Arrows within circles that crates are known to have. A number only falls; a crate without a row has none.
const KNOWN: &[(&str, usize)] = &[
    ("crates/lab", 6),
    ("crates/net", 6),
    ("crates/s3", 13),
    ("crates/server", 8),
    ("crates/sim", 30),
    ("crates/telemetry", 2),
    ("crates/trust", 2),
    ("crates/wire", 6),
    ("peers", 6),
];

/// The path of a module from the root of its crate; empty: the root.
type Module = Vec<String>;

/// Crates with more arrows within circles than they are known to have, and each of their circles.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        if let Some((name, _)) = path.split_once("/src/")
            && !tests.contains(path)
        {
            crates.entry(name).or_default().push((path, text));
        }
    }
    crates
        .into_iter()
        .flat_map(|(name, files)| check_crate(name, &files))
        .collect()
}

fn check_crate(name: &str, files: &[(&str, &str)]) -> Vec<Finding> {
    let arrows = Files::new(name, files).arrows();
    let known = KNOWN
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(0, |(_, number)| *number);
    let circles = circles(&arrows);
    let number: usize = circles
        .iter()
        .map(|circle| within(&arrows, circle).count())
        .sum();
    match number.cmp(&known) {
        Ordering::Equal => return Vec::new(),
        Ordering::Less => {
            let message = format!(
                "{number} arrows are in circles, {known} are known: lower the number of the crate"
            );
            return vec![Finding::new(name, 0, message)];
        }
        Ordering::Greater => {}
    }
    let finding = |circle: &BTreeSet<&str>| {
        let first = circle.first().expect("a circle has files");
        let mut message = format!(
            "circle of {} files ({number} arrows of the crate are in circles, {known} are known): move what several of them \
             need into a file below them",
            circle.len()
        );
        for (from, (line, to)) in within(&arrows, circle) {
            write!(message, "\n  {from}:{line} -> {to}").expect("text takes all");
        }
        Finding::new(first, 0, message)
    };
    circles.iter().map(finding).collect()
}

/// The files of a crate by their modules.
struct Files<'a>(BTreeMap<Module, File<'a>>);

struct File<'a> {
    path: &'a str,
    code: String,
    named: Vec<Path>,
}

/// The files that each file needs, with the first line that says so.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

impl<'a> Files<'a> {
    fn new(name: &str, files: &[(&'a str, &str)]) -> Files<'a> {
        let has_library = files
            .iter()
            .any(|(path, _)| path[name.len()..] == *"/src/lib.rs");
        let modules = files.iter().filter_map(|(path, text)| {
            let inner = path[name.len()..]
                .strip_prefix("/src/")?
                .strip_suffix(".rs")?;
            let module: Module = match inner {
                // A program of its own, which names the library as another crate.
                "main" if has_library => return None,
                "lib" | "main" => Vec::new(),
                inner => inner.split('/').map(ToOwned::to_owned).collect(),
            };
            let code = Source::new(text).shipped;
            let named = all_paths_in(&code, &module);
            Some((module, File { path, code, named }))
        });
        Files(modules.collect())
    }

    fn arrows(&self) -> Arrows<'a> {
        let of = |file: &File<'a>| {
            let mut needed = BTreeMap::new();
            for path in &file.named {
                let is_import = match path.form {
                    Form::Code | Form::Import => true,
                    // A name that is handed on is needed only where the file uses it, too.
                    Form::Export => find_word(&file.code, &path.name).len() > 1,
                };
                if let Some(home) = self.home(&path.segments, 8)
                    && is_import
                    && !is_at_or_below(home, file.path)
                {
                    needed.entry(home).or_insert(path.line);
                }
            }
            needed
        };
        self.0.values().map(|file| (file.path, of(file))).collect()
    }

    /// The file that defines the item of this path, through at most so many `use`; `None` for a module: what is named
    /// in it decides.
    fn home(&self, path: &[String], uses: usize) -> Option<&'a str> {
        let length = (0..=path.len())
            .rev()
            .find(|length| self.0.contains_key(&path[..*length]))?;
        let file = &self.0[&path[..length]];
        let (name, rest) = path[length..].split_first()?;
        let import = file
            .named
            .iter()
            .find(|it| it.form != Form::Code && it.name == *name);
        match import {
            Some(import) if uses > 0 && import.segments != path => {
                self.home(&[&import.segments, rest].concat(), uses - 1)
            }
            _ => Some(file.path),
        }
    }
}

/// Tells if a file is the other one or one of its parts.
fn is_at_or_below(file: &str, other: &str) -> bool {
    let folder = match other.strip_suffix("/lib.rs") {
        Some(root) => root,
        None => other.strip_suffix(".rs").expect("a file of Rust"),
    };
    let rest = file.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

/// The largest sets of files each of which needs each other, on some way.
fn circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached = |from: &'a str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            let needed = arrows[file].keys().copied();
            next.extend(needed.filter(|file| seen.insert(*file)));
        }
        seen
    };
    let from: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (*file, reached(file))).collect();
    let circle = |file: &&'a str| {
        let both_ways = from[file]
            .iter()
            .copied()
            .filter(|other| from[other].contains(file));
        both_ways.collect::<BTreeSet<&str>>()
    };
    let all: BTreeSet<_> = arrows.keys().map(circle).collect();
    all.into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// The arrows between files of a circle.
fn within<'a>(
    arrows: &Arrows<'a>,
    circle: &BTreeSet<&'a str>,
) -> impl Iterator<Item = (&'a str, (usize, &'a str))> {
    let from = arrows.iter().filter(|(from, _)| circle.contains(*from));
    let all = from.flat_map(|(from, needed)| needed.iter().map(|(to, line)| (*from, (*line, *to))));
    all.filter(|(_, (_, to))| circle.contains(to))
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, check};
    use crate::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("crates/x/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        check(&Tree::planted(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn files_in_order_have_no_circle() {
        let found = found(&[
            (
                "lib.rs",
                "mod a; mod b; mod c; pub use a::A; pub use c::C; pub use other::Name;",
            ),
            // Hands on what its child defines; the child uses what stands here.
            (
                "a.rs",
                "mod child; pub(crate) use child::Child; pub struct A; use crate::b;  fn f() { b::g() }",
            ),
            (
                "a/child.rs",
                "use super::A; pub struct Child; #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            // `C` comes from `c`, by the way of the root; `Child` comes from `child`.
            ("b.rs", "use crate::C; pub struct B; // use crate::a::A;"),
            (
                "c.rs",
                "use std::fmt; pub struct C; #[cfg(test)] mod tests;",
            ),
            ("c/tests.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_planted_circle_is_caught() {
        for (name, a, b) in [
            (
                "imports",
                "use crate::b::B; pub struct A;",
                "use crate::a::A; pub struct B;",
            ),
            (
                "by the root",
                "use crate::B; pub struct A;",
                "use crate::A; pub struct B;",
            ),
            (
                "by a module with itself in braces",
                "use crate::b::{self}; pub fn f() { b::g() }",
                "use crate::a::{self, A}; pub fn g() { a::f() }",
            ),
            (
                "paths in code",
                "pub fn f() { crate::b::g() }",
                "use crate::a; pub fn g() { a::f() }",
            ),
        ] {
            let found = found(&[
                ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
                ("a.rs", a),
                ("b.rs", b),
            ]);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(
                found[0].starts_with("crates/x/src/a.rs: circle of 2 files (2 arrows"),
                "{name}: {found:?}"
            );
            assert!(
                found[0].contains("\n  crates/x/src/b.rs:1 -> crates/x/src/a.rs"),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn a_number_that_fell_is_lowered() {
        let (known, number) = KNOWN[0];
        let files = [(format!("{known}/src/lib.rs"), "pub struct A;")];
        let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
        let found = check(&Tree::planted(&files));
        let expected = format!("0 arrows are in circles, {number} are known");
        assert!(
            found.len() == 1 && found[0].to_string().contains(&expected),
            "{found:?}"
        );
    }

    #[test]
    fn a_file_forms_no_circle_with_its_parts_but_with_files_beside() {
        let contract = "mod child; use child::Child; pub struct A; fn f() { child::new() }";
        let part = ("a/child.rs", "use super::A; pub struct Child;");
        assert_eq!(found(&[("a.rs", contract), part]), [""; 0]);
        let root = "mod a; mod ab; mod b; pub use a::A; const _: A = A;";
        let used = ("a.rs", "use crate::b::B; pub struct A;");
        assert_eq!(
            found(&[("lib.rs", root), used, ("b.rs", "pub struct B;")]),
            [""; 0]
        );
        // The name of a file may begin with that of another.
        let beside = ("ab.rs", "use crate::a::A; pub struct B;");
        assert_eq!(
            found(&[("a.rs", "use crate::ab::B; pub struct A;"), beside]).len(),
            1
        );
        // Two parts of a file are files beside each other.
        let parts = [
            ("a/b.rs", "use super::c::C; pub struct B;"),
            ("a/c.rs", "use super::b::B; pub struct C;"),
        ];
        assert_eq!(found(&parts).len(), 1);
    }
}
