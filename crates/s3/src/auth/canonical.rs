//! The canonical form of a request, which is what a signature is computed over.

use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use ring::digest;

use crate::wire::{Code, S3Error};

/// Bytes that names and values of a query are encoded with: all but the unreserved ones of RFC 3986.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Bytes that a path is encoded with: the segments stay apart.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// A parameter of a query, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: Vec<u8>,
    /// Its value; empty if it has none.
    pub(super) value: Vec<u8>,
}

/// The parameters of a query, in the order in which they were sent. `+` is a space.
pub(super) fn parameters(parts: &Parts) -> Result<Vec<Parameter>, S3Error> {
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| decode(text.replace('+', " ").as_bytes());
        let (name, value) = (decode(name)?, decode(value)?);
        Ok(Parameter { name, value })
    });
    decoded.collect()
}

/// The canonical request: the method, the path encoded once, the query in order, the signed headers and the declared
/// hash of the body. A parameter for which `is_left_out` is left out: a signature cannot sign itself.
pub(super) fn request(
    parts: &Parts,
    signed_headers: &[String],
    payload: &str,
    is_left_out: impl Fn(&Parameter) -> bool,
) -> Result<Vec<u8>, S3Error> {
    let mut out = Vec::with_capacity(512);
    let mut line = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        out.push(b'\n');
    };
    line(parts.method.as_str().as_bytes());
    line(path(parts.uri.path())?.as_bytes());
    let parameters = parameters(parts)?.into_iter();
    line(query(parameters.filter(|one| !is_left_out(one))).as_bytes());
    for name in signed_headers {
        line(&header(parts, name)?);
    }
    line(b"");
    line(signed_headers.join(";").as_bytes());
    out.extend_from_slice(payload.as_bytes());
    Ok(out)
}

/// A path, decoded and encoded again: segments are neither merged nor removed.
fn path(raw: &str) -> Result<String, S3Error> {
    match raw {
        "" => Ok("/".to_owned()),
        raw => Ok(percent_encode(&decode(raw.as_bytes())?, PATH).to_string()),
    }
}

/// A query in the order of its encoded names, and values of one name in the order of the encoded values.
fn query(parameters: impl Iterator<Item = Parameter>) -> String {
    let encode = |bytes: &[u8]| percent_encode(bytes, QUERY).to_string();
    let encoded = parameters.map(|one| (encode(&one.name), encode(&one.value)));
    let mut encoded: Vec<(String, String)> = encoded.collect();
    encoded.sort_unstable();
    let pairs = encoded
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

/// A header as `name:value`, all values of the name in one line.
fn header(parts: &Parts, name: &str) -> Result<Vec<u8>, S3Error> {
    let mut values = parts.headers.get_all(name).iter().peekable();
    if values.peek().is_none() {
        let sentence = format!(
            "the header '{name}' is among the signed ones, and the request does not have it"
        );
        return Err(S3Error::new(Code::SignatureDoesNotMatch, sentence));
    }
    let mut line = name.as_bytes().to_vec();
    let mut separator = b':';
    for value in values {
        line.push(separator);
        separator = b',';
        let words = value.as_bytes().split(|byte| *byte == b' ');
        let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
        line.extend_from_slice(&words.join(&b' '));
    }
    Ok(line)
}

/// A text without its percent signs.
fn decode(text: &[u8]) -> Result<Vec<u8>, S3Error> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let digits = rest.get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let sentence = "a percent sign of the path or the query is not followed by two hexadecimal digits: write it as %25";
            return Err(S3Error::new(Code::InvalidURI, sentence));
        }
        rest = &rest[at + 3..];
    }
    Ok(percent_decode(text).collect())
}

/// The SHA-256 digest of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, bytes);
    let bytes = digest.as_ref().try_into();
    bytes.expect("a SHA-256 has 32 bytes")
}

/// Bytes as small hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    pairs
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// 32 bytes from 64 small hexadecimal digits.
pub(crate) fn parse_hex(text: &[u8]) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 64 {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(target: &str) -> Parts {
        let request = http::Request::builder().uri(target).body(()).unwrap();
        request.into_parts().0
    }

    #[test]
    fn a_path_is_encoded_once_and_stays_as_it_is() {
        for (raw, canonical) in [
            ("", "/"),
            ("/", "/"),
            ("/a//b/../c/./", "/a//b/../c/./"),
            ("/a%20b", "/a%20b"),
            ("/a+b", "/a%2Bb"),
            ("/%61%7e~%2f", "/a~~/"),
            ("/$file:(1)", "/%24file%3A%281%29"),
            ("/%c3%a9", "/%C3%A9"),
            ("/%2520", "/%2520"),
        ] {
            assert_eq!(path(raw).unwrap(), canonical, "{raw}");
        }
        for raw in ["/%", "/%a", "/%zz", "/%%41"] {
            assert_eq!(path(raw).unwrap_err().code, Code::InvalidURI, "{raw}");
        }
    }

    #[test]
    fn a_query_is_in_order_of_encoded_names_and_values() {
        let canonical = |target: &str| query(parameters(&parts(target)).unwrap().into_iter());
        for (raw, expected) in [
            ("/", ""),
            ("/?", ""),
            ("/?acl", "acl="),
            ("/?b=1&a=2&&a=1", "a=1&a=2&b=1"),
            ("/?p=a%2Fb&q=a+b%2bc", "p=a%2Fb&q=a%20b%2Bc"),
            ("/?a=b=c", "a=b%3Dc"),
            ("/?A=1&a=1&%7E=1", "A=1&a=1&~=1"),
        ] {
            assert_eq!(canonical(raw), expected, "{raw}");
        }
        let refused = parameters(&parts("/?a=%2"));
        assert_eq!(refused.unwrap_err().code, Code::InvalidURI);
    }

    #[test]
    fn values_of_headers_lose_spaces_and_are_joined() {
        let request = http::Request::builder()
            .header("x-amz-meta-a", "  a   b  ")
            .header("x-amz-meta-a", "c")
            .body(())
            .unwrap();
        let parts = request.into_parts().0;
        assert_eq!(
            header(&parts, "x-amz-meta-a").unwrap(),
            b"x-amz-meta-a:a b,c"
        );
        let absent = header(&parts, "x-amz-meta-b").unwrap_err();
        assert_eq!(absent.code, Code::SignatureDoesNotMatch);
    }

    #[test]
    fn hexadecimal_digits_are_small() {
        assert_eq!(parse_hex(hex(&[0xa5; 32]).as_bytes()), Some([0xa5; 32]));
        assert_eq!(parse_hex("A5".repeat(32).as_bytes()), None);
        assert_eq!(parse_hex("a5".repeat(33).as_bytes()), None);
    }
}
