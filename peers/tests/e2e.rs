//! Measuring stores side by side, from the command line. How long anything takes is not asserted.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../crates/areo/tests/e2e/command.rs"]
#[allow(dead_code, reason = "other tests share it")]
mod command;

#[path = "../../crates/lab/tests/e2e/built.rs"]
mod built;

use command::{CommandOutput, on_the_path};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_areo-peers")
}

/// Folder of the product and the laboratory, built from these sources.
fn folder() -> PathBuf {
    let folder = built::root().join("target/verify");
    built::ensure(&folder);
    folder
}

/// Runs the program with the words of a line, and more of them.
fn peers(words: &str, more: &[&str]) -> CommandOutput {
    command::ended(prepared(words).args(more), b"")
}

fn prepared(words: &str) -> Command {
    let mut command = command::command();
    command.arg("--areo").arg(folder().join("areo"));
    command.args(words.split(' ').filter(|word| !word.is_empty()));
    command
}

/// Runs the laboratory program.
fn lab(arguments: &[&str]) -> CommandOutput {
    command::ended(command::of(folder().join("areo-lab")).args(arguments), b"")
}

const SMALL: &str = "--runs 1 --time 200ms --warm-up 50ms --objects 20 --clients 1,3";

/// This store, and of the others what is there.
fn stores() -> Vec<&'static str> {
    let mut stores = vec!["areo"];
    for (program, names) in [
        ("etcd", ["etcd"].as_slice()),
        ("redis-server", &["redis", "redis-wait"]),
    ] {
        match on_the_path(program) {
            true => stores.extend(names),
            false => eprintln!("not run: there is no {program} on the PATH"),
        }
    }
    stores
}

#[test]
fn stores_are_measured_in_turn_and_the_page_is_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let data = file("data");
    std::fs::create_dir(&data).unwrap();
    let (stores, csv, html) = (stores(), file("runs.csv"), file("page.html"));
    let targets = stores.join(",");
    let files = ["--csv", &csv, "--html", &html, "--data", &data];
    let run = peers(&format!("--json --targets {targets} {SMALL}"), &files).done();
    let report = run.objects().remove(0);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), stores.len() * 2 * 2);
    for point in points {
        let measured = &point["runs"][0];
        assert_eq!(measured["failed"], 0, "{point}");
        assert!(measured["operations"].as_u64().unwrap() > 0, "{point}");
        if point["target"] == "areo" {
            // A quiet read of what is at every server takes one round, a write two.
            let rounds = measured["rounds"].as_f64().unwrap();
            assert!((1.0..=4.0).contains(&rounds), "{point}");
        }
    }
    breakdowns(&report);
    assert_eq!(report["limits"].as_array().unwrap().len(), 6);
    let ratios = report["ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), (stores.len() - 1) * 4);
    assert!(
        report["command"]
            .as_str()
            .unwrap()
            .starts_with("areo-peers --areo")
    );
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 1 + points.len());
    // Nothing is left of the clusters.
    assert!(std::fs::read_dir(&data).unwrap().next().is_none());
    // The printed report makes an equal page.
    let (printed, again) = (file("printed.json"), file("again.html"));
    std::fs::write(&printed, serde_json::to_vec(&report).unwrap()).unwrap();
    lab(&["bench", "report", &printed, "--html", &again]).done();
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    assert!(read(&html).contains("breakdowns"));
    assert!(read(&html) == read(&again), "drawn again");
}

