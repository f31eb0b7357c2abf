//! Every truncation and every flipped byte of small logs: nothing wrong is ever read, and nothing that was acknowledged
//! is lost without being reported.

use std::collections::BTreeMap;
use std::slice::from_ref;

use crate::common::{OpenStore, append, header, open, options, payload, settle};
use areo_store::checksum::crc32c;
use areo_store::{Disk, Log, MemoryDisk, OpenError, PayloadState, ReadError, footprint};
use bytes::Bytes;

const SEGMENT: u64 = 32 << 10;
/// A batch begins at a multiple of this.
const PAGE: usize = 4096;
const FIRST: &str = "segment-0000000000000001.log";

/// Five batches of up to three records of lengths that leave padding.
fn small_log(is_sealed: bool) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let mut key = 0;
    for batch in 0..5u64 {
        for _ in 0..=batch % 3 {
            append(&mut log, key, length_of(key));
            key += 1;
        }
        log.commit().unwrap();
    }
    if is_sealed {
        log.seal().unwrap();
    }
    assert_eq!(key, KEYS);
    disk
}

const KEYS: u64 = 9;
const LENGTHS: [usize; 3] = [0, 300, 1900];
const LAST_BATCH: [u64; 2] = [7, 8];

fn first_segment(disk: &MemoryDisk) -> (String, usize) {
    let content = disk.content(FIRST).unwrap();
    // To the end of the last batch, padding included.
    let used = content.iter().rposition(|b| *b != 0).unwrap() + 1;
    let used = used.next_multiple_of(64);
    (FIRST.to_owned(), used)
}

fn length_of(key: u64) -> usize {
    LENGTHS[key as usize % 3]
}

/// The effect of a fault on the log, as the layer above sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Everything is there and nothing is reported.
    Nothing,
    /// Everything is there; a damaged page of headers or batch header is reported.
    Healed,
    /// Some record is known to be damaged; all others are there.
    KnownDamage,
    /// Something is lost without a trace, and that is reported.
    UnknownDamage,
    /// The last batch is cut off, and nothing else.
    TornTail,
    /// The last batch had no records: it was the seal.
    TornSeal,
}

fn judge(opened: &OpenStore) -> Verdict {
    let readable = opened.readable();
    let lost: Vec<u64> = (0..KEYS).filter(|key| !readable.contains(key)).collect();
    let report = &opened.report;
    if report.unknown_damaged > 0 {
        return Verdict::UnknownDamage;
    }
    // Every key that does not read back is at least known, with its damage.
    let is_known = |key: &u64| {
        let copies = opened.found.get(key);
        copies.is_some_and(|copies| {
            copies.iter().all(|(handle, state)| {
                let read = opened.log.read_payload(*handle);
                *state == PayloadState::PayloadDamaged
                    || matches!(read, Err(ReadError::Damaged { .. }))
                    || opened.log.read_header(*handle).is_err()
            })
        })
    };
    if report.torn_tail.is_some() {
        assert!(lost.is_empty() || lost == LAST_BATCH, "{lost:?}");
        let is_seal = lost.is_empty();
        return if is_seal {
            Verdict::TornSeal
        } else {
            Verdict::TornTail
        };
    }
    assert!(lost.iter().all(is_known), "lost and not reported: {lost:?}");
    if !lost.is_empty() {
        return Verdict::KnownDamage;
    }
    if report.damaged_batches + report.damaged_segment_headers + report.damaged_hints > 0 {
        return Verdict::Healed;
    }
    Verdict::Nothing
}

/// Flips every byte of a file, one at a time, and counts the verdicts.
fn flip_all(disk: &MemoryDisk, name: &str, bytes: usize) -> BTreeMap<Verdict, Vec<usize>> {
    let mut verdicts: BTreeMap<Verdict, Vec<usize>> = BTreeMap::new();
    for at in 0..bytes {
        let copy = disk.duplicate();
        copy.flip(name, at, 1 << (at % 8));
        let mut opened = open(&copy, SEGMENT);
        let verdict = judge(&opened);
        if at % 16 == 0 {
            // The log can be used after any finding.
            append(&mut opened.log, 1000, 100);
            opened.log.commit().unwrap();
            assert_eq!(opened.log.usage().records, opened.report.records + 1);
        }
        verdicts.entry(verdict).or_default().push(at);
    }
    verdicts
}

fn count(verdicts: &BTreeMap<Verdict, Vec<usize>>, verdict: Verdict) -> usize {
    verdicts.get(&verdict).map_or(0, Vec::len)
}

