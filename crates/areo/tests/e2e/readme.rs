//! The tours of the README and of `docs/tour.md` do what they promise.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::Cluster;
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The `areo` commands of a document's console blocks, and what prepares files for them, in their order.
fn commands(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let command = |line: &str| line.strip_prefix("$ ").map(str::to_owned);
    let of_this_program = |line: &String| !line.starts_with("cargo ");
    text.lines()
        .filter_map(command)
        .filter(of_this_program)
        .collect()
}

#[test]
fn the_tours_work() {
    let cluster = Cluster::start(&[]);
    let binary = Path::new(env!("CARGO_BIN_EXE_areo")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let (short, long) = (commands("README.md"), commands("docs/tour.md"));
    assert!(short.len() == 8 && long.len() >= 25, "{short:?} {long:?}");
    let before = names_in(cluster.folder());
    for command in short.into_iter().chain(long) {
        let run = Command::new("sh")
            .args(["-c", &command])
            .current_dir(cluster.folder())
            .env("PATH", &path)
            .env("AREO_CLUSTER", cluster.file())
            .env("AREO_CONFIG", "")
            .env("XDG_STATE_HOME", cluster.folder())
            .env("XDG_CACHE_HOME", cluster.folder())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{command}: {error}");
        if command == "areo get greetings/hello" {
            assert_eq!(run.stdout, b"hello, quorum\n");
        }
    }
    let ignored = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    let mut left = names_in(cluster.folder());
    // What the variables above name.
    left.retain(|name| !before.contains(name) && name != "areo");
    assert!(
        left.contains("hello.txt") && left.contains("site"),
        "{left:?}"
    );
    for name in left {
        let line = format!("/{name}");
        assert!(
            ignored.lines().any(|it| it == line),
            "{name} would stay in the tree, untracked"
        );
    }
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let name = |file: std::io::Result<DirEntry>| file.unwrap().file_name().into_string().unwrap();
    files.map(name).collect()
}
