//! A command that cannot succeed ends with one sentence and the right exit code, and leaves nothing behind.

use crate::cluster::{Cluster, areo, free_ports};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[test]
fn keys_and_values_that_cannot_be() {
    let cluster = Cluster::start(&["--durability", "memory", "--max-object", "1MiB"]);
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    cluster.run(&["put", ""]).refused(2, &["the key is empty"]);
    cluster
        .run(&["put", &"k".repeat(1025)])
        .refused(2, &["1025 bytes", "1 to 1024"]);
    let invalid = [OsStr::new("put"), OsStr::from_bytes(b"a\xff")];
    cluster.run(&invalid).refused(2, &["not UTF-8"]);
    cluster
        .run_with(&["put", &"k".repeat(1024)], b"fits")
        .done();
    cluster
        .run(&["put", "a", &path("missing")])
        .refused(1, &["missing", "no such file"]);
    fs::create_dir(path("folder")).unwrap();
    cluster
        .run(&["put", "a", &path("folder")])
        .refused(1, &["is a directory", "`areo cp -r`"]);
    let pair = format!("x={}", "v".repeat(2048));
    cluster
        .run_with(&["put", "a", "--meta", &pair], b"v")
        .refused(2, &["2048"]);
    cluster
        .run(&["ls", &"p".repeat(1025)])
        .refused(2, &["1025 bytes"]);
    let left = cluster.run(&["ls"]).done();
    assert_eq!(left.text(), "k".repeat(1024), "nothing else was written");
}

#[test]
fn places_that_cannot_be_written() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let folder = cluster.folder().join("out");
    fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    cluster.run_with(&["put", "key"], &vec![7; 100_000]).done();
    cluster
        .run(&["get", "none", "-o", &path("none")])
        .refused(3, &["none"]);
    cluster
        .run(&["get", "key", "-o", &path("no/file")])
        .refused(1, &["no such directory"]);
    fs::create_dir(path("key")).unwrap();
    cluster
        .run(&["get", "key", &path("")])
        .refused(1, &["'key' in it is a directory"]);
    fs::remove_dir(path("key")).unwrap();
    cluster
        .run(&["get", "key", "-o", "/dev/full"])
        .refused(1, &["/dev/full", "no space"]);
    cluster
        .run(&["get", "key", "--json"])
        .refused(2, &["-o FILE"]);
    let left = fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 0, "nothing is left behind");
    let read = cluster
        .run(&["get", "key", "--json", "-o", &path("key")])
        .done()
        .objects();
    assert_eq!(read[0]["bytes"], 100_000);
    assert_eq!(fs::read(path("key")).unwrap(), vec![7; 100_000]);
    cluster.run_with(&["put", "deep/down/value"], b"v").done();
    cluster.run(&["get", "deep/down/value", &path("")]).done();
    assert_eq!(fs::read(path("value")).unwrap(), b"v");
}

#[test]
fn a_key_without_an_object_does_not_keep_the_others() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    for key in ["a", "b", "c"] {
        cluster.run_with(&["put", key], b"v").done();
    }
    let removed = cluster.run(&["rm", "a", "none", "b", "neither", "--json"]);
    assert_eq!(removed.code, 3, "{}", removed.stderr);
    for missing in ["'none'", "'neither'"] {
        assert!(removed.stderr.contains(missing), "{}", removed.stderr);
    }
    let keys: Vec<_> = removed.objects().iter().map(|o| o["key"].clone()).collect();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(cluster.run(&["ls"]).done().text(), "c");
}

