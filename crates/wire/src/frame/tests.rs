use proptest::prelude::*;

use super::*;

fn trace() -> TraceContext {
    TraceContext {
        trace_id: *b"trace-id-16bytes",
        span_id: *b"span-id8",
        flags: 1,
    }
}

fn encoded(header: &Header, segments: &[Vec<u8>], body: &[u8]) -> Vec<u8> {
    let rows = segments.iter().map(|segment| SegmentRow {
        bytes: segment.len() as u32,
        crc32c: crc32c(segment),
    });
    let mut out = Vec::new();
    encode(&mut out, header, rows, body, BodyPlace::Inline).unwrap();
    assert_eq!(out.len(), head_bytes(header, segments.len(), body.len()));
    out
}

fn head<'a>(bytes: &'a [u8], limits: &Limits) -> Head<'a> {
    match decode(bytes, limits).unwrap() {
        DecodeOutcome::Head(head) => head,
        DecodeOutcome::Need { total_bytes } => panic!("needs {total_bytes} of {}", bytes.len()),
    }
}

/// The bytes of version 2. If this test fails, the format changed: that needs a new version, not new bytes.
#[test]
fn golden_bytes_of_version_2() {
    let header = Header {
        kind: Kind::Request,
        call_id: 0x0102_0304_0506_0708,
        deadline_ms: 10_000,
        refusal: None,
        trace: Some(trace()),
    };
    let bytes = encoded(&header, &[b"123456789".to_vec()], b"body");
    let expected = concat!(
        "3dec1c33", // crc32c of all that follows
        "ae020101", // magic, version 2, request, trace present
        "0807060504030201",
        "10270000",         // 10 000 ms
        "04000000",         // body of 4 bytes
        "0900000000000000", // payload of 9 bytes
        "0100",             // in one segment
        "0000",             // no refusal
        "00000000",         // reserved
        "74726163652d69642d31366279746573",
        "7370616e2d696438",
        "01",
        "09000000839206e3", // 9 bytes; e3069283 is the check value of CRC-32C
        "626f6479",
    );
    assert_eq!(hex(&bytes), expected);

    let refusal = encoded(&Header::refusal(7, Refusal::Draining), &[], b"");
    let expected = concat!(
        "a683fe87",
        "ae020300",
        "0700000000000000",
        "ffffffff",
        "00000000",
        "0000000000000000",
        "0000",
        "0400",
        "00000000",
    );
    assert_eq!(hex(&refusal), expected);
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

#[test]
fn refusal_codes_round_trip_and_the_list_is_closed() {
    for refusal in Refusal::ALL {
        assert_eq!(Refusal::from_code(refusal.code()), Some(refusal));
        assert!(!refusal.to_string().is_empty());
    }
    assert_eq!(Refusal::from_code(0), None);
    assert_eq!(Refusal::from_code(Refusal::ALL.len() as u16 + 1), None);
}

#[test]
fn every_prefix_asks_for_more_and_never_for_more_than_the_head() {
    let bytes = encoded(
        &Header::new(Kind::Reply, 3),
        &[vec![1; 10], vec![]],
        b"some body",
    );
    for length in 0..bytes.len() {
        match decode(&bytes[..length], &Limits::default()).unwrap() {
            DecodeOutcome::Need { total_bytes } => {
                assert!(total_bytes > length && total_bytes <= bytes.len());
            }
            DecodeOutcome::Head(_) => panic!("a head from {length} of {} bytes", bytes.len()),
        }
    }
}

#[test]
fn every_flipped_bit_of_a_head_is_noticed() {
    let bytes = encoded(
        &Header {
            trace: Some(trace()),
            ..Header::new(Kind::Note, 0)
        },
        &[vec![9; 5]],
        b"abc",
    );
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match decode(&flipped, &Limits::default()) {
            // A length that grew: the checksum is looked at once that much has arrived.
            Ok(DecodeOutcome::Need { total_bytes }) => {
                assert!(total_bytes > flipped.len());
                flipped.resize(total_bytes, 0);
                assert!(
                    decode(&flipped, &Limits::default()).is_err(),
                    "bit {bit} passed"
                );
            }
            Ok(DecodeOutcome::Head(_)) => panic!("bit {bit} passed"),
            Err(_) => {}
        }
    }
}

