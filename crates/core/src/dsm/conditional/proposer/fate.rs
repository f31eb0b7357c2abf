//! What became of the versions that an operation has put or proposed, as far as others say (`[W-6 ancestors]`), and what it waits
//! for where they do not say it yet.

use super::base::Base;
use super::looking::Looked;
use super::{Aim, Condition, OwnVersion, ProposalEnd, Proposer};
use crate::config::Configuration;
use crate::dap::conditional::{self, CurrentVersion, SurveyOutcome};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::instant::Instant;
use crate::message::Ballot;
use crate::tag::Tag;
use crate::timing::{self, BackOff};
use std::cmp::Ordering;
use std::time::Duration;

/// The fate of the versions that an operation has proposed.
pub(in super::super) enum Fate {
    /// The proposer's version is the current one, or an ancestor of it.
    Applied(Tag),
    /// None of them is.
    NotApplied,
    /// It cannot be seen.
    Unknown,
}

impl<E: Env> Proposer<'_, E> {
    /// The ballot of the last of its versions that may be chosen.
    pub(in super::super) fn proposed_at(&self) -> Ballot {
        let ballots = self.own.iter().map(|own| own.ballot);
        ballots.max().unwrap_or_default()
    }

    /// Pauses a random while after an attempt (`[R-9 random-backoff]`). Versions may come meanwhile, more than say what became of its own:
    /// in all pauses but the first, which is short, it asks for that. Returns the end if there is one.
    pub(super) async fn back_off(
        &mut self,
        back_off: &mut BackOff,
    ) -> Result<Option<ProposalEnd>, Unavailable> {
        let pause = self.draw_pause(back_off.failed(self.env().now()));
        let until = self.env().now().plus(pause);
        // An answer may take long: it waits as long before it asks again.
        let mut between = timing::FATE_PAUSE;
        while back_off.is_again() && !self.own.is_empty() && self.left(until) > between {
            self.env().sleep(between).await;
            let begun = self.env().now();
            if let Some(ended) = self.look().await? {
                return Ok(Some(ended));
            }
            between = between.max(self.env().now().since(begun));
        }
        self.env().sleep(self.left(until)).await;
        match self.aim {
            // A reader needs no ballot where a quorum shows by now what is chosen: writers do not overtake it for ever.
            Aim::Read { .. } => Ok(match self.read_at_once().await? {
                Looked::Found(found) => Some(ProposalEnd::Found(found.0, found.1)),
                Looked::Undecided | Looked::Elsewhere => None,
            }),
            // Nor does a write whose condition does not hold any more: it would overtake the writer that is next.
            Aim::Write(wish) if wish.condition != Condition::Always => self.look().await,
            Aim::Write(_) | Aim::Again => Ok(None),
        }
    }

    fn left(&self, until: Instant) -> Duration {
        until.since(self.env().now())
    }

    /// Asks for the chosen version where it proposed last, and promises nothing. The version chosen at the ballot of
    /// its own versions, or above it, shows their fate (`[W-6 ancestors]`): none of them may be left that can still
    /// be chosen. Returns the end if one was chosen, or if none was and the condition of its write does not hold.
    async fn look(&mut self) -> Result<Option<ProposalEnd>, Unavailable> {
        let at = match &self.last {
            Some(last) => Visit::new(last.c()),
            None if self.own.is_empty() => Visit::new(&self.domain.start()),
            // It was put before the domain became conditional ([W-12 becoming-conditional]).
            None => return Ok(None),
        };
        let Aim::Write(wish) = self.aim else {
            return Ok(None);
        };
        if !at.c().is_ranked(self.name) {
            return Ok(None);
        }
        let asked = conditional::survey(self.env(), &at, self.name, (None, false), self.wanted());
        let answers = match asked.await {
            Ok(SurveyOutcome::Answered(answers)) => answers,
            // Others decide there, or elsewhere: the next attempt hears of it.
            Ok(_) | Err(CallError::Moved) => return Ok(None),
            Err(CallError::Unavailable(failed)) => return Err(failed),
        };
        let current = &answers.current;
        let is_chosen = current.chosen.is_some_and(|at| at >= self.proposed_at());
        if !is_chosen || current.tag.is_initial() {
            return Ok(None);
        }
        match self.fate(current, wish.request, at.c()) {
            Fate::Applied(tag) => {
                let replaced = current.before(tag);
                return Ok(Some(ProposalEnd::Written { tag, replaced }));
            }
            Fate::NotApplied => {
                self.own.clear();
                self.sent = false;
            }
            Fate::Unknown => return Ok(None),
        }
        if wish.condition.holds(current) {
            return Ok(None);
        }
        let mut base = Base::of(answers);
        match self.found(&at, &mut base).await {
            Ok(found) => Ok(found.map(|found| ProposalEnd::Found(found, base.current.lineage))),
            Err(CallError::Moved) => Ok(None),
            Err(CallError::Unavailable(failed)) => Err(failed),
        }
    }

    /// The fate of this proposer's versions, judged by the current version of this configuration (`[W-6 ancestors]`).
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

    /// The fate of the version that it put before the domain became conditional, which is not among the proposed ones
    /// (`[W-12 becoming-conditional]`).
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

/// The fate of a version of an earlier era. It is not among the ancestors of the current version, and the versions
/// between it and the register's first version have no ancestors.
fn fate_of_earlier(current: &CurrentVersion, own: Tag) -> Fate {
    match current.lineage.order_of_put(current.tag, own) {
        Some(Ordering::Greater) => Fate::NotApplied,
        Some(_) | None => Fate::Unknown,
    }
}
