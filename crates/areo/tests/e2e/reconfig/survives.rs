//! Reconfigurers and servers die in the middle; others go on.

#![allow(clippy::unwrap_used, reason = "a test")]

use super::{assert_all_there, put_files, reconfig, shape};
use crate::cluster::{Cluster, signal, wait_until};
use areo_client::blocking::wait;
use areo_client::{Client, Domain};
use rustix::process::Signal;
use std::process::Child;
use std::time::Duration;

/// Files that take a while to move.
fn files() -> Vec<usize> {
    (0..24).map(|i| 400_000 + i).collect()
}

fn domain(cluster: &Cluster, name: &str) -> Domain {
    let client = wait(Client::connect(cluster.options())).unwrap();
    wait(client.domain(name)).unwrap()
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("process ids are small")
}

/// Starts a change and waits until it is pending; false if it was over before the test saw it pending.
fn start_until_pending(cluster: &Cluster, seen_by: &Domain, change: &[&str]) -> (Child, bool) {
    let arguments = [&["reconfig", "start", "default", "--json"], change].concat();
    let mut child = cluster.spawn(&arguments);
    loop {
        if wait(seen_by.sequence()).unwrap().len() > 1 {
            return (child, true);
        }
        if child.try_wait().unwrap().is_some() {
            return (child, false);
        }
    }
}

/// For how long a change has been pending, as `areo status` shows it.
fn pending_seconds(cluster: &Cluster) -> serde_json::Value {
    let status = cluster.run(&["status", "--json"]).done();
    status.objects()[0]["pending_seconds"].clone()
}

/// kill -9 of a reconfigurer at several points in time: another one finishes the change, or it was not begun.
#[test]
fn an_orphan_is_finished_by_another() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let files = put_files(&cluster, "default", &files());
    let watcher = domain(&cluster, "default");
    let shapes = [
        ["--dap", "abd", "--servers", "s1,s2,s3"],
        ["--dap", "ec", "--servers", "s5,s4,s3,s2,s1"],
    ];
    let (mut resumed, mut shown) = (0, 0);
    for (i, delay_ms) in [0, 3, 10, 25, 50].into_iter().enumerate() {
        let before = shape(&cluster, "default").0;
        let (mut child, _) = start_until_pending(&cluster, &watcher, &shapes[i % 2]);
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(pid(&child), Signal::KILL);
        child.wait().unwrap();
        shown += usize::from(pending_seconds(&cluster).is_u64());
        let resume = reconfig(&cluster, "start", "default", &["--resume", "--json"]);
        let outcome = resume.done().objects()[0]["outcome"].clone();
        resumed += usize::from(outcome == "resumed");
        let (after, kind, _) = shape(&cluster, "default");
        assert_eq!(after, before + 1, "{outcome}");
        // The reconfigurer notifies servers without waiting for them.
        wait_until(|| pending_seconds(&cluster).is_null());
        assert_eq!(kind, ["abd [3,1]", "ec [5,3]"][i % 2]);
        assert_all_there(&cluster, "default", &files);
    }
    assert!(resumed > 0, "at least one was killed before it was done");
    assert!(shown > 0, "and was seen to be pending");
    let again = reconfig(&cluster, "start", "default", &["--resume"]).done();
    assert!(again.text().contains("nothing is pending"), "{again:?}");
}

/// Killed at arbitrary times after its start, before it could be seen, too.
#[test]
fn a_reconfigurer_that_dies_early_leaves_a_domain_that_can_be_changed() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let files = put_files(&cluster, "default", &[1_000, 300_000]);
    for (i, delay_ms) in [2, 8, 15, 25].into_iter().enumerate() {
        let delta = format!("{}", 6 + i);
        let child = cluster.spawn(&["reconfig", "start", "default", "--delta", &delta]);
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(pid(&child), Signal::KILL);
        child.wait_with_output().unwrap();
        // With the same change it installs it, finishes it, or finds it done.
        reconfig(&cluster, "start", "default", &["--delta", &delta]).done();
        assert_eq!(shape(&cluster, "default").0, 1 + i as u64);
        assert_all_there(&cluster, "default", &files);
    }
}

#[test]
fn a_server_dies_during_the_transfer() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let files = put_files(&cluster, "default", &files());
    let watcher = domain(&cluster, "default");
    let change = ["--servers", "s5,s4,s3,s2,s1"];
    let (child, _) = start_until_pending(&cluster, &watcher, &change);
    cluster.kill("s4");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert_eq!(shape(&cluster, "default").0, 1);
    assert_all_there(&cluster, "default", &files);
}