/// Checks the breakdowns of this store: the parts of each kind of operation make up its whole time.
fn breakdowns(report: &Value) {
    let of = report["breakdowns"].as_array().unwrap();
    assert_eq!(of.len(), 2 * 2, "{report}");
    for breakdown in of {
        assert_eq!(breakdown["target"], "areo");
        assert!(breakdown["operations"].as_u64().unwrap() > 0);
        let mean = breakdown["mean_us"].as_f64().unwrap();
        let parts = breakdown["parts"].as_array().unwrap().iter();
        let parts: Vec<f64> = parts.map(|part| part["us"].as_f64().unwrap()).collect();
        assert!(parts.iter().all(|us| *us >= 0.0), "{breakdown}");
        let all: f64 = parts.iter().sum();
        assert!((all - mean).abs() < mean * 1e-6, "{breakdown}");
        let sample = breakdown["sample"].as_array().unwrap();
        let whole = match breakdown["operation"].as_str().unwrap() {
            "put" => "areo.write",
            _ => "areo.read",
        };
        assert_eq!(sample[0]["name"], whole);
        let served = |span: &&Value| span["name"] == "server.access" && span["process"] != "client";
        // A quorum of three servers.
        assert!(sample.iter().filter(served).count() >= 2, "{breakdown}");
    }
}

#[test]
fn a_member_of_each_store_is_killed_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, again, printed) = (file("page.html"), file("again.html"), file("printed.json"));
    let targets = stores().join(",");
    let small = "--runs 1 --warm-up 50ms --objects 20 --clients 1,3 --operations get --time 50ms";
    let report = peers(
        &format!("--json --timeout 5s --kill 400ms {small}"),
        &["--targets", &targets, "--html", &html],
    );
    let report = report.done().objects().remove(0);
    let killed = report["killed"].as_array().unwrap();
    assert_eq!(killed.len(), stores().len());
    for seen in killed {
        let steps = seen["completions"].as_array().unwrap();
        assert_eq!((steps.len(), &seen["step_ms"]), (80, &10.into()), "{seen}");
        assert!(seen["per_second_before"].as_f64().unwrap() > 0.0, "{seen}");
        assert!(seen["killed_at_ms"].as_f64().unwrap() >= 400.0, "{seen}");
        // One of three is not missed, but by Redis, of which it was the master.
        match seen["target"].as_str().unwrap() {
            "areo" => assert_eq!(seen["failed"], 0, "{seen}"),
            "etcd" => assert!(seen["victim"].as_str().unwrap().contains("leader")),
            _ => assert!(seen["failed"].as_u64().unwrap() > 0, "{seen}"),
        }
    }
    std::fs::write(&printed, serde_json::to_vec(&report).unwrap()).unwrap();
    lab(&["bench", "report", &printed, "--html", &again]).done();
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    assert!(read(&html).contains("completions"));
    assert!(read(&html) == read(&again), "drawn again");
}

#[test]
fn what_clients_saw_while_a_store_was_reconfigured_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history.jsonl");
    let history = history.to_str().unwrap();
    let changing = "--runs 1 --warm-up 50ms --objects 20 --clients 1,3 --reconfigurers 2 --reconfigure-wait 10ms";
    let measured = format!("--json --targets areo --size 20KiB {changing}");
    let run = peers(&measured, &["--history", history]).done();
    let report = run.objects().remove(0);
    let runs = report["points"].as_array().unwrap().iter();
    let changes = runs.map(|point| point["runs"][0]["reconfigurations"].as_u64().unwrap());
    assert!(changes.sum::<u64>() > 0, "{report}");
    let judged = lab(&["check", history]).done();
    assert!(judged.text().contains("linearizable"), "{}", judged.text());
}

