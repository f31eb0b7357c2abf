//! Bodies of each form: Amazon's examples, own ones cut anywhere, and ones that are wrong in one thing each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use base64::Engine;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use md5::{Digest, Md5};
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

use super::checksum::{Algorithm, Checksum, Expected};
use super::*;
use crate::auth::vectors::{self, DAY, NOW_SECONDS, REGION, SECRET};
use crate::auth::{ChunkChain, Claim, derive_signing_key};

/// A source of frames.
struct Frames(VecDeque<Bytes>);

impl Frames {
    /// `bytes` in pieces of these lengths, again and again.
    fn cut(bytes: &[u8], lengths: &[usize]) -> Frames {
        let (mut rest, mut frames) = (bytes, VecDeque::new());
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, others) = rest.split_at((*length).min(rest.len()));
            frames.push_back(Bytes::copy_from_slice(piece));
            rest = others;
        }
        Frames(frames)
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The bytes that were read before the end or the error, and the checksums or the error.
fn read(plan: &BodyPlan, body: &[u8], lengths: &[usize]) -> (Vec<u8>, Result<Sums, S3Error>) {
    let mut reader = match BodyReader::new(Frames::cut(body, lengths), plan.clone()) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut out = Vec::new();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.build().unwrap();
    let mut buffer = [0; 1000];
    loop {
        match runtime.block_on(reader.read(&mut buffer)) {
            Ok(0) => return (out, Ok(reader.sums().unwrap().clone())),
            Ok(length) => out.extend_from_slice(&buffer[..length]),
            Err(error) => {
                let again = runtime.block_on(reader.read(&mut buffer)).unwrap_err();
                assert_eq!(S3Error::of_io(&again), S3Error::of_io(&error), "it stays");
                assert_eq!(reader.sums(), None);
                assert_eq!(reader.error(), S3Error::of_io(&error));
                return (out, Err(S3Error::of_io(&error).unwrap().clone()));
            }
        }
    }
}

fn refused(plan: &BodyPlan, body: &[u8]) -> Code {
    let (bytes, outcome) = read(plan, body, &[1 << 20]);
    assert!(
        (bytes.len() as u64) < plan.length.max(1),
        "the last byte is kept back"
    );
    outcome.expect_err("it is wrong").code
}

/// The chain that goes on from a head of Amazon's examples.
fn chain(parts: &http::request::Parts) -> ChunkChain {
    let claim = Claim::parse(parts).unwrap().unwrap();
    let key = derive_signing_key(SECRET, DAY, REGION, "s3");
    claim.verify(parts, &[key], NOW_SECONDS).unwrap().chain
}

/// The forms of framing.
const CHUNKED: [Payload; 3] = [
    Payload::UnsignedChunksTrailer,
    Payload::SignedChunks,
    Payload::SignedChunksTrailer,
];

fn plan(payload: Payload, content: &[u8]) -> BodyPlan {
    let mut plan = BodyPlan::new(payload, content.len() as u64);
    plan.chain = payload
        .has_signed_chunks()
        .then(|| chain(&vectors::chunked()));
    plan.expected.trailer = payload.has_trailer().then_some(Algorithm::Crc32c);
    plan
}

/// A body with `content` in chunks of these lengths, again and again.
fn framed(payload: Payload, content: &[u8], lengths: &[usize]) -> Vec<u8> {
    let mut chain = plan(payload, content).chain;
    let (mut rest, mut lengths, mut out) = (content, lengths.iter().cycle(), Vec::new());
    loop {
        let length = rest.len().min(*lengths.next().unwrap());
        let (chunk, others) = rest.split_at(length);
        out.extend(format!("{length:x}").bytes());
        if let Some(chain) = &mut chain {
            out.extend(format!(";chunk-signature={}", chain.sign_chunk(chunk)).bytes());
        }
        out.extend(b"\r\n");
        if chunk.is_empty() {
            break;
        }
        out.extend([chunk, b"\r\n"].concat());
        rest = others;
    }
    if payload.has_trailer() {
        let text = Algorithm::Crc32c.checksum(content).text();
        out.extend(format!("x-amz-checksum-crc32c:{text}\r\n").bytes());
        if let Some(chain) = &mut chain {
            let line = format!("x-amz-checksum-crc32c:{text}\n");
            let signature = chain.sign_trailer(line.as_bytes());
            out.extend(format!("x-amz-trailer-signature:{signature}\r\n").bytes());
        }
    }
    out.extend(b"\r\n");
    out
}

