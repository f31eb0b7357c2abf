//! The inputs and results of a read.

use crate::config::ServerId;
use crate::element::Value;
use crate::tag::Tag;
use std::cmp::Ordering;

/// A version that the caller has already: it will not be sent again (`have`, 1.1 and `[EC-4 known-not-sent]`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedVersion {
    pub tag: Tag,
    /// Its value; `None` stands for the initial value.
    pub value: Option<Value>,
}

/// The part of a value that a get-data returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The whole value.
    Whole,
    /// Everything but the content. [`FoundVersion::length`] is that of the content all the same.
    Metadata,
    /// The tag alone: neither a value nor its length.
    Version,
}

/// Versions that a read does not return although it could read them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PassedVersions {
    /// It was decided that these never come to a quorum here ([`crate::consensus::fate`]).
    pub dropped: Vec<Tag>,
    /// Members have no room for the write-back of these. An older version may be returned in their place if the answers show
    /// that none of them is at a quorum.
    pub unplaced: Vec<Tag>,
    /// Rather the other way round: where a cap holds versions back that no round has finalized, they count, too. The caller
    /// puts what it finds ([`super::casss`]).
    pub finishes: bool,
    /// Nor is anything passed over because it is at few members: these are known to list a version, and are waited for although
    /// others make a quorum (`[X-26 self-repair]`).
    pub awaited: Vec<ServerId>,
}

/// The version that get-data found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundVersion {
    pub tag: Tag,
    /// Its value; `None` if the object was never written. Without content if the scope was [`Scope::Metadata`].
    pub value: Option<Value>,
    /// Length of the content in bytes.
    pub length: u64,
    /// The version is at a quorum, so that a read may return it without writing it back (`[F-1 quorum-agrees]`,
    /// `[F-3 confirmed-tag]`).
    pub complete: bool,
    /// Members that hold it, by position: those need no write-back.
    pub holders: Vec<bool>,
    /// A member cannot speak for the object: a write-back repairs it, and is due even if the version is at a quorum
    /// (`[X-11 damage-abstains]`).
    pub damaged: bool,
    /// The version is at a quorum, and a member keeps older ones because nobody has told it: the confirmation was lost.
    pub unaware: bool,
    /// The highest fence that a member showed: a new version up to there would be held back (`[X-3 unconfirmed-cap]`).
    pub fence: Tag,
}

impl PassedVersions {
    /// True if the version is passed over.
    pub(super) fn contains(&self, tag: Tag) -> bool {
        self.dropped.contains(&tag) || self.unplaced.contains(&tag)
    }
}

impl FoundVersion {
    /// Adds the value of `other`, which was found elsewhere, to a version that was found with [`Scope::Version`].
    /// Returns a smaller version as it is, because no caller needs its value; `None` if this version is larger than
    /// `other`.
    pub fn with_value_of(self, other: &FoundVersion) -> Option<FoundVersion> {
        match self.tag.cmp(&other.tag) {
            Ordering::Less => Some(self),
            Ordering::Equal => Some(FoundVersion {
                value: other.value.clone(),
                length: other.length,
                ..self
            }),
            Ordering::Greater => None,
        }
    }
}
