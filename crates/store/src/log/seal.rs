//! Sealing: a segment that is full is cut to its length and gets a hint file.

use std::io::{self, IoSlice};

use crate::disk::{Disk, File, PublishError, create_new, is_full, may_pass, publish};
use crate::error::{CommitError, StepError};
use crate::format::{END_BYTES, HintEntry, HintHeader, hint_name};
use crate::index::NONE;

use super::segment::{Segment, SegmentState};
use super::{Log, StepOutcome, record_footprint};

/// Headers read per step.
const RECORDS_PER_STEP: u32 = 4096;
/// If entries would take more than this part of the segment, it is as cheap to read the segment itself.
const LARGEST_HINT_PART: u64 = 4;

/// A hint being built, a bounded number of records at a time.
pub(crate) struct HintJob {
    pub(crate) segment: u32,
    /// The next record; [`Log::unlink`] moves it on when that record goes.
    pub(crate) cursor: u32,
    body: Vec<u8>,
    records: u32,
    /// Records whose headers cannot be read: after a restart their keys will not be known.
    unreadable: u32,
    must_scan: bool,
}

impl<D: Disk> Log<D> {
    /// Commits the open batch, seals every segment and closes the log: the next opening reads hint files only. Space
    /// that the hints would need is not taken from a full disk.
    ///
    /// # Errors
    /// The error of the disk.
    ///
    /// # Panics
    /// If a commit is in flight.
    pub fn close(mut self) -> Result<(), CloseError> {
        self.commit().map_err(CloseError::Commit)?;
        if let Some(active) = self.segments.active.take() {
            let segment = self.segments.get_mut(active);
            segment.state = match segment.first_sequence {
                0 => SegmentState::Ready,
                _ => SegmentState::Filled,
            };
        }
        self.space.hints_blocked = false;
        self.write_all_hints().map_err(CloseError::Step)?;
        self.mark_end().map_err(CloseError::Commit)
    }

    pub(super) fn write_all_hints(&mut self) -> Result<(), StepError> {
        while self.trim()? {}
        while self.hint_step()?.is_some() {}
        Ok(())
    }

    /// Cuts one full segment to its length. `false`: there is none.
    pub(super) fn trim(&mut self) -> Result<bool, StepError> {
        let durable = self.durable;
        let found = self
            .segments
            .in_state(SegmentState::Filled)
            .find(|(_, s)| !s.is_trimmed && s.last_sequence <= durable)
            .map(|(at, _)| at);
        let Some(at) = found else {
            return Ok(false);
        };
        assert_ne!(
            self.segments.active,
            Some(at),
            "what is written to is not cut"
        );
        let segment = self.segments.get_mut(at);
        // There may have been no room for the zeros.
        let end = segment.length.min(segment.write_at + END_BYTES);
        assert!(end >= segment.write_at, "no batch is cut off");
        if let Err(source) = segment.file.truncate(end) {
            // The cut contains a sync.
            let operation = "trimming a segment";
            return Err(self.poisoned_by(StepError::Io { operation, source }));
        }
        segment.length = end;
        segment.is_trimmed = true;
        Ok(true)
    }

    /// Goes on with the hint of one segment. `None`: every segment has its hint, or there is no space for one, or nothing to make
    /// it with.
    pub(super) fn hint_step(&mut self) -> Result<Option<StepOutcome>, StepError> {
        if self.space.hints_blocked {
            return Ok(None);
        }
        if self.hint_job.is_none() {
            self.hint_job = self.start_hint();
        }
        for _ in 0..RECORDS_PER_STEP {
            let Some(job) = &self.hint_job else {
                return Ok(None);
            };
            if job.cursor == NONE {
                let job = self.hint_job.take().expect("just seen");
                return self.write_hint(&job);
            }
            if let Some(outcome) = self.add_to_hint() {
                return Ok(Some(outcome));
            }
        }
        Ok(Some(StepOutcome::More))
    }

