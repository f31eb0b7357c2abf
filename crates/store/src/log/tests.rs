//! The everyday behaviour: append, commit, read, free, reopen.

use std::slice::from_ref;

use super::*;
use crate::checksum::crc32c_of_parts;
use crate::disk::{MemoryDisk, Survive};
use crate::error::ReadError;

const SEGMENT: u64 = 64 << 10;

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT,
        ..LogOptions::new(42)
    }
}

type OpenedRecords = Vec<(Handle, Vec<u8>)>;

fn open(disk: &MemoryDisk) -> (Log<MemoryDisk>, OpenedRecords, OpenReport) {
    let mut found = Vec::new();
    let opened = Log::open(disk.clone(), options(), |record| {
        found.push((record.handle, record.header.to_vec()));
    });
    let (log, report) = opened.unwrap();
    assert_eq!(report.records, found.len() as u64);
    (log, found, report)
}

fn payload(seed: u8, length: usize) -> Bytes {
    (0..length)
        .map(|i| (i as u8).wrapping_mul(31) ^ seed)
        .collect()
}

fn append(log: &mut Log<MemoryDisk>, header: &[u8], parts: &[Bytes]) -> Handle {
    let length = parts.iter().map(Bytes::len).sum();
    log.reserve(footprint(header.len(), length)).unwrap();
    log.append(header, parts, crc32c_of_parts(parts))
}

#[test]
fn a_record_is_read_while_open_in_flight_and_durable_and_after_reopening() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    let parts = [payload(1, 100), Bytes::new(), payload(2, 5000)];
    let whole = Bytes::from(parts.concat());
    let one = append(&mut log, b"one", &parts);
    let two = append(&mut log, b"two", &[]);
    let check = |log: &Log<MemoryDisk>| {
        assert_eq!(log.read_payload(one).unwrap(), whole);
        assert_eq!(log.read_header(one).unwrap(), &b"one"[..]);
        assert_eq!(log.payload_length(one).unwrap(), 5100);
        assert_eq!(log.read_payload(two).unwrap(), Bytes::new());
        assert_eq!(log.read_header(two).unwrap(), &b"two"[..]);
    };
    check(&log);
    let commit = log.begin_commit().unwrap().unwrap();
    check(&log);
    let three = append(&mut log, b"three", &[payload(3, 10)]);
    let committed = commit.run().unwrap();
    check(&log);
    log.finish_commit(committed);
    check(&log);
    log.commit().unwrap();
    assert!(log.begin_commit().unwrap().is_none());
    assert_eq!(log.read_payload(three).unwrap(), payload(3, 10));

    disk.crash(|_| Survive::Nothing);
    let (log, found, report) = open(&disk);
    let headers: Vec<&[u8]> = found.iter().map(|f| &f.1[..]).collect();
    assert_eq!(headers, [&b"one"[..], b"two", b"three"]);
    assert_eq!(log.read_payload(found[0].0).unwrap(), whole);
    assert_eq!(report.torn_tail, None);
    assert_eq!(report.unknown_damaged, 0);
}

#[test]
fn a_payload_in_one_part_is_neither_copied_nor_read_back_while_it_is_in_memory() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    let bytes = payload(1, 9000);
    let handle = append(&mut log, b"h", from_ref(&bytes));
    assert_eq!(log.read_payload(handle).unwrap().as_ptr(), bytes.as_ptr());
    let _commit = log.begin_commit().unwrap().unwrap();
    assert_eq!(log.read_payload(handle).unwrap().as_ptr(), bytes.as_ptr());
}

#[test]
fn what_was_not_committed_is_gone_after_a_crash_and_what_was_is_there() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    append(&mut log, b"kept", &[payload(1, 3000)]);
    log.commit().unwrap();
    append(&mut log, b"lost", &[payload(2, 3000)]);
    drop(log);
    disk.crash(|_| Survive::Nothing);
    let (_, found, _) = open(&disk);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, b"kept");
}