fn sums(content: &[u8], algorithm: Option<Algorithm>) -> Sums {
    Sums {
        length: content.len() as u64,
        md5: Md5::digest(content).into(),
        checksum: algorithm.map(|algorithm| algorithm.checksum(content)),
    }
}

#[test]
fn the_examples_of_amazon_are_read() {
    let content = vec![b'a'; 66560];
    let mut plan = BodyPlan::new(Payload::SignedChunks, 66560);
    plan.chain = Some(chain(&vectors::chunked()));
    for lengths in [&[1][..], &[7, 1000], &[1 << 20]] {
        let (bytes, outcome) = read(&plan, &vectors::chunked_body(), lengths);
        assert!(bytes == content);
        assert_eq!(outcome, Ok(sums(&content, None)));
    }
    plan.payload = Payload::SignedChunksTrailer;
    plan.chain = Some(chain(&vectors::with_trailer()));
    plan.expected.trailer = Some(Algorithm::Crc32c);
    for lengths in [&[1][..], &[7, 1000], &[1 << 20]] {
        let (bytes, outcome) = read(&plan, &vectors::trailer_body(), lengths);
        assert!(bytes == content);
        assert_eq!(outcome, Ok(sums(&content, Some(Algorithm::Crc32c))));
    }
}

#[test]
fn every_flipped_bit_of_a_framed_body_is_refused() {
    let content = b"some bytes of an object";
    for payload in CHUNKED {
        let body = framed(payload, content, &[9]);
        let plan = plan(payload, content);
        assert!(read(&plan, &body, &[64]).1.is_ok());
        for bit in 0..body.len() * 8 {
            let mut flipped = body.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (bytes, outcome) = read(&plan, &flipped, &[64]);
            // Names of headers have two sizes of letters.
            let is_letter_size = bit % 8 == 5 && body[bit / 8].is_ascii_alphabetic();
            let is_same = bytes == content && is_letter_size;
            let shown = flipped.escape_ascii();
            assert!(outcome.is_err() || is_same, "{payload:?}: {shown}");
            assert!(outcome.is_ok() || bytes.len() < content.len(), "{shown}");
            if payload.has_signed_chunks() {
                assert!(content.starts_with(&bytes), "believed: {shown}");
            }
        }
    }
}

#[test]
fn every_cut_of_a_body_is_refused() {
    let content = b"some bytes of an object";
    for payload in CHUNKED {
        let body = framed(payload, content, &[9]);
        let plan = plan(payload, content);
        let end = body.len() - b"\r\n\r\n".len();
        for length in 0..body.len() {
            let (bytes, outcome) = read(&plan, &body[..length], &[64]);
            let is_whole = length >= end && payload.has_trailer();
            let is_whole = is_whole || (payload == Payload::SignedChunks && length >= end + 2);
            assert_eq!(
                outcome.is_ok(),
                is_whole,
                "{payload:?}: {length} of {}",
                body.len()
            );
            assert_eq!(bytes.len() == content.len(), is_whole);
        }
    }
    let plan = BodyPlan::new(Payload::Unsigned, 5);
    for body in [&b""[..], b"1234", b"123456"] {
        assert_eq!(refused(&plan, body), Code::IncompleteBody);
    }
}

#[test]
fn ends_of_other_clients_are_read() {
    let content = b"some bytes";
    for payload in CHUNKED {
        let body = framed(payload, content, &[4]);
        let text = String::from_utf8(body).unwrap();
        let plan = plan(payload, content);
        let trailer = "x-amz-checksum-crc32c";
        let trimmed = text.trim_end();
        let ends = [
            text.clone() + "\r\n",
            // Empty lines before the signature, and lines that LF alone ends.
            text.replace(trailer, &format!("\r\n{trailer}")),
            text.replace("\r\nx-amz-trailer", "\n\r\nx-amz-trailer"),
            text.replace(&format!("{trailer}:"), &format!("{trailer}: ")),
            format!("{trimmed}\r\n"),
            match payload.has_trailer() {
                true => format!("{trimmed}\n\r\n\r\n"),
                false => text.clone(),
            },
        ];
        for body in ends {
            let (bytes, outcome) = read(&plan, body.as_bytes(), &[5]);
            assert!(outcome.is_ok(), "{body:?}: {outcome:?}");
            assert_eq!(bytes, content);
        }
    }
}

/// A body of `abc` in one chunk without signatures, up to its end.
fn ended(end: &str) -> String {
    format!("3\r\nabc\r\n0\r\n{end}")
}

fn trailer() -> String {
    let text = Algorithm::Crc32c.checksum(b"abc").text();
    format!("x-amz-checksum-crc32c:{text}\r\n")
}

