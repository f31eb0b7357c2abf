//! The simulator and the explorer from the command line.

use crate::line;

#[test]
fn seeds_run_and_can_be_run_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let history = ["--history", directory.path().to_str().expect("it is text")];
    let run = line(
        "sim run --seeds 3 --ops 50 --verify-replay --json",
        &history,
    )
    .done();
    let summary = &run.objects()[0];
    assert_eq!(summary["seeds"], 3);
    assert_eq!(summary["violations"], serde_json::json!([]));

    let replay = line("sim replay 1 --ops 50", &history).done();
    assert!(replay.text().contains("request"), "{}", replay.text());
    let file = directory.path().join("sim-1.jsonl");
    line("check", &[file.to_str().expect("its name is text")]).done();

    line("sim run --seeds many", &[]).refused(2, &["many"]);
    line("sim run --depth 3 --scheduler random", &[]).refused(2, &["pct"]);
    line("sim replay 1 --ops 20 --scheduler pct --depth 2", &history).done();
}

#[test]
fn every_schedule_of_a_small_case_is_followed() {
    let list = line("explore", &[]).done();
    assert!(list.text().contains("one-round-read-unconfirmed"));
    let explored = line("explore one-round-read-unconfirmed --json", &[]).done();
    let summary = &explored.objects()[0];
    assert_eq!(summary["exhaustive"], true);
    assert_eq!(summary["violation"], serde_json::Value::Null);
    let few = line("explore abd-3 --states 9 --json", &[]).done();
    assert_eq!(few.objects()[0]["exhaustive"], false);
    line("explore nothing", &[]).refused(2, &["nothing", "abd-3"]);
}