#[test]
fn a_batch_may_span_segments_and_a_record_may_be_larger_than_one() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    let large = payload(9, 5 * SEGMENT as usize);
    log.reserve(footprint(1, large.len()) + 30 * footprint(1, 5000))
        .unwrap();
    let mut handles = Vec::new();
    for seed in 0..30u8 {
        let bytes = payload(seed, 5000);
        handles.push((
            log.append(&[seed], from_ref(&bytes), crc32c_of_parts(from_ref(&bytes))),
            bytes,
        ));
        if seed == 7 {
            let parts = [large.clone()];
            handles.push((
                log.append(b"L", &parts, crc32c_of_parts(&parts)),
                large.clone(),
            ));
        }
    }
    log.commit().unwrap();
    for (handle, bytes) in &handles {
        assert_eq!(&log.read_payload(*handle).unwrap(), bytes);
    }
    disk.crash(|_| Survive::Nothing);
    let (log, found, _) = open(&disk);
    assert_eq!(found.len(), 31);
    let sum: u64 = found.iter().map(|f| log.payload_length(f.0).unwrap()).sum();
    assert_eq!(sum, 30 * 5000 + large.len() as u64);
}

#[test]
fn a_handle_is_void_after_free_and_the_space_is_dead_after_the_commit() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    let handle = append(&mut log, b"a", &[payload(1, 1000)]);
    log.commit().unwrap();
    let before = log.usage();
    append(&mut log, b"b", &[]);
    log.free(handle);
    assert!(matches!(log.read_payload(handle), Err(ReadError::Unknown)));
    assert_eq!(log.usage().live_bytes, before.live_bytes + footprint(1, 0));
    log.commit().unwrap();
    assert_eq!(log.usage().live_bytes, footprint(1, 0));
    assert_eq!(log.usage().records, 1);
    // Nothing is open, so nothing has to become durable first.
    let b = append(&mut log, b"c", &[]);
    log.commit().unwrap();
    log.free(b);
    assert_eq!(log.usage().records, 1);
}

#[test]
fn a_free_while_a_commit_is_in_flight_waits_for_it() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    let old = append(&mut log, b"old", &[]);
    log.commit().unwrap();
    append(&mut log, b"new", &[]);
    let commit = log.begin_commit().unwrap().unwrap();
    log.free(old);
    assert_eq!(log.usage().records, 2);
    let committed = commit.run().unwrap();
    log.finish_commit(committed);
    assert_eq!(log.usage().records, 1);
}

#[test]
#[should_panic(expected = "only a live record is freed, once")]
fn freeing_twice_is_a_bug() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    let handle = append(&mut log, b"a", &[]);
    log.free(handle);
    log.free(handle);
}

#[test]
fn a_failed_sync_poisons_everything_and_the_batch_is_not_acknowledged() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    let handle = append(&mut log, b"a", &[]);
    disk.fail_sync(0);
    assert!(matches!(log.commit(), Err(CommitError::Sync { .. })));
    assert!(log.is_poisoned());
    assert!(matches!(log.commit(), Err(CommitError::Poisoned)));
    assert!(matches!(log.begin_commit(), Err(CommitError::Poisoned)));
    assert!(matches!(log.reserve(1), Err(crate::ReserveError::Poisoned)));
    assert!(matches!(log.read_header(handle), Err(ReadError::Poisoned)));
    assert!(matches!(log.step(), Err(crate::StepError::Poisoned)));
    assert!(log.seal().is_err());
    let nowhere = log.append(b"b", &[], 0);
    assert!(matches!(log.read_header(nowhere), Err(ReadError::Poisoned)));
    log.free(nowhere);
    assert_eq!(log.scrub(u64::MAX, |_| ()), ScrubOutcome::default());
}

