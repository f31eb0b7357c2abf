//! Crashes at every write, sync, rename and removal, with any part of what was unsynced surviving, against a model.
//!
//! A *crash point* is a disk as a crash can leave it, together with what must be found on it. Points are distinguished by
//! the bytes of all files and by the records that were acknowledged; each counts once. `AREO_STORE_CRASH_POINTS` says
//! how many each test visits at least.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::common::work::{Model, SEGMENT, Worker};
use crate::common::{Random, count, open, options};
use areo_store::disk::{Survive, UnsyncedChange};
use areo_store::{Log, MemoryDisk};

const VARIABLE: &str = "AREO_STORE_CRASH_POINTS";
/// Crash points on every change.
const USUAL: usize = 4000;
const SECTOR: usize = 512;

/// The crash points that were visited.
#[derive(Default)]
struct Points(HashSet<(u64, BTreeSet<u64>)>);

impl Points {
    /// Opens after a crash and compares with the model, unless this was done before.
    fn visit(&mut self, disk: &MemoryDisk, model: &Model, what: &str) {
        let point = (disk.fingerprint(), model.acknowledged.clone());
        if self.0.insert(point) {
            check(disk, model, what);
        }
    }
}

fn check(disk: &MemoryDisk, model: &Model, what: &str) {
    let opened = open(disk, SEGMENT);
    assert_eq!(opened.report.unknown_damaged, 0, "{what}");
    assert_eq!(opened.report.damaged_payloads, 0, "{what}");
    assert_eq!(opened.report.damaged_batches, 0, "{what}");
    assert_eq!(opened.report.damaged_segment_headers, 0, "{what}");
    assert_eq!(opened.report.damaged_hints, 0, "{what}");
    let readable: BTreeSet<u64> = opened.readable().into_iter().collect();
    let found: BTreeSet<u64> = opened.found.keys().copied().collect();
    assert_eq!(readable, found, "every record found is whole: {what}");
    let lost: Vec<_> = model.acknowledged.difference(&readable).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}, {what}");
    let returned: Vec<_> = model.gone.intersection(&found).collect();
    assert!(returned.is_empty(), "came back: {returned:?}, {what}");
    let invented: Vec<_> = found.difference(&model.appended).collect();
    assert!(invented.is_empty(), "{invented:?}, {what}");
}

/// The workload of a seed, with the power cut at one of its operations: the disk before anything is decided about what
/// was not synced. `true`: it ended before.
fn stopped_at(seed: u64, cut: u64, rounds: u64) -> (MemoryDisk, Model, bool) {
    let disk = MemoryDisk::new();
    let mut worker = Worker::start(&disk, Model::default());
    disk.power_off_at(disk.operations() + cut);
    let is_done = worker.work(&mut Random::new(seed), rounds).is_some();
    (disk, worker.stop(), is_done)
}

// ---- every fate of what was not synced ----

/// The fate of one unsynced change, as far as it matters for recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The first bytes of a write.
    Prefix,
    /// Sectors of a write, not the first ones.
    LaterSectors,
    /// Names that changed later than others which are lost.
    LaterNames,
    /// A change of a file that survives one before it, of names or bytes.
    LaterChange,
}

/// Every fate of a write of this length that differs from the others for recovery.
fn fates_of_write(length: usize, random: &mut Random) -> Vec<Survive> {
    let mut fates = vec![Survive::Nothing, Survive::All];
    let sectors = length.div_ceil(SECTOR);
    fates.extend((1..sectors).map(|sector| Survive::Prefix(sector * SECTOR)));
    let within = [1, 63, 64, 100, length / 2 + 7, length - 1];
    fates.extend(within.map(Survive::Prefix));
    let mut masks: Vec<u64> = (0..sectors.min(64)).map(|sector| 1 << sector).collect();
    masks.extend((0..sectors.min(64)).map(|sector| !(1 << sector)));
    masks.extend((0..6).map(|_| random.draw()));
    fates.extend(
        masks
            .into_iter()
            .map(|mask| Survive::Sectors { size: SECTOR, mask }),
    );
    let pages = (0..4).map(|_| random.draw());
    fates.extend(pages.map(|mask| Survive::Sectors { size: 4096, mask }));
    fates
}

