//! A cluster with keys: tokens, keys, the rotation of its CA, and the record of all that.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::{run as areo, spawn, wait_until};
use crate::keyed::{KeyedCluster, secret_in};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn tokens_are_listed_and_the_record_has_each_change() {
    let mut cluster = KeyedCluster::start();
    let (seed, token) = (cluster.address(0), cluster.token());
    cluster.serve("s2", 1, &["--join", &seed], Some(&token));
    wait_until(|| cluster.serving() == 2);
    let states = || {
        let rows = cluster.run(&["token", "ls", "--json"]).done().objects();
        let states = rows.iter().map(|row| row["state"].as_str().unwrap());
        let mut states: Vec<String> = states.map(str::to_owned).collect();
        states.sort();
        states
    };
    assert_eq!(states(), ["used"]);

    let other = cluster.token();
    let id = other.split('.').nth(2).unwrap();
    cluster.run(&["token", "revoke", id]).done();
    assert_eq!(states(), ["revoked", "used"]);
    let revoke = |id: &str| cluster.run(&["token", "revoke", id]);
    revoke(&"f".repeat(16)).refused(3, &["areo token ls"]);
    revoke(&other).refused(2, &["areo token ls"]);

    let changes = cluster.run(&["audit", "ls", "--json"]).done().objects();
    let changes = changes.iter().map(|row| row["what"].as_str().unwrap());
    let expected = [
        "founded",
        "token-created",
        "token-used",
        "token-created",
        "token-revoked",
    ];
    assert_eq!(changes.collect::<Vec<&str>>(), expected);
}

#[test]
fn a_key_does_what_its_grants_say_until_it_is_revoked() {
    let cluster = KeyedCluster::start();
    let ops = cluster.key("ops", &["join"]);
    assert_eq!(mode(&ops), 0o600);
    let by = |file: &Path, words: &[&str]| cluster.run_as(file, words, b"");
    by(&ops, &["token", "ls"]).done();
    for words in [&["key", "ls"][..], &["ca", "ls"], &["audit", "ls"]] {
        by(&ops, words).refused(6, &["'keys'"]);
    }
    let create = |name: &str, grant: &str, file: Option<&Path>| {
        let file = file.map(|file| file.to_str().unwrap());
        let words = ["key", "create", name, "--grant", grant];
        let to_file = file.iter().flat_map(|file| ["--file", *file]);
        cluster.run(&words.into_iter().chain(to_file).collect::<Vec<&str>>())
    };
    create("ops", "status", None).refused(4, &["the name 'ops' is taken"]);
    create("x", "status", Some(&ops)).refused(2, &["exists", "areo key rotate"]);
    let nowhere = cluster.data("missing/x.toml");
    create("x", "status", Some(&nowhere)).refused(2, &["does not exist"]);
    create("x", "fly:logs", None).refused(2, &["fly"]);

    // Two secrets, then one.
    let old = cluster.data("old.toml");
    fs::copy(&ops, &old).unwrap();
    let rotate = ["key", "rotate", "ops", "--file", ops.to_str().unwrap()];
    cluster.run(&rotate).done();
    for file in [&old, &ops] {
        by(file, &["token", "ls"]).done();
    }
    let third = cluster.run(&["key", "rotate", "ops"]);
    third.refused(4, &["two secrets already"]);
    cluster.run(&["key", "retire", "ops"]).done();
    by(&ops, &["token", "ls"]).done();
    by(&old, &["token", "ls"]).refused(6, &["was rotated"]);

    let grant = ["key", "grant", "ops", "--grant", "status"];
    cluster.run(&grant).done();
    by(&ops, &["token", "ls"]).refused(6, &["'join'"]);
    let shown = cluster.run(&["key", "ls"]).done();
    assert!(shown.text().contains("status"), "{}", shown.text());

    let revoke = |name: &str| cluster.run(&["key", "revoke", name]);
    revoke("ops").done();
    by(&ops, &["token", "ls"]).refused(6, &["was revoked"]);
    revoke("ops").refused(3, &["'ops'", "areo key ls"]);
    revoke("admin").refused(4, &["the last one"]);
    let (written, secret) = (cluster.written(), secret_in(&ops));
    assert!(!written.contains(&secret), "in a log or an error");
}