/// Every increment counts once, and clients put objects of their own; a store that is not asked to compare and set is left out.
#[test]
fn conditional_writes_are_measured_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, csv) = (file("page.html"), file("runs.csv"));
    let mut able = stores();
    able.retain(|store| ["areo", "etcd"].contains(store));
    able.splice(..1, ["areo-conditional", "areo-s3"]);
    let targets = format!("{},areo", able.join(","));
    let words = format!("--json --operations put-if,increment {SMALL} --targets {targets}");
    let run = peers(&words, &["--html", &html, "--csv", &csv]).done();
    let report = run.objects().remove(0);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), able.len() * 2 * 2);
    for point in points {
        let measured = &point["runs"][0];
        assert!(measured["operations"].as_u64().unwrap() > 0, "{point}");
        assert_eq!(measured["failed"], 0, "{point}");
        let counter = &measured["counter"];
        if point["operation"] == "increment" {
            assert!(measured["increment"]["p99_us"].as_f64().unwrap() > 0.0);
            assert_eq!(counter["done"], counter["count"], "{point}");
            assert_eq!(counter["unknown"], 0, "{point}");
        } else {
            assert!(counter.is_null() && measured["put"].is_object(), "{point}");
        }
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("increment"));
}

/// All objects of a size are listed, and are one entry of the level above; a store that is not asked by S3 is left out.
#[test]
fn listings_are_measured() {
    let words = "--json --operations list,list-folder --size 1KiB --objects 1100 --clients 2 --time 200ms --warm-up 0s --runs 1 --targets areo-s3,areo";
    let report = peers(words, &[]).done().objects().remove(0);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{report}");
    for point in points {
        let measured = &point["runs"][0];
        assert_eq!(measured["failed"], 0, "{point}");
        assert!(measured["list"]["count"].as_u64().unwrap() > 0, "{point}");
    }
}

/// A bucket of a real endpoint, whose credentials the `AWS_*` variables have.
const BUCKET: &str = "AREO_TEST_S3";

#[test]
fn a_bucket_that_is_there_is_measured() {
    let Ok(bucket) = std::env::var(BUCKET) else {
        eprintln!("not run: {BUCKET} does not say where a bucket is");
        return;
    };
    let targets = format!("--json --targets s3={bucket},areo {SMALL}");
    let report = peers(&targets, &[]).done().objects().remove(0);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2 * 2 * 2);
    for point in points {
        assert_eq!(point["runs"][0]["failed"], 0, "{point}");
        assert!(
            point["runs"][0]["operations"].as_u64().unwrap() > 0,
            "{point}"
        );
    }
    let missing = format!("{bucket}-that-is-not-there");
    peers("", &["--targets", &format!("s3={missing}")]).refused(1, &["cannot start s3"]);
    let listed = format!("--json --targets minio={bucket} --operations list,list-folder {SMALL}");
    let report = peers(&listed, &[]).done().objects().remove(0);
    assert_eq!(report["points"].as_array().unwrap().len(), 2 * 2);
}

/// Nodes of a real cluster in the order of `--targets`, whose commit logs are synced periodically.
const CASSANDRA: &str = "AREO_TEST_CASSANDRA";

