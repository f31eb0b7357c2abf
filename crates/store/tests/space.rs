//! Bounded space: reclaiming under churn, and a disk that is full.

use std::collections::BTreeMap;

use crate::common::{Random, append, header, open, payload, settle};
use areo_store::{Disk, Handle, Log, MemoryDisk, ReserveError, StepOutcome, footprint};

const SEGMENT: u64 = 256 << 10;
const KEYS: u64 = 250;
const LENGTH: usize = 4000;

fn verify(log: &Log<MemoryDisk>, live: &BTreeMap<u64, (u64, Handle)>) {
    for (key, handle) in live.values() {
        let bytes = payload(*key, LENGTH);
        assert_eq!(log.read_payload(*handle).unwrap(), bytes);
        assert_eq!(log.read_header(*handle).unwrap(), header(*key, LENGTH));
    }
}

/// Writes 50 times what is live, in random order. Space stays below three times what is live.
#[test]
fn space_stays_bounded_under_churn_and_no_record_is_lost_or_torn() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let mut random = Random::new(7);
    let mut live: BTreeMap<u64, (u64, Handle)> = BTreeMap::new();
    let mut most = 0;
    for version in 0..KEYS * 50 {
        let name = random.below(KEYS);
        let handle = append(&mut log, version, LENGTH);
        if let Some((_, old)) = live.insert(name, (version, handle)) {
            log.free(old);
        }
        if version % 8 == 0 {
            log.commit().unwrap();
            // Not more housekeeping than writing: one step a commit.
            let _ = log.step().unwrap();
        }
        most = most.max(log.usage().segment_bytes);
        if version % 2000 == 1999 {
            verify(&log, &live);
        }
    }
    log.commit().unwrap();
    let size = KEYS * footprint(20, LENGTH);
    assert!(most < 3 * size + 3 * SEGMENT, "{most} for {size}");
    assert!(most > size, "{most} for {size}");
    settle(&mut log);
    verify(&log, &live);
    let usage = log.usage();
    assert_eq!(usage.records, KEYS);
    assert!(usage.dead_bytes < usage.live_bytes + 3 * SEGMENT);
    drop(log);

    let opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.unknown_damaged, 0);
    for (key, _) in live.values() {
        assert!(opened.found.contains_key(key), "record {key}");
    }
    let readable = opened.readable();
    assert_eq!(readable.len(), opened.found.len());
}

#[test]
fn a_handle_survives_that_its_record_moves() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let kept = append(&mut log, 1, LENGTH);
    let mut doomed: Vec<Handle> = (2..150).map(|key| append(&mut log, key, LENGTH)).collect();
    log.commit().unwrap();
    let before = disk.list().unwrap();
    assert!(before.contains(&"segment-0000000000000001.log".to_owned()));
    for handle in doomed.drain(..) {
        log.free(handle);
    }
    settle(&mut log);
    let after = disk.list().unwrap();
    assert!(!after.contains(&"segment-0000000000000001.log".to_owned()));
    assert!(!after.contains(&"segment-0000000000000001.hint".to_owned()));
    assert_eq!(log.read_payload(kept).unwrap(), payload(1, LENGTH));
    log.free(kept);
    assert!(log.read_payload(kept).is_err());
}

fn fill(log: &mut Log<MemoryDisk>, first: u64) -> Vec<Handle> {
    let mut handles = Vec::new();
    for key in first.. {
        let header = header(key, LENGTH);
        match log.reserve(footprint(header.len(), LENGTH)) {
            Ok(()) => handles.push(append(log, key, LENGTH)),
            Err(ReserveError::Full { .. }) => break,
            Err(other) => panic!("{other}"),
        }
        if key % 5 == 0 {
            log.commit().unwrap();
        }
    }
    log.commit().unwrap();
    handles
}