/// Offset of the last batch.
fn last_batch_at(disk: &MemoryDisk) -> usize {
    let (name, used) = first_segment(disk);
    let content = disk.content(&name).unwrap();
    let mut starts = (PAGE..used).step_by(PAGE);
    let is_batch = |at: &usize| content[*at..].starts_with(b"AreoBtch");
    starts.rfind(is_batch).unwrap()
}

/// A segment that is written to is as long as it was made: one that ends with a batch, or within one, was cut by something else, and
/// nothing tells how much is missing.
#[test]
fn every_truncation_of_an_unsealed_log_is_reported() {
    let disk = small_log(false);
    let (name, used) = first_segment(&disk);
    let whole = disk.content(&name).unwrap();
    let end = used.next_multiple_of(PAGE);
    let lengths = (0..=used).filter(|it| it % 4 == 0 || it % PAGE < 2 || it % PAGE > PAGE - 2);
    for length in lengths.chain(end - 1..end + 3) {
        let copy = disk.duplicate();
        copy.put(&name, whole[..length].to_vec());
        for _ in 0..=usize::from(length % 16 == 0) {
            let opened = open(&copy, SEGMENT);
            // A prefix of the batches is left.
            let readable = opened.readable();
            assert_eq!(readable, (0..readable.len() as u64).collect::<Vec<_>>());
            assert_eq!(opened.report.torn_tail, None, "cut at {length}");
            let is_reported = opened.report.unknown_damaged > 0;
            assert_eq!(is_reported, length <= end, "cut at {length}");
            assert!(is_reported || readable.len() == KEYS as usize);
        }
    }
}

#[test]
fn a_truncation_below_a_seal_never_passes_as_whole() {
    let disk = small_log(true);
    append(&mut open(&disk, SEGMENT).log, 77, 10);
    let mut log = open(&disk, SEGMENT).log;
    append(&mut log, 78, 10);
    log.commit().unwrap();
    // The first segment has a hint, and a later segment has batches.
    let (name, used) = first_segment(&disk);
    let whole = disk.content(&name).unwrap();
    for with_hint in [true, false] {
        for length in (0..used).step_by(97) {
            let copy = disk.duplicate();
            copy.put(&name, whole[..length].to_vec());
            if !with_hint {
                copy.lose("segment-0000000000000001.hint");
            }
            let opened = open(&copy, SEGMENT);
            assert_eq!(opened.report.torn_tail, None, "cut at {length}");
            let is_reported = opened.report.unknown_damaged > 0
                || opened.report.damaged_payloads > 0
                || opened.readable().len() == KEYS as usize + 1;
            assert!(is_reported, "cut at {length}, hint {with_hint}");
        }
    }
}

/// All sectors of the last batch are there, so that it was not torn: what rotted in it is damage, as anywhere else.
#[test]
fn every_flip_of_an_unsealed_log_is_damage() {
    let disk = small_log(false);
    let (name, used) = first_segment(&disk);
    let verdicts = flip_all(&disk, &name, used);
    for impossible in [Verdict::TornTail, Verdict::TornSeal] {
        assert_eq!(count(&verdicts, impossible), 0, "{:?}", summary(&verdicts));
    }
    assert_eq!(count(&verdicts, Verdict::Healed), 64 + 5 * 64);
    assert_eq!(count(&verdicts, Verdict::KnownDamage), payload_bytes());
    assert_eq!(count(&verdicts, Verdict::UnknownDamage), header_bytes());
    assert_eq!(count(&verdicts, Verdict::Nothing), padding(used, 5));
}

/// A write that ends within any byte of the last batch leaves a torn tail, in the headers of its last record, too.
#[test]
fn every_cut_of_an_unsealed_last_batch_is_a_torn_tail() {
    for length in [0, 9, 300] {
        let disk = MemoryDisk::new();
        let mut log = open(&disk, SEGMENT).log;
        append(&mut log, 1, 0);
        append(&mut log, 22, length);
        log.commit().unwrap();
        drop(log);
        let whole = disk.content(FIRST).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for cut in PAGE + 1..used {
            let mut torn = whole.clone();
            torn[cut..].fill(0);
            let copy = disk.duplicate();
            copy.put(FIRST, torn);
            let report = open(&copy, SEGMENT).report;
            assert!(report.torn_tail.is_some(), "{length} {cut}: {report:?}");
            assert_eq!(report.unknown_damaged + report.damaged_payloads, 0);
        }
    }
}

