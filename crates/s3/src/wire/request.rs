//! A request of S3, parsed: one enum of operations, each with what it needs.

use super::etag::{ETagList, WriteCondition};
use super::range::ByteRange;
use crate::body::checksum::{Algorithm, Expected};

/// A request, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Request {
    /// The thing that it is about.
    pub target: Target,
    pub operation: Operation,
    /// The caller's id of the request, which stays while an SDK repeats it (`amz-sdk-invocation-id`); 0 is none.
    pub invocation: u128,
    /// Checksums that the caller sent of a body that is a document. Those of an object or a part are in [`Self::operation`], and nothing is here then.
    pub document: Expected,
}

impl S3Request {
    /// A request without an id and without checksums.
    pub fn new(target: Target, operation: Operation) -> S3Request {
        S3Request {
            target,
            operation,
            invocation: 0,
            document: Expected::default(),
        }
    }
}

/// The thing that a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The gateway itself, without a bucket.
    Service,
    /// A bucket, by its name.
    Bucket(String),
    /// An object in a bucket.
    Object {
        bucket: String,
        /// Its key: 1 to 1024 bytes of UTF-8, decoded once.
        key: String,
    },
}

impl Target {
    /// The bucket, if it is about one.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Target::Service => None,
            Target::Bucket(bucket) | Target::Object { bucket, .. } => Some(bucket),
        }
    }

    /// The key, if it is about an object.
    pub fn key(&self) -> Option<&str> {
        match self {
            Target::Service | Target::Bucket(_) => None,
            Target::Object { key, .. } => Some(key),
        }
    }
}

