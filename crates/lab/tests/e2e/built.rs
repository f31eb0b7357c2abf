//! The programs that tests of other packages start. Cargo builds them with the whole workspace, and not for the tests of one package.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::time::SystemTime;

/// Programs, each with the crates that it does not consist of.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("areo", &["bench", "check", "fuzzing", "lab", "sim"]),
    ("areo-lab", &["fuzzing"]),
];

/// The folder of the workspace that they are of.
pub(crate) fn root() -> &'static Path {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = above.find(|folder| folder.join("crates").is_dir());
    root.expect("this package is in it")
}

/// Builds the product and the laboratory in the folder of a profile, unless they are there and as new as their sources.
pub(crate) fn ensure(folder: &Path) {
    static ONCE: Once = Once::new();
    let is_there = |(program, others)| is_current(&folder.join(program), others).unwrap_or(false);
    ONCE.call_once(|| {
        if !PROGRAMS.into_iter().all(is_there) {
            build(folder);
        }
    });
}

/// True if none of its sources is newer. Cargo lists them where the program was built by itself, and not where it was built for tests; to build it
/// again by itself would compile what it consists of with other features. `None`: nothing was built yet.
fn is_current(program: &Path, others: &[&str]) -> Option<bool> {
    let built = changed(program)?;
    let its = fs::read_dir(root().join("crates")).ok()?.flatten();
    let mut its = its.filter(|of| !others.iter().any(|other| of.file_name() == **other));
    Some(its.all(|of| is_older(&of.path().join("src"), built)))
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
        // Together, so that what both consist of is compiled once.
        .args(["build", "--locked", "-p", "areo", "-p", "areo-lab"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .status();
    assert!(built.expect("cargo starts").success());
}