/// The remaining case of decision record 0018: rot in a last batch that holds a sector of zeros looks like a torn
/// write.
#[test]
fn rot_beside_zeros_in_an_unsealed_last_batch_is_a_torn_tail() {
    for (zeros, is_torn) in [(0, false), (511, false), (2048, true)] {
        let disk = MemoryDisk::new();
        let mut log = open(&disk, SEGMENT).log;
        let header = header(1, 4096);
        log.reserve(footprint(header.len(), 4096)).unwrap();
        let mut bytes = payload(1, 4096).to_vec();
        bytes[1024..1024 + zeros].fill(0);
        let bytes = Bytes::from(bytes);
        log.append(&header, std::slice::from_ref(&bytes), crc32c(&bytes));
        log.commit().unwrap();
        drop(log);
        let (name, used) = first_segment(&disk);
        disk.flip(&name, used - 100, 1);
        let report = open(&disk, SEGMENT).report;
        assert_eq!(report.torn_tail.is_some(), is_torn, "{zeros}");
        assert_eq!(report.damaged_payloads, u64::from(!is_torn), "{zeros}");
    }
}

#[test]
fn no_flip_of_a_sealed_log_is_a_torn_tail() {
    let disk = small_log(true);
    let (name, used) = first_segment(&disk);
    let seal_at = last_batch_at(&disk);
    let verdicts = flip_all(&disk, &name, used);
    assert_eq!(count(&verdicts, Verdict::TornTail), 0);
    // The seal itself can rot away: it had no records.
    let seal = &verdicts[&Verdict::TornSeal];
    assert!(seal.iter().all(|at| *at >= seal_at));
    assert_eq!(seal.len(), 64);
    // A damaged page of headers or batch header loses nothing.
    assert_eq!(count(&verdicts, Verdict::Healed), 64 + 5 * 64);
    assert_eq!(count(&verdicts, Verdict::KnownDamage), payload_bytes());
    // Only record headers and header bytes lose a key.
    assert_eq!(count(&verdicts, Verdict::UnknownDamage), header_bytes());
    assert_eq!(count(&verdicts, Verdict::Nothing), padding(used, 6));
}

#[test]
fn no_flip_of_a_segment_with_a_hint_loses_a_key() {
    let disk = small_log(false);
    open(&disk, SEGMENT).log.close().unwrap();
    let (name, used) = first_segment(&disk);
    let verdicts = flip_all(&disk, &name, used);
    for impossible in [Verdict::TornTail, Verdict::TornSeal, Verdict::UnknownDamage] {
        assert_eq!(count(&verdicts, impossible), 0, "{:?}", summary(&verdicts));
    }
    let damage = header_bytes() + payload_bytes();
    assert_eq!(count(&verdicts, Verdict::KnownDamage), damage);
    assert_eq!(count(&verdicts, Verdict::Healed), 64);
    // The hint makes batch headers superfluous.
    let superfluous = padding(used, 5) + 5 * 64;
    assert_eq!(count(&verdicts, Verdict::Nothing), superfluous);
}

#[test]
fn no_flip_of_a_hint_changes_what_is_found() {
    let disk = small_log(false);
    open(&disk, SEGMENT).log.close().unwrap();
    let hint = "segment-0000000000000001.hint";
    let length = disk.content(hint).unwrap().len();
    let verdicts = flip_all(&disk, hint, length);
    assert_eq!(count(&verdicts, Verdict::Healed), length);
    for length in 0..length {
        let copy = disk.duplicate();
        let cut = copy.content(hint).unwrap()[..length].to_vec();
        copy.put(hint, cut);
        assert_eq!(judge(&open(&copy, SEGMENT)), Verdict::Healed);
        // It was written again.
        let again = open(&copy, SEGMENT);
        assert_eq!(judge(&again), Verdict::Nothing);
        assert_eq!(again.report.scanned_segments, 1, "the spare");
    }
    disk.lose(hint);
    assert_eq!(judge(&open(&disk, SEGMENT)), Verdict::Nothing);
}

#[test]
fn damage_behind_a_lost_hint_is_no_torn_tail() {
    let disk = small_log(false);
    open(&disk, SEGMENT).log.close().unwrap();
    let last_at = last_batch_at(&disk);
    disk.flip("segment-0000000000000001.hint", 3, 1);
    disk.flip(FIRST, last_at + 64 + 10, 1);
    let opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.torn_tail, None);
    assert_eq!(opened.report.unknown_damaged, 1);
    drop(opened);
    // It stays known after the hint has been written again.
    let mut opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.unknown_damaged, 1);
    assert_eq!(opened.report.scanned_segments, 1, "the spare");
    settle(&mut opened.log);
    drop(opened);
    let opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.unknown_damaged, 1);
    assert_eq!(opened.readable().len() as u64, KEYS - 1);
}