#[test]
fn a_cassandra_that_runs_is_measured_and_its_transactions_are_linearizable() {
    let Ok(nodes) = std::env::var(CASSANDRA) else {
        eprintln!("not run: {CASSANDRA} does not say where a cluster is");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history.jsonl");
    let history = ["--history", history.to_str().unwrap()];
    for (way, history) in [("cassandra", &[][..]), ("cassandra-serial", &history[..])] {
        let targets = format!("{way}={nodes},areo");
        let run = peers(&format!("--json --targets {targets} {SMALL}"), history);
        let report = run.objects().remove(0);
        let points = report["points"].as_array().unwrap();
        assert_eq!(points.len(), 2 * 2 * 2);
        for point in points {
            let measured = &point["runs"][0];
            // Transactions that meet may be answered before their outcome is known.
            let failures = measured["failures"].as_array().unwrap().iter();
            let mut failures = failures.map(|sentence| sentence.as_str().unwrap());
            let is_unknown = |why: &str| way == "cassandra-serial" && why.contains("timeout");
            assert!(failures.all(is_unknown), "{point}");
            assert!(measured["operations"].as_u64().unwrap() > 0, "{point}");
        }
    }
    let judged = lab(&["check", history[1]]).done();
    assert!(judged.text().contains("linearizable"), "{}", judged.text());
}

#[test]
fn a_store_at_a_given_rate_does_no_more_than_that() {
    let open = "--json --targets areo --rate 100 --popularity zipf --operations get";
    let run = peers(&format!("{open} {SMALL}"), &[]).done();
    for point in run.objects()[0]["points"].as_array().unwrap() {
        let operations = point["runs"][0]["operations"].as_u64().unwrap();
        assert!((1..=21).contains(&operations), "{point}");
    }
}

#[test]
fn what_cannot_be_compared_is_one_sentence() {
    let peers = |more: &[&str]| peers("", more);
    peers(&["--targets", "mongo"]).refused(2, &["'mongo'", "redis-wait"]);
    peers(&["--popularity", "zipf:1"]).refused(2, &["exponent"]);
    peers(&["--targets", "s3"]).refused(2, &["s3=http://HOST:PORT/BUCKET"]);
    peers(&["--targets", "s3=ftp://h/b"]).refused(2, &["ftp://h/b", "http://HOST:PORT/BUCKET"]);
    peers(&["--targets", "s3=http://h"]).refused(2, &["no address of a bucket"]);
    peers(&["--targets", "etcd=http://h"]).refused(2, &["etcd", "no address"]);
    peers(&["--targets", "cassandra"]).refused(2, &["cassandra=HOST:PORT"]);
    peers(&["--targets", "cassandra-serial=h"]).refused(2, &["'h'", "HOST:PORT"]);
    peers(&["--targets", "areo,h:1"]).refused(2, &["'h:1'", "cassandra=HOST:PORT"]);
    peers(&["--targets", "cassandra=h:1,etcd,h:2"]).refused(2, &["'h:2'"]);
    peers(&["--targets", "cassandra=h:1,h:2", "--kill"]).refused(2, &["not ours to kill"]);
    peers(&["--targets", "cassandra=127.0.0.1:1"])
        .refused(1, &["cannot start cassandra", "127.0.0.1:1"]);
    let bucket = ["--targets", "s3=http://127.0.0.1:1/b"];
    peers(&[&bucket[..], &["--kill"]].concat()).refused(2, &["not ours to kill"]);
    let mut unsigned = prepared("");
    let unsigned = unsigned.env_remove("AWS_ACCESS_KEY_ID").args(bucket);
    command::ended(unsigned, b"").refused(1, &["cannot start s3", "AWS_ACCESS_KEY_ID"]);
    peers(&["--history", "/nowhere/at/all"]).refused(1, &["/nowhere/at/all"]);
    peers(&["--operations", "delete"]).refused(2, &["put-if", "increment"]);
    let counted = ["--operations", "increment", "--targets"];
    peers(&[&counted[..], &["areo,redis"]].concat()).refused(2, &["areo-conditional", "etcd"]);
    let recorded = ["areo-conditional", "--history", "h"];
    peers(&[&counted[..], &recorded].concat()).refused(2, &["--history", "increment"]);
    peers(&["--size", "65MiB"]).refused(2, &["64MiB", "65MiB"]);
    peers(&["--size", "1"]).refused(2, &["16 bytes"]);
    peers(&["--clients", "0"]).refused(2, &["0", "1..=1000"]);
    peers(&["--rate", "5", "--wait", "1ms"]).refused(2, &["--rate"]);
    peers(&["--kill", "0s"]).refused(2, &["0s"]);
    peers(&["--k", "2"]).refused(2, &["--dap ec"]);
    peers(&["--data", "/nowhere/at/all"]).refused(2, &["no directory"]);
    peers(&["--csv", "/nowhere/at/all"]).refused(1, &["/nowhere/at/all"]);
    let mut without = prepared("--targets etcd");
    let without = command::ended(without.env("PATH", "/nowhere"), b"");
    without.refused(
        1,
        &[
            "no program 'etcd' on the PATH",
            "peers/README.md",
            "--targets",
        ],
    );
}
