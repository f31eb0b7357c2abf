//! Keys and CAs are rotated while clients read and write, and no operation fails but those of a secret that is retired.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::command;
use crate::file_history::judged;
use crate::keyed::{KeyedCluster, key_in};
use crate::metrics::{metrics, value};
use crate::reconfig::traffic::Traffic;
use areo_check::Verdict;
use areo_client::blocking::wait;
use areo_client::{Access, Client, ConnectOptions, Error};
use areo_trust::key::AccessKey;
use std::path::Path;
use std::time::Duration;

/// The pause of each client between two operations.
const PAUSE: Duration = Duration::from_millis(5);

/// A client with the key of this file, which keeps it.
fn client(cluster: &KeyedCluster, file: &Path) -> ConnectOptions {
    ConnectOptions {
        access: Some(Access::Key(AccessKey::parse(&key_in(file)).unwrap())),
        ..ConnectOptions::from(&cluster.address(0)[..])
    }
}

#[track_caller]
fn holds(traffic: Traffic) {
    let judged = judged(&traffic.stop());
    assert_eq!(judged.verdict, Verdict::Holds, "{judged}");
}

#[test]
fn keys_and_cas_are_rotated_while_clients_read_and_write() {
    let mut cluster = KeyedCluster::start();
    for (above, name) in [(1, "s2"), (2, "s3")] {
        let (seed, token) = (cluster.address(0), cluster.token());
        cluster.serve(name, above, &["--join", &seed], Some(&token));
    }
    wait_until(|| cluster.serving() == 3);
    for domain in ["before", "after"] {
        cluster.run(&["domain", "create", domain]).done();
    }
    let file = cluster.key("app", &["read,write:*"]);
    let by_first = client(&cluster, &file);
    let first = Traffic::start(&by_first, "before", PAUSE);
    let stays = wait(Client::connect(by_first)).unwrap();
    let stays = wait(stays.domain("before")).unwrap();
    first.goes_on();

    let path = file.to_str().unwrap();
    cluster
        .run(&["key", "rotate", "app", "--file", path])
        .done();
    first.goes_on();
    let second = Traffic::start(&client(&cluster, &file), "after", PAUSE);
    second.goes_on();
    holds(first);
    wait(stays.stat("shared-0")).unwrap();
    cluster.run(&["key", "retire", "app"]).done();
    let mut refusal = None;
    wait_until(|| {
        refusal = wait(stays.stat("shared-0")).err();
        refusal.is_some()
    });
    assert!(
        matches!(refusal, Some(Error::Unauthorised { .. })),
        "{refusal:?}"
    );
    second.goes_on();

    let ls = cluster.run(&["ca", "ls", "--json"]).done().objects();
    let old = ls[0]["ca"].as_str().unwrap().to_owned();
    // It waits for each server, for ever where one learns nothing of the new CA.
    let mut bounded = command::of("timeout");
    bounded.args(["60", crate::program()]);
    let rotated = cluster.run_by(bounded, &cluster.file(), &["ca", "rotate"], b"");
    rotated.done();
    second.goes_on();
    let distrusted = || -> f64 {
        let ports = (40..43).map(|above| cluster.port() + above);
        let series = "areo_server_distrusted_connections_total";
        ports.map(|port| value(&metrics(port), series)).sum()
    };
    let before = distrusted();
    cluster.run(&["ca", "drop", &old]).done();
    // Connections whose certificates stand on the old one are closed when their servers look next.
    wait_until(|| distrusted() > before);
    second.goes_on();
    wait_until(|| cluster.serving() == 3);
    second.goes_on();
    holds(second);
}