fn fates_of(change: &UnsyncedChange<'_>, random: &mut Random) -> Vec<Survive> {
    match change {
        UnsyncedChange::Write { length, .. } => fates_of_write(*length, random),
        UnsyncedChange::Length { .. } => vec![Survive::Nothing, Survive::All],
        UnsyncedChange::Names { changes } => {
            assert!(*changes <= 8, "a directory is synced before much happens");
            let masks = 0..1_u64 << changes;
            masks
                .map(|mask| Survive::Sectors { size: 1, mask })
                .collect()
        }
    }
}

/// Every combination of the fates of all changes.
fn every_fate(disk: &MemoryDisk, random: &mut Random) -> Vec<Vec<Survive>> {
    let mut each = Vec::new();
    disk.duplicate().crash(|change| {
        each.push(fates_of(&change, random));
        Survive::All
    });
    each.iter().fold(vec![Vec::new()], |combined, fates| {
        let extended = combined.iter().flat_map(|before| {
            fates.iter().map(|fate| {
                let mut longer = before.clone();
                longer.push(*fate);
                longer
            })
        });
        extended.collect()
    })
}

/// Applies the fates in order, and takes down which of them are more than all or nothing.
fn crash(disk: &MemoryDisk, fates: &[Survive], kinds: &mut BTreeMap<Kind, u64>) {
    let mut next = fates.iter();
    let mut is_lost = false;
    disk.crash(|change| {
        let fate = *next.next().expect("a fate for each change");
        let kind = match (change, fate) {
            (_, Survive::Nothing) => None,
            _ if is_lost => Some(Kind::LaterChange),
            (UnsyncedChange::Write { .. }, Survive::Prefix(_)) => Some(Kind::Prefix),
            (UnsyncedChange::Write { .. }, Survive::Sectors { mask, .. }) if mask & 1 == 0 => {
                Some(Kind::LaterSectors)
            }
            (UnsyncedChange::Names { changes }, Survive::Sectors { mask, .. })
                if (mask.trailing_ones() as usize) < changes && !(mask + 1).is_power_of_two() =>
            {
                Some(Kind::LaterNames)
            }
            _ => None,
        };
        is_lost |= !matches!(fate, Survive::All);
        if let Some(kind) = kind {
            *kinds.entry(kind).or_default() += 1;
        }
        fate
    });
}

#[test]
fn no_prefix_or_reordering_of_unsynced_writes_loses_what_was_acknowledged() {
    let (mut points, mut kinds) = (Points::default(), BTreeMap::new());
    let (mut seeds, mut operations) = (0, 0);
    while points.0.len() < count(VARIABLE, USUAL) {
        let mut random = Random::new(seeds ^ 0xfa7e);
        for cut in 0.. {
            let (disk, model, is_done) = stopped_at(seeds, cut, 40);
            for fates in every_fate(&disk, &mut random) {
                let copy = disk.duplicate();
                crash(&copy, &fates, &mut kinds);
                let what = format!("seed {seeds}, cut at {cut}, {fates:?}");
                points.visit(&copy, &model, &what);
            }
            operations += 1;
            if is_done {
                break;
            }
        }
        seeds += 1;
    }
    println!(
        "{} distinct crash points at {operations} operations of {seeds} workloads: {kinds:?}",
        points.0.len()
    );
    for kind in [
        Kind::Prefix,
        Kind::LaterSectors,
        Kind::LaterNames,
        Kind::LaterChange,
    ] {
        assert!(
            kinds.get(&kind).is_some_and(|times| *times > 20),
            "{kinds:?}"
        );
    }
}

// ---- crashes on crashes ----

