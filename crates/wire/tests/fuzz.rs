//! The fuzz targets on a stable toolchain: every entry point of `areo_wire::fuzzing` on mutations of known good inputs.

use areo_fuzzing::Driver;
use areo_wire::checksum::crc32c;
use areo_wire::frame::{self, BodyPlace, Header, Kind, SegmentRow, TraceContext};
use areo_wire::fuzzing::{self, Golden};
use areo_wire::hello::{self, Channel, Field, Hello, Role, Welcome};

const REQUESTS: &str = include_str!("golden/request-v2.txt");
const REPLIES: &str = include_str!("golden/reply-v2.txt");
const NOTES: &str = include_str!("golden/note-v2.txt");
const RECORDS: &str = include_str!("golden/record-v2.txt");

fn drive(target: fn(&[u8]) -> bool, corpus: &[Vec<u8>], seed: u64) {
    Driver {
        target,
        corpus,
        words: &[],
        seed,
        cost: 1,
    }
    .run();
}

fn messages(golden: &str) -> Vec<Vec<u8>> {
    Golden::parse(golden).iter().map(Golden::input).collect()
}

fn frames() -> Vec<Vec<u8>> {
    let trace = TraceContext {
        trace_id: [1; 16],
        span_id: [2; 8],
        flags: 1,
    };
    let frame = |(number, golden): (usize, Golden)| {
        let header = Header {
            trace: (number % 2 == 0).then_some(trace),
            ..Header::new(Kind::Request, number as u64)
        };
        let row = |segment: &Vec<u8>| SegmentRow {
            bytes: segment.len() as u32,
            crc32c: crc32c(segment),
        };
        let rows: Vec<SegmentRow> = golden.segments.iter().map(row).collect();
        let mut out = Vec::new();
        let (rows, place) = (rows.iter().copied(), BodyPlace::Inline);
        frame::encode(&mut out, &header, rows, &golden.body, place).expect("a small frame");
        out
    };
    let golden = Golden::parse(REQUESTS).into_iter();
    golden.enumerate().map(frame).collect()
}

fn hellos() -> Vec<Vec<u8>> {
    let mut hello = Hello::new(Role::Client, Channel::Bulk, 7);
    hello.fields.push(Field {
        kind: 1,
        value: b"later".to_vec(),
    });
    let welcome = Welcome {
        version: frame::VERSION,
        must_features: 0,
        optional_features: 0,
        refusal: None,
        max_body_bytes: frame::MAX_BODY_BYTES,
        max_payload_bytes: frame::MAX_PAYLOAD_BYTES,
        cluster: 8,
        server: 9,
        incarnation: 10,
        fields: Vec::new(),
    };
    let refused = Welcome {
        version: 0,
        refusal: Some(frame::Refusal::WrongServer),
        ..welcome.clone()
    };
    vec![
        hello::encode_hello(&hello),
        hello::encode_welcome(&welcome),
        hello::encode_welcome(&refused),
    ]
}

#[test]
fn frames_of_any_bytes() {
    drive(fuzzing::frame, &frames(), 1);
}

#[test]
fn hellos_of_any_bytes() {
    drive(fuzzing::hello, &hellos(), 2);
}

/// The fields of these messages, as [`fuzzing::hello_fields`] reads them.
fn fields() -> Vec<Vec<u8>> {
    let field = |kind: u16, value: &[u8]| {
        let length = value.len() as u16;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), value].concat()
    };
    let ticket = [field(1, &[3; 300]), field(2, &[4; 64])].concat();
    let welcome = [field(1, &[5; 8]), field(2, b"the key was revoked")].concat();
    let must = field(0x8003, b"later");
    vec![
        [&[1][..], &ticket].concat(),
        [&[0][..], &ticket, &must].concat(),
        [&[0][..], &welcome].concat(),
    ]
}

#[test]
fn fields_of_hellos_of_any_bytes() {
    drive(fuzzing::hello_fields, &fields(), 7);
}

#[test]
fn requests_of_any_bytes() {
    drive(fuzzing::request, &messages(REQUESTS), 3);
}

#[test]
fn replies_of_any_bytes() {
    drive(fuzzing::reply, &messages(REPLIES), 4);
}

#[test]
fn notes_of_any_bytes() {
    drive(fuzzing::note, &messages(NOTES), 5);
}

#[test]
fn record_headers_of_any_bytes() {
    let records = Golden::parse(RECORDS).into_iter();
    let corpus: Vec<Vec<u8>> = records.map(|golden| golden.body).collect();
    drive(fuzzing::record_header, &corpus, 6);
}
