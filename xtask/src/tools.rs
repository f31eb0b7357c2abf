//! Programs of others that a command needs: those on the PATH, or built once into `target/tools`.

use crate::workspace::Workspace;
use std::path::PathBuf;

/// The folder that they are built in.
const TOOLS: &str = "target/tools";
/// They run seldom: what makes them faster takes longer to compile than it saves.
const QUICKLY: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
];

/// The program of the crate of this name: the one on the PATH, or this version, which is built now.
pub(crate) fn program(workspace: &Workspace, name: &str, version: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let built = workspace.root().join(TOOLS).join("bin");
    let folders = std::env::split_paths(&path).chain([built.clone()]);
    let mut found = folders.map(|folder| folder.join(name));
    if let Some(program) = found.find(|program| program.is_file()) {
        return Ok(program);
    }
    println!("there is no {name} on the PATH: it is built, once");
    let install = [
        "install",
        "--locked",
        "--root",
        TOOLS,
        "--version",
        version,
        name,
    ];
    workspace.cargo(&install, &QUICKLY)?;
    Ok(built.join(name))
}
