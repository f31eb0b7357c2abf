//! Judges a ranked register by the answers of a quorum: the current version, and whether it is known to be chosen.
//!
//! A version that was chosen at a ballot was accepted by q members, of which at most n - r are not among the r that answer. Each
//! of the others lists it, at that ballot or at a later one of a settling proposal, until it knows that another version is chosen
//! at a larger ballot. So a version that fewer than q - (n - r) answers list is not chosen; nor will it be below a ballot that
//! these members have promised (`[W-5 current-version]`). Versions are counted at any ballot: after a settling proposal that
//! reached a minority, a chosen version is listed at different ones. The largest ballot decides, never the largest number: a
//! proposal that failed may have the larger number.

use crate::config::Configuration;
use crate::element::Value;
use crate::message::{Ballot, Lineage, RankedVersions};
use crate::tag::Tag;

/// The current version of a register, by the answers of a quorum.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CurrentVersion {
    pub tag: Tag,
    /// The largest ballot at which an answer lists it.
    pub ballot: Ballot,
    /// The ballot at which it is chosen, if these answers show that it is (`[W-5 current-version]`).
    pub chosen: Option<Ballot>,
    /// The answers show that the version on which it is based is chosen.
    pub(super) base_chosen: bool,
    /// It is a tombstone.
    pub deleted: bool,
    /// The lineage that it comes from.
    pub lineage: Lineage,
}

impl CurrentVersion {
    /// The current version of an object that was no register: its newest version, as if accepted at ballot 0
    /// (`[W-12 becoming-conditional]`).
    pub fn put(tag: Tag, value: Option<&Value>) -> CurrentVersion {
        assert!(
            value.is_some() || tag.is_initial(),
            "a version that was put has a value"
        );
        CurrentVersion {
            tag,
            deleted: value.is_some_and(|value| value.deleted),
            ..CurrentVersion::default()
        }
    }

    /// True if a new version may be based on this one before this one is settled: this version, or the one that it is based on, is known
    /// to be chosen (`[W-4 cap]`).
    pub fn may_be_followed(&self) -> bool {
        self.chosen.is_some() || self.base_chosen
    }

    /// This version as the first one of a later configuration, which has accepted nothing yet. There it is not known to be chosen; no
    /// version is chosen there before one that is based on it.
    #[must_use]
    pub fn inherited(self) -> CurrentVersion {
        CurrentVersion {
            chosen: None,
            base_chosen: true,
            ..self
        }
    }

    /// The version that this one, or an ancestor, is based on; the initial one if that is not known any more.
    pub fn before(&self, tag: Tag) -> Tag {
        if tag == self.tag {
            return self.lineage.base();
        }
        let mut ancestors = self.lineage.ancestors.iter();
        let found = ancestors.any(|it| it.tag == tag);
        let before = ancestors.next().filter(|_| found);
        before.map_or(Tag::INITIAL, |it| it.tag)
    }
}

/// The current version; `None` if the answers contradict each other, as those of damaged members may.
pub(super) fn current(c: &Configuration, answers: &[&RankedVersions]) -> Option<CurrentVersion> {
    let (quorum, answered) = (c.quorums().quorum(), answers.len());
    assert!(answered >= quorum, "the rule judges quorums");
    assert!(answered <= c.n(), "each member answers once");
    let threshold = quorum + answered - c.n();
    assert!(threshold >= c.quorums().intersection(), "two quorums meet");
    let listed = || answers.iter().flat_map(|answer| &answer.versions);
    let of = |tag: Tag| listed().filter(move |it| it.tag == tag);
    let eligible = listed().filter(|it| of(it.tag).count() >= threshold);
    let newest = eligible.max_by_key(|it| (it.ballot, it.tag));
    let known = answers.iter().map(|answer| answer.chosen).max();
    let known = known.expect("a quorum has a member");
    let Some(newest) = newest else {
        let current = CurrentVersion {
            chosen: Some(known.ballot),
            ..CurrentVersion::default()
        };
        return known.tag.is_initial().then_some(current);
    };
    if newest.tag != known.tag && newest.ballot < known.ballot {
        return None;
    }
    let at = |tag: Tag, ballot: Ballot| of(tag).filter(|it| it.ballot == ballot).count();
    let at_quorum = |tag: Tag| {
        let mut ballots = of(tag).map(|it| it.ballot);
        ballots.find(|ballot| at(tag, *ballot) >= quorum)
    };
    let confirmed = (newest.tag == known.tag).then_some(known.ballot);
    let base = newest.lineage.base();
    Some(CurrentVersion {
        tag: newest.tag,
        ballot: newest.ballot,
        chosen: at_quorum(newest.tag).max(confirmed),
        base_chosen: base == known.tag || at_quorum(base).is_some(),
        deleted: newest.deleted,
        lineage: newest.lineage.clone(),
    })
}

#[cfg(test)]
mod tests;
