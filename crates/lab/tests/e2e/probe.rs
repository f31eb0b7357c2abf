//! `areo-lab probe s3`: stores with planted defects are convicted, each by the smallest set of operations, and sound ones are not.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "probe/responder.rs"]
mod responder;

use crate::command::{CommandOutput, command, ended, signal, wait_until};
use crate::program;
use responder::{Defect, Responder};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The probe with credentials.
fn probe(arguments: &[&str]) -> Command {
    let mut command = without_credentials(arguments);
    command.env("AWS_ACCESS_KEY_ID", "key");
    command.env("AWS_SECRET_ACCESS_KEY", "not a secret");
    command
}

fn without_credentials(arguments: &[&str]) -> Command {
    let mut command = command();
    for name in [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_PROFILE",
    ] {
        command.env_remove(name);
    }
    command.args(["probe", "s3"]).args(arguments);
    command
}

fn run(arguments: &[&str]) -> CommandOutput {
    ended(&mut probe(arguments), b"")
}

/// The report on a responder, which it must leave empty.
fn report(defect: Defect, code: i32) -> Value {
    let store = Responder::start(defect);
    let endpoint = store.endpoint();
    // One store by two names.
    let second = endpoint.replace("127.0.0.1", "localhost");
    let ran = run(&[&endpoint, &second, "--json", "--rounds", "2"]);
    assert_eq!(ran.code, code, "{defect:?}: {} {}", ran.stderr, ran.text());
    assert_eq!(
        store.contents(),
        (vec![], vec![]),
        "{defect:?} leaves something"
    );
    ran.objects().remove(0)
}

fn case<'a>(report: &'a Value, name: &str) -> &'a Value {
    let cases = report["cases"].as_array().unwrap();
    let found = cases.iter().find(|case| case["name"] == name);
    found.expect(name)
}

