//! `cargo xtask fix`: the only command that writes.

use crate::workspace::Workspace;

/// Formats, applies clippy's machine-applicable suggestions, formats what those wrote.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    workspace.cargo(&["fmt", "--all"], &[])?;
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
    workspace.cargo(&["fmt", "--all"], &[])
}
