use super::*;
use crate::checksum::crc32c;
use crate::fuzzing;
use crate::testing::golden;
use crate::testing::{examples, note_name, reply_name, request_name, strategies};
use areo_core::element::{Element, Form, Handle, ReplyElement};
use areo_core::limits;
use areo_core::message::{
    Access, Answer, Body, CellSummary, HeldVersions, ListEntry, ListPage, Refusal, Want,
};
use areo_core::object::Name;
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use areo_core::tlv;
use bytes::BytesMut;
use proptest::prelude::*;

mod refused;

fn request_again(request: &Request) -> Result<Request, DecodeError> {
    let EncodedMessage { body, payload } = encode_request(request);
    decode_request(&body, payload)
}

fn reply_again(reply: &Reply) -> Result<Reply, DecodeError> {
    let EncodedMessage { body, payload } = encode_reply(reply);
    decode_reply(&body, payload)
}

fn note_again(note: &Note) -> Result<Note, DecodeError> {
    let EncodedMessage { body, payload } = encode_note(note);
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
type Input = (EncodedMessage, fn(&[u8]) -> bool);

/// The encoding of each example, with its fuzz target.
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

fn lengths(encoded: &EncodedMessage) -> Vec<u16> {
    let segments = encoded.payload.iter();
    segments.map(|(bytes, _)| bytes.len() as u16).collect()
}

#[test]
fn released_bytes_never_change() {
    let requests = examples::requests();
    let encoded = |request| (request_name(request), encode_request(request));
    golden::check(
        "request-v2.txt",
        &requests.iter().map(encoded).collect::<Vec<_>>(),
    );
    let replies = examples::replies();
    let encoded = |reply| (reply_name(reply), encode_reply(reply));
    golden::check(
        "reply-v2.txt",
        &replies.iter().map(encoded).collect::<Vec<_>>(),
    );
    let notes = examples::notes();
    let encoded = |note| (note_name(note), encode_note(note));
    golden::check(
        "note-v2.txt",
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
            // These bytes behind a kind that exists.
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
fn a_listing_that_is_too_long_for_a_frame_is_cut() {
    let entry = |number: usize| ListEntry {
        absent: false,
        key: format!("{number:01024}"),
        tag: Tag::INITIAL,
        length: 1,
        etag: None,
        written_at_ms: None,
        age_s: 0,
        deleted: false,
        damaged: false,
    };
    let entries: Vec<_> = (0..limits::PAGE_ENTRIES).map(entry).collect();
    let whole = ListPage {
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
fn no_payload_is_copied_and_no_body_is_kept() {
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
        successors: Successors::default(),
        body: Body::Access(vec![(name, put)]),
    };
    let buffer = request.to_vec();
    assert_eq!(buffer.capacity(), buffer.len());

    let EncodedMessage {
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
    assert!(!within(name.as_bytes()) && !within(&element.metadata));
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
    assert_eq!(less, Ok(Reply::Status(Box::default())));

    let register = example("register");
    let body = encode_request(&register).body;
    assert_eq!(decode_request(&with(&body, 99), Vec::new()), Ok(register));
    assert_eq!(
        decode_request(&with(&body, kind), Vec::new())
            .unwrap_err()
            .refusal(),
        Refusal::UnknownRequest
    );
}

#[test]
#[should_panic(expected = "elements are read from the store")]
fn a_handle_never_leaves_the_server() {
    let (handle, payload) = (Handle(1), true);
    let stored = ReplyElement::Stored { handle, payload };
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
            successors: Successors::default(),
            body,
        };
        encode_request(&request).body.len()
    };
    let (tag, have) = (Tag::INITIAL, Tag::INITIAL);
    assert_eq!(of(Access::query(Want::Tags, have)), 75);
    assert_eq!(
        of(Access::Put {
            tag,
            element: copy(),
            write_back: false
        }),
        89
    );
    let answered = |answer| encode_reply(&Reply::Access(vec![answer])).body.len();
    let mut held = HeldVersions {
        stored: vec![(tag, Form::Copy)],
        ..HeldVersions::default()
    };
    assert_eq!(answered(Answer::Held(held.clone())), 86);
    held.element = Some((tag, ReplyElement::Whole(copy())));
    assert_eq!(answered(Answer::Held(held)), 124);
    assert_eq!(answered(Answer::Stored), 6);
}
