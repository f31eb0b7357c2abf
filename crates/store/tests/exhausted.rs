//! A process without a descriptor or memory for another file: the log refuses by name, changes nothing, and goes on when there is
//! something again.

use std::collections::BTreeMap;

use crate::common::{Random, append, count, header, open, payload, settle};
use areo_store::disk::Survive;
use areo_store::{Disk, Handle, MemoryDisk, ReserveError, footprint};

const SEGMENT: u64 = 64 << 10;
const LENGTH: usize = 3000;
const KEYS: u64 = 60;

#[test]
fn what_the_system_lacks_is_refused_by_name_and_passes() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    let kept = append(&mut log, 1, LENGTH);
    log.commit().unwrap();
    let files = disk.list().unwrap();
    disk.set_scarcity(Some(u64::MAX));
    for _ in 0..3 {
        let reserved = log.reserve(2 * SEGMENT);
        assert!(
            matches!(reserved, Err(ReserveError::Exhausted { .. })),
            "{reserved:?}"
        );
        log.step().unwrap();
    }
    assert!(!log.is_poisoned());
    assert_eq!(disk.list().unwrap(), files, "a refusal changes nothing");
    assert_eq!(log.read_payload(kept).unwrap(), payload(1, LENGTH));
    disk.set_scarcity(None);
    append(&mut log, 2, 2 * SEGMENT as usize);
    log.commit().unwrap();
    drop(log);
    assert_eq!(open(&disk, SEGMENT).readable(), [1, 2]);
}

/// A failed sync of a `MemoryDisk` says that it was interrupted.
#[test]
fn a_sync_that_failed_does_not_pass() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, SEGMENT).log;
    append(&mut log, 1, LENGTH);
    log.commit().unwrap();
    disk.fail_sync(0);
    let reserved = log.reserve(2 * SEGMENT);
    assert!(
        matches!(reserved, Err(ReserveError::Io { .. })),
        "{reserved:?}"
    );
    assert!(log.is_poisoned());
}

/// Records come and go while most calls fail for want of something; then the power goes.
#[test]
fn nothing_is_lost_while_descriptors_come_and_go() {
    let (mut lacked, mut refused) = (0, 0);
    for seed in 0..count("AREO_EXHAUSTED_SEEDS", 12) as u64 {
        let mut random = Random::new(seed);
        let disk = MemoryDisk::new();
        let mut log = open(&disk, SEGMENT).log;
        let mut live: BTreeMap<u64, (u64, Handle)> = BTreeMap::new();
        for version in 0..400 {
            if version % 20 == 0 {
                let bits = random.draw() | random.draw();
                disk.set_scarcity((!random.one_in(3)).then_some(bits));
            }
            let bytes = footprint(header(version, LENGTH).len(), LENGTH);
            match log.reserve(bytes) {
                Ok(()) => {
                    let name = random.below(KEYS);
                    let handle = append(&mut log, version, LENGTH);
                    if let Some((_, old)) = live.insert(name, (version, handle)) {
                        log.free(old);
                    }
                }
                Err(ReserveError::Exhausted { .. }) => refused += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
            if random.one_in(4) {
                log.commit().unwrap();
                log.step().unwrap();
            }
        }
        log.commit().unwrap();
        lacked += usize::from(disk.has_lacked());
        disk.set_scarcity(None);
        settle(&mut log);
        let usage = log.usage();
        assert!(
            usage.dead_bytes < usage.live_bytes + 4 * SEGMENT,
            "seed {seed}: what waited was done"
        );
        drop(log);
        disk.crash(|_| Survive::Nothing);
        let opened = open(&disk, SEGMENT);
        let readable = opened.readable();
        for (version, _) in live.values() {
            assert!(readable.contains(version), "seed {seed}: {version} is lost");
        }
    }
    assert!(lacked >= 12 && refused > 50, "{lacked}, {refused}");
}
