use super::*;
use crate::checksum::crc32c;
use crate::fuzzing;
use crate::testing::golden;
use crate::testing::{examples, note_name, reply_name, request_name, strategies};
use areo_core::element::{Carried, Element, Form, Handle};
use areo_core::limits;
use areo_core::message::{
    Access, Answer, Body, CellSummary, Held, ListEntry, Listed, Refusal, Want,
};
use areo_core::object::Name;
use areo_core::tag::Tag;
use areo_core::tlv;
use bytes::BytesMut;
use proptest::prelude::*;
use std::ops::Range;

fn request_again(request: &Request) -> Result<Request, DecodeError> {
    let Encoded { body, payload } = encode_request(request);
    decode_request(&body, payload)
}

fn reply_again(reply: &Reply) -> Result<Reply, DecodeError> {
    let Encoded { body, payload } = encode_reply(reply);
    decode_reply(&body, payload)
}

fn note_again(note: &Note) -> Result<Note, DecodeError> {
    let Encoded { body, payload } = encode_note(note);
    decode_note(&body, payload)
}

/// The first request whose only access is of this name.
fn example(name: &str) -> Request {
    let mut requests = examples::requests().into_iter();
    requests
        .find(|request| request_name(request) == name)
        .unwrap()
}

/// A message with what reads it.
type Input = (Encoded, fn(&[u8]) -> bool);

/// Each example.
fn inputs() -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for request in examples::requests() {
        inputs.push((encode_request(&request), fuzzing::request));
    }
    for reply in examples::replies() {
        inputs.push((encode_reply(&reply), fuzzing::reply));
    }
    for note in examples::notes() {
        inputs.push((encode_note(&note), fuzzing::note));
    }
    inputs
}

fn lengths(encoded: &Encoded) -> Vec<u16> {
    let segments = encoded.payload.iter();
    segments.map(|(bytes, _)| bytes.len() as u16).collect()
}

#[test]
fn released_bytes_never_change() {
    let requests = examples::requests();
    let encoded = |request| (request_name(request), encode_request(request));
    golden::check(
        "request-v1.txt",
        &requests.iter().map(encoded).collect::<Vec<_>>(),
    );
    let replies = examples::replies();
    let encoded = |reply| (reply_name(reply), encode_reply(reply));
    golden::check(
        "reply-v1.txt",
        &replies.iter().map(encoded).collect::<Vec<_>>(),
    );
    let notes = examples::notes();
    let encoded = |note| (note_name(note), encode_note(note));
    golden::check(
        "note-v1.txt",
        &notes.iter().map(encoded).collect::<Vec<_>>(),
    );
}

#[test]
fn examples_come_back() {
    for request in examples::requests() {
        assert_eq!(request_again(&request), Ok(request));
    }
    for reply in examples::replies() {
        assert_eq!(reply_again(&reply), Ok(reply));
    }
    for note in examples::notes() {
        assert_eq!(note_again(&note), Ok(note));
    }
}

