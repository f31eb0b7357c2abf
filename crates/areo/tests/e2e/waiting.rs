//! `areo status --wait`: scripts go on when the cluster is ready.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, wait_until};
use crate::metrics::{metrics, value};

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
