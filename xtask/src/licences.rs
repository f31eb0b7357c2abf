//! Every dependency has a licence that an Apache-2.0 program may be built with.
//!
//! Our own small reading of `cargo metadata`, because nothing but a Rust toolchain may be needed to verify.

use serde_json::Value;

use crate::findings::{Finding, report};
use crate::workspace::Workspace;

/// SPDX identifiers, with their exception where one is part of the permission. Permissive licences only.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks the licence of every package that `cargo metadata` knows, ours included.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let metadata = workspace.whole_metadata()?;
    let (count, findings) = check(&metadata)?;
    report("licences", findings)?;
    println!("{count} packages, all under allowed licences");
    Ok(())
}

/// Number of packages, and those whose licence is not allowed.
fn check(metadata: &Value) -> Result<(usize, Vec<Finding>), String> {
    let packages = metadata["packages"]
        .as_array()
        .ok_or("`cargo metadata` lists no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = format!(
            "{} {}",
            package["name"].as_str().unwrap_or("?"),
            package["version"].as_str().unwrap_or("?")
        );
        match package["license"].as_str() {
            None => findings.push(Finding::new(
                &name,
                0,
                "declares no SPDX licence expression",
            )),
            Some(expression) => match is_allowed(expression) {
                Some(true) => {}
                Some(false) => findings.push(Finding::new(
                    &name,
                    0,
                    format!("licence '{expression}' is not satisfied by the allowed list"),
                )),
                None => findings.push(Finding::new(
                    &name,
                    0,
                    format!("licence '{expression}' is not a valid SPDX expression"),
                )),
            },
        }
    }
    Ok((packages.len(), findings))
}

/// Whether allowed licences satisfy an SPDX expression; `None` if it cannot be read.
fn is_allowed(expression: &str) -> Option<bool> {
    // Old manifests write `MIT/Apache-2.0` for "either".
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    let verdict = either(&mut rest)?;
    rest.is_empty().then_some(verdict)
}

fn either(rest: &mut &[&str]) -> Option<bool> {
    let mut verdict = both(rest)?;
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        // Not `||`: the right side has to be read in any case.
        verdict |= both(rest)?;
    }
    Some(verdict)
}

fn both(rest: &mut &[&str]) -> Option<bool> {
    let mut verdict = single(rest)?;
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        verdict &= single(rest)?;
    }
    Some(verdict)
}

fn single(rest: &mut &[&str]) -> Option<bool> {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let verdict = either(rest)?;
            let [")", tail @ ..] = *rest else { return None };
            *rest = tail;
            Some(verdict)
        }
        ["AND" | "OR" | "WITH" | ")", ..] | [] => None,
        [name, "WITH", exception, tail @ ..] => {
            *rest = tail;
            Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
        }
        [name, tail @ ..] => {
            *rest = tail;
            Some(ALLOWED.contains(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check, is_allowed};

    #[test]
    fn spdx_expressions_are_judged() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert_eq!(is_allowed(expression), Some(true), "{expression}");
        }
        for expression in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "GPL-3.0-only AND MIT",
            "GPL-2.0-only WITH Classpath-exception-2.0",
            "(MIT OR Apache-2.0) AND SSPL-1.0",
        ] {
            assert_eq!(is_allowed(expression), Some(false), "{expression}");
        }
        for expression in ["", "MIT OR", "(MIT", "MIT MIT", "OR", ")"] {
            assert_eq!(is_allowed(expression), None, "{expression}");
        }
    }

    #[test]
    fn a_planted_dependency_is_caught() {
        let metadata = json!({ "packages": [
            { "name": "good", "version": "1.0.0", "license": "MIT OR Apache-2.0" },
            { "name": "copyleft", "version": "2.0.0", "license": "AGPL-3.0-only" },
            { "name": "silent", "version": "3.0.0", "license": null },
        ]});
        let (count, findings) = check(&metadata).expect("has packages");
        assert_eq!(count, 3);
        let named: Vec<&str> = findings
            .iter()
            .map(|finding| finding.path.as_str())
            .collect();
        assert_eq!(named, ["copyleft 2.0.0", "silent 3.0.0"]);
        assert!(check(&json!({})).is_err());
    }
}
