//! Signatures of heads, and chunked bodies.

use bytes::Bytes;
use http::request::Parts;

use crate::auth::{Claim, Payload, SERVICE, SigningKey, derive_signing_key};
use crate::body::checksum::Algorithm;
use crate::body::{ChunkDecoder, MAX_SIGNED_CHUNK_BYTES};
use crate::wire::{Code, S3Error};

/// The clock of all targets, in seconds since 1970: that of Amazon's examples.
const NOW_SECONDS: u64 = 1_369_353_600;
/// The day of it.
const DAY: u32 = 20_130_524;
/// The region of all targets.
const REGION: &str = "us-east-1";
/// Maximum number of bytes that a decoder keeps: its line before a chunk, or its trailer, and no signed chunk that is
/// longer than the input.
const MAX_BUFFERED_BYTES: usize = 4 << 10;

/// The head of a request as text, with its signature as it is and computed anew: a refusal is one line; the right signature is taken, and only with
/// its key.
pub fn authorization(input: &[u8]) -> bool {
    let Some(parts) = head(input) else {
        return false;
    };
    let claim = match Claim::parse(&parts) {
        Ok(claim) => claim,
        Err(error) => {
            check_sentence(&error);
            return false;
        }
    };
    let Some(claim) = claim else {
        return false;
    };
    let key = |secret: &str| derive_signing_key(secret, claim.day(), claim.region(), SERVICE);
    let (right, wrong) = (key("right"), key("wrong"));
    let judged = |claim: &Claim, key: &SigningKey| {
        let verified = claim.verify(&parts, std::slice::from_ref(key), NOW_SECONDS);
        if let Err(error) = &verified {
            check_sentence(error);
        }
        verified
            .map(|verified| verified.key_id)
            .map_err(|error| error.code)
    };
    assert!(judged(&claim, &wrong).is_err());
    // A header that is signed and not there has no canonical form.
    let Ok(signed) = claim.signed_with(&parts, &right) else {
        return false;
    };
    assert!(judged(&signed, &wrong).is_err());
    match claim.check_time(NOW_SECONDS) {
        Ok(()) => assert_eq!(judged(&signed, &right), Ok(claim.key_id().to_owned())),
        Err(error) => assert_eq!(judged(&signed, &right), Err(error.code)),
    }
    true
}

/// A chunked body behind three bytes (form, length of the object, length of a piece): no more bytes are believed than were declared, few are kept, a
/// refusal is one line, and pieces are read as the whole is.
pub fn chunks(input: &[u8]) -> bool {
    let &[form, length, piece, ref body @ ..] = input else {
        return false;
    };
    let payload = FORMS[usize::from(form) % FORMS.len()];
    let (whole, outcome) = decode(payload, u64::from(length), body, body.len().max(1));
    let in_pieces = decode(payload, u64::from(length), body, usize::from(piece).max(1));
    // Chunks without signatures are believed piece by piece, so that an error may come later in the bytes.
    assert_eq!(in_pieces.1, outcome);
    assert!(in_pieces.0.starts_with(&whole) || whole.starts_with(&in_pieces.0));
    assert!(whole.len() <= usize::from(length));
    match outcome {
        Ok(()) => {
            assert!(whole == in_pieces.0 && whole.len() == usize::from(length));
            true
        }
        Err(_) => false,
    }
}

/// The forms of framing, by the first byte of an input.
const FORMS: [Payload; 3] = [
    Payload::UnsignedChunksTrailer,
    Payload::SignedChunks,
    Payload::SignedChunksTrailer,
];

/// Heads that are good.
pub fn good_heads() -> Vec<Vec<u8>> {
    let (scope, zeros) = (format!("a/{DAY}/{REGION}/s3/aws4_request"), "0".repeat(64));
    let by_header = format!(
        "PUT /bucket/a%20key?uploads\nhost: localhost:7480\nx-amz-date: 20130524T000000Z\nx-amz-content-sha256: UNSIGNED-PAYLOAD\n\
         authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={zeros}\n"
    );
    let by_query = format!(
        "GET /bucket/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={scope}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60\
         &X-Amz-SignedHeaders=host&X-Amz-Signature={zeros}\nhost: localhost\n"
    );
    vec![by_header.into_bytes(), by_query.into_bytes()]
}