#[test]
fn domains_that_cannot_be() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = |arguments: &[&str]| {
        let fixed = ["domain", "create"];
        let arguments: Vec<&str> = fixed.iter().chain(arguments).copied().collect();
        cluster.run(&arguments)
    };
    for verb in [
        vec!["ls"],
        vec!["get", "a"],
        vec!["rm", "a"],
        vec!["stat", "a"],
    ] {
        let verb: Vec<&str> = verb.into_iter().chain(["--domain", "none"]).collect();
        cluster
            .run(&verb)
            .refused(3, &["there is no domain 'none'", "areo domain ls"]);
    }
    cluster
        .run(&["domain", "show", "none"])
        .refused(3, &["'none'"]);
    let status = cluster.run(&["status", "--domain", "none"]);
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.stderr.contains("there is no domain 'none'"));
    cluster.run(&["status", "--domain", "default"]).done();
    cluster
        .run(&["domain", "ls", "--domain", "none"])
        .refused(2, &["takes no --domain"]);
    create(&["Not A Name"]).refused(2, &["cannot name a domain"]);
    create(&["x", "--servers", "s1,s2,s9"]).refused(3, &["no server 's9'", "s1, s2, s3"]);
    create(&["x", "--servers", "s1,s2,s1"]).refused(2, &["'s1' is named twice"]);
    create(&["x", "--servers", "s1,s2"]).refused(2, &["tolerates no crash", "--allow-f0"]);
    create(&["x", "--k", "4"]).refused(2, &["tolerates no crash", "5 of 5"]);
    create(&["x", "--k", "6", "--allow-f0"]).refused(2, &["k = 6"]);
    create(&["x", "--k", "0"]).refused(2, &["k = 0"]);
    create(&["x", "--dap", "abd", "--k", "2"]).refused(2, &["leave --k out"]);
    let left = cluster.run(&["domain", "ls"]).done();
    let lines: Vec<&str> = left.text().lines().collect();
    assert!(
        matches!(lines[..], [head, one] if head.starts_with("domain\tdap\t") && one.starts_with("default\t")),
        "{lines:?}"
    );
    create(&["x", "--servers", "s1,s2", "--allow-f0"]).done();
    create(&["x"]).refused(4, &["'x' exists already", "ec [2,1]"]);
}

#[test]
fn clusters_that_are_not_there() {
    let nobody = format!("127.0.0.1:{}", free_ports());
    let refused = areo(&["--cluster", &nobody, "ls", "--timeout", "2s"], b"");
    refused.refused(5, &[&nobody, "refused"]);
    areo(&["--cluster", "nowhere", "ls"], b"").refused(2, &["'nowhere'", "HOST:PORT"]);
    let empty = tempfile::tempdir().unwrap();
    let mut here = std::process::Command::new(env!("CARGO_BIN_EXE_areo"));
    let here = here
        .args(["--config", "", "ls"])
        .current_dir(&empty)
        .output()
        .unwrap();
    let said = String::from_utf8(here.stderr).unwrap();
    assert_eq!(here.status.code(), Some(2), "{said}");
    assert!(said.contains("run `areo up` or pass --cluster"), "{said}");
    // The file of one cluster with the addresses of another.
    let cluster = Cluster::start(&["--durability", "memory"]);
    let text = fs::read_to_string(cluster.file()).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("cluster = "))
        .unwrap();
    let other = text.replace(line, &format!("cluster = \"{}\"", "ab".repeat(16)));
    let stale = empty.path().join("cluster.toml");
    fs::write(&stale, other).unwrap();
    let stale = stale.to_str().unwrap();
    let refused = areo(&["--cluster", stale, "ls", "--timeout", "2s"], b"");
    refused.refused(5, &["another cluster", "127.0.0.1", stale]);
}

#[test]
fn configuration_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("areo.toml");
    fs::write(&file, "[up]\nserver = 3\n").unwrap();
    let file = file.to_str().unwrap();
    let refused = areo(&["ls", "--config", file], b"");
    refused.refused(2, &["'up.server'", "the nearest is 'up.servers'"]);
    areo(&["ls", "--config", "/nonexistent"], b"").refused(2, &["/nonexistent"]);
    areo(&["lsx"], b"").refused(2, &["lsx"]);
    let refused = areo(&["--json", "get"], b"");
    let object: serde_json::Value = serde_json::from_str(&refused.stderr).expect("one object");
    assert_eq!(
        (&object["code"], &object["kind"]),
        (&2.into(), &"usage".into())
    );
    let version = areo(&["--version"], b"").done();
    assert_eq!(version.text(), areo(&["version"], b"").done().text());
    let known = areo(&["version", "--json"], b"").done().objects();
    assert!(version.text().starts_with("areo "));
    for part in ["version", "revision", "date", "profile"] {
        let part = known[0][part].as_str().expect("it is there");
        assert!(version.text().contains(part), "{part}");
    }
    let help = areo(&["help", "put"], b"").done();
    assert!(help.text().contains("areo put"), "{}", help.text());
    areo(&["copy", "a", "b"], b"").refused(2, &["no command 'copy'", "areo cp -r FOLDER"]);
    let idle: [&[&str]; 4] = [
        &["trace", "summary", "--html", "page"],
        &["trace", "summary", "--list"],
        &["trace", "last", "--since", "1h"],
        &["rm", "a", "b", "--if-version", "1-a"],
    ];
    for arguments in idle {
        areo(arguments, b"").refused(2, &[]);
    }
}