#[test]
fn a_dead_server_is_replaced_and_does_no_harm_when_it_returns() {
    let mut cluster = Cluster::start(&[]);
    cluster.join("s6");
    let files = put_files(&cluster, "default", &[0, 1_000, 300_000, 2_000_000]);
    cluster.kill("s2");
    let replace = ["--add", "s6", "--remove", "s2"];
    reconfig(&cluster, "start", "default", &replace).done();
    let (index, kind, servers) = shape(&cluster, "default");
    assert_eq!((index, kind.as_str()), (1, "ec [5,3]"));
    assert_eq!(servers, ["s1", "s6", "s3", "s4", "s5"]);
    assert_all_there(&cluster, "default", &files);
    cluster.run_with(&["put", "after"], b"without s2").done();
    cluster.restart("s2");
    assert_eq!(cluster.number("s2", "domains"), Some(1), "the root domain");
    assert_all_there(&cluster, "default", &files);
    assert_eq!(cluster.run(&["get", "after"]).done().text(), "without s2");
    // One crash is tolerated again: the new member has what the others have.
    cluster.kill("s3");
    assert_all_there(&cluster, "default", &files);
    cluster.run_with(&["put", "after"], b"without s3").done();
    assert_eq!(cluster.run(&["get", "after"]).done().text(), "without s3");
}

#[test]
fn the_root_domain_moves_like_any_other() {
    let mut cluster = Cluster::start(&[]);
    cluster.join("s6");
    cluster.run_with(&["put", "k"], b"v").done();
    let moved = ["--servers", "s4,s5,s6"];
    reconfig(&cluster, "start", "@root", &moved).done();
    assert_eq!(shape(&cluster, "@root").2, ["s4", "s5", "s6"]);
    assert_eq!(cluster.number("s1", "domains"), Some(1), "default");
    // Two that held it are gone, and one that holds it.
    reconfig(
        &cluster,
        "start",
        "default",
        &["--dap", "abd", "--servers", "s4,s5,s6"],
    )
    .done();
    for server in ["s1", "s2", "s6"] {
        cluster.kill(server);
    }
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "v");
    let create = [
        "domain",
        "create",
        "x",
        "--dap",
        "abd",
        "--servers",
        "s3,s4,s5",
    ];
    cluster.run(&create).done();
    cluster
        .run_with(&["put", "k", "--domain", "x"], b"w")
        .done();
    assert_eq!(
        cluster.run(&["get", "k", "--domain", "x"]).done().text(),
        "w"
    );
    cluster.join("s6");
    assert_eq!(cluster.number("s6", "domains"), Some(2));
}

/// Operators who change different things at once all succeed. Of two who change the same thing one may be refused, by name.
#[test]
fn changes_at_once_are_all_made_unless_they_contradict_each_other() {
    let cluster = Cluster::start(&["--servers", "7", "--durability", "memory"]);
    let files = put_files(&cluster, "default", &[1_000, 300_000]);
    let race = |changes: &[&[&str]]| {
        let start = |change: &&[&str]| {
            cluster.spawn(&[&["reconfig", "start", "default"], *change].concat())
        };
        let started: Vec<_> = changes.iter().map(start).collect();
        let ended = started.into_iter().map(|it| it.wait_with_output().unwrap());
        ended.collect::<Vec<_>>()
    };
    let members = &["--k", "3", "--servers", "s1,s2,s3,s4,s5"][..];
    reconfig(&cluster, "start", "default", members).done();
    let [two, three, delta] = [
        ["--remove", "s2", "--add", "s6"],
        ["--remove", "s3", "--add", "s7"],
        ["--delta", "9", "--yes", "-q"],
    ];
    let ended = race(&[&two, &three, &delta]);
    assert!(ended.iter().all(|it| it.status.success()), "{ended:?}");
    let servers = shape(&cluster, "default").2;
    assert_eq!(servers, ["s1", "s6", "s7", "s4", "s5"]);
    // The change of delta is there: the same one again has nothing to do.
    let again = reconfig(&cluster, "start", "default", &["--delta", "9", "--json"]);
    assert_eq!(again.done().objects()[0]["outcome"], "unchanged");
    for deltas in [["6", "7"], ["8", "9"], ["10", "11"]] {
        let ended = race(
            &deltas
                .map(|delta| ["--delta", delta])
                .each_ref()
                .map(|it| &it[..]),
        );
        assert!(ended.iter().any(|it| it.status.success()), "{ended:?}");
        for ended in ended.iter().filter(|it| !it.status.success()) {
            let sentence = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(4), "{sentence}");
            assert!(
                sentence.contains("changed --delta, as this one would"),
                "{sentence}"
            );
        }
    }
    assert_all_there(&cluster, "default", &files);
}
