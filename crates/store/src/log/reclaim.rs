//! Reclaiming: copying what is alive out of a mostly dead segment, and removing segments whose copies are durable.
//!
//! Order, per segment: copies and then a census without it go into the open batch; when that batch is durable the file
//! goes. A crash in between leaves both copies, which is harmless since records are joins.

use std::io::ErrorKind;

use crate::batch::Content;
use crate::checksum::crc32c;
use crate::disk::{Disk, may_pass};
use crate::error::StepError;
use crate::format::{Census, CensusEntry, KIND_CENSUS, PAGE, footprint, hint_name, segment_name};
use crate::index::{NONE, SlotState};

use super::segment::{Segment, SegmentState};
use super::{Log, StepOutcome, grain, record_footprint};

/// Bytes copied per step.
const BYTES_PER_STEP: u64 = 1 << 20;
/// Under pressure a segment is reclaimed if one part in this number is gained.
const PRESSURE_DEAD_PART: u64 = 8;
/// A segment that is filled to less than one part in so many is small (restarts leave such behind), ...
const SMALL_PART: u64 = 4;
/// ... and more small ones than this are merged.
const SMALL_SEGMENTS: usize = 4;

/// The segment being emptied.
pub(crate) struct Reclaim {
    segment: u32,
    /// The next record to look at; [`Log::unlink`] moves it on when that record goes.
    pub(crate) cursor: u32,
}

impl<D: Disk> Log<D> {
    /// Removes the segments whose copies are durable. `false`: there is none.
    pub(super) fn remove_retired(&mut self) -> Result<bool, StepError> {
        let durable = self.durable;
        let is_due = |state| matches!(state, SegmentState::Retiring { after } if after <= durable);
        let retired: Vec<u32> = self
            .segments
            .iter()
            .filter(|(_, segment)| is_due(segment.state))
            .map(|(at, _)| at)
            .collect();
        if retired.is_empty() {
            return Ok(false);
        }
        let number = |at: &u32| self.segments.get(*at).number;
        let mut hints: Vec<String> = retired.iter().map(|at| hint_name(number(at))).collect();
        let mut removed = retired.clone();
        for (count, at) in retired.into_iter().enumerate() {
            match self.remove_file(&segment_name(self.segments.get(at).number)) {
                // Those that are gone are finished with, the others go in a later step.
                Ok(false) => {
                    removed.truncate(count);
                    hints.truncate(count);
                    break;
                }
                Ok(true) => {}
                Err(error) => return Err(error),
            }
            let segment = self.segments.remove(at);
            assert_eq!(segment.live_records, 0, "nothing alive is removed");
            assert!(
                segment.last_sequence <= durable,
                "what replaced its records came after them and is durable"
            );
            assert_eq!(
                segment.unknown_damaged, 0,
                "what was lost without a trace holds its segment"
            );
            assert!(
                self.hint_job.as_ref().is_none_or(|job| job.segment != at)
                    && self.reclaim.as_ref().is_none_or(|job| job.segment != at),
                "no job stands in a segment that goes"
            );
        }
        if removed.is_empty() {
            return Ok(false);
        }
        self.disk.sync_dir().map_err(|source| {
            let operation = "syncing the directory";
            self.poisoned_by(StepError::Io { operation, source })
        })?;
        for at in removed {
            self.graves.close(at);
        }
        // Only now: a segment without its hint is read, and would bring back what the hint leaves out. A hint without its segment goes
        // when the log is opened.
        for name in hints {
            self.remove_file(&name)?;
        }
        self.space.hints_blocked = false;
        Ok(true)
    }

    /// `false`: it cannot be removed now.
    fn remove_file(&self, name: &str) -> Result<bool, StepError> {
        match self.disk.remove(name) {
            Err(source) if may_pass(&source) => Ok(false),
            Err(source) if source.kind() != ErrorKind::NotFound => Err(StepError::Io {
                operation: "removing a segment",
                source,
            }),
            _ => Ok(true),
        }
    }

