//! Uploads in parts.

use super::Owner;
use super::list::ChecksumKind;
use super::tree::{Element, digits, malformed, read};
use super::writer::{Writer, checksum_type, document};
use crate::body::checksum::{Algorithm, Checksum};
use crate::wire::error::{Code, S3Error};
use crate::wire::etag::bare;
use crate::wire::parse::LAST_PART;

/// A part that a caller lists at the end of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedPart {
    /// 1 to 10 000.
    pub part: u16,
    /// Its `ETag`, without quotation marks.
    pub etag: String,
    /// Its checksum, if the caller says it.
    pub checksum: Option<Checksum>,
}

/// A part of an upload, or of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartEntry {
    /// 1 to 10 000.
    pub part: u16,
    /// Its `ETag`, without quotation marks.
    pub etag: String,
    /// The time when it came, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Size in bytes.
    pub size: u64,
    /// Its checksum, if one is kept.
    pub checksum: Option<Checksum>,
}

/// Reads `CompleteMultipartUpload`: 1 to 10 000 parts in ascending order.
///
/// # Errors
/// [`Code::MalformedXML`], [`Code::InvalidPartOrder`], [`Code::InvalidArgument`]: a part has a number or an `ETag` that no part has,
/// [`Code::InvalidDigest`]: a checksum cannot be read.
pub fn read_complete(body: &[u8]) -> Result<Vec<CompletedPart>, S3Error> {
    let mut root = read(body, "CompleteMultipartUpload")?;
    let listed = root.take_all("Part");
    root.finish()?;
    if listed.is_empty() || listed.len() > usize::from(LAST_PART) {
        let sentence = format!("{} parts are listed: send 1 to {LAST_PART}", listed.len());
        return Err(malformed(sentence));
    }
    let parts = listed.into_iter().map(completed_part);
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    if !parts.is_sorted_by(|a, b| a.part < b.part) {
        let sentence = "the parts are not in ascending order of their numbers";
        return Err(S3Error::new(Code::InvalidPartOrder, sentence));
    }
    Ok(parts)
}

fn completed_part(mut listed: Element) -> Result<CompletedPart, S3Error> {
    let number = digits("PartNumber", &listed.need_text("PartNumber")?)?;
    let part = u16::try_from(number).ok();
    let Some(part) = part.filter(|part| (1..=LAST_PART).contains(part)) else {
        let sentence = format!("PartNumber {number} is not valid: it is 1 to {LAST_PART}");
        return Err(S3Error::new(Code::InvalidArgument, sentence));
    };
    let etag = bare(listed.need_text("ETag")?.trim())?;
    let mut taken = None;
    for algorithm in Algorithm::ALL {
        let name = format!("Checksum{}", algorithm.word());
        if let Some(text) = listed.take_text(&name)? {
            if taken.is_some() {
                return Err(malformed("a part has two checksums: send one"));
            }
            taken = Some(Checksum::parse(algorithm, text.trim())?);
        }
    }
    listed.finish()?;
    Ok(CompletedPart {
        part,
        etag,
        checksum: taken,
    })
}

/// Writes an `InitiateMultipartUploadResult` document.
pub fn initiated(bucket: &str, key: &str, upload_id: &str) -> String {
    document("InitiateMultipartUploadResult", |writer| {
        writer.element("Bucket", bucket);
        writer.element("Key", key);
        writer.element("UploadId", upload_id);
    })
}

/// The result of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The URL of the object.
    pub location: String,
    pub bucket: String,
    pub key: String,
    /// Its `ETag`, without quotation marks.
    pub etag: String,
    /// Its checksum, if one is kept.
    pub checksum: Option<CompletedChecksum>,
}

/// The checksum of an object that came in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedChecksum {
    /// The bytes, of all parts or of the parts' checksums.
    pub checksum: Checksum,
    /// `None`: a checksum of all bytes. Otherwise the count of parts whose checksums it is of, which stands behind it as `-N`.
    pub parts: Option<u32>,
}

/// Writes a `CompleteMultipartUploadResult` document.
pub fn completed(completed: &Completed) -> String {
    document("CompleteMultipartUploadResult", |writer| {
        writer.element("Location", &completed.location);
        writer.element("Bucket", &completed.bucket);
        writer.element("Key", &completed.key);
        writer.etag(&completed.etag);
        if let Some(checksum) = &completed.checksum {
            writer.composite(&checksum.checksum, checksum.parts);
            writer.element("ChecksumType", checksum_type(checksum.parts.is_none()));
        }
    })
}

