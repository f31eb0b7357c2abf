//! Reads the head of a request.
//!
//! | module | reads |
//! |---|---|
//! | `path` | bucket and key, from the host and the path |
//! | `fields` | query parameters and headers: each is taken by the operation that knows it |
//! | `known` | tables: headers without effect, and what is refused by name |
//! | `bucket`, `object`, `listing`, `copy` | operations |
//! | `put`, `checksums` | headers of a write |
//!
//! An operation *takes* the parameters and headers that it knows. The rest is refused at the end: a parameter, a header of `x-amz-*` or a condition that
//! no operation took would change the meaning of the request.

mod bucket;
mod checksums;
mod copy;
mod fields;
mod known;
mod listing;
mod object;
mod path;
mod put;

#[cfg(test)]
mod tests;

pub(crate) use object::LAST_PART;
pub(super) use path::checked_key;
pub use path::{check_bucket_name, check_new_bucket_name};
pub(super) use put::check_tags;

use super::error::{Code, S3Error};
use super::request::{Operation, S3Request, Target};
use crate::body::checksum::Expected;
use fields::Fields;
use http::Method;

/// Bytes of a key.
const KEY_BYTES: usize = 1024;

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
    let target = path::target(head, addressing)?;
    if head.method == Method::OPTIONS {
        // Its query is that of the request that will follow, and says nothing about this one.
        let operation = bucket::preflight(&head.headers)?;
        return Ok(S3Request::new(target, operation));
    }
    let mut fields = Fields::read(head)?;
    fields.refuse_session_token()?;
    let invocation = match fields.header("amz-sdk-invocation-id")? {
        Some(text) => invocation(&text),
        None => 0,
    };
    let operation = match &target {
        Target::Service => service(&head.method, &fields),
        Target::Bucket(name) => bucket::operation(&head.method, name, &mut fields),
        Target::Object { bucket, key } => object::operation(&head.method, bucket, key, &mut fields),
    }?;
    let document = match operation {
        // Their body is no document.
        Operation::PutObject(_) | Operation::UploadPart { .. } => Expected::default(),
        _ => checksums::expected(&mut fields)?,
    };
    fields.refuse_the_rest(&head.method)?;
    Ok(S3Request {
        invocation,
        document,
        ..S3Request::new(target, operation)
    })
}

/// The bucket that a request is about, if its host or its path names one.
pub(crate) fn bucket_of(head: &http::request::Parts, addressing: &Addressing) -> Option<String> {
    let target = path::target(head, addressing).ok()?;
    target.bucket().map(str::to_owned)
}

fn service(method: &Method, fields: &Fields) -> Result<Operation, S3Error> {
    match *method {
        Method::GET => Ok(Operation::ListBuckets),
        _ => Err(not_allowed(method, "the gateway", fields)),
    }
}

/// The refusal of a method. If a parameter stands beside it that is not known, the refusal names that.
fn not_allowed(method: &Method, of: &str, fields: &Fields) -> S3Error {
    if let Err(refusal) = fields.refuse_parameters(method) {
        return refusal;
    }
    S3Error::new(
        Code::MethodNotAllowed,
        format!("{method} is no method of {of}"),
    )
}

/// A value that a parameter or header cannot have.
fn invalid(name: &str, value: &str, takes: &str) -> S3Error {
    let (name, value) = (name.escape_debug(), value.escape_debug());
    S3Error::new(
        Code::InvalidArgument,
        format!("{name} '{value}' is not valid: {takes}"),
    )
}

/// A number for the id of an invocation: the number of a UUID, or a hash of any other text. 0 stands for none.
fn invocation(text: &str) -> u128 {
    let number = uuid(text).filter(|number| *number != 0);
    number.unwrap_or_else(|| {
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let (first, _) = hash.as_ref().split_first_chunk().expect("32 bytes");
        u128::from_be_bytes(*first).max(1)
    })
}

/// Parses a UUID: `8-4-4-4-12` hexadecimal digits.
fn uuid(text: &str) -> Option<u128> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    let has_digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = lengths.eq([8, 4, 4, 4, 12]) && groups.iter().all(has_digits);
    is_uuid.then(|| u128::from_str_radix(&groups.concat(), 16).expect("32 hexadecimal digits"))
}