    /// Copies up to 1 MiB out of a segment that is worth it. `None`: there is none, or no room.
    pub(super) fn reclaim_step(&mut self) -> Result<Option<StepOutcome>, StepError> {
        if self.reclaim.is_none() {
            let Some(segment) = self.choose_victim() else {
                let is_rolled = self.space.pressure && self.fill_dead_active();
                return Ok(is_rolled.then_some(StepOutcome::CommitFirst));
            };
            let cursor = self.segments.get(segment).list.head;
            self.reclaim = Some(Reclaim { segment, cursor });
        }
        let mut copied = 0;
        while copied < BYTES_PER_STEP {
            let job = self.reclaim.as_mut().expect("just made");
            let (at, segment) = (job.cursor, job.segment);
            if at == NONE {
                self.reclaim = None;
                return self.finish_victim(segment);
            }
            let slot = self.index.get(at);
            assert_eq!(slot.segment, segment, "the cursor stays in its segment");
            if slot.state != SlotState::Live {
                job.cursor = self.index.next(at);
                continue;
            }
            let size = record_footprint(slot);
            if !self.make_room_for_copy(size).map_err(room_failed)? {
                self.reclaim = None;
                return Ok(None);
            }
            if !self.copy(at) {
                let job = self.reclaim.as_mut().expect("still there");
                job.cursor = self.index.next(at);
                if let Some(handle) = self.note_damage(at) {
                    return Ok(Some(StepOutcome::Damaged(handle)));
                }
            }
            copied += size;
        }
        Ok(Some(StepOutcome::CommitFirst))
    }

    /// Writes which segments must be there from now on. `false`: there is no room for it.
    pub(super) fn write_census(&mut self) -> Result<bool, StepError> {
        let live = self.segments.iter().map(|(_, segment)| segment);
        let live = live.filter(|s| !matches!(s.state, SegmentState::Retiring { .. }));
        let entry = |(number, last_sequence)| CensusEntry {
            number,
            last_sequence,
        };
        let missing = self.missing.iter().map(|number| (*number, 0));
        let there = live.map(|s| (s.number, s.last_sequence)).chain(missing);
        let mut entries: Vec<CensusEntry> = there.map(entry).collect();
        entries.sort_unstable_by_key(|it| it.number);
        // Taken before room is made: a segment made for that is above it, where every segment must be there.
        let horizon = self.segments.next_number - 1;
        let size = self.census_footprint();
        if !self.make_room_for_census(size).map_err(room_failed)? || self.prepare(size).is_err() {
            return Ok(false);
        }
        let census = Census {
            generation: self.census_generation + 1,
            horizon,
            entries,
        };
        let payload = census.encode();
        assert!(
            footprint(Census::header().len(), payload.len()) <= size,
            "room was made for all of it"
        );
        self.census_generation = census.generation;
        let handle = self.push(&Content {
            kind: KIND_CENSUS,
            header: Census::header(),
            payload_length: u32::try_from(payload.len()).expect("far below 1 GiB"),
            payload_checksum: crc32c(&payload),
            payload: &[payload],
        });
        if let Some(older) = self.census.replace(handle) {
            self.free(older);
        }
        self.census_due = false;
        Ok(true)
    }

    /// Copies one record into the open batch; its handle goes with it. `false`: it cannot be read.
    fn copy(&mut self, at: u32) -> bool {
        let slot = *self.index.get(at);
        let read = (self.read_header_of(&slot), self.read_payload_of(&slot));
        let (Ok(header), Ok(payload)) = read else {
            return false;
        };
        let place = self.place(&Content {
            kind: slot.kind.into(),
            header: &header,
            payload: &[payload],
            payload_length: slot.payload_length,
            payload_checksum: slot.payload_checksum,
        });
        // There was room; a log that is poisoned for another reason ends here anyhow.
        let Some((segment, offset)) = place else {
            return false;
        };
        assert_ne!(segment, slot.segment, "a copy outlives its segment");
        self.unlink(at);
        self.graves.note_copied(slot.segment);
        let moved = self.index.get_mut(at);
        moved.segment = segment;
        moved.grain = grain(offset);
        let target = self.segments.get_mut(segment);
        target.live_bytes += record_footprint(&slot);
        target.live_records += 1;
        self.index.link(at, &mut target.list);
        true
    }

