//! Missing segment files are distinguished from reclaimed ones.

use crate::common::{append, open, settle};
use areo_store::disk::Survive;
use areo_store::{Disk, MemoryDisk, StepOutcome};

const SEGMENT: u64 = 32 << 10;
const FIRST: &str = "segment-0000000000000001.log";

#[test]
fn a_segment_that_went_missing_is_reported_at_every_start() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    for key in 0..40 {
        append(&mut log, key, 9000);
        log.commit().unwrap();
        settle(&mut log);
    }
    drop(log);
    let mut segments = disk.list().unwrap();
    segments.retain(|name| name.contains(".log"));
    for name in &segments {
        let copy = disk.duplicate();
        copy.lose(name);
        let opened = open(&copy, SEGMENT);
        let is_whole = opened.readable().len() == 40;
        assert_eq!(opened.report.missing_segments.len(), 1, "{name}");
        assert!(opened.report.missing().ends_with("is gone"), "{name}");
        assert!(is_whole || opened.report.unknown_damaged == 1, "{name}");
    }
    disk.lose(&segments[2]);
    for _ in 0..3 {
        let mut opened = open(&disk, SEGMENT);
        assert_eq!(opened.report.missing_segments, [3]);
        settle(&mut opened.log);
    }
    disk.crash(|_| Survive::Nothing);
    let opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.missing_segments, [3]);
}

#[test]
fn a_reclaimed_segment_is_not_missed_but_one_that_the_census_lists_is() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let handles: Vec<_> = (0..30).map(|key| append(&mut log, key, 9000)).collect();
    log.commit().unwrap();
    settle(&mut log);
    for (key, handle) in handles.iter().enumerate() {
        // Segments hold three records each: every other one dies.
        if key / 3 % 2 == 0 {
            log.free(*handle);
        }
    }
    settle(&mut log);
    drop(log);
    let mut segments = disk.list().unwrap();
    segments.retain(|name| name.contains(".log"));
    assert!(!segments.contains(&FIRST.to_owned()));
    assert!(open(&disk, SEGMENT).report.missing_segments.is_empty());
    for name in &segments {
        let copy = disk.duplicate();
        copy.lose(name);
        let report = open(&copy, SEGMENT).report;
        // With the census gone as well, more than this one is missed, never fewer.
        let is_this = |number: &u64| *name == format!("segment-{number:016x}.log");
        assert!(report.missing_segments.iter().any(is_this), "{name}");
        assert!(report.unknown_damaged > 0, "{name}");
    }
}

#[test]
fn a_segment_that_outlived_its_removal_counts_again() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let handles: Vec<_> = (0..9).map(|key| append(&mut log, key, 9000)).collect();
    log.commit().unwrap();
    settle(&mut log);
    log.free(handles[0]);
    log.free(handles[1]);
    while log.step().unwrap() != StepOutcome::CommitFirst {}
    log.step().unwrap();
    log.commit().unwrap();
    // The census that leaves it out is durable; the process ends before the file goes.
    drop(log);
    assert!(disk.content(FIRST).is_some());
    let mut opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.unknown_damaged, 0);
    assert_eq!(opened.found[&2].len(), 2, "the original and the copy");
    // The layer above may free either of them: from now on the file must be missed.
    settle(&mut opened.log);
    drop(opened);
    assert!(disk.content(FIRST).is_some());
    disk.lose(FIRST);
    assert_eq!(open(&disk, SEGMENT).report.missing_segments, [1]);
}

/// A record that is longer than a segment gets one of its own, behind the spare. Nothing looks after the store, so that only the mark beside the
/// log that is made with a segment says that it is there.
#[test]
fn a_segment_is_missed_from_its_first_batch_on() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    for key in 0..10 {
        let length = if key % 3 == 0 { 40_000 } else { 9000 };
        append(&mut log, key, length);
        log.commit().unwrap();
        for name in disk.list().unwrap() {
            let copy = disk.duplicate();
            copy.lose(&name);
            let opened = open(&copy, SEGMENT);
            let is_whole = opened.readable().len() as u64 == key + 1;
            let is_missed = opened.report.unknown_damaged > 0;
            assert!(is_whole || is_missed, "{name} after {key}");
        }
    }
}
