//! The fuzz targets on a stable toolchain: every entry point of `areo_store::fuzzing` on mutations of known good inputs.

use std::collections::BTreeMap;

use crate::common::{append, open, settle};
use areo_fuzzing::Driver;
use areo_store::{Disk, MemoryDisk, fuzzing};

const SEGMENT: u64 = 16 << 10;

fn input(disk: &MemoryDisk) -> Vec<u8> {
    let names = disk.list().unwrap().into_iter();
    let files = names.map(|name| {
        let content = disk.content(&name).unwrap();
        (name, content)
    });
    fuzzing::join(&files.collect::<BTreeMap<_, _>>())
}

/// Logs in use, sealed, closed and reclaimed, of a few records each.
fn logs() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for lengths in [
        &[10, 0, 300][..],
        &[2000, 50],
        &[9000, 9000, 40, 9000, 5000],
    ] {
        let disk = MemoryDisk::new();
        let mut log = open(&disk, SEGMENT).log;
        let mut handles = Vec::new();
        for (key, length) in (0..).zip(lengths) {
            handles.push(append(&mut log, key, *length));
            log.commit().unwrap();
        }
        inputs.push(input(&disk));
        log.seal().unwrap();
        inputs.push(input(&disk));
        log.free(handles[0]);
        append(&mut log, 77, 100);
        settle(&mut log);
        inputs.push(input(&disk));
        log.close().unwrap();
        inputs.push(input(&disk));
    }
    inputs
}

#[test]
fn recovery_of_any_bytes() {
    Driver {
        target: fuzzing::recovery,
        corpus: &logs(),
        words: &[],
        seed: 1,
        cost: 2,
    }
    .run();
}

#[test]
fn identities_of_any_bytes() {
    let golden = include_bytes!("golden/format-1/IDENTITY").to_vec();
    let mut shorter = golden.clone();
    shorter.truncate(20);
    shorter[12..16].fill(0);
    Driver {
        target: fuzzing::identity,
        corpus: &[golden, shorter],
        words: &[],
        seed: 2,
        cost: 1,
    }
    .run();
}
