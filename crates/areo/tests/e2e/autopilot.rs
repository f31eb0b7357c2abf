//! The autopilot: a server that is killed is found, explained, and replaced by a spare.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use serde_json::Value;
use std::process::Child;

/// Thresholds of seconds in place of minutes. The disk of this machine may be as full as it is.
pub(crate) const RULES: &str = "\
[filling]
used_percent = 101
hours_left = 0
[dead]
unreachable_seconds = 2
spare_stable_seconds = 1
[guards]
observer_seconds = 1
between_changes_seconds = 0
lease_seconds = 4
view_seconds = 20
suspicion = 2.0
target_percent = 200
";

/// Three servers, a spare and an object; an autopilot of this level looks at them.
pub(crate) fn watched(level: &str) -> (Cluster, Child) {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.join("s4");
    cluster.run_with(&["put", "a"], b"first").done();
    let autopilot = begin(&cluster, level);
    (cluster, autopilot)
}

fn begin(cluster: &Cluster, level: &str) -> Child {
    begin_with(cluster, level, "")
}

/// An instance with these rules, too.
pub(crate) fn begin_with(cluster: &Cluster, level: &str, more: &str) -> Child {
    let rules = cluster.folder().join("rules.toml");
    std::fs::write(&rules, format!("{RULES}{more}")).unwrap();
    let rules = rules.to_str().unwrap();
    cluster.spawn(&[
        "autopilot",
        "--json",
        "--level",
        level,
        "--rules",
        rules,
        "--every",
        "300ms",
    ])
}

pub(crate) fn end(mut autopilot: Child) {
    autopilot.kill().unwrap();
    autopilot.wait().unwrap();
}

/// The intent that replaces s2.
pub(crate) fn replacement(cluster: &Cluster) -> Option<Value> {
    let journal = cluster.run(&["autopilot", "journal", "--json"]).done();
    let is_meant = |it: &Value| it["change"]["server"] == "s2";
    journal.objects().into_iter().find(is_meant)
}

pub(crate) fn state(cluster: &Cluster) -> String {
    let intent = replacement(cluster);
    intent.map_or_else(String::new, |it| it["state"].as_str().unwrap().to_owned())
}

#[track_caller]
pub(crate) fn assert_replaced(cluster: &Cluster) {
    for domain in ["@root", "default", "areo-autopilot"] {
        let entries = cluster
            .run(&["reconfig", "status", domain, "--json"])
            .done()
            .objects();
        let named = serde_json::to_string(&entries).unwrap();
        assert!(!named.contains("\"s2\""), "{domain}: {named}");
        assert!(named.contains("\"s4\""), "{domain}: {named}");
    }
    cluster
        .run(&["repair", "status", "--domain", "default"])
        .done();
}

/// A change of level `advise` waits for an operator, and says why it is wanted.
#[test]
fn a_killed_server_is_explained_and_replaced_once_an_operator_approves() {
    let (mut cluster, autopilot) = watched("advise");
    wait_until(|| {
        cluster
            .run(&["autopilot", "status", "--json"])
            .text()
            .contains("\"instance\":\"")
    });
    cluster.run(&["autopilot", "explain", "s2"]).done();
    cluster
        .run(&["autopilot", "explain", "s9"])
        .refused(3, &["no server and no domain 's9'"]);
    cluster
        .run(&["autopilot", "approve", "7"])
        .refused(3, &["no intent 7"]);
    cluster.kill("s2");
    let waits = |text: &str| {
        let intent = replacement(&cluster);
        intent.is_some_and(|it| it["waits_for"].to_string().contains(text))
    };
    wait_until(|| waits("approval") && !waits("evaluations"));
    let intent = replacement(&cluster).unwrap();
    assert_eq!(intent["change"]["with"], "s4", "{intent}");
    let number = intent["number"].to_string();
    let explained = cluster.run(&["autopilot", "explain", "s2"]).done();
    for part in [
        "replace s2 by s4",
        "other servers have not reached s2 for 2 s (rule dead)",
        "'default' survives 0 crashes now and 1 afterwards (f 1)",
        &format!("waits for: approval: `areo autopilot approve {number}`"),
    ] {
        assert!(
            explained.text().contains(part),
            "{part}: {}",
            explained.text()
        );
    }
    cluster.run(&["autopilot", "pause"]).done();
    cluster.run(&["autopilot", "approve", &number]).done();
    wait_until(|| waits("paused") && !waits("approval"));
    cluster.run(&["autopilot", "pause", "--off"]).done();
    wait_until(|| state(&cluster) == "done");
    assert_replaced(&cluster);
    cluster
        .run(&["autopilot", "approve", &number])
        .refused(4, &["is done already"]);
    end(autopilot);
}

