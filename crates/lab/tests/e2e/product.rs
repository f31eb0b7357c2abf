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

/// Crates that the product does not consist of.
const OTHERS: [&str; 5] = ["bench", "check", "fuzzing", "lab", "sim"];

/// Whether none of its sources is newer. Cargo lists them where the product was built by itself, and not where it was built for
/// tests. `None`: nothing was built yet.
fn is_current(folder: &Path) -> Option<bool> {
    let built = changed(&folder.join("areo"))?;
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let its = fs::read_dir(crates).ok()?.flatten();
    let mut its = its.filter(|of| !OTHERS.iter().any(|other| of.file_name() == **other));
    Some(its.all(|of| is_older(&of.path(), built)))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn is_older(path: &Path, than: SystemTime) -> bool {
    match fs::read_dir(path) {
        Ok(inner) => inner.flatten().all(|of| is_older(&of.path(), than)),
        Err(_) => changed(path).is_some_and(|at| at <= than),
    }
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
