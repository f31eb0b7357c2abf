//! Headers of a copy.

use super::fields::Fields;
use super::invalid;
use super::object::read_conditions;
use super::path::{check_bucket_name, checked_key, decoded};
use crate::wire::error::{Code, S3Error};
use crate::wire::range::ByteRange;
use crate::wire::request::CopySource;

const SOURCE: &str = "x-amz-copy-source";

/// True if the request is a copy.
pub(super) fn is_copy(fields: &Fields) -> bool {
    fields.shows_header(SOURCE)
}

/// Takes the source, with its conditions.
///
/// # Errors
/// [`S3Error`]: it names no object, or a version.
pub(super) fn source(fields: &mut Fields) -> Result<CopySource, S3Error> {
    let text = fields.header(SOURCE)?.unwrap_or_default();
    let path = match text.split_once('?') {
        None => text.as_str(),
        Some((path, "versionId=null")) => path,
        Some((_, query)) if query.starts_with("versionId=") => {
            let sentence = "buckets have no versions: leave versionId out of x-amz-copy-source";
            return Err(S3Error::new(Code::NotImplemented, sentence));
        }
        Some(_) => return Err(invalid(SOURCE, &text, "encode a question mark as %3F")),
    };
    let takes = "it is BUCKET/KEY, percent-encoded";
    // Some SDKs encode the slash behind the bucket, too: then the text is split when it is decoded.
    let path = path.strip_prefix('/').unwrap_or(path);
    let parts = if let Some((bucket, key)) = path.split_once('/') {
        Some((readable(bucket)?, readable(key)?))
    } else {
        let whole = readable(path)?;
        let whole = whole.strip_prefix('/').unwrap_or(&whole);
        let parts = whole.split_once('/');
        parts.map(|(bucket, key)| (bucket.to_owned(), key.to_owned()))
    };
    match parts {
        Some((bucket, key)) if !key.is_empty() => {
            check_bucket_name(&bucket)?;
            Ok(CopySource {
                bucket,
                key: checked_key(key)?,
                conditions: read_conditions(fields, "x-amz-copy-source-")?,
            })
        }
        _ => Err(invalid(SOURCE, &text, takes)),
    }
}

fn readable(text: &str) -> Result<String, S3Error> {
    decoded(text).map_err(|refusal| S3Error::new(Code::InvalidArgument, refusal.message))
}

/// Takes the range of a source: `bytes=a-b` and nothing else.
///
/// # Errors
/// [`Code::InvalidArgument`].
pub(super) fn range(fields: &mut Fields) -> Result<Option<ByteRange>, S3Error> {
    let name = "x-amz-copy-source-range";
    let Some(text) = fields.header(name)? else {
        return Ok(None);
    };
    match ByteRange::parse(&text) {
        Some(range @ ByteRange::Between(..)) => Ok(Some(range)),
        _ => Err(invalid(name, &text, "it is bytes=FIRST-LAST")),
    }
}

/// Takes a header that says that something comes with the source (`COPY`) or with the request (`REPLACE`): true for the latter.
///
/// # Errors
/// [`Code::InvalidArgument`].
pub(super) fn replaces(fields: &mut Fields, name: &str) -> Result<bool, S3Error> {
    match fields.header(name)?.as_deref() {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(text) => Err(invalid(name, text, "it is COPY or REPLACE")),
    }
}
