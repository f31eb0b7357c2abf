//! Objects in parts.
//!
//! An upload is a record of its key, and so is each of its parts: no listing of objects shows them, any gateway goes on with them, and servers judge them by the key.
//!
//! | record | has |
//! |---|---|
//! | `UPLOAD` | headers and metadata that the object will have |
//! | `UPLOAD/NNNNN` | the bytes of a part, its `ETag`, its checksum |
//!
//! Completion writes the object from its parts, and removes the records. The object keeps the id of its upload, so that a completion that is sent again finds it done.

mod complete;
mod list;

pub(super) use complete::{Completion, complete};
pub(super) use list::{UploadsWish, parts, uploads};

use super::callers::CallerClient;
use super::copy::{Opened, now_ms};
use super::failure;
use super::kept::{Kept, KeptChecksum};
use super::reply::Reply;
use super::write::{Summed, hexadecimal};
use crate::body::checksum::{Algorithm, Checksum};
use crate::body::{BodyPlan, Sums};
use crate::wire::xml::object::Copied;
use crate::wire::{ByteRange, Code, CopySource, PutHeaders, S3Error, xml};
use areo_client::{Domain, Error, Etag, Metadata, PutOptions, RecordName, RecordsAfter};
use http::HeaderName;
use http::header::ETAG;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::JoinSet;