/// Each command with a key that has everything but the needed grant, which changes nothing, and with the needed one alone.
#[test]
fn a_command_without_its_grant_names_it() {
    let cluster = KeyedCluster::start();
    let create = ["domain", "create", "logs", "--servers", "s1", "--allow-f0"];
    cluster.run(&create).done();
    let file = cluster.data("file");
    fs::write(&file, "x").unwrap();
    let put = ["--domain", "logs", "put", "k", file.to_str().unwrap()];
    cluster.run(&put).done();
    let of_logs = ["read", "write", "list", "delete", "admin"];
    let of_cluster = ["status", "reconfig"];
    let get: &[&str] = &["--domain", "logs", "get", "k"];
    let create = [&create[..2], &["new"], &create[3..]].concat();
    let commands: [(&str, &[&str], bool); 7] = [
        ("read", get, true),
        ("write", &put, true),
        ("list", &["--domain", "logs", "ls"], true),
        ("status", &["status"], true),
        ("admin", &create, false),
        ("admin", &["domain", "rm", "logs", "--yes"], false),
        ("delete", &["--domain", "logs", "rm", "k"], true),
    ];
    for (verb, words, is_enough) in commands {
        let is_other = |it: &&&str| **it != verb;
        let others: Vec<&str> = of_logs.iter().filter(is_other).copied().collect();
        let others = format!("{}:*", others.join(","));
        // A holder of `reconfig` may write the whole directory.
        let may_create = |it: &&&str| verb != "admin" || **it != "reconfig";
        let cluster_verbs = of_cluster.iter().filter(is_other).filter(may_create);
        let cluster_verbs: Vec<&str> = cluster_verbs.copied().collect();
        let rest = cluster_verbs.join(",");
        let name = format!("{verb}-{}", words.len());
        let without = cluster.key(&format!("no-{name}"), &[&others, &rest]);
        let refused = cluster.run_as(&without, words, b"");
        refused.refused(6, &[&format!("lacks the grant '{verb}")]);
        assert_eq!(cluster.run(get).done().text(), "x");
        if is_enough {
            let grant = match of_logs.contains(&verb) {
                true => format!("{verb}:logs"),
                false => verb.to_owned(),
            };
            let only = cluster.key(&format!("only-{name}"), &[&grant]);
            cluster.run_as(&only, words, b"").done();
        }
    }
}

#[test]
fn the_ca_is_rotated_and_the_old_one_goes_when_no_certificate_stands_on_it() {
    let mut cluster = KeyedCluster::start();
    let (seed, token) = (cluster.address(0), cluster.token());
    let join = ["--join", &seed, "--name", "s2"];
    cluster.serve("s2", 1, &join, Some(&token));
    wait_until(|| cluster.serving() == 2);
    let ops = cluster.key("ops", &["join"]);
    let digests = || {
        let rows = cluster.run(&["ca", "ls", "--json"]).done().objects();
        let digests = rows.iter().map(|row| row["ca"].as_str().unwrap());
        digests.map(str::to_owned).collect::<Vec<String>>()
    };
    let old = digests();
    assert_eq!(old.len(), 1);
    let drop_old = ["ca", "drop", &old[0]];
    let in_use = cluster.run(&drop_old);
    in_use.refused(4, &["s1", "s2", "areo ca rotate"]);

    let rotated = cluster.run(&["ca", "rotate"]).done();
    let next = format!("areo ca drop {}", old[0]);
    assert!(rotated.stderr.contains(&next), "{}", rotated.stderr);
    let both = digests();
    assert_eq!(both[1..], old[..], "the new one issues");
    // Clients know the servers by their key: files with the old digest are as good.
    cluster.run_as(&ops, &["token", "ls"], b"").done();

    cluster.run(&drop_old).done();
    assert_eq!(digests(), both[..1]);
    cluster.run_as(&ops, &["token", "ls"], b"").done();
    let gone = cluster.run(&drop_old);
    gone.refused(3, &["does not trust the CA"]);
    // Servers still reach each other.
    wait_until(|| cluster.serving() == 2);
}

#[test]
fn a_cluster_without_keys_says_so() {
    let cluster = KeyedCluster::start_plain();
    let address = cluster.address(0);
    for words in [
        &["key", "ls"][..],
        &["token", "create"],
        &["ca", "ls"],
        &["audit", "ls"],
    ] {
        let plain = [&["--cluster", &address], words].concat();
        areo(&plain, b"").refused(2, &["its connections are plain"]);
    }
    let mut said = String::new();
    let mut child = spawn(&["key", "create", "x"]);
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(said.contains("--grant"), "{said}");
}
