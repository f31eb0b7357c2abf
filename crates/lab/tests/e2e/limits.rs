//! The limits of the machine, and pages drawn again. No duration is asserted.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn the_machine_is_measured() {
    let measured = line("bench limits --json --runs 2 --time 5ms", &[]).done();
    let report = measured.objects().remove(0);
    let limits = report["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 6);
    for limit in limits {
        assert!(limit["takes"]["median"].as_f64().unwrap() > 0.0, "{limit}");
    }
    line("bench limits --data /nowhere", &[]).refused(2, &["no directory"]);
    line("bench limits --time 0s", &[]).refused(2, &["0s"]);
}

#[test]
fn what_was_not_printed_here_is_not_drawn() {
    let report = |file: &str| line("bench report", &[file, "--html", "/dev/null"]);
    report("/nowhere/at/all").refused(1, &["/nowhere/at/all"]);
    report("/dev/null").refused(1, &["/dev/null", "areo-peers --json"]);
}
