//! The marks of an object beside its versions.

use crate::tag::Tag;

/// Tags that are remembered of an object beside its versions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// The largest tag evicted.
    pub floor: Tag,
    /// The largest tag confirmed.
    pub stable: Tag,
    /// The largest tag known to be confirmed at a quorum; only where servers gossip, and at most `stable`.
    pub complete: Tag,
    /// The fence, if it has one.
    pub fence: Option<Fence>,
}

impl Marks {
    /// True if they say a floor and nothing else.
    pub(super) fn only_floor(&self) -> bool {
        self.fence.is_none() && self.stable.is_initial()
    }

    /// True if some execution produces these (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        let fence = self.fence.iter();
        let fenced = fence.flat_map(|fence| fence.held.iter().chain([&fence.upto, &fence.spared]));
        fenced
            .chain([&self.floor, &self.stable])
            .all(Tag::is_possible)
            && self.complete <= self.stable
    }
}

/// A limit to new versions (`[X-3 unconfirmed-cap]`): versions up to a tag are taken in only if they are confirmed or
/// decided to be kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fence {
    /// Up to which tag. A later fence of the object reaches further, because the one before ended at a confirmed version.
    pub upto: Tag,
    /// Counts the changes behind it: of two records that say how far it reaches, the later is true.
    pub turn: u64,
    /// A version up to it that is let through.
    pub spared: Tag,
    /// The versions up to it that are here, ascending: one that was dropped and whose record comes back is not among them.
    pub held: Vec<Tag>,
}
