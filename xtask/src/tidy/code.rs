//! Rules about Rust files.

use std::collections::BTreeSet;

use crate::findings::Finding;
use crate::source::{find_word, line_of};
use crate::tree::Tree;

/// A file has fewer lines than this.
const LINES_MAX: usize = 500;
/// The longest file that holds only tests: tables of cases are long and easy to read.
const TEST_LINES_MAX: usize = 800;

/// Files with too many lines.
pub(crate) fn too_long(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let limit = if tests.contains(path) {
            TEST_LINES_MAX
        } else {
            LINES_MAX
        };
        let count = text.lines().count();
        if count >= limit {
            let message = format!(
                "{count} lines, the limit is {}: split it by topic",
                limit - 1
            );
            findings.push(Finding::new(path, 0, message));
        }
    }
    findings
}

/// `.unwrap()` outside tests, in examples of documentation too: people copy those.
pub(crate) fn unwraps(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    let sources = tree.sources();
    for (path, text, source) in sources.filter(|(path, ..)| !tests.contains(*path)) {
        let shipped = &source.shipped;
        let in_code = find_word(shipped, "unwrap")
            .into_iter()
            .filter(|at| is_call_without_arguments(shipped, *at));
        let lines = in_code
            .map(|at| line_of(text, at))
            .chain(lines_of_examples_with_unwrap(text));
        findings.extend(lines.map(|line| {
            Finding::new(
                path,
                line,
                "`.unwrap()`: say why it holds with `expect(\"...\")`, or return the error",
            )
        }));
    }
    findings
}

/// Macros that mean that something is not done.
pub(crate) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text, source) in tree.sources() {
        let code = &source.code;
        for name in ["todo!", "unimplemented!", "dbg!"] {
            for at in find_word(code, name) {
                findings.push(Finding::new(
                    path,
                    line_of(text, at),
                    format!("`{name}`: finish it or leave it out"),
                ));
            }
        }
    }
    findings
}

/// The one file of the programs that writes to the standard streams.
const PRINTER: &str = "crates/areo/src/output/streams.rs";

/// A crate that tests alone use.
const FOR_TESTS: &str = "crates/fuzzing/";

/// Macros of the standard library that panic when a stream is closed or full, and the streams of it that keep errors to themselves.
pub(crate) fn printing(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let is_program = |path: &str| {
        path.starts_with("crates/") && path.contains("/src/") && !path.starts_with(FOR_TESTS)
    };
    let files = tree.sources();
    let files =
        files.filter(|(path, ..)| is_program(path) && *path != PRINTER && !tests.contains(*path));
    let mut findings = Vec::new();
    for (path, text, source) in files {
        let shipped = &source.shipped;
        let macros = ["println!", "eprintln!", "print!", "eprint!"];
        let macros = macros.iter().flat_map(|name| find_word(shipped, name));
        let streams = ["stdout", "stderr"];
        let streams = streams.iter().flat_map(|name| find_word(shipped, name));
        // The methods of a command of these names take where its output goes; a bar of progress sees to itself.
        let streams = streams.filter(|at| {
            shipped[at + "stdout".len()..].starts_with("()")
                && !shipped[..*at].ends_with("ProgressDrawTarget::")
        });
        for at in macros.chain(streams) {
            let message = "standard streams are written by `areo::output` alone: one that is closed must neither panic nor look full of success";
            findings.push(Finding::new(path, line_of(text, at), message));
        }
    }
    findings
}

/// Tests that look green because they do not run.
pub(crate) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text, source) in tree.sources() {
        let code = &source.code;
        for at in find_word(code, "ignore") {
            let line_start = code[..at].rfind('\n').map_or(0, |end| end + 1);
            if code[line_start..at].trim_start().starts_with("#[") {
                let message = "`#[ignore]`: a test that does not run proves nothing; make it fast, or a command";
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
    findings.extend(tree.rust().filter_map(|(path, _)| unlinked(tree, path)));
    findings
}

/// A file of tests that is in no program: its crate lists the programs, and `tests/main.rs` does not name the file.
fn unlinked(tree: &Tree, path: &str) -> Option<Finding> {
    let (home, file) = path.split_once("/tests/")?;
    let name = file.strip_suffix(".rs").filter(|it| !it.contains('/'))?;
    let manifest = tree.text(&format!("{home}/Cargo.toml"))?;
    let main = tree.source(&format!("{home}/tests/main.rs"));
    let main = main.map_or("", |source| &source.code);
    let is_linked = !manifest.contains("autotests = false")
        || manifest.contains(&format!("\"tests/{file}\""))
        || find_word(main, &format!("mod {name};")).len() == 1;
    let message = format!("no program has these tests: add `mod {name};` to {home}/tests/main.rs");
    (!is_linked).then(|| Finding::new(path, 0, message))
}

fn is_call_without_arguments(code: &str, at: usize) -> bool {
    let after = code[at + "unwrap".len()..].trim_start().strip_prefix('(');
    code[..at].trim_end().ends_with('.')
        && after.is_some_and(|rest| rest.trim_start().starts_with(')'))
}

fn lines_of_examples_with_unwrap(text: &str) -> impl Iterator<Item = usize> {
    let mut in_example = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))?;
        if doc.trim_start().starts_with("```") {
            in_example = !in_example;
        }
        (in_example && doc.contains(".unwrap()")).then_some(index + 1)
    })
}

/// Files that exist only for tests: in a directory `tests`, named `tests.rs`, or declared under `#[cfg(test)]`.
pub(crate) fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, _, source) in tree.sources() {
        let components: Vec<&str> = path.split('/').collect();
        if components.contains(&"tests") || path.ends_with("/tests.rs") {
            found.insert(path.to_owned());
        }
        let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = file.strip_suffix(".rs").expect("a Rust file");
        let home = if matches!(stem, "lib" | "main" | "mod") {
            directory.to_owned()
        } else {
            format!("{directory}/{stem}")
        };
        for module in &source.test_modules {
            let own = format!("{home}/{module}.rs");
            let below = format!("{home}/{module}/");
            let files = tree
                .paths()
                .filter(|path| **path == own || path.starts_with(&below));
            found.extend(files.map(ToOwned::to_owned));
        }
    }
    found
}
