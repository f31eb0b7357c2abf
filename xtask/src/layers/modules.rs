//! Arrows between the modules of `core`, and between those of `client`.
//!
//! Reads the paths that code names (`use crate::...`, `crate::x::y`, `super::...`) instead of compiling: a rule
//! that is found in seconds is kept. Test code may look anywhere.

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::source::Source;
use crate::tree::Tree;

use super::paths::{Path, paths_in, uses_in};

/// The file with the table, for messages.
const TABLE: &str = "xtask/src/layers/modules.rs";

/// The modules of one crate.
struct Layers {
    name: &'static str,
    /// Folder of its sources.
    source: &'static str,
    /// Modules that every other may use; they may use each other, and nothing else.
    ground: &'static [&'static str],
    /// The modules from the top down, each with the modules that it may use beside the ground and itself. A file
    /// `a/b.rs` belongs to module `a`. `lib` may name everything.
    modules: &'static [(&'static str, &'static [&'static str])],
}

const CRATES: &[Layers] = &[CORE, CLIENT];

/// The ground is the words that everything else is said in. The client's side and the server's side meet in the algorithm
/// files (`dap`, `reconfig`, `consensus`), which hold both halves; neither side names the other.
const CORE: Layers = Layers {
    name: "core",
    source: "crates/core/src/",
    ground: GROUND,
    modules: MODULES,
};

/// Handles above, the session below them, what users see beside both: `session` names no handle, and what users see names
/// no session.
const CLIENT: Layers = Layers {
    name: "client",
    source: "crates/client/src/",
    ground: &[
        "experimental",
        "metrics",
        "operation",
        "place",
        "reconfig_kind",
        "shape",
        "span",
        "statistics",
        "units",
        "view",
    ],
    modules: CLIENT_MODULES,
};

const GROUND: &[&str] = &[
    "config", "element", "error", "hash", "instant", "limits", "message", "object", "pointer",
    "quorums", "span", "starts", "tag", "tally", "timing", "tlv",
];

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

const CLIENT_MODULES: &[(&str, &[&str])] = &[
    // Handles.
    ("blocking", &[]),
    ("fuzzing", &["file"]),
    (
        "journal",
        &["client", "choice", "domain", "error", "object"],
    ),
    (
        "client",
        &[
            "trust", "choice", "reconfig", "domain", "session", "connect", "cluster", "error",
        ],
    ),
    ("trust", &["session"]),
    ("file", &["domain", "session", "error", "object"]),
    ("sweep", &["domain", "session", "error", "object"]),
    ("repair", &["domain", "session", "error"]),
    (
        "reconfig",
        &["choice", "domain", "session", "cluster", "error"],
    ),
    (
        "objects",
        &[
            "stream", "domain", "session", "cluster", "checksum", "error", "object",
        ],
    ),
    (
        "stream",
        &["domain", "session", "checksum", "error", "object"],
    ),
    ("domain", &["session", "cluster", "error"]),
    // The session.
    ("session", &["connect", "cluster", "error", "object"]),
    // What users see.
    ("choice", &["cluster", "error"]),
    ("connect", &["cluster", "cluster_file"]),
    ("cluster_file", &[]),
    ("cluster", &["error"]),
    ("checksum", &["error", "object"]),
    ("error", &["object"]),
    ("object", &[]),
];

/// Every forbidden arrow between the modules of a crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    CRATES
        .iter()
        .flat_map(|layers| layers.check(tree))
        .collect()
}

impl Layers {
    fn check(&self, tree: &Tree) -> Vec<Finding> {
        let files: Vec<(&str, Source)> = tree
            .rust()
            .filter(|(path, _)| path.starts_with(self.source))
            .map(|(path, text)| (path, Source::new(text)))
            .collect();
        let lib = format!("{}lib.rs", self.source);
        let exports = files
            .iter()
            .find(|(path, _)| *path == lib)
            .map(|(_, source)| exports_of(source));
        let exports = exports.unwrap_or_default();
        let mut findings = Vec::new();
        for (path, source) in &files {
            let segments = self.module_path(path);
            let Some(module) = segments.first() else {
                continue;
            };
            if self.is_test_file(path, &files) {
                continue;
            }
            if !self.is_known(module) {
                let message = format!("unknown module '{module}': add it to the table in {TABLE}");
                findings.push(Finding::new(path, 0, message));
                continue;
            }
            for named in paths_in(&source.shipped, &segments) {
                if let Some(message) = self.forbidden(module, &named, &exports) {
                    findings.push(Finding::new(path, named.line, message));
                }
            }
        }
        findings
    }

    fn is_known(&self, module: &str) -> bool {
        self.ground.contains(&module) || self.modules.iter().any(|(name, _)| *name == module)
    }

    /// `crates/core/src/dap/abd.rs` → `[dap, abd]`; empty for `lib.rs`.
    fn module_path(&self, path: &str) -> Vec<String> {
        let inner = path
            .strip_prefix(self.source)
            .and_then(|path| path.strip_suffix(".rs"))
            .expect("a Rust file of the crate");
        let inner = inner.strip_suffix("/mod").unwrap_or(inner);
        if inner == "lib" {
            return Vec::new();
        }
        inner.split('/').map(ToOwned::to_owned).collect()
    }

    /// True if a file is a module that exists only under `#[cfg(test)]`, or lies inside one.
    fn is_test_file(&self, path: &str, files: &[(&str, Source)]) -> bool {
        let segments = self.module_path(path);
        files.iter().any(|(parent, source)| {
            let parent = self.module_path(parent);
            source.test_modules.iter().any(|name| {
                segments.starts_with(&parent) && segments.get(parent.len()) == Some(name)
            })
        })
    }

    fn forbidden(
        &self,
        module: &str,
        named: &Path,
        exports: &BTreeMap<String, String>,
    ) -> Option<String> {
        let first = named.segments.first()?;
        let written = format!("crate::{}", named.segments.join("::"));
        let target = match exports.get(first) {
            Some(origin) if !self.is_known(first) => origin,
            _ => first,
        };
        if target.starts_with("areo_") {
            // Of another crate, handed on: the table of crates allows it or not.
            return None;
        }
        if !self.is_known(target) {
            let name = self.name;
            return Some(format!(
                "`{written}`: '{target}' is no known module of {name}; name the module that defines it, or add it to \
                 the table in {TABLE}"
            ));
        }
        let mut modules = self.modules.iter();
        let uses = modules.find(|(name, _)| *name == module);
        let uses = uses.map(|(_, uses)| *uses);
        let is_ground = self.ground.contains(&target.as_str());
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
}

/// Names that `lib.rs` exports at the root of the crate, each with the module it comes from.
fn exports_of(lib: &Source) -> BTreeMap<String, String> {
    let uses = uses_in(&lib.shipped);
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

#[cfg(test)]
mod tests;
