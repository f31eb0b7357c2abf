//! Any files of a log removed, emptied, cut or exchanged for older copies: nothing that was acknowledged is missing without a word.
//!
//! What is left out is a log and its `EXTENT` that go back together to one moment of the present start, and the segment in use that
//! goes back to a moment after the last one that `EXTENT` speaks of (`docs/data-file.md`).

use std::collections::{BTreeMap, BTreeSet};

use crate::common::work::{Model, SEGMENT, Worker};
use crate::common::{Random, count, key_of, options};
use areo_store::{Disk, Log, LogOptions, MemoryDisk, OpenReport};

const VARIABLE: &str = "AREO_STORE_FAULTY_FILES";
/// Trials on every change.
const USUAL: usize = 1200;
const FAULTS_OF_ONE: usize = 30;
/// Logs of which each segment goes back.
const SEEDS: u64 = 60;

type Files = BTreeMap<String, Vec<u8>>;

/// A log that has lived.
struct Life {
    disk: MemoryDisk,
    model: Model,
    /// The extent that the last start is given.
    extent: u64,
    /// The files as they were before the last start, and since.
    before: Vec<Files>,
    since: Vec<Files>,
    /// Everything was marked beside the log.
    is_marked: bool,
}

fn files(disk: &MemoryDisk) -> Files {
    let names = disk.list().unwrap().into_iter();
    names
        .map(|name| (name.clone(), disk.content(&name).unwrap()))
        .collect()
}

fn lived(seed: u64) -> Life {
    let disk = MemoryDisk::new();
    let mut random = Random::new(seed);
    let (mut before, mut since) = (Vec::new(), Vec::new());
    let (mut model, mut extent) = (Model::default(), 0);
    let is_marked = !seed.is_multiple_of(3);
    for start in 0..3 {
        before.append(&mut since);
        let mut worker = Worker::start(&disk, model);
        extent = worker.log.extent();
        for _ in 0..3 {
            worker.work(&mut random, 6).unwrap();
            since.push(files(&disk));
        }
        let closes = random.one_in(2);
        if start == 2 && is_marked && !closes {
            worker.log.seal().unwrap();
        }
        model = worker.model.clone();
        match closes && (start < 2 || is_marked) {
            true => worker.log.close().unwrap(),
            false => drop(worker.stop()),
        }
    }
    Life {
        disk,
        model,
        extent,
        before,
        since,
        is_marked,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Removed,
    Emptied,
    Cut,
    Older,
}

/// Does something to some files. Returned is what.
fn break_files(life: &Life, disk: &MemoryDisk, random: &mut Random) -> BTreeMap<String, Fault> {
    let mut broken = BTreeMap::new();
    let all = files(disk);
    // All of them, some, or one.
    let chance = 1 + random.below(4);
    let alone = random.one_in(2).then(|| random.below(all.len() as u64));
    for (number, (name, content)) in (0..).zip(&all) {
        let is_chosen = alone.map_or_else(|| random.one_in(chance), |alone| alone == number);
        if !is_chosen {
            continue;
        }
        let faults = [Fault::Removed, Fault::Emptied, Fault::Cut, Fault::Older];
        let fault = faults[random.below(4) as usize];
        match fault {
            Fault::Removed => disk.lose(name),
            Fault::Emptied => disk.put(name, Vec::new()),
            Fault::Cut => {
                let length = match random.below(3) {
                    // As copies end.
                    0 => random.below(content.len() as u64 / 4096 + 1) * 4096,
                    _ => random.below(content.len() as u64),
                };
                disk.put(name, content[..length as usize].to_vec());
            }
            Fault::Older => {
                let is_in_use = !all.contains_key(&name.replace(".log", ".hint"));
                let is_left_out = name == "EXTENT" || is_in_use && !life.is_marked;
                let since = life.since.iter().filter(|_| !is_left_out);
                let copies = life.before.iter().chain(since);
                let copies: Vec<_> = copies.filter_map(|files| files.get(name)).collect();
                if copies.is_empty() {
                    continue;
                }
                let copy = copies[random.below(copies.len() as u64) as usize];
                disk.put(name, copy.clone());
            }
        }
        broken.insert(name.clone(), fault);
    }
    broken
}

struct Opened {
    report: OpenReport,
    readable: BTreeSet<u64>,
    found: BTreeSet<u64>,
}

fn open(disk: &MemoryDisk, extent: u64) -> (Log<MemoryDisk>, Opened) {
    let options = LogOptions {
        extent,
        ..options(SEGMENT)
    };
    let mut handles = Vec::new();
    let each = |record: areo_store::RecoveredRecord<'_>| {
        handles.push((key_of(record.header).0, record.handle));
    };
    let (log, report) = Log::open(disk.clone(), options, each).unwrap();
    let is_readable = |(_, handle): &&(u64, areo_store::Handle)| {
        log.read_payload(*handle).is_ok() && log.read_header(*handle).is_ok()
    };
    let readable = handles.iter().filter(is_readable).map(|it| it.0).collect();
    let found = handles.iter().map(|it| it.0).collect();
    let opened = Opened {
        report,
        readable,
        found,
    };
    (log, opened)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Harmless,
    /// Records are lost, and their keys are known.
    Known,
    /// The server abstains from everything.
    Abstains,
}

