//! The space for records: making segments, promising space, going on to the next segment.
//!
//! Besides what is promised to the caller, one empty segment is kept as a *spare*. Only reclaiming may use it, and records
//! that free others, so that a full disk can always be emptied; until it has been replaced nothing else is promised.
//! Of the two neither can take the other's part.

use std::io::{self, IoSlice};

use crate::disk::{Disk, PublishError, create_new, is_full, may_pass, publish};
use crate::error::{CommitError, ReserveError};
use crate::format::{
    BATCH_HEADER_BYTES, MAX_SEGMENT_BYTES, PAGE, SegmentHeader, align, segment_name,
};

use super::segment::{Segment, SegmentState};
use super::{Log, MIN_SEGMENT_BYTES};

/// The knowledge of the free space.
#[derive(Default)]
pub(super) struct Space {
    /// Bytes promised by `reserve` and not used yet.
    pub(super) reserved: u64,
    /// Space was refused: reclaim every segment that gains any.
    pub(super) pressure: bool,
    /// A hint did not fit on the disk: do not try again before a segment has gone.
    pub(super) hints_blocked: bool,
    /// The error for which the last segment could not be made: no descriptor, or no memory.
    lacking: Option<io::ErrorKind>,
    /// A caller reserves: keep a spare segment ready.
    pub(super) wants_spare: bool,
    /// Bytes that records which free others have taken of the spare since it was whole.
    freeing_taken: u64,
    /// Bytes of such records in the open batch; `None` if no room was promised for any.
    freeing_open: Option<u64>,
}

/// One part in so many of the spare is for records that free others; the rest takes a copy of any segment of which as much
/// is dead.
const FREEING_PART: u64 = 4;
const _: () = assert!(
    MIN_SEGMENT_BYTES / FREEING_PART >= PAGE,
    "the part of the smallest spare is a page, which is the least that a batch takes"
);
const BATCH_HEADER: u64 = BATCH_HEADER_BYTES as u64;

