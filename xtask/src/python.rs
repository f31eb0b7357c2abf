//! `cargo xtask python`: the package for Python as a wheel, tested in a fresh virtual environment against a cluster, by `python/test.sh`.

use crate::clients;
use crate::workspace::Workspace;
use std::process::{Command, Stdio};

/// The native module, outside the workspace.
pub(crate) const MANIFEST: &str = "python/Cargo.toml";

/// Builds the product, and runs the script.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let build = ["build", "--profile", "verify", "--locked", "-p", "areo"];
    workspace.cargo(&build, &[])?;
    let mut testing = Command::new("bash");
    testing
        .arg(workspace.root().join("python/test.sh"))
        .env("PYTHON_TEST_PROGRAM", clients::program(workspace)?)
        .stdin(Stdio::null());
    let status = testing.status();
    let status = status.map_err(|error| format!("cannot start bash: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("the step that is named above last failed".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::path::Path;

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::read_to_string(root.join(path)).unwrap()
    }

    /// The values of this key, in order.
    fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
        let of_key = |line: &'a str| line.strip_prefix(key)?.strip_prefix(" = ");
        text.lines().filter_map(of_key).collect()
    }

    #[test]
    fn the_package_has_the_version_of_the_workspace() {
        let (workspace, package) = (read("Cargo.toml"), read("python/Cargo.toml"));
        for key in ["version", "edition", "rust-version", "license"] {
            let expected = values(&workspace, key);
            assert!(!expected.is_empty());
            assert_eq!(values(&package, key), expected, "{key}");
        }
    }

    #[test]
    fn what_pip_installs_is_pinned() {
        for file in ["requirements-build.txt", "requirements-test.txt"] {
            let text = read(&format!("python/{file}"));
            assert!(text.lines().all(|line| line.contains("==")), "{file}");
        }
    }
}