#[test]
fn a_full_disk_refuses_and_works_again_after_frees() {
    for capacity in [2 * SEGMENT, 3 * SEGMENT + 5000, 10 * SEGMENT + 70_000] {
        for keep_one_in in [1_000_000, 7, 2] {
            let disk = MemoryDisk::with_capacity(capacity);
            let mut log = open(&disk, SEGMENT).log;
            let mut handles = fill(&mut log, 0);
            let count = handles.len();
            // Beside the spare and the active segment all of it is used, up to the padding of batches.
            let least = (capacity - 2 * SEGMENT) * 8 / 10 / footprint(40, LENGTH);
            assert!(count as u64 >= least, "{count} of {least}");
            let files = disk.list().unwrap();
            assert!(matches!(log.reserve(5000), Err(ReserveError::Full { .. })));
            assert_eq!(disk.list().unwrap(), files, "a refusal changes nothing");

            for round in 0..4 {
                let what = format!("capacity {capacity}, kept {keep_one_in}, round {round}");
                let mut kept = Vec::new();
                for (index, handle) in handles.drain(..).enumerate() {
                    if index % keep_one_in == keep_one_in - 1 {
                        kept.push(handle);
                    } else {
                        log.free(handle);
                    }
                }
                settle(&mut log);
                let more = fill(&mut log, 1_000_000 * (round + 1));
                assert!(more.len() >= count / 5, "{} of {count}, {what}", more.len());
                for handle in kept.drain(..) {
                    log.read_payload(handle).unwrap();
                    log.free(handle);
                }
                handles = more;
            }
        }
    }
}

/// A log that takes not even the smallest record any more, and the large ones in it.
fn full_to_the_last_byte() -> (Log<MemoryDisk>, Vec<Handle>) {
    let disk = MemoryDisk::with_capacity(6 * SEGMENT);
    let mut log = open(&disk, SEGMENT).log;
    let handles = fill(&mut log, 0);
    // The last bytes of the active segment are used by smaller ones.
    let small = header(0, 0);
    while log.reserve(footprint(small.len(), 0)).is_ok() {
        log.append(&small, &[], 0);
        log.commit().unwrap();
    }
    (log, handles)
}

#[test]
fn what_frees_has_room_on_a_full_disk_and_leaves_most_of_a_spare_to_copies() {
    let (mut log, handles) = full_to_the_last_byte();
    let small = header(0, 0);
    let size = footprint(small.len(), 0);
    let mut freeing = 0;
    while log.reserve_to_free(size).is_ok() {
        log.append(&small, &[], 0);
        log.commit().unwrap();
        freeing += 1;
        assert!(freeing * size < SEGMENT, "a full disk takes no more");
    }
    // Every batch takes a page.
    assert!(freeing * 4096 >= SEGMENT / 5, "{freeing} of {size} bytes");
    // Of each segment two thirds stay and have to be copied.
    let (doomed, kept): (Vec<_>, Vec<_>) = handles
        .into_iter()
        .enumerate()
        .partition(|(index, _)| index % 3 == 0);
    for (_, handle) in doomed {
        log.free(handle);
    }
    settle(&mut log);
    log.reserve(footprint(small.len(), LENGTH)).unwrap();
    for (_, handle) in kept {
        log.read_payload(handle).unwrap();
    }
}

#[test]
fn what_frees_has_room_while_others_are_copied() {
    let (mut log, handles) = full_to_the_last_byte();
    let small = header(0, 0);
    let size = footprint(small.len(), 0);
    // Of each segment two thirds stay and have to be copied.
    for handle in handles.iter().step_by(3) {
        log.free(*handle);
    }
    let mut copying = 0;
    for _ in 0..1000 {
        log.reserve_to_free(size).unwrap();
        // A few, or they would fill what they have.
        if copying < 4 {
            log.append(&small, &[], 0);
        }
        match log.step().unwrap() {
            StepOutcome::Idle => break,
            StepOutcome::CommitFirst => copying += 1,
            _ => {}
        }
        log.reserve_to_free(size).unwrap();
        log.commit().unwrap();
    }
    assert!(copying > 0, "nothing was copied");
}

#[test]
fn a_full_disk_stays_one_though_the_spare_has_room_for_what_frees() {
    let disk = MemoryDisk::with_capacity(6 * SEGMENT);
    let mut log = open(&disk, SEGMENT).log;
    let handles = fill(&mut log, 0);
    // A fifth of each segment: too little to be worth a copy while there is room.
    for handle in handles.iter().step_by(5) {
        log.free(*handle);
    }
    let needed = footprint(40, LENGTH);
    assert!(matches!(
        log.reserve(needed),
        Err(ReserveError::Full { .. })
    ));
    log.reserve_to_release(0).unwrap();
    log.reserve_to_free(0).unwrap();
    settle(&mut log);
    log.reserve(needed).unwrap();
}

