//! Bucket and key, from the host and the path.

use super::{Addressing, KEY_BYTES};
use crate::wire::error::{Code, S3Error};
use crate::wire::request::Target;
use http::header::HOST;
use http::request::Parts;
use std::borrow::Cow;
use std::net::Ipv4Addr;

/// Bytes of the name of a bucket, which is the name of a domain.
const NAME_BYTES: usize = 63;

/// Beginnings and ends that Amazon keeps for names of other kinds.
const RESERVED_BEGINNINGS: &[&str] = &["xn--", "sthree-", "amzn-s3-demo-"];
const RESERVED_ENDS: &[&str] = &["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// The thing that a request is about.
pub(super) fn target(head: &Parts, addressing: &Addressing) -> Result<Target, S3Error> {
    let path = head.uri.path();
    let Some(path) = path.strip_prefix('/') else {
        let sentence = format!("the path '{}' begins with no slash", path.escape_debug());
        return Err(S3Error::new(Code::InvalidURI, sentence));
    };
    let (bucket, key) = match bucket_of_host(head, addressing)? {
        Some(bucket) => (bucket, path),
        None if path.is_empty() => return Ok(Target::Service),
        None => {
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            (decoded(bucket)?, key)
        }
    };
    check_bucket_name(&bucket)?;
    match key {
        "" => Ok(Target::Bucket(bucket)),
        key => {
            let key = checked_key(decoded(key)?)?;
            Ok(Target::Object { bucket, key })
        }
    }
}

/// The key, if it is not too long.
pub(crate) fn checked_key(key: String) -> Result<String, S3Error> {
    if key.len() <= KEY_BYTES {
        return Ok(key);
    }
    let bytes = key.len();
    let sentence = format!("the key has {bytes} bytes: at most {KEY_BYTES} are possible");
    Err(S3Error::new(Code::KeyTooLongError, sentence))
}

/// Text of a path without its percent escapes. A plus stands for itself.
pub(super) fn decoded(text: &str) -> Result<String, S3Error> {
    let is_complete = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_complete) {
        let sentence = format!("'{}' has an incomplete percent escape", text.escape_debug());
        return Err(S3Error::new(Code::InvalidURI, sentence));
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| {
        let sentence = format!("'{}' is not UTF-8 when decoded", text.escape_debug());
        S3Error::new(Code::InvalidURI, sentence)
    })
}

/// The bucket that the host names, if it names one of a domain.
fn bucket_of_host(head: &Parts, addressing: &Addressing) -> Result<Option<String>, S3Error> {
    if addressing.domains.is_empty() {
        return Ok(None);
    }
    let mut hosts = head.headers.get_all(HOST).iter();
    let host = match (head.uri.host(), hosts.next(), hosts.next()) {
        (Some(host), _, _) => host,
        (None, Some(host), None) => {
            let text = host.to_str().map_err(|_| {
                S3Error::new(Code::InvalidRequest, "the Host header is no name of a host")
            })?;
            without_port(text)
        }
        (None, None, _) => return Ok(None),
        (None, Some(_), Some(_)) => {
            let sentence = "the request has two Host headers: send one";
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
    };
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let labels = |domain: &String| {
        let bucket = host.strip_suffix(&domain.to_ascii_lowercase())?;
        bucket.strip_suffix('.').map(str::to_owned)
    };
    // The longest domain: with `s3.example` and `eu.s3.example`, the host `a.eu.s3.example` has the bucket `a`. A host that is a domain itself has none.
    let is_domain = |domain: &String| domain.eq_ignore_ascii_case(host);
    if addressing.domains.iter().any(is_domain) {
        return Ok(None);
    }
    let buckets = addressing.domains.iter().filter_map(labels);
    Ok(buckets.min_by_key(String::len))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Checks a name of a bucket, which is a name of a domain: 1 to 63 small letters, digits, `-`, `_` and `.`, of which the first is a letter or a digit.
///
/// # Errors
/// [`Code::InvalidBucketName`].
pub fn check_bucket_name(name: &str) -> Result<(), S3Error> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let valid = name.len() <= NAME_BYTES
        && name.bytes().next().is_some_and(letter)
        && name
            .bytes()
            .all(|byte| letter(byte) || b"-_.".contains(&byte));
    valid.then_some(()).ok_or_else(|| refused_name(name))
}

/// Checks the name of a bucket that is to be created, by the rules of S3: 3 to 63 small letters, digits, `-` and `.`, a letter or a digit at both ends, no
/// two dots side by side, no IPv4 address, nothing that Amazon keeps for other names. A domain that the native interface made may break them.
///
/// # Errors
/// [`Code::InvalidBucketName`].
pub fn check_new_bucket_name(name: &str) -> Result<(), S3Error> {
    check_bucket_name(name)?;
    let ends_well = name
        .bytes()
        .last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_reserved = RESERVED_BEGINNINGS
        .iter()
        .any(|start| name.starts_with(start))
        || RESERVED_ENDS.iter().any(|end| name.ends_with(end));
    let valid = name.len() >= 3
        && ends_well
        && !name.contains('_')
        && !name.contains("..")
        && !is_reserved
        && name.parse::<Ipv4Addr>().is_err();
    valid.then_some(()).ok_or_else(|| refused_name(name))
}

fn refused_name(name: &str) -> S3Error {
    let name = name.escape_debug();
    S3Error::new(
        Code::InvalidBucketName,
        format!(
            "'{name}' is no name of a bucket: use 3 to 63 small letters, digits, '-' and '.', with a letter or a digit at both ends"
        ),
    )
}
