//! Listings, page by page.

use crate::limits;
use crate::object::{Etag, Kind, Name};
use crate::tag::Tag;

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListRequest {
    pub kind: Kind,
    /// Only keys with this prefix.
    pub prefix: String,
    /// Only keys greater than this one; empty: from the first. After a common prefix
    /// ([`ListRequest::common_prefix`]), only keys greater than all that begin with it.
    pub after: String,
    /// Keys that have this in common up to its first occurrence behind the prefix are listed as one ([`ListRequest::common_prefix`]);
    /// empty: each is listed.
    pub delimiter: String,
    /// Maximum number of entries, and never more than [`crate::limits::PAGE_ENTRIES`].
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

    /// The common prefix under which the key is listed: its beginning up to the delimiter. `None`: the key is listed
    /// by itself.
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

    /// The name under which the key is listed. Pages follow the order of these names.
    pub fn listed_as<'a>(&self, key: &'a str) -> &'a str {
        self.common_prefix(key).unwrap_or(key)
    }
}

/// A page of the objects that a server holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPage {
    /// Entries by key, tombstones included (`[X-18 tombstone-versions]`). Keys with a common prefix have one entry:
    /// the first that is no tombstone and not damaged, or the first if there is none.
    pub entries: Vec<ListEntry>,
    /// There are more after the last entry.
    pub truncated: bool,
}

/// One object of a listing: its largest stored version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEntry {
    pub key: String,
    pub tag: Tag,
    /// Length of the value in bytes.
    pub length: u64,
    /// The entity tag that its writer gave, if any.
    pub etag: Option<Etag>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
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
