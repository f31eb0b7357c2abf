//! Crashes at every write, sync, rename and removal, with any part of what was unsynced surviving, against a model.

#![allow(clippy::unwrap_used)] // Helpers of tests, too.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use areo_store::checksum::crc32c;
use areo_store::disk::{Survive, Unsynced};
use areo_store::{Handle, Log, MemoryDisk, StepOutcome, footprint};
use common::{Opened, Random, header, open, payload};

const SEGMENT: u64 = 24 << 10;

/// What the layer above knows.
#[derive(Clone, Default)]
struct Model {
    /// Appended and acknowledged, and not freed since: must be there.
    acknowledged: BTreeSet<u64>,
    /// Ever appended: may be there.
    appended: BTreeSet<u64>,
    next_key: u64,
}

/// The layer above: writes keys, replaces some, frees what it replaced, keeps house. Stops at the first error.
struct Worker {
    log: Log<MemoryDisk>,
    model: Model,
    live: BTreeMap<u64, Handle>,
    pending: Vec<u64>,
    replaced: Vec<u64>,
}

impl Worker {
    fn start(disk: &MemoryDisk, mut model: Model) -> Self {
        let Opened { log, found, .. } = open(disk, SEGMENT);
        let mut worker = Self {
            log,
            model: Model::default(),
            live: BTreeMap::new(),
            pending: Vec::new(),
            replaced: Vec::new(),
        };
        for (key, copies) in found {
            // Copies of one record are joined; one that was freed before is freed again.
            let keep = usize::from(model.acknowledged.contains(&key));
            for (handle, _) in &copies[keep.min(copies.len())..] {
                worker.log.free(*handle);
            }
            if keep == 1 {
                worker.live.insert(key, copies[0].0);
            }
        }
        model.acknowledged = worker.live.keys().copied().collect();
        worker.model = model;
        worker
    }

    fn append(&mut self, random: &mut Random) -> Option<()> {
        let key = self.model.next_key;
        let length = random.below(2500) as usize * usize::from(!random.one_in(5));
        let header = header(key, length);
        self.log.reserve(footprint(header.len(), length)).ok()?;
        let bytes = payload(key, length);
        let half = bytes.len() / 2;
        let parts = [bytes.slice(..half), bytes.slice(half..)];
        let handle = self.log.append(&header, &parts, crc32c(&bytes));
        self.model.next_key += 1;
        self.model.appended.insert(key);
        self.pending.push(key);
        self.live.insert(key, handle);
        // It replaces some older one, so that segments die.
        if random.below(10) < 7 {
            let candidates: Vec<u64> = self.model.acknowledged.iter().copied().collect();
            if let Some(old) = candidates.get(random.below(candidates.len().max(1) as u64) as usize)
            {
                self.log.free(self.live.remove(old)?);
                self.model.acknowledged.remove(old);
                self.replaced.push(*old);
            }
        }
        Some(())
    }

    fn commit(&mut self) -> Option<()> {
        self.log.commit().ok()?;
        self.model.acknowledged.extend(self.pending.drain(..));
        self.replaced.clear();
        Some(())
    }

    fn work(&mut self, random: &mut Random, rounds: u64) -> Option<()> {
        for _ in 0..rounds {
            for _ in 0..=random.below(3) {
                self.append(random)?;
            }
            if random.one_in(3) {
                for _ in 0..random.below(8) {
                    match self.log.step().ok()? {
                        // Whoever asks too early must get nothing by it.
                        StepOutcome::CommitFirst if random.one_in(3) => {}
                        StepOutcome::CommitFirst => self.commit()?,
                        StepOutcome::Idle => break,
                        StepOutcome::More => {}
                        StepOutcome::Damaged(_) => panic!("nothing is damaged here"),
                    }
                }
            }
            self.commit()?;
            if random.one_in(6) {
                self.log.seal().ok()?;
            }
        }
        Some(())
    }

    /// What must be there if the machine stops now: also what was replaced by a batch that is not durable.
    fn stop(self) -> Model {
        let mut model = self.model;
        model.acknowledged.extend(self.replaced);
        model
    }
}

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

/// Opens after a crash and compares with the model; returns the log's own view to go on with.
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
    let invented: Vec<_> = found.difference(&model.appended).collect();
    assert!(invented.is_empty(), "{invented:?}, {what}");
}

/// One run with a power cut at `cut`, a crash, and a comparison. `None`: the run ended before.
fn crash_once(seed: u64, cut: u64, rounds: u64) -> bool {
    let disk = MemoryDisk::new();
    let mut random = Random::new(seed);
    let mut fates = Random::new(seed ^ cut.wrapping_mul(77));
    let mut worker = Worker::start(&disk, Model::default());
    disk.power_off_at(disk.operations() + cut);
    let is_done = worker.work(&mut random, rounds).is_some();
    let mut model = worker.stop();
    let what = format!("seed {seed}, cut at {cut}");
    // A power cut can follow another one, also during recovery.
    for again in 0..3 {
        disk.crash(|_| any_fate(&mut fates));
        let copy = disk.duplicate();
        copy.power_off_at(copy.operations() + fates.below(12));
        let _ = Log::open(copy.clone(), common::options(SEGMENT), |_| ());
        copy.crash(|_| any_fate(&mut fates));
        check(&copy, &model, &format!("{what}, crash {again} in recovery"));

        check(&disk, &model, &what);
        // What was handed over is durable from then on.
        disk.crash(|_| Survive::Nothing);
        check(&disk, &model, &format!("{what}, after recovery"));

        let mut worker = Worker::start(&disk, model);
        disk.power_off_at(disk.operations() + fates.below(60));
        worker.work(&mut fates, 12);
        model = worker.stop();
    }
    is_done
}

#[test]
fn no_crash_at_any_operation_loses_what_was_acknowledged() {
    // `AREO_STORE_SEEDS=1000` is a full run.
    let seeds = std::env::var("AREO_STORE_SEEDS").map_or(3, |seeds| seeds.parse().unwrap());
    let mut points = 0;
    for seed in 0..seeds {
        for cut in 0.. {
            points += 1;
            if crash_once(seed, cut, 40) {
                break;
            }
        }
    }
    println!(
        "{points} first crashes, each followed by three crashes of its recovery and two of later work"
    );
    assert!(points > 200 * seeds, "{points} first crashes");
}

#[test]
fn no_random_crash_in_a_long_run_loses_what_was_acknowledged() {
    for seed in 1000..1060 {
        let cut = Random::new(seed).below(1500);
        crash_once(seed, cut, 200);
    }
}

#[test]
fn all_faults_of_a_crash_fire_in_these_runs() {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for cut in 0..120 {
        let disk = MemoryDisk::new();
        let mut random = Random::new(5);
        let mut worker = Worker::start(&disk, Model::default());
        disk.power_off_at(disk.operations() + cut);
        worker.work(&mut random, 40);
        drop(worker);
        let mut fates = Random::new(cut);
        disk.crash(|unsynced| {
            let kind = match unsynced {
                Unsynced::Write { .. } => "write",
                Unsynced::Length { .. } => "length",
                Unsynced::Names { .. } => "names",
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
