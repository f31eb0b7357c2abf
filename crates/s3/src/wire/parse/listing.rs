//! Parameters of listings.

use super::fields::Fields;
use super::invalid;
use super::path::checked_key;
use crate::wire::error::{Code, S3Error};
use crate::wire::request::{ListObjects, ListStyle, Operation};

/// Entries of a page at most.
const PAGE: usize = 1000;

/// `GET /BUCKET`, without a subresource.
pub(super) fn objects(fields: &mut Fields) -> Result<Operation, S3Error> {
    let style = match fields.parameter("list-type").as_deref() {
        None => ListStyle::V1,
        Some("2") => ListStyle::V2,
        Some(text) => return Err(invalid("list-type", text, "it is 2, or left out")),
    };
    let (after, token, fetch_owner) = match style {
        ListStyle::V1 => (key(fields, "marker")?, None, true),
        ListStyle::V2 => {
            let token = fields.parameter("continuation-token");
            if token.as_ref().is_some_and(String::is_empty) {
                let takes = "send the token of the page before";
                return Err(invalid("continuation-token", "", takes));
            }
            let fetch_owner = boolean(fields, "fetch-owner")?;
            (key(fields, "start-after")?, token, fetch_owner)
        }
    };
    let page = page(fields, style)?;
    Ok(Operation::ListObjects(ListObjects {
        after,
        token,
        fetch_owner,
        ..page
    }))
}

/// Parses `GET /BUCKET?versions`.
pub(super) fn versions(fields: &mut Fields) -> Result<Operation, S3Error> {
    let has_key = fields.shows("key-marker");
    let after = key(fields, "key-marker")?;
    let version = fields.parameter("version-id-marker").unwrap_or_default();
    if !version.is_empty() && !has_key {
        let sentence = "a version-id-marker needs a key-marker";
        return Err(S3Error::new(Code::InvalidArgument, sentence));
    }
    // An object has the version `null` alone, so that the list goes on behind the key with it and without it.
    if !["", "null"].contains(&version.as_str()) {
        let sentence = "buckets have no versions: the version-id-marker can be null alone";
        return Err(S3Error::new(Code::NotImplemented, sentence));
    }
    let page = page(fields, ListStyle::V1)?;
    Ok(Operation::ListObjectVersions(ListObjects {
        after,
        fetch_owner: true,
        ..page
    }))
}

/// Parses `GET /BUCKET?uploads`.
pub(super) fn uploads(fields: &mut Fields) -> Result<Operation, S3Error> {
    Ok(Operation::ListMultipartUploads {
        prefix: key(fields, "prefix")?,
        delimiter: key(fields, "delimiter")?,
        key_marker: key(fields, "key-marker")?,
        upload_id_marker: fields.parameter("upload-id-marker").unwrap_or_default(),
        max_uploads: count(fields, "max-uploads")?,
        url_encoding: url_encoding(fields)?,
    })
}

/// Parses `GET /BUCKET/KEY?uploadId=ID`.
pub(super) fn parts(upload_id: String, fields: &mut Fields) -> Result<Operation, S3Error> {
    Ok(Operation::ListParts {
        upload_id,
        marker: part_marker(fields.parameter("part-number-marker"))?,
        max_parts: count(fields, "max-parts")?,
        url_encoding: url_encoding(fields)?,
    })
}

/// The part behind which a list goes on; one that is too large lies behind all parts.
pub(super) fn part_marker(text: Option<String>) -> Result<u16, S3Error> {
    match text {
        None => Ok(0),
        Some(text) => {
            let number = number("part-number-marker", &text)?;
            Ok(number.try_into().unwrap_or(u16::MAX))
        }
    }
}

/// The page that this many entries are wished for: at most 1000.
pub(super) fn page_length(name: &str, text: Option<String>) -> Result<usize, S3Error> {
    match text {
        None => Ok(PAGE),
        Some(text) => Ok(number(name, &text)?.try_into().unwrap_or(PAGE).min(PAGE)),
    }
}

fn page(fields: &mut Fields, style: ListStyle) -> Result<ListObjects, S3Error> {
    Ok(ListObjects {
        style,
        prefix: key(fields, "prefix")?,
        delimiter: key(fields, "delimiter")?,
        after: String::new(),
        token: None,
        max_keys: count(fields, "max-keys")?,
        url_encoding: url_encoding(fields)?,
        fetch_owner: false,
    })
}

/// Takes a key or a part of one; empty if it is not there.
fn key(fields: &mut Fields, name: &str) -> Result<String, S3Error> {
    checked_key(fields.parameter(name).unwrap_or_default())
}

fn count(fields: &mut Fields, name: &str) -> Result<usize, S3Error> {
    let text = fields.parameter(name);
    page_length(name, text)
}

/// A number of digits alone. One that is too large for the type is its largest.
fn number(name: &str, text: &str) -> Result<u64, S3Error> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_digits {
        true => Ok(text.parse().unwrap_or(u64::MAX)),
        false => Err(invalid(name, text, "it is a number, 0 or more")),
    }
}

fn boolean(fields: &mut Fields, name: &str) -> Result<bool, S3Error> {
    match fields.parameter(name).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(invalid(name, text, "it is true or false")),
    }
}

fn url_encoding(fields: &mut Fields) -> Result<bool, S3Error> {
    match fields.parameter("encoding-type").as_deref() {
        None => Ok(false),
        Some("url") => Ok(true),
        Some(text) => Err(invalid("encoding-type", text, "it is url, or left out")),
    }
}
