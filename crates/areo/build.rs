//! Says which commit this is built from, so that a seed can be run again on the same source. Without git it is unknown.

use std::path::Path;

fn main() {
    let git = Path::new("../../.git");
    let head = git.join("HEAD");
    println!("cargo::rerun-if-changed=build.rs");
    println!(
        "cargo::rustc-env=BUILD_COMMIT={}",
        commit(git, &head).unwrap_or("unknown".into())
    );
}

fn commit(git: &Path, head: &Path) -> Option<String> {
    let content = std::fs::read_to_string(head).ok()?;
    println!("cargo::rerun-if-changed={}", head.display());
    let Some(name) = content.trim().strip_prefix("ref: ") else {
        return Some(content.trim().into());
    };
    let branch = git.join(name);
    // A branch that was packed has no file of its own until its next commit.
    let hash = std::fs::read_to_string(&branch).ok()?;
    println!("cargo::rerun-if-changed={}", branch.display());
    Some(hash.trim().into())
}