#[test]
fn a_full_disk_can_be_opened_and_emptied() {
    let capacity = 6 * SEGMENT;
    let disk = MemoryDisk::with_capacity(capacity);
    let mut log = open(&disk, SEGMENT).log;
    let count = fill(&mut log, 0).len();
    drop(log);
    disk.set_capacity(Some(0));
    let mut opened = open(&disk, SEGMENT);
    assert_eq!(opened.readable().len(), count);
    assert!(matches!(
        opened.log.reserve(SEGMENT),
        Err(ReserveError::Full { .. })
    ));
    for copies in opened.found.values() {
        opened.log.free(copies[0].0);
    }
    settle(&mut opened.log);
    disk.set_capacity(Some(capacity));
    settle(&mut opened.log);
    let again = fill(&mut opened.log, 5000).len();
    assert!(again + 10 >= count, "{again} of {count}");
}

#[test]
fn a_reservation_holds_though_housekeeping_comes_in_between() {
    let capacity = 8 * SEGMENT;
    let disk = MemoryDisk::with_capacity(capacity);
    let mut log = open(&disk, SEGMENT).log;
    let handles = fill(&mut log, 0);
    for handle in handles.iter().step_by(2) {
        log.free(*handle);
    }
    settle(&mut log);
    let large = 100_000;
    log.reserve(footprint(header(1, large).len(), large))
        .unwrap();
    for handle in handles.iter().skip(1).step_by(4) {
        log.free(*handle);
    }
    for _ in 0..50 {
        if log.step().unwrap() == StepOutcome::Idle {
            break;
        }
    }
    let bytes = payload(1, large);
    let checksum = areo_store::checksum::crc32c(&bytes);
    let handle = log.append(&header(1, large), std::slice::from_ref(&bytes), checksum);
    log.commit().unwrap();
    assert_eq!(log.read_payload(handle).unwrap(), bytes);
}

#[test]
fn an_append_without_a_reservation_on_a_full_disk_is_not_acknowledged() {
    let disk = MemoryDisk::with_capacity(4 * SEGMENT);
    let mut log = open(&disk, SEGMENT).log;
    let count = fill(&mut log, 0).len();
    let bytes = payload(1, SEGMENT as usize * 2);
    let checksum = areo_store::checksum::crc32c(&bytes);
    log.append(&header(1, bytes.len()), &[bytes], checksum);
    assert!(log.commit().is_err());
    drop(log);
    assert_eq!(open(&disk, SEGMENT).readable().len(), count);
}

#[test]
fn damage_met_while_reclaiming_is_reported_and_holds_the_segment() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let handles: Vec<Handle> = (0..150).map(|key| append(&mut log, key, LENGTH)).collect();
    log.commit().unwrap();
    settle(&mut log);
    let name = "segment-0000000000000001.log";
    disk.flip(name, 4096 + 64 + 200, 1);
    for handle in &handles[1..] {
        log.free(*handle);
    }
    assert_eq!(settle(&mut log), [handles[0]]);
    assert!(disk.content(name).is_some());
    assert!(log.read_payload(handles[0]).is_err());
    // Repaired elsewhere, then freed.
    log.free(handles[0]);
    assert_eq!(settle(&mut log), []);
    assert!(disk.content(name).is_none());
}

#[test]
fn restarts_do_not_pile_up_segments() {
    let disk = MemoryDisk::new();
    for key in 0..60 {
        let mut opened = open(&disk, SEGMENT);
        assert_eq!(opened.found.len() as u64, key);
        for copies in opened.found.values() {
            for copy in &copies[1..] {
                opened.log.free(copy.0);
            }
        }
        append(&mut opened.log, key, LENGTH);
        opened.log.commit().unwrap();
        settle(&mut opened.log);
        opened.log.close().unwrap();
        let usage = open(&disk, SEGMENT).log.usage();
        assert!(usage.segments <= 9, "{usage:?}");
    }
}
