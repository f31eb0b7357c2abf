//! The place of the workspace, and calls of cargo in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The workspace that contains the current directory.
///
/// Found at run time: a path compiled into the binary would be wrong for a second checkout that shares a
/// target directory.
pub(crate) struct Workspace {
    root: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// Asks cargo for the root of the workspace around the current directory.
    pub(crate) fn locate() -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(&cargo)
            .args(["locate-project", "--workspace", "--message-format", "plain"])
            .output()
            .map_err(|error| format!("cannot start cargo: {error}; install a Rust toolchain"))?;
        let manifest = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match Path::new(&manifest).parent() {
            Some(root) if output.status.success() => Ok(Self {
                root: root.to_path_buf(),
                cargo,
            }),
            _ => Err("no workspace here: run this inside the repository".to_owned()),
        }
    }

    /// The cargo that runs us.
    pub(crate) fn cargo_path(&self) -> &OsString {
        &self.cargo
    }

    /// Directory of the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs cargo in the root; its output goes straight to ours, because CI reads the lines of the test runner.
    pub(crate) fn cargo(
        &self,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(), String> {
        let status = Command::new(&self.cargo)
            .current_dir(&self.root)
            .args(arguments)
            .envs(environment.iter().copied())
            .status()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("`cargo {}` failed ({status})", arguments.join(" ")))
    }

    /// `cargo metadata` of our own crates. Resolves nothing, so it works while `Cargo.lock` is stale.
    pub(crate) fn own_metadata(&self) -> Result<Value, String> {
        self.metadata("--no-deps")
    }

    /// `cargo metadata` of everything that the lock file names.
    pub(crate) fn whole_metadata(&self) -> Result<Value, String> {
        self.metadata("--locked")
    }

    fn metadata(&self, option: &str) -> Result<Value, String> {
        let output = Command::new(&self.cargo)
            .current_dir(&self.root)
            .args(["metadata", "--format-version", "1", option])
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "`cargo metadata {option}` failed: {}",
                reason.trim()
            ));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`cargo metadata` wrote something that is not JSON: {error}"))
    }
}
