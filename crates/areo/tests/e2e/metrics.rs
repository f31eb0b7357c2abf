//! The metrics of servers, as Prometheus reads it.

use crate::cluster::{Cluster, free_ports, wait_until};
use crate::s3_client::Gateway;
use areo_client::blocking::wait;
use areo_client::file::PushOptions;
use areo_client::{Change, Client, ConnectOptions, DapKind, Domain, Error, Metrics, PutOptions};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::str::FromStr;

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
    number(metrics, series)
}

fn number<T: FromStr<Err: Debug>>(metrics: &str, series: &str) -> T {
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
    // A put ends with a quorum: this server may be the last one to hear of it.
    let mut after = before.clone();
    wait_until(|| {
        after = metrics(admin);
        value(&after, "areo_store_objects") > value(&before, "areo_store_objects")
    });
    let grown = |series: &str| value(&after, series) - value(&before, series);
    assert!((value(&after, "areo_server_serving") - 1.0).abs() < 0.1);
    assert!(
        grown("areo_server_request_seconds_count{request=\"access\"}") >= 3.0,
        "{after}"
    );
    assert!(grown("areo_store_sync_seconds_count") >= 1.0);
    assert!(grown("areo_store_objects") >= 1.0 && grown("areo_store_element_bytes") >= 10_000.0);
    assert!(grown("areo_server_received_bytes_total") >= 10_000.0);
    assert!(grown("areo_server_sent_bytes_total") >= 100.0);
    assert!(value(&after, "process_resident_memory_bytes") >= 1_000_000.0);
    assert!(!after.contains("secret-key"), "no label names a key");

    // Those of domains are there once the server has looked at them.
    let counts = |line: &&str| !line.starts_with('#') && !line.contains("{domain=");
    let series = |text: &str| text.lines().filter(counts).count();
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

/// A client of the cluster that counts here.
fn counted_client(cluster: &Cluster, metrics: &Metrics) -> Client {
    let options = ConnectOptions {
        metrics: Some(metrics.clone()),
        ..cluster.options()
    };
    wait(Client::connect(options)).expect("the cluster serves")
}

/// Two puts and gets, one of them in three blocks; a file; and a change to replicas.
fn use_everything(cluster: &Cluster, domain: &Domain) {
    for (key, bytes) in [("secret-key", 100_000), ("large", 300_000)] {
        let options = PutOptions {
            block_bytes: 128 << 10,
            ..PutOptions::default()
        };
        let put = domain.put_with(key, vec![7; bytes], options);
        wait(put).expect("all servers serve");
        let read = wait(domain.get(key)).expect("it was just written");
        assert_eq!(read.length, bytes as u64);
    }
    let path = cluster.folder().join("local");
    std::fs::write(&path, vec![7; 50_000]).expect("there is room");
    let file = domain.file("notes").expect("it is a name");
    let pushed = file.push(&path, None, PushOptions::default(), |_| {
        ControlFlow::Continue(())
    });
    wait(pushed).expect("all servers serve");
    wait(file.read(|_| Ok(()))).expect("it was just written");
    let change = Change {
        dap: Some(DapKind::Abd),
        ..Change::default()
    };
    let changed = domain.reconfigure(&change, |_| {});
    wait(changed).expect("all servers serve");
}

#[test]
fn a_program_counts_what_its_clients_do() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let metrics = Metrics::new();
    let client = counted_client(&cluster, &metrics);
    let other = counted_client(&cluster, &metrics);
    let domain = wait(client.domain("default")).expect("`areo up` made it");
    let before = metrics.text();
    use_everything(&cluster, &domain);
    let missing = wait(
        wait(other.domain("default"))
            .expect("the same")
            .get("nothing"),
    );
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    // Both clients ask every server something, and a label names it.
    for server in ["s1", "s2", "s3", "s4", "s5"] {
        let connected = format!("areo_client_peers{{server=\"{server}\",state=\"connected\"}}");
        wait_until(|| number::<u64>(&metrics.text(), &connected) == 2);
    }
    let text = metrics.text();
    let now = |series: &str| number::<u64>(&text, series);
    let grown = |series: &str| now(series) - number::<u64>(&before, series);
    for (series, expected) in [
        ("operations_total{operation=\"put\",outcome=\"ok\"}", 2),
        ("operations_total{operation=\"get\",outcome=\"ok\"}", 2),
        (
            "operations_total{operation=\"get\",outcome=\"not_found\"}",
            1,
        ),
        ("operation_seconds_count{operation=\"get\"}", 3),
        (
            "operations_total{operation=\"file_push\",outcome=\"ok\"}",
            1,
        ),
        (
            "operations_total{operation=\"file_read\",outcome=\"ok\"}",
            1,
        ),
        (
            "operations_total{operation=\"reconfigure\",outcome=\"ok\"}",
            1,
        ),
        ("large_bytes_total{direction=\"written\"}", 300_000),
        ("large_bytes_total{direction=\"read\"}", 300_000),
        ("file_bytes_total{direction=\"written\"}", 50_000),
        ("file_bytes_total{direction=\"read\"}", 50_000),
        ("reconfiguration_steps_total{step=\"decide\"}", 1),
        ("reconfiguration_steps_total{step=\"announce\"}", 1),
        ("reconfiguration_steps_total{step=\"finalize\"}", 1),
        ("reconfiguration_steps_total{step=\"collect\"}", 1),
    ] {
        assert_eq!(now(&format!("areo_client_{series}")), expected, "{series}");
    }
    // One value, three blocks, a block of the file.
    assert!(grown("areo_client_encode_seconds_count") >= 5, "{text}");
    assert!(grown("areo_client_encoded_bytes_total") >= 450_000);
    assert!(grown("areo_client_sent_bytes_total") >= 450_000 / 3 * 5);
    assert!(grown("areo_client_received_bytes_total") >= 400_000);
    // No server holds a copy of a coded value, and of a value in blocks the blocks are sent. The first block of a file
    // is small, and sent to the servers that do not adopt it in time.
    let sent = grown("areo_client_reconfiguration_sent_bytes_total");
    assert!((5 * 450_000..5 * 450_200).contains(&sent), "{text}");
    let rounds = grown("areo_client_rounds_total");
    let decided = grown("areo_client_quorum_wait_seconds_count");
    assert!(8 <= decided && decided <= rounds, "{decided} of {rounds}");
    assert!(grown("areo_client_configurations_visited_total") >= 8);
    assert!(!text.contains("secret-key"), "no label names a key");
}

