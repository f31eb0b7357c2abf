//! Data files of every released format stay readable, and today's writer makes the same bytes as when they were made.
//!
//! `AREO_WRITE_GOLDEN=1 cargo test -p areo-store --test log golden::` writes the files of the present format; do that only for a new
//! format version, in a directory of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{append, open, settle};
use areo_store::disk::{Survive, UnsyncedChange};
use areo_store::{Directory, Disk, MemoryDisk, PayloadState};

const SEGMENT: u64 = 16 << 10;
const KEYS: u64 = 48;
const LENGTHS: [usize; 3] = [0, 100, 2000];
const IDENTITY: &[u8] = b"server 7 of the golden cluster";

fn is_live(key: u64) -> bool {
    key >= 16 || key == 2
}

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// The first format: it has no extent file, and segments do not state their size.
const FIRST: &str = "format-1";
/// The format of today.
const TODAY: &str = "format-1-extent";

/// Everything the format has: sealed and unsealed segments, a hint, a reclaimed segment with its census, an empty record, a
/// seal, a torn tail, a spare.
fn write_log() -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let mut handles = Vec::new();
    for key in 0..KEYS {
        handles.push(append(&mut log, key, LENGTHS[key as usize % 3]));
        if key % 3 == 2 {
            log.commit().unwrap();
        }
    }
    settle(&mut log);
    for key in (0..KEYS).filter(|key| !is_live(*key)) {
        log.free(handles[key as usize]);
    }
    settle(&mut log);
    log.seal().unwrap();
    append(&mut log, 99, 5000);
    disk.power_off_at(disk.operations());
    log.commit().unwrap_err();
    disk.crash(|unsynced| match unsynced {
        UnsyncedChange::Write { .. } => Survive::Prefix(1000),
        _ => Survive::All,
    });
    let names = disk.list().unwrap();
    let content = |name: &String| disk.content(name).unwrap();
    let mut files: BTreeMap<_, _> = names.iter().map(|n| (n.clone(), content(n))).collect();
    files.insert("IDENTITY".to_owned(), identity_file());
    files
}

fn identity_file() -> Vec<u8> {
    let parent = tempfile::tempdir().unwrap();
    let directory = Directory::open(parent.path().join("data")).unwrap();
    directory.write_identity(IDENTITY).unwrap();
    std::fs::read(directory.path().join("IDENTITY")).unwrap()
}

fn read_golden(name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(golden_path(name)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    files
}

#[test]
fn todays_writer_makes_the_golden_bytes() {
    let files = write_log();
    if std::env::var_os("AREO_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(golden_path(TODAY)).unwrap();
        for (name, content) in &files {
            std::fs::write(golden_path(TODAY).join(name), content).unwrap();
        }
    }
    let golden = read_golden(TODAY);
    let names: Vec<&String> = golden.keys().collect();
    assert_eq!(names, files.keys().collect::<Vec<_>>());
    for (name, content) in &golden {
        let first = content.iter().zip(&files[name]).position(|(a, b)| a != b);
        assert_eq!(first, None, "{name} differs");
        assert_eq!(content.len(), files[name].len(), "{name}");
    }
}

#[test]
fn the_golden_logs_of_format_1_open() {
    for golden in [FIRST, TODAY] {
        the_golden_log_opens(golden);
    }
}

fn the_golden_log_opens(golden: &str) {
    let disk = MemoryDisk::new();
    for (name, content) in read_golden(golden) {
        disk.put(&name, content);
    }
    let opened = open(&disk, SEGMENT);
    assert!(opened.report.torn_tail.is_some());
    assert!(opened.report.hinted_segments > 0);
    assert_eq!(opened.report.unknown_damaged, 0);
    assert!(opened.report.missing_segments.is_empty());
    let live: Vec<u64> = (0..KEYS).filter(|key| is_live(*key)).collect();
    // Freed records whose segment is still there come back, as they may.
    let found: Vec<u64> = opened.readable();
    assert!(live.iter().all(|key| found.contains(key)), "{found:?}");
    assert!(!found.contains(&0) && !found.contains(&99));
    assert_eq!(found.len(), opened.found.len());
    let states: Vec<PayloadState> = opened.found.values().map(|copies| copies[0].1).collect();
    assert!(states.contains(&PayloadState::Intact));
    assert!(states.contains(&PayloadState::PayloadUnverified));
}

#[test]
fn the_golden_identity_of_format_1_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let directory = Directory::open(parent.path().join("data")).unwrap();
    let golden = golden_path(FIRST).join("IDENTITY");
    std::fs::copy(golden, directory.path().join("IDENTITY")).unwrap();
    assert_eq!(directory.read_identity().unwrap().unwrap(), IDENTITY);
}