#[test]
fn lines_of_chunks_that_are_refused() {
    let plan = plan(Payload::UnsignedChunksTrailer, b"abc");
    let good = ended(&(trailer() + "\r\n"));
    assert!(read(&plan, good.as_bytes(), &[99]).1.is_ok());
    let (first, long) = ("3\r\n", "0".repeat(5000));
    for (from, to, code) in [
        (
            "3\r\nabc\r\n",
            "3\r\nabc\r\n1\r\nd\r\n",
            Code::IncompleteBody,
        ),
        ("3\r\nabc\r\n", "2\r\nab\r\n", Code::IncompleteBody),
        (first, "4\r\n", Code::IncompleteBody),
        (first, "ffffffffffffffff\r\n", Code::IncompleteBody),
        (first, "2\r\n", Code::InvalidRequest),
        (first, "\r\n", Code::InvalidRequest),
        (first, "+3\r\n", Code::InvalidRequest),
        (first, " 3\r\n", Code::InvalidRequest),
        (first, "3\n", Code::InvalidRequest),
        (first, "0x3\r\n", Code::InvalidRequest),
        (first, "10000000000000003\r\n", Code::InvalidRequest),
        (first, "3;chunk-signature=0\r\n", Code::InvalidRequest),
        (first, long.as_str(), Code::InvalidRequest),
    ] {
        let body = good.replacen(from, to, 1);
        assert_eq!(refused(&plan, body.as_bytes()), code, "{body:?}");
    }
    for body in ["", "3\r\nabc\r\n"] {
        assert_eq!(refused(&plan, body.as_bytes()), Code::IncompleteBody);
    }
}

#[test]
fn ends_that_are_refused() {
    let plan = plan(Payload::UnsignedChunksTrailer, b"abc");
    let good = trailer();
    for (end, code) in [
        (String::new(), Code::InvalidRequest),
        ("\r\n".to_owned(), Code::InvalidRequest),
        (
            "x-amz-checksum-crc32:AAAAAA==\r\n\r\n".to_owned(),
            Code::InvalidRequest,
        ),
        (
            "x-amz-checksum-crc32c:AAAAAA==\r\n\r\n".to_owned(),
            Code::BadDigest,
        ),
        (
            "x-amz-checksum-crc32c:AAAAAA\r\n\r\n".to_owned(),
            Code::InvalidDigest,
        ),
        (
            "x-amz-checksum-crc32c\r\n\r\n".to_owned(),
            Code::InvalidRequest,
        ),
        ("\u{ff}:a\r\n\r\n".to_owned(), Code::InvalidRequest),
        (good.repeat(2), Code::InvalidRequest),
        (
            good.clone() + "x-amz-trailer-signature:0\r\n",
            Code::InvalidRequest,
        ),
        (good.clone() + "\r\nmore", Code::InvalidRequest),
        (good.clone() + &"x".repeat(5000), Code::InvalidRequest),
    ] {
        let body = ended(&end);
        assert_eq!(refused(&plan, body.as_bytes()), code, "{body:?}");
    }
}

#[test]
fn signed_framings_that_are_refused() {
    let field = ";chunk-signature=";
    for payload in [Payload::SignedChunks, Payload::SignedChunksTrailer] {
        let good = String::from_utf8(framed(payload, b"abc", &[3])).unwrap();
        let plan = plan(payload, b"abc");
        let end = "\r\nx-amz-trailer-signature:0\r\n\r\n";
        for (from, to, code) in [
            (field, ";chunk_signature=", Code::SignatureDoesNotMatch),
            (field, ";chunk-signature=0", Code::SignatureDoesNotMatch),
            ("abc\r\n", "abd\r\n", Code::SignatureDoesNotMatch),
            ("abc\r\n", "abcd\r\n", Code::InvalidRequest),
            ("\r\n\r\n", end, Code::InvalidRequest),
            ("\r\n\r\n", "\r\na:b\r\n\r\n", Code::InvalidRequest),
        ] {
            let body = good.replacen(from, to, 1);
            assert_ne!(body, good);
            let refused = refused(&plan, body.as_bytes());
            assert_eq!(refused, code, "{payload:?}: {body:?}");
        }
    }
    let body = framed(Payload::SignedChunksTrailer, b"abc", &[3]);
    let body = String::from_utf8(body).unwrap();
    let body = body.split("x-amz-trailer-signature").next().unwrap();
    let plan = plan(Payload::SignedChunksTrailer, b"abc");
    assert_eq!(refused(&plan, body.as_bytes()), Code::SignatureDoesNotMatch);
}

