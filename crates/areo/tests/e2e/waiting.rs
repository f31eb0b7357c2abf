//! `areo status --wait`: scripts go on when the cluster is ready.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo};

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
    cluster.kill("s3");
    cluster
        .run(&short)
        .refused(5, &["2 of 3 needed servers of the root domain"]);
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
