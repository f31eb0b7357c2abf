//! Reads the head of a request.

use super::error::{Code, S3Error};
use super::request::S3Request;

/// The names by which buckets are reached.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Addressing {
    /// Domains of which each label in front is a bucket (`BUCKET.s3.example`); without them the first segment of the path is.
    pub domains: Vec<String>,
}

/// Reads the head of a request.
///
/// # Errors
/// [`S3Error`]: it is no request of S3, or one that the gateway refuses.
pub fn parse(head: &http::request::Parts, addressing: &Addressing) -> Result<S3Request, S3Error> {
    let bucket = addressing.domains.first();
    let sentence = format!("{} of {bucket:?} is not read yet", head.method);
    Err(S3Error::new(Code::NotImplemented, sentence))
}
