//! Lists of buckets, objects and versions.

use super::Owner;
use super::writer::{Writer, checksum_type, document};
use crate::body::checksum::Algorithm;
use crate::wire::request::{ListObjects, ListStyle};

/// A bucket of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    pub name: String,
    /// The time when it was created, in milliseconds since 1970.
    pub created_ms: i64,
}

/// An object of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEntry {
    pub key: String,
    /// The time when it was written, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its `ETag`, without quotation marks.
    pub etag: String,
    /// Size in bytes.
    pub size: u64,
    /// The checksum that is kept with it, if there is one.
    pub checksum: Option<ChecksumKind>,
}

/// A checksum, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumKind {
    pub algorithm: Algorithm,
    /// True if it is of all bytes; false if of the parts' checksums.
    pub is_full_object: bool,
}

/// A page of a list of objects or versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    pub bucket: &'a str,
    /// The request, whose parameters the document repeats.
    pub request: &'a ListObjects,
    /// Objects, in the order of their keys.
    pub entries: &'a [ObjectEntry],
    /// Prefixes that stand for keys, in their order.
    pub common_prefixes: &'a [String],
    /// The marker of the next page (V1, versions: a key or prefix) or its token (V2). `None`: this page is the last one.
    pub next: Option<&'a str>,
    /// The owner of all of it.
    pub owner: &'a Owner,
}

/// Writes a `ListAllMyBucketsResult` document.
pub fn buckets(owner: &Owner, buckets: &[BucketEntry]) -> String {
    document("ListAllMyBucketsResult", |writer| {
        writer.owner("Owner", owner);
        writer.within("Buckets", |writer| {
            for bucket in buckets {
                writer.within("Bucket", |writer| {
                    writer.element("Name", &bucket.name);
                    writer.time("CreationDate", bucket.created_ms);
                });
            }
        });
    })
}

/// `ListBucketResult`, in the form that the request asks for.
///
/// `NextMarker` is there on every page but the last one: Amazon leaves it out without a delimiter, where clients take the last key instead, and a page
/// here may have no key.
pub fn objects(page: &Page) -> String {
    let request = page.request;
    document("ListBucketResult", |writer| {
        writer.element("Name", page.bucket);
        writer.encoding(request.url_encoding);
        writer.key("Prefix", &request.prefix);
        match request.style {
            ListStyle::V1 => {
                writer.key("Marker", &request.after);
                if let Some(next) = page.next {
                    writer.key("NextMarker", next);
                }
            }
            ListStyle::V2 => {
                if !request.after.is_empty() {
                    writer.key("StartAfter", &request.after);
                }
                writer.optional("ContinuationToken", request.token.as_ref());
                writer.optional("NextContinuationToken", page.next);
                let count = page.entries.len() + page.common_prefixes.len();
                writer.element("KeyCount", count);
            }
        }
        limits(page, writer);
        for entry in page.entries {
            writer.within("Contents", |writer| {
                object(entry, writer);
                if request.fetch_owner {
                    writer.owner("Owner", page.owner);
                }
            });
        }
        writer.common_prefixes(page.common_prefixes);
    })
}

/// `ListVersionsResult`: each object has one version, `null`.
pub fn versions(page: &Page) -> String {
    let request = page.request;
    document("ListVersionsResult", |writer| {
        writer.element("Name", page.bucket);
        writer.encoding(request.url_encoding);
        writer.key("Prefix", &request.prefix);
        writer.key("KeyMarker", &request.after);
        writer.element("VersionIdMarker", "");
        if let Some(next) = page.next {
            writer.key("NextKeyMarker", next);
            writer.element("NextVersionIdMarker", "null");
        }
        limits(page, writer);
        for entry in page.entries {
            writer.within("Version", |writer| {
                writer.element("VersionId", "null");
                writer.element("IsLatest", true);
                object(entry, writer);
                writer.owner("Owner", page.owner);
            });
        }
        writer.common_prefixes(page.common_prefixes);
    })
}

fn limits(page: &Page, writer: &mut Writer) {
    writer.element("MaxKeys", page.request.max_keys);
    if !page.request.delimiter.is_empty() {
        writer.key("Delimiter", &page.request.delimiter);
    }
    writer.element("IsTruncated", page.next.is_some());
}

fn object(entry: &ObjectEntry, writer: &mut Writer) {
    writer.key("Key", &entry.key);
    writer.time("LastModified", entry.modified_ms);
    writer.etag(&entry.etag);
    if let Some(checksum) = entry.checksum {
        writer.element("ChecksumAlgorithm", checksum.algorithm.word());
        writer.element("ChecksumType", checksum_type(checksum.is_full_object));
    }
    writer.element("Size", entry.size);
    writer.element("StorageClass", "STANDARD");
}
