//! What servers count, as Prometheus reads it.

use crate::cluster::Cluster;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// The metrics of the server whose admin port this is.
pub(crate) fn metrics(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the admin port listens");
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.0 200"), "{head}");
    body.to_owned()
}

pub(crate) fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {series} in {metrics}"));
    line.parse().expect("the value is a number")
}

#[test]
fn servers_count_what_they_do() {
    let cluster = Cluster::start(&[]);
    let admin = cluster.port() + 90;
    let before = metrics(admin);
    cluster
        .run_with(&["put", "secret-key", "-"], &vec![7; 50_000])
        .done();
    cluster
        .run(&["get", "secret-key", "-o", "/dev/null"])
        .done();
    let after = metrics(admin);
    let grown = |series: &str| value(&after, series) - value(&before, series);
    assert!((value(&after, "areo_server_serving") - 1.0).abs() < 0.1);
    assert!(
        grown("areo_server_request_seconds_count{request=\"access\"}") >= 3.0,
        "{after}"
    );
    assert!(grown("areo_store_sync_seconds_count") >= 1.0);
    assert!(grown("areo_store_objects") >= 1.0 && grown("areo_store_element_bytes") >= 10_000.0);
    assert!(!after.contains("secret-key"), "no label names a key");

    let series = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    for i in 0..20 {
        cluster
            .run_with(&["put", &format!("other-{i}"), "-"], b"x")
            .done();
    }
    assert_eq!(
        series(&metrics(admin)),
        series(&after),
        "as many series as before"
    );
}

/// Dashboard, alerts and documentation speak of metrics that exist, and of nothing else.
#[test]
fn what_is_deployed_speaks_of_metrics_that_exist() {
    let cluster = Cluster::start(&[]);
    let exist = metrics(cluster.port() + 90);
    let known: BTreeSet<&str> = exist
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in [
        "deploy/prometheus/alerts.yml",
        "deploy/grafana/areo.json",
        "docs/operations.md",
    ] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).expect("it is there");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let mut named = 0;
        for word in words.filter(|word| word.starts_with("areo_")) {
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| word.strip_suffix(end));
            let is_known = known.contains(word) || base.is_some_and(|base| known.contains(base));
            assert!(is_known, "{file} speaks of {word}");
            named += 1;
        }
        assert!(named >= 8, "{file} names only {named}");
    }
}

/// `promtool` of Debian's package `prometheus`, where it is installed.
#[test]
fn promtool_finds_nothing_wrong() {
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/prometheus/alerts.yml"
    );
    let checked = Command::new("promtool")
        .args(["check", "rules", rules])
        .output();
    let Ok(checked) = checked else {
        eprintln!("not run: promtool is not installed");
        return;
    };
    assert!(checked.status.success(), "{checked:?}");
    let cluster = Cluster::start(&[]);
    let text = metrics(cluster.port() + 90);
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was there a moment ago");
    let mut input = check.stdin.take().expect("it is a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let checked = check.wait_with_output().expect("it ends");
    let said = [checked.stdout, checked.stderr].concat();
    assert!(
        checked.status.success() && said.is_empty(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
