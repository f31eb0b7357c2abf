//! Verifying the records on disk at a rate, so that rot is found while others can still mend it.

use super::Node;
use crate::Keep;
use areo_core::instant::{Instant, PastMoment};
use areo_store::records::DamagedElement;
use areo_store::{ScrubOutcome, ScrubPlace};
use std::time::Duration;

/// The progress of verification.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScrubCursor {
    /// Bytes that were verified since the start.
    pub bytes: u64,
    /// The bytes that may be verified now. Below zero after a record that was larger than the budget.
    credit: i64,
    /// The beginning of this round. `None`: it began at a record by chance, not at the first one.
    round_since: Option<PastMoment>,
    /// The beginning of the round before: all records of that time have been verified since.
    all_since: Option<PastMoment>,
}

/// The progress of verification, in terms that outlive the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubProgress {
    /// The place of the next record.
    pub place: ScrubPlace,
    /// The age of this round.
    pub round_age: Option<Duration>,
    /// The age of the round before.
    pub all_age: Option<Duration>,
}

impl ScrubCursor {
    /// The longest time, at most, since a record was verified. `None`: it is not known that all were.
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        Some(self.all_since?.age(now))
    }

    /// The budget, in bytes, in a period of which this is the share. An unused budget is not saved.
    fn budget(&mut self, share: u64) -> u64 {
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(share).min(share);
        assert!(self.credit <= share, "a period has no more than its share");
        u64::try_from(self.credit).unwrap_or(0)
    }

    fn add(&mut self, done: ScrubOutcome, now: Instant) {
        self.bytes += done.bytes;
        let bytes = i64::try_from(done.bytes).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_sub(bytes);
        if done.is_round_complete {
            self.all_since = self.round_since.replace(now.into());
            let ages = [self.all_since, self.round_since].map(|it| it.map(|it| it.age(now)));
            assert!(
                ages[0].is_none() || ages[0] >= ages[1],
                "rounds follow each other"
            );
        }
    }
}

impl<K: Keep, C> Node<K, C> {
    /// The progress of verification.
    pub fn scrubbing(&self) -> &ScrubCursor {
        &self.scrubbing
    }

    /// Verification goes on from a place that `number` chooses, any number.
    pub fn scrub_from(&mut self, number: u64) {
        if let Some(log) = self.keep.log_mut() {
            log.scrub_from(number);
        }
    }

    /// The progress of verification, for [`Node::resume_scrub`] of a later process. `None`: there is no disk.
    pub fn scrub_progress(&self, now: Instant) -> Option<ScrubProgress> {
        let ScrubCursor {
            round_since,
            all_since,
            ..
        } = self.scrubbing;
        let age = |moment: PastMoment| moment.age(now);
        Some(ScrubProgress {
            place: self.keep.log()?.scrub_place(),
            round_age: round_since.map(age),
            all_age: all_since.map(age),
        })
    }

    /// Verification goes on where an earlier process was.
    pub fn resume_scrub(&mut self, now: Instant, progress: ScrubProgress) {
        let Some(log) = self.keep.log_mut() else {
            return;
        };
        log.scrub_at(progress.place);
        assert_eq!(self.scrubbing.bytes, 0, "nothing was verified before");
        let moment = |age| PastMoment::before(now, age);
        self.scrubbing.round_since = progress.round_age.map(moment);
        self.scrubbing.all_since = progress.all_age.map(moment);
        self.shard.verified(self.scrubbing.all_since);
    }

    pub(super) fn scrub(&mut self, now: Instant) {
        let budget = self.scrubbing.budget(self.sizes.scrub);
        let Some(log) = self.keep.log_mut().filter(|_| budget > 0) else {
            return;
        };
        let (done, damaged) = log.scrub(budget);
        self.scrubbing.add(done, now);
        self.shard.verified(self.scrubbing.all_since);
        for element in &damaged {
            self.note_damage(element);
        }
    }

    /// The store has come upon a damaged record.
    pub(super) fn note_damage(&mut self, element: &DamagedElement) {
        let log = self.keep.log().expect("it has come upon it");
        let is_damaged = |handle| log.is_damaged(handle, element);
        self.shard.damaged(&element.header, is_damaged);
    }
}
