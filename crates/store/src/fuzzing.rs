//! Promises for data files of any bytes whatsoever. Each function takes one input and panics if a promise is
//! broken; it says whether the input was good, so that a driver notices when it only ever meets the first checksum.
//!
//! The targets in `fuzz/` call these, and so does a test that needs nothing but a stable toolchain
//! (`crates/store/tests/fuzz.rs`).
//!
//! The data files of one log are one input, one after the other: `kind u8 (1 a hint, 2 the extent; 4 more: it ends behind a page) ·
//! number u8 · pages u8 · length u16 · bytes`. Zeros follow the bytes up to so many pages of 4 KiB, so that inputs are short.

use crate::checksum::crc32c;
use crate::directory::{decode_identity, encode_identity, identity_checksum};
use crate::disk::{MemoryDisk, Survive};
use crate::error::OpenError;
use crate::format::{
    BATCH_HEADER_BYTES, BatchHeader, END_BYTES, EXTENT_NAME, Extent, GRAIN, HINT_HEADER_BYTES,
    HeaderFault, HintHeader, PAGE, Place, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    footprint, get_u32, hint_name, parse_name, payload_at, put_u32, put_u64, segment_name,
};
use crate::log::{Log, LogOptions, OpenReport, PayloadState, StepOutcome};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The store that inputs belong to: that of the golden files.
const STORE: u64 = 0x5eed_cafe_0042_1234;
const SEGMENT_BYTES: u64 = 16 << 10;
/// The length of the beginning of a segment and a hint in an input, before their bytes.
const PREFIX_BYTES: usize = 5;
const MAX_PAGES: u8 = 16;
const HINT: u8 = 1;
const EXTENT: u8 = 2;
const TRIMMED: u8 = 4;
/// Housekeeping of a few small segments takes far fewer steps.
const MOST_STEPS: u32 = 10_000;

/// Recovery of a log. The files are opened as they are, and once more with all checksums and places mended, so that
/// the protected parts are reached, too.
pub fn recovery(input: &[u8]) -> bool {
    let mut files = split(input);
    open(&files);
    for (name, (number, content)) in &mut files {
        match name {
            _ if name == EXTENT_NAME => Extent::mend(content),
            _ if *name == hint_name(*number) => mend_hint(content, *number),
            _ => mend_segment(content, *number),
        }
    }
    open(&files)
}

/// The identity of a server. A wrong checksum is mended once.
pub fn identity(input: &[u8]) -> bool {
    let mut decoded = decode_identity(&Bytes::copy_from_slice(input));
    if decoded == Err(HeaderFault::Damaged) && input.len() >= 20 {
        let mut mended = input.to_vec();
        let checksum = identity_checksum(&mended);
        put_u32(&mut mended, 16, checksum);
        decoded = decode_identity(&Bytes::from(mended));
    }
    if let Ok(identity) = &decoded {
        let again = Bytes::from(encode_identity(identity));
        assert_eq!(decode_identity(&again).as_ref(), Ok(identity));
    }
    decoded.is_ok()
}

/// An input of [`recovery`]: data files by their names; others are left out.
pub fn join(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, content) in files {
        let numbers = (parse_name(name, ".log"), parse_name(name, ".hint"));
        let (kind, number) = match numbers {
            (Some(number), _) => (0, number),
            (_, Some(number)) => (HINT, number),
            _ if name == EXTENT_NAME => (EXTENT, 0),
            _ => continue,
        };
        let is_trimmed = content.len() as u64 % PAGE == END_BYTES;
        let kind = kind | if is_trimmed { TRIMMED } else { 0 };
        let used = content.iter().rposition(|byte| *byte != 0);
        let used = used.map_or(0, |last| last + 1);
        input.push(kind);
        input.push(u8::try_from(number).expect("a small number"));
        input.push(u8::try_from(content.len() as u64 / PAGE).expect("a few pages"));
        let length = u16::try_from(used).expect("a small file");
        input.extend_from_slice(&length.to_le_bytes());
        input.extend_from_slice(&content[..used]);
    }
    input
}

/// The reverse of [`join`]; takes anything. By name the number and the content.
fn split(input: &[u8]) -> BTreeMap<String, (u64, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut rest = input;
    while let Some((prefix, behind)) = rest.split_at_checked(PREFIX_BYTES) {
        let length = usize::from(u16::from_le_bytes([prefix[3], prefix[4]]));
        let (bytes, behind) = behind.split_at(length.min(behind.len()));
        let number = u64::from(prefix[1]);
        let name = match prefix[0] & (HINT | EXTENT) {
            HINT => hint_name(number),
            EXTENT => EXTENT_NAME.to_owned(),
            _ => segment_name(number),
        };
        let mut content = bytes.to_vec();
        let end = u64::from(prefix[0] & TRIMMED) / u64::from(TRIMMED) * END_BYTES;
        let pages = u64::from(prefix[2].min(MAX_PAGES)) * PAGE + end;
        let length = usize::try_from(pages).expect("a few pages");
        content.resize(content.len().max(length), 0);
        files.insert(name, (number, content));
        rest = behind;
    }
    files
}

/// A record as it was handed over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HandedRecord {
    header: Vec<u8>,
    payload_length: u64,
    payload_checksum: u32,
}

