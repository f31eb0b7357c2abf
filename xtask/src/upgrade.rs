//! `cargo xtask upgrade`: the product, and the product as a next version would be, in one cluster under load, by `xtask/upgrade.py`.

use crate::workspace::Workspace;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The script, below the workspace.
const SCRIPT: &str = "xtask/upgrade.py";

/// Builds both programs and runs the script with them. The second build compiles the crate `areo` alone.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let metadata = workspace.own_metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = Path::new(target.ok_or("`cargo metadata` names no target directory")?);
    let place = target.join("upgrade");
    let cannot = |error| format!("cannot write to {}: {error}", place.display());
    fs::create_dir_all(&place).map_err(cannot)?;
    let build = ["build", "--profile", "verify", "--locked", "-p", "areo"];
    let next = [&build[..], &["--features", "next-version"]].concat();
    let programs = [("next", &next[..]), ("old", &build)].map(|(name, arguments)| {
        workspace.cargo(arguments, &[])?;
        let copy = place.join(name);
        fs::copy(target.join("verify/areo"), &copy).map_err(cannot)?;
        Ok::<_, String>(copy)
    });
    let [next, old] = programs;
    let status = Command::new("python3")
        .arg(workspace.root().join(SCRIPT))
        .args([old?, next?])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start python3: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("an operation failed, or a step above was not as it should be".to_owned()),
    }
}
