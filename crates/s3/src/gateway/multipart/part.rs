//! Parts: their bytes in the store, and their records.

use super::{Begun, UploadPlace};
use crate::body::checksum::{Algorithm, Checksum};
use crate::body::{BodyPlan, Sums};
use crate::gateway::callers::CallerClient;
use crate::gateway::copy::{Opened, now_ms};
use crate::gateway::kept::{Kept, KeptChecksum};
use crate::gateway::read::shown_ms;
use crate::gateway::reply::Reply;
use crate::gateway::write::{Summed, hexadecimal};
use crate::gateway::{failure, window};
use crate::wire::xml::object::Copied;
use crate::wire::{ByteRange, Code, CopySource, S3Error, xml};
use areo_client::{Domain, Error, Etag, Metadata, PutOptions, StoredPart, Version, limits};
use http::HeaderName;
use http::header::ETAG;

/// The name of metadata of a part's record: the place of its bytes.
const PART_KEPT: &str = ":part";

/// A part as its record has it.
#[derive(Clone, Debug)]
pub(super) struct KeptPart {
    /// The version of the record.
    pub(super) version: Version,
    /// The `ETag` without quotation marks.
    pub(super) etag: String,
    pub(super) checksum: Option<Checksum>,
    /// The place of its bytes.
    pub(super) stored: StoredPart,
    pub(super) modified_ms: i64,
}

impl UploadPlace<'_> {
    /// The parts of these numbers. `None`: there is none of that number.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn kept_parts(
        &self,
        numbers: Vec<u16>,
    ) -> Result<Vec<Option<KeptPart>>, S3Error> {
        window::each(numbers, |number| {
            let (domain, key, suffix) =
                (self.domain.clone(), self.key.to_owned(), self.part(number));
            async move { read(&domain, &key, &suffix).await }
        })
        .await
    }

    /// Writes a part; one of that number is replaced.
    async fn write<B: Summed>(&self, number: u16, mut body: B) -> Result<Sums, S3Error> {
        let upload = self.upload()?;
        let put = self
            .domain
            .put_part(upload, &mut body, limits::DEFAULT_BLOCK_BYTES);
        let stored = put.await.map_err(|error| failure::of_stream(&error))?;
        let sums = body.into_sums();
        assert_eq!(stored.length(), sums.length, "all of the body was read");
        let checksum = sums.checksum.clone();
        let kept = Kept {
            checksum: checksum.map(|checksum| KeptChecksum {
                checksum,
                parts: None,
            }),
            ..Kept::default()
        };
        let mut pairs = kept.pairs();
        pairs.push((PART_KEPT.into(), stored.to_string()));
        let options = PutOptions {
            etag: Some(Etag::new(&hexadecimal(&sums.md5)).expect("hexadecimal digits")),
            user_metadata: pairs,
            ..PutOptions::default()
        };
        let suffix = self.part(number);
        let written = self.domain.put_record(self.key, &suffix, "", options).await;
        written.map_err(|error| failure::of(&error))?;
        // The upload may have ended meanwhile: then the part would stay.
        if self.find().await?.is_none() {
            self.remove_record(suffix).await?;
            self.abort().await?;
            return Err(self.none());
        }
        Ok(sums)
    }
}

/// Reads a part's record. `None`: there is none.
async fn read(domain: &Domain, key: &str, suffix: &str) -> Result<Option<KeptPart>, S3Error> {
    match domain.get_record(key, suffix).await {
        Ok(record) => Ok(of_record(record.version, &record.metadata)),
        Err(Error::NotFound { key: Some(_), .. }) => Ok(None),
        Err(error) => Err(failure::of(&error)),
    }
}

fn of_record(version: Version, metadata: &Metadata) -> Option<KeptPart> {
    let mut pairs = metadata.user.iter();
    let (_, stored) = pairs.find(|(name, _)| name == PART_KEPT)?;
    Some(KeptPart {
        version,
        etag: metadata.etag.as_ref()?.as_str().to_owned(),
        checksum: Kept::of(metadata).checksum.map(|kept| kept.checksum),
        stored: stored.parse().ok()?,
        modified_ms: shown_ms(metadata.written_at_ms),
    })
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
pub(in crate::gateway) async fn part<B: Summed>(
    place: UploadPlace<'_>,
    number: u16,
    sent: Option<Algorithm>,
    read: impl FnOnce(Option<Algorithm>) -> Result<B, S3Error>,
) -> Result<Reply, S3Error> {
    let begun = place.begun().await?;
    let body = read(algorithm_of(&begun, sent)?)?;
    let sums = place.write(number, body).await?;
    let mut reply = Reply::ok().with(ETAG, &format!("\"{}\"", hexadecimal(&sums.md5)));
    if let Some(checksum) = &sums.checksum {
        let header = HeaderName::from_static(checksum.algorithm.header());
        reply.set(header, &checksum.text());
    }
    Ok(reply)
}

/// Answers a part that is a copy.
///
/// # Errors
/// Those of [`part`], and those of its source.
pub(in crate::gateway) async fn copied_part(
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
