//! Forms of a body.

use http::HeaderMap;

use super::canonical::parse_hex;
use crate::wire::{Code, S3Error};

/// The form of a body, and its verification, as `x-amz-content-sha256` declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The body as it is, with this SHA-256.
    Hashed([u8; 32]),
    /// The body as it is.
    Unsigned,
    /// Chunks without signatures, and a trailer.
    UnsignedChunksTrailer,
    /// Chunks with a signature each.
    SignedChunks,
    /// Chunks with a signature each, and a trailer with its own.
    SignedChunksTrailer,
}

impl Payload {
    /// The form that a value of `x-amz-content-sha256` declares.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: there is no such form, or it belongs to Signature Version 4A.
    pub fn parse(text: &str) -> Result<Payload, S3Error> {
        match text {
            "UNSIGNED-PAYLOAD" => Ok(Payload::Unsigned),
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Ok(Payload::UnsignedChunksTrailer),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Ok(Payload::SignedChunks),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => Ok(Payload::SignedChunksTrailer),
            _ if text.starts_with("STREAMING-AWS4-ECDSA-") => Err(S3Error::new(
                Code::InvalidArgument,
                "x-amz-content-sha256 declares Signature Version 4A: sign with AWS4-HMAC-SHA256",
            )),
            _ => parse_hex(text.to_ascii_lowercase().as_bytes())
                .map(Payload::Hashed)
                .ok_or_else(|| {
                    S3Error::new(
                        Code::InvalidArgument,
                        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                         STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a SHA-256 of 64 hexadecimal digits",
                    )
                }),
        }
    }

    /// The form of a body without a signature. SDKs send chunks with a trailer then, and no `x-amz-content-sha256`.
    pub(super) fn of_anonymous(headers: &HeaderMap) -> Result<Payload, S3Error> {
        let mut values = headers.get_all("x-amz-content-sha256").iter();
        let payload = match (values.next(), values.next()) {
            (None, _) if is_aws_chunked(headers) => Payload::UnsignedChunksTrailer,
            (None, _) => Payload::Unsigned,
            (Some(one), None) => Payload::parse(&String::from_utf8_lossy(one.as_bytes()))?,
            (Some(_), Some(_)) => {
                let sentence = "x-amz-content-sha256 is there twice: send one";
                return Err(S3Error::new(Code::InvalidArgument, sentence));
            }
        };
        match payload.has_signed_chunks() {
            false => Ok(payload),
            true => Err(S3Error::new(
                Code::AccessDenied,
                "chunks with signatures belong to a signed request: sign the request",
            )),
        }
    }

    /// True if the body is framed as `aws-chunked`.
    pub fn is_chunked(self) -> bool {
        match self {
            Payload::Hashed(_) | Payload::Unsigned => false,
            Payload::UnsignedChunksTrailer
            | Payload::SignedChunks
            | Payload::SignedChunksTrailer => true,
        }
    }

    /// True if each chunk has a signature.
    pub fn has_signed_chunks(self) -> bool {
        matches!(self, Payload::SignedChunks | Payload::SignedChunksTrailer)
    }

    /// True if a trailer comes behind the last chunk.
    pub fn has_trailer(self) -> bool {
        matches!(
            self,
            Payload::UnsignedChunksTrailer | Payload::SignedChunksTrailer
        )
    }
}

/// True if a coding of the content is `aws-chunked`.
fn is_aws_chunked(headers: &HeaderMap) -> bool {
    let values = headers.get_all(http::header::CONTENT_ENCODING).iter();
    values.filter_map(|value| value.to_str().ok()).any(|value| {
        let mut codings = value.split(',');
        codings.any(|coding| coding.trim().eq_ignore_ascii_case("aws-chunked"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn each_word_is_a_form() {
        for (text, form) in [
            ("UNSIGNED-PAYLOAD", Payload::Unsigned),
            (&"0a".repeat(32), Payload::Hashed([10; 32])),
            (&"0A".repeat(32), Payload::Hashed([10; 32])),
            (
                "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
                Payload::UnsignedChunksTrailer,
            ),
            ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", Payload::SignedChunks),
            (
                "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
                Payload::SignedChunksTrailer,
            ),
        ] {
            assert_eq!(Payload::parse(text), Ok(form), "{text}");
        }
        for text in [
            "",
            "unsigned-payload",
            &"0a".repeat(31),
            &"0g".repeat(32),
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER",
        ] {
            let error = Payload::parse(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn a_body_without_a_signature_has_no_signed_chunks() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            Payload::of_anonymous(&headers).map_err(|error| error.code)
        };
        let hash = "x-amz-content-sha256";
        assert_eq!(of(&[]), Ok(Payload::Unsigned));
        assert_eq!(
            of(&[("content-encoding", "aws-chunked,gzip")]),
            Ok(Payload::UnsignedChunksTrailer)
        );
        assert_eq!(of(&[("content-encoding", "gzip")]), Ok(Payload::Unsigned));
        assert_eq!(
            of(&[(hash, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")]),
            Err(Code::AccessDenied)
        );
        assert_eq!(
            of(&[(hash, "UNSIGNED-PAYLOAD"), (hash, "UNSIGNED-PAYLOAD")]),
            Err(Code::InvalidArgument)
        );
    }
}
