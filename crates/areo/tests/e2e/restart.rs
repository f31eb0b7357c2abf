//! Records that say what cannot be, in a domain whose servers agree on what stays.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use std::fs;
use std::path::Path;

/// The CRC-32C of these bytes.
pub(crate) fn crc(bytes: &[u8]) -> [u8; 4] {
    let of_byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0x82f6_3b78,
            _ => crc >> 1,
        })
    };
    (!bytes.iter().fold(!0, of_byte)).to_le_bytes()
}

/// The bytes of a tag, of its text `number-client counter` (`docs/wire.md`).
fn tag(version: &str) -> Vec<u8> {
    let (number, writer) = version.split_once('-').unwrap();
    let (client, counter) = writer.split_at(16);
    let parts = [number, client, counter].map(|hex| u64::from_str_radix(hex, 16).unwrap());
    parts.map(u64::to_le_bytes).concat()
}

/// The number of this version becomes one that no run produces, in each record of these files that says it (`docs/data-file.md`).
/// Returns in how many.
fn make_impossible(log: &Path, version: &str) -> usize {
    let (tag, mut found) = (tag(version), 0);
    for entry in fs::read_dir(log).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "log") {
            continue;
        }
        let mut content = fs::read(&path).unwrap();
        let segment: [u8; 8] = content[24..32].try_into().unwrap();
        for start in (0..content.len().saturating_sub(48)).step_by(64) {
            if !content[start..].starts_with(b"AReC") {
                continue;
            }
            let length: [u8; 4] = content[start + 8..start + 12].try_into().unwrap();
            let header = start + 48..start + 48 + u32::from_le_bytes(length) as usize;
            let tags = content[header.clone()].windows(tag.len());
            let Some(at) = tags.clone().position(|bytes| bytes == tag) else {
                continue;
            };
            content[header.start + at + 7] |= 0x40;
            let sum = crc(&content[header]);
            content[start + 20..start + 24].copy_from_slice(&sum);
            let place = (start as u64).to_le_bytes();
            let sum = crc(&[&content[start..start + 44], &segment, &place].concat());
            content[start + 44..start + 48].copy_from_slice(&sum);
            found += 1;
        }
        fs::write(&path, content).unwrap();
    }
    found
}

/// A command on the domain.
fn of<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [&["--domain", "cache"], command].concat()
}

/// `[CASSS-6 largest-decodable]`: servers whose records say what cannot be abstain, wait for one that is down, and then all
/// agree on what was written last.
#[test]
fn servers_agree_on_what_stays_when_all_of_them_are_up() {
    let mut cluster = Cluster::start(&[]);
    let shape = ["--dap", "casss", "--k", "1"];
    let create = [&["domain", "create", "cache"][..], &shape].concat();
    cluster.run(&create).done();
    let value = b"a value that is longer than it needs to be";
    cluster.run_with(&of(&["put", "k", "-"]), value).done();
    let stat = || cluster.run(&of(&["stat", "k", "--json"])).done().objects();
    let version = stat()[0]["version"].as_str().unwrap().to_owned();
    cluster.kill("s2");
    let log = cluster.data().join("s2/log");
    assert!(make_impossible(&log, &version) > 0);
    cluster.kill("s4");
    cluster.restart("s2");
    let waits = |cluster: &Cluster| {
        let lines = cluster.run(&["status", "--json"]).done().objects();
        let domain = lines.into_iter().find(|it| it["domain"] == "cache");
        domain.unwrap()["waits_for"].clone()
    };
    wait_until(|| waits(&cluster) == serde_json::json!(["s4"]));
    assert_eq!(cluster.damaged("s2"), 1);
    let shown = cluster.run(&["status"]).done();
    let sentence = "waits for s4 to restart counters of objects";
    assert!(shown.text().contains(sentence), "{shown:?}");
    let got = cluster.run(&of(&["get", "k"])).done();
    assert!(got.stdout == value, "as many abstain as may fail");

    cluster.restart("s4");
    wait_until(|| cluster.damaged("s2") == 0);
    wait_until(|| waits(&cluster) == serde_json::json!([]));
    let got = cluster.run(&of(&["get", "k"])).done();
    assert!(got.stdout == value);
    cluster.run_with(&of(&["put", "k", "-"]), b"after").done();
    let got = cluster.run(&of(&["get", "k"])).done();
    assert!(got.stdout == b"after");
}