/// A page of the parts of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsPage<'a> {
    pub bucket: &'a str,
    pub key: &'a str,
    pub upload_id: &'a str,
    /// Parts behind this one are listed.
    pub marker: u16,
    /// The most parts of a page.
    pub max_parts: usize,
    /// True if there are more.
    pub is_truncated: bool,
    /// The parts of this page.
    pub parts: &'a [PartEntry],
    /// The checksum that the object will have, if one is kept.
    pub checksum: Option<ChecksumKind>,
    /// The key is to be percent-encoded.
    pub url_encoding: bool,
    /// The owner of the object, and the one who began the upload.
    pub owner: &'a Owner,
}

/// Writes a `ListPartsResult` document.
pub fn parts(page: &PartsPage) -> String {
    document("ListPartsResult", |writer| {
        writer.element("Bucket", page.bucket);
        writer.encoding(page.url_encoding);
        writer.key("Key", page.key);
        writer.element("UploadId", page.upload_id);
        writer.owner("Initiator", page.owner);
        writer.owner("Owner", page.owner);
        writer.element("StorageClass", "STANDARD");
        kind(page.checksum, writer);
        writer.element("PartNumberMarker", page.marker);
        let last = page.parts.last().map_or(page.marker, |part| part.part);
        writer.element("NextPartNumberMarker", last);
        writer.element("MaxParts", page.max_parts);
        writer.element("IsTruncated", page.is_truncated);
        for part in page.parts {
            writer.within("Part", |writer| {
                writer.element("PartNumber", part.part);
                writer.time("LastModified", part.modified_ms);
                writer.etag(&part.etag);
                writer.element("Size", part.size);
                writer.checksum(part.checksum.as_ref());
            });
        }
    })
}

fn kind(checksum: Option<ChecksumKind>, writer: &mut Writer) {
    if let Some(checksum) = checksum {
        writer.element("ChecksumAlgorithm", checksum.algorithm.word());
        writer.element("ChecksumType", checksum_type(checksum.is_full_object));
    }
}

/// An upload that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadEntry {
    /// The key of the object.
    pub key: String,
    pub upload_id: String,
    /// The time when it was begun, in milliseconds since 1970.
    pub initiated_ms: i64,
    /// The checksum that the object will have, if one is kept.
    pub checksum: Option<ChecksumKind>,
}

/// A page of the uploads of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadsPage<'a> {
    pub bucket: &'a str,
    /// Only keys with this prefix are listed.
    pub prefix: &'a str,
    /// Keys with this behind the prefix are listed once.
    pub delimiter: &'a str,
    /// Uploads of keys behind this one are listed.
    pub key_marker: &'a str,
    /// Uploads of the key `key_marker` are listed behind this one.
    pub upload_id_marker: &'a str,
    /// The most uploads of a page.
    pub max_uploads: usize,
    /// Keys are to be percent-encoded.
    pub url_encoding: bool,
    /// The uploads of this page.
    pub uploads: &'a [UploadEntry],
    /// Prefixes that stand for keys, in their order.
    pub common_prefixes: &'a [String],
    /// The key and the upload behind which the next page begins. `None`: this page is the last one.
    pub next: Option<(&'a str, &'a str)>,
    /// The owner of all of it.
    pub owner: &'a Owner,
}

/// Writes a `ListMultipartUploadsResult` document.
pub fn uploads(page: &UploadsPage) -> String {
    document("ListMultipartUploadsResult", |writer| {
        writer.element("Bucket", page.bucket);
        writer.encoding(page.url_encoding);
        writer.key("KeyMarker", page.key_marker);
        writer.element("UploadIdMarker", page.upload_id_marker);
        if let Some((key, upload_id)) = page.next {
            writer.key("NextKeyMarker", key);
            writer.element("NextUploadIdMarker", upload_id);
        }
        writer.key("Prefix", page.prefix);
        if !page.delimiter.is_empty() {
            writer.key("Delimiter", page.delimiter);
        }
        writer.element("MaxUploads", page.max_uploads);
        writer.element("IsTruncated", page.next.is_some());
        for upload in page.uploads {
            writer.within("Upload", |writer| {
                writer.key("Key", &upload.key);
                writer.element("UploadId", &upload.upload_id);
                writer.owner("Initiator", page.owner);
                writer.owner("Owner", page.owner);
                writer.element("StorageClass", "STANDARD");
                writer.time("Initiated", upload.initiated_ms);
                kind(upload.checksum, writer);
            });
        }
        writer.common_prefixes(page.common_prefixes);
    })
}