/// Chunked bodies that are good, of each form.
pub fn good_chunks() -> Vec<Vec<u8>> {
    // Most of a body is content, so that most changes come to a chunk and not to its line.
    let content = b"some bytes of an object".repeat(10);
    let content = &content[..];
    let of_form = |number: usize| {
        let payload = FORMS[number];
        let mut chain = payload.has_signed_chunks().then(chain).flatten();
        let mut body = vec![number as u8, content.len() as u8, 7];
        let mut pieces: Vec<&[u8]> = content.chunks(99).collect();
        pieces.push(b"");
        for piece in pieces {
            body.extend(format!("{:x}", piece.len()).bytes());
            if let Some(chain) = &mut chain {
                let signature = chain.sign_chunk(piece);
                body.extend(format!(";chunk-signature={signature}").bytes());
            }
            body.extend([b"\r\n", piece].concat());
            body.extend(b"\r\n".iter().filter(|_| !piece.is_empty()));
        }
        if payload.has_trailer() {
            let text = Algorithm::Crc32.checksum(content).text();
            let line = format!("{}:{text}\n", Algorithm::Crc32.header());
            body.extend(line.bytes());
            if let Some(chain) = &mut chain {
                let signature = chain.sign_trailer(line.as_bytes());
                body.extend(format!("x-amz-trailer-signature:{signature}\r\n").bytes());
            }
        }
        [&body[..], b"\r\n"].concat()
    };
    (0..FORMS.len()).map(of_form).collect()
}

/// A head from lines: method and target, then headers.
fn head(input: &[u8]) -> Option<Parts> {
    let mut lines = std::str::from_utf8(input).ok()?.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut request = http::Request::builder().method(method).uri(target);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// The chain of signatures of all signed inputs.
fn chain() -> Option<crate::auth::ChunkChain> {
    let parts = head(&good_heads()[0])?;
    let key = derive_signing_key("right", DAY, REGION, SERVICE);
    let claim = Claim::parse(&parts).ok()??;
    let claim = claim.signed_with(&parts, &key).ok()?;
    let verified = claim.verify(&parts, &[key], NOW_SECONDS);
    verified.ok().map(|verified| verified.chain)
}

/// The bytes that are believed, and the outcome, of a body that comes in pieces of `piece` bytes.
fn decode(payload: Payload, length: u64, body: &[u8], piece: usize) -> (Vec<u8>, Result<(), Code>) {
    let mut believed = Vec::new();
    let trailer = payload.has_trailer().then_some(Algorithm::Crc32);
    let chain = payload.has_signed_chunks().then(chain).flatten();
    let mut decoder = ChunkDecoder::new(payload, length, chain, trailer)
        .expect("the chain and the trailer fit the form");
    let mut all = || -> Result<(), S3Error> {
        for piece in body.chunks(piece) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(bytes) = decoder.decode(&mut input)? {
                believed.extend_from_slice(&bytes);
            }
            let most = MAX_BUFFERED_BYTES + body.len().min(MAX_SIGNED_CHUNK_BYTES);
            assert!(decoder.buffered_bytes() <= most);
        }
        decoder.finish().map(|_| ())
    };
    let outcome = all();
    if let Err(error) = &outcome {
        check_sentence(error);
    }
    (believed, outcome.map_err(|error| error.code))
}

fn check_sentence(error: &S3Error) {
    let sentence = &error.message;
    assert!(
        !sentence.is_empty() && sentence.lines().count() == 1,
        "{sentence}"
    );
}

#[cfg(test)]
mod tests {
    use areo_fuzzing::Driver;

    #[test]
    fn authorizations_of_any_bytes() {
        Driver {
            target: super::authorization,
            corpus: &super::good_heads(),
            words: &[
                "X-Amz-Date=",
                "&",
                "%20",
                ";",
                "host",
                ", ",
                "x-amz-acl: a\n",
                "Signature=",
                "/",
                "+",
            ],
            seed: 1,
            cost: 1,
        }
        .run();
    }

    #[test]
    fn chunks_of_any_bytes() {
        Driver {
            target: super::chunks,
            corpus: &super::good_chunks(),
            words: &[
                "\r\n",
                "0",
                ";chunk-signature=",
                "x-amz-checksum-crc32:",
                "\n",
            ],
            seed: 2,
            cost: 1,
        }
        .run();
    }
}