/// Records that are removed at a time.
const WINDOW: usize = 32;
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
/// Those of the store.
pub(super) async fn begin(
    domain: &Domain,
    key: &str,
    headers: &PutHeaders,
    full_object: bool,
) -> Result<Reply, S3Error> {
    let mut id = [0; 16];
    let random = SystemRandom::new().fill(&mut id);
    random.map_err(|_| S3Error::new(Code::InternalError, "the system gives no random bytes"))?;
    let id = hexadecimal(&id);
    let mut pairs = Kept::of_request(headers).pairs();
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

impl UploadPlace<'_> {
    /// The upload, if it has begun and is not over.
    async fn find(&self) -> Result<Option<Begun>, S3Error> {
        // An id is a part of a name: one of another form is none of ours.
        let is_id = self.id.len() == 32 && self.id.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_id {
            return Ok(None);
        }
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

    /// Writes a part; one of that number is replaced.
    async fn write<B: Summed>(&self, number: u16, body: B) -> Result<Sums, S3Error> {
        let mut written = None;
        let describe = |body: B, options: PutOptions| {
            let sums = body.into_sums();
            let checksum = sums.checksum.clone();
            let kept = Kept {
                checksum: checksum.map(|checksum| KeptChecksum {
                    checksum,
                    parts: None,
                }),
                ..Kept::default()
            };
            let etag = Etag::new(&hexadecimal(&sums.md5)).expect("hexadecimal digits");
            written = Some(sums);
            PutOptions {
                etag: Some(etag),
                user_metadata: kept.pairs(),
                ..options
            }
        };
        let suffix = self.part(number);
        let name = (self.key, suffix.as_str());
        let put = self
            .domain
            .put_record_described(name, body, PutOptions::default(), describe);
        put.await.map_err(|error| failure::of_stream(&error))?;
        // The upload may have ended meanwhile: then the part would stay.
        if self.find().await?.is_none() {
            let removed = self.domain.delete_record(self.key, &suffix).await;
            removed.map_err(|error| failure::of(&error))?;
            return Err(self.none());
        }
        Ok(written.expect("the body ended before it was written"))
    }

    /// Removes the upload, and all of its parts.
    async fn remove(&self) -> Result<(), S3Error> {
        // First the upload, so that a part that comes now goes with it.
        self.remove_record(self.id.to_owned()).await?;
        let mut after = None::<RecordName>;
        loop {
            let from = after.as_ref();
            let from = from.map_or(RecordsAfter::Nothing, RecordsAfter::Record);
            let begin = format!("{}/", self.id);
            let listed = self.domain.list_records_of(self.key, &begin, from, PAGE);
            let page = listed.await.map_err(|error| failure::of(&error))?;
            let mut running = JoinSet::new();
            for entry in page.entries {
                if running.len() >= WINDOW
                    && let Some(removed) = running.join_next().await
                {
                    removed.expect("a removal does not panic")?;
                }
                let (domain, key) = (self.domain.clone(), self.key.to_owned());
                running.spawn(async move {
                    let suffix = entry.name.suffix;
                    let (domain, key, id) = (&domain, key.as_str(), "");
                    UploadPlace { domain, key, id }.remove_record(suffix).await
                });
            }
            while let Some(removed) = running.join_next().await {
                removed.expect("a removal does not panic")?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn remove_record(&self, suffix: String) -> Result<(), S3Error> {
        match self.domain.delete_record(self.key, &suffix).await {
            Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => Ok(()),
            Err(error) => Err(failure::of(&error)),
        }
    }
}

/// The algorithm of a part's checksum: that of its upload, unless the part has one of another.
///
/// # Errors
/// [`Code::InvalidRequest`].
fn algorithm_of(begun: &Begun, sent: Option<Algorithm>) -> Result<Option<Algorithm>, S3Error> {
    match (begun.algorithm, sent) {
        (Some(agreed), Some(sent)) if agreed != sent => {
            let sentence = format!(
                "the upload was begun with {}, and the part has {}",
                agreed.word(),
                sent.word()
            );
            Err(S3Error::new(Code::InvalidRequest, sentence))
        }
        (agreed, sent) => Ok(agreed.or(sent)),
    }
}

/// Answers a part that comes with the request. `read` makes a reader of its body, with the algorithm of its checksum.
///
/// # Errors
/// [`Code::NoSuchUpload`]; those of the body and of the store.
pub(super) async fn part<B: Summed>(
    place: UploadPlace<'_>,
    number: u16,
    sent: Option<Algorithm>,
    read: impl FnOnce(Option<Algorithm>) -> Result<B, S3Error>,
) -> Result<Reply, S3Error> {
    let begun = place.begun().await?;
    let body = read(algorithm_of(&begun, sent)?)?;
    let sums = place.write(number, body).await?;
    let mut reply = Reply::ok().with(ETAG, &format!("\"{}\"", hexadecimal(&sums.md5)));
    if let Some(Checksum { algorithm, .. }) = &sums.checksum {
        let text = sums.checksum.as_ref().map(Checksum::text);
        reply.set(
            HeaderName::from_static(algorithm.header()),
            &text.unwrap_or_default(),
        );
    }
    Ok(reply)
}

/// Answers a part that is a copy.
///
/// # Errors
/// As [`part`], and those of its source.
pub(super) async fn copied_part(
    client: &CallerClient,
    place: UploadPlace<'_>,
    number: u16,
    (source, range): (&CopySource, Option<ByteRange>),
) -> Result<Reply, S3Error> {
    let begun = place.begun().await?;
    let opened = Opened::source(client, source, range).await?;
    let algorithm = begun.algorithm;
    let body = opened.reader(|plan| BodyPlan { algorithm, ..plan })?;
    let sums = place.write(number, body).await?;
    let copied = Copied {
        etag: hexadecimal(&sums.md5),
        modified_ms: now_ms(),
        checksum: sums.checksum,
        is_full_object: true,
    };
    Ok(Reply::document(xml::object::copied_part(&copied)))
}

/// Answers the abortion of an upload.
///
/// # Errors
/// [`Code::NoSuchUpload`], and those of the store.
pub(super) async fn abort(place: UploadPlace<'_>) -> Result<Reply, S3Error> {
    place.begun().await?;
    place.remove().await?;
    Ok(Reply::no_content())
}

/// True if this is the object that the upload became.
fn is_of(metadata: &Metadata, upload: &str) -> bool {
    Kept::of(metadata).upload.as_deref() == Some(upload)
}
