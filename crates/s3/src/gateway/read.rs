//! `GET` and `HEAD` of an object.

use super::content::Content;
use super::expiry;
use super::failure;
use super::kept::{Kept, etag_of};
use super::reply::{Reply, ReplyBody};
use crate::wire::xml::lifecycle::LifecycleRule;
use crate::wire::xml::object::Attributes;
use crate::wire::{ByteRange, Code, GetOptions, ReadConditions, S3Error, xml};
use areo_client::{Domain, Error, Metadata, Version};
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED,
};
use http::{HeaderValue, StatusCode};
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An object as its head shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) version: Version,
    pub(super) metadata: &'a Metadata,
    pub(super) length: u64,
}

impl Found<'_> {
    /// Its `ETag`, without quotation marks.
    pub(super) fn etag(&self) -> String {
        etag_of(self.metadata, self.version)
    }
}

/// Answers `GET`.
///
/// # Errors
/// Those of the store, and of conditions and ranges that do not hold.
pub(super) async fn get(
    domain: &Domain,
    key: &str,
    options: GetOptions,
    rules: &[LifecycleRule],
) -> Result<Reply, S3Error> {
    let wanted = options.clone();
    let choose = move |length: u64, metadata: &Metadata| {
        // Of what is refused no bytes are read; the version does not count here, because one without an `ETag` of its own is judged below.
        chosen(&wanted, length, metadata).unwrap_or(0..0)
    };
    let stream = domain.get_chosen(key, choose).await;
    let stream = stream.map_err(|error| failure::of(&error))?;
    let found = Found {
        version: stream.version(),
        metadata: stream.metadata(),
        length: stream.length(),
    };
    let mut reply = head_of(&found, &options)?;
    if reply.status == StatusCode::NOT_MODIFIED {
        return Ok(reply);
    }
    show_expiry(&mut reply, key, &found, rules);
    let range = range_of(&options, found.length)?;
    let is_read = chosen(&options, found.length, found.metadata).is_ok();
    assert!(is_read, "what is shown was asked for");
    let content = Content::new(domain, key, stream, range);
    reply.body = ReplyBody::Object(Box::new(content));
    Ok(reply)
}

/// Answers `HEAD`.
///
/// # Errors
/// As [`get`].
pub(super) async fn head(
    domain: &Domain,
    key: &str,
    options: &GetOptions,
    rules: &[LifecycleRule],
) -> Result<Reply, S3Error> {
    let info = domain.stat(key).await;
    let info = info.map_err(|error: Error| failure::of(&error))?;
    let found = Found {
        version: info.version,
        metadata: &info.metadata,
        length: info.length,
    };
    let mut reply = head_of(&found, options)?;
    if reply.status == StatusCode::NOT_MODIFIED {
        return Ok(reply);
    }
    show_expiry(&mut reply, key, &found, rules);
    let range = range_of(options, found.length)?;
    let length = range.end - range.start;
    reply.headers.insert(CONTENT_LENGTH, length.into());
    Ok(reply)
}

/// Answers a request for some attributes of an object.
///
/// # Errors
/// Those of the store.
pub(super) async fn attributes(
    domain: &Domain,
    key: &str,
    asked: &[String],
) -> Result<Reply, S3Error> {
    let info = domain.stat(key).await;
    let info = info.map_err(|error: Error| failure::of(&error))?;
    let is_asked = |word: &str| asked.iter().any(|one| one == word);
    let kept = Kept::of(&info.metadata).checksum;
    let checksum = kept.filter(|_| is_asked("Checksum"));
    let attributes = Attributes {
        etag: is_asked("ETag").then(|| etag_of(&info.metadata, info.version)),
        checksum: checksum.map(|kept| (kept.checksum, kept.parts.is_none())),
        parts: None,
        shows_storage_class: is_asked("StorageClass"),
        size: is_asked("ObjectSize").then_some(info.length),
    };
    let modified = httpdate::fmt_http_date(time_of(info.metadata.written_at_ms));
    let text = xml::object::attributes(&attributes);
    Ok(Reply::document(text).with(LAST_MODIFIED, &modified))
}

/// An object that came at once is its first part. The lengths of the parts of another one are not kept.
fn refuse_part(options: &GetOptions, etag: &str) -> Result<(), S3Error> {
    // 32 digits of an MD5, and the number of parts.
    let came_in_parts = etag.as_bytes().get(32) == Some(&b'-');
    match options.part {
        None => Ok(()),
        Some(1) if !came_in_parts => Ok(()),
        Some(_) => Err(S3Error::new(
            Code::NotImplemented,
            "objects are read by range, not by part",
        )),
    }
}