#[test]
fn what_is_recovered_after_a_failed_sync_is_durable_though_the_kernel_has_forgotten_it() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    append(&mut log, b"a", &[payload(1, 10_000)]);
    disk.fail_sync(0);
    log.commit().unwrap_err();
    drop(log);
    // The process starts again, sees the batch in the page cache and may tell others.
    assert_eq!(open(&disk).1.len(), 1);
    disk.crash(|_| Survive::Nothing);
    let (log, found, _) = open(&disk);
    let read = log.read_payload(found[0].0).unwrap();
    assert_eq!(read, payload(1, 10_000));
}

#[test]
fn recovery_syncs_also_a_segment_that_needs_no_cut() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    // Fills the segment to its last byte, so that sealing does not sync it by cutting it.
    let room = SEGMENT - 4096 - 64 - footprint(1, 0);
    let bytes = payload(1, usize::try_from(room).unwrap());
    append(&mut log, b"a", from_ref(&bytes));
    disk.fail_sync(0);
    log.commit().unwrap_err();
    drop(log);
    assert_eq!(open(&disk).1.len(), 1);
    disk.crash(|_| Survive::Nothing);
    let (log, found, _) = open(&disk);
    assert_eq!(log.read_payload(found[0].0).unwrap(), bytes);
}

#[test]
fn dropping_a_commit_poisons() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    append(&mut log, b"a", &[]);
    drop(log.begin_commit().unwrap());
    assert!(log.is_poisoned());
}

#[test]
fn a_wrong_payload_checksum_makes_a_damaged_record() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    let handle = log.append(b"a", &[payload(1, 10)], 7);
    log.commit().unwrap();
    assert!(matches!(
        log.read_payload(handle),
        Err(ReadError::Damaged { .. })
    ));
    assert_eq!(log.read_header(handle).unwrap(), &b"a"[..]);
    let mut damaged = Vec::new();
    let outcome = log.scrub(u64::MAX, |handle| damaged.push(handle));
    assert!(outcome.is_round_complete);
    assert_eq!(damaged, [handle]);
}

#[test]
fn an_empty_payload_with_a_wrong_checksum_is_never_called_intact() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    log.append(b"a", &[], 7);
    log.close().unwrap();
    let mut states = Vec::new();
    let each = |record: RecoveredRecord<'_>| states.push(record.state);
    Log::open(disk, options(), each).unwrap();
    assert_eq!(states, [PayloadState::PayloadUnverified]);
}

#[test]
fn closing_leaves_hints_for_everything() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    for seed in 0..40u8 {
        append(&mut log, &[seed; 40], &[payload(seed, 9000)]);
        log.commit().unwrap();
    }
    log.close().unwrap();
    disk.crash(|_| Survive::Nothing);
    let (log, found, report) = open(&disk);
    assert_eq!(found.len(), 40);
    // The spare is the only one without a hint.
    assert_eq!(report.scanned_segments, 1);
    assert!(report.hinted_segments >= 6);
    for (handle, header) in &found {
        assert_eq!(log.read_payload(*handle).unwrap(), payload(header[0], 9000));
    }
    assert_eq!(log.usage().records, 40);
}

#[test]
fn sealing_proves_the_last_batch_once() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    log.seal().unwrap();
    assert_eq!(disk.list().unwrap(), ["EXTENT"], "nothing to prove");
    append(&mut log, b"a", &[]);
    log.seal().unwrap();
    let operations = disk.operations();
    log.seal().unwrap();
    assert_eq!(disk.operations(), operations);
    append(&mut log, b"b", &[]);
    log.seal().unwrap();
    assert!(disk.operations() > operations);
    assert_eq!(open(&disk).1.len(), 2);
}

