use proptest::prelude::*;

use super::*;

fn sample_hello() -> Hello {
    Hello {
        cluster: 0xC1,
        expected_server: 0x5E,
        known_incarnation: 3,
        fields: vec![Field {
            kind: 2,
            value: b"x".to_vec(),
        }],
        ..Hello::new(Role::Server, Channel::Bulk, 0x0A)
    }
}

fn sample_welcome() -> Welcome {
    Welcome {
        version: 2,
        must_features: 0,
        optional_features: 0,
        refusal: None,
        max_body_bytes: 1 << 20,
        max_payload_bytes: 1 << 30,
        cluster: 0xC1,
        server: 0x5E,
        incarnation: 4,
        fields: Vec::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

/// The bytes of version 2. If this test fails, the format changed: that needs a new version, not new bytes.
#[test]
fn golden_bytes_of_version_2() {
    let expected = concat!(
        "4152454f",
        "6100",
        "02",
        "02", // AREO, 97 bytes, versions 2 to 2
        "0000000000000000",
        "0000000000000000", // features
        "01",
        "00",
        "01",
        "0000000000", // server, no authentication, bulk
        "c1000000000000000000000000000000",
        "5e000000000000000000000000000000",
        "0a000000000000000000000000000000",
        "0300000000000000",
        "0200",
        "0100",
        "78", // an optional field
        "72652031",
    );
    assert_eq!(hex(&encode_hello(&sample_hello())), expected);
    let expected = concat!(
        "4152454f",
        "5400",
        "02",
        "00", // AREO, 84 bytes, version 2
        "0000000000000000",
        "0000000000000000",
        "0000",
        "0000",     // accepted
        "00001000", // bodies up to 1 MiB
        "c1000000000000000000000000000000",
        "5e000000000000000000000000000000",
        "0400000000000000",
        "0000004000000000", // payloads up to 1 GiB
        "947cab15",
    );
    assert_eq!(hex(&encode_welcome(&sample_welcome())), expected);
}

/// A reader of before skips it, and a welcome of before has none.
#[test]
fn the_number_of_a_process_is_an_optional_field() {
    let process = 0x0102_0304_0506_0708;
    let welcome = Welcome {
        fields: vec![process_field(process)],
        ..sample_welcome()
    };
    let bytes = encode_welcome(&welcome);
    assert!(
        hex(&bytes).contains("010008000807060504030201"),
        "{bytes:?}"
    );
    assert_eq!(decode_welcome(&bytes).unwrap().process(), Some(process));
    assert!(!welcome.fields[0].must_understand());
    assert_eq!(sample_welcome().process(), None);
}

#[test]
fn every_truncation_and_every_flipped_bit_is_noticed() {
    let hello = encode_hello(&sample_hello());
    let welcome = encode_welcome(&sample_welcome());
    for length in 0..hello.len() {
        assert!(decode_hello(&hello[..length]).is_err());
    }
    for length in 0..welcome.len() {
        assert!(decode_welcome(&welcome[..length]).is_err());
    }
    for bit in 0..hello.len() * 8 {
        let mut flipped = hello.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_hello(&flipped).is_err(), "bit {bit}");
    }
    for bit in 0..welcome.len() * 8 {
        let mut flipped = welcome.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_welcome(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn versions_features_and_fields_are_agreed_on_or_refused() {
    let hello = sample_hello();
    assert_eq!(hello.agree(), Ok(2));
    let wider = Hello {
        version_low: 0,
        version_high: 9,
        optional_features: 1 << 40,
        ..hello.clone()
    };
    assert_eq!(decode_hello(&encode_hello(&wider)).unwrap().agree(), Ok(2));
    for refused in [
        // The version before this one, and the next.
        Hello {
            version_low: 1,
            version_high: 1,
            ..hello.clone()
        },
        Hello {
            version_low: 3,
            version_high: 4,
            ..hello.clone()
        },
        Hello {
            must_features: 1,
            ..hello.clone()
        },
        Hello {
            fields: vec![Field {
                kind: MUST_UNDERSTAND | 2,
                value: vec![],
            }],
            ..hello.clone()
        },
    ] {
        let decoded = decode_hello(&encode_hello(&refused))
            .expect("an unknown version is no malformed hello");
        assert_eq!(decoded.agree(), Err(Refusal::UnsupportedVersion));
    }
    let upside_down = Hello {
        version_low: 2,
        version_high: 1,
        ..hello
    };
    assert_eq!(
        decode_hello(&encode_hello(&upside_down)),
        Err(HelloError::EmptyVersionRange { low: 2, high: 1 })
    );
}

#[test]
fn a_stranger_is_recognised_by_its_first_bytes() {
    assert_eq!(
        message_bytes(b"GET / "),
        Err(HelloError::NotAreo { found: *b"GET " })
    );
    let sentence = |found: &[u8; 4]| HelloError::NotAreo { found: *found }.to_string();
    assert!(sentence(b"HTTP").contains("'HTTP', as an admin port does"));
    assert!(sentence(b"SSH-").ends_with("begins with 'SSH-'"));
    assert!(sentence(b"\x16\x03\x01\x1b").ends_with(r"'\x16\x03\x01\x1b'"));
    assert_eq!(
        message_bytes(b"AREO\x02\x00"),
        Err(HelloError::WrongLength { bytes: 2 })
    );
    assert_eq!(
        message_bytes(b"AREO\xff\xff"),
        Err(HelloError::WrongLength { bytes: 65535 })
    );
    assert_eq!(message_bytes(b"AREO\x61\x00"), Ok(97));
}

#[test]
fn a_refusal_names_the_server() {
    let welcome = Welcome {
        version: 0,
        refusal: Some(Refusal::WrongCluster),
        ..sample_welcome()
    };
    let decoded = decode_welcome(&encode_welcome(&welcome)).unwrap();
    assert_eq!(decoded, welcome);
    assert_eq!(decoded.server, 0x5E);
}

proptest! {
    #[test]
    fn hello_round_trip(
        ids in any::<(u128, u128, u128)>(),
        known_incarnation in any::<u64>(),
        optional_features in any::<u64>(),
        fields in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..8),
    ) {
        let hello = Hello {
            cluster: ids.0,
            expected_server: ids.1,
            own_id: ids.2,
            known_incarnation,
            optional_features,
            fields: fields.into_iter().map(|(kind, value)| Field { kind, value }).collect(),
            ..Hello::new(Role::Client, Channel::Calls, 0)
        };
        prop_assert_eq!(decode_hello(&encode_hello(&hello)).unwrap(), hello);
    }

    /// Bytes under a right checksum, so that the fields behind it are reached too.
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        sealed in any::<bool>(),
    ) {
        if sealed && bytes.len() >= 32 {
            bytes[6..8].copy_from_slice(&[1, 1]);
            bytes[24..].iter_mut().take(8).for_each(|byte| *byte &= 1);
            bytes = seal(bytes, &[]);
        }
        if let Err(error) = decode_hello(&bytes) {
            prop_assert!(!error.to_string().is_empty());
        }
        if let Err(error) = decode_welcome(&bytes) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn a_hello_with_the_longest_ticket_fits_and_survives() {
    let (ticket, proof) = (vec![7; 3072], [9; 64]);
    let hello = Hello::new(Role::Client, Channel::Calls, 1);
    assert_eq!(hello.ticket(), None);
    let hello = hello.with_ticket(&ticket, &proof);
    let found = decode_hello(&encode_hello(&hello)).unwrap();
    assert_eq!(found.ticket(), Some((&ticket[..], &proof[..])));
    assert_eq!(found.agree(), Ok(frame::VERSION));
    let bare = Hello {
        fields: Vec::new(),
        ..hello
    };
    assert_eq!(
        bare.ticket(),
        Some((&[][..], &[][..])),
        "it says that it has one"
    );
}

#[test]
fn the_sentence_of_a_refusal_is_text_alone() {
    let welcome = |value: &[u8]| Welcome {
        fields: vec![Field {
            kind: 2,
            value: value.into(),
        }],
        ..sample_welcome()
    };
    let sentence = "the key was revoked";
    let field = reason_field(sentence).unwrap();
    assert_eq!(welcome(&field.value).reason().as_deref(), Some(sentence));
    assert_eq!(sample_welcome().reason(), None);
    assert_eq!(reason_field(&"x".repeat(1025)), None);
    for wrong in [&b"\xff"[..], b"a\x1b[2J", b"two\nlines", &[b'x'; 1025]] {
        assert_eq!(welcome(wrong).reason(), None, "{wrong:?}");
    }
}