#[test]
fn a_command_shows_what_it_does_while_it_runs() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let mut put = cluster.command(&["put", "key", "-", "--metrics", "127.0.0.1:0"]);
    put.stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut put = put.spawn().expect("areo starts");
    let mut said = String::new();
    let mut errors = BufReader::new(put.stderr.take().expect("it is a pipe"));
    errors.read_line(&mut said).expect("it says where");
    let address = said.trim().strip_suffix("/metrics");
    let port = address.and_then(|address| address.rsplit(':').next()?.parse().ok());
    let port = port.unwrap_or_else(|| panic!("it says where: {said}"));
    // It has looked its domain up, and waits for the value.
    wait_until(|| number::<u64>(&metrics(port), "areo_client_rounds_total") > 0);
    let puts = "areo_client_operations_total{operation=\"put\",outcome=\"ok\"}";
    assert_eq!(number::<u64>(&metrics(port), puts), 0);
    drop(put.stdin.take());
    assert!(put.wait().expect("it ends").success());

    for (arguments, words) in [
        (&["ls", "--metrics", "nowhere"][..], "nowhere"),
        (&["ls", "--metrics", "0.0.0.0:0"], "take 127.0.0.1"),
        (&["server", "--metrics", "127.0.0.1:0"], "admin ports"),
    ] {
        cluster.run(arguments).refused(2, &[words]);
    }
    let taken = format!("127.0.0.1:{}", cluster.port());
    let refused = cluster.run(&["ls", "--metrics", &taken]);
    refused.refused(1, &["cannot serve metrics", &taken]);
}

/// Dashboard, alerts and documentation speak of metrics that exist, and of nothing else.
#[test]
fn what_is_deployed_speaks_of_metrics_that_exist() {
    let cluster = Cluster::start(&[]);
    // Of servers a client knows once it is connected.
    let of_client = Metrics::new();
    let _client = counted_client(&cluster, &of_client);
    // Of a domain there is something to say when the server has gone over its objects.
    let admin = cluster.port() + 90;
    wait_until(|| metrics(admin).contains("areo_domain_objects_below_redundancy"));
    let of_gateway = free_ports();
    let address = format!("127.0.0.1:{of_gateway}");
    let _gateway = Gateway::start_with(&cluster, &["--metrics", &address]);
    let of_autopilot = free_ports();
    let address = format!("127.0.0.1:{of_autopilot}");
    let mut autopilot = cluster.spawn(&["autopilot", "--json", "--metrics", &address]);
    wait_until(|| TcpStream::connect(&address).is_ok());
    wait_until(|| {
        metrics(of_autopilot).contains("areo_domain_spare_crashes{domain=\"default\"} 1")
    });
    let exist = metrics(admin) + &of_client.text() + &metrics(of_gateway) + &metrics(of_autopilot);
    autopilot.kill().expect("it runs");
    autopilot.wait().expect("it ends");
    let known: BTreeSet<&str> = exist
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in [
        "deploy/prometheus/alerts.yml",
        "deploy/grafana/areo.json",
        "docs/metrics.md",
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
        areo_fuzzing::not_run("there is no promtool on the PATH");
        return;
    };
    assert!(checked.status.success(), "{checked:?}");
    let cases = rules.replace("alerts.yml", "alerts_test.yml");
    let tested = Command::new("promtool")
        .args(["test", "rules", &cases])
        .output();
    let tested = tested.expect("it was there a moment ago");
    assert!(tested.status.success(), "{tested:?}");
    let cluster = Cluster::start(&[]);
    check_metrics(&metrics(cluster.port() + 90));
    let metrics = Metrics::new();
    let client = counted_client(&cluster, &metrics);
    let domain = wait(client.domain("default")).expect("`areo up` made it");
    let put = domain.put("key", "value");
    wait(put).expect("all servers serve");
    check_metrics(&metrics.text());
}

/// Alerts about quorums use the counts of quorums that servers report. This holds where there is no `promtool`, too.
#[test]
fn alerts_about_quorums_come_before_the_outage() {
    let rules = include_str!("../../../../deploy/prometheus/alerts.yml");
    let rule = |name: &str| {
        let (_, after) = rules
            .split_once(&format!("- alert: {name}\n"))
            .expect("it is there");
        let (rule, _) = after.split_once("labels:").expect("it has labels");
        rule.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let spare = "max by (job, domain) (areo_domain_spare_members)";
    for (name, condition) in [("AreoQuorumAtRisk", "< 1"), ("AreoNoQuorum", "< 0")] {
        let rule = rule(name);
        assert!(rule.contains(&format!("{spare} {condition}")), "{rule}");
    }
    assert!(!rules.contains("up{"), "a process that runs need not serve");
}

/// That `promtool` understands the text, and has nothing to say about it.
fn check_metrics(text: &str) {
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
