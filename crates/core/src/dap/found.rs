//! The inputs and results of a read.

use crate::config::{Configuration, ServerId};
use crate::element::{Element, Value};
use crate::error::{LostVersion, Response, Unavailable};
use crate::object::Name;
use crate::tag::Tag;
use std::cmp::Ordering;
use std::sync::Arc;

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

/// A version and its elements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CollectedVersion {
    pub(super) tag: Tag,
    /// Enough elements of the version, each from another member; none if the caller has the value or wants none, or it is the
    /// initial one.
    pub(super) elements: Vec<Element>,
    /// If the elements are too few and the caller needs more: for each member whether it sent one of them. The round
    /// that finalizes the version brings the other elements ([`super::cas`]).
    pub(super) lacking: Option<Vec<bool>>,
    /// The loss of the version, if by these answers there are not enough elsewhere either.
    pub(super) loss: Option<Box<Loss>>,
    pub(super) complete: bool,
    pub(super) holders: Vec<bool>,
    pub(super) damaged: bool,
    pub(super) unaware: bool,
    pub(super) fence: Tag,
}

/// A version that no reader can read, however many more members answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Loss {
    pub(super) tag: Tag,
    /// Elements of it that are left.
    pub(super) found: usize,
    /// Elements that make the value.
    pub(super) needed: usize,
    pub(super) responses: Vec<Response>,
}

impl Loss {
    pub(super) fn error(self, c: &Arc<Configuration>, name: &Name) -> Unavailable {
        let lost = LostVersion {
            name: name.clone(),
            tag: self.tag,
            found: self.found,
            needed: self.needed,
        };
        Unavailable::lost(c, lost, self.responses)
    }
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

impl CollectedVersion {
    /// True if it is known to be at a quorum, and its elements are enough.
    pub(super) fn is_finished(&self) -> bool {
        self.complete && self.lacking.is_none()
    }
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
