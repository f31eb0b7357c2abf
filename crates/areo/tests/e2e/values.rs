//! Objects of every size, through the command line.

use crate::cluster::Cluster;
use std::fs;

/// Bytes that no two sizes share, cheap to make.
pub(crate) fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}

const SIZES: [usize; 7] = [
    0,
    1,
    (16 << 10) - 1,
    16 << 10,
    (16 << 10) + 1,
    1 << 20,
    60 << 20,
];

#[test]
fn values_of_every_size_come_back() {
    let cluster = Cluster::start(&[]);
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    let mut versions = Vec::new();
    for size in SIZES {
        let (key, from, to) = (format!("size/{size:09}"), path("from.json"), path("to"));
        let value = bytes(size, size as u64);
        fs::write(&from, &value).unwrap();
        let put = cluster
            .run(&["put", &key, &from, "--meta", "colour=blue"])
            .done();
        versions.push(put.text().to_owned());
        cluster.run(&["get", &key, "-o", &to]).done();
        assert!(fs::read(&to).unwrap() == value, "{size} bytes in a file");
        let got = cluster.run(&["get", &key]).done();
        assert!(got.stdout == value, "{size} bytes on standard output");
        let known = cluster
            .run(&["stat", &key, "--json"])
            .done()
            .objects()
            .remove(0);
        assert_eq!(known["bytes"], size);
        assert_eq!(known["version"], put.text());
        assert_eq!(known["content_type"], "application/json");
        assert_eq!(known["metadata"]["colour"], "blue");
        assert_eq!(known["placement"].as_array().unwrap().len(), 5);
        let version = cluster.run(&["get", &key, "--version-only"]).done();
        assert_eq!(version.text(), put.text());
    }
    let listed = cluster.run(&["ls", "size/", "--json"]).done().objects();
    let sizes: Vec<_> = listed
        .iter()
        .map(|entry| entry["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, SIZES.map(|size| size as u64));
    let listed: Vec<_> = listed
        .iter()
        .map(|e| e["version"].as_str().unwrap())
        .collect();
    assert_eq!(listed, versions);
}

#[test]
fn objects_are_replaced_listed_and_deleted() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    for (key, value) in [
        ("b", "1"),
        ("a/2", "2"),
        ("a/1", "3"),
        ("ä", "4"),
        ("a/1", "5"),
    ] {
        cluster.run_with(&["put", key], value.as_bytes()).done();
    }
    assert_eq!(cluster.run(&["get", "a/1"]).done().text(), "5");
    let ls = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["ls"].iter().chain(arguments).copied().collect();
        cluster.run(&arguments).done().text().to_owned()
    };
    assert_eq!(ls(&[]), "a/1\na/2\nb\nä");
    assert_eq!(ls(&["a/"]), "a/1\na/2");
    assert_eq!(ls(&["--limit", "2"]), "a/1\na/2");
    assert_eq!(ls(&["--after", "a/2"]), "b\nä");
    assert_eq!(ls(&["nothing"]), "");
    assert_eq!(ls(&["--delimiter", "/"]), "a/\nb\nä");
    assert_eq!(ls(&["--delimiter", "/", "--limit", "1"]), "a/");
    assert_eq!(ls(&["--delimiter", "/", "--after", "a/", "b"]), "b");
    let folders = cluster.run(&["ls", "--delimiter", "/", "--json"]).done();
    assert!(folders.text().starts_with("{\"prefix\":\"a/\"}\n"));
    let too_long = "/".repeat(1025);
    cluster
        .run(&["ls", "--delimiter", &too_long])
        .refused(2, &["1025"]);
    let long = ls(&["-l", "b"]);
    let fields: Vec<&str> = long.split('\t').collect();
    assert_eq!(
        (fields.len(), fields[0], fields[3]),
        (4, "1", "b"),
        "{long}"
    );
    assert!(fields[1].parse::<u64>().is_ok_and(|ms| ms > 0), "{long}");
    cluster.run(&["rm", "a/1"]).done();
    assert_eq!(ls(&[]), "a/2\nb\nä");
    assert_eq!(ls(&["--delimiter", "/"]), "a/\nb\nä");
    cluster.run(&["get", "a/1"]).refused(3, &["a/1", "default"]);
    cluster.run(&["stat", "a/1"]).refused(3, &["a/1"]);
    cluster.run(&["rm", "a/1"]).refused(3, &["a/1"]);
    cluster.run_with(&["put", "a/1", "-"], b"again").done();
    assert_eq!(cluster.run(&["get", "a/1"]).done().text(), "again");
}

#[test]
fn domains_keep_objects_apart() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let made = cluster
        .run(&[
            "domain",
            "create",
            "copies",
            "--dap",
            "abd",
            "--servers",
            "s1,s3,s5",
            "--json",
        ])
        .done();
    let made = made.objects().remove(0);
    assert_eq!(
        (&made["n"], &made["quorum"], &made["f"]),
        (&3.into(), &2.into(), &1.into())
    );
    let in_copies = |verb: &[&str], input: &str| {
        let arguments: Vec<&str> = verb.iter().copied().chain(["--domain", "copies"]).collect();
        cluster.run_with(&arguments, input.as_bytes())
    };
    in_copies(&["put", "key"], "there").done();
    cluster.run_with(&["put", "key"], b"here").done();
    assert_eq!(in_copies(&["get", "key"], "").done().text(), "there");
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "here");
    in_copies(&["rm", "key"], "").done();
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "here");
    let listed = cluster.run(&["domain", "ls"]).done();
    let names: Vec<_> = listed
        .text()
        .lines()
        .map(|l| l.split('\t').next().unwrap())
        .collect();
    assert_eq!(names, ["domain", "copies", "default"]);
    let mut shown = cluster
        .run(&["domain", "show", "copies", "--json"])
        .done()
        .objects();
    let graph = shown[0].as_object_mut().and_then(|it| it.remove("graph"));
    let nodes = graph.as_ref().and_then(|graph| graph["nodes"].as_array());
    assert_eq!(nodes.map(Vec::len), Some(1), "{graph:?}");
    assert_eq!(shown[0], made);
    let members = shown[0]["servers"].as_array().unwrap();
    let members: Vec<_> = members
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert_eq!(members, ["s1", "s3", "s5"]);
}