#[test]
fn chunks_in_another_order_are_refused() {
    let content = b"aaaabbbb";
    let body = framed(Payload::SignedChunks, content, &[4]);
    let plan = plan(Payload::SignedChunks, content);
    let first = body.windows(4).position(|bytes| bytes == b"aaaa").unwrap() + 6;
    let second = body.windows(4).position(|bytes| bytes == b"bbbb").unwrap() + 6;
    let swapped = [&body[first..second], &body[..first], &body[second..]].concat();
    assert_eq!(swapped.len(), body.len());
    assert_eq!(refused(&plan, &swapped), Code::SignatureDoesNotMatch);
    let repeated = [&body[..first], &body[..first], &body[second..]].concat();
    assert_eq!(refused(&plan, &repeated), Code::SignatureDoesNotMatch);
}

#[test]
fn a_signed_chunk_is_bounded() {
    let most = MAX_SIGNED_CHUNK_BYTES;
    let signature = "0".repeat(64);
    for (length, code) in [
        (most, Code::IncompleteBody),
        (most + 1, Code::InvalidRequest),
    ] {
        let mut plan = BodyPlan::new(Payload::SignedChunks, 1 << 40);
        plan.chain = Some(chain(&vectors::chunked()));
        let body = format!("{length:x};chunk-signature={signature}\r\nbytes");
        assert_eq!(refused(&plan, body.as_bytes()), code, "{length}");
    }
    // The longest one, in pieces: its bytes are handed on at once, behind its signature.
    let content = vec![7; most];
    let body = framed(Payload::SignedChunks, &content, &[most]);
    let plan = plan(Payload::SignedChunks, &content);
    let mut decoder = ChunkDecoder::new(plan.payload, plan.length, plan.chain, None).unwrap();
    let (mut pieces, mut largest) = (0, 0);
    for piece in body.chunks(100_000) {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(bytes) = decoder.decode(&mut input).unwrap() {
            pieces += bytes.len();
        }
        largest = largest.max(decoder.buffered_bytes());
    }
    assert_eq!(pieces, most);
    assert!(largest <= most && largest > most - 200_000, "{largest}");
    assert_eq!(decoder.finish(), Ok(None));
}

#[test]
fn checksums_of_a_body_are_compared() {
    let content = b"Welcome to Amazon S3.";
    let hash = Algorithm::Sha256.checksum(content).bytes;
    let hash: [u8; 32] = hash.try_into().unwrap();
    let wrong = b"Welcome to Amazon S4.";
    let hashed = BodyPlan::new(Payload::Hashed(hash), 21);
    assert_eq!(
        read(&hashed, content, &[4]),
        (content.to_vec(), Ok(sums(content, None)))
    );
    assert_eq!(refused(&hashed, wrong), Code::XAmzContentSHA256Mismatch);
    let mut md5 = BodyPlan::new(Payload::Unsigned, 21);
    md5.expected.md5 = Some(Md5::digest(content).into());
    md5.computes_md5 = false;
    assert!(read(&md5, content, &[4]).1.is_ok());
    assert_eq!(refused(&md5, wrong), Code::BadDigest);
    for algorithm in Algorithm::ALL {
        let mut plan = BodyPlan::new(Payload::Unsigned, 21);
        plan.expected.checksum = Some(algorithm.checksum(content));
        let outcome = read(&plan, content, &[4]).1;
        assert_eq!(outcome, Ok(sums(content, Some(algorithm))));
        assert_eq!(refused(&plan, wrong), Code::BadDigest);
        plan.expected = Expected::default();
        plan.algorithm = Some(algorithm);
        plan.computes_md5 = false;
        let computed = read(&plan, wrong, &[4]).1.unwrap();
        assert_eq!(computed.checksum, Some(algorithm.checksum(wrong)));
        assert_eq!(computed.md5, [0; 16]);
    }
}

#[test]
fn a_plan_that_contradicts_itself_is_refused() {
    let good = || plan(Payload::SignedChunksTrailer, b"");
    let zero = |algorithm: Algorithm| Checksum {
        algorithm,
        bytes: vec![0; algorithm.length()],
    };
    let mut plans = [good(), good(), good(), good(), good()];
    plans[0].chain = None;
    plans[1].payload = Payload::SignedChunks;
    plans[2].payload = Payload::Unsigned;
    plans[3].algorithm = Some(Algorithm::Sha1);
    plans[4].expected.checksum = Some(zero(Algorithm::Crc32));
    for (number, plan) in plans.into_iter().enumerate() {
        let refused = BodyReader::new(Frames::cut(b"", &[1]), plan)
            .err()
            .unwrap()
            .code;
        let expected = match number {
            0 => Code::AccessDenied,
            _ => Code::InvalidRequest,
        };
        assert_eq!(refused, expected, "{number}");
    }
    assert!(BodyReader::new(Frames::cut(b"", &[1]), good()).is_ok());
}

