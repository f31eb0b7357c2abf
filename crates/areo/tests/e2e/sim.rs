//! The simulator from the command line.

use crate::cluster::areo;

#[test]
fn seeds_run_and_can_be_run_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let history = directory.path().to_str().expect("its name is text");
    let run = areo(
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

    let replay = areo(
        &["sim", "replay", "1", "--ops", "50", "--history", history],
        b"",
    )
    .done();
    assert!(replay.text().contains("request"), "{}", replay.text());
    let file = directory.path().join("sim-1.jsonl");
    let file = file.to_str().expect("its name is text");
    areo(&["check", file], b"").done();

    areo(&["sim", "run", "--seeds", "many"], b"").refused(2, &["many"]);
    areo(
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
    areo(&[&pct[..], &["--history", history]].concat(), b"").done();
}

#[test]
fn every_schedule_of_a_small_case_is_followed() {
    let list = areo(&["sim", "explore"], b"").done();
    assert!(list.text().contains("one-round-read-unconfirmed"));
    let explored = areo(
        &["sim", "explore", "one-round-read-unconfirmed", "--json"],
        b"",
    )
    .done();
    let summary = &explored.objects()[0];
    assert_eq!(summary["exhaustive"], true);
    assert_eq!(summary["violation"], serde_json::Value::Null);
    let few = areo(&["sim", "explore", "abd-3", "--states", "9", "--json"], b"").done();
    assert_eq!(few.objects()[0]["exhaustive"], false);
    areo(&["sim", "explore", "nothing"], b"").refused(2, &["nothing", "abd-3"]);
}