    /// All records of a victim have been looked at.
    fn finish_victim(&mut self, at: u32) -> Result<Option<StepOutcome>, StepError> {
        let segment = self.segments.get(at);
        if segment.live_records > 0 {
            // Damaged ones stay until they are freed; freed ones go with the next commit.
            let waits = segment.live_records > segment.damaged_records;
            let outcome = if waits {
                StepOutcome::CommitFirst
            } else {
                StepOutcome::More
            };
            return Ok(Some(outcome));
        }
        let empty: Vec<u32> = self
            .segments
            .iter()
            .filter(|(other, s)| *other == at || (self.may_go(s) && s.live_records == 0))
            .map(|(at, _)| at)
            .collect();
        // Retired before the census is made, so that it leaves them out; after this batch at the earliest.
        for at in &empty {
            let after = u64::MAX;
            let segment = self.segments.get_mut(*at);
            assert_eq!(
                segment.state,
                SegmentState::Filled,
                "only what is full goes"
            );
            segment.state = SegmentState::Retiring { after };
        }
        let is_written = self.write_census()?;
        for at in &empty {
            self.segments.get_mut(*at).state = if is_written {
                let after = self.sequence;
                SegmentState::Retiring { after }
            } else {
                SegmentState::Filled
            };
        }
        assert!(
            !is_written || self.sequence > self.durable || self.poison.is_set(),
            "the census is in the open batch, and segments go after that"
        );
        if let Some(job) = &self.hint_job
            && empty.contains(&job.segment)
        {
            self.hint_job = None;
        }
        Ok(is_written.then_some(StepOutcome::CommitFirst))
    }

    fn may_go(&self, segment: &Segment<D::File>) -> bool {
        segment.state == SegmentState::Filled
            && segment.last_sequence <= self.durable
            && segment.is_trimmed
            && (segment.has_hint || self.space.pressure || self.space.hints_blocked)
            && segment.unknown_damaged == 0
            && segment.damaged_records == 0
    }

    fn choose_victim(&self) -> Option<u32> {
        let small = self.options.segment_bytes / SMALL_PART;
        let candidates = || self.segments.iter().filter(|(_, s)| self.may_go(s));
        let small_ones = || candidates().filter(|(_, s)| s.write_at < small);
        let room = self.room_for_copies_on_full_disk();
        let census_room = self.room_for_census_on_full_disk();
        let overhead = self.copy_overhead();
        let is_worth_it = |segment: &Segment<D::File>| {
            let percent = u64::from(self.options.reclaim_dead_percent);
            if self.space.pressure {
                let is_empty = segment.live_records == 0;
                return is_gain_under_pressure(segment, segment.write_at)
                    && (segment.live_bytes + overhead <= room
                        || is_empty && overhead <= census_room);
            }
            segment.had_damage || segment.gain_bytes() * 100 >= segment.write_at * percent
        };
        let worst = candidates()
            .filter(|(_, segment)| is_worth_it(segment))
            .max_by_key(|(_, s)| s.gain_bytes() * 1000 / s.write_at.max(1));
        if let Some((at, _)) = worst {
            return Some(at);
        }
        if self.space.pressure || small_ones().count() <= SMALL_SEGMENTS {
            return None;
        }
        let smallest = small_ones().min_by_key(|(_, s)| s.live_bytes);
        smallest.map(|(at, _)| at)
    }

    /// On a full disk all that is dead may be in the active segment: goes on to the spare, so that it can be reclaimed.
    fn fill_dead_active(&mut self) -> bool {
        let Some(active) = self.segments.active else {
            return false;
        };
        let segment = self.segments.get(active);
        let is_worth_it = is_gain_under_pressure(segment, self.options.segment_bytes);
        let live = segment.live_bytes + self.copy_overhead() + self.space.reserved;
        is_worth_it && self.has_spare() && self.roll_to_ready(live)
    }

    /// The bytes that emptying a segment takes beside its live records.
    fn copy_overhead(&self) -> u64 {
        self.census_footprint() + 2 * PAGE
    }

    fn census_footprint(&self) -> u64 {
        let numbers = self.segments.iter().count() + self.missing.len() + 2;
        footprint(Census::header().len(), Census::length(numbers))
    }
}

/// True if reclaiming gains a fair part of `size`, and more than a copy that is split over two segments can cost.
fn is_gain_under_pressure<F>(segment: &Segment<F>, size: u64) -> bool {
    let gain = segment.gain_bytes();
    segment.live_records == 0 || gain >= (2 * PAGE).max(size / PRESSURE_DEAD_PART)
}

fn room_failed(source: std::io::Error) -> StepError {
    StepError::Io {
        operation: "making a segment",
        source,
    }
}
