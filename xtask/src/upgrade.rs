//! `cargo xtask upgrade`: the product, and the product as a next version would be, in one cluster under load, by `xtask/upgrade.py`.

use crate::clients;
use crate::workspace::Workspace;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The script, below the workspace.
const SCRIPT: &str = "xtask/upgrade.py";

/// Builds both programs and runs the script with them. The second build compiles the crate `areo` alone.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let build = ["build", "--profile", "verify", "--locked", "-p", "areo"];
    let next = copied(
        workspace,
        "next",
        &[&build[..], &["--features", "next-version"]].concat(),
    )?;
    // The product comes last, so that it is what stays in `target/verify`.
    let old = copied(workspace, "old", &build)?;
    let status = Command::new("python3")
        .arg(workspace.root().join(SCRIPT))
        .args([old, next])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start python3: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("an operation failed, or a step above was not as it should be".to_owned()),
    }
}

/// Builds the program, and copies it to a place of its own.
fn copied(workspace: &Workspace, name: &str, build: &[&str]) -> Result<PathBuf, String> {
    workspace.cargo(build, &[])?;
    let program = clients::program(workspace)?;
    let target = program.ancestors().nth(2).expect("it is in target/verify");
    let place = target.join("upgrade");
    let copy = place.join(name);
    let cannot = |error| format!("cannot write to {}: {error}", place.display());
    fs::create_dir_all(&place).map_err(cannot)?;
    fs::copy(&program, &copy).map_err(cannot)?;
    Ok(copy)
}
