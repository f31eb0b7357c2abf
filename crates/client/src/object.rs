//! Objects as users see them.

use crate::shape::Shape;
use crate::view;
use areo_core::config::ServerId;
use areo_core::dsm::holdings::MemberHolding;
use areo_core::limits;
use areo_core::tag::Tag as Version;
use bytes::Bytes;
use serde::{Serialize, Serializer};
use std::fmt;
use std::string::FromUtf8Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use areo_core::object::{Blocks, Etag, Manifest, Metadata};

/// Options of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOptions {
    /// MIME type, up to 256 bytes.
    pub content_type: Option<String>,
    /// Pairs of the user's own, up to 2 KiB together (names and values).
    pub user_metadata: Vec<(String, String)>,
    /// The ETag of the content, which listings show. Areo keeps it and never compares it.
    pub etag: Option<Etag>,
    /// The time that is kept as that of the write, in milliseconds since 1970: that of an earlier version of the content, if only its metadata change. `None`: the present.
    pub written_at_ms: Option<u64>,
    /// Values longer than this are written in blocks of this length, in bytes: 4 MiB by default, 4 KiB to 64 MiB. Servers
    /// may take less.
    pub block_bytes: u32,
    /// In a conditional domain, the caller's name for the request: when it is sent again with the same name it succeeds again, and
    /// writes nothing, while fewer than 16 versions came after it. Elsewhere it means nothing. 0 is no name.
    pub request: u128,
}

impl Default for PutOptions {
    fn default() -> PutOptions {
        PutOptions {
            content_type: None,
            user_metadata: Vec::new(),
            etag: None,
            written_at_ms: None,
            block_bytes: limits::DEFAULT_BLOCK_BYTES,
            request: 0,
        }
    }
}

/// An object with its value: one version of it, whole and verified against its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The version that was read.
    pub version: Version,
    /// Content type, entity tag, checksum, user pairs and time of the write.
    pub metadata: Metadata,
    /// The length of the value in bytes.
    pub length: u64,
    /// The value, in order, in the pieces that it came in, without a copy. Of a small or replicated value there is
    /// one (none if it is empty), of an erasure-coded one usually `k`.
    pub content: Vec<Bytes>,
}

impl Object {
    /// The value in one piece; copies only if it came in several.
    pub fn into_bytes(self) -> Bytes {
        self.bytes()
    }

    /// The value in one piece, and the object is kept: see [`Object::into_bytes`]. A value of one piece is shared, not copied.
    pub fn bytes(&self) -> Bytes {
        match self.content.as_slice() {
            [] => Bytes::new(),
            [piece] => piece.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// The value as text.
    ///
    /// # Errors
    /// The first byte that is not UTF-8.
    pub fn text(&self) -> Result<String, FromUtf8Error> {
        String::from_utf8(self.bytes().into())
    }

    /// Time of the write by the writer's clock; informational.
    pub fn written_at(&self) -> Option<SystemTime> {
        written_at(&self.metadata)
    }
}

/// Everything of an object but its value. Serialised with `length` as `bytes`, and with `metadata` and `shape` in their parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectInfo {
    /// The version that the information is about.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
    /// The length of the value in bytes.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// Content type, entity tag, checksum, user pairs and time of the write.
    #[serde(flatten, serialize_with = "metadata")]
    pub metadata: Metadata,
    /// Index of the configuration that holds it.
    pub configuration: u32,
    /// Shape of that configuration.
    #[serde(flatten, serialize_with = "dap_n_k")]
    pub shape: Shape,
    /// The element that each server of the configuration should hold, in the order of the member list; after
    /// [`Domain::inspect`](crate::Domain::inspect) with the element that it holds.
    pub placement: Vec<Placement>,
}

impl ObjectInfo {
    /// Time of the write by the writer's clock; informational.
    pub fn written_at(&self) -> Option<SystemTime> {
        written_at(&self.metadata)
    }
}

/// Metadata in its parts: those of the blocks, the user's pairs as an object, the checksum in hexadecimal.
fn metadata<S: Serializer>(metadata: &Metadata, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts<'a> {
        blocks: Option<u64>,
        block_bytes: Option<u32>,
        content_type: Option<&'a str>,
        etag: Option<&'a str>,
        #[serde(serialize_with = "view::pairs")]
        metadata: &'a [(String, String)],
        checksum: Option<String>,
        written_at_ms: Option<u64>,
    }
    let parts = Parts {
        blocks: metadata.blocks.as_ref().map(Manifest::count),
        block_bytes: metadata.blocks.as_ref().map(Manifest::block_bytes),
        content_type: metadata.content_type.as_deref(),
        etag: metadata.etag.as_ref().map(Etag::as_str),
        metadata: &metadata.user,
        checksum: metadata.checksum.map(|checksum| format!("{checksum:08x}")),
        written_at_ms: metadata.written_at_ms,
    };
    parts.serialize(serializer)
}

/// A shape, without the values that follow from it.
fn dap_n_k<S: Serializer>(shape: &Shape, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts {
        dap: String,
        n: usize,
        k: usize,
    }
    let parts = Parts {
        dap: shape.dap().to_string(),
        n: shape.n(),
        k: shape.k(),
    };
    parts.serialize(serializer)
}

/// The present time as metadata carries it: milliseconds since 1970. `None` before that.
pub(crate) fn now_ms() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(now.as_millis()).ok()
}

fn written_at(metadata: &Metadata) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(metadata.written_at_ms?))
}

