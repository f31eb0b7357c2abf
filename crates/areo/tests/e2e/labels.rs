//! Labels and maintenance of servers: given, shown, remembered, refused; and what the autopilot does with them.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::autopilot::{begin_with, end};
use crate::cluster::{Cluster, CommandOutput, wait_until};
use crate::keyed::KeyedCluster;
use serde_json::Value;

fn label(cluster: &Cluster, arguments: &[&str]) -> CommandOutput {
    cluster.run(&[&["server", "label"], arguments].concat())
}

fn maintain(cluster: &Cluster, arguments: &[&str]) -> CommandOutput {
    cluster.run(&[&["server", "maintain"], arguments].concat())
}

/// The server, as `areo server ls --json` shows it.
fn shown(cluster: &Cluster, server: &str) -> Value {
    let listed = cluster.run(&["server", "ls", "--json"]).done().objects();
    let mut listed = listed.into_iter();
    listed.find(|it| it["server"] == server).unwrap()
}

#[test]
fn labels_stay_until_they_are_removed_and_nothing_else_is_one() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let labelled = label(&cluster, &["s2", "zone=a", "class=hdd", "note=rack 7"]).done();
    let all = "class=hdd note=rack 7 zone=a";
    assert_eq!(labelled.text(), format!("'s2' has the labels {all}"));
    let listed = cluster.run(&["server", "ls"]).done();
    assert!(listed.text().contains(all), "{}", listed.text());
    let status = cluster.run(&["status"]).done();
    assert!(status.text().contains(all), "{}", status.text());
    // The server does not know them, and starts again.
    cluster.kill("s2");
    cluster.start_server("s2");
    let labels = |cluster: &Cluster| shown(cluster, "s2")["labels"].clone();
    let expected = serde_json::json!({ "zone": "a", "class": "hdd", "note": "rack 7" });
    assert_eq!(labels(&cluster), expected);
    let removed = label(&cluster, &["s2", "class=", "note=", "zone=b", "--json"]).done();
    let removed = &removed.objects()[0];
    assert_eq!(removed["outcome"], "labelled");
    assert_eq!(removed["labels"], serde_json::json!({ "zone": "b" }));
    for (arguments, code, sentence) in [
        (&["s9", "zone=a"][..], 3, "there is no server 's9'"),
        (&["s2", "zone"], 2, "KEY=TEXT"),
        (&["s2", "Zone=a"], 2, "not 'Zone'"),
        (&["s2", "note=a\u{7}b"], 2, "control characters"),
        (
            &["s2", &format!("note={}", "x".repeat(129))],
            2,
            "at most 128 bytes, not 129",
        ),
        (&["s2", "zone=a", "zone=b"], 2, "'zone' is given twice"),
        (&["s2", "empty=perhaps"], 2, "empty=yes"),
        (&["s2", "maintenance=1"], 2, "areo server maintain"),
        (&["s2"], 2, "KEY=TEXT"),
    ] {
        label(&cluster, arguments).refused(code, &[sentence]);
    }
    let keys: Vec<String> = (0..16).map(|i| format!("k{i}=x")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    label(&cluster, &[&["s2"], &keys[..]].concat()).refused(4, &["at most 16"]);
    assert_eq!(labels(&cluster), serde_json::json!({ "zone": "b" }));
    // A server that is to be emptied is chosen for no new domain.
    label(&cluster, &["s3", "empty=yes"]).done();
    let created = ["domain", "create", "later", "--dap", "abd", "--allow-f0"];
    let created = cluster.run(&[&created[..], &["--json"]].concat()).done();
    let members = created.objects()[0]["servers"].to_string();
    assert!(
        members.contains("s2") && !members.contains("s3"),
        "{members}"
    );
}

#[test]
fn a_maintenance_is_shown_and_ends() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let begun = maintain(&cluster, &["s2", "--for", "2h", "--reason", "new disk"]).done();
    assert!(
        begun.text().contains("'s2' is in maintenance until 2"),
        "{}",
        begun.text()
    );
    let listed = cluster.run(&["server", "ls"]).done();
    assert!(listed.text().contains("UTC: new disk"), "{}", listed.text());
    assert_eq!(shown(&cluster, "s2")["maintenance"]["reason"], "new disk");
    assert_eq!(shown(&cluster, "s2")["labels"], serde_json::json!({}));
    maintain(&cluster, &["s2", "--end"]).done();
    maintain(&cluster, &["s2", "--end"]).done();
    assert_eq!(shown(&cluster, "s2")["maintenance"], Value::Null);
    for (arguments, code, sentence) in [
        (&["s9", "--for", "2h"][..], 3, "there is no server 's9'"),
        (&["s9", "--end"], 3, "there is no server 's9'"),
        (&["s2"], 2, "--for"),
        (&["s2", "--for", "8d"], 2, "at most 7d"),
        (&["s2", "--for", "0s"], 2, "no time"),
        (&["s2", "--for", "1h", "--end"], 2, "--end"),
        (
            &["s2", "--for", "1h", "--reason", "a\nb"],
            2,
            "control characters",
        ),
        (&["s2", "--end", "--reason", "a"], 2, "--reason"),
    ] {
        maintain(&cluster, arguments).refused(code, &[sentence]);
    }
}