/// The bytes that are sent. An object whose conditions do not hold is not read.
fn chosen(options: &GetOptions, length: u64, metadata: &Metadata) -> Result<Range<u64>, S3Error> {
    // A condition on an object without an `ETag` of its own is judged when its version is known: it is read, and not shown.
    if let Some(etag) = &metadata.etag {
        judge(&options.conditions, etag.as_str(), metadata.written_at_ms)?;
    }
    range_of(options, length)
}

/// The bytes of an object of this length that are asked for.
fn range_of(options: &GetOptions, length: u64) -> Result<Range<u64>, S3Error> {
    match options.range {
        None => Ok(0..length),
        Some(range) => range.within(length).ok_or_else(|| {
            let sentence = format!("the object has {length} bytes, and none in that range");
            S3Error::new(Code::InvalidRange, sentence)
        }),
    }
}

/// Judges the conditions of a read, in the order of RFC 9110, 13.2.2.
///
/// # Errors
/// [`Code::PreconditionFailed`], [`Code::NotModified`].
pub(super) fn judge(
    conditions: &ReadConditions,
    etag: &str,
    written_at_ms: Option<u64>,
) -> Result<(), S3Error> {
    let seconds = i64::try_from(written_at_ms.unwrap_or(0) / 1000).unwrap_or(i64::MAX);
    let failed = |header: &str| {
        let sentence = format!("{header} does not hold: the object has ETag \"{etag}\"");
        Err(S3Error::new(Code::PreconditionFailed, sentence))
    };
    match (&conditions.if_match, conditions.if_unmodified_since) {
        (Some(wanted), _) if !wanted.contains(etag) => return failed("If-Match"),
        (None, Some(since)) if seconds > since => return failed("If-Unmodified-Since"),
        _ => {}
    }
    let is_current = match (&conditions.if_none_match, conditions.if_modified_since) {
        (Some(held), _) => held.contains(etag),
        (None, Some(since)) => seconds <= since,
        (None, None) => false,
    };
    match is_current {
        true => Err(S3Error::new(
            Code::NotModified,
            "the caller's copy is current",
        )),
        false => Ok(()),
    }
}

fn show_expiry(reply: &mut Reply, key: &str, found: &Found<'_>, rules: &[LifecycleRule]) {
    if let Some(text) = expiry::header(rules, (key, found.length), found.metadata) {
        reply.set(expiry::EXPIRATION, &text);
    }
}

/// Status and headers of an object that is shown, or of one of which the caller's copy is current.
fn head_of(found: &Found<'_>, options: &GetOptions) -> Result<Reply, S3Error> {
    let etag = found.etag();
    let mut reply = Reply::ok();
    match judge(&options.conditions, &etag, found.metadata.written_at_ms) {
        Err(error) if error.code == Code::NotModified => reply.status = StatusCode::NOT_MODIFIED,
        judged => judged?,
    }
    reply.set(ETAG, &quoted(&etag));
    reply.set(
        LAST_MODIFIED,
        &httpdate::fmt_http_date(time_of(found.metadata.written_at_ms)),
    );
    reply.set(VERSION, &found.version.to_string());
    if reply.status == StatusCode::NOT_MODIFIED {
        return Ok(reply);
    }
    refuse_part(options, &etag)?;
    let range = range_of(options, found.length)?;
    if options.range.is_some() {
        reply.status = StatusCode::PARTIAL_CONTENT;
        let (first, last, length) = (range.start, range.end - 1, found.length);
        reply.set(CONTENT_RANGE, &format!("bytes {first}-{last}/{length}"));
    }
    reply.set(ACCEPT_RANGES, "bytes");
    describe(&mut reply, found, options);
    Ok(reply)
}

/// The version of an object in the store.
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-areo-version");
const TAGGING_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");
pub(super) const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");
const MISSING: HeaderName = HeaderName::from_static("x-amz-missing-meta");

/// Sets the headers that are kept with an object, and those that the caller sets in their place.
fn describe(reply: &mut Reply, found: &Found<'_>, options: &GetOptions) {
    let kept = Kept::of(found.metadata);
    let content_type = kept.content.content_type.as_deref();
    reply.set(CONTENT_TYPE, content_type.unwrap_or("binary/octet-stream"));
    for (name, value) in &kept.content.others {
        if let Ok(name) = HeaderName::try_from(name.as_str()) {
            reply.set(name, value);
        }
    }
    let mut missing = 0;
    for (name, value) in &kept.user {
        let name = HeaderName::try_from(format!("x-amz-meta-{name}"));
        match (name, HeaderValue::from_bytes(value.as_bytes())) {
            (Ok(name), Ok(value)) => drop(reply.headers.insert(name, value)),
            _ => missing += 1,
        }
    }
    if missing > 0 {
        reply.set(MISSING, &missing.to_string());
    }
    if !kept.tags.is_empty() {
        reply.set(TAGGING_COUNT, &kept.tags.len().to_string());
    }
    let whole = options.range.is_none();
    if let Some(checksum) = kept.checksum.filter(|_| options.shows_checksums && whole) {
        let header = HeaderName::from_static(checksum.checksum.algorithm.header());
        reply.set(header, &checksum.text());
        reply.set(CHECKSUM_TYPE, checksum.kind());
    }
    for (name, value) in &options.overrides.headers {
        reply.set(name.clone(), value);
    }
}

