//! Waiting for a cluster: `areo status --wait`, and the servers that a command on a terminal names.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, wait_until};
use crate::metrics::{metrics, value};
use crate::terminal::Terminal;
use crate::values::bytes;
use rustix::process::Signal;

#[test]
fn a_ready_cluster_is_shown_and_another_one_says_what_it_lacks() {
    let mut cluster = Cluster::start(&[]);
    let lines = cluster.run(&["status", "--wait", "60s", "--json"]).done();
    assert_eq!(lines.objects()[0]["serving"], 5);
    let none = ["status", "--domain", "none", "--wait", "300ms"];
    cluster
        .run(&none)
        .refused(3, &["not ready after 0.3 s", "there is no domain 'none'"]);
    // f = 1 at [5,3]: two are one too many for the domain, and not for the root domain.
    cluster.kill("s1");
    cluster.run(&["status", "--wait", "60s"]).done();
    cluster.kill("s2");
    let short = ["status", "--wait", "500ms"];
    let lacks = &["3 of 4 needed servers of 'default' (configuration 0) serve"];
    cluster.run(&short).refused(5, lacks);
    let refused = cluster.run(&[&short[..], &["--json"]].concat());
    refused.refused(5, lacks);
    assert!(refused.stdout.is_empty());
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(error["kind"], "unavailable", "{error}");
    an_outage_is_said_first(&cluster);
    cluster.kill("s3");
    cluster
        .run(&short)
        .refused(5, &["2 of 3 needed servers of the root domain"]);
    cluster.kill("s4");
    cluster.start_server("s1");
    let line = "waiting for members of the root domain";
    wait_until(|| cluster.own_log("s1").contains(line));
    let log = cluster.own_log("s1");
    let line = log.lines().find(|it| it.contains(line)).unwrap();
    for (server, is_away) in [("s2", true), ("s3", true), ("s4", true), ("s5", false)] {
        assert_eq!(line.contains(server), is_away, "{line}");
    }
}

/// The commands on a cluster of five of which s1 and s2 are away.
fn an_outage_is_said_first(cluster: &Cluster) {
    let shown = cluster.run(&["status"]).done();
    let shown = shown.text();
    let outage = "problem\n'default' has no quorum: 3 of 4 needed servers serve, not s1, s2\n";
    assert!(shown.starts_with(outage), "{shown}");
    let tables = ["cluster\tup\t", "name\taddress\t", "domain\tdap\t"];
    for head in tables {
        assert!(shown.lines().any(|line| line.starts_with(head)), "{shown}");
    }
    // Scripts that are older than the heads count servers so.
    assert_eq!(shown.matches("\tserving").count(), 3, "{shown}");
    let lines = cluster.run(&["status", "--json"]).done().objects();
    assert_eq!(lines[0]["without_quorum"], serde_json::json!(["default"]));
    let domain = |name: &str| {
        let line = lines.iter().find(|line| line["domain"] == name);
        let line = line.unwrap_or_else(|| panic!("no {name} in {lines:?}"));
        let key = |key: &str| line[key].clone();
        (key("serving"), key("serves"), key("writes"), key("full"))
    };
    let none = serde_json::json!([]);
    let works = |works: bool| (3.into(), works.into(), works.into(), none.clone());
    assert_eq!(domain("default"), works(false));
    assert_eq!(domain("@root"), works(true));
    // Servers see it, too.
    let spare = "areo_domain_spare_members{domain=\"default\"}";
    let has_counted = || {
        let now = metrics(cluster.port() + 92);
        now.contains(spare) && value(&now, spare) < -0.5
    };
    wait_until(has_counted);
}

