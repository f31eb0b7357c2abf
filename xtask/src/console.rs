//! `cargo xtask console`: the pages of the console in Chromium, against a cluster on this machine, by `crates/console/browser/main.js`.

use crate::clients;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tests, below the workspace.
const TESTS: &str = "crates/console/browser";
/// The folder of the pictures that `docs/console.md` shows.
const PICTURES: &str = "docs/console";
/// The names of the browser, by system.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// Installs what is missing, builds the product, and runs the tests; the option has them write the pictures of the documentation.
pub(crate) fn run(workspace: &Workspace, option: Option<&str>) -> Result<(), String> {
    let place = workspace.root().join(TESTS);
    install_packages(&place)?;
    let browser = browser()?;
    let build = ["build", "--profile", "verify", "--locked", "-p", "areo"];
    workspace.cargo(&build, &[])?;
    let mut tests = Command::new("node");
    tests.args(["--test-reporter=spec", "main.js"]);
    tests.current_dir(&place).stdin(Stdio::null());
    tests.env("AREO", clients::program(workspace)?);
    tests.env("CHROMIUM", browser);
    if option.is_some() {
        tests.env("SCREENSHOTS", workspace.root().join(PICTURES));
    }
    match is_done(&mut tests)? {
        true => Ok(()),
        false => Err("a test above failed".to_owned()),
    }
}

/// Installs the packages of the tests, unless they are those of the lock file.
fn install_packages(place: &Path) -> Result<(), String> {
    if on_path(&["node"]).is_none() || on_path(&["npm"]).is_none() {
        return Err("the tests need Node.js 20 or newer with npm: install both".to_owned());
    }
    let cannot = |error: std::io::Error| format!("cannot write to {}: {error}", place.display());
    let wanted = fs::read(place.join("package-lock.json")).map_err(cannot)?;
    let modules = place.join("node_modules");
    let installed = modules.join("installed.json");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    if !is_done(npm.current_dir(place))? {
        return Err("npm did not install the packages of the tests".to_owned());
    }
    // `cargo xtask tidy` and backups pass over directories with this file.
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    fs::write(modules.join("CACHEDIR.TAG"), tag).map_err(cannot)?;
    fs::write(installed, wanted).map_err(cannot)
}

/// Chromium: the one on the PATH, or that of Debian, which root has apt install.
fn browser() -> Result<PathBuf, String> {
    if let Some(found) = on_path(&BROWSERS) {
        return Ok(found);
    }
    let user = Command::new("id").arg("-u").output();
    let is_root = user.is_ok_and(|it| it.stdout == b"0\n");
    if is_root && on_path(&["apt-get"]).is_some() {
        let mut apt = Command::new("apt-get");
        apt.args(["install", "-y", "--no-install-recommends", "chromium"]);
        is_done(&mut apt)?;
    }
    on_path(&BROWSERS).ok_or_else(|| {
        "the tests need Chromium on the PATH: on Debian, `sudo apt-get install chromium`".to_owned()
    })
}

/// The first of these programs that is on the PATH.
fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path);
    let mut programs = folders.flat_map(|folder| names.iter().map(move |it| folder.join(it)));
    programs.find(|program| program.is_file())
}

/// Runs a program; true if it succeeded.
fn is_done(command: &mut Command) -> Result<bool, String> {
    let status = command.status();
    let status = status.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    Ok(status.success())
}
