//! Nothing in `core` depends on a kind of data access, except in the kinds' own modules: what differs stands in one table.
//!
//! Tests and comments count, too: what names a kind goes wrong with the next one.

use crate::findings::Finding;
use crate::tree::Tree;

const CORE: &str = "crates/core/src/";
const AT_HOME: [&str; 2] = ["config", "dap"];
const NAMES: &str = "Dap::";

/// Every place that names a kind and should not.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let Some(inner) = path.strip_prefix(CORE) else {
            continue;
        };
        let module = inner.split(['/', '.']).next().unwrap_or(inner);
        if AT_HOME.contains(&module) {
            continue;
        }
        let lines = text.lines().enumerate();
        for (line, _) in lines.filter(|(_, line)| line.contains(NAMES)) {
            let message = "names a kind of data access: ask `of_kind!` for what it decides";
            findings.push(Finding::new(path, line + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_at_home_only() {
        let text = "fn a() {\n    c.dap() == Dap::Abd\n}\n";
        let tree = Tree::planted(&[
            ("crates/core/src/config/dap.rs", text),
            ("crates/core/src/dap.rs", text),
            ("crates/core/src/dsm/atomic.rs", text),
            ("crates/client/src/lib.rs", text),
        ]);
        let found = check(&tree);
        let [finding] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(
            (finding.path.as_str(), finding.line),
            ("crates/core/src/dsm/atomic.rs", 2)
        );
    }
}
