//! The fuzz targets on a stable toolchain: every entry point of `areo_wire::fuzzing` on a fixed number of mutations of
//! known good inputs, from a fixed seed, so that a failure is there again in the next run.

use areo_wire::frame::{self, BodyPlace, Header, Kind, SegmentRow, TraceContext};
use areo_wire::fuzzing::{self, Golden};
use areo_wire::hello::{self, Channel, Field, Hello, Role, Welcome};

const REQUESTS: &str = include_str!("golden/request-v1.txt");
const REPLIES: &str = include_str!("golden/reply-v1.txt");
const NOTES: &str = include_str!("golden/note-v1.txt");
const RECORDS: &str = include_str!("golden/record-v1.txt");

/// Inputs of each target.
const ROUNDS: u32 = 10_000;
/// At most so many changes are made to one input.
const CHANGES: u64 = 4;

/// A generator of pseudo-random numbers: `splitmix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Changes an input in one of the ways in which length-prefixed formats go wrong.
fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let byte = random.next() as u8;
    let number = match random.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next() >> random.below(64),
        _ => 1 << random.below(64),
    };
    let mut overwrite = |bytes: &[u8]| {
        for (old, new) in input[at..].iter_mut().zip(bytes) {
            *old = *new;
        }
    };
    match random.below(8) {
        0 => overwrite(&[byte]),
        1 => overwrite(&(number as u16).to_le_bytes()),
        2 => overwrite(&(number as u32).to_le_bytes()),
        3 => overwrite(&number.to_le_bytes()),
        4 => input.truncate(at),
        5 => input.insert(at, byte),
        6 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => {
            if let Some(old) = input.get_mut(at) {
                *old ^= 1 << (byte % 8);
            }
        }
    }
}

/// Runs a target on its corpus and on mutations of it. Some of those must be readable, and most must not be: a driver
/// that only produces rubbish, or never does, would test nothing.
fn drive(target: fn(&[u8]) -> bool, corpus: &[Vec<u8>], seed: u64) {
    assert!(corpus.len() >= 2, "there is something to begin with");
    for input in corpus {
        assert!(target(input), "known good: {input:02x?}");
    }
    let mut random = Random(seed);
    let mut read = 0;
    for _ in 0..ROUNDS {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.next() % CHANGES {
            change(&mut input, corpus, &mut random);
        }
        read += u32::from(target(&input));
    }
    assert!(
        (ROUNDS / 50..ROUNDS * 9 / 10).contains(&read),
        "{read} of {ROUNDS} mutations could be read"
    );
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
            crc32c: frame::crc32c(segment),
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