impl<D: Disk> Log<D> {
    /// Promises that records of `bytes` in total (see [`crate::footprint`]) can be appended before the next
    /// [`Self::begin_commit`] without the disk running full. Not cumulative: a later call counts from the records
    /// appended by then.
    ///
    /// # Errors
    /// [`ReserveError::Full`] changes nothing.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), ReserveError> {
        if self.poison.is_set() {
            return Err(ReserveError::Poisoned);
        }
        self.space.wants_spare = true;
        let needed_bytes = self.space.reserved.max(bytes);
        let made = self.make_room(needed_bytes);
        self.promise(needed_bytes, made)?;
        self.space.pressure = false;
        Ok(())
    }

    /// Reserves as [`Self::reserve`] does, for records that must be written before others can be freed. They may take
    /// the spare room, as copies may, so that a full disk does not keep records that could be freed.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn reserve_to_release(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.reserve_from_spare(bytes, u64::MAX)
    }

    /// Reserves as [`Self::reserve_to_release`] does, for requested records that allow others to be freed. They have
    /// a part of the spare room, so that copies always have room, and the other way round.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn reserve_to_free(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.reserve_from_spare(bytes, self.freeing_left())?;
        self.space.freeing_open.get_or_insert(0);
        Ok(())
    }

    /// Reserves as [`Self::reserve_to_free`] does, for records that complete a version for which other records are
    /// kept. They have half of that part, so that records which free others always have room.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn reserve_to_complete(&mut self, bytes: u64) -> Result<(), ReserveError> {
        let kept = self.freeing_part() / 2;
        self.reserve_from_spare(bytes, self.freeing_left().saturating_sub(kept))?;
        self.space.freeing_open.get_or_insert(0);
        Ok(())
    }

    /// The disk is as full afterwards as it was: reclaiming goes on.
    fn reserve_from_spare(&mut self, bytes: u64, limit_bytes: u64) -> Result<(), ReserveError> {
        if self.poison.is_set() {
            return Err(ReserveError::Poisoned);
        }
        let needed_bytes = self.space.reserved.max(bytes);
        let fits =
            self.room_in_active() >= needed_bytes || self.smallest_ready(needed_bytes).is_some();
        let made = match fits && needed_bytes <= limit_bytes {
            true => Ok(()),
            false => self.create_segment(needed_bytes).map(|_| ()),
        };
        self.promise(needed_bytes, made)
    }

    /// The part of the spare that is left to records that free others, in bytes.
    fn freeing_left(&self) -> u64 {
        let part = self.freeing_part();
        match self.has_spare() {
            true => part,
            false => part.saturating_sub(self.space.freeing_taken),
        }
    }

    /// The part of the spare that is for records that free others, in bytes.
    fn freeing_part(&self) -> u64 {
        self.options.segment_bytes / FREEING_PART
    }

    /// Counts a record that was appended.
    pub(super) fn note_freeing(&mut self, bytes: u64) {
        if let Some(open) = &mut self.space.freeing_open {
            *open += bytes;
        }
    }

    /// The open batch is committed: its part of the spare room is used.
    pub(super) fn end_reservation(&mut self) {
        self.space.reserved = 0;
        if let Some(bytes) = self.space.freeing_open.take() {
            self.space.freeing_taken = match self.has_spare() {
                true => 0,
                // Every batch takes whole pages.
                false => self.space.freeing_taken + align(bytes, PAGE),
            };
        }
    }

    fn promise(&mut self, needed_bytes: u64, made: io::Result<()>) -> Result<(), ReserveError> {
        match made {
            Ok(()) => {
                assert!(
                    needed_bytes >= self.space.reserved,
                    "a promise is not taken back"
                );
                self.space.reserved = needed_bytes;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.space.pressure = true;
                Err(ReserveError::Full { needed_bytes })
            }
            Err(source) if may_pass(&source) => Err(ReserveError::Exhausted { source }),
            Err(source) => Err(ReserveError::Io { source }),
        }
    }

    /// Proves that the last batch is durable, by a batch without records after it, so that rot in it can never be
    /// mistaken for a torn tail. To be called when the queue is drained; writes 64 bytes, or nothing if there is
    /// nothing to prove. Commits the open batch first.
    ///
    /// # Errors
    /// The error of the disk. [`CommitError::Full`] does no harm.
    ///
    /// # Panics
    /// If a commit is in flight.
    pub fn seal(&mut self) -> Result<(), CommitError> {
        self.commit()?;
        if self.is_sealed || self.is_last_batch_proven() {
            return self.mark_end();
        }
        // The spare is not for this.
        let has_room = self.active_takes_a_batch()
            || ((self.ready_besides_spare(0) || self.create_spare().is_ok())
                && self.roll(0).is_ok());
        if self.poison.is_set() {
            return Err(CommitError::Poisoned);
        }
        if !has_room {
            return Err(CommitError::Full);
        }
        assert_eq!(
            self.durable, self.sequence,
            "what a seal proves is durable before it is begun"
        );
        let records = self.open_piece().records;
        assert_eq!(records, 0, "a seal is a batch of its own");
        self.commit()?;
        self.is_sealed = true;
        self.mark_end()
    }

    /// Writes the end of the log to the file beside it: if records are cut off or exchanged afterwards, that is
    /// noticed.
    pub(super) fn mark_end(&mut self) -> Result<(), CommitError> {
        if self.extents.behind() == 0 {
            return Ok(());
        }
        let next_number = self.segments.next_number;
        self.mark(next_number).map_err(|_| CommitError::Poisoned)?;
        assert_eq!(self.extents.behind(), 0, "all of it is said");
        Ok(())
    }

    /// Room for records in the active segment, in bytes.
    pub(super) fn room_in_active(&self) -> u64 {
        let Some(active) = self.segments.active else {
            return 0;
        };
        let segment = self.segments.get(active);
        let open = self.open.last().filter(|p| p.target.segment == active);
        let end = open.map_or(segment.write_at + BATCH_HEADER, |piece| piece.end);
        segment.length.saturating_sub(end)
    }

    /// True if there is no batch, or the last one is in a segment with a hint.
    fn is_last_batch_proven(&self) -> bool {
        let mut segments = self.segments.iter().map(|(_, segment)| segment);
        segments.all(|s| s.has_hint || s.last_sequence < self.sequence.max(1))
    }

    fn active_takes_a_batch(&self) -> bool {
        self.segments.active.is_some_and(|active| {
            let segment = self.segments.get(active);
            segment.write_at + BATCH_HEADER <= segment.length
        })
    }

    /// Goes on to the smallest ready segment that takes `size` bytes of records, made if there is none.
    pub(super) fn roll(&mut self, size: u64) -> io::Result<()> {
        if !self.roll_to_ready(size) {
            self.create_segment(size)?;
            assert!(self.roll_to_ready(size), "it was made for this");
        }
        Ok(())
    }

    /// Rolls as [`Self::roll`] does, but only to a segment that is ready.
    pub(super) fn roll_to_ready(&mut self, size: u64) -> bool {
        let Some(next) = self.smallest_ready(size) else {
            return false;
        };
        assert_ne!(self.segments.active, Some(next), "what is ready is unused");
        if let Some(active) = self.segments.active {
            let open = self.open.last().filter(|p| p.target.segment == active);
            let end = open.map(|piece| align(piece.end, PAGE));
            let segment = self.segments.get_mut(active);
            segment.write_at = end.unwrap_or(segment.write_at);
            // One that was never written is still as good as new.
            segment.state = if segment.first_sequence == 0 {
                SegmentState::Ready
            } else {
                SegmentState::Filled
            };
        }
        self.segments.active = Some(next);
        let segment = self.segments.get_mut(next);
        assert!(
            segment.live_records == 0 && segment.last_sequence == 0,
            "nothing was written into it"
        );
        segment.state = SegmentState::Active;
        true
    }

    /// Makes room for copying a record of `size` bytes without breaking a reservation. Takes the spare room only if
    /// the disk is full, and leaves their part to records that free others. `false`: there is no room.
    pub(super) fn make_room_for_copy(&mut self, size: u64) -> io::Result<bool> {
        self.make_room_leaving(self.freeing_left(), size)
    }

    /// Makes room as [`Self::make_room_for_copy`] does, for the census that precedes the removal of segments: it
    /// takes the last room.
    pub(super) fn make_room_for_census(&mut self, size: u64) -> io::Result<bool> {
        self.make_room_leaving(0, size)
    }

    fn make_room_leaving(&mut self, left: u64, size: u64) -> io::Result<bool> {
        let needed = self.space.reserved + size;
        if self.room_in_active() >= needed + self.left_in_active(left)
            || self.ready_besides_spare(needed)
        {
            return Ok(true);
        }
        match self.create_segment(needed) {
            Ok(_) => Ok(true),
            Err(error) if is_full(&error) => {
                self.space.pressure = true;
                // Not by way of `place`: the active segment may still take this record, but then not what is promised.
                Ok(self.roll_to_ready(needed + left))
            }
            Err(error) if may_pass(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Room for copies if nothing more can be made, in bytes.
    pub(super) fn room_for_copies_on_full_disk(&self) -> u64 {
        self.room_on_full_disk(self.freeing_left())
    }

    /// Room for a census if nothing more can be made, in bytes.
    pub(super) fn room_for_census_on_full_disk(&self) -> u64 {
        self.room_on_full_disk(0)
    }

    fn room_on_full_disk(&self, left: u64) -> u64 {
        let active = self.room_in_active();
        let active = active.saturating_sub(self.left_in_active(left));
        let ready = self.segments.in_state(SegmentState::Ready);
        let largest = ready.map(|(_, s)| capacity(s)).max().unwrap_or(0);
        let room = active.max(largest.saturating_sub(left));
        room.saturating_sub(self.space.reserved)
    }

    /// The rest of the spare room in the active segment, if the spare is in use; otherwise 0.
    fn left_in_active(&self, left: u64) -> u64 {
        match self.has_spare() {
            true => 0,
            false => left,
        }
    }

    /// True if a whole empty segment is left for reclaiming.
    pub(super) fn has_spare(&self) -> bool {
        let mut ready = self.segments.in_state(SegmentState::Ready);
        ready.any(|(_, s)| s.length >= self.options.segment_bytes)
    }

    pub(super) fn create_spare(&mut self) -> io::Result<()> {
        self.create_segment(0).map(|_| ())
    }

    fn make_room(&mut self, needed: u64) -> io::Result<()> {
        if !self.has_spare() {
            self.create_spare()?;
        }
        if self.room_in_active() >= needed || self.ready_besides_spare(needed) {
            return Ok(());
        }
        self.create_segment(needed).map(|_| ())
    }

    /// True if some ready segment takes `needed` bytes, and another one is left as the spare.
    fn ready_besides_spare(&self, needed: u64) -> bool {
        let Some(chosen) = self.smallest_ready(needed) else {
            return false;
        };
        let mut others = self
            .segments
            .in_state(SegmentState::Ready)
            .filter(|(at, _)| *at != chosen);
        others.any(|(_, s)| s.length >= self.options.segment_bytes)
    }

    fn smallest_ready(&self, size: u64) -> Option<u32> {
        let ready = self.segments.in_state(SegmentState::Ready);
        let fitting = ready.filter(|(_, s)| capacity(s) >= size);
        fitting
            .min_by_key(|(_, s)| (s.length, s.number))
            .map(|f| f.0)
    }

    /// Makes an empty segment for at least `size` bytes of records, durable with its name. A full disk, and a lack of
    /// the system ([`may_pass`]), change nothing. Any other error after the space has been allocated poisons the log,
    /// since it is unknown which writes are durable.
    fn create_segment(&mut self, size: u64) -> io::Result<u32> {
        let number = self.segments.next_number;
        let wanted = align(PAGE + BATCH_HEADER + size, PAGE);
        let length = wanted.max(self.options.segment_bytes);
        assert!(
            length <= MAX_SEGMENT_BYTES,
            "every grain of a segment has a number"
        );
        // What is written into it must be missed if the file goes.
        let made = self.make_extent();
        let made = made.and_then(|()| self.create_file(number, length));
        self.note_exhausted(made.as_ref().err());
        let file = made?;
        self.mark(number + 1)?;
        let segment = Segment::new(number, file, length);
        assert!(capacity(&segment) >= size, "it takes what it is made for");
        Ok(self.segments.insert(segment))
    }

    fn create_file(&self, number: u64, length: u64) -> io::Result<D::File> {
        let name = segment_name(number);
        let file = create_new(&self.disk, &name, length)?;
        let header = SegmentHeader {
            store_id: self.options.store_id,
            number,
            size: length,
        };
        // Under its final name a segment always has its header: recovery may take a missing one for damage.
        let header = header.encode();
        let published = publish(&self.disk, &file, &name, &mut [IoSlice::new(&header)]);
        match published {
            Ok(()) => Ok(file),
            Err(PublishError::Unmade(error)) => Err(error),
            Err(PublishError::Unknown(error)) => {
                self.poison.set(&format_args!("making {name}: {error}"));
                // Never taken for one that passes: a sync may fail with any.
                Err(io::Error::other(error))
            }
        }
    }

    /// Logs once that no segment can be made, with the reason, and once that segments can be made again.
    fn note_exhausted(&mut self, error: Option<&io::Error>) {
        let lacking = error.filter(|error| may_pass(error));
        let before = std::mem::replace(&mut self.space.lacking, lacking.map(io::Error::kind));
        if before == self.space.lacking {
            return;
        }
        if let Some(error) = lacking {
            tracing::warn!(%error, "no segment can be made: requests that need one are refused until it can");
        } else {
            tracing::info!("segments can be made again");
        }
    }
}

/// Bytes of records that an empty segment takes in one batch.
fn capacity<F>(segment: &Segment<F>) -> u64 {
    segment.length.saturating_sub(PAGE + BATCH_HEADER)
}
