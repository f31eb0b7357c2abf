//! Checksums in the head of a request.

use super::fields::Fields;
use super::invalid;
use crate::body::checksum::{Algorithm, Checksum, Expected};
use crate::wire::error::{Code, S3Error};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Takes the checksums of the body.
///
/// # Errors
/// [`Code::InvalidDigest`] or [`Code::InvalidRequest`]: one cannot be read, or there are two. [`Code::NotImplemented`]: another trailer is announced.
pub(super) fn expected(fields: &mut Fields) -> Result<Expected, S3Error> {
    let expected = Expected {
        md5: md5(fields)?,
        checksum: of_object(fields)?,
        trailer: trailer(fields)?,
    };
    match expected.checksum.is_some() && expected.trailer.is_some() {
        true => Err(two_checksums()),
        false => Ok(expected),
    }
}

/// Takes the header `x-amz-checksum-*`.
///
/// # Errors
/// [`Code::InvalidDigest`]: it cannot be read. [`Code::InvalidRequest`]: there are two.
pub(super) fn of_object(fields: &mut Fields) -> Result<Option<Checksum>, S3Error> {
    let mut taken = None;
    for algorithm in Algorithm::ALL {
        if let Some(text) = fields.header(algorithm.header())? {
            if taken.is_some() {
                return Err(two_checksums());
            }
            taken = Some(Checksum::parse(algorithm, text.trim())?);
        }
    }
    Ok(taken)
}

fn two_checksums() -> S3Error {
    let sentence = "there are two checksums x-amz-checksum-*: send one";
    S3Error::new(Code::InvalidRequest, sentence)
}

fn md5(fields: &mut Fields) -> Result<Option<[u8; 16]>, S3Error> {
    let Some(text) = fields.header("content-md5")? else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| {
        let text = text.escape_debug();
        let sentence = format!("Content-MD5 '{text}' is no MD5: send 16 bytes in base64");
        S3Error::new(Code::InvalidDigest, sentence)
    });
    bytes.map(Some)
}

fn trailer(fields: &mut Fields) -> Result<Option<Algorithm>, S3Error> {
    let Some(text) = fields.header("x-amz-trailer")? else {
        return Ok(None);
    };
    let Some(algorithm) = Algorithm::of_header(text.trim()) else {
        let sentence = format!(
            "the trailer '{}' is not implemented: announce one x-amz-checksum-*",
            text.escape_debug()
        );
        return Err(S3Error::new(Code::NotImplemented, sentence));
    };
    let payload = fields.header("x-amz-content-sha256")?.unwrap_or_default();
    match payload.ends_with("-TRAILER") {
        true => Ok(Some(algorithm)),
        // Nothing would read it.
        false => Err(S3Error::new(
            Code::InvalidRequest,
            "x-amz-trailer announces a trailer, and x-amz-content-sha256 names a body without one",
        )),
    }
}

/// Takes the checksum that the gateway is to compute.
///
/// # Errors
/// [`Code::InvalidRequest`]: it is none of those that exist, or not the one of the body.
pub(super) fn algorithm(
    fields: &mut Fields,
    expected: &Expected,
) -> Result<Option<Algorithm>, S3Error> {
    let of_body = expected.checksum.as_ref().map(|it| it.algorithm);
    let mut algorithm = of_body.or(expected.trailer);
    for name in ["x-amz-sdk-checksum-algorithm", "x-amz-checksum-algorithm"] {
        let Some(text) = fields.header(name)? else {
            continue;
        };
        let Some(named) = Algorithm::of_word(&text.to_ascii_uppercase()) else {
            let sentence = format!("{name} '{}' is no checksum", text.escape_debug());
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        };
        if algorithm.is_some_and(|other| other != named) {
            let sentence = format!("{name} '{text}' is not the checksum that the request has");
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        algorithm = Some(named);
    }
    Ok(algorithm)
}

/// Takes `x-amz-checksum-type`. `Some(true)`: a checksum of all bytes. `Some(false)`: one of the parts' checksums.
///
/// # Errors
/// [`Code::InvalidArgument`]: it has another word.
pub(super) fn is_full_object(fields: &mut Fields) -> Result<Option<bool>, S3Error> {
    let name = "x-amz-checksum-type";
    match fields.header(name)?.as_deref() {
        None => Ok(None),
        Some("FULL_OBJECT") => Ok(Some(true)),
        Some("COMPOSITE") => Ok(Some(false)),
        Some(text) => Err(invalid(name, text, "it is FULL_OBJECT or COMPOSITE")),
    }
}