/// Opens a log and verifies the records that it hands over and that can be read. `None`: it is refused, for a reason
/// that is not damage.
fn recover(disk: &MemoryDisk) -> Option<(Log<MemoryDisk>, OpenReport, Vec<HandedRecord>)> {
    let options = LogOptions {
        segment_bytes: SEGMENT_BYTES,
        ..LogOptions::new(STORE)
    };
    let mut found = Vec::new();
    let opened = Log::open(disk.clone(), options, |record| {
        let handed = HandedRecord {
            header: record.header.to_vec(),
            payload_length: record.payload_length,
            payload_checksum: record.payload_checksum,
        };
        found.push((record.handle, record.state, handed));
    });
    let (log, report) = match opened {
        Ok(opened) => opened,
        Err(
            OpenError::UnsupportedVersion { .. }
            | OpenError::ForeignSegment { .. }
            | OpenError::MisnamedSegment { .. },
        ) => return None,
        Err(error) => panic!("a sound disk is opened: {error}"),
    };
    assert_eq!(report.records, found.len() as u64);
    let mut readable = Vec::new();
    for (handle, state, handed) in found {
        if let Ok(payload) = log.read_payload(handle) {
            assert_eq!(
                crc32c(&payload),
                handed.payload_checksum,
                "never wrong bytes"
            );
            assert_eq!(payload.len() as u64, handed.payload_length);
            if log
                .read_header(handle)
                .is_ok_and(|header| *header == *handed.header)
            {
                readable.push(handed);
            }
        } else {
            assert_ne!(state, PayloadState::Intact, "what was verified can be read");
        }
    }
    readable.sort();
    Some((log, report, readable))
}

/// Opens a log of these files, uses it, and opens it again. Whether there was something in it and nothing was wrong.
fn open(files: &BTreeMap<String, (u64, Vec<u8>)>) -> bool {
    let disk = MemoryDisk::new();
    for (name, (_, content)) in files {
        disk.put(name, content.clone());
    }
    let Some((mut log, report, readable)) = recover(&disk) else {
        return false;
    };
    let own = Bytes::from_static(b"what is written now");
    let header = b"header of what is written now";
    log.reserve(footprint(header.len(), own.len()))
        .expect("there is room");
    log.append(header, std::slice::from_ref(&own), crc32c(&own));
    log.commit().expect("a sound disk takes it");
    drop(log);
    // What was handed over, and what was written since, is durable.
    disk.crash(|_| Survive::Nothing);
    let (mut log, _, again) = recover(&disk).expect("it was opened before");
    let is_there = |handed: &HandedRecord| again.binary_search(handed).is_ok();
    assert!(readable.iter().all(is_there), "what was handed over stays");
    assert!(
        again.iter().any(|handed| handed.header == header),
        "so does what was written"
    );
    let mut steps = 0;
    loop {
        match log.step().expect("a sound disk takes it") {
            StepOutcome::Idle => break,
            StepOutcome::CommitFirst => log.commit().expect("a sound disk takes it"),
            StepOutcome::More | StepOutcome::Damaged(_) => {}
        }
        steps += 1;
        assert!(steps < MOST_STEPS, "housekeeping ends");
    }
    let is_sound = report.unknown_damaged + report.damaged_payloads + report.damaged_batches == 0;
    is_sound && !readable.is_empty()
}

/// Makes the places and checksums of a segment right wherever something in it begins.
fn mend_segment(content: &mut [u8], number: u64) {
    if content.starts_with(b"AreoSegm") && content.len() >= SEGMENT_HEADER_BYTES {
        let checksum = crc32c(&content[..60]);
        put_u32(content, 60, checksum);
    }
    for at in (0..content.len()).step_by(GRAIN as usize) {
        let place = Place {
            store_id: STORE,
            segment: number,
            offset: at as u64,
        };
        if content[at..].starts_with(b"AReC") && content.len() - at >= RECORD_HEADER_BYTES {
            mend_record(&mut content[at..], place);
        }
        if content[at..].starts_with(b"AreoBtch") && content.len() - at >= BATCH_HEADER_BYTES {
            let header = BatchHeader::unchecked(&content[at..]);
            content[at..at + BATCH_HEADER_BYTES].copy_from_slice(&header.encode(place));
        }
    }
}

fn mend_record(content: &mut [u8], place: Place) {
    let mut record = RecordHeader::unchecked(content);
    let header_end = RECORD_HEADER_BYTES + record.header_length as usize;
    if let Some(header) = content.get(RECORD_HEADER_BYTES..header_end) {
        record.header_checksum = crc32c(header);
        let payload = usize::try_from(payload_at(record.header_length as usize));
        let payload = payload.expect("within memory");
        let end = payload + record.payload_length as usize;
        if let Some(payload) = content.get(payload..end) {
            record.payload_checksum = crc32c(payload);
        }
    }
    content[..RECORD_HEADER_BYTES].copy_from_slice(&record.encode(place));
}

/// Makes the checksums of a hint right, and the length of its body.
fn mend_hint(content: &mut [u8], number: u64) {
    let Some((fixed, body)) = content.split_at_mut_checked(HINT_HEADER_BYTES) else {
        return;
    };
    if !fixed.starts_with(b"AreoHint") {
        return;
    }
    let version = get_u32(fixed, 8);
    let header = HintHeader {
        store_id: STORE,
        segment: number,
        ..HintHeader::unchecked(fixed)
    };
    fixed.copy_from_slice(&header.encode(body));
    put_u32(fixed, 8, version);
    put_u64(fixed, 64, body.len() as u64);
    let checksum = crc32c(&fixed[..92]);
    put_u32(fixed, 92, checksum);
}