    fn start_hint(&self) -> Option<HintJob> {
        let mut filled = self.segments.in_state(SegmentState::Filled);
        let (at, segment) =
            filled.find(|(_, s)| s.is_trimmed && !s.has_hint && s.last_sequence <= self.durable)?;
        let mut size = 0;
        let mut slot = segment.list.head;
        while slot != NONE {
            size += HintEntry::length(self.index.get(slot).header_length.into()) as u64;
            slot = self.index.next(slot);
        }
        let must_scan = size > segment.write_at / LARGEST_HINT_PART && !segment.had_damage;
        Some(HintJob {
            segment: at,
            cursor: if must_scan { NONE } else { segment.list.head },
            body: Vec::with_capacity(if must_scan {
                0
            } else {
                usize::try_from(size).unwrap_or(0)
            }),
            records: 0,
            unreadable: 0,
            must_scan,
        })
    }

    /// Adds the record at the cursor.
    fn add_to_hint(&mut self) -> Option<StepOutcome> {
        let job = self.hint_job.as_mut().expect("the caller has seen it");
        let at = job.cursor;
        job.cursor = self.index.next(at);
        let slot = *self.index.get(at);
        assert_eq!(slot.segment, job.segment, "the cursor stays in its segment");
        let header = self.read_header_of(&slot);
        let job = self.hint_job.as_mut().expect("still there");
        let Ok(header) = header else {
            job.unreadable += 1;
            return self.note_damage(at).map(StepOutcome::Damaged);
        };
        HintEntry {
            grain: slot.grain,
            kind: slot.kind.into(),
            is_damaged: slot.state.is_damaged(),
            payload_length: slot.payload_length,
            payload_checksum: slot.payload_checksum,
            header: &header,
        }
        .encode(&mut job.body);
        job.records += 1;
        debug_assert!(record_footprint(&slot) > 0, "records have a size");
        None
    }

    /// `None`: the system lacks something for it.
    fn write_hint(&mut self, job: &HintJob) -> Result<Option<StepOutcome>, StepError> {
        let segment = self.segments.get(job.segment);
        assert!(
            segment.state == SegmentState::Filled && segment.last_sequence <= self.durable,
            "a hint proves that all of its segment is durable"
        );
        assert!(segment.is_trimmed, "a hint says where its segment ends");
        assert!(
            job.must_scan || job.records + job.unreadable >= segment.live_records,
            "what a hint leaves out is dead"
        );
        assert!(
            !job.must_scan || job.body.is_empty(),
            "a hint has all entries or none"
        );
        let header = self.hint_header(segment, job);
        assert!(header.is_consistent(), "recovery accepts what is written");
        let name = hint_name(segment.number);
        let fixed = header.encode(&job.body);
        let size = fixed.len() + job.body.len();
        let file = match create_new(&self.disk, &name, size as u64) {
            Ok(file) => file,
            Err(error) if is_full(&error) => {
                self.space.hints_blocked = true;
                return Ok(Some(StepOutcome::More));
            }
            // It is begun again by a later step.
            Err(error) if may_pass(&error) => return Ok(None),
            Err(source) => return Err(hint_failed(source)),
        };
        let mut parts = [IoSlice::new(&fixed), IoSlice::new(&job.body)];
        match publish(&self.disk, &file, &name, &mut parts) {
            Ok(()) => {}
            Err(PublishError::Unmade(_)) => return Ok(None),
            Err(PublishError::Unknown(source)) => {
                return Err(self.poisoned_by(hint_failed(source)));
            }
        }
        self.segments.get_mut(job.segment).has_hint = true;
        self.extents.is_due = true;
        Ok(Some(StepOutcome::More))
    }

    fn hint_header(&self, segment: &Segment<D::File>, job: &HintJob) -> HintHeader {
        HintHeader {
            store_id: self.options.store_id,
            segment: segment.number,
            first_sequence: segment.first_sequence,
            last_sequence: segment.last_sequence,
            predecessor: segment.predecessor,
            end: segment.write_at,
            must_scan: job.must_scan,
            records: job.records,
            unknown_damaged: segment.unknown_damaged.saturating_add(job.unreadable),
        }
    }
}

fn hint_failed(source: io::Error) -> StepError {
    StepError::Io {
        operation: "writing a hint",
        source,
    }
}

/// Why a log could not be closed cleanly; opening it again recovers it all the same.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The last batch is not known to be durable.
    #[error("committing: {0}")]
    Commit(#[source] CommitError),
    /// A segment could not be sealed.
    #[error("sealing: {0}")]
    Step(#[source] StepError),
}