/// The element that one server is to hold of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The name of the server; serialised as `server`.
    #[serde(rename = "server")]
    pub name: String,
    /// Its id; serialised as `id`.
    #[serde(rename = "id", serialize_with = "view::text")]
    pub server: ServerId,
    /// Index of its element, from 0; rotates over the objects (`[X-6 rotating-index]`).
    pub element: u8,
    /// The role of that element.
    pub role: ElementRole,
    /// The version that the server holds; `None` if it was not asked.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Holds>,
}

/// The state of a version at a server. Serialised as `holds`, and as `version` where it is of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "holds", rename_all = "lowercase")]
pub enum Holds {
    /// Its element of the version.
    Element,
    /// No element of it; the newest element is of another version.
    Other {
        /// The version of that element.
        #[serde(serialize_with = "view::text")]
        version: Version,
    },
    /// No element of any version: it was away when the object was written, or its disk was replaced.
    Missing,
    /// A damaged version: the server abstains until a read or a write repairs it.
    Damaged,
    /// Nothing of this configuration any more: it knows a later one.
    Superseded,
    /// Unknown: it did not answer in time, or refused.
    Unknown,
}

impl From<MemberHolding> for Holds {
    fn from(holding: MemberHolding) -> Holds {
        match holding {
            MemberHolding::Version => Holds::Element,
            MemberHolding::Other(version) => Holds::Other { version },
            MemberHolding::Nothing => Holds::Missing,
            MemberHolding::Damaged => Holds::Damaged,
            MemberHolding::Superseded => Holds::Superseded,
            MemberHolding::Silent | MemberHolding::Refused(_) => Holds::Unknown,
        }
    }
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holds::Element => f.write_str("held"),
            Holds::Other { version } => write!(f, "MISSING, holds version {version}"),
            Holds::Missing => f.write_str("MISSING"),
            Holds::Damaged => f.write_str("DAMAGED"),
            Holds::Superseded => f.write_str("has a later configuration"),
            Holds::Unknown => f.write_str("no answer"),
        }
    }
}

/// The role of an element in its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementRole {
    /// The whole value, as a copy.
    Copy,
    /// A piece of the value itself.
    Data,
    /// Computed from the whole value.
    Parity,
}

impl fmt::Display for ElementRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementRole::Copy => "copy",
            ElementRole::Data => "data",
            ElementRole::Parity => "parity",
        })
    }
}

/// One page of a listing, in order of the keys (by bytes).
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Page {
    /// The objects. May be fewer than asked for, even none, although there is a next page.
    pub entries: Vec<Entry>,
    /// The common beginnings of keys up to the delimiter, in order; of each there is at least one object.
    pub prefixes: Vec<String>,
    /// List on after this key, or common prefix; `None`: this was the last page.
    pub next: Option<String>,
}

/// Options of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Objects whose keys begin so.
    pub prefix: String,
    /// Keys are larger than this (by bytes). [`Page::next`] of the page before.
    pub after: String,
    /// Keys with this text behind the prefix are listed as one: as their common beginning up to that text. Usually
    /// `/`; empty: all keys are listed.
    pub delimiter: String,
    /// The most objects and common prefixes of a page; 1 to 1000.
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> ListOptions {
        ListOptions {
            prefix: String::new(),
            after: String::new(),
            delimiter: String::new(),
            limit: limits::PAGE_ENTRIES,
        }
    }
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Key of the object.
    pub key: String,
    /// Newest version of the object.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
    /// The length of its value in bytes; serialised as `bytes`.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// The ETag that its writer gave it ([`PutOptions::etag`]).
    pub etag: Option<String>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
    /// It cannot be read as things are, because it is damaged: its length is not known, and it may have been deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(content: Vec<Bytes>) -> Object {
        Object {
            version: Version::INITIAL,
            metadata: Metadata::default(),
            length: content.iter().map(|piece| piece.len() as u64).sum(),
            content,
        }
    }

    #[test]
    fn one_piece_is_not_copied() {
        let piece = Bytes::from(vec![7; 100]);
        let bytes = object(vec![piece.clone()]).into_bytes();
        assert_eq!(bytes.as_ptr(), piece.as_ptr());
        assert_eq!(object(Vec::new()).into_bytes(), Bytes::new());
        let pieces = [b"ab".as_slice(), b"c"].map(Bytes::from_static);
        assert_eq!(object(pieces.to_vec()).into_bytes(), "abc");
    }

    #[test]
    fn a_value_is_text_if_all_of_it_is() {
        let cut = ["na\u{ef}ve".as_bytes(), b"!"].concat();
        let pieces = [
            Bytes::copy_from_slice(&cut[..3]),
            Bytes::copy_from_slice(&cut[3..]),
        ];
        assert_eq!(object(pieces.to_vec()).text().as_deref(), Ok("na\u{ef}ve!"));
        let refused = object(pieces[..1].to_vec()).text();
        assert_eq!(
            refused.map_err(|error| error.utf8_error().valid_up_to()),
            Err(2)
        );
        assert_eq!(object(Vec::new()).text().as_deref(), Ok(""));
    }

    #[test]
    fn times_are_milliseconds() {
        let mut read = object(Vec::new());
        assert_eq!(read.written_at(), None);
        read.metadata.written_at_ms = Some(1500);
        assert_eq!(
            read.written_at(),
            Some(UNIX_EPOCH + Duration::from_millis(1500))
        );
        read.metadata.written_at_ms = Some(u64::MAX);
        let _any_clock_can_be_wrong = read.written_at();
    }
}
