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
fn experiments_are_repeated_in_virtual_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("s2.html");
    let html = ["--html", page.to_str().expect("it is text")];
    let report = line("measure S2 --scale quick --json", &html).done();
    let report = report.objects().remove(0);
    let laws = report["laws"].as_array().expect("a list");
    assert!(laws.len() > 10, "{report}");
    assert!(laws.iter().all(|law| law["holds"] == true), "{report}");
    assert!(page.metadata().expect("it is there").len() > 1000);
    let restart = line("measure S4 --scale quick --json", &[]).done();
    let restart = restart.objects().remove(0);
    let writes = &restart["points"][0]["values"]["restart_writes"]["min"];
    assert!(
        writes.as_f64().is_some_and(|writes| writes > 1.0),
        "{restart}"
    );
    let stabilization = line("measure stabilization --scale quick --json", &[]).done();
    let stabilization = stabilization.objects().remove(0);
    assert_eq!(stabilization["laws"][0]["holds"], true, "{stabilization}");
    line("measure S9", &[]).refused(2, &["S9", "J1", "S4", "stabilization"]);
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
