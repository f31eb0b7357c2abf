//! Objects in parts.
//!
//! The bytes of a part are written once, as blocks of an upload of the store ([`UploadId`]); completion publishes the blocks of all parts as one object, and moves no byte.
//! Everything else is in records of the key: no listing of objects shows them, any gateway goes on with them, and servers judge them by the key.
//!
//! | record | has |
//! |---|---|
//! | `UPLOAD` | headers and metadata that the object will have |
//! | `UPLOAD/NNNNN` | the place of a part's bytes, its `ETag`, its checksum |
//!
//! While there is a record, no sweep ends the upload. Of a part that is put again the last record counts; the blocks of the one before go when the upload ends. The object keeps
//! the id of its upload, so that a completion that is sent again finds it done.
//!
//! | file | has |
//! |---|---|
//! | `part` | parts and their records |
//! | `complete` | the completion |
//! | `end` | the removal of everything that is not the object |
//! | `list` | lists of uploads and of parts |

mod complete;
mod end;
mod list;
mod part;

pub(super) use complete::{Completion, complete};
pub(super) use end::abort;
pub(super) use list::{UploadsWish, parts, uploads};
pub(super) use part::{copied_part, part};

use super::failure;
use super::kept::{Kept, KeptChecksum};
use super::reply::Reply;
use crate::body::checksum::{Algorithm, Checksum};
use crate::wire::parse::LAST_PART;
use crate::wire::{Code, PutHeaders, S3Error, xml};
use areo_client::{Domain, Error, Metadata, PutOptions, UploadId};
use http::HeaderName;

/// Records that are listed at a time.
const PAGE: usize = 1000;

const ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");
/// Names of metadata of an upload's record.
const ALGORITHM_KEPT: &str = ":upload-algorithm";
const FULL_OBJECT_KEPT: &str = ":upload-full-object";

/// The place of an upload.
#[derive(Clone, Copy)]
pub(super) struct UploadPlace<'a> {
    pub(super) domain: &'a Domain,
    pub(super) key: &'a str,
    pub(super) id: &'a str,
}

/// An upload that has begun.
struct Begun {
    kept: Kept,
    /// The algorithm of its checksums.
    algorithm: Option<Algorithm>,
    /// The object's checksum is one of all bytes.
    full_object: bool,
}

/// Answers the beginning of an upload.
///
/// # Errors
/// [`Code::MetadataTooLarge`], and those of the store.
pub(super) async fn begin(
    domain: &Domain,
    key: &str,
    headers: &PutHeaders,
    full_object: bool,
) -> Result<Reply, S3Error> {
    let begun = domain.begin_parts().await;
    let id = begun.map_err(|error| failure::of(&error))?.to_string();
    let mut pairs = Kept::of_request(headers).pairs();
    check_room(headers, &id, full_object)?;
    if let Some(algorithm) = headers.algorithm {
        pairs.push((ALGORITHM_KEPT.into(), algorithm.word().into()));
        pairs.push((FULL_OBJECT_KEPT.into(), full_object.to_string()));
    }
    let options = PutOptions {
        content_type: headers.content.content_type.clone(),
        user_metadata: pairs,
        ..PutOptions::default()
    };
    let written = domain.put_record(key, &id, "", options).await;
    written.map_err(|error| failure::of(&error))?;
    let text = xml::multipart::initiated(domain.name(), key, &id);
    let mut reply = Reply::document(text);
    if let Some(algorithm) = headers.algorithm {
        reply.set(ALGORITHM, algorithm.word());
        reply.set(
            TYPE,
            if full_object {
                "FULL_OBJECT"
            } else {
                "COMPOSITE"
            },
        );
    }
    Ok(reply)
}

/// Refuses metadata for which the object will have no room beside its upload and its checksum: after the parts it is too late.
///
/// # Errors
/// [`Code::MetadataTooLarge`].
fn check_room(headers: &PutHeaders, id: &str, full_object: bool) -> Result<(), S3Error> {
    let checksum = headers.algorithm.map(|algorithm| KeptChecksum {
        checksum: Checksum {
            algorithm,
            bytes: vec![0; algorithm.length()],
        },
        parts: (!full_object).then_some(LAST_PART),
    });
    let object = Kept {
        upload: Some(id.to_owned()),
        checksum,
        ..Kept::of_request(headers)
    };
    let metadata = Metadata {
        content_type: headers.content.content_type.clone(),
        user: object.pairs(),
        ..Metadata::default()
    };
    let encoded = metadata.encode();
    encoded.map_err(|error| failure::of(&error.into()))?;
    Ok(())
}

impl UploadPlace<'_> {
    /// The upload in the store. An id is a part of a name: one of another form is none of ours.
    ///
    /// # Errors
    /// [`Code::NoSuchUpload`].
    fn upload(&self) -> Result<UploadId, S3Error> {
        let upload = self.id.parse::<UploadId>().ok();
        let upload = upload.filter(|upload| upload.to_string() == self.id);
        upload.ok_or_else(|| self.none())
    }

    /// The upload, if it has begun and is not over.
    async fn find(&self) -> Result<Option<Begun>, S3Error> {
        let record = match self.domain.get_record(self.key, self.id).await {
            Ok(record) => record,
            Err(Error::NotFound { key: Some(_), .. }) => return Ok(None),
            Err(error) => return Err(failure::of(&error)),
        };
        let mut metadata = record.metadata;
        let mut take = |wanted: &str| {
            let place = metadata.user.iter().position(|(name, _)| name == wanted)?;
            Some(metadata.user.remove(place).1)
        };
        let algorithm = take(ALGORITHM_KEPT);
        let full_object = take(FULL_OBJECT_KEPT);
        Ok(Some(Begun {
            algorithm: algorithm.and_then(|word| Algorithm::of_word(&word)),
            full_object: full_object.is_some_and(|text| text == "true"),
            kept: Kept::of(&metadata),
        }))
    }

    async fn begun(&self) -> Result<Begun, S3Error> {
        self.find().await?.ok_or_else(|| self.none())
    }

    fn none(&self) -> S3Error {
        let sentence = format!(
            "there is no upload '{}' of '{}': it was completed, aborted, or never begun",
            self.id.escape_debug(),
            self.key
        );
        S3Error::new(Code::NoSuchUpload, sentence)
    }

    /// The suffix of a part's record.
    fn part(&self, number: u16) -> String {
        format!("{}/{number:05}", self.id)
    }
}

/// True if this is the object that the upload became.
fn is_of(metadata: &Metadata, upload: &str) -> bool {
    Kept::of(metadata).upload.as_deref() == Some(upload)
}
