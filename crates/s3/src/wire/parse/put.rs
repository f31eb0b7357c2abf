//! Headers of a request that writes an object.

use super::checksums;
use super::fields::Fields;
use super::invalid;
use super::path::decoded;
use crate::wire::error::{Code, S3Error};
use crate::wire::etag::WriteCondition;
use crate::wire::request::{ContentHeaders, PutHeaders};

/// Bytes of the names and values of all `x-amz-meta-*`.
const USER_METADATA_BYTES: usize = 2048;
/// Tags of an object.
const TAGS: usize = 10;
/// Characters of the name of a tag.
const TAG_NAME_CHARACTERS: usize = 128;
/// Characters of the value of a tag.
const TAG_VALUE_CHARACTERS: usize = 256;

/// Access rights that every object has, so that asking for them has no effect.
pub(super) const ACLS: &[&str] = &["private", "bucket-owner-full-control"];

/// Takes the headers of an object, but for its condition and its checksums.
///
/// # Errors
/// [`S3Error`]: one cannot be read, or cannot be kept.
pub(super) fn headers(fields: &mut Fields) -> Result<PutHeaders, S3Error> {
    fields.only("x-amz-acl", ACLS)?;
    fields.only("x-amz-storage-class", &["STANDARD"])?;
    let user = fields.headers_behind("x-amz-meta-")?;
    let bytes: usize = user
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > USER_METADATA_BYTES {
        let sentence = format!(
            "the names and values of x-amz-meta-* have {bytes} bytes: at most {USER_METADATA_BYTES} are kept"
        );
        return Err(S3Error::new(Code::MetadataTooLarge, sentence));
    }
    let tags = match fields.header("x-amz-tagging")? {
        Some(text) => tags(&text)?,
        None => Vec::new(),
    };
    Ok(PutHeaders {
        content: content(fields)?,
        user,
        tags,
        ..PutHeaders::default()
    })
}

/// Takes the headers of an object whose bytes are the body.
///
/// # Errors
/// [`S3Error`]: one cannot be read, or cannot be kept.
pub(super) fn headers_of_body(fields: &mut Fields) -> Result<PutHeaders, S3Error> {
    let expected = checksums::expected(fields)?;
    let algorithm = checksums::algorithm(fields, &expected)?;
    if checksums::is_full_object(fields)? == Some(false) {
        let sentence = "an object that comes in one body has no COMPOSITE checksum";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    Ok(PutHeaders {
        condition: condition(fields)?,
        expected,
        algorithm,
        ..headers(fields)?
    })
}

/// Takes the condition of a write.
///
/// # Errors
/// [`Code::NotImplemented`] or [`Code::InvalidArgument`].
pub(super) fn condition(fields: &mut Fields) -> Result<Option<WriteCondition>, S3Error> {
    let if_match = fields.header("if-match")?;
    let if_none_match = fields.header("if-none-match")?;
    WriteCondition::parse(if_match.as_deref(), if_none_match.as_deref())
}

fn content(fields: &mut Fields) -> Result<ContentHeaders, S3Error> {
    let content_type = fields.header("content-type")?;
    let mut others = Vec::new();
    for name in [
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "expires",
    ] {
        let value = fields.header(name)?;
        let value = match name {
            "content-encoding" => value.and_then(|value| without_chunks(&value)),
            _ => value,
        };
        others.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(ContentHeaders {
        content_type: content_type.filter(|text| !text.is_empty()),
        others,
    })
}

/// `Content-Encoding` without `aws-chunked`, which is the framing of the body and not a property of the object.
fn without_chunks(value: &str) -> Option<String> {
    let codings = value.split(',').map(str::trim);
    let is_kept = |coding: &&str| !coding.is_empty() && !coding.eq_ignore_ascii_case("aws-chunked");
    let kept: Vec<&str> = codings.filter(is_kept).collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

/// Tags in the form of a query.
fn tags(text: &str) -> Result<Vec<(String, String)>, S3Error> {
    let mut tags = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |part: &str| {
            let decoded = decoded(&part.replace('+', " "));
            decoded.map_err(|_| invalid("x-amz-tagging", text, "encode it like a query"))
        };
        tags.push((decode(name)?, decode(value)?));
    }
    check_tags(&tags, TAGS)?;
    Ok(tags)
}

/// Checks tags: at most this many, names of 1 to 128 characters, each of them once, values of at most 256 characters.
///
/// # Errors
/// [`Code::InvalidTag`].
pub(crate) fn check_tags(tags: &[(String, String)], most: usize) -> Result<(), S3Error> {
    let refused = |sentence: String| Err(S3Error::new(Code::InvalidTag, sentence));
    if tags.len() > most {
        return refused(format!("{} tags are more than {most}", tags.len()));
    }
    for (at, (name, value)) in tags.iter().enumerate() {
        let characters = name.chars().count();
        let shown = name.escape_debug();
        if characters == 0 || characters > TAG_NAME_CHARACTERS {
            return refused(format!(
                "the name of the tag '{shown}' has not 1 to {TAG_NAME_CHARACTERS} characters"
            ));
        }
        if value.chars().count() > TAG_VALUE_CHARACTERS {
            return refused(format!(
                "the value of the tag '{shown}' has more than {TAG_VALUE_CHARACTERS} characters"
            ));
        }
        if tags[..at].iter().any(|(other, _)| other == name) {
            return refused(format!("the tag '{shown}' is there twice"));
        }
    }
    Ok(())
}
