//! The common part of the integration tests: a log whose records determine their content, and reproducible randomness.

// Each test binary uses its own part of what is test code throughout.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;

use areo_store::checksum::crc32c;
use areo_store::{Handle, Log, LogOptions, MemoryDisk, OpenReport, PayloadState, footprint};
use bytes::Bytes;

pub mod work;

pub const STORE: u64 = 0x5eed_cafe_0042_1234;

/// Number of trials of a test: `usual`, or the value of the environment variable in a full run.
pub fn count(variable: &str, usual: usize) -> usize {
    let said = std::env::var(variable).ok();
    said.map_or(usual, |number| number.parse().expect("a number"))
}

/// A small generator (xorshift64*): the same seed, the same sequence, on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// The header of record `key`; the length is in it, so that a record is complete in itself.
pub fn header(key: u64, length: usize) -> Vec<u8> {
    let mut header = key.to_le_bytes().to_vec();
    header.extend_from_slice(&(length as u64).to_le_bytes());
    header.resize(16 + key as usize % 23, 0xab);
    header
}

pub fn key_of(header: &[u8]) -> (u64, usize) {
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let (key, length) = (word(0), word(8) as usize);
    assert_eq!(header, self::header(key, length), "a header is never wrong");
    (key, length)
}

pub fn payload(key: u64, length: usize) -> Bytes {
    let mut random = Random::new(key);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.draw().to_le_bytes());
    }
    bytes.truncate(length);
    Bytes::from(bytes)
}

pub fn options(segment_bytes: u64) -> LogOptions {
    LogOptions {
        segment_bytes,
        ..LogOptions::new(STORE)
    }
}

pub fn append(log: &mut Log<MemoryDisk>, key: u64, length: usize) -> Handle {
    let header = header(key, length);
    log.reserve(footprint(header.len(), length)).unwrap();
    let payload = payload(key, length);
    log.append(&header, std::slice::from_ref(&payload), crc32c(&payload))
}

/// A log that was opened, with the records that it handed over.
pub struct OpenStore {
    pub log: Log<MemoryDisk>,
    pub report: OpenReport,
    /// Per key one state for every copy.
    pub found: BTreeMap<u64, Vec<(Handle, PayloadState)>>,
}

pub fn open(disk: &MemoryDisk, segment_bytes: u64) -> OpenStore {
    let mut found: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let (log, report) = Log::open(disk.clone(), options(segment_bytes), |record| {
        let (key, length) = key_of(record.header);
        assert_eq!(record.payload_length, length as u64);
        let copies = found.entry(key).or_default();
        copies.push((record.handle, record.state));
    })
    .unwrap();
    assert_eq!(
        report.records,
        found.values().map(Vec::len).sum::<usize>() as u64
    );
    OpenStore { log, report, found }
}

impl OpenStore {
    /// The keys of which some copy reads back right. A copy that reads back must be right.
    pub fn readable(&self) -> Vec<u64> {
        let is_readable = |handle: &Handle, key: u64| match self.log.read_payload(*handle) {
            Ok(bytes) => {
                assert_eq!(bytes, payload(key, bytes.len()), "never wrong bytes");
                let header = self.log.read_header(*handle);
                header.is_ok_and(|header| key_of(&header).0 == key)
            }
            Err(_) => false,
        };
        self.found
            .iter()
            .filter(|(key, copies)| copies.iter().any(|(handle, _)| is_readable(handle, **key)))
            .map(|(key, _)| *key)
            .collect()
    }
}

/// Commits and takes steps until there is nothing to do; damaged records are returned.
pub fn settle(log: &mut Log<MemoryDisk>) -> Vec<Handle> {
    use areo_store::StepOutcome;
    let mut damaged = Vec::new();
    for _ in 0..100_000 {
        match log.step().unwrap() {
            StepOutcome::Idle => return damaged,
            StepOutcome::More => {}
            StepOutcome::CommitFirst => log.commit().unwrap(),
            StepOutcome::Damaged(handle) => damaged.push(handle),
        }
    }
    panic!("housekeeping never ends");
}
