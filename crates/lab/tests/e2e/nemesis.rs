//! Real processes under a nemesis, from the command line.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::{signal, spawn, wait_until};
use crate::{lab, line};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Processes whose command line names this folder.
fn processes_in(folder: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let line = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    let lines = processes.filter_map(line);
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(folder))
        .count()
}

/// Leaves out one acknowledged write whose value was read.
fn without_one_write(history: &str) -> String {
    let events: Vec<Value> = history
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is =
        |event: &Value, what: &str, kind: &str| event["event"] == what && event["kind"] == kind;
    let acknowledged = |value: &Value| {
        let is_this = |event: &Value| is(event, "ok", "write") && event["value"] == *value;
        events.iter().any(is_this)
    };
    let read = events
        .iter()
        .find(|event| is(event, "ok", "read") && acknowledged(&event["value"]));
    let value = &read.expect("a value of an acknowledged write was read")["value"];
    let lost = |event: &Value| event["kind"] == "write" && event["value"] == *value;
    let kept = history
        .lines()
        .zip(&events)
        .filter(|(_, event)| !lost(event));
    let kept: Vec<&str> = kept.map(|(line, _)| line).collect();
    kept.join("\n")
}

/// A reconfigurer says that another configuration was decided than other clients know at that index.
fn with_another_configuration(history: &str) -> String {
    let decided = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let installed = event["kind"] == "reconfig" && event["event"] == "ok";
        let name = event["value"].as_str().filter(|_| installed)?.to_owned();
        let domain = format!("\"domain\":{}", event["domain"]);
        let entry = format!(
            "\"index\":{},\"configuration\":\"{name}\"",
            event["version"]
        );
        let knows = |line: &str| line.contains(&domain) && line.contains(&entry);
        history.lines().any(knows).then_some(name)
    };
    let mut lines = history.lines();
    let found = lines.find_map(|line| decided(line).map(|name| (line, name)));
    let (line, name) = found.expect("somebody knew what was installed");
    history.replacen(line, &line.replacen(&name, "abd s9", 1), 1)
}

#[test]
fn promises_are_kept_under_a_nemesis_and_a_lost_write_would_be_seen() {
    let (data, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let history = path(&place.path().join("history.jsonl"));
    let data_path = path(data.path());
    let kept = ["--history", &history, "--data", &data_path];
    let run = line("nemesis --seconds 20 --seed 7 --json", &kept);
    assert_eq!(run.code, 0, "{} {}", run.stderr, run.text());
    let report = &run.objects()[0];
    assert_eq!(report["verdict"], "holds");
    assert!(report["kills"].as_u64().unwrap() > 0, "{report}");
    let troubles = report["troubles"].as_array().unwrap();
    let partition = troubles.iter().find(|t| t["trouble"] == "partition");
    assert!(partition.unwrap()["times"].as_u64().unwrap() > 0);
    for kind in ["reconfigure", "abandon"] {
        let changed = troubles.iter().find(|t| t["trouble"] == kind);
        assert!(changed.unwrap()["times"].as_u64().unwrap() > 0, "{report}");
    }
    assert_eq!(entries(data.path()), 0, "nothing is left behind");
    assert_eq!(processes_in(&data_path), 0);

    let judged = line("check", &[&history]).done();
    assert!(judged.text().contains("linearizable"), "{}", judged.text());
    assert!(
        judged.text().contains("configurations    holds"),
        "{}",
        judged.text()
    );
    let history = fs::read_to_string(&history).unwrap();
    let violation = |doctored: &str| {
        let judged = lab(&["check", "-"], doctored.as_bytes());
        assert_eq!(judged.code, 1);
        assert!(judged.text().contains("VIOLATED"), "{}", judged.text());
        judged.text().to_owned()
    };
    violation(&without_one_write(&history));
    let said = violation(&with_another_configuration(&history));
    assert!(said.contains("uniqueness: index"), "{said}");
}

#[test]
fn an_interrupted_nemesis_leaves_nothing_behind() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let kinds = ["--kinds", "stop,kill,full-disk"];
    let mut nemesis = spawn(&[&["nemesis", "--data", path], &kinds[..]].concat());
    // Its own command line, and those of five servers.
    wait_until(|| processes_in(path) >= 6);
    signal(nemesis.id().try_into().unwrap(), Signal::INT);
    assert_eq!(nemesis.wait().unwrap().code(), Some(130));
    assert_eq!(entries(data.path()), 0);
    wait_until(|| processes_in(path) == 0);
}

#[test]
fn what_cannot_be_done_is_one_sentence() {
    let nemesis = |more: &[&str]| line("nemesis", more);
    nemesis(&["--kinds", "quake"]).refused(2, &["'quake' is no kind of trouble", "kill-all"]);
    nemesis(&["--servers", "2"]).refused(2, &["2", "3..=32"]);
    nemesis(&["--seconds", "0"]).refused(2, &["0"]);
    nemesis(&["--data", "/no/such/place"]).refused(2, &["/no/such/place", "no directory"]);
    nemesis(&["--history", "/no/such/place/h"]).refused(1, &["/no/such/place/h", "no such file"]);
}
