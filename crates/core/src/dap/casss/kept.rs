//! The version of an object that a restart of counters keeps (`docs/spec` 2.11, `[CASSS-6 largest-decodable]`).

use crate::config::Configuration;
use crate::dap::ec::decodable;
use crate::message::{HeldVersions, ObjectReport};
use crate::tag::Tag;
use std::collections::BTreeSet;

/// A version that stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeptVersion {
    /// The tag under which members have it.
    pub(crate) from: Tag,
    /// Its tag from now on: the same, if that is possible (`[CASSS-5 impossible-renamed]`).
    pub(crate) to: Tag,
}

/// The version that stays after a restart, by the reports of all members: the largest readable version that a round
/// has finalized, or may have finalized. If there is none, the largest readable version, those with a possible tag
/// first. A version with an impossible tag takes the number after the largest number that any member knows. `None`:
/// no version can be read, or no number is left.
pub(crate) fn kept(c: &Configuration, told: &[&ObjectReport]) -> Option<KeptVersion> {
    assert_eq!(told.len(), c.members().len(), "all members have reported");
    let replies: Vec<&HeldVersions> = told.iter().map(|it| &it.held).collect();
    let tags = replies.iter().flat_map(|held| &held.stored);
    let tags: BTreeSet<Tag> = tags.map(|(tag, _)| *tag).collect();
    let readable = tags.iter().rev().copied();
    let readable = readable.filter(|tag| decodable(c, &replies, *tag));
    let readable: Vec<Tag> = readable.collect();
    let possible = || readable.iter().copied().filter(Tag::is_possible);
    let marks = replies.iter().map(|held| held.stable);
    let mark = marks.filter(Tag::is_possible).max().unwrap_or_default();
    // A member that abstains may have acknowledged it. Nothing is finalized before a quorum has.
    let may_hold = |told: &&&ObjectReport, tag| told.abstains || told.held.stores(tag);
    let quorum = c.quorums().quorum();
    let may_be_finalized =
        |tag: &Tag| *tag <= mark || told.iter().filter(|it| may_hold(it, *tag)).count() >= quorum;
    let stays = possible()
        .find(may_be_finalized)
        .or_else(|| possible().next());
    if let Some(tag) = stays {
        assert!(tag.is_possible(), "what a write is called stays");
        return Some(KeptVersion { from: tag, to: tag });
    }
    let from = *readable.first()?;
    assert!(!from.is_possible(), "of the others one would stay");
    let marks = replies
        .iter()
        .flat_map(|held| [held.floor, held.stable, held.fence, held.seen]);
    let known = marks.chain(tags).filter(Tag::is_possible);
    let to = Tag {
        number: known.map(|tag| tag.number).max().unwrap_or(0) + 1,
        writer: from.writer,
    };
    to.is_possible().then_some(KeptVersion { from, to })
}

#[cfg(test)]
mod tests;