/// A label may have the autopilot replace a server.
#[test]
fn labels_need_the_grant_that_replaces_servers() {
    let cluster = KeyedCluster::start();
    let file = cluster.key("few", &["status", "read,write,list,delete,admin:default"]);
    let set = ["server", "label", "s1", "zone=a", "--timeout", "5s"];
    cluster.run_as(&file, &set, b"").refused(6, &["reconfig"]);
    let maintain = ["server", "maintain", "s1", "--for", "1h", "--timeout", "5s"];
    cluster
        .run_as(&file, &maintain, b"")
        .refused(6, &["reconfig"]);
    cluster.run(&set).done();
}

/// The intents about changes, as pairs of change and state.
fn changes(cluster: &Cluster) -> Vec<Value> {
    let journal = cluster.run(&["autopilot", "journal", "--json"]).done();
    let changes = journal.objects().into_iter();
    changes.filter(|it| it["change"].is_object()).collect()
}

fn is_done(cluster: &Cluster, server: &str, with: &str) -> bool {
    changes(cluster).iter().any(|it| {
        let change = &it["change"];
        change["server"] == server && change["with"] == with && it["state"] == "done"
    })
}

/// Members of a domain, in the order of their names.
fn members(cluster: &Cluster, domain: &str) -> Vec<String> {
    let shown = cluster
        .run(&["reconfig", "status", domain, "--json"])
        .done();
    let last = shown.objects().pop().unwrap();
    let servers = last["servers"].as_array().unwrap();
    let mut names: Vec<String> = servers
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// A server by its label, and, once that one is a spare, another one by its class.
#[test]
fn servers_to_be_emptied_are_replaced_in_the_background() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "a"], b"first").done();
    cluster.join("s4");
    label(&cluster, &["s2", "empty=yes"]).done();
    let autopilot = begin_with(&cluster, "act", "[class]\nempty = [\"hdd\"]\n");
    wait_until(|| is_done(&cluster, "s2", "s4"));
    assert_eq!(members(&cluster, "default"), ["s1", "s3", "s4"]);
    label(&cluster, &["s2", "empty="]).done();
    cluster.run(&["server", "keep", "s2"]).done();
    label(&cluster, &["s1", "class=hdd"]).done();
    wait_until(|| is_done(&cluster, "s1", "s2"));
    assert_eq!(members(&cluster, "default"), ["s2", "s3", "s4"]);
    let explained = cluster.run(&["autopilot", "explain", "s1"]).done();
    let why = "s1 is of class hdd, which is to be emptied (rule class)";
    assert!(explained.text().contains(why), "{}", explained.text());
    assert_eq!(cluster.run(&["get", "a"]).done().text(), "first");
    end(autopilot);
}

/// A spare in the crowded zone is none.
#[test]
fn a_zone_with_more_members_than_the_domain_can_lose_gives_one_up() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "a"], b"first").done();
    cluster.join("s4");
    for (server, zone) in [("s1", "a"), ("s2", "b"), ("s3", "b"), ("s4", "b")] {
        label(&cluster, &[server, &format!("zone={zone}")]).done();
    }
    let autopilot = begin_with(&cluster, "act", "");
    let explained = |cluster: &Cluster| {
        let explained = cluster.run(&["autopilot", "explain", "s3"]).done();
        explained.text().to_owned()
    };
    wait_until(|| explained(&cluster).contains("no spare fits in the place of s3"));
    assert!(changes(&cluster).is_empty());
    label(&cluster, &["s4", "zone=c"]).done();
    wait_until(|| is_done(&cluster, "s3", "s4"));
    assert_eq!(members(&cluster, "default"), ["s1", "s2", "s4"]);
    assert_eq!(cluster.run(&["get", "a"]).done().text(), "first");
    end(autopilot);
}

/// A dead server in maintenance stays, until that ends.
#[test]
fn a_server_in_maintenance_is_replaced_once_that_has_ended() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.join("s4");
    maintain(&cluster, &["s2", "--for", "1d"]).done();
    let autopilot = begin_with(&cluster, "act", "");
    let has_begun = |cluster: &Cluster| {
        let status = cluster.run(&["autopilot", "status", "--json"]).done();
        status.text().contains("\"instance\":\"")
    };
    wait_until(|| has_begun(&cluster));
    cluster.kill("s2");
    let waits = |cluster: &Cluster| {
        let explained = cluster.run(&["autopilot", "explain", "s2"]).done();
        explained.text().to_owned()
    };
    // Nothing else holds it.
    wait_until(|| waits(&cluster).contains("waits for: s2 is in maintenance until 2"));
    assert_eq!(changes(&cluster)[0]["state"], "waiting");
    maintain(&cluster, &["s2", "--end"]).done();
    wait_until(|| is_done(&cluster, "s2", "s4"));
    assert_eq!(members(&cluster, "default"), ["s1", "s3", "s4"]);
    end(autopilot);
}
