use super::*;
use crate::codec::EncodedMessage;
use crate::fuzzing;
use crate::testing::{examples, golden, header_name, strategies};
use proptest::prelude::*;

#[test]
fn released_bytes_never_change() {
    let encoded = |header| EncodedMessage {
        body: encode_header(header).into(),
        payload: Vec::new(),
    };
    let headers = examples::headers();
    let named = headers
        .iter()
        .map(|header| (header_name(header), encoded(header)));
    golden::check("record-v2.txt", &named.collect::<Vec<_>>());
}

#[test]
fn examples_come_back() {
    for header in examples::headers() {
        assert_eq!(decode_header(&encode_header(&header)), Ok(header));
    }
}

proptest! {
    #[test]
    fn every_header_comes_back_and_has_an_example(header in strategies::header()) {
        let bytes = encode_header(&header);
        prop_assert_eq!(bytes.capacity(), bytes.len());
        prop_assert_eq!(decode_header(&bytes), Ok(header.clone()));
        let name = header_name(&header);
        prop_assert!(examples::headers().iter().any(|example| header_name(example) == name));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..8_u8) {
        fuzzing::record_header(&bytes);
        fuzzing::record_header(&[&[VERSION, kind, 0], &*bytes].concat());
    }

    #[test]
    fn any_flipped_byte_is_read_or_refused(header in strategies::header(), at: proptest::sample::Index, flip in 1..=u8::MAX) {
        let mut bytes = encode_header(&header);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fuzzing::record_header(&bytes);
    }
}

#[test]
fn every_truncation_is_refused_and_every_flipped_bit_survived() {
    for header in examples::headers() {
        let bytes = encode_header(&header);
        // These end in fields that may be missing.
        let may_end_early = matches!(
            header,
            Header::Configuration(_) | Header::Registry(_) | Header::Final(_)
        );
        for end in 0..bytes.len() {
            let cut = decode_header(&bytes[..end]);
            assert!(cut.is_err() || may_end_early, "{end} of {header:?}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fuzzing::record_header(&flipped);
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(decode_header(&longer).is_err(), "{header:?}");
    }
}

#[test]
fn a_later_version_kind_or_flag_is_refused() {
    for header in examples::headers() {
        let bytes = encode_header(&header);
        let with = |at: usize, value| {
            let mut changed = bytes.clone();
            changed[at] = value;
            decode_header(&changed)
        };
        for version in [0, 1, 3, 255] {
            assert_eq!(
                with(0, version),
                Err(DecodeError::UnknownVersion { version })
            );
        }
        for kind in [0, 8, 255] {
            let (what, value) = ("kind of record", kind.into());
            assert_eq!(
                with(1, kind),
                Err(DecodeError::UnknownValue { what, value })
            );
        }
        let known: u32 = match header {
            Header::Element(_) | Header::Marks { .. } => 1,
            Header::Cell { .. } => 2,
            _ => 0,
        };
        for bit in known..8 {
            let (what, flags) = ("record", bytes[2] | 1 << bit);
            assert_eq!(
                with(2, flags),
                Err(DecodeError::UnknownFlags { what, flags })
            );
        }
    }
}

#[test]
fn the_longest_header_fits() {
    let key = ConfigurationId {
        domain: areo_core::object::DomainId(1),
        partition: 0,
        index: 0,
        digest: 0,
    };
    let value = Bytes::from(vec![1; limits::CELL_BYTES]);
    let header = Header::Cell {
        key,
        cell: Bytes::from(vec![2; limits::CELL_NAME_BYTES]),
        acceptor: Acceptor {
            accepted: Some((areo_core::message::Ballot::default(), value)),
            ..Acceptor::default()
        },
    };
    let bytes = encode_header(&header);
    // As `docs/data-file.md` says.
    assert_eq!((bytes.len(), MAX_HEADER_BYTES), (12_633, 12_633));
    assert_eq!(decode_header(&bytes), Ok(header));
    let error = decode_header(&vec![0; MAX_HEADER_BYTES + 1]).unwrap_err();
    assert!(matches!(error, DecodeError::TooLong { .. }), "{error}");
}

#[test]
fn a_cell_is_not_decided_without_a_value() {
    let headers = examples::headers();
    let promised = headers
        .iter()
        .find(|header| header_name(header) == "cell-promised");
    let mut bytes = encode_header(promised.unwrap());
    bytes[2] = CELL_DECIDED;
    assert_eq!(decode_header(&bytes), Err(DecodeError::DecidedWithoutValue));
}
