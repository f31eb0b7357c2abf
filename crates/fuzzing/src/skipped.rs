//! Tests that cannot run on this machine. A skipped test passes, and the test runner hides its output: so these tests are also written to a
//! file, which `cargo xtask verify` shows at its end.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The variable with the file to which each skipped test appends a line.
const VARIABLE: &str = "TESTS_NOT_RUN";

/// Says that the calling test, or a part of it, is not run on this machine, and what is missing.
///
/// # Panics
/// The file that `TESTS_NOT_RUN` names cannot be written.
pub fn not_run(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("not run: {test}: {why}");
    if let Some(file) = std::env::var_os(VARIABLE) {
        note(Path::new(&file), test, why);
    }
}

fn note(file: &Path, test: &str, why: &str) {
    // One write, so that lines of tests that run at once do not mix.
    let line = format!("{test}: {why}\n");
    let mut options = File::options();
    let opened = options.create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("`cargo xtask verify` has made the folder");
}

#[test]
fn a_test_that_is_not_run_is_a_line_of_the_file() {
    let file = std::env::temp_dir().join(format!("areo-not-run-{}", std::process::id()));
    note(&file, "one", "there is no compiler");
    note(&file, "two", "it needs root");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("it is ours");
    assert_eq!(text, "one: there is no compiler\ntwo: it needs root\n");
}