/// A head with a right checksum and a wrong content: the message of a buggy peer, not of a broken cable.
fn forged(change: impl Fn(&mut Vec<u8>)) -> FrameError {
    let mut bytes = encoded(&Header::new(Kind::Request, 1), &[vec![0; 4]], b"xy");
    change(&mut bytes);
    let checksum = crc32c(&bytes[CHECKED_FROM..]);
    bytes[..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
    decode(&bytes, &Limits::default()).expect_err("forged head passed")
}

#[test]
fn forged_heads_are_refused_with_the_reason() {
    assert_eq!(forged(|b| b[4] = 0), FrameError::NotAFrame { found: 0 });
    assert_eq!(
        forged(|b| b[5] = 1),
        FrameError::UnknownVersion { version: 1 }
    );
    assert_eq!(forged(|b| b[6] = 8), FrameError::UnknownKind { kind: 8 });
    assert_eq!(
        forged(|b| b[7] = 0x82),
        FrameError::UnknownFlags { flags: 0x82 }
    );
    assert_eq!(
        forged(|b| b[34] = 1),
        FrameError::WrongRefusalCode { code: 1 }
    );
    assert_eq!(
        forged(|b| b[35] = 9),
        FrameError::WrongRefusalCode { code: 0x900 }
    );
    assert_eq!(
        forged(|b| b[6] = Kind::Refusal as u8),
        FrameError::WrongRefusalCode { code: 0 }
    );
    assert_eq!(
        forged(|b| b[39] = 1),
        FrameError::ReservedNotZero { found: 1 << 24 }
    );
    assert_eq!(
        forged(|b| b[6] = Kind::Ping as u8),
        FrameError::SignalWithContent
    );
    assert_eq!(
        forged(|b| b[24] = 5),
        FrameError::SegmentsDisagree {
            payload_bytes: 5,
            table_bytes: 4
        }
    );
    assert!(matches!(
        forged(|b| b[23] = 1),
        FrameError::BodyTooLarge { .. }
    ));
    assert!(matches!(
        forged(|b| b[31] = 1),
        FrameError::PayloadTooLarge { .. }
    ));
    assert!(matches!(
        forged(|b| b[33] = 0xff),
        FrameError::TooManySegments { .. }
    ));
}

#[test]
fn limits_hold_at_the_boundary_on_both_sides() {
    let limits = Limits {
        max_body_bytes: 8,
        max_payload_bytes: 16,
        max_segments: 2,
    };
    let header = Header::new(Kind::Request, 1);
    let fits = encoded(&header, &[vec![1; 8], vec![2; 8]], &[7; 8]);
    assert_eq!(head(&fits, &limits).payload_bytes, 16);
    for (segments, body) in [
        (vec![vec![1; 8], vec![2; 9]], vec![7; 8]),
        (vec![vec![1; 1]; 3], vec![]),
        (vec![], vec![7; 9]),
    ] {
        let bytes = encoded(&header, &segments, &body);
        assert!(decode(&bytes, &limits).is_err());
    }

    let mut out = vec![1, 2, 3];
    let body = vec![0; MAX_BODY_BYTES as usize + 1];
    let rows = std::iter::empty::<SegmentRow>();
    let error = encode(&mut out, &header, rows, &body, BodyPlace::Inline).unwrap_err();
    assert!(matches!(error, FrameError::BodyTooLarge { .. }));
    let rows = vec![
        SegmentRow {
            bytes: 1 << 30,
            crc32c: 0
        };
        2
    ]
    .into_iter();
    let error = encode(&mut out, &header, rows, b"", BodyPlace::Inline).unwrap_err();
    assert!(matches!(error, FrameError::PayloadTooLarge { .. }));
    assert_eq!(out, [1, 2, 3], "a refused message leaves nothing behind");
}

#[test]
fn a_body_kept_apart_gives_the_same_bytes() {
    let header = Header::new(Kind::Reply, 77);
    let body = vec![5; 5000];
    let inline = encoded(&header, &[], &body);
    let mut apart = Vec::new();
    let rows = std::iter::empty::<SegmentRow>();
    encode(&mut apart, &header, rows, &body, BodyPlace::Apart).unwrap();
    apart.extend_from_slice(&body);
    assert_eq!(inline, apart);
}

fn any_header() -> impl Strategy<Value = Header> {
    let kind = prop_oneof![
        Just(Kind::Request),
        Just(Kind::Reply),
        Just(Kind::Refusal),
        Just(Kind::Note)
    ];
    let traced = proptest::option::of(any::<([u8; 16], [u8; 8], u8)>());
    (
        kind,
        any::<u64>(),
        any::<u32>(),
        0..Refusal::ALL.len(),
        traced,
    )
        .prop_map(|(kind, call_id, deadline_ms, refusal, traced)| Header {
            kind,
            call_id,
            deadline_ms,
            refusal: (kind == Kind::Refusal).then(|| Refusal::ALL[refusal]),
            trace: traced.map(|(trace_id, span_id, flags)| TraceContext {
                trace_id,
                span_id,
                flags,
            }),
        })
}

proptest! {
    #[test]
    fn round_trip(
        header in any_header(),
        segments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        behind in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut bytes = encoded(&header, &segments, &body);
        let length = bytes.len();
        bytes.extend_from_slice(&behind);
        let limits = Limits::default();
        let head = head(&bytes, &limits);
        prop_assert_eq!(head.header, header);
        prop_assert_eq!(head.body, &body[..]);
        prop_assert_eq!(head.head_bytes, length);
        prop_assert_eq!(head.segments.len(), segments.len());
        prop_assert_eq!(head.payload_bytes, segments.iter().map(|s| s.len() as u64).sum::<u64>());
        for (row, segment) in head.segments.iter().zip(&segments) {
            prop_assert_eq!(row, SegmentRow { bytes: segment.len() as u32, crc32c: crc32c(segment) });
        }
    }

    /// Nothing that can arrive makes the decoder panic or ask for more than the limits allow. It has no
    /// allocation of its own, so what it asks for is all that it can make a receiver set aside.
    #[test]
    fn arbitrary_bytes_never_panic_nor_ask_beyond_the_limits(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        plausible in any::<bool>(),
    ) {
        if plausible && bytes.len() >= HEADER_BYTES {
            // Past the first checks, to where the lengths are.
            let (kind, flags) = (bytes[6] % 9, bytes[7] & 1);
            bytes[4..8].copy_from_slice(&[MAGIC, VERSION, kind, flags]);
            bytes[34..40].fill(0);
            bytes[22..24].fill(0);
            bytes[27..32].fill(0);
        }
        let limits = Limits { max_body_bytes: 4096, max_payload_bytes: 1 << 16, max_segments: 16 };
        match decode(&bytes, &limits) {
            Ok(DecodeOutcome::Need { total_bytes }) => {
                prop_assert!(total_bytes > bytes.len() && total_bytes <= limits.max_head_bytes());
            }
            Ok(DecodeOutcome::Head(head)) => prop_assert!(head.head_bytes <= bytes.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
