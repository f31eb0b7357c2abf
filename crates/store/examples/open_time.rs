//! Measures the time to write a log with many records, to open it by its hints, and to open it without them.
//!
//! `cargo run --release -p areo-store --example open_time -- [records] [payload_bytes] [directory]`

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use areo_store::checksum::crc32c;
use areo_store::{Directory, FileDisk, Log, LogOptions, footprint};
use bytes::Bytes;

const HEADER_BYTES: usize = 100;
const BATCH_RECORDS: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(1_000_000), |a| a.parse())?;
    let payload_bytes: usize = arguments.next().map_or(Ok(400), |a| a.parse())?;
    let parent = match arguments.next() {
        Some(path) => PathBuf::from(path),
        None => std::env::temp_dir(),
    };
    let scratch = tempfile::tempdir_in(parent)?;
    let directory = Directory::open(scratch.path().join("data"))?;
    let disk = directory.disk("shard-0")?;

    write(&disk, records, payload_bytes)?;
    open(&disk, "hints, cached")?;
    for entry in std::fs::read_dir(disk.path())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "hint")
        {
            std::fs::remove_file(path)?;
        }
    }
    open(&disk, "no hints (they are written again)")?;
    open(&disk, "hints, cached, again")?;
    Ok(())
}

fn write(disk: &FileDisk, records: u64, payload_bytes: usize) -> Result<(), Box<dyn Error>> {
    let (mut log, _) = Log::open(disk.clone(), LogOptions::new(1), |_| ())?;
    let payload = Bytes::from(vec![7; payload_bytes]);
    let checksum = crc32c(&payload);
    let begin = Instant::now();
    for record in 0..records {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&record.to_le_bytes());
        log.reserve(footprint(HEADER_BYTES, payload_bytes))?;
        log.append(&header, std::slice::from_ref(&payload), checksum);
        if record % BATCH_RECORDS == BATCH_RECORDS - 1 {
            log.commit()?;
            log.step()?;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let usage = log.usage();
    log.close()?;
    println!(
        "wrote {records} records of {HEADER_BYTES} + {payload_bytes} bytes in batches of {BATCH_RECORDS}: \
         {seconds:.1} s, {:.1} us a record, {} MiB in {} segments",
        seconds * 1e6 / records as f64,
        usage.segment_bytes >> 20,
        usage.segments,
    );
    Ok(())
}

fn open(disk: &FileDisk, how: &str) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let mut header_bytes = 0;
    let (log, report) = Log::open(disk.clone(), LogOptions::new(1), |record| {
        header_bytes += record.header.len();
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "opened by {how}: {} records in {seconds:.3} s; {} segments by hint, {} read ({} MiB); index {:.1} bytes a record",
        report.records,
        report.hinted_segments,
        report.scanned_segments,
        report.scanned_bytes >> 20,
        log.usage().index_bytes as f64 / report.records as f64,
    );
    Ok(())
}