#[test]
fn the_index_takes_at_most_48_bytes_a_record() {
    const RECORDS: u32 = 100_000;
    let (mut log, _, _) = open(&MemoryDisk::new());
    for record in 0..RECORDS {
        append(&mut log, &record.to_le_bytes(), &[]);
        if record % 500 == 0 {
            log.commit().unwrap();
        }
    }
    log.commit().unwrap();
    let usage = log.usage();
    assert_eq!(usage.records, u64::from(RECORDS));
    assert!(usage.index_bytes >= u64::from(RECORDS) * 32);
    assert!(usage.index_bytes <= u64::from(RECORDS) * 48);
}

#[test]
fn scrubbing_goes_round_within_its_budget() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    for seed in 0..10u8 {
        append(&mut log, &[seed], &[payload(seed, 1000)]);
    }
    log.commit().unwrap();
    let size = footprint(1, 1000);
    let mut seen = 0;
    for _ in 0..5 {
        let outcome = log.scrub(2 * size, |_| panic!("nothing is damaged"));
        assert_eq!(outcome.records, 2);
        seen += outcome.records;
    }
    assert_eq!(seen, 10);
    assert!(log.scrub(1, |_| ()).is_round_complete);
    assert_eq!(log.scrub(1, |_| ()).records, 1);
}

/// Records that were verified in a round of scrubbing are not verified again after a restart, or after they were
/// moved.
#[test]
fn a_round_of_scrubbing_goes_on_after_a_restart() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    let mut records = Vec::new();
    for seed in 0..40u8 {
        records.push(append(&mut log, &[seed], &[payload(seed, 9000)]));
        log.commit().unwrap();
    }
    let size = footprint(1, 9000);
    let mut done = 0;
    while done < 18 {
        done += log.scrub(size, |_| ()).records;
        let place = log.scrub_place();
        log.close().unwrap();
        (log, _, _) = open(&disk);
        log.scrub_at(place);
    }
    let left = log.scrub(u64::MAX, |_| panic!("nothing is damaged"));
    // The last one is the census of segments, if there is one.
    assert!(
        left.is_round_complete && (22..=23).contains(&left.records),
        "{left:?}"
    );
    assert!(log.scrub(u64::MAX, |_| ()).records >= 40);
}

/// A round verifies the records that were there when it began: faster writers do not keep it from its end.
#[test]
fn a_round_of_scrubbing_ends_while_more_is_written() {
    let (mut log, _, _) = open(&MemoryDisk::new());
    // As a start does.
    log.scrub_from(0);
    let mut newest: Vec<Handle> = Vec::new();
    for round in 0..3 {
        let mut calls = 0;
        loop {
            for seed in 0..3u8 {
                newest.push(append(&mut log, &[seed], &[payload(seed, 9000)]));
            }
            log.commit().unwrap();
            if newest.len() > 60 {
                // What the cursor stands at may go as well.
                newest.drain(..3).for_each(|handle| log.free(handle));
                while !matches!(log.step().unwrap(), StepOutcome::Idle) {
                    log.commit().unwrap();
                }
            }
            calls += 1;
            assert!(calls < 500, "round {round} ends");
            if log
                .scrub(1, |_| panic!("nothing is damaged"))
                .is_round_complete
            {
                break;
            }
        }
    }
}

/// A start accepts batches up to a largest number: a batch beyond it would be acknowledged, and lost with the next
/// start.
#[test]
fn no_batch_is_written_that_the_next_start_does_not_believe() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk);
    (log.sequence, log.durable) = (MAX_SEQUENCE - 1, MAX_SEQUENCE - 1);
    append(&mut log, b"last", &[]);
    log.commit().unwrap();
    log.append(b"beyond", &[], 0);
    assert!(log.commit().is_err());
    assert!(log.failure().is_some_and(|cause| cause.contains("used up")));
    disk.crash(|_| Survive::Nothing);
    let (_, found, report) = open(&disk);
    let headers: Vec<&[u8]> = found.iter().map(|f| &f.1[..]).collect();
    assert_eq!(headers, [b"last"]);
    assert_eq!(report.unknown_damaged, 0);
}
