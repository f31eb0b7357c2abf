//! `PUT` and `DELETE` of an object, with their conditions.
//!
//! A condition names an `ETag`, and the store decides about versions. So the version with that `ETag` is looked up first, and the write is made on that version: between the
//! two another write may come, and the store refuses this one then. The version that an earlier attempt of one request wrote is found by the request's name, before its
//! condition is judged: it does not hold any more because of that attempt.

use super::failure;
use super::kept::{Kept, KeptChecksum, etag_of};
use super::read::{CHECKSUM_TYPE, VERSION, quoted};
use super::reply::Reply;
use crate::body::Sums;
use crate::body::checksum::Checksum;
use crate::wire::{Code, PutHeaders, S3Error, WriteCondition};
use areo_client::{Condition, Domain, Error, Etag, ObjectInfo, PutOptions, StreamError, Version};
use http::HeaderName;
use http::header::ETAG;
use tokio::io::AsyncRead;

/// A body whose sums are known at its end.
pub(super) trait Summed: AsyncRead + Unpin + Send {
    /// The sums of all that was read.
    fn into_sums(self) -> Sums;
}

/// An object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) version: Version,
    /// Its `ETag` without quotation marks. `None`: an earlier attempt wrote it, and a later write has taken its place.
    pub(super) etag: Option<String>,
    pub(super) checksum: Option<Checksum>,
}

impl Written {
    /// The answer to `PUT`.
    pub(super) fn reply(&self) -> Reply {
        let mut reply = Reply::ok().with(VERSION, &self.version.to_string());
        if let Some(etag) = &self.etag {
            reply.set(ETAG, &quoted(etag));
        }
        if let Some(checksum) = &self.checksum {
            let header = HeaderName::from_static(checksum.algorithm.header());
            reply.set(header, &checksum.text());
            reply.set(CHECKSUM_TYPE, "FULL_OBJECT");
        }
        reply
    }
}

/// The verdict about a condition before the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The write is to be made, on this condition of the store.
    On(Option<Condition>),
    /// An earlier attempt of this request has written this version.
    Done(Version),
}

/// Judges the condition of a write of an object, for the request of this name.
///
/// # Errors
/// [`Code::PreconditionFailed`]; [`Code::NoSuchKey`] where an `ETag` is named and there is no object; [`Code::NotImplemented`] in a bucket whose
/// kind has no winners; those of the store.
pub(super) async fn judge(
    domain: &Domain,
    key: &str,
    condition: Option<&WriteCondition>,
    request: u128,
) -> Result<Judged, S3Error> {
    let Some(condition) = condition else {
        return Ok(Judged::On(None));
    };
    let wanted = match condition {
        WriteCondition::Absent => return Ok(Judged::On(Some(Condition::Absent))),
        WriteCondition::Present => return Ok(Judged::On(Some(Condition::Present))),
        WriteCondition::Match(etag) => etag,
    };
    if !domain.has_one_winner() {
        return Err(no_winner(domain));
    }
    let found = match domain.stat(key).await {
        Ok(found) => Some(found),
        Err(Error::NotFound { key: Some(_), .. }) => None,
        Err(error) => return Err(failure::of(&error)),
    };
    if let Some(version) = matching(found.as_ref(), wanted) {
        return Ok(Judged::On(Some(Condition::Version(version))));
    }
    if request != 0 {
        let earlier = domain.written_by(key, request).await;
        if let Some(version) = earlier.map_err(|error| failure::of(&error))? {
            return Ok(Judged::Done(version));
        }
    }
    match found {
        None => Err(absent(key)),
        Some(found) => Err(mismatch(wanted, &etag_of(&found.metadata, found.version))),
    }
}

fn matching(found: Option<&ObjectInfo>, wanted: &str) -> Option<Version> {
    let found = found?;
    (etag_of(&found.metadata, found.version) == wanted).then_some(found.version)
}

fn no_winner(domain: &Domain) -> S3Error {
    let name = domain.name();
    let sentence = format!(
        "bucket {name} keeps no winner of concurrent writes, so that it takes no condition: change it with `areo reconfig start {name} --dap conditional`"
    );
    S3Error::new(Code::NotImplemented, sentence)
}

fn absent(key: &str) -> S3Error {
    let sentence = format!("If-Match names an ETag, and there is no object '{key}'");
    S3Error::new(Code::NoSuchKey, sentence)
}

