//! The README's tour does what it says.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::Cluster;
use std::path::Path;
use std::process::Command;

/// The commands of the README's tour, in their order.
fn tour() -> Vec<String> {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, tour) = readme
        .split_once("## A tour in 60 seconds")
        .expect("the README has a tour");
    let (tour, _) = tour.split_once("\n## ").expect("and something after it");
    let command = |line: &str| line.strip_prefix("$ ").map(str::to_owned);
    tour.lines().filter_map(command).collect()
}

#[test]
fn the_tour_of_the_readme_works() {
    let cluster = Cluster::start(&[]);
    let binary = Path::new(env!("CARGO_BIN_EXE_areo")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let commands = tour();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let run = Command::new("sh")
            .args(["-c", &command])
            .current_dir(cluster.folder())
            .env("PATH", &path)
            .env("AREO_CLUSTER", cluster.file())
            .env("AREO_CONFIG", "")
            .env("XDG_STATE_HOME", cluster.folder())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{command}: {error}");
        if command == "areo get greetings/hello" {
            assert_eq!(run.stdout, b"hello, quorum\n");
        }
    }
}
