//! What became of the versions that an operation has put or proposed, as far as others say (`[W-6 ancestors]`).

use super::{Aim, Condition, OwnVersion, Proposer};
use crate::config::Configuration;
use crate::dap::conditional::CurrentVersion;
use crate::env::Env;
use crate::tag::Tag;
use std::cmp::Ordering;

/// What became of the versions that an operation has proposed.
pub(in super::super) enum Fate {
    /// This one is the current version, or an ancestor of it.
    Applied(Tag),
    /// None of them is.
    NotApplied,
    /// It cannot be seen.
    Unknown,
}

impl<E: Env> Proposer<'_, E> {
    /// What became of the versions that it proposed, as far as the current version of this configuration says (`[W-6 ancestors]`).
    pub(in super::super) fn fate(
        &self,
        current: &CurrentVersion,
        request: u128,
        c: &Configuration,
    ) -> Fate {
        let is_own = |tag: Tag, by: u128| {
            self.own.iter().any(|own| own.tag == tag) || (request != 0 && by == request)
        };
        if is_own(current.tag, current.lineage.request) {
            return Fate::Applied(current.tag);
        }
        let ancestors = &current.lineage.ancestors;
        if let Some(own) = ancestors.iter().find(|it| is_own(it.tag, it.request)) {
            return Fate::Applied(own.tag);
        }
        let is_lost = |own: &OwnVersion| match (self.put == Some(own.tag), own.era < c.era()) {
            (false, true) => fate_of_earlier(current, own.tag),
            (true, _) => self.fate_of_put(current, own.tag),
            (false, false) if current.lineage.reaches(own.tag.number) => Fate::NotApplied,
            (false, false) => Fate::Unknown,
        };
        let mut fates = self.own.iter().map(is_lost);
        let decided = fates.find(|fate| !matches!(fate, Fate::NotApplied));
        decided.unwrap_or(Fate::NotApplied)
    }

    /// The same of what it put before the domain became conditional, which is not among them (`[W-12 becoming-conditional]`).
    fn fate_of_put(&self, current: &CurrentVersion, put: Tag) -> Fate {
        assert!(
            self.own.iter().any(|own| own.tag == put),
            "it is one of its own versions"
        );
        let is_plain = match self.aim {
            Aim::Write(wish) => wish.condition == Condition::Always,
            Aim::Read { .. } | Aim::Again => false,
        };
        match current.lineage.order_of_put(current.tag, put) {
            // It would have been the largest, so that it came to no quorum.
            Some(Ordering::Greater) => Fate::NotApplied,
            // Written over, if it was written at all.
            Some(_) if is_plain => Fate::Applied(put),
            Some(_) | None => Fate::Unknown,
        }
    }
}

/// What became of a version of an earlier era, which is not among those that follow each other since then: what was there in
/// between has no ancestors.
fn fate_of_earlier(current: &CurrentVersion, own: Tag) -> Fate {
    match current.lineage.order_of_put(current.tag, own) {
        Some(Ordering::Greater) => Fate::NotApplied,
        Some(_) | None => Fate::Unknown,
    }
}
