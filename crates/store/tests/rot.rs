//! Bits that flip anywhere on the disk of a log that has lived for a while: nothing wrong is ever read, and nothing that
//! was acknowledged is lost without being reported. `AREO_STORE_FLIPS` says how many each test flips.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::work::{Model, SEGMENT, Worker};
use crate::common::{OpenStore, Random, count, key_of, open, payload};
use areo_store::{Disk, Handle, MemoryDisk, OpenReport, PayloadState};

const VARIABLE: &str = "AREO_STORE_FLIPS";
/// Flips on every change.
const USUAL: usize = 2000;
/// Flips on the disk of one workload.
const FLIPS_OF_ONE: usize = 100;

/// A byte of a file.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    offset: usize,
}

/// Any bit of what was written, in a segment or its hint.
fn any_place(disk: &MemoryDisk, random: &mut Random) -> (Place, u8) {
    let names = disk.list().unwrap();
    let ending = [".log", ".log", ".log", ".hint"][random.below(4) as usize];
    let of_kind: Vec<&String> = names.iter().filter(|name| name.ends_with(ending)).collect();
    let Some(name) = of_kind.get(random.below(of_kind.len().max(1) as u64) as usize) else {
        return any_place(disk, random);
    };
    let content = disk.content(name).unwrap();
    let used = content.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let place = Place {
        name: (*name).clone(),
        offset: random.below(used as u64) as usize,
    };
    (place, 1 << random.below(8))
}

/// The effect of a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It hit bytes that are not needed: padding, a dead record, what a hint makes superfluous, the seal.
    Harmless,
    /// Nothing is lost, and the damage is reported.
    Healed,
    /// A record is known to be damaged.
    Known,
    /// Something is lost without its key, and that is reported.
    Unknown,
}

/// Compares what opening found with the model.
fn judge(opened: &OpenStore, model: &Model, sound: &OpenReport, what: &str) -> Fate {
    let readable: BTreeSet<u64> = opened.readable().into_iter().collect();
    let invented = opened.found.keys().find(|k| !model.appended.contains(k));
    assert_eq!(invented, None, "{what}");
    let is_damaged = |(handle, state): &(Handle, PayloadState)| {
        let read = opened.log.read_payload(*handle);
        *state == PayloadState::PayloadDamaged
            || read.is_err()
            || opened.log.read_header(*handle).is_err()
    };
    let lost: Vec<u64> = model.acknowledged.difference(&readable).copied().collect();
    let report = &opened.report;
    if report.unknown_damaged > 0 {
        return Fate::Unknown;
    }
    for key in &lost {
        let copies = opened.found.get(key);
        let is_known = copies.is_some_and(|copies| copies.iter().all(is_damaged));
        assert!(is_known, "record {key} lost and not reported: {what}");
    }
    let figures = |report: &OpenReport| {
        (
            report.damaged_batches,
            report.damaged_hints,
            report.damaged_segment_headers,
            report.damaged_payloads,
        )
    };
    match lost.is_empty() {
        false => Fate::Known,
        true if figures(report) == figures(sound) => Fate::Harmless,
        true => Fate::Healed,
    }
}

/// A log that has lived, everything in it durable and proven. Every other one was closed, so that all of it has hints.
fn lived(seed: u64) -> (MemoryDisk, Worker) {
    let disk = MemoryDisk::new();
    let mut random = Random::new(seed);
    let mut worker = Worker::start(&disk, Model::default());
    worker.work(&mut random, 40).unwrap();
    if seed % 2 == 1 {
        let model = worker.model.clone();
        worker.log.close().unwrap();
        worker = Worker::start(&disk, model.clone());
        // What was freed may come back.
        worker.model.appended = model.appended;
    }
    worker.log.seal().unwrap();
    (disk, worker)
}

