//! Arrows between the modules of `core`.
//!
//! Reads the paths that code names (`use crate::...`, `crate::x::y`, `super::...`) instead of compiling: a rule
//! that is told in seconds is kept. Test code may look anywhere.

mod paths;

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::source::Source;
use crate::tree::Tree;

use paths::{Path, paths_in};

/// Where the table is, for messages.
const TABLE: &str = "xtask/src/layers/modules.rs";
const CORE: &str = "crates/core/src/";

/// The words that everything else is said in. They may use each other, and nothing else.
const GROUND: &[&str] = &[
    "config", "element", "error", "hash", "instant", "limits", "message", "object", "pointer",
    "quorums", "span", "starts", "tag", "tally", "tlv",
];

/// THE TABLE, from the top down: a module, and what it may use beside the ground and itself. A file `a/b.rs`
/// belongs to module `a`. The client's side and the server's side meet in the algorithm files (`dap`, `reconfig`,
/// `consensus`), which hold both halves; neither side names the other. `lib` may name everything.
const MODULES: &[(&str, &[&str])] = &[
    (
        "manager",
        &[
            "fragment",
            "dsm",
            "reconfig",
            "dap",
            "consensus",
            "gather",
            "env",
        ],
    ),
    (
        "fragment",
        &["dsm", "reconfig", "dap", "consensus", "gather", "env"],
    ),
    ("dsm", &["reconfig", "dap", "consensus", "gather", "env"]),
    ("shard", &["server"]),
    ("server", &["reconfig", "dap", "consensus"]),
    ("reconfig", &["dap", "consensus", "gather", "env"]),
    ("dap", &["gather", "env"]),
    ("consensus", &["gather", "env"]),
    ("gather", &["env"]),
    ("env", &[]),
];

/// Every forbidden arrow between the modules of `core`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let files: Vec<(&str, Source)> = tree
        .rust()
        .filter(|(path, _)| path.starts_with(CORE))
        .map(|(path, text)| (path, Source::new(text)))
        .collect();
    let lib = format!("{CORE}lib.rs");
    let exports = files
        .iter()
        .find(|(path, _)| *path == lib)
        .map(|(_, source)| exports_of(source));
    let exports = exports.unwrap_or_default();
    let mut findings = Vec::new();
    for (path, source) in &files {
        let segments = module_path(path);
        let Some(module) = segments.first() else {
            continue;
        };
        if is_test_file(path, &files) {
            continue;
        }
        if !is_known(module) {
            let message = format!("unknown module '{module}': add it to the table in {TABLE}");
            findings.push(Finding::new(path, 0, message));
            continue;
        }
        for named in paths_in(&source.shipped, &segments) {
            if let Some(message) = forbidden(module, &named, &exports) {
                findings.push(Finding::new(path, named.line, message));
            }
        }
    }
    findings
}

fn is_known(module: &str) -> bool {
    GROUND.contains(&module) || MODULES.iter().any(|(name, _)| *name == module)
}

/// `crates/core/src/dap/abd.rs` → `[dap, abd]`; empty for `lib.rs`.
fn module_path(path: &str) -> Vec<String> {
    let inner = path
        .strip_prefix(CORE)
        .and_then(|path| path.strip_suffix(".rs"))
        .expect("a Rust file of core");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    if inner == "lib" {
        return Vec::new();
    }
    inner.split('/').map(ToOwned::to_owned).collect()
}

/// Whether a file is a module that exists only under `#[cfg(test)]`, or lies inside one.
fn is_test_file(path: &str, files: &[(&str, Source)]) -> bool {
    let segments = module_path(path);
    files.iter().any(|(parent, source)| {
        let parent = module_path(parent);
        source
            .test_modules
            .iter()
            .any(|name| segments.starts_with(&parent) && segments.get(parent.len()) == Some(name))
    })
}

/// Names that `lib.rs` exports at the root of the crate, each with the module it comes from.
fn exports_of(lib: &Source) -> BTreeMap<String, String> {
    let uses = paths::uses_in(&lib.shipped);
    uses.into_iter()
        .filter_map(|path| {
            let module = path
                .segments
                .iter()
                .find(|segment| !matches!(segment.as_str(), "crate" | "self"))?
                .clone();
            Some((path.name, module))
        })
        .collect()
}

fn forbidden(module: &str, named: &Path, exports: &BTreeMap<String, String>) -> Option<String> {
    let first = named.segments.first()?;
    let written = format!("crate::{}", named.segments.join("::"));
    let target = if is_known(first) {
        first
    } else {
        exports.get(first).unwrap_or(first)
    };
    if !is_known(target) {
        return Some(format!(
            "`{written}`: '{target}' is no known module of core; name the module that defines it, or add it to \
             the table in {TABLE}"
        ));
    }
    let uses = MODULES
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, uses)| *uses);
    let is_ground = GROUND.contains(&target.as_str());
    if target == module || is_ground || uses.unwrap_or_default().contains(&target.as_str()) {
        return None;
    }
    let may = match uses {
        None => "only other modules of the ground".to_owned(),
        Some([]) => "only the ground".to_owned(),
        Some(uses) => format!("{} and the ground", uses.join(", ")),
    };
    Some(format!(
        "forbidden arrow {module} -> {target} (`{written}`): {module} may use {may}; move the item down to where \
         both may see it, or pass it in from above (the order is the table in {TABLE})"
    ))
}

#[cfg(test)]
mod tests;