/// A change of level `act` needs no operator, and no operation fails meanwhile, also if the instance dies and another one takes over.
#[test]
fn a_killed_server_is_replaced_without_an_operator() {
    let (mut cluster, first) = watched("act");
    let second = begin(&cluster, "act");
    wait_until(|| {
        cluster
            .run(&["autopilot", "status", "--json"])
            .text()
            .contains("\"instance\":\"")
    });
    cluster.kill("s2");
    let mut first = Some(first);
    let mut written = 0;
    wait_until(|| {
        written += 1;
        let value = format!("value {written}");
        cluster.run_with(&["put", "a"], value.as_bytes()).done();
        assert_eq!(cluster.run(&["get", "a"]).done().text(), value);
        if replacement(&cluster).is_some()
            && let Some(first) = first.take()
        {
            end(first);
        }
        state(&cluster) == "done"
    });
    assert_replaced(&cluster);
    let journal = cluster
        .run(&["autopilot", "journal", "--json"])
        .done()
        .objects();
    let changes = journal.iter().filter(|it| !it["change"].is_null());
    assert_eq!(changes.count(), 1, "{journal:?}");
    end(second);
}

/// An instance that could act by itself proposes no declined change; once the server was there, its next end is another reason.
#[test]
fn a_declined_change_stays_declined_for_as_long_as_the_server_is_gone() {
    let (mut cluster, first) = watched("advise");
    let holder = |cluster: &Cluster| {
        let status = cluster.run(&["autopilot", "status", "--json"]).done();
        status.objects()[0]["instance"].clone()
    };
    wait_until(|| holder(&cluster).is_string());
    let before = holder(&cluster);
    cluster.kill("s2");
    wait_until(|| state(&cluster) == "waiting");
    let intent = replacement(&cluster).unwrap();
    let number = intent["number"].to_string();
    let is_listed = |cluster: &Cluster| {
        let listed = cluster.run(&["autopilot", "ls", "--json"]).done();
        let mut listed = listed.objects().into_iter();
        listed.any(|it| it["number"] == intent["number"])
    };
    assert!(is_listed(&cluster));
    cluster
        .run(&["autopilot", "decline", "99"])
        .refused(3, &["no intent 99"]);
    cluster.run(&["autopilot", "decline", &number]).done();
    for verb in ["decline", "approve"] {
        cluster
            .run(&["autopilot", verb, &number])
            .refused(4, &["is declined already"]);
    }
    assert!(!is_listed(&cluster));
    end(first);
    let second = begin(&cluster, "act");
    wait_until(|| holder(&cluster) != before);
    let explained = cluster.run(&["autopilot", "explain", "s2"]).done();
    let by_hand = "by hand: areo server replace s2 --with s4";
    assert!(explained.text().contains(by_hand), "{}", explained.text());
    cluster.start_server("s2");
    wait_until(|| state(&cluster) == "superseded");
    let changes = |cluster: &Cluster| {
        let journal = cluster.run(&["autopilot", "journal", "--json"]).done();
        let changes = journal.objects().into_iter();
        let changes = changes.filter(|it| it["change"]["server"] == "s2");
        changes.map(|it| it["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(changes(&cluster), ["superseded"]);
    cluster.kill("s2");
    wait_until(|| changes(&cluster) == ["superseded", "done"]);
    assert_replaced(&cluster);
    end(second);
}