fn any_fate(random: &mut Random) -> Survive {
    match random.below(5) {
        0 => Survive::Nothing,
        1 => Survive::All,
        2 => Survive::Prefix(random.below(9000) as usize),
        3 => Survive::Sectors {
            size: 512,
            mask: random.draw(),
        },
        _ => Survive::Sectors {
            size: 4096,
            mask: random.draw(),
        },
    }
}

/// A power cut, and further ones in its recovery and in the work that follows. `true`: the run ended before the first.
fn crash_again_and_again(seed: u64, cut: u64, rounds: u64, points: &mut Points) -> bool {
    let (disk, mut model, is_done) = stopped_at(seed, cut, rounds);
    let mut fates = Random::new(seed ^ cut.wrapping_mul(77));
    let what = format!("seed {seed}, cut at {cut}");
    // A power cut can follow another one, also during recovery.
    for again in 0..3 {
        disk.crash(|_| any_fate(&mut fates));
        let copy = disk.duplicate();
        copy.power_off_at(copy.operations() + fates.below(12));
        let _ = Log::open(copy.clone(), options(SEGMENT), |_| ());
        copy.crash(|_| any_fate(&mut fates));
        points.visit(&copy, &model, &format!("{what}, crash {again} in recovery"));

        check(&disk, &model, &what);
        // What was handed over is durable from then on.
        disk.crash(|_| Survive::Nothing);
        points.visit(&disk, &model, &format!("{what}, after recovery"));

        let mut worker = Worker::start(&disk, model);
        disk.power_off_at(disk.operations() + fates.below(60));
        worker.work(&mut fates, 12);
        model = worker.stop();
    }
    is_done
}

#[test]
fn no_crash_of_a_recovery_or_of_what_follows_loses_what_was_acknowledged() {
    let (mut points, mut seeds) = (Points::default(), 0);
    while points.0.len() < count(VARIABLE, USUAL) {
        let mut cuts = 0..;
        while !crash_again_and_again(seeds, cuts.next().unwrap(), 40, &mut points) {}
        seeds += 1;
    }
    println!(
        "{} distinct crash points of {seeds} workloads",
        points.0.len()
    );
}

#[test]
fn no_random_crash_in_a_long_run_loses_what_was_acknowledged() {
    let mut points = Points::default();
    for seed in 1000..1060 {
        let cut = Random::new(seed).below(1500);
        crash_again_and_again(seed, cut, 200, &mut points);
    }
    assert!(points.0.len() > 300, "{}", points.0.len());
}

#[test]
fn all_faults_of_a_crash_fire_in_these_runs() {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for cut in 0..120 {
        let (disk, _, _) = stopped_at(5, cut, 40);
        let mut fates = Random::new(cut);
        disk.crash(|unsynced| {
            let kind = match unsynced {
                UnsyncedChange::Write { .. } => "write",
                UnsyncedChange::Length { .. } => "length",
                UnsyncedChange::Names { .. } => "names",
            };
            *seen.entry(kind).or_default() += 1;
            any_fate(&mut fates)
        });
        let report = open(&disk, SEGMENT).report;
        *seen.entry("torn tail").or_default() += u64::from(report.torn_tail.is_some());
    }
    for kind in ["write", "length", "names", "torn tail"] {
        assert!(seen.get(kind).is_some_and(|times| *times > 2), "{seen:?}");
    }
}

/// A planted bug: a disk that loses synced data must be noticed by this very check.
#[test]
#[should_panic(expected = "acknowledged and lost")]
fn the_check_notices_a_lost_batch() {
    let disk = MemoryDisk::new();
    let mut worker = Worker::start(&disk, Model::default());
    worker.work(&mut Random::new(1), 1);
    let before = disk.content("segment-0000000000000001.log").unwrap();
    worker.work(&mut Random::new(2), 1);
    let model = worker.stop();
    disk.put("segment-0000000000000001.log", before);
    check(&disk, &model, "rolled back");
}
