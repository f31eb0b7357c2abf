//! `crates/core/clippy.toml` keeps the world out of `core`: clippy with that file must catch planted violations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of code that has no place in `core`, and the path that clippy must name.
const PLANTED: &[(&str, &str)] = &[
    ("let _ = std::time::Instant::now();", "std::time::Instant"),
    (
        "let _ = std::time::SystemTime::now();",
        "std::time::SystemTime",
    ),
    (
        "let _ = std::collections::HashMap::<u8, u8>::new();",
        "std::collections::HashMap",
    ),
    (
        "let _ = std::collections::HashSet::<u8>::new();",
        "std::collections::HashSet",
    ),
    (
        "let _ = std::hash::RandomState::new();",
        "std::hash::RandomState",
    ),
    ("let _ = std::fs::File::open(\"a\");", "std::fs::File"),
    ("let _ = std::fs::read(\"a\");", "std::fs::read"),
    (
        "let _ = std::net::TcpStream::connect(\"a\");",
        "std::net::TcpStream",
    ),
    ("let _ = std::sync::Mutex::new(1);", "std::sync::Mutex"),
    ("let _ = std::sync::RwLock::new(1);", "std::sync::RwLock"),
    ("let _ = std::thread::spawn(|| {});", "std::thread::spawn"),
    (
        "std::thread::sleep(std::time::Duration::ZERO);",
        "std::thread::sleep",
    ),
    ("let _ = std::env::var(\"A\");", "std::env::var"),
    ("println!(\"a\");", "std::println"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_path_buf()
}

fn clippy_on(lines: &[&str]) -> String {
    let home = tempfile::tempdir().expect("a temporary directory");
    let manifest = "[package]\nname = \"planted\"\nedition = \"2024\"\n\n[workspace]\n";
    let body = lines.join("\n    ");
    fs::create_dir(home.path().join("src")).expect("creates");
    fs::write(home.path().join("Cargo.toml"), manifest).expect("writes");
    fs::write(
        home.path().join("src/lib.rs"),
        format!("pub fn f() {{\n    {body}\n}}\n"),
    )
    .expect("writes");
    fs::copy(
        root().join("crates/core/clippy.toml"),
        home.path().join("clippy.toml"),
    )
    .expect("copies");
    let output = Command::new(env!("CARGO"))
        .current_dir(home.path())
        .env("CARGO_TARGET_DIR", home.path().join("target"))
        .args(["clippy", "--offline", "--quiet", "--color", "never"])
        .output()
        .expect("cargo starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "the planted crate compiles: {told}"
    );
    told
}

#[test]
fn planted_violations_are_caught() {
    let lines: Vec<&str> = PLANTED.iter().map(|(line, _)| *line).collect();
    let told = clippy_on(&lines);
    for (line, path) in PLANTED {
        assert!(
            told.contains(&format!("`{path}`")),
            "clippy must name {path} for `{line}`:\n{told}"
        );
    }
}

#[test]
fn pure_code_is_not_caught() {
    let told = clippy_on(&[
        "let _ = std::collections::BTreeMap::<u8, u8>::new();",
        "let _ = vec![1].iter().max();",
    ]);
    assert!(!told.contains("disallowed"), "{told}");
}

#[test]
fn the_keys_of_the_root_hold_in_core_too() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("exists");
    let (outer, inner) = (read("clippy.toml"), read("crates/core/clippy.toml"));
    for line in outer.lines().filter(|line| line.contains(" = ")) {
        assert!(
            inner.lines().any(|other| other == line),
            "crates/core/clippy.toml lacks `{line}`"
        );
    }
}