#[test]
fn lengths_that_are_declared() {
    let of = |payload, pairs: &[(&'static str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        declared_length(&headers, payload).map_err(|error| error.code)
    };
    let both = [
        ("content-length", "9"),
        ("x-amz-decoded-content-length", "5"),
    ];
    assert_eq!(of(Payload::Unsigned, &both), Ok(9));
    for payload in CHUNKED {
        assert_eq!(of(payload, &both), Ok(5));
        assert_eq!(of(payload, &both[..1]), Err(Code::MissingContentLength));
    }
    assert_eq!(of(Payload::Unsigned, &[]), Err(Code::MissingContentLength));
    for text in ["", "-1", "+1", "1.0", "99999999999999999999"] {
        let refused = of(Payload::Unsigned, &[("content-length", text)]);
        assert_eq!(refused, Err(Code::InvalidArgument), "{text}");
    }
    let twice = [("content-length", "1"), ("content-length", "1")];
    assert_eq!(of(Payload::Unsigned, &twice), Err(Code::InvalidArgument));
}

#[tokio::test]
async fn a_document_is_read_whole() {
    let whole = async |length: u64, limit: usize, body: &[u8]| {
        let plan = BodyPlan::new(Payload::Unsigned, length);
        let reader = BodyReader::new(Frames::cut(body, &[3]), plan).unwrap();
        reader.read_whole(limit).await.map_err(|error| error.code)
    };
    assert_eq!(
        whole(10, 10, b"0123456789").await,
        Ok(Bytes::from("0123456789"))
    );
    assert_eq!(whole(0, 0, b"").await, Ok(Bytes::new()));
    assert_eq!(whole(10, 9, b"0123456789").await, Err(Code::EntityTooLarge));
    assert_eq!(whole(9, 10, b"0123456789").await, Err(Code::IncompleteBody));
}

/// A source that fails.
struct Failing(Option<Box<dyn std::error::Error + Send + Sync>>);

impl Body for Failing {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

#[tokio::test]
async fn errors_of_a_source_are_kept() {
    let late = S3Error::new(Code::RequestTimeout, "the body did not come in time");
    let errors: [(Box<dyn std::error::Error + Send + Sync>, Code); 3] = [
        (Box::new(late.clone()), Code::RequestTimeout),
        (Box::new(io::Error::other(late)), Code::RequestTimeout),
        ("reset".into(), Code::IncompleteBody),
    ];
    for (error, code) in errors {
        let plan = BodyPlan::new(Payload::Unsigned, 1);
        let reader = BodyReader::new(Failing(Some(error)), plan).unwrap();
        assert_eq!(reader.read_whole(10).await.unwrap_err().code, code);
    }
}

#[test]
fn base64_has_one_text_per_checksum() {
    let engine = &base64::engine::general_purpose::STANDARD;
    assert!(engine.decode("sOO8/R==").is_err(), "spare bits are zero");
}

proptest! {
    #[test]
    fn a_framed_body_is_read_however_it_is_cut(
        content in prop::collection::vec(any::<u8>(), 0..600),
        chunks in prop::collection::vec(1_usize..300, 1..5),
        frames in prop::collection::vec(1_usize..200, 1..9),
        form in 0_usize..3,
    ) {
        let payload = CHUNKED[form];
        let body = framed(payload, &content, &chunks);
        let (bytes, outcome) = read(&plan(payload, &content), &body, &frames);
        prop_assert_eq!(&bytes, &content);
        let algorithm = payload.has_trailer().then_some(Algorithm::Crc32c);
        prop_assert_eq!(outcome, Ok(sums(&content, algorithm)));
    }

    #[test]
    fn any_bytes_do_no_harm(
        body in prop::collection::vec(prop::sample::select(&b"0123;chunk-signature=\r\n:x"[..]), 0..200),
        length in 0_u64..20,
        form in 0_usize..3,
    ) {
        let mut plan = plan(CHUNKED[form], b"");
        plan.length = length;
        let (bytes, outcome) = read(&plan, &body, &[3]);
        prop_assert!(outcome.is_err() || bytes.len() as u64 == length);
    }
}
