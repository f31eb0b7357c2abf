use super::*;

fn frame(flags: u8, stream: i16, code: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x84, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.push(code);
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn reply(flags: u8, code: u8, body: &[u8]) -> Result<Reply, String> {
    let mut bytes = BytesMut::from(&frame(flags, 1, code, body)[..]);
    take(&mut bytes).unwrap().unwrap().reply()
}

#[test]
fn requests_are_as_the_specification_has_them() {
    let written = |request: Request<'_>| {
        let mut out = BytesMut::from(&b"before"[..]);
        request.write(0x0102, &mut out);
        out[6..].to_vec()
    };
    assert_eq!(
        written(Request::Startup),
        b"\x04\0\x01\x02\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0"
    );
    assert_eq!(
        written(Request::Query("SELECT")),
        b"\x04\0\x01\x02\x07\0\0\0\x0d\0\0\0\x06SELECT\0\x01\0"
    );
    assert_eq!(
        written(Request::Prepare("SELECT")),
        b"\x04\0\x01\x02\x09\0\0\0\x0a\0\0\0\x06SELECT"
    );
    let execute = Request::Execute {
        id: b"id",
        consistency: Consistency::Quorum,
        values: &[b"abc", b""],
    };
    assert_eq!(
        written(execute),
        b"\x04\0\x01\x02\x0a\0\0\0\x14\0\x02id\0\x04\x03\0\x02\0\0\0\x03abc\0\0\0\0"
    );
}

#[test]
fn answers_are_taken_when_they_are_whole() {
    // Two rows of one value without metadata; a trace and a warning before that something is done; an error.
    let rows = b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x02\0\0\0\x03abc\xff\xff\xff\xff";
    let warned = [&[7; 16], &b"\0\x01\0\x04slow\0\0\0\x01"[..]].concat();
    let whole = [
        frame(0, 7, 0x08, rows),
        frame(0x0a, -1, 0x08, &warned),
        frame(0, 0x7fff, 0x00, b"\0\0\x11\0\0\x04late\0\x04\0\0"),
    ];
    let expected = [
        (7, Reply::Rows(vec![vec![Some("abc".into())], vec![None]])),
        (-1, Reply::Done),
        (
            0x7fff,
            Reply::Refused {
                code: 0x1100,
                message: "late".into(),
            },
        ),
    ];
    let whole = whole.concat();
    for step in 1..whole.len() {
        let (mut bytes, mut found) = (BytesMut::new(), Vec::new());
        for piece in whole.chunks(step) {
            bytes.extend_from_slice(piece);
            while let Some(frame) = take(&mut bytes).unwrap() {
                found.push((frame.stream, frame.reply().unwrap()));
            }
        }
        assert_eq!(found, expected, "in steps of {step}");
    }
}

#[test]
fn rows_are_found_behind_the_types_of_their_columns() {
    let row = b"\0\0\0\x01\0\0\0\x01\x01\0\0\0\x02ab";
    // A boolean and a map of words to lists of numbers, of one table, and each of its own.
    let of_all =
        b"\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\x01k\0\x01t\0\x01a\0\x04\0\x01m\0\x21\0\x0d\0\x20\0\x09";
    let of_each = b"\0\0\0\x02\0\0\0\0\0\0\0\x02\0\x01k\0\x01t\0\x01a\0\x04\0\x01k\0\x01t\0\x01m\0\0\0\x03own";
    let expected = Reply::Rows(vec![vec![Some("\x01".into()), Some("ab".into())]]);
    for metadata in [&of_all[..], of_each] {
        let found = reply(0, 0x08, &[metadata, row].concat());
        assert_eq!(found.as_ref(), Ok(&expected));
    }
    assert_eq!(reply(0, 0x02, b""), Ok(Reply::Ready));
    let class = Reply::Authenticate("Class".into());
    assert_eq!(reply(0, 0x03, b"\0\x05Class"), Ok(class));
    let prepared = reply(0, 0x08, b"\0\0\0\x04\0\x02id and what it takes");
    assert_eq!(prepared, Ok(Reply::Prepared("id".into())));
}

#[test]
fn every_answer_that_is_cut_off_or_unknown_is_refused() {
    let whole =
        b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01a\0\x20\0\x0d\0\0\0\x01\0\0\0\x02ab";
    assert!(reply(0, 0x08, whole).is_ok());
    for length in 0..whole.len() {
        let cut = reply(0, 0x08, &whole[..length]);
        assert!(cut.is_err(), "{length}: {cut:?}");
    }
    let lists = [0, 0x20].repeat(1_000);
    let endless = [&whole[..21], &lists[..]].concat();
    for (code, body) in [
        (0x77, &b""[..]),
        (0x08, b"\0\0\0\x09"),
        // More pages, no columns and rows without end, lists of lists without end.
        (0x08, b"\0\0\0\x02\0\0\0\x02\0\0\0\x01"),
        (0x08, b"\0\0\0\x02\0\0\0\x04\0\0\0\0\xff\xff\xff\xff"),
        (0x08, &endless),
    ] {
        let error = reply(0, code, body).unwrap_err();
        assert!(error.contains("cannot be understood"), "{error}");
    }
}

#[test]
fn what_does_not_speak_this_protocol_is_named() {
    let refused = |bytes: &[u8]| take(&mut BytesMut::from(bytes)).unwrap_err();
    assert!(refused(b"HTTP/1.1 400").contains("does not speak Cassandra's protocol"));
    assert!(refused(b"\x83\0\0\0\0").contains("version 3"));
    assert!(refused(b"\x84\0\0\0\x08\x7f\0\0\0").contains("too long"));
}

#[test]
fn words_of_a_map_are_read() {
    let bytes = b"\0\0\0\x02\0\0\0\x01a\0\0\0\x01b\0\0\0\0\0\0\0\x03cde";
    let found = map(Bytes::from_static(bytes)).unwrap();
    let expected = [("a", "b"), ("", "cde")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
    assert_eq!(map(Bytes::from_static(&bytes[..bytes.len() - 1])), None);
}
