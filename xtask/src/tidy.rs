//! `cargo xtask tidy`: the house rules that no other tool checks. CONTRIBUTING.md says why each exists.

mod asserts;
mod claims;
mod code;
mod comments;
mod decisions;
mod links;
mod lists;
mod rules;
mod text;
mod words;

pub(crate) use code::test_files;

use crate::findings::{Finding, report};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// A rule over the whole tree.
struct Check {
    name: &'static str,
    find: fn(&Tree) -> Vec<Finding>,
}

const CHECKS: &[Check] = &[
    Check {
        name: "length",
        find: code::too_long,
    },
    Check {
        name: "unwrap",
        find: code::unwraps,
    },
    Check {
        name: "assertions",
        find: asserts::too_few,
    },
    Check {
        name: "unfinished",
        find: code::unfinished,
    },
    Check {
        name: "printing",
        find: code::printing,
    },
    Check {
        name: "ignored-test",
        find: code::ignored_tests,
    },
    Check {
        name: "marker",
        find: text::markers,
    },
    Check {
        name: "machine-path",
        find: text::machine_paths,
    },
    Check {
        name: "whitespace",
        find: text::whitespace,
    },
    Check {
        name: "table",
        find: text::ragged_tables,
    },
    Check {
        name: "link",
        find: links::broken,
    },
    Check {
        name: "decision",
        find: decisions::disorder,
    },
    Check {
        name: "claim",
        find: claims::unresolved,
    },
    Check {
        name: "path",
        find: claims::gone,
    },
    Check {
        name: "list",
        find: lists::incomplete,
    },
    Check {
        name: "rule",
        find: rules::misnamed,
    },
    Check {
        name: "word",
        find: words::forbidden,
    },
    Check {
        name: "comment",
        find: comments::worse,
    },
];

/// Runs every check on the tree.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::read(workspace.root())?;
    let mut findings = Vec::new();
    for check in CHECKS {
        findings.extend((check.find)(&tree).into_iter().map(|finding| Finding {
            message: format!("[{}] {}", check.name, finding.message),
            ..finding
        }));
    }
    report("tidy", findings)?;
    println!(
        "{} files, {} checks, nothing to say",
        tree.paths().count(),
        CHECKS.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests;
