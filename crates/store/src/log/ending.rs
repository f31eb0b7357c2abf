//! The end of records, and those of them that a start may find again.
//!
//! The log does not write down what is freed. A start that reads a segment, or a hint that was written before, finds the record again;
//! the layer above judges by its newer records. Where those are to go, too, it has to know that no older record is left: it names
//! the grave of a record that it frees, and asks whether anything in it may return. It may until the segment is removed, durably, and so
//! is each segment out of which it was copied.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::Disk;
use crate::format::KIND_USER;
use crate::index::{Handle, NONE, SlotState};

use super::{Log, record_footprint};

/// The segments that still hold freed records, by the numbers that the layer above gives to the records' subjects.
#[derive(Default)]
pub(crate) struct Graves {
    /// In how many places records of it may be.
    places: BTreeMap<u64, u32>,
    /// The numbers of buried records, by segment.
    in_segment: BTreeMap<u32, Vec<u64>>,
    /// Segments that records were copied out of, and that are not removed yet.
    copied: BTreeSet<u32>,
}

impl Graves {
    fn dig(&mut self, segment: u32, grave: u64) {
        let copied = self.copied.iter().filter(|it| **it != segment);
        for segment in copied.chain([&segment]) {
            self.in_segment.entry(*segment).or_default().push(grave);
            *self.places.entry(grave).or_default() += 1;
        }
        assert!(self.places.contains_key(&grave), "it is remembered");
    }

    /// A record was copied out of this segment, where it still is.
    pub(super) fn note_copied(&mut self, segment: u32) {
        self.copied.insert(segment);
    }

    /// The segment is removed, and stays so after a crash.
    pub(super) fn close(&mut self, segment: u32) {
        self.copied.remove(&segment);
        for grave in self.in_segment.remove(&segment).unwrap_or_default() {
            let places = self.places.get_mut(&grave).expect("it was counted");
            *places -= 1;
            if *places == 0 {
                self.places.remove(&grave);
            }
        }
        assert!(
            !self.in_segment.is_empty() || self.places.is_empty(),
            "a place is in a segment"
        );
    }
}

impl<D: Disk> Log<D> {
    /// Forgets a record. Its space is dead once everything appended so far is durable, because only then is what
    /// replaces it safe. The handle is void at once.
    ///
    /// # Panics
    /// If the handle names no live record.
    pub fn free(&mut self, handle: Handle) {
        if self.poison.is_set() {
            return;
        }
        let slot = self
            .index
            .resolve(handle)
            .filter(|slot| !self.index.get(*slot).state.is_freed())
            .expect("only a live record is freed, once");
        let state = &mut self.index.get_mut(slot).state;
        *state = match *state {
            SlotState::Damaged => SlotState::FreedDamaged,
            _ => SlotState::Freed,
        };
        if !self.open.is_empty() {
            self.freed_open.push(slot);
        } else if !self.in_flight.is_empty() {
            self.freed_in_flight.push(slot);
        } else {
            self.forget(slot);
        }
    }

    /// Calls [`Self::free`] for a record about the subject that the layer above calls `grave`.
    ///
    /// # Panics
    /// If the handle names no live record.
    pub fn bury(&mut self, handle: Handle, grave: u64) {
        if self.poison.is_set() {
            return;
        }
        let slot = self.index.resolve(handle);
        let slot = slot.expect("only a live record is buried, once");
        let segment = self.index.get(slot).segment;
        self.graves.dig(segment, grave);
        self.free(handle);
    }

    /// True if a start may find a record again that was buried under this number. What an earlier process buried counts if this one found it when it
    /// opened the log.
    pub fn may_return(&self, grave: u64) -> bool {
        self.graves.places.contains_key(&grave)
    }

    /// The end of a record: out of its segment's list and out of the index.
    pub(super) fn forget(&mut self, slot: u32) {
        assert!(
            self.index.get(slot).state.is_freed(),
            "only what was freed is forgotten"
        );
        self.unlink(slot);
        if u32::from(self.index.get(slot).kind) != KIND_USER {
            assert!(self.internal > 0, "it was counted when it was entered");
            self.internal -= 1;
        }
        self.index.release(slot);
    }

    /// Takes a record off its segment; jobs that stand at it go on to the next one.
    pub(super) fn unlink(&mut self, slot: u32) {
        let next = self.index.next(slot);
        let cursors = [
            self.hint_job.as_mut().map(|job| &mut job.cursor),
            self.reclaim.as_mut().map(|job| &mut job.cursor),
            Some(&mut self.scrub.cursor),
        ];
        for cursor in cursors.into_iter().flatten() {
            if *cursor == slot {
                *cursor = next;
            }
        }
        let record = self.index.get(slot);
        let (size, is_damaged) = (record_footprint(record), record.state.is_damaged());
        let segment = self.segments.get_mut(record.segment);
        assert!(
            segment.live_records > 0 && segment.live_bytes >= size,
            "it was counted when it was entered"
        );
        segment.live_bytes -= size;
        segment.live_records -= 1;
        if is_damaged {
            assert!(segment.damaged_records > 0, "its damage was counted");
            segment.damaged_records -= 1;
        }
        self.index.unlink(slot, &mut segment.list);
        assert_eq!(
            segment.live_records == 0,
            segment.live_bytes == 0,
            "records have a size"
        );
        assert_eq!(
            segment.live_records == 0,
            segment.list.head == NONE,
            "the list is of the live records"
        );
    }
}
