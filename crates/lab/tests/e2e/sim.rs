//! The simulator from the command line.

use crate::lab;

#[test]
fn seeds_run_and_can_be_run_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let history = directory.path().to_str().expect("its name is text");
    let run = lab(
        &[
            "sim",
            "run",
            "--seeds",
            "3",
            "--ops",
            "50",
            "--history",
            history,
            "--verify-replay",
            "--json",
        ],
        b"",
    )
    .done();
    let summary = &run.objects()[0];
    assert_eq!(summary["seeds"], 3);
    assert_eq!(summary["violations"], serde_json::json!([]));

    let replay = lab(
        &["sim", "replay", "1", "--ops", "50", "--history", history],
        b"",
    )
    .done();
    assert!(replay.text().contains("request"), "{}", replay.text());
    let file = directory.path().join("sim-1.jsonl");
    let file = file.to_str().expect("its name is text");
    lab(&["check", file], b"").done();

    lab(&["sim", "run", "--seeds", "many"], b"").refused(2, &["many"]);
    lab(
        &["sim", "run", "--depth", "3", "--scheduler", "random"],
        b"",
    )
    .refused(2, &["pct"]);
    let pct = [
        "sim",
        "replay",
        "1",
        "--ops",
        "20",
        "--scheduler",
        "pct",
        "--depth",
        "2",
    ];
    lab(&[&pct[..], &["--history", history]].concat(), b"").done();
}

#[test]
fn every_schedule_of_a_small_case_is_followed() {
    let list = lab(&["explore"], b"").done();
    assert!(list.text().contains("one-round-read-unconfirmed"));
    let explored = lab(&["explore", "one-round-read-unconfirmed", "--json"], b"").done();
    let summary = &explored.objects()[0];
    assert_eq!(summary["exhaustive"], true);
    assert_eq!(summary["violation"], serde_json::Value::Null);
    let few = lab(&["explore", "abd-3", "--states", "9", "--json"], b"").done();
    assert_eq!(few.objects()[0]["exhaustive"], false);
    lab(&["explore", "nothing"], b"").refused(2, &["nothing", "abd-3"]);
}