/// The ETag between quotation marks, as headers show it.
pub(super) fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

/// The time of milliseconds since 1970; of an object without a time, 1970. HTTP shows no year beyond 9999.
pub(super) fn time_of(ms: Option<u64>) -> SystemTime {
    const YEAR_9999_MS: u64 = 253_370_764_800_000;
    UNIX_EPOCH + Duration::from_millis(ms.unwrap_or(0).min(YEAR_9999_MS))
}

/// A time as documents show it: milliseconds since 1970, of an object without a time 1970 itself.
pub(super) fn shown_ms(ms: Option<u64>) -> i64 {
    i64::try_from(ms.unwrap_or(0)).unwrap_or(i64::MAX)
}

/// The part of an object that a copy is made of.
///
/// # Errors
/// [`Code::InvalidRange`].
pub(super) fn part_of(range: Option<ByteRange>, length: u64) -> Result<Range<u64>, S3Error> {
    let options = GetOptions {
        range,
        ..GetOptions::default()
    };
    range_of(&options, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ETagList;

    #[test]
    fn conditions_of_a_read_are_judged_in_order() {
        let conditions = |if_match: Option<&str>, if_none_match: Option<&str>| ReadConditions {
            if_match: if_match.map(|text| ETagList::parse(text).unwrap()),
            if_none_match: if_none_match.map(|text| ETagList::parse(text).unwrap()),
            ..ReadConditions::default()
        };
        let code = |conditions: &ReadConditions| {
            let judged = judge(conditions, "abc", Some(5000));
            judged.err().map(|error| error.code)
        };
        assert_eq!(code(&conditions(None, None)), None);
        assert_eq!(code(&conditions(Some("\"abc\""), None)), None);
        let failed = Some(Code::PreconditionFailed);
        assert_eq!(code(&conditions(Some("abd"), None)), failed);
        assert_eq!(code(&conditions(Some("abd"), Some("abc"))), failed);
        let current = Some(Code::NotModified);
        assert_eq!(code(&conditions(Some("abc"), Some("abc"))), current);
        assert_eq!(code(&conditions(None, Some("*"))), current);
        assert_eq!(code(&conditions(None, Some("abd"))), None);
        let times = |modified, unmodified| ReadConditions {
            if_modified_since: modified,
            if_unmodified_since: unmodified,
            ..ReadConditions::default()
        };
        assert_eq!(code(&times(Some(5), None)), current);
        assert_eq!(code(&times(Some(4), None)), None);
        assert_eq!(code(&times(None, Some(4))), failed);
        assert_eq!(code(&times(None, Some(5))), None);
        let beside = ReadConditions {
            if_none_match: Some(ETagList::Of(vec!["other".into()])),
            ..times(Some(9), None)
        };
        assert_eq!(code(&beside), None, "If-None-Match counts alone");
    }

    #[test]
    fn an_object_that_came_at_once_is_its_first_part() {
        let part = |part, etag: &str| {
            let options = GetOptions {
                part,
                ..GetOptions::default()
            };
            refuse_part(&options, etag).map_err(|error| error.code)
        };
        let (at_once, in_parts) = ("a".repeat(32), format!("{}-2", "a".repeat(32)));
        assert_eq!(part(None, &in_parts), Ok(()));
        assert_eq!(part(Some(1), &at_once), Ok(()));
        assert_eq!(part(Some(1), "1-91384cafb734dfd11"), Ok(()));
        assert_eq!(part(Some(2), &at_once), Err(Code::NotImplemented));
        assert_eq!(part(Some(1), &in_parts), Err(Code::NotImplemented));
    }

    #[test]
    fn a_range_outside_the_object_is_refused() {
        let part = |range, length| part_of(range, length).map_err(|error| error.code);
        assert_eq!(part(None, 0), Ok(0..0));
        assert_eq!(part(Some(ByteRange::From(1)), 1), Err(Code::InvalidRange));
        assert_eq!(part(Some(ByteRange::Last(2)), 3), Ok(1..3));
    }
}