/// An operation. Those that are refused as *not implemented* have no variant: `parse` refuses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `GET /`.
    ListBuckets,
    /// `PUT /BUCKET`. The shape of its domain, where the caller names it (`x-areo-kind`, `x-areo-n`, `x-areo-k`).
    CreateBucket {
        /// A word for the kind of the domain: `conditional`, or a DAP's name.
        kind: Option<String>,
        /// Number of its servers.
        n: Option<usize>,
        /// Elements that a value is restored from.
        k: Option<u8>,
    },
    /// `HEAD /BUCKET`.
    HeadBucket,
    /// `DELETE /BUCKET`.
    DeleteBucket,
    /// `GET /BUCKET?location`.
    GetBucketLocation,
    /// `GET /BUCKET?versioning`: never enabled.
    GetBucketVersioning,
    /// `GET /BUCKET?acl` and `GET /BUCKET/KEY?acl`: private, as everything is.
    GetAcl,
    /// `OPTIONS`: a browser asks, without a signature, which requests a page of another origin may make. The CORS configuration of the bucket answers.
    Preflight {
        /// The origin of the page.
        origin: String,
        /// The method of the request that would follow.
        method: String,
        /// Names of its headers, in small letters.
        headers: Vec<String>,
    },
    /// `GET /BUCKET` and `GET /BUCKET?list-type=2`.
    ListObjects(ListObjects),
    /// `GET /BUCKET?versions`: the current versions, as a bucket without versioning shows them.
    ListObjectVersions(ListObjects),
    /// `POST /BUCKET?delete`, with a document.
    DeleteObjects,
    /// `GET /BUCKET?uploads`.
    ListMultipartUploads {
        /// Only keys with this prefix are listed.
        prefix: String,
        /// Keys with this behind the prefix are listed once.
        delimiter: String,
        /// Only keys greater than this one are listed, and with `upload_id_marker` later uploads of this key.
        key_marker: String,
        /// Uploads of the key `key_marker` are listed behind this one.
        upload_id_marker: String,
        /// Maximum number of listed uploads.
        max_uploads: usize,
        /// Keys are to be percent-encoded.
        url_encoding: bool,
    },
    /// `GET`, `PUT` and `DELETE /BUCKET?cors`; documents.
    BucketCors(Change),
    /// `GET`, `PUT` and `DELETE /BUCKET?lifecycle`; documents.
    BucketLifecycle(Change),
    /// `GET`, `PUT` and `DELETE /BUCKET?tagging`; documents.
    BucketTagging(Change),
    /// `GET /BUCKET/KEY`.
    GetObject(GetOptions),
    /// `HEAD /BUCKET/KEY`.
    HeadObject(GetOptions),
    /// `GET /BUCKET/KEY?attributes`.
    GetObjectAttributes {
        /// The asked attributes, as words of the reference: at least one.
        attributes: Vec<String>,
        /// Parts at most, 0 to 1000.
        max_parts: usize,
        /// Only parts with a greater number are listed.
        part_marker: u16,
    },
    /// `PUT /BUCKET/KEY`.
    PutObject(PutHeaders),
    /// `PUT /BUCKET/KEY` with `x-amz-copy-source`.
    CopyObject {
        /// The object that is copied, of any bucket.
        source: CopySource,
        /// True if content headers and metadata are those of the request, and not of the source.
        replaces_metadata: bool,
        /// True if the tags are those of the request, and not of the source.
        replaces_tags: bool,
        /// Headers of the request, with the condition on the destination.
        headers: PutHeaders,
    },
    /// `DELETE /BUCKET/KEY`.
    DeleteObject {
        /// The version that is to be deleted.
        condition: Option<WriteCondition>,
    },
    /// `GET`, `PUT` and `DELETE /BUCKET/KEY?tagging`; documents.
    ObjectTagging(Change),
    /// `POST /BUCKET/KEY?uploads`.
    CreateMultipartUpload {
        /// Headers that the object will have.
        headers: PutHeaders,
        /// The checksum of the object is that of all bytes, and not one of the parts' checksums.
        full_object_checksum: bool,
    },
    /// `PUT /BUCKET/KEY?partNumber=N&uploadId=ID`.
    UploadPart {
        upload_id: String,
        /// 1 to 10 000.
        part: u16,
        /// Checksums that the caller sent in headers.
        expected: Expected,
    },
    /// `UploadPart` with `x-amz-copy-source`: a part that is copied.
    UploadPartCopy {
        upload_id: String,
        /// 1 to 10 000.
        part: u16,
        /// The object that is copied, of any bucket.
        source: CopySource,
        /// Bytes of it; all if absent.
        range: Option<ByteRange>,
    },
    /// `POST /BUCKET/KEY?uploadId=ID`, with a document.
    CompleteMultipartUpload {
        upload_id: String,
        /// The version that is to be replaced.
        condition: Option<WriteCondition>,
        /// The checksum of the whole object, if the caller sent one: no MD5 and no trailer.
        expected: Expected,
        /// The kind of that checksum, if the caller names it: of all bytes (`true`), or of the parts' checksums.
        full_object_checksum: Option<bool>,
        /// The length of the whole object, if the caller sent it (`x-amz-mp-object-size`).
        length: Option<u64>,
    },
    /// `DELETE /BUCKET/KEY?uploadId=ID`.
    AbortMultipartUpload { upload_id: String },
    /// `GET /BUCKET/KEY?uploadId=ID`.
    ListParts {
        upload_id: String,
        /// Only parts with a greater number are listed.
        marker: u16,
        /// Maximum number of listed parts.
        max_parts: usize,
        /// The key is to be percent-encoded.
        url_encoding: bool,
    },
}

impl Operation {
    /// The name, as Amazon's reference has it. Operations on one document of a bucket or an object have one name.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::ListBuckets => "ListBuckets",
            Operation::CreateBucket { .. } => "CreateBucket",
            Operation::HeadBucket => "HeadBucket",
            Operation::DeleteBucket => "DeleteBucket",
            Operation::GetBucketLocation => "GetBucketLocation",
            Operation::GetBucketVersioning => "GetBucketVersioning",
            Operation::GetAcl => "GetAcl",
            Operation::Preflight { .. } => "Preflight",
            Operation::ListObjects(_) => "ListObjects",
            Operation::ListObjectVersions(_) => "ListObjectVersions",
            Operation::DeleteObjects => "DeleteObjects",
            Operation::ListMultipartUploads { .. } => "ListMultipartUploads",
            Operation::BucketCors(_) => "BucketCors",
            Operation::BucketLifecycle(_) => "BucketLifecycle",
            Operation::BucketTagging(_) => "BucketTagging",
            Operation::GetObject(_) => "GetObject",
            Operation::HeadObject(_) => "HeadObject",
            Operation::GetObjectAttributes { .. } => "GetObjectAttributes",
            Operation::PutObject(_) => "PutObject",
            Operation::CopyObject { .. } => "CopyObject",
            Operation::DeleteObject { .. } => "DeleteObject",
            Operation::ObjectTagging(_) => "ObjectTagging",
            Operation::CreateMultipartUpload { .. } => "CreateMultipartUpload",
            Operation::UploadPart { .. } => "UploadPart",
            Operation::UploadPartCopy { .. } => "UploadPartCopy",
            Operation::CompleteMultipartUpload { .. } => "CompleteMultipartUpload",
            Operation::AbortMultipartUpload { .. } => "AbortMultipartUpload",
            Operation::ListParts { .. } => "ListParts",
        }
    }
}

