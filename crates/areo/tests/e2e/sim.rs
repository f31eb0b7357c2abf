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
}
