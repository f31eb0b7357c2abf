//! `cargo xtask fix`: the only command that writes.

use crate::python;
use crate::workspace::Workspace;

/// Formats, applies clippy's machine-applicable suggestions, formats what those wrote.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    format(workspace)?;
    workspace.cargo(
        &[
            "clippy",
            "--fix",
            "--workspace",
            "--all-targets",
            "--allow-dirty",
            "--allow-staged",
        ],
        &[],
    )?;
    format(workspace)
}

fn format(workspace: &Workspace) -> Result<(), String> {
    workspace.cargo(&["fmt", "--all"], &[])?;
    workspace.cargo(&["fmt", "--manifest-path", python::MANIFEST], &[])
}
