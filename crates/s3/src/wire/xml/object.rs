//! Documents of an object.

use super::multipart::PartEntry;
use super::writer::{Writer, checksum_type, document};
use crate::body::checksum::Checksum;

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The `ETag` of the copy, without quotation marks.
    pub etag: String,
    /// The time when it was written, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its checksum, if one is kept.
    pub checksum: Option<Checksum>,
    /// True if that is of all bytes; false if of the parts' checksums. For a part it counts for nothing.
    pub is_full_object: bool,
}

/// Writes a `CopyObjectResult` document.
pub fn copied(copied: &Copied) -> String {
    document("CopyObjectResult", |writer| {
        copy(copied, writer);
        if copied.checksum.is_some() {
            writer.element("ChecksumType", checksum_type(copied.is_full_object));
        }
    })
}

/// Writes a `CopyPartResult` document.
pub fn copied_part(copied: &Copied) -> String {
    document("CopyPartResult", |writer| copy(copied, writer))
}

fn copy(copied: &Copied, writer: &mut Writer) {
    writer.time("LastModified", copied.modified_ms);
    writer.etag(&copied.etag);
    writer.checksum(copied.checksum.as_ref());
}

/// The attributes of an object that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    /// `ETag`, without quotation marks.
    pub etag: Option<String>,
    /// `Checksum`, and true if it is of all bytes.
    pub checksum: Option<(Checksum, bool)>,
    /// `ObjectParts`: a page of the object's parts.
    pub parts: Option<AttributeParts>,
    /// `StorageClass`: true if it was asked for.
    pub shows_storage_class: bool,
    /// `ObjectSize`: size of the object in bytes.
    pub size: Option<u64>,
}

/// Parts of an object that came in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeParts {
    /// All parts of the object.
    pub total: u32,
    /// Parts behind this one are listed.
    pub marker: u16,
    /// The most parts of a page.
    pub max_parts: usize,
    /// True if there are more.
    pub is_truncated: bool,
    /// The parts of this page.
    pub parts: Vec<PartEntry>,
}

/// Writes a `GetObjectAttributesResponse` document.
pub fn attributes(attributes: &Attributes) -> String {
    document("GetObjectAttributesResponse", |writer| {
        // This document alone has the ETag without quotation marks.
        writer.optional("ETag", attributes.etag.as_ref());
        if let Some((checksum, is_full_object)) = &attributes.checksum {
            writer.within("Checksum", |writer| {
                writer.checksum(Some(checksum));
                writer.element("ChecksumType", checksum_type(*is_full_object));
            });
        }
        if let Some(parts) = &attributes.parts {
            writer.within("ObjectParts", |writer| object_parts(parts, writer));
        }
        let class = attributes.shows_storage_class.then_some("STANDARD");
        writer.optional("StorageClass", class);
        writer.optional("ObjectSize", attributes.size);
    })
}

fn object_parts(parts: &AttributeParts, writer: &mut Writer) {
    writer.element("PartsCount", parts.total);
    writer.element("PartNumberMarker", parts.marker);
    let last = parts.parts.last().map_or(parts.marker, |part| part.part);
    writer.element("NextPartNumberMarker", last);
    writer.element("MaxParts", parts.max_parts);
    writer.element("IsTruncated", parts.is_truncated);
    for part in &parts.parts {
        writer.within("Part", |writer| {
            writer.element("PartNumber", part.part);
            writer.element("Size", part.size);
            writer.checksum(part.checksum.as_ref());
        });
    }
}
