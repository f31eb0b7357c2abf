//! Scrubbing: reading records without a request, so that rot is found while it can still be repaired.
//!
//! A round goes over the segments that were there when it began, in order of their numbers, and within each in the order of the
//! file. What is written meanwhile is in later segments, and so are records that are copied out of a segment, which verifies
//! them. So a round ends however much is written, and its place means the same after a restart.

use crate::disk::Disk;
use crate::error::ReadError;
use crate::index::{Handle, NONE, Slot};

use super::{Log, record_footprint, slot_offset};

/// A place in a log that a restart does not move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubPlace {
    /// The number of a segment; 0 is before all of them.
    pub segment: u64,
    /// A place in it, in bytes.
    pub offset: u64,
}

/// The round that is under way.
pub(super) struct ScrubJob {
    /// The number of the segment that is being read; 0: none yet.
    segment: u64,
    /// The next record to read; [`Log::unlink`] moves it on when that record goes. [`NONE`]: the segment has no more.
    pub(super) cursor: u32,
    /// The round ends with the segment of this number. That of a new log with the last one that there is.
    last: u64,
}

impl Default for ScrubJob {
    fn default() -> Self {
        ScrubJob {
            segment: 0,
            cursor: NONE,
            last: u64::MAX,
        }
    }
}

/// The outcome of one call of [`Log::scrub`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubOutcome {
    /// Bytes of records read, headers and padding included.
    pub bytes: u64,
    /// Number of records that were read.
    pub records: u64,
    /// The last record was reached; the next call begins a new round.
    pub is_round_complete: bool,
}

impl<D: Disk> Log<D> {
    /// The place at which the next call of [`Log::scrub`] goes on.
    pub fn scrub_place(&self) -> ScrubPlace {
        let ScrubJob {
            segment, cursor, ..
        } = self.scrub;
        let offset = match cursor {
            // Behind all records of that segment.
            NONE => u64::MAX,
            cursor => slot_offset(self.index.get(cursor)),
        };
        ScrubPlace { segment, offset }
    }

    /// The next call of [`Log::scrub`] goes on there, in a round over all that is here now.
    pub fn scrub_at(&mut self, place: ScrubPlace) {
        let found = self.segments.iter().find(|it| it.1.number == place.segment);
        let mut cursor = found.map_or(NONE, |(_, segment)| segment.list.head);
        while cursor != NONE && slot_offset(self.index.get(cursor)) < place.offset {
            cursor = self.index.next(cursor);
        }
        self.scrub = ScrubJob {
            segment: place.segment,
            cursor,
            last: self.last_segment(),
        };
    }

    /// Goes on from a record that `number` chooses, any number.
    pub fn scrub_from(&mut self, number: u64) {
        let used = u64::from(self.index.used()).max(1);
        let slot = u32::try_from(number % used).expect("there are fewer than 2^32 records");
        let is_there = slot < self.index.used() && self.index.get(slot).segment != NONE;
        let place = match is_there {
            true => {
                let slot = self.index.get(slot);
                ScrubPlace {
                    segment: self.segments.get(slot.segment).number,
                    offset: slot_offset(slot),
                }
            }
            false => ScrubPlace::default(),
        };
        self.scrub_at(place);
    }

    /// Reads about `budget_bytes` of records from the disk, going on where the last call stopped, and verifies headers and
    /// payloads. Reports those that do not verify or cannot be read, also if they were reported before. A poisoned log
    /// reports nothing.
    pub fn scrub(&mut self, budget_bytes: u64, mut damaged: impl FnMut(Handle)) -> ScrubOutcome {
        let mut outcome = ScrubOutcome::default();
        while outcome.bytes < budget_bytes && !self.poison.is_set() {
            let at = self.scrub.cursor;
            if at == NONE {
                if self.enter_next_segment() {
                    continue;
                }
                self.scrub = ScrubJob {
                    last: self.last_segment(),
                    ..ScrubJob::default()
                };
                outcome.is_round_complete = true;
                break;
            }
            self.scrub.cursor = self.index.next(at);
            let slot = self.index.get(at);
            assert_eq!(
                self.segments.get(slot.segment).number,
                self.scrub.segment,
                "the cursor stays in its segment"
            );
            if slot.state.is_freed() {
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

    /// Goes to the first record of the next segment of the round. `false`: there is no such segment.
    fn enter_next_segment(&mut self) -> bool {
        let ScrubJob { segment, last, .. } = self.scrub;
        let segments = self.segments.iter().map(|(_, it)| it);
        let behind = segments.filter(|it| it.number > segment && it.number <= last);
        let Some(next) = behind.min_by_key(|it| it.number) else {
            return false;
        };
        (self.scrub.segment, self.scrub.cursor) = (next.number, next.list.head);
        true
    }

    fn last_segment(&self) -> u64 {
        self.segments.next_number - 1
    }

    fn verify(&self, slot: &Slot) -> Result<(), ReadError> {
        self.read_header_of(slot)?;
        self.read_payload_of(slot).map(|_| ())
    }
}
