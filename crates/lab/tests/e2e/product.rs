//! The product that the laboratory starts.

use crate::{LABORATORY, command, line};
use std::fs;
use std::process::Command;

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