/// Names of the cases with this verdict.
fn with_verdict(report: &Value, verdict: &str) -> Vec<String> {
    let cases = report["cases"].as_array().unwrap().iter();
    let found = cases.filter(|case| case["verdict"] == verdict);
    found
        .map(|case| case["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Fails unless the case is convicted by so many operations, whose requests begin with these words, or one of several that `|` parts.
#[track_caller]
fn convicted(report: &Value, name: &str, words: &[&str]) {
    let case = case(report, name);
    assert_eq!(case["verdict"], "violated", "{case}");
    let operations = case["violations"][0]["operations"].as_array().unwrap();
    let requests = operations
        .iter()
        .map(|one| one["request"].as_str().unwrap());
    let requests: Vec<&str> = requests.collect();
    assert_eq!(requests.len(), words.len(), "{requests:?}");
    for (request, word) in requests.iter().zip(words) {
        let is_one = word.split('|').any(|word| request.starts_with(word));
        assert!(is_one, "{requests:?}");
    }
}

fn startup<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["startup_checks"].as_array().unwrap();
    &checks.iter().find(|check| check["name"] == name).unwrap()["verdict"]
}

const DRAWN_ALWAYS: usize = 11;

#[test]
fn a_sound_store_is_not_convicted() {
    let report = report(Defect::None, 0);
    assert_eq!(
        with_verdict(&report, "holds").len(),
        DRAWN_ALWAYS,
        "{report}"
    );
    assert_eq!(
        with_verdict(&report, "not-drawn"),
        ["minority-away", "quorum-away"]
    );
    assert_eq!(report["verdict"], "holds");
    for name in ["celld", "buzz", "ravel"] {
        assert_eq!(startup(&report, name), "holds", "{name}");
    }
    // One winner in each of the two rounds, and every other writer lost.
    let create = case(&report, "create-if-absent");
    assert_eq!(create["lost"], 14, "{create}");
    assert!(case(&report, "32-writers")["lost"].as_u64().unwrap() >= 4 * 31);
}

#[test]
fn a_store_that_ignores_conditions_is_convicted() {
    let report = report(Defect::IgnoresConditions, 1);
    convicted(&report, "four-writes", &["PUT", "PUT"]);
    convicted(&report, "create-if-absent", &["PUT", "PUT"]);
    convicted(&report, "compare-and-set", &["PUT", "PUT", "PUT"]);
    convicted(&report, "conditional-delete", &["PUT", "PUT", "DELETE"]);
    convicted(&report, "completion", &["COMPLETE", "COMPLETE"]);
    for name in ["celld", "buzz", "ravel"] {
        assert_eq!(startup(&report, name), "violated", "{name}");
    }
    assert_eq!(case(&report, "read-after-write")["verdict"], "holds");
}

#[test]
fn two_winners_are_convicted() {
    let report = report(Defect::TwoWinners, 1);
    // One after the other the conditions hold.
    assert_eq!(case(&report, "four-writes")["verdict"], "holds");
    convicted(&report, "create-if-absent", &["PUT", "PUT"]);
    convicted(&report, "compare-and-set", &["PUT", "PUT", "PUT"]);
    convicted(&report, "32-writers", &["PUT", "PUT"]);
    assert_eq!(startup(&report, "celld"), "holds");
    assert_eq!(startup(&report, "buzz"), "violated");
}

#[test]
fn late_listings_are_convicted() {
    let report = report(Defect::ListsLate, 1);
    convicted(&report, "list-after-write", &["PUT", "LIST"]);
    assert_eq!(case(&report, "read-after-write")["verdict"], "holds");
    assert_eq!(case(&report, "compare-and-set")["verdict"], "holds");
}

#[test]
fn a_deletion_in_spite_of_if_match_is_convicted() {
    let report = report(Defect::DeletesAnyVersion, 1);
    assert_eq!(with_verdict(&report, "violated"), ["conditional-delete"]);
    convicted(&report, "conditional-delete", &["PUT", "PUT", "DELETE if"]);
}

#[test]
fn what_is_applied_twice_is_convicted() {
    let report = report(Defect::AppliesAgain, 1);
    assert_eq!(with_verdict(&report, "violated"), ["retry"]);
    convicted(&report, "retry", &["PUT", "PUT", "GET"]);
    let report = self::report(Defect::CompletesAgain, 1);
    assert_eq!(with_verdict(&report, "violated"), ["completion"]);
    convicted(&report, "completion", &["COMPLETE", "PUT", "GET"]);
}

#[test]
fn late_reads_are_convicted() {
    let report = report(Defect::ReadsLate, 1);
    // Which read is late first is chance.
    convicted(&report, "read-after-write", &["PUT", "GET|HEAD"]);
    convicted(&report, "create-if-absent", &["PUT", "GET|HEAD"]);
}

#[test]
fn a_store_where_nobody_wins_is_convicted() {
    let report = report(Defect::NobodyWins, 1);
    convicted(&report, "create-if-absent", &["PUT"]);
    convicted(&report, "compare-and-set", &["PUT", "PUT"]);
    convicted(&report, "conditional-delete", &["PUT", "DELETE"]);
}

#[test]
fn other_etags_and_pages_are_convicted() {
    let report = report(Defect::OtherEtags, 1);
    assert_eq!(with_verdict(&report, "violated"), ["etags"]);
    convicted(&report, "etags", &["PUT", "HEAD"]);
    let report = self::report(Defect::RepeatsKeys, 1);
    assert_eq!(with_verdict(&report, "violated"), ["listing-pages"]);
    convicted(&report, "listing-pages", &["LIST"]);
}

#[test]
fn a_refusal_is_honest_and_an_unknown_outcome_is_no_violation() {
    let refuses = report(Defect::RefusesConditions, 0);
    let refused = with_verdict(&refuses, "refused");
    for name in [
        "four-writes",
        "create-if-absent",
        "compare-and-set",
        "conditional-delete",
    ] {
        assert!(refused.iter().any(|one| one == name), "{refused:?}");
    }
    assert_eq!(startup(&refuses, "celld"), "refused");
    let knows_none = report(Defect::KnowsNoRequests, 0);
    assert_eq!(with_verdict(&knows_none, "not-offered"), ["retry"]);
    let loses = report(Defect::LosesAnswers, 0);
    assert!(case(&loses, "compare-and-set")["unknown"].as_u64().unwrap() > 0);
}

#[test]
fn the_verdict_is_a_text_a_page_and_a_history() {
    let store = Responder::start(Defect::TwoWinners);
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (page, history) = (path("verdict.html"), path("history.jsonl"));
    let ran = run(&[&store.endpoint(), "--html", &page, "--history", &history]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("violates create-if-absent"),
        "{}",
        ran.stderr
    );
    let text = ran.text();
    for word in [
        "create-if-absent    VIOLATED",
        "if absent",
        "Checks of others",
        "A run shows",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("VIOLATED"));
    for outside in ["<script", "src=", "href=", "http-equiv"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let judged = crate::line("check", &[&history]);
    assert_eq!(judged.code, 1, "{}", judged.text());
    assert!(judged.text().contains("one winner"), "{}", judged.text());
}

#[test]
fn keys_of_others_stay() {
    let store = Responder::start(Defect::None);
    store.make("theirs", "areo-probe");
    let ran = run(&[&store.endpoint(), "--bucket", "theirs", "--rounds", "1"]);
    assert_eq!(ran.code, 0, "{} {}", ran.stderr, ran.text());
    let left = (vec!["theirs".to_owned()], vec!["areo-probe".to_owned()]);
    assert_eq!(store.contents(), left);
    let ran = run(&[&store.endpoint(), "--bucket", "nobodys"]);
    ran.refused(3, &["no bucket nobodys", "leave --bucket out"]);
    assert_eq!(store.contents(), left);
}

#[test]
fn an_interrupted_probe_leaves_nothing_behind() {
    let store = Responder::start(Defect::IsSlow);
    let mut probe = probe(&[&store.endpoint()]);
    let quiet = probe.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().unwrap();
    wait_until(|| store.contents().1.len() > 3);
    signal(child.id().try_into().unwrap(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(store.contents(), (vec![], vec![]));
}

#[test]
fn bad_input_is_one_sentence() {
    let store = Responder::start(Defect::Forbids);
    let endpoint = store.endpoint();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let away = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    run(&[]).refused(2, &["ENDPOINT"]);
    run(&["localhost:80"]).refused(2, &["neither http:// nor https://"]);
    run(&["http://a/b"]).refused(2, &["has a path"]);
    run(&["http://u:p@a"]).refused(2, &["no user and no password"]);
    run(&[&away]).refused(5, &[&away, "does not answer"]);
    run(&[&endpoint]).refused(6, &["does not let this key", "AccessDenied"]);
    run(&[&endpoint, "--writers", "1"]).refused(2, &["1", "2..=256"]);
    run(&[&endpoint, "--bucket", "a/b"]).refused(2, &["a bucket has 3 to 63"]);
    run(&[&endpoint, "--quorum-away", "true"]).refused(2, &["--back"]);
    run(&[&endpoint, "--credentials", "/no/such"]).refused(2, &["/no/such"]);
    run(&[&endpoint, "--html", "/no/such/page"]).refused(1, &["/no/such/page"]);
    run(&["https://localhost:1", "--ca", "/no/such"]).refused(2, &["/no/such"]);
    let none = ended(&mut without_credentials(&[&endpoint]), b"");
    none.refused(2, &["there are no credentials", "AWS_ACCESS_KEY_ID"]);
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        signal(self.0.id().try_into().unwrap(), Signal::TERM);
        // It may have ended by itself.
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The first of the ports of five servers, with admin ports 90 above.
fn free_ports() -> u16 {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    let begin = (std::process::id() % 80) as u16;
    let first = (0..80).map(|block| 20_000 + (begin + block) % 80 * 100);
    let mut all_free =
        first.filter(|first| (0..5).all(|i| is_free(first + i) && is_free(first + 90 + i)));
    all_free.next().expect("free ports")
}

/// The product beside the laboratory.
fn product() -> Command {
    let folder = Path::new(program()).parent().unwrap();
    let mut product = crate::command::of(folder.join("areo"));
    product.stdin(Stdio::null()).stderr(Stdio::null());
    product
}

#[test]
fn two_gateways_of_a_cluster_hold_also_while_servers_are_away() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let gates = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let mut up = product();
    let port = free_ports();
    up.args(["up", "--json", "--durability", "memory", "--port"]);
    up.arg(port.to_string()).arg("--data").arg(&data);
    up.arg(format!("--s3={}", gates[0]));
    let up = up.stdout(Stdio::piped()).spawn().unwrap();
    let mut up = Process(up);
    let file = data.join("cluster.toml");
    let pids = server_pids(up.0.stdout.take().unwrap());
    wait_until(|| std::net::TcpStream::connect(&gates[0]).is_ok());
    let mut second = product();
    second
        .arg("--cluster")
        .arg(&file)
        .args(["s3", "--listen", &gates[1]]);
    let _second = Process(second.stdout(Stdio::null()).spawn().unwrap());
    wait_until(|| std::net::TcpStream::connect(&gates[1]).is_ok());
    let key = product()
        .arg("--cluster")
        .arg(&file)
        .args(["key", "env"])
        .output()
        .unwrap();
    let key = String::from_utf8(key.stdout).unwrap();
    let endpoints = gates.map(|gate| format!("http://{gate}"));
    let stop = |count: usize| format!("kill -STOP {}", pids[..count].join(" "));
    let back = format!("kill -CONT {}", pids.join(" "));
    let (minority, quorum) = (stop(1), stop(3));
    let mut probe = without_credentials(&[
        &endpoints[0],
        &endpoints[1],
        "--json",
        "--rounds",
        "2",
        "--timeout",
        "5s",
        "--minority-away",
        &minority,
        "--quorum-away",
        &quorum,
        "--back",
        &back,
    ]);
    for line in key.lines() {
        let (name, value) = line
            .strip_prefix("export ")
            .unwrap()
            .split_once('=')
            .unwrap();
        probe.env(name, value);
    }
    let ran = ended(&mut probe, b"");
    assert_eq!(ran.code, 0, "{} {}", ran.stderr, ran.text());
    let report = &ran.objects()[0];
    assert_eq!(
        with_verdict(report, "holds").len(),
        DRAWN_ALWAYS + 2,
        "{report}"
    );
    assert!(case(report, "minority-away")["lost"].as_u64().unwrap() > 0);
    assert!(
        case(report, "quorum-away")["unknown"].as_u64().unwrap() > 0,
        "{report}"
    );
}

/// Process ids of the servers, once they serve. Later events are read, too: `areo up` ends without a reader.
fn server_pids(events: std::process::ChildStdout) -> Vec<String> {
    let (sender, ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut pids = Vec::new();
        for line in std::io::BufReader::new(events)
            .lines()
            .map_while(Result::ok)
        {
            let event: Value = serde_json::from_str(&line).unwrap();
            match event["event"].as_str() {
                Some("started") if event["server"] != "gateway" => {
                    pids.push(event["pid"].to_string());
                }
                // The test may have ended.
                Some("ready") => drop(sender.send(pids.clone())),
                _ => {}
            }
        }
    });
    ready.recv().expect("`areo up` is ready")
}