proptest! {
    #[test]
    fn every_request_comes_back_and_has_an_example(request in strategies::request()) {
        prop_assert_eq!(request_again(&request), Ok(request.clone()));
        let name = request_name(&request);
        prop_assert!(examples::requests().iter().any(|example| request_name(example) == name));
    }

    #[test]
    fn every_reply_comes_back_and_has_an_example(reply in strategies::reply()) {
        prop_assert_eq!(reply_again(&reply), Ok(reply.clone()));
        let name = reply_name(&reply);
        prop_assert!(examples::replies().iter().any(|example| reply_name(example) == name));
    }

    #[test]
    fn every_note_comes_back_and_has_an_example(note in strategies::note()) {
        prop_assert_eq!(note_again(&note), Ok(note.clone()));
        let name = note_name(&note);
        prop_assert!(examples::notes().iter().any(|example| note_name(example) == name));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..16_u8) {
        for decode in [fuzzing::request, fuzzing::reply, fuzzing::note] {
            decode(&bytes);
            // The same behind a kind that exists.
            decode(&fuzzing::join(&[&[kind, 0], &*bytes].concat(), &[2]));
        }
    }

    #[test]
    fn any_flipped_byte_is_read_or_refused(request in strategies::request(), reply in strategies::reply(), at: proptest::sample::Index, flip in 1..=u8::MAX) {
        let both: [Input; 2] =
            [(encode_request(&request), fuzzing::request), (encode_reply(&reply), fuzzing::reply)];
        for (encoded, decode) in both {
            let mut body = encoded.body.to_vec();
            let at = at.index(body.len());
            body[at] ^= flip;
            decode(&fuzzing::join(&body, &lengths(&encoded)));
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    // These end in fields that may be missing.
    let may_end_early = |name| matches!(name, "status" | "register" | "know");
    for request in examples::requests() {
        let Encoded { body, payload } = encode_request(&request);
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
        let Encoded { body, payload } = encode_reply(&reply);
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
        let cut = |end| decode_note(&body.slice(..end), Vec::new());
        assert!((0..body.len()).all(|end| cut(end).is_err()));
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
        let Encoded { body, mut payload } = encode_request(&request);
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
        let Encoded { body, mut payload } = encode_reply(&reply);
        let longer = Bytes::from([&body[..], &[0]].concat());
        assert!(decode_reply(&longer, payload.clone()).is_err(), "{reply:?}");
        payload.push(segment.clone());
        let unused = DecodeError::UnusedSegments { segments: 1 };
        assert_eq!(decode_reply(&body, payload), Err(unused));
    }
    let empty = vec![(Bytes::new(), 0)];
    let fetched = encode_reply(&Reply::Access(vec![Answer::Fetched(
        Carried::Whole(copy()),
    )]))
    .body;
    assert_eq!(
        decode_reply(&fetched, empty),
        Err(DecodeError::EmptySegment)
    );
}

fn copy() -> Element {
    let payload = Bytes::from_static(b"abc");
    Element {
        form: Form::Copy,
        deleted: false,
        length: 3,
        metadata: Bytes::new(),
        checksum: None,
        payload,
    }
}

/// Sets each of these bits of one byte in turn; the flags of `what` must be refused each time.
fn refuses_flags(encoded: &Encoded, at: usize, bits: Range<u32>, expected: &str) {
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
        assert_eq!(error.refusal(), Refusal::Unknown);
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
            "held" | "held-element" => refuses_flags(&encode_reply(&reply), 5, 1..8, "answer"),
            "fetched" | "evicted" | "stored" | "refused" => {
                refuses_flags(&encode_reply(&reply), 5, 0..8, "answer");
            }
            "listed" => refuses_flags(&encode_reply(&reply), 4, 2..8, "entry of a listing"),
            "cells" => refuses_flags(&encode_reply(&reply), 4, 1..8, "cell"),
            _ => {}
        }
    }
    for note in examples::notes() {
        refuses_flags(&encode_note(&note), 1, 0..8, "note");
    }
    let access = 2 + 32 + 2;
    refuses_flags(
        &encode_request(&example("query-tags")),
        access + 1,
        2..8,
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
        assert_eq!(error.refusal(), Refusal::Unknown);
    };
    for kind in [0, 99, 255] {
        let body = Bytes::from(vec![kind, 0]);
        unknown(decode_request(&body, Vec::new()).unwrap_err());
        unknown(decode_reply(&body, Vec::new()).unwrap_err());
        unknown(decode_note(&body, Vec::new()).unwrap_err());
    }
    let mut body = encode_request(&example("query-tags")).body.to_vec();
    body[36] = 9;
    unknown(decode_request(&body.into(), Vec::new()).unwrap_err());
    let refused = Reply::Access(vec![Answer::Refused(Refusal::Full)]);
    let mut body = encode_reply(&refused).body.to_vec();
    body[6] = 200;
    unknown(decode_reply(&body.into(), Vec::new()).unwrap_err());
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
    let error = decode_request(&body.into(), Vec::new()).unwrap_err();
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
    let Encoded { body, payload } = encode_request(&Request::Configured {
        configuration,
        descriptor: None,
        pointer: None,
        body: Body::Access(vec![(Name::user("k").unwrap(), put)]),
    });
    // Behind the request, the access and a name of two bytes: flags u8, form, length of the metadata u16, length u64.
    let element = 36 + 28 + 2;
    let with = |at: usize, bytes: &[u8], payload: &[(Bytes, u32)]| {
        let mut body = body.to_vec();
        body[element + at..element + at + bytes.len()].copy_from_slice(bytes);
        decode_request(&body.into(), payload.to_vec()).map(|_| ())
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
        let held = Held {
            stored: vec![(tag(1), Form::Copy), (tag(2), Form::Copy)],
            ..Held::default()
        };
        let mut body = encode_reply(&Reply::Access(vec![Answer::Held(held)]))
            .body
            .to_vec();
        for (index, number) in numbers.into_iter().enumerate() {
            let at = 4 + 2 + 48 + 4 + 27 * index;
            body[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        decode_reply(&body.into(), Vec::new()).map(|_| ())
    };
    assert_eq!(versions([1, 2]), Ok(()));
    assert_eq!(versions([2, 2]), Err(DecodeError::VersionsOutOfOrder));
    assert_eq!(versions([3, 2]), Err(DecodeError::VersionsOutOfOrder));
}

#[test]
fn a_listing_that_is_too_long_for_a_frame_is_cut() {
    let entry = |number: usize| ListEntry {
        key: format!("{number:01024}"),
        tag: Tag::INITIAL,
        length: 1,
        deleted: false,
        damaged: false,
    };
    let entries: Vec<_> = (0..limits::PAGE_ENTRIES).map(entry).collect();
    let whole = Listed {
        entries: entries.clone(),
        truncated: false,
    };
    let encoded = encode_reply(&Reply::Listed(whole));
    assert!(encoded.body.len() <= frame::MAX_BODY_BYTES as usize);
    let Ok(Reply::Listed(cut)) = decode_reply(&encoded.body, Vec::new()) else {
        panic!("a listing comes back as one")
    };
    let room = frame::MAX_BODY_BYTES as usize - encoded.body.len();
    assert!(room < 35 + 1024, "no more is cut than has to be");
    assert!(cut.truncated && entries.starts_with(&cut.entries));

    let summary = |number: u8| CellSummary {
        cell: Bytes::from(vec![number; limits::CELL_NAME_BYTES]),
        value: Bytes::from(vec![number; limits::CELL_BYTES]),
        decided: true,
    };
    let cells: Vec<_> = (0..100).map(summary).collect();
    let page = Reply::Cells {
        cells: cells.clone(),
        truncated: false,
    };
    let encoded = encode_reply(&page);
    assert!(encoded.body.len() <= frame::MAX_BODY_BYTES as usize);
    match decode_reply(&encoded.body, Vec::new()) {
        Ok(Reply::Cells {
            cells: cut,
            truncated: true,
        }) => {
            assert!(cut.len() >= 60 && cells.starts_with(&cut));
        }
        other => panic!("not a page that was cut: {other:?}"),
    }
}

#[test]
fn no_payload_is_copied_and_a_body_is_one_allocation() {
    let payload = Bytes::from(vec![7; 100_000]);
    let element = Element {
        length: 100_000,
        payload: payload.clone(),
        metadata: Bytes::from_static(b"\x01\x00\x01\x00\x00\x00x"),
        ..copy()
    };
    let name = Name::user("some key").unwrap();
    let tag = Tag::INITIAL;
    let put = Access::Put {
        tag,
        element,
        write_back: false,
    };
    let Request::Configured { configuration, .. } = example("put") else {
        unreachable!("puts are of a configuration")
    };
    let request = Request::Configured {
        configuration,
        descriptor: None,
        pointer: None,
        body: Body::Access(vec![(name, put)]),
    };
    let buffer = request.to_vec();
    assert_eq!(buffer.capacity(), buffer.len());

    let Encoded {
        body,
        payload: segments,
    } = encode_request(&request);
    assert_eq!(
        segments[0].1,
        crc32c(&payload),
        "computed where it was not known"
    );
    assert_eq!(segments[0].0.as_ptr(), payload.as_ptr());
    let Ok(Request::Configured {
        body: Body::Access(accesses),
        ..
    }) = decode_request(&body, segments)
    else {
        panic!("a put comes back as one")
    };
    let [(name, Access::Put { element, .. })] = accesses.as_slice() else {
        panic!("one put was sent")
    };
    assert_eq!(element.payload.as_ptr(), payload.as_ptr());
    assert_eq!(element.checksum, Some(crc32c(&payload)));
    let within = |part: &Bytes| body.as_ptr_range().contains(&part.as_ptr());
    assert!(within(name.as_bytes()) && within(&element.metadata));
}

#[test]
fn what_a_status_and_a_server_may_say_later_is_skipped_unless_it_must_be_understood() {
    let mut replies = examples::replies().into_iter();
    let status = replies.find(|reply| reply_name(reply) == "status").unwrap();
    let body = encode_reply(&status).body;
    let with = |body: &Bytes, kind| {
        let mut longer = BytesMut::from(&body[..]);
        tlv::put_field(&mut longer, kind, b"new");
        longer.freeze()
    };
    assert_eq!(decode_reply(&with(&body, 99), Vec::new()), Ok(status));
    let kind = tlv::MUST_UNDERSTAND | 99;
    let error = decode_reply(&with(&body, kind), Vec::new()).unwrap_err();
    assert_eq!(error, DecodeError::Fields(tlv::TlvError::Unknown { kind }));
    // An older server says less.
    let less = decode_reply(&body.slice(..2), Vec::new());
    assert_eq!(
        less,
        Ok(Reply::Status(areo_core::message::ServerStatus::default()))
    );

    let register = example("register");
    let body = encode_request(&register).body;
    assert_eq!(decode_request(&with(&body, 99), Vec::new()), Ok(register));
    assert_eq!(
        decode_request(&with(&body, kind), Vec::new())
            .unwrap_err()
            .refusal(),
        Refusal::Unknown
    );
}

#[test]
#[should_panic(expected = "elements are read from the store")]
fn a_handle_never_leaves_the_server() {
    let (handle, payload) = (Handle(1), true);
    let stored = Carried::Stored { handle, payload };
    encode_reply(&Reply::Access(vec![Answer::Fetched(stored)]));
}

#[test]
fn typical_bodies_are_small() {
    let name = |key: &str| Name::user(key).unwrap();
    let Request::Configured { configuration, .. } = example("put") else {
        unreachable!("puts are of a configuration")
    };
    let of = |access| {
        let body = Body::Access(vec![(name("0123456789"), access)]);
        let descriptor = None;
        let request = Request::Configured {
            configuration,
            descriptor,
            pointer: None,
            body,
        };
        encode_request(&request).body.len()
    };
    let (tag, have) = (Tag::INITIAL, Tag::INITIAL);
    assert_eq!(
        of(Access::Query {
            want: Want::Tags,
            have
        }),
        75
    );
    assert_eq!(
        of(Access::Put {
            tag,
            element: copy(),
            write_back: false
        }),
        89
    );
    let answered = |answer| encode_reply(&Reply::Access(vec![answer])).body.len();
    let mut held = Held {
        stored: vec![(tag, Form::Copy)],
        ..Held::default()
    };
    assert_eq!(answered(Answer::Held(held.clone())), 85);
    held.element = Some((tag, Carried::Whole(copy())));
    assert_eq!(answered(Answer::Held(held)), 123);
    assert_eq!(answered(Answer::Stored), 6);
}