/// Flips bits on copies of disks that have lived, `at_once` on each, and opens those.
fn flip_and_open(at_once: u64, closed_only: bool) -> BTreeMap<Fate, usize> {
    let wanted = count(VARIABLE, USUAL);
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut flipped = 0;
    for seed in (0..).filter(|seed| !closed_only || seed % 2 == 1) {
        let (disk, worker) = lived(seed);
        let model = worker.stop();
        let sound = open(&disk.duplicate(), SEGMENT).report;
        let mut random = Random::new(seed ^ 0x0f11);
        for _ in 0..FLIPS_OF_ONE {
            let copy = disk.duplicate();
            let mut places = Vec::new();
            for _ in 0..at_once {
                let (place, mask) = any_place(&copy, &mut random);
                copy.flip(&place.name, place.offset, mask);
                places.push((place, mask));
                flipped += 1;
            }
            let what = format!("seed {seed}: {places:x?}");
            let mut opened = open(&copy, SEGMENT);
            let fate = judge(&opened, &model, &sound, &what);
            *fates.entry(fate).or_default() += 1;
            // The log can be used after any finding, and known damage stays known.
            let key = model.appended.len() as u64 + 1000;
            crate::common::append(&mut opened.log, key, 100);
            opened.log.commit().unwrap();
            drop(opened);
            let mut after = model.clone();
            after.appended.insert(key);
            after.acknowledged.insert(key);
            judge(
                &open(&copy, SEGMENT),
                &after,
                &sound,
                &format!("{what}, again"),
            );
        }
        if flipped >= wanted {
            break;
        }
    }
    println!("{flipped} flips, {at_once} at once: {fates:?}");
    fates
}

#[test]
fn no_flipped_bit_is_read_or_loses_a_record_unnoticed() {
    let fates = flip_and_open(1, false);
    for fate in [Fate::Harmless, Fate::Healed, Fate::Known, Fate::Unknown] {
        assert!(
            fates.get(&fate).is_some_and(|times| *times > 5),
            "{fates:?}"
        );
    }
}

/// A hint proves its segment however much of both is rotten.
#[test]
fn no_number_of_flipped_bits_in_sealed_segments_loses_a_record_unnoticed() {
    let fates = flip_and_open(4, true);
    assert!(
        fates.get(&Fate::Known).is_some_and(|times| *times > 5),
        "{fates:?}"
    );
    assert!(
        fates.get(&Fate::Unknown).is_some_and(|times| *times > 5),
        "{fates:?}"
    );
}

/// A log in use: one round of scrubbing reports exactly the records that cannot be read, and those that can are right.
#[test]
fn scrubbing_finds_every_flipped_bit_of_a_live_record() {
    let wanted = count(VARIABLE, USUAL);
    let (mut found, mut unneeded) = (0, 0);
    for seed in 0.. {
        let (disk, mut worker) = lived(seed);
        let mut random = Random::new(seed ^ 0x5c12);
        for _ in 0..FLIPS_OF_ONE {
            let (place, mask) = any_place(&disk, &mut random);
            disk.flip(&place.name, place.offset, mask);
            let mut reported = Vec::new();
            let outcome = worker.log.scrub(u64::MAX, |handle| reported.push(handle));
            assert!(outcome.is_round_complete && outcome.records >= worker.live.len() as u64);
            let is_right = |(key, handle): (&u64, &Handle)| {
                let header = worker.log.read_header(*handle);
                let is_known = header.is_ok_and(|header| key_of(&header).0 == *key);
                let bytes = worker.log.read_payload(*handle).ok();
                if let Some(bytes) = &bytes {
                    assert_eq!(*bytes, payload(*key, bytes.len()), "{mask:#x} of {place:?}");
                }
                is_known && bytes.is_some()
            };
            let wrong = worker.live.iter().filter(|live| !is_right(*live));
            let wrong: Vec<Handle> = wrong.map(|(_, handle)| *handle).collect();
            assert!(
                wrong.iter().all(|handle| reported.contains(handle)),
                "seed {seed}: {mask:#x} of {place:?} was not found"
            );
            match wrong.is_empty() {
                true => unneeded += 1,
                false => found += 1,
            }
            // The next one finds a sound disk.
            disk.flip(&place.name, place.offset, mask);
        }
        if found + unneeded >= wanted {
            break;
        }
    }
    println!("{found} flips in live records, {unneeded} elsewhere");
    assert!(found > wanted / 20, "{found} of {wanted}");
}