/// Asking for a document that a bucket or an object has, replacing it, removing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Returns the document.
    Get,
    /// Replaces the document.
    Put,
    /// Removes the document.
    Delete,
}

/// The two forms of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStyle {
    /// `GET /BUCKET`: pages by `marker`.
    V1,
    /// `GET /BUCKET?list-type=2`: pages by an opaque token.
    V2,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListObjects {
    pub style: ListStyle,
    /// Only keys with this prefix are listed.
    pub prefix: String,
    /// Keys with this behind the prefix are listed once, as a common prefix; empty: none.
    pub delimiter: String,
    /// `marker`, `key-marker` or `start-after`: keys are larger.
    pub after: String,
    /// The token of the page before, as it was sent.
    pub token: Option<String>,
    /// Entries at most, 0 to 1000: a larger wish is 1000.
    pub max_keys: usize,
    /// Keys are to be percent-encoded.
    pub url_encoding: bool,
    /// Entries are to name their owner.
    pub fetch_owner: bool,
}

/// Options of a request that reads an object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GetOptions {
    /// Bytes of it. `None`: all.
    pub range: Option<ByteRange>,
    /// Conditions of the read.
    pub conditions: ReadConditions,
    /// Headers of the response that the caller sets.
    pub overrides: ResponseOverrides,
    /// One part of an object that came in parts.
    pub part: Option<u16>,
    /// Checksums are to be shown.
    pub shows_checksums: bool,
}

/// Conditions of a read, in the order of RFC 9110.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadConditions {
    /// Condition of the header `If-Match`.
    pub if_match: Option<ETagList>,
    /// Condition of the header `If-None-Match`.
    pub if_none_match: Option<ETagList>,
    /// `If-Modified-Since`, in seconds since 1970.
    pub if_modified_since: Option<i64>,
    /// `If-Unmodified-Since`, in seconds since 1970.
    pub if_unmodified_since: Option<i64>,
}

/// Query parameters `response-*`: headers of the response in place of those of the object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResponseOverrides {
    /// Pairs of the header's name and its value, as they were sent.
    pub headers: Vec<(http::HeaderName, String)>,
}

/// The source of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    pub bucket: String,
    pub key: String,
    /// Conditions of the headers `x-amz-copy-source-if-*`.
    pub conditions: ReadConditions,
}

/// Headers of the content that are kept with an object and given back.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ContentHeaders {
    /// Value of the header `Content-Type`.
    pub content_type: Option<String>,
    /// `Cache-Control`, `Content-Disposition`, `Content-Encoding` (without `aws-chunked`), `Content-Language`, `Expires`, by their names in small letters.
    pub others: Vec<(String, String)>,
}

/// Headers of a request that writes an object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PutHeaders {
    /// Headers of the content.
    pub content: ContentHeaders,
    /// `x-amz-meta-*`, by the name behind that in small letters.
    pub user: Vec<(String, String)>,
    /// Tags of the header `x-amz-tagging`, decoded.
    pub tags: Vec<(String, String)>,
    /// The version that is to be replaced.
    pub condition: Option<WriteCondition>,
    /// Checksums that the caller sent in headers, and the MD5 of the body.
    pub expected: Expected,
    /// The checksum that the gateway is to compute (`x-amz-sdk-checksum-algorithm`, `x-amz-checksum-algorithm`, or the trailer's name).
    pub algorithm: Option<Algorithm>,
}
