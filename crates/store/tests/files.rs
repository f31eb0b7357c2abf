//! The log on the real file system, with commits on another thread.

use std::collections::BTreeMap;

use crate::common::{header, key_of, options, payload};
use areo_store::checksum::crc32c;
use areo_store::{Directory, FileDisk, Log, StepOutcome, footprint};

const SEGMENT: u64 = 1 << 20;

fn settle(log: &mut Log<FileDisk>) {
    loop {
        match log.step().unwrap() {
            StepOutcome::Idle => return,
            StepOutcome::More => {}
            StepOutcome::CommitFirst => log.commit().unwrap(),
            StepOutcome::Damaged(handle) => panic!("{handle:?} is damaged"),
        }
    }
}

#[test]
fn records_survive_churn_and_restarts_on_a_file_system() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("data");
    let mut expected: BTreeMap<u64, usize> = BTreeMap::new();
    let mut next = 0u64;
    for is_clean in [true, false, false, true, true] {
        let directory = Directory::open(&path).unwrap();
        let disk = directory.disk("shard-0").unwrap();
        let mut live = BTreeMap::new();
        let mut surplus = Vec::new();
        let (mut log, report) = Log::open(disk, options(SEGMENT), |record| {
            let (key, length) = key_of(record.header);
            assert_eq!(record.payload_length, length as u64);
            if expected.contains_key(&key) {
                surplus.extend(live.insert(key, record.handle));
            } else {
                surplus.push(record.handle);
            }
        })
        .unwrap();
        assert_eq!(report.unknown_damaged, 0);
        assert_eq!(report.torn_tail, None);
        assert_eq!(live.len(), expected.len());
        for handle in surplus {
            log.free(handle);
        }
        for (key, handle) in &live {
            let bytes = log.read_payload(*handle).unwrap();
            assert_eq!(bytes, payload(*key, expected[key]));
        }
        for _ in 0..150 {
            let length = (next as usize * 7919) % 60_000;
            let (header, bytes) = (header(next, length), payload(next, length));
            log.reserve(footprint(header.len(), length)).unwrap();
            let checksum = crc32c(&bytes);
            live.insert(next, log.append(&header, &[bytes], checksum));
            expected.insert(next, length);
            if next.is_multiple_of(3) && next > 20 {
                let old = *live.keys().next().unwrap();
                log.free(live.remove(&old).unwrap());
                expected.remove(&old);
            }
            next += 1;
            if next.is_multiple_of(4) {
                let commit = log.begin_commit().unwrap().unwrap();
                let committed = std::thread::spawn(move || commit.run()).join().unwrap();
                log.finish_commit(committed.unwrap());
            }
        }
        log.commit().unwrap();
        settle(&mut log);
        if is_clean {
            log.close().unwrap();
        }
    }
}

#[test]
fn a_disk_that_is_too_small_is_full_and_nothing_is_left_behind() {
    let parent = tempfile::tempdir().unwrap();
    let directory = Directory::open(parent.path().join("data")).unwrap();
    let disk = directory.disk("shard-0").unwrap();
    let mut options = options(SEGMENT);
    // The largest segment there is.
    options.segment_bytes = 1 << 38;
    let space = rustix::fs::statvfs(parent.path()).unwrap();
    if space.f_bavail * space.f_frsize > options.segment_bytes {
        areo_fuzzing::not_run("the disk has room for the largest segment");
        return;
    }
    let (mut log, _) = Log::open(disk.clone(), options, |_| ()).unwrap();
    let refused = log.reserve(1);
    assert!(refused.is_err());
    assert!(!log.is_poisoned());
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
}
