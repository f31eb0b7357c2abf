//! Bodies of requests: their framing taken off, their checksums verified on the way, in bounded memory.
//!
//! | `x-amz-content-sha256` | framing | verified |
//! |---|---|---|
//! | 64 hexadecimal digits | none | SHA-256 of the body, at its end |
//! | `UNSIGNED-PAYLOAD` | none | checksums in headers |
//! | `STREAMING-UNSIGNED-PAYLOAD-TRAILER` | `aws-chunked` | the checksum in the trailer |
//! | `STREAMING-AWS4-HMAC-SHA256-PAYLOAD` | `aws-chunked` | the signature of each chunk, before its bytes are believed |
//! | `STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER` | `aws-chunked` | and that of the trailer, and the checksum in it |
//!
//! [`BodyReader`] gives the bytes of the object. It keeps the last of them back until everything is verified, so that a consumer that knows the length
//! cannot end with a body that is wrong.

pub mod checksum;
mod chunked;
mod reader;
#[cfg(test)]
mod tests;
mod verification;

use std::io;

use http::HeaderMap;

use crate::auth::Payload;
use crate::wire::{Code, S3Error};

pub use chunked::{ChunkDecoder, MAX_SIGNED_CHUNK_BYTES};
pub use reader::{BodyPlan, BodyReader};
pub use verification::Sums;

impl S3Error {
    /// The error that a reader of a body put into an error of input.
    pub fn of_io(error: &io::Error) -> Option<&S3Error> {
        error.get_ref()?.downcast_ref()
    }
}

/// The number of bytes that the object of a body has, as its head declares it: `x-amz-decoded-content-length` for chunks, and `Content-Length`
/// otherwise.
///
/// # Errors
/// [`Code::MissingContentLength`]: the header is missing; [`Code::InvalidArgument`]: it is no number, or there twice.
pub fn declared_length(headers: &HeaderMap, payload: Payload) -> Result<u64, S3Error> {
    let name = match payload.is_chunked() {
        true => "x-amz-decoded-content-length",
        false => "content-length",
    };
    let mut values = headers.get_all(name).iter();
    let text = match (values.next(), values.next()) {
        (None, _) => {
            let sentence = format!("the body needs the header {name}");
            return Err(S3Error::new(Code::MissingContentLength, sentence));
        }
        (Some(one), None) => one.to_str().unwrap_or_default().trim(),
        (Some(_), Some(_)) => "",
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let length = text.parse().ok().filter(|_| is_number);
    length.ok_or_else(|| {
        let sentence = format!("{name} must be there once, as a number of bytes");
        S3Error::new(Code::InvalidArgument, sentence)
    })
}
