//! The product that these tests start. Cargo builds it with the whole workspace, and not for the tests of this crate alone.

use crate::{command, line};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::time::SystemTime;

pub(crate) const LABORATORY: &str = env!("CARGO_BIN_EXE_areo-lab");

/// Builds the product, unless it is there and as new as its sources.
pub(crate) fn ensure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let folder = Path::new(LABORATORY).parent().expect("it is in a folder");
        if !is_current(folder).unwrap_or(false) {
            build(folder);
        }
    });
}

/// Whether no source that cargo lists is newer. `None`: nothing was built yet.
fn is_current(folder: &Path) -> Option<bool> {
    let changed = |path: &Path| fs::metadata(path).ok()?.modified().ok();
    let built: SystemTime = changed(&folder.join("areo"))?;
    let listed = fs::read_to_string(folder.join("areo.d")).ok()?;
    let (_, sources) = listed.split_once(": ")?;
    let mut sources = sources.split_whitespace();
    Some(sources.all(|source| changed(Path::new(source)).is_some_and(|at| at <= built)))
}

fn build(folder: &Path) {
    let folder_name = folder.file_name().and_then(|name| name.to_str());
    let profile = match folder_name.expect("cargo names it") {
        "debug" => "dev",
        name => name,
    };
    let target = folder.parent().expect("all profiles are in one folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        // With the laboratory, so that what both consist of is compiled once.
        .args(["build", "--locked", "-p", "areo", "-p", "areo-lab"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .status();
    assert!(built.expect("cargo starts").success());
}

#[test]
fn the_product_is_named_or_beside_the_laboratory() {
    let named = line("bench reconfig --areo /no/such/program", &[]);
    named.refused(2, &["/no/such/program", "is no program"]);
    let folder = tempfile::tempdir().expect("a directory");
    let alone = folder.path().join("areo-lab");
    fs::copy(LABORATORY, &alone).expect("there is room");
    let alone = command::ended(Command::new(alone).arg("nemesis"), b"");
    alone.refused(
        2,
        &[
            "no `areo` in",
            "cargo build --release -p areo",
            "--areo PATH",
        ],
    );
}
