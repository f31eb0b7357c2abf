//! `cargo xtask layers`: dependencies point down only, between crates and between the modules of
//! `core` and of `client`; no files of a crate form a circle; and kinds of data access are named where they are at home.

mod circles;
mod crates;
mod kinds;
mod modules;
mod paths;

use crate::findings::report;
use crate::tree::Tree;
use crate::workspace::Workspace;

/// Checks both tables, circles of files, and who names kinds.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let metadata = workspace.own_metadata()?;
    let tree = Tree::read(workspace.root())?;
    let mut findings = crates::check(&metadata)?;
    findings.extend(modules::check(&tree));
    findings.extend(kinds::check(&tree));
    findings.extend(circles::check(&tree));
    report("layers", findings)?;
    println!("dependencies point down only");
    Ok(())
}