#[test]
fn what_is_waited_for_may_come_later() {
    let mut cluster = Cluster::start(&[]);
    let mut waiting = cluster.spawn(&["--domain", "later", "status", "--wait", "80s"]);
    assert!(waiting.try_wait().unwrap().is_none());
    cluster.run(&["domain", "create", "later"]).done();
    assert_eq!(waiting.wait().unwrap().code(), Some(0));

    cluster.kill("s1");
    cluster.kill("s2");
    let mut waiting = cluster.spawn(&["status", "--wait", "80s"]);
    cluster.start_server("s2");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));

    // Also the file of a cluster that `areo up` is about to make.
    let missing = cluster.folder().join("none.toml");
    let missing = missing.to_str().unwrap();
    let refused = areo(&["--cluster", missing, "status", "--wait", "300ms"], b"");
    refused.refused(2, &["not ready after 0.3 s", "names no cluster"]);
    for wrong in ["0s", "soon", "30", "-1s"] {
        areo(&["status", &format!("--wait={wrong}")], b"").refused(2, &["--wait"]);
    }
}

#[test]
fn the_servers_that_a_command_waits_for_are_named() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    cluster.run_with(&["put", "k"], b"value").done();
    let put = ["put", "large", "--block-size", "64KiB"];
    cluster.run_with(&put, &bytes(8 << 20, 1)).done();
    // Two streams get their first bytes before two servers stand still: one has a bar, and the other one a spinner.
    let (s1, s2) = (cluster.pid("s1"), cluster.pid("s2"));
    let streams = format!(
        "mkfifo pipe; $A get large -o pipe --timeout 60s & {{ head -c 1000 > first; $A get large --timeout 60s | \
         {{ head -c 1000 > second; kill -STOP {s1} {s2}; touch stopped; cat > rest; }} & \
         until [ -e stopped ]; do sleep 0.05; done; cat > others; }} < pipe & wait"
    );
    let streams = Terminal::start(&cluster, &streams);
    let is_named = |shown: &str| {
        let bar = ", waiting for s1, s2";
        shown.contains(bar) && shown.replace(bar, "").contains("waiting for s1, s2")
    };
    wait_until(|| is_named(&streams.shown()));
    // f = 1 at [5,3]: the domain has no quorum, and the root domain has one.
    let commands = [
        "put k line",
        "get k",
        "get k --version-only",
        "get k -o file",
        "ls",
        "stat k",
        "rm k",
        "sweep",
        "repair ls",
        "repair status",
        "repair retry",
        "reconfig plan default --k 2",
        "reconfig start default --k 2 --yes",
        "reconfig status default",
        "domain show default",
        "file ls",
        "file cat f",
        "file blocks f",
        "file rm f",
        "file push f line",
        "file pull f other",
    ];
    all_name(&cluster, &commands, "waiting for s1, s2");
    // Before it is known that they say nothing at all.
    let first = "needed servers serve, not s1, s2\r\nwaiting for s1, s2";
    all_name(&cluster, &["status"], first);
    cluster.signal("s3", Signal::STOP);
    let commands = [
        "get k",
        "ls",
        "domain ls",
        "domain create new",
        "domain rm new --yes",
        "server keep s4",
        "server drain s5 --yes",
        "server forget s5",
        "trace last",
    ];
    all_name(&cluster, &commands, "waiting for s1, s2, s3");
    // The root domain has no quorum either, and those that serve say so at once.
    let away = "needed servers serve, not s1, s2, s3";
    let outage = format!("@root has no quorum: 2 of 3 {away}\r\n");
    let outage = outage.replace("@root", "the root domain");
    all_name(&cluster, &["status"], &outage);
    all_name(
        &cluster,
        &["status"],
        &format!("{away}\r\nwaiting for s1, s2, s3"),
    );
    cluster.signal("s4", Signal::STOP);
    cluster.signal("s5", Signal::STOP);
    let address = format!("connecting to 127.0.0.1:{}", cluster.port());
    all_name(&cluster, &["get k", "status"], &address);
}

/// Starts these commands, waits until each of them shows these words, and ends them.
fn all_name(cluster: &Cluster, commands: &[&str], words: &str) {
    let lines = commands.iter();
    let lines = lines.map(|command| format!("$A {command} --timeout 60s"));
    let terminals: Vec<Terminal> = lines.map(|line| Terminal::start(cluster, &line)).collect();
    for (command, terminal) in commands.iter().zip(&terminals) {
        eprintln!("{command}");
        wait_until(|| terminal.shown().contains(words));
    }
}
