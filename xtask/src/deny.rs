//! Dependencies, by `cargo-deny` and the rules of `deny.toml`: licences, sources, wildcards; and known vulnerabilities.

use crate::workspace::Workspace;
use std::path::PathBuf;
use std::process::Command;

/// The version that is built where none is on the PATH.
const VERSION: &str = "0.20.2";
/// Where it is built, once.
const TOOLS: &str = "target/tools";
/// It is run three times: what makes it faster takes longer to compile than it saves.
const QUICKLY: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
];
/// The workspace, and what is outside of it.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "peers/Cargo.toml", "fuzz/Cargo.toml"];

/// Checks licences, bans and sources of every dependency.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    check(workspace, &["licenses", "bans", "sources"])
}

/// Looks for known vulnerabilities of dependencies; fetches the list of them.
pub(crate) fn advisories(workspace: &Workspace) -> Result<(), String> {
    check(workspace, &["advisories"])
}

fn check(workspace: &Workspace, what: &[&str]) -> Result<(), String> {
    let program = program(workspace)?;
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

/// The one on the PATH, or one that is built now.
fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let built = workspace.root().join(TOOLS).join("bin");
    let folders = std::env::split_paths(&path).chain([built.clone()]);
    let mut found = folders.map(|folder| folder.join("cargo-deny"));
    if let Some(program) = found.find(|program| program.is_file()) {
        return Ok(program);
    }
    println!("there is no cargo-deny on the PATH: it is built, once");
    let install = ["install", "--locked", "--root", TOOLS, "--version", VERSION];
    workspace.cargo(&[&install[..], &["cargo-deny"]].concat(), &QUICKLY)?;
    Ok(built.join("cargo-deny"))
}
