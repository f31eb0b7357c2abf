//! Dependencies, by `cargo-deny` and the rules of `deny.toml`: licences, sources, wildcards; and known vulnerabilities.

use crate::python;
use crate::tools;
use crate::workspace::Workspace;
use std::process::Command;

/// The version that is built where none is on the PATH.
const VERSION: &str = "0.20.2";
/// The manifests of the workspace, and of the packages outside of it.
const MANIFESTS: [&str; 4] = [
    "Cargo.toml",
    "peers/Cargo.toml",
    "fuzz/Cargo.toml",
    python::MANIFEST,
];

/// Checks licences, bans and sources of every dependency.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    check(workspace, &["licenses", "bans", "sources"])
}

/// Looks for known vulnerabilities of dependencies; fetches the list of them.
pub(crate) fn advisories(workspace: &Workspace) -> Result<(), String> {
    check(workspace, &["advisories"])
}

fn check(workspace: &Workspace, what: &[&str]) -> Result<(), String> {
    let program = tools::program(workspace, "cargo-deny", VERSION)?;
    for manifest in MANIFESTS {
        println!("{manifest}:");
        let mut command = Command::new(&program);
        command.current_dir(workspace.root());
        command.args(["--locked", "--config", "deny.toml", "--manifest-path"]);
        command
            .args([manifest, "check", "--hide-inclusion-graph"])
            .args(what);
        let status = command.status();
        let status = status.map_err(|error| format!("cannot start cargo-deny: {error}"))?;
        if !status.success() {
            return Err(format!("cargo-deny refuses a dependency of {manifest}"));
        }
    }
    Ok(())
}
