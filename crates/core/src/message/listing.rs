//! Listings, page by page.

use crate::limits;
use crate::object::{Etag, Kind, Name};
use crate::tag::Tag;

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListRequest {
    /// Objects of this kind.
    pub kind: Kind,
    /// Whose keys begin so.
    pub prefix: String,
    /// And are larger than this. One that is a common prefix itself: larger than all keys that begin so.
    pub after: String,
    /// Keys that have this in common up to its first occurrence behind the prefix are listed as one ([`ListRequest::common_prefix`]);
    /// empty: each is listed.
    pub delimiter: String,
    /// At most so many, and never more than [`crate::limits::PAGE_ENTRIES`].
    pub limit: u16,
}

impl ListRequest {
    /// All objects of this kind whose keys begin so, the first page of them.
    pub fn new(kind: Kind, prefix: &str) -> ListRequest {
        ListRequest {
            kind,
            prefix: prefix.into(),
            after: String::new(),
            delimiter: String::new(),
            limit: limits::PAGE_ENTRIES as u16,
        }
    }

    /// True if a server may answer with this page: all keys are of objects of the kind. The bytes of a page do not say which kind it is of.
    pub fn may_list(&self, page: &ListPage) -> bool {
        let mut keys = page.entries.iter().map(|entry| &entry.key);
        keys.all(|key| Name::check(self.kind, key).is_ok())
    }

    /// What the key is listed under, if not by itself: its beginning up to the delimiter.
    pub fn common_prefix<'a>(&self, key: &'a str) -> Option<&'a str> {
        let rest = key.strip_prefix(self.prefix.as_str())?;
        let at = match self.delimiter.as_str() {
            "" => None,
            delimiter => rest.find(delimiter),
        };
        let common = at.map(|at| &key[..self.prefix.len() + at + self.delimiter.len()]);
        assert!(
            common.is_none_or(|common| common > self.prefix.as_str()),
            "it goes on"
        );
        common
    }

    /// What the key is listed as: in the order of these names pages follow each other.
    pub fn listed_as<'a>(&self, key: &'a str) -> &'a str {
        self.common_prefix(key).unwrap_or(key)
    }
}

/// A page of the objects that a server holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPage {
    /// By key, tombstones included (`[X-18 tombstone-versions]`). Of the keys with a common prefix there is one: the first that is
    /// no tombstone and not damaged, if there is any, and the first otherwise.
    pub entries: Vec<ListEntry>,
    /// There are more after the last entry.
    pub truncated: bool,
}

/// One object of a listing: its largest stored version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEntry {
    /// The key.
    pub key: String,
    /// The version.
    pub tag: Tag,
    /// Its length.
    pub length: u64,
    /// What its writer called its content, if anything.
    pub etag: Option<Etag>,
    /// When it was written, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
    /// For how many seconds this server has had it at least, by the server's own clock. That of a version that it had when it
    /// was started counts from the start.
    pub age_s: u32,
    /// It is a tombstone.
    pub deleted: bool,
    /// This server cannot speak for the object until it is repaired: it counts in no quorum (`[X-11 damage-abstains]`).
    pub damaged: bool,
    /// The server knows that the version is complete and has no element of it, so that it knows nothing else of the version
    /// (`[CAS-8 finalized-listing]`).
    pub absent: bool,
}