fn mismatch(wanted: &str, found: &str) -> S3Error {
    let sentence = format!("If-Match names \"{wanted}\", and the object has ETag \"{found}\"");
    S3Error::new(Code::PreconditionFailed, sentence)
}

/// The error of a write that the store refused because of its condition.
pub(super) fn refused(
    domain: &Domain,
    condition: Option<&WriteCondition>,
    error: &Error,
) -> S3Error {
    let Error::VersionConflict { latest, key, .. } = error else {
        return match error {
            Error::Invalid {
                reason: areo_client::Invalid::NotConditional { .. },
            } => no_winner(domain),
            error => failure::of(error),
        };
    };
    let found = latest.as_ref();
    let found = found.map(|latest| etag_of(&latest.metadata, latest.version));
    match (condition, found) {
        (Some(WriteCondition::Match(wanted)), Some(found)) if *wanted == found => S3Error::new(
            Code::ConditionalRequestConflict,
            "another write with the same ETag came between: send the request again",
        ),
        (Some(WriteCondition::Match(wanted)), Some(found)) => mismatch(wanted, &found),
        (Some(WriteCondition::Match(_)), None) => absent(key),
        (Some(WriteCondition::Present), _) => S3Error::new(
            Code::PreconditionFailed,
            "If-Match: *, and there is no object",
        ),
        (Some(WriteCondition::Absent) | None, _) => S3Error::new(
            Code::PreconditionFailed,
            "If-None-Match: *, and there is an object",
        ),
    }
}

/// Answers `PUT`.
///
/// # Errors
/// Those of the condition, of the body and of the store.
pub(super) async fn put<B: Summed>(
    domain: &Domain,
    key: &str,
    headers: &PutHeaders,
    (request, body): (u128, B),
) -> Result<Written, S3Error> {
    let condition = headers.condition.as_ref();
    let on = match judge(domain, key, condition, request).await? {
        Judged::On(on) => on,
        Judged::Done(version) => return done(domain, key, version).await,
    };
    let mut kept = Kept::of_request(headers);
    let options = PutOptions {
        content_type: headers.content.content_type.clone(),
        user_metadata: kept.pairs(),
        request,
        ..PutOptions::default()
    };
    let mut written = None;
    let describe = |body: B, options: PutOptions| {
        let sums = body.into_sums();
        kept.checksum = sums.checksum.as_ref().map(|checksum| KeptChecksum {
            checksum: checksum.clone(),
            parts: None,
        });
        let etag = hexadecimal(&sums.md5);
        written = Some(sums);
        PutOptions {
            etag: Some(Etag::new(&etag).expect("hexadecimal digits")),
            user_metadata: kept.pairs(),
            ..options
        }
    };
    let version = domain.put_described(key, body, options, on, describe).await;
    let version = version.map_err(|error| match &error {
        StreamError::Store(error) => refused(domain, condition, error),
        StreamError::Local(_) => failure::of_stream(&error),
    })?;
    let sums = written.expect("the body ended before it was written");
    Ok(Written {
        version,
        etag: Some(hexadecimal(&sums.md5)),
        checksum: sums.checksum,
    })
}

/// The answer to a request whose earlier attempt has written this version.
async fn done(domain: &Domain, key: &str, version: Version) -> Result<Written, S3Error> {
    // A later write may have taken its place: then its `ETag` is not known any more, and the answer has none.
    let etag = match domain.stat(key).await {
        Ok(info) if info.version == version => Some(etag_of(&info.metadata, version)),
        Ok(_) | Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(failure::of(&error)),
    };
    Ok(Written {
        version,
        etag,
        checksum: None,
    })
}

/// Answers `DELETE`: 204, also where there is no object and none is named.
///
/// # Errors
/// Those of the condition and of the store.
pub(super) async fn delete(
    domain: &Domain,
    key: &str,
    condition: Option<&WriteCondition>,
    request: u128,
) -> Result<(), S3Error> {
    if condition == Some(&WriteCondition::Absent) {
        let sentence = "a deletion is made on If-Match, not on If-None-Match";
        return Err(S3Error::new(Code::NotImplemented, sentence));
    }
    let on = match judge(domain, key, condition, request).await? {
        Judged::Done(_) => return Ok(()),
        Judged::On(on) => on,
    };
    let deleted = match on {
        None => domain.delete(key).await,
        Some(on) => domain.delete_on(key, on, request).await,
    };
    match deleted {
        Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => Ok(()),
        Err(error) => Err(refused(domain, condition, &error)),
    }
}

/// Digits of these bytes.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    crate::auth::hex(bytes)
}
