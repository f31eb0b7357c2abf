//! Messages that are refused: those that are cut, changed, too long, of a later version, or cannot be.

use super::*;
use areo_core::pointer::Successors;
use std::ops::Range;

#[test]
fn every_truncation_is_refused() {
    // These end in fields that may be missing.
    let early = [
        "status",
        "view",
        "register",
        "ask-to-register",
        "hand-on",
        "know",
        "serving",
        "admissible",
    ];
    let may_end_early = |name| early.contains(&name);
    for request in examples::requests() {
        let EncodedMessage { body, payload } = encode_request(&request);
        for end in 0..body.len() {
            let cut = decode_request(&body.slice(..end), payload.clone());
            assert!(
                cut.is_err() || may_end_early(request_name(&request)),
                "{end} of {request:?}"
            );
        }
        if !payload.is_empty() {
            let fewer = payload[1..].to_vec();
            assert_eq!(
                decode_request(&body, fewer),
                Err(DecodeError::MissingSegment)
            );
        }
    }
    for reply in examples::replies() {
        let EncodedMessage { body, payload } = encode_reply(&reply);
        for end in 0..body.len() {
            let cut = decode_reply(&body.slice(..end), payload.clone());
            assert!(
                cut.is_err() || may_end_early(reply_name(&reply)),
                "{end} of {reply:?}"
            );
        }
    }
    for note in examples::notes() {
        let body = encode_note(&note).body;
        for end in 0..body.len() {
            let cut = decode_note(&body.slice(..end), Vec::new());
            assert!(
                cut.is_err() || may_end_early(note_name(&note)),
                "{end} of {note:?}"
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_read_or_refused() {
    for (encoded, decode) in inputs() {
        let lengths = lengths(&encoded);
        for bit in 0..encoded.body.len() * 8 {
            let mut body = encoded.body.to_vec();
            body[bit / 8] ^= 1 << (bit % 8);
            decode(&fuzzing::join(&body, &lengths));
        }
    }
}

#[test]
fn nothing_may_be_left_over() {
    let segment = (Bytes::from_static(b"surplus"), 0);
    for request in examples::requests() {
        let EncodedMessage { body, mut payload } = encode_request(&request);
        let longer = Bytes::from([&body[..], &[0]].concat());
        assert!(
            decode_request(&longer, payload.clone()).is_err(),
            "{request:?}"
        );
        payload.push(segment.clone());
        let unused = DecodeError::UnusedSegments { segments: 1 };
        assert_eq!(decode_request(&body, payload), Err(unused));
    }
    for reply in examples::replies() {
        let EncodedMessage { body, mut payload } = encode_reply(&reply);
        let longer = Bytes::from([&body[..], &[0]].concat());
        assert!(decode_reply(&longer, payload.clone()).is_err(), "{reply:?}");
        payload.push(segment.clone());
        let unused = DecodeError::UnusedSegments { segments: 1 };
        assert_eq!(decode_reply(&body, payload), Err(unused));
    }
    let empty = vec![(Bytes::new(), 0)];
    let fetched = encode_reply(&Reply::Access(vec![Answer::Fetched(ReplyElement::Whole(
        copy(),
    ))]))
    .body;
    assert_eq!(
        decode_reply(&fetched, empty),
        Err(DecodeError::EmptySegment)
    );
}

/// Sets each of these bits of one byte in turn; the flags of `what` must be refused each time.
fn refuses_flags(encoded: &EncodedMessage, at: usize, bits: Range<u32>, expected: &str) {
    for bit in bits {
        let mut body = encoded.body.to_vec();
        body[at] |= 1 << bit;
        let body = Bytes::from(body);
        let error = match expected {
            "reply" | "answer" | "entry of a listing" | "cell" => {
                decode_reply(&body, encoded.payload.clone()).unwrap_err()
            }
            "note" => decode_note(&body, encoded.payload.clone()).unwrap_err(),
            _ => decode_request(&body, encoded.payload.clone()).unwrap_err(),
        };
        assert_eq!(error.refusal(), Refusal::UnknownRequest);
        assert!(
            matches!(error, DecodeError::UnknownFlags { what, .. } if what == expected),
            "bit {bit} of {expected}: {error}"
        );
    }
}

#[test]
fn unknown_flags_are_refused() {
    for request in examples::requests() {
        let first_unknown = match request {
            Request::Configured { .. } => 2,
            Request::Latest { .. } => 1,
            _ => 0,
        };
        refuses_flags(&encode_request(&request), 1, first_unknown..8, "request");
    }
    for reply in examples::replies() {
        let name = reply_name(&reply);
        let flagged = name.starts_with("cell-promised")
            || matches!(name, "listed" | "cells" | "cell-closed" | "latest");
        let of_no_configuration = matches!(name, "directory" | "status" | "latest");
        // The last bit says that a pointer follows.
        let end = if of_no_configuration { 8 } else { 7 };
        refuses_flags(&encode_reply(&reply), 1, u32::from(flagged)..end, "reply");
        match name {
            "held" | "held-element" | "held-fence" | "held-complete" => {
                refuses_flags(&encode_reply(&reply), 5, 3..8, "answer");
            }
            "fetched" | "evicted" | "stored" | "dropped" | "refused" => {
                refuses_flags(&encode_reply(&reply), 5, 0..8, "answer");
            }
            "listed" => refuses_flags(&encode_reply(&reply), 4, 3..8, "entry of a listing"),
            "cells" => refuses_flags(&encode_reply(&reply), 4, 1..8, "cell"),
            _ => {}
        }
    }
    for note in examples::notes() {
        let first_unknown = match note {
            Note::Restart(_) => 1,
            _ => 0,
        };
        refuses_flags(&encode_note(&note), 1, first_unknown..8, "note");
    }
    let access = 2 + 32 + 2;
    refuses_flags(
        &encode_request(&example("finalize")),
        access + 1,
        3..8,
        "access",
    );
    refuses_flags(
        &encode_request(&example("query-tags")),
        access + 1,
        3..8,
        "access",
    );
    refuses_flags(
        &encode_request(&example("fetch-payload")),
        access + 1,
        1..8,
        "access",
    );
    let put = encode_request(&example("put"));
    refuses_flags(&put, access + 1, 1..8, "access");
    // Behind the access and a name of one kind byte and one letter.
    refuses_flags(&put, access + 28 + 2, 2..8, "element");
}

#[test]
fn kinds_of_a_later_version_are_refused_as_such() {
    let unknown = |error: DecodeError| {
        assert!(matches!(error, DecodeError::UnknownValue { .. }), "{error}");
        assert_eq!(error.refusal(), Refusal::UnknownRequest);
    };
    for kind in [0, 99, 255] {
        let body = Bytes::from(vec![kind, 0]);
        unknown(decode_request(&body, Vec::new()).unwrap_err());
        unknown(decode_reply(&body, Vec::new()).unwrap_err());
        unknown(decode_note(&body, Vec::new()).unwrap_err());
    }
    let mut body = encode_request(&example("query-tags")).body.to_vec();
    body[36] = 99;
    unknown(decode_request(&body, Vec::new()).unwrap_err());
    let refused = Reply::Access(vec![Answer::Refused(Refusal::Full)]);
    let mut body = encode_reply(&refused).body.to_vec();
    body[6] = 200;
    unknown(decode_reply(&body, Vec::new()).unwrap_err());
}

#[test]
fn limits_hold_when_reading() {
    let too_large = |request: Request, expected: &str| {
        let error = request_again(&request).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.refusal(), Refusal::TooLarge, "{error}");
    };
    let with = |name, change: &dyn Fn(&mut Body)| {
        let mut request = example(name);
        let Request::Configured { body, .. } = &mut request else {
            unreachable!("the example is of a configuration")
        };
        change(body);
        request
    };
    let long = "k".repeat(limits::KEY_BYTES + 1);
    let list = with("list", &|body| {
        if let Body::List(list) = body {
            list.prefix.clone_from(&long);
        }
    });
    too_large(list, "prefix of keys of 1025 bytes");
    let accept = with("cell-accept", &|body| {
        if let Body::Cell {
            step: areo_core::message::CellRequest::Accept { value, .. },
            ..
        } = body
        {
            *value = vec![0; limits::CELL_BYTES + 1].into();
        }
    });
    too_large(accept, "value of a cell of 12289 bytes");
    let Request::Know(mut server) = example("know") else {
        unreachable!("the example registers")
    };
    server.address = "a".repeat(256);
    too_large(Request::Know(server), "address of a server of 256 bytes");
    // More accesses than are allowed cannot be written; only announced.
    let mut body = encode_request(&example("query-tags")).body.to_vec();
    body[34..36].copy_from_slice(&(limits::ACCESSES as u16 + 1).to_le_bytes());
    let error = decode_request(&body, Vec::new()).unwrap_err();
    assert_eq!(error.refusal(), Refusal::TooLarge);
    let huge = Bytes::from(vec![0; frame::MAX_BODY_BYTES as usize + 1]);
    assert_eq!(
        decode_reply(&huge, Vec::new()).unwrap_err().refusal(),
        Refusal::TooLarge
    );
}

#[test]
fn elements_that_cannot_be_are_refused() {
    let Request::Configured { configuration, .. } = example("put") else {
        unreachable!("puts are of a configuration")
    };
    let put = Access::Put {
        tag: Tag::INITIAL,
        element: copy(),
        write_back: false,
    };
    let EncodedMessage { body, payload } = encode_request(&Request::Configured {
        configuration,
        descriptor: None,
        successors: Successors::default(),
        body: Body::Access(vec![(Name::user("k").unwrap(), put)]),
    });
    // Behind the request, the access and a name of two bytes: flags u8, form, length of the metadata u16, length u64.
    let element = 36 + 28 + 2;
    let with = |at: usize, bytes: &[u8], payload: &[(Bytes, u32)]| {
        let mut body = body.to_vec();
        body[element + at..element + at + bytes.len()].copy_from_slice(bytes);
        decode_request(&body, payload.to_vec()).map(|_| ())
    };
    assert_eq!(with(6, &[3], &payload), Ok(()));
    let wrong = |length, payload_bytes| {
        Err(DecodeError::WrongLength {
            length,
            payload_bytes,
        })
    };
    assert_eq!(with(6, &[4], &payload), wrong(4, 3));
    assert_eq!(with(0, &[0], &[]), wrong(3, 0), "a put has its payload");
    assert_eq!(with(1, &[2, 1, 1], &payload), Ok(()));
    for [n, k, index] in [[2, 3, 0], [2, 1, 2], [0, 1, 0], [1, 0, 0]] {
        let error = DecodeError::ImpossibleForm { n, k, index };
        assert_eq!(with(1, &[n, k, index], &payload), Err(error));
    }
}

#[test]
fn versions_out_of_order_are_refused() {
    let versions = |numbers: [u64; 2]| {
        let tag = |number| Tag {
            number,
            ..Tag::INITIAL
        };
        let held = HeldVersions {
            stored: vec![(tag(1), Form::Copy), (tag(2), Form::Copy)],
            ..HeldVersions::default()
        };
        let mut body = encode_reply(&Reply::Access(vec![Answer::Held(held)]))
            .body
            .to_vec();
        for (index, number) in numbers.into_iter().enumerate() {
            let at = 4 + 2 + 48 + 4 + 28 * index;
            body[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        decode_reply(&body, Vec::new()).map(|_| ())
    };
    assert_eq!(versions([1, 2]), Ok(()));
    assert_eq!(versions([2, 2]), Err(DecodeError::VersionsOutOfOrder));
    assert_eq!(versions([3, 2]), Err(DecodeError::VersionsOutOfOrder));
}
