//! Says which commit this is built from, of which day it is, and with which profile, so that a seed can be run again on the same source. Without git it is unknown.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = Path::new("../../.git");
    let head = git.join("HEAD");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=BUILD_VERSION={}", version());
    println!(
        "cargo::rustc-env=BUILD_COMMIT={}",
        commit(git, &head).unwrap_or("unknown".into())
    );
    println!(
        "cargo::rustc-env=BUILD_DATE={}",
        date().unwrap_or("unknown".into())
    );
    println!(
        "cargo::rustc-env=BUILD_PROFILE={}",
        profile().unwrap_or("unknown".into())
    );
}

/// The version of the package, or the next minor one.
fn version() -> String {
    let part = |name: &str| std::env::var(format!("CARGO_PKG_VERSION{name}")).unwrap_or_default();
    match std::env::var_os("CARGO_FEATURE_NEXT_VERSION") {
        Some(_) => {
            let minor: u64 = part("_MINOR").parse().unwrap_or_default();
            format!("{}.{}.0", part("_MAJOR"), minor + 1)
        }
        None => part(""),
    }
}

/// The day of the commit.
fn date() -> Option<String> {
    let git = Command::new("git")
        .args(["log", "-1", "--format=%cs"])
        .output();
    let shown = git.ok().filter(|git| git.status.success())?;
    let date = String::from_utf8(shown.stdout).ok()?;
    Some(date.trim().into())
}

/// The profile. Cargo says its name nowhere but in the path of what it builds: `<target>/<profile>/build/<package>/out`, and `debug` is `dev`.
fn profile() -> Option<String> {
    let out = std::env::var("OUT_DIR").ok()?;
    let name = Path::new(&out).ancestors().nth(3)?.file_name()?.to_str()?;
    Some(name.into())
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
