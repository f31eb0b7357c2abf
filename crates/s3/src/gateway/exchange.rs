//! The operation of a request, handed to the file that does it.

use super::callers::CallerClient;
use super::cors::CorsRules;
use super::expiry::KnownRules;
use super::incoming::CallerBody;
use super::multipart::UploadPlace;
use super::reply::Reply;
use super::turns::Turns;
use super::{
    GatewayOptions, batch, buckets, copy, cors, lifecycle, list, multipart, read, tags, write,
};
use crate::wire::request::Change;
use crate::wire::xml::Owner;
use crate::wire::{Code, Operation, S3Error, S3Request, Target, WriteCondition, xml};
use areo_client::Domain;
use tokio::sync::MutexGuard;

/// A request with everything that it is answered by.
pub(super) struct Exchange<'a> {
    pub(super) options: &'a GatewayOptions,
    pub(super) cors: &'a CorsRules,
    pub(super) rules: &'a KnownRules,
    pub(super) turns: &'a Turns,
    pub(super) request: &'a S3Request,
    /// The name by which the store knows a write that is repeated; 0: it has none.
    pub(super) name: u128,
    pub(super) client: CallerClient,
    pub(super) owner: Owner,
}

impl Exchange<'_> {
    pub(super) async fn answer(&self, body: CallerBody<'_>) -> Result<Reply, S3Error> {
        match &self.request.target {
            Target::Service => buckets::list(&self.client.client, &self.owner).await,
            Target::Bucket(bucket) => self.of_bucket(bucket, body).await,
            Target::Object { bucket, key } => self.of_object((bucket, key), body).await,
        }
    }

    async fn of_bucket(&self, bucket: &str, body: CallerBody<'_>) -> Result<Reply, S3Error> {
        let (operation, owner) = (&self.request.operation, &self.owner);
        if let Operation::CreateBucket { .. } = operation {
            let document = body.document(&self.request.document).await?;
            let with = (&document, self.options);
            return buckets::create(&self.client.client, bucket, operation, with).await;
        }
        let domain = self.client.bucket(bucket).await?;
        match operation {
            Operation::HeadBucket => Ok(buckets::head(self.options)),
            Operation::DeleteBucket => buckets::delete(&self.client, &domain).await,
            Operation::GetBucketLocation => Ok(buckets::location(self.options)),
            Operation::GetBucketVersioning => Ok(buckets::versioning()),
            Operation::GetAcl => Ok(buckets::access_control(owner)),
            Operation::ListObjects(list) => list::objects(&domain, list, owner).await,
            Operation::ListObjectVersions(list) => list::versions(&domain, list, owner).await,
            Operation::DeleteObjects => {
                let document = body.document(&self.request.document).await?;
                batch::delete(&domain, &document, self.name).await
            }
            Operation::ListMultipartUploads {
                prefix,
                delimiter,
                key_marker,
                upload_id_marker,
                max_uploads,
                url_encoding,
            } => {
                let wish = multipart::UploadsWish {
                    prefix,
                    delimiter,
                    key_marker,
                    upload_id_marker,
                    max_uploads: *max_uploads,
                    url_encoding: *url_encoding,
                };
                multipart::uploads(&domain, &wish, owner).await
            }
            Operation::BucketCors(change) => self.of_cors(&domain, *change, body).await,
            Operation::BucketLifecycle(change) => self.of_lifecycle(&domain, *change, body).await,
            Operation::BucketTagging(Change::Get) => Err(nothing(Code::NoSuchTagSet)),
            _ => Err(not_yet(operation)),
        }
    }

    async fn of_cors(
        &self,
        domain: &Domain,
        change: Change,
        body: CallerBody<'_>,
    ) -> Result<Reply, S3Error> {
        let changed = match change {
            Change::Get => return cors::RULES.get(domain).await,
            Change::Put => {
                let document = body.document(&self.request.document).await?;
                cors::put(domain, &document).await
            }
            Change::Delete => cors::RULES.delete(domain).await,
        };
        self.cors.forget(domain.name());
        changed
    }

    async fn of_lifecycle(
        &self,
        domain: &Domain,
        change: Change,
        body: CallerBody<'_>,
    ) -> Result<Reply, S3Error> {
        match change {
            Change::Get => lifecycle::RULES.get(domain).await,
            Change::Put => {
                let document = body.document(&self.request.document).await?;
                lifecycle::put(domain, &document, &self.owner.id).await
            }
            Change::Delete => lifecycle::RULES.delete(domain).await,
        }
    }

    async fn of_object(
        &self,
        (bucket, key): (&str, &str),
        body: CallerBody<'_>,
    ) -> Result<Reply, S3Error> {
        let operation = &self.request.operation;
        let domain = self.client.bucket(bucket).await?;
        match operation {
            Operation::GetObject(options) => {
                let rules = self.rules.of(&domain);
                read::get(&domain, key, options.clone(), &rules).await
            }
            Operation::HeadObject(options) => {
                read::head(&domain, key, options, &self.rules.of(&domain)).await
            }
            Operation::GetObjectAttributes { attributes, .. } => {
                read::attributes(&domain, key, attributes).await
            }
            Operation::GetAcl => Ok(buckets::access_control(&self.owner)),
            Operation::PutObject(headers) => {
                let body = body.reader(&headers.expected, headers.algorithm)?;
                let _turn = self.turn((bucket, key), headers.condition.as_ref()).await;
                let written = write::put(&domain, key, headers, (self.name, body)).await?;
                Ok(written.reply())
            }
            Operation::CopyObject {
                source,
                replaces_metadata,
                replaces_tags,
                headers,
            } => {
                let source = (source, *replaces_metadata, *replaces_tags);
                let with = (headers, self.name);
                copy::object(&self.client, (bucket, key), source, with).await
            }
            Operation::DeleteObject { condition } => {
                let _turn = self.turn((bucket, key), condition.as_ref()).await;
                write::delete(&domain, key, condition.as_ref(), self.name).await?;
                Ok(Reply::no_content())
            }
            Operation::ObjectTagging(Change::Get) => tags::get(&domain, key).await,
            Operation::ObjectTagging(Change::Put) => {
                let document = body.document(&self.request.document).await?;
                let tags = xml::tagging::read_tagging(&document, xml::tagging::OF_OBJECT)?;
                tags::set(&domain, key, &tags, self.name).await?;
                Ok(Reply::ok())
            }
            Operation::ObjectTagging(Change::Delete) => {
                tags::set(&domain, key, &[], self.name).await?;
                Ok(Reply::no_content())
            }
            Operation::CreateMultipartUpload {
                headers,
                full_object_checksum,
            } => multipart::begin(&domain, key, headers, *full_object_checksum).await,
            _ => self.of_upload((&domain, key), body).await,
        }
    }

    /// Waits until no other conditional put or deletion of the object is under way here.
    async fn turn(
        &self,
        (bucket, key): (&str, &str),
        condition: Option<&WriteCondition>,
    ) -> Option<MutexGuard<'_, ()>> {
        condition?;
        self.turns.of(bucket, key).await
    }

    async fn of_upload(
        &self,
        (domain, key): (&Domain, &str),
        body: CallerBody<'_>,
    ) -> Result<Reply, S3Error> {
        let operation = &self.request.operation;
        let place = |id| UploadPlace { domain, key, id };
        match operation {
            Operation::UploadPart {
                upload_id,
                part,
                expected,
            } => {
                let sent = expected.checksum.as_ref().map(|it| it.algorithm);
                let sent = sent.or(expected.trailer);
                let read = |algorithm| body.reader(expected, algorithm);
                multipart::part(place(upload_id), *part, sent, read).await
            }
            Operation::UploadPartCopy {
                upload_id,
                part,
                source,
                range,
            } => {
                let source = (source, *range);
                multipart::copied_part(&self.client, place(upload_id), *part, source).await
            }
            Operation::CompleteMultipartUpload {
                upload_id,
                condition,
                expected,
                length,
                ..
            } => {
                let document = body.document(&self.request.document).await?;
                let completion = multipart::Completion {
                    parts: xml::multipart::read_complete(&document)?,
                    condition: condition.as_ref(),
                    expected,
                    length: *length,
                    part_bytes: self.options.part_bytes,
                };
                multipart::complete(place(upload_id), completion).await
            }
            Operation::AbortMultipartUpload { upload_id } => {
                multipart::abort(place(upload_id)).await
            }
            Operation::ListParts {
                upload_id,
                marker,
                max_parts,
                url_encoding,
            } => {
                let page = (*marker, *max_parts, *url_encoding);
                multipart::parts(place(upload_id), page, &self.owner).await
            }
            _ => Err(not_yet(operation)),
        }
    }
}

fn nothing(code: Code) -> S3Error {
    S3Error::new(code, "the bucket has none")
}

fn not_yet(operation: &Operation) -> S3Error {
    let name = operation.name();
    S3Error::new(
        Code::NotImplemented,
        format!("{name} is not done by this gateway"),
    )
}
