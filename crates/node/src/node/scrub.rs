//! Verifying the records on disk at a rate, so that rot is found while others can still mend it.

use super::Node;
use crate::{Keep, Watch};
use areo_core::instant::Instant;
use areo_store::ScrubOutcome;
use std::time::Duration;

/// How far verification is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScrubCursor {
    /// Bytes that were verified since the start.
    pub bytes: u64,
    /// What may be verified now, in bytes. Below zero after a record that was larger than that.
    credit: i64,
    /// When the last record was reached last.
    ended: Option<Instant>,
    /// When it was reached before: all records that were there then have been verified since.
    all_since: Option<Instant>,
}

impl ScrubCursor {
    /// The longest time, at most, since a record was verified. `None`: not all were since the start.
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        Some(now.since(self.all_since?))
    }

    /// What may be verified in a period of which this is the share. What was not used is not saved.
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
            self.all_since = self.ended.replace(now);
            assert!(self.all_since <= self.ended, "time goes on");
        }
    }
}

impl<K: Keep, C> Node<K, C> {
    /// How far verification is.
    pub fn scrubbing(&self) -> &ScrubCursor {
        &self.scrubbing
    }

    /// Verification goes on from a place that `number` chooses, any number.
    pub fn scrub_from(&mut self, number: u64) {
        if let Some(log) = self.keep.log_mut() {
            log.scrub_from(number);
        }
    }

    pub(super) fn scrub(&mut self, now: Instant, watch: &mut impl Watch<C>) {
        let budget = self.scrubbing.budget(self.sizes.scrub);
        let Some(log) = self.keep.log_mut().filter(|_| budget > 0) else {
            return;
        };
        let (done, damaged) = log.scrub(budget);
        self.scrubbing.add(done, now);
        self.damaged(damaged, watch);
    }
}