fn judge(opened: &Opened, life: &Life, what: &str) -> Fate {
    let report = &opened.report;
    if report.unknown_damaged > 0 {
        return Fate::Abstains;
    }
    let lost = life.model.acknowledged.difference(&opened.readable);
    let lost: BTreeSet<u64> = lost.copied().collect();
    let silent: Vec<_> = lost.difference(&opened.found).collect();
    assert!(silent.is_empty(), "lost without a word: {silent:?}, {what}");
    match lost.is_empty() {
        true => Fate::Harmless,
        false => Fate::Known,
    }
}

#[test]
fn no_files_that_are_gone_cut_or_older_lose_a_record_without_a_word() {
    let wanted = count(VARIABLE, USUAL);
    let (mut fates, mut alone) = (BTreeMap::new(), BTreeMap::new());
    let mut trials = 0;
    for seed in 0.. {
        let life = lived(seed);
        let (_, sound) = open(&life.disk.duplicate(), life.extent);
        assert_eq!(sound.report.unknown_damaged, 0, "{seed}");
        let mut random = Random::new(seed ^ 0xf11e);
        for _ in 0..FAULTS_OF_ONE {
            let copy = life.disk.duplicate();
            let broken = break_files(&life, &copy, &mut random);
            let what = format!("seed {seed}: {broken:?}");
            let (mut log, opened) = open(&copy, life.extent);
            let fate = judge(&opened, &life, &what);
            let is_told = !opened.report.missing().is_empty() || opened.report.damaged_batches > 0;
            assert!(is_told || fate != Fate::Abstains, "missing what? {what}");
            *fates.entry(fate).or_insert(0) += 1;
            if let [(_, fault)] = broken.iter().collect::<Vec<_>>()[..] {
                *alone.entry((*fault, fate)).or_insert(0) += 1;
            }
            // It can be used, and does not forget.
            crate::common::append(&mut log, 1_000_000, 100);
            log.commit().unwrap();
            crate::common::settle(&mut log);
            let extent = log.extent();
            drop(log);
            let (_, again) = open(&copy, extent);
            assert_eq!(judge(&again, &life, &format!("{what}, again")), fate);
            trials += 1;
        }
        if trials >= wanted {
            break;
        }
    }
    println!("{trials} trials: {fates:?}, one file alone: {alone:?}");
    for fate in [Fate::Harmless, Fate::Known, Fate::Abstains] {
        assert!(fates.get(&fate).is_some_and(|it| *it > 20), "{fates:?}");
    }
    for fault in [Fault::Removed, Fault::Emptied, Fault::Cut, Fault::Older] {
        let abstained = alone.get(&(fault, Fate::Abstains));
        assert!(abstained.is_some_and(|it| *it > 2), "{alone:?}");
    }
}

/// Every older copy of every segment, with its hint gone. That of the segment in use is missed by what is written beside the log, and that of
/// another one by the census, where the segment behind it is reclaimed.
#[test]
fn each_segment_that_goes_back_is_missed() {
    let mut missed = BTreeMap::new();
    for seed in 0..SEEDS {
        let life = lived(seed);
        let all = files(&life.disk);
        for (name, content) in &all {
            let Some(stem) = name.strip_suffix(".log") else {
                continue;
            };
            let hint = format!("{stem}.hint");
            let is_in_use = !all.contains_key(&hint);
            if is_in_use && !life.is_marked {
                continue;
            }
            let copies = life.before.iter().chain(&life.since);
            let copies: BTreeSet<_> = copies.filter_map(|files| files.get(name)).collect();
            for copy in copies.into_iter().filter(|copy| *copy != content) {
                let disk = life.disk.duplicate();
                disk.put(name, copy.clone());
                if !is_in_use {
                    disk.lose(&hint);
                }
                let (_, opened) = open(&disk, life.extent);
                let fate = judge(&opened, &life, &format!("seed {seed}: {name}"));
                *missed.entry((is_in_use, fate)).or_insert(0) += 1;
            }
        }
    }
    println!("{missed:?}");
    for is_in_use in [true, false] {
        let abstained = missed.get(&(is_in_use, Fate::Abstains));
        assert!(abstained.is_some_and(|it| *it > 20), "{missed:?}");
    }
}

#[test]
fn a_log_that_is_gone_is_missed_with_and_without_its_extent() {
    let life = lived(4);
    for (with_extent, what) in [(true, "segments between"), (false, "EXTENT is gone")] {
        let copy = life.disk.duplicate();
        for name in copy.list().unwrap() {
            if name != "EXTENT" || !with_extent {
                copy.lose(&name);
            }
        }
        for _ in 0..3 {
            let (log, opened) = open(&copy, life.extent);
            assert!(opened.report.unknown_damaged > 0);
            let missing = opened.report.missing();
            assert!(missing.contains(what), "{missing}");
            log.close().unwrap();
        }
    }
}
