//! Measuring reconfigurations, from the command line. How long anything takes is not asserted.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn no_operation_fails_while_a_domain_is_reconfigured() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let measure = |more: &[&str]| line(&format!("bench reconfig --seconds 5 --data {path}"), more);
    let place = tempfile::tempdir().unwrap();
    let history = place.path().join("history.jsonl");
    let history = history.to_str().unwrap();
    let more = ["--objects", "200", "--seed", "5", "--json", "--history"];
    let run = measure(&[&more[..], &[history]].concat()).done();
    let report = &run.objects()[0];
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["reconfigurations"], 20);
    for key in ["longest_gap_ms", "throughput_ratio", "batch_speedup"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report}");
    }
    for phase in ["without", "with"] {
        assert!(
            report[phase]["operations"].as_u64().unwrap() > 0,
            "{report}"
        );
    }
    // No trace of the configurations behind it; a second round only where a server lagged behind.
    let old = &report["behind"]["old"];
    assert_eq!(old["configurations"], 1.0, "{report}");
    assert!(old["rounds"].as_f64().unwrap() < 1.5, "{report}");
    assert!(std::fs::read_dir(path).unwrap().next().is_none());
    let judged = line("check --json", &[history]).done();
    let judged = &judged.objects()[0];
    assert_eq!(judged["verdict"], "holds", "{judged}");
    let mut counts = judged["counts"].as_array().unwrap().iter();
    let changes = counts.find(|of| of["kind"] == "reconfig").unwrap();
    assert_eq!(changes["ok"], 20, "{judged}");
}

#[test]
fn what_cannot_be_measured_is_one_sentence() {
    let measure = |more: &[&str]| line("bench reconfig", more);
    measure(&["--servers", "3"]).refused(2, &["3", "4..=32"]);
    measure(&["--size", "15"]).refused(2, &["16 bytes to 16MiB", "15"]);
    measure(&["--objects", "0"]).refused(2, &["0"]);
    measure(&["--data", "/no/such/place"]).refused(2, &["/no/such/place", "no directory"]);
}
