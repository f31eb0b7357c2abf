//! Scrubbing: reading records without a request, so that rot is found while it can still be repaired.

use crate::disk::Disk;
use crate::error::ReadError;
use crate::index::{Handle, NONE, Slot};

use super::{Log, record_footprint};

/// What one call of [`Log::scrub`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubOutcome {
    /// Bytes of records read, headers and padding included.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// The last record was reached; the next call begins a new round.
    pub is_round_complete: bool,
}

impl<D: Disk> Log<D> {
    /// The next call of [`Log::scrub`] goes on from a place that `number` chooses, any number.
    pub fn scrub_from(&mut self, number: u64) {
        let used = self.index.used();
        self.scrub_at = u32::try_from(number % u64::from(used).max(1)).unwrap_or(0);
        assert!(self.scrub_at <= used, "it is one of the records");
    }

    /// Reads about `budget_bytes` of records from the disk, going on where the last call stopped, and verifies headers and
    /// payloads. Reports those that do not verify or cannot be read, also if they were reported before. A poisoned log
    /// reports nothing.
    pub fn scrub(&mut self, budget_bytes: u64, mut damaged: impl FnMut(Handle)) -> ScrubOutcome {
        let mut outcome = ScrubOutcome::default();
        while outcome.bytes < budget_bytes && !self.poison.is_set() {
            let at = self.scrub_at;
            if at >= self.index.used() {
                self.scrub_at = 0;
                outcome.is_round_complete = true;
                break;
            }
            self.scrub_at += 1;
            let slot = self.index.get(at);
            if slot.segment == NONE || slot.state.is_freed() {
                continue;
            }
            outcome.bytes += record_footprint(slot);
            outcome.records += 1;
            if self.verify(slot).is_err()
                && let Some(handle) = self.note_damage(at)
            {
                damaged(handle);
            }
        }
        outcome
    }

    fn verify(&self, slot: &Slot) -> Result<(), ReadError> {
        self.read_header_of(slot)?;
        self.read_payload_of(slot).map(|_| ())
    }
}