/// Zeros in the last batch look as if it had been torn. Its segment was sealed, as its hint shows, although that is damaged.
#[test]
fn zeros_behind_a_damaged_hint_are_no_torn_tail() {
    let disk = small_log(false);
    open(&disk, SEGMENT).log.close().unwrap();
    let last_at = last_batch_at(&disk);
    let mut content = disk.content(FIRST).unwrap();
    content[last_at + PAGE / 2..].fill(0);
    disk.put(FIRST, content);
    disk.flip("segment-0000000000000001.hint", 3, 1);
    let opened = open(&disk, SEGMENT);
    assert_eq!(opened.report.torn_tail, None);
    assert_eq!(opened.report.damaged_batches, 1);
}

#[test]
fn a_batch_without_its_header_still_tells_whether_a_record_is_missing() {
    let disk = small_log(true);
    let content = disk.content(FIRST).unwrap();
    let (_, used) = first_segment(&disk);
    let mut lost = 0;
    for at in (PAGE..used).step_by(64) {
        if !content[at..].starts_with(b"AReC") {
            continue;
        }
        let is_batch = |at: &usize| content[*at..].starts_with(b"AreoBtch");
        let batch = (PAGE..at).step_by(PAGE).rfind(is_batch).unwrap();
        let copy = disk.duplicate();
        copy.flip(FIRST, batch + 40, 1);
        copy.flip(FIRST, at + 30, 1);
        let opened = open(&copy, SEGMENT);
        assert_eq!(opened.report.unknown_damaged, 1, "record at {at}");
        assert_eq!(opened.readable().len() as u64, KEYS - 1);
        lost += 1;
    }
    assert_eq!(lost, KEYS);
}

#[test]
fn a_payload_that_is_a_data_file_is_not_taken_for_one() {
    let disk = small_log(false);
    let segment = disk.content(FIRST).unwrap();
    let (mut log, _) = Log::open(disk.clone(), options(SEGMENT), |_| ()).unwrap();
    let inner = bytes::Bytes::from(segment);
    let checksum = areo_store::checksum::crc32c(&inner);
    for key in [100, 101] {
        log.append(&header(key, inner.len()), from_ref(&inner), checksum);
    }
    log.seal().unwrap();
    let needle = header(100, inner.len());
    let find = |name: &String| {
        let content = disk.content(name).unwrap();
        let found = content.windows(needle.len()).position(|w| w == needle);
        found.map(|at| (name.clone(), at))
    };
    let mut segments = disk.list().unwrap();
    segments.retain(|name| name.contains(".log"));
    let (name, at) = segments.iter().find_map(find).unwrap();
    // Destroy the record header in front of it, so that recovery has to look for the next one inside the payload.
    disk.flip(&name, at - 10, 1);
    let mut keys = Vec::new();
    let (_, report) = Log::open(disk, options(SEGMENT), |record| {
        keys.push(crate::common::key_of(record.header).0);
    })
    .unwrap();
    assert!(
        report.records <= KEYS + 1,
        "no record from inside a payload"
    );
    keys.dedup();
    assert_eq!(keys.len() as u64, report.records);
}

#[test]
fn other_versions_stores_and_names_are_refused() {
    let disk = small_log(false);
    let try_open = |disk: &MemoryDisk, store| {
        let mut options = options(SEGMENT);
        options.store_id = store;
        Log::open(disk.clone(), options, |_| ()).err().unwrap()
    };
    let error = try_open(&disk, 1);
    assert!(matches!(
        error,
        OpenError::ForeignSegment { expected: 1, .. }
    ));

    let future = disk.duplicate();
    let mut content = future.content(FIRST).unwrap();
    content[8] = 9;
    let checksum = areo_store::checksum::crc32c(&content[..60]);
    content[60..64].copy_from_slice(&checksum.to_le_bytes());
    future.put(FIRST, content);
    let error = try_open(&future, crate::common::STORE);
    let OpenError::UnsupportedVersion { found: 9, .. } = error else {
        panic!("{error}");
    };

    disk.rename(FIRST, "segment-0000000000000077.log").unwrap();
    let error = try_open(&disk, crate::common::STORE);
    assert!(matches!(
        error,
        OpenError::MisnamedSegment { number: 1, .. }
    ));
}

/// The bytes of all record headers and headers.
fn header_bytes() -> usize {
    (0..KEYS).map(|key| 48 + header(key, 0).len()).sum()
}

fn payload_bytes() -> usize {
    (0..KEYS).map(length_of).sum()
}

/// The bytes up to `used` that belong to nothing.
fn padding(used: usize, batches: usize) -> usize {
    used - 64 - batches * 64 - header_bytes() - payload_bytes()
}

fn summary(verdicts: &BTreeMap<Verdict, Vec<usize>>) -> Vec<(Verdict, usize)> {
    verdicts.iter().map(|(v, at)| (*v, at.len())).collect()
}
