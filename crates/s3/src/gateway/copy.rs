//! `PUT` of an object that is a copy of another one.

use super::callers::CallerClient;
use super::content::Content;
use super::failure;
use super::kept::Kept;
use super::read::{self, Found, VERSION};
use super::reply::{GatewayBody, Reply};
use super::write;
use crate::auth::Payload;
use crate::body::{BodyPlan, BodyReader};
use crate::wire::xml::object::Copied;
use crate::wire::{ByteRange, Code, CopySource, PutHeaders, S3Error, xml};
use areo_client::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

/// The object that is copied, opened.
pub(super) struct Opened {
    content: Content,
}

impl Opened {
    /// Opens the source of a copy.
    ///
    /// # Errors
    /// Those of the store; [`Code::PreconditionFailed`] for any condition of the source that does not hold; [`Code::InvalidRange`].
    pub(super) async fn source(
        client: &CallerClient,
        source: &CopySource,
        range: Option<ByteRange>,
    ) -> Result<Opened, S3Error> {
        let domain = client.bucket(&source.bucket).await?;
        let choose = move |length: u64, _: &Metadata| read::part_of(range, length).unwrap_or(0..0);
        let stream = domain.get_chosen(&source.key, choose).await;
        let stream = stream.map_err(|error| {
            let error = failure::of(&error);
            if error.code == Code::NoSuchBucket {
                // There may be another domain of the name than the one that was remembered.
                client.forget(&source.bucket);
            }
            error
        })?;
        let found = Found {
            version: stream.version(),
            metadata: stream.metadata(),
            length: stream.length(),
        };
        let judged = read::judge(
            &source.conditions,
            &found.etag(),
            found.metadata.written_at_ms,
        );
        judged.map_err(|error| S3Error::new(Code::PreconditionFailed, error.message))?;
        let range = read::part_of(range, found.length)?;
        let content = Content::new(&domain, &source.key, stream, range);
        Ok(Opened { content })
    }

    /// The metadata of the source.
    pub(super) fn metadata(&self) -> &Metadata {
        self.content.metadata()
    }

    /// Bytes that are copied.
    pub(super) fn length(&self) -> u64 {
        self.content.length()
    }

    /// A reader of the copied bytes, which computes checksums as a body's reader does.
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn reader(
        self,
        plan: impl FnOnce(BodyPlan) -> BodyPlan,
    ) -> Result<BodyReader<GatewayBody>, S3Error> {
        let length = self.length();
        let body = GatewayBody::of_content(self.content);
        BodyReader::new(body, plan(BodyPlan::new(Payload::Unsigned, length)))
    }
}

/// Answers a copy of an object.
///
/// # Errors
/// Those of reading the source and of writing the copy.
pub(super) async fn object(
    client: &CallerClient,
    (bucket, key): (&str, &str),
    (source, replaces_metadata, replaces_tags): (&CopySource, bool, bool),
    (headers, request): (&PutHeaders, u128),
) -> Result<Reply, S3Error> {
    if !replaces_metadata && !replaces_tags && source.bucket == bucket && source.key == key {
        let sentence = "a copy of an object onto itself changes its metadata: send x-amz-metadata-directive: REPLACE";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    let domain = client.bucket(bucket).await?;
    let opened = Opened::source(client, source, None).await?;
    let kept = Kept::of(opened.metadata());
    let algorithm = headers.algorithm;
    let algorithm = algorithm.or(kept.checksum.as_ref().map(|it| it.checksum.algorithm));
    let mut headers = headers.clone();
    if !replaces_metadata {
        (headers.content, headers.user) = (kept.content, kept.user);
    }
    if !replaces_tags {
        headers.tags = kept.tags;
    }
    let modified_ms = now_ms();
    let body = opened.reader(|plan| BodyPlan { algorithm, ..plan })?;
    let written = write::put(&domain, key, &headers, (request, body)).await?;
    let copied = Copied {
        etag: written.etag.clone().unwrap_or_default(),
        modified_ms,
        checksum: written.checksum.clone(),
        is_full_object: true,
    };
    let text = xml::object::copied(&copied);
    Ok(Reply::document(text).with(VERSION, &written.version.to_string()))
}

/// The present time, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
