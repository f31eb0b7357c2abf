//! The version of a program, and data directories of later versions. Two programs in one cluster: `cargo xtask upgrade`.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, free_ports};
use crate::restart::crc;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn versions_and_the_level_are_shown_and_without_a_new_level_there_is_nothing_to_finalize() {
    let cluster = Cluster::start(&["--servers", "3", "--durability", "memory"]);
    let status = cluster.run(&["status", "--json"]).done().objects();
    assert_eq!(status[0]["level"], 0);
    for server in &status[1..4] {
        let shown = (&server["version"], &server["level"]);
        assert_eq!(shown, (&env!("CARGO_PKG_VERSION").into(), &0.into()));
    }
    let finalized = cluster.run(&["cluster", "finalize", "--json"]).done();
    assert_eq!(finalized.text(), r#"{"outcome":"unchanged","level":0}"#);
    let finalized = cluster.run(&["cluster", "finalize"]).done();
    assert!(finalized.text().contains("there is nothing to do"));
}

/// Every file below the directory.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// The file says a version more, at byte 8. Its checksum covers what is before it, and these bytes behind it.
fn advance(file: &Path, checksum: usize, is_behind_covered: bool) {
    let mut bytes = fs::read(file).unwrap();
    bytes[8] += 1;
    let behind = match is_behind_covered {
        true => &bytes[checksum + 4..],
        false => &[],
    };
    let sum = crc(&[&bytes[..checksum], behind].concat());
    bytes[checksum..checksum + 4].copy_from_slice(&sum);
    fs::write(file, bytes).unwrap();
}

/// Makes a file of a data directory one of a later format.
type Change<'a> = &'a dyn Fn(&Path);

#[test]
fn a_data_directory_of_a_later_format_is_refused_politely_and_left_as_it_is() {
    let mut cluster = Cluster::start(&["--servers", "3"]);
    cluster.run_with(&["put", "key"], b"value").done();
    assert_eq!(cluster.stop().code, 0);
    let data = cluster.data().join("s1");
    let sound = content(&data);
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|it| it == "log");
    let segment = sound.keys().find(is_segment).unwrap();
    let format = |data: &Path| {
        let later = "areo data directory\nformat 3\n";
        fs::write(data.join("FORMAT"), later).unwrap();
    };
    let identity = |data: &Path| advance(&data.join("IDENTITY"), 16, true);
    let of_segment = |_: &Path| advance(segment, 60, false);
    let cases: [(Change<'_>, &str); 3] = [
        (&format, "data format 3, this program knows format 2"),
        (&identity, "identity format 2, this program knows format 1"),
        (
            &of_segment,
            "format version 2, this program knows version 1",
        ),
    ];
    for (change, sentence) in cases {
        change(&data);
        let later = content(&data);
        let listen = format!("127.0.0.1:{}", free_ports());
        for _ in 0..2 {
            let server = [
                "server",
                "--data",
                data.to_str().unwrap(),
                "--listen",
                &listen,
            ];
            let what_to_do = "use the program that wrote it, or a newer one";
            areo(&server, b"").refused(1, &[sentence, what_to_do]);
            assert!(content(&data) == later, "{sentence}: nothing is written");
        }
        for (path, bytes) in &sound {
            fs::write(path, bytes).unwrap();
        }
    }
    let cluster = cluster.start_again(&[]);
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
}
