//! The log: records in segments, one batch open, at most one in flight.
//!
//! Invariants:
//!
//! - Batches are numbered from 1 without gaps, and one is written only after the one before it is durable. So only the
//!   last batch of a log can be torn; everything else that does not verify is damage.
//! - A batch begins on a fresh page: no write touches bytes that were acknowledged.
//! - A segment file goes only after every live record in it has a durable copy and a durable census leaves it out.
//! - Nothing allocates disk space except making a segment and writing a hint; both may fail without harm.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Commit, CommitProof, Content, Piece, Poison, Target};
use crate::disk::Disk;
use crate::error::{CommitError, StepError};
use crate::format::{
    GRAIN, KIND_USER, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, MAX_SEQUENCE, PAGE, Place, align,
    footprint,
};
use crate::index::{Entry, Handle, Index, Slot};

mod census;
mod ending;
mod extent;
mod judge;
mod open;
mod read;
mod reader;
mod reclaim;
mod scan;
mod scrub;
mod seal;
mod segment;
mod space;
mod step;

pub use open::{OpenReport, PayloadState, RecoveredRecord, TornTail};
pub use scrub::{ScrubOutcome, ScrubPlace};
pub use seal::CloseError;
pub use step::StepOutcome;

use ending::Graves;
use extent::Extents;
use seal::HintJob;
use segment::{SegmentState, Segments};
use space::Space;

/// A segment is made no smaller, in bytes.
const MIN_SEGMENT_BYTES: u64 = 16 << 10;

/// The layout of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Names the store that the segments belong to; random, so that no payload can imitate a header. Must be the same
    /// at every opening.
    pub store_id: u64,
    /// Bytes preallocated for a segment; one that a single record does not fit into is made larger. A multiple of 4096
    /// and at least 16 KiB.
    pub segment_bytes: u64,
    /// A sealed segment is reclaimed when at least this share of it is dead, in percent (1 to 100).
    pub reclaim_dead_percent: u32,
    /// The value of [`Log::extent`] when the log was last used, or an earlier one; 0: it is not known. An extent file of an older
    /// generation means that records are missing.
    pub extent: u64,
}

impl LogOptions {
    /// 64 MiB per segment, reclaimed at half dead.
    pub fn new(store_id: u64) -> Self {
        Self {
            store_id,
            segment_bytes: 64 << 20,
            reclaim_dead_percent: 50,
            extent: 0,
        }
    }

    fn check(&self) {
        assert!(
            self.segment_bytes.is_multiple_of(PAGE) && self.segment_bytes >= MIN_SEGMENT_BYTES,
            "segment_bytes is a multiple of 4096 and at least 16 KiB"
        );
        assert!(
            (1..=100).contains(&self.reclaim_dead_percent),
            "reclaim_dead_percent is 1 to 100"
        );
    }
}

/// Sizes of a log, in bytes unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live records with their headers and padding.
    pub live_bytes: u64,
    /// The other bytes of the segments: freed records, batch headers, padding.
    pub dead_bytes: u64,
    /// All segment files, preallocated space included.
    pub segment_bytes: u64,
    /// The number of segment files.
    pub segments: u64,
    /// The number of live records of the layer above.
    pub records: u64,
    /// Memory that the index holds.
    pub index_bytes: u64,
}

/// An append-only heap of records on a [`Disk`]. The crate's documentation has its promises.
pub struct Log<D: Disk> {
    disk: D,
    options: LogOptions,
    segments: Segments<D::File>,
    index: Index,
    poison: Poison,
    /// The sequence of the last batch that was begun, and the segment it is in.
    sequence: u64,
    predecessor: u64,
    /// All batches up to this one are durable.
    durable: u64,
    open: Vec<Piece<D::File>>,
    in_flight: Vec<Arc<Piece<D::File>>>,
    /// Slots freed to make room for the open batch, and of the one in flight.
    freed_open: Vec<u32>,
    freed_in_flight: Vec<u32>,
    /// The last batch is durable and has no records: nothing before it can be mistaken for a torn tail.
    is_sealed: bool,
    space: Space,
    graves: Graves,
    hint_job: Option<HintJob>,
    reclaim: Option<reclaim::Reclaim>,
    /// The newest census, and whether a newer one must be written although no segment is to go.
    census: Option<Handle>,
    census_generation: u64,
    census_due: bool,
    /// Segments that should be there and are not.
    missing: Vec<u64>,
    /// The reach of the log, as the file beside it has it.
    extents: Extents<D>,
    scrub: scrub::ScrubJob,
    /// Internal records that are live (censuses), not counted in [`Usage::records`].
    internal: u64,
}

impl<D: Disk> Log<D> {
    /// Buffers a record into the open batch: a header of at most 16 KiB and a payload of at most 1 GiB, which is not
    /// copied. `payload_checksum` is the CRC-32C of the whole payload; a wrong one makes the record damaged.
    ///
    /// The space must have been promised by [`Self::reserve`] after the last [`Self::begin_commit`]. Without a promise
    /// the log tries to make the space, and is poisoned if the disk is full.
    ///
    /// # Panics
    /// If the header or the payload is too long.
    pub fn append(&mut self, header: &[u8], payload: &[Bytes], payload_checksum: u32) -> Handle {
        let payload_bytes: usize = payload.iter().map(Bytes::len).sum();
        assert!(header.len() <= MAX_HEADER_BYTES, "a header is small");
        assert!(payload_bytes <= MAX_PAYLOAD_BYTES, "a payload fits");
        let content = Content {
            kind: KIND_USER,
            header,
            payload,
            payload_length: u32::try_from(payload_bytes).expect("at most 1 GiB"),
            payload_checksum,
        };
        let handle = self.push(&content);
        self.space.reserved = self.space.reserved.saturating_sub(content.footprint());
        self.note_freeing(content.footprint());
        handle
    }

    /// Takes the open batch as a job; `None` if nothing was appended. A reservation ends here.
    ///
    /// # Errors
    /// [`CommitError::Poisoned`].
    ///
    /// # Panics
    /// If a commit is in flight.
    pub fn begin_commit(&mut self) -> Result<Option<Commit<D::File>>, CommitError> {
        if self.poison.is_set() {
            return Err(CommitError::Poisoned);
        }
        assert!(self.in_flight.is_empty(), "one commit at a time");
        self.end_reservation();
        if self.open.is_empty() {
            return Ok(None);
        }
        self.is_sealed = false;
        for mut piece in std::mem::take(&mut self.open) {
            piece.finish();
            let segment = self.segments.get_mut(piece.target.segment);
            assert!(piece.end <= segment.length, "room was made for all of it");
            assert!(
                segment.live_bytes < piece.end,
                "what is alive was written, behind headers"
            );
            segment.write_at = align(piece.end, PAGE);
            self.in_flight.push(Arc::new(piece));
        }
        assert_eq!(
            self.durable + self.in_flight.len() as u64,
            self.sequence,
            "everything before this commit is durable"
        );
        std::mem::swap(&mut self.freed_in_flight, &mut self.freed_open);
        assert!(self.freed_open.is_empty(), "the last commit was finished");
        Ok(Some(Commit::new(
            self.in_flight.clone(),
            self.poison.clone(),
        )))
    }

    /// Takes note that the batch in flight is durable.
    ///
    /// # Panics
    /// If it is not the proof of that batch.
    #[allow(clippy::needless_pass_by_value)] // A proof is used up.
    pub fn finish_commit(&mut self, committed: CommitProof) {
        let sequence = committed.sequence;
        let last = self.in_flight.last().expect("a commit is in flight");
        assert_eq!(last.target.sequence, sequence, "the commit in flight");
        // A seal may rot away: it holds nothing.
        if last.records > 0 {
            self.extents.reached = (last.target.place.segment, sequence);
        }
        self.in_flight.clear();
        self.durable = sequence;
        for slot in std::mem::take(&mut self.freed_in_flight) {
            self.forget(slot);
        }
    }

    /// [`Self::begin_commit`], [`Commit::run`] and [`Self::finish_commit`] in one. Blocks.
    ///
    /// # Errors
    /// The error of the disk; the log is poisoned then.
    ///
    /// # Panics
    /// If a commit is in flight.
    pub fn commit(&mut self) -> Result<(), CommitError> {
        if let Some(commit) = self.begin_commit()? {
            let committed = commit.run()?;
            self.finish_commit(committed);
        }
        Ok(())
    }

    /// True if something was appended, or freed, that the next commit will settle.
    pub fn has_open_batch(&self) -> bool {
        !self.open.is_empty()
    }

    /// True if a write or sync has failed, so that every call fails.
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// The first failure, if there was one: a sentence for people.
    pub fn failure(&self) -> Option<&str> {
        self.poison.cause()
    }

    /// Poisons the log: after this error it is unknown which records are durable.
    fn poisoned_by(&self, error: StepError) -> StepError {
        self.poison.set(&error);
        error
    }

    /// The number of the last batch that is durable; never less than before, also after a start.
    pub fn position(&self) -> u64 {
        self.durable
    }

    /// Counts the current sizes of the log.
    pub fn usage(&self) -> Usage {
        assert!(
            self.internal <= self.index.live(),
            "internal records are records"
        );
        let mut usage = Usage {
            records: self.index.live() - self.internal,
            index_bytes: self.index.memory_bytes(),
            ..Usage::default()
        };
        for (at, segment) in self.segments.iter() {
            let open = self.open.last().filter(|p| p.target.segment == at);
            let used = open.map_or(segment.write_at, |piece| piece.end);
            usage.live_bytes += segment.live_bytes;
            usage.dead_bytes += used.saturating_sub(segment.live_bytes);
            usage.segment_bytes += segment.length;
            usage.segments += 1;
        }
        usage
    }

    /// A log without segments.
    fn empty(disk: D, options: LogOptions) -> Self {
        options.check();
        Self {
            extents: Extents::new(disk.beside()),
            disk,
            options,
            segments: Segments::new(),
            index: Index::default(),
            poison: Poison::default(),
            sequence: 0,
            predecessor: 0,
            durable: 0,
            open: Vec::new(),
            in_flight: Vec::new(),
            freed_open: Vec::new(),
            freed_in_flight: Vec::new(),
            is_sealed: false,
            space: Space::default(),
            graves: Graves::default(),
            hint_job: None,
            reclaim: None,
            census: None,
            census_generation: 0,
            census_due: false,
            missing: Vec::new(),
            scrub: scrub::ScrubJob::default(),
            internal: 0,
        }
    }

    fn push(&mut self, content: &Content<'_>) -> Handle {
        let Some((segment, at)) = self.place(content) else {
            return Index::nowhere();
        };
        let entry = Entry {
            segment,
            grain: grain(at),
            payload_length: content.payload_length,
            payload_checksum: content.payload_checksum,
            header_length: u16::try_from(content.header.len()).expect("at most 16 KiB"),
            kind: u8::try_from(content.kind).expect("a small number"),
        };
        self.enter(entry)
    }

    /// Enters a record into the index and its segment.
    fn enter(&mut self, entry: Entry) -> Handle {
        let segment = self.segments.get_mut(entry.segment);
        segment.live_bytes += footprint(entry.header_length.into(), entry.payload_length as usize);
        segment.live_records += 1;
        if u32::from(entry.kind) != KIND_USER {
            self.internal += 1;
        }
        self.index.insert(entry, &mut segment.list)
    }

    /// Puts a record into the open batch; `None` if the log is poisoned, by this if there is no space.
    fn place(&mut self, content: &Content<'_>) -> Option<(u32, u64)> {
        if self.poison.is_set() {
            return None;
        }
        let size = content.footprint();
        if let Err(error) = self.prepare(size) {
            let cause =
                format_args!("making room for {size} bytes that were not reserved: {error}");
            self.poison.set(&cause);
            return None;
        }
        let piece = self.open_piece();
        let at = piece.push(content);
        Some((piece.target.segment, at))
    }

    /// Makes the active segment one that takes `size` bytes of records.
    fn prepare(&mut self, size: u64) -> io::Result<()> {
        if self.sequence >= MAX_SEQUENCE {
            return Err(io::Error::other("the numbers of batches are used up"));
        }
        if self.room_in_active() >= size {
            return Ok(());
        }
        // What is left of a promise must fit behind this record.
        self.roll(size.max(self.space.reserved))
    }

    /// The batch being built in the active segment, begun if there is none.
    fn open_piece(&mut self) -> &mut Piece<D::File> {
        let active = self.segments.active.expect("there is room in it");
        let is_there = self.open.last().map(|p| p.target.segment) == Some(active);
        if !is_there {
            self.sequence += 1;
            let segment = self.segments.get_mut(active);
            assert_eq!(
                segment.state,
                SegmentState::Active,
                "nothing is appended to what is full"
            );
            assert!(
                segment.last_sequence < self.sequence,
                "sequences rise within a segment"
            );
            let target = Target {
                file: segment.file.clone(),
                segment: active,
                place: Place {
                    store_id: self.options.store_id,
                    segment: segment.number,
                    offset: segment.write_at,
                },
                sequence: self.sequence,
                predecessor: self.predecessor,
            };
            if segment.first_sequence == 0 {
                segment.first_sequence = self.sequence;
                segment.predecessor = self.predecessor;
            }
            segment.last_sequence = self.sequence;
            self.predecessor = segment.number;
            self.open.push(Piece::new(target));
        }
        self.open.last_mut().expect("just made")
    }
}

impl Content<'_> {
    fn footprint(&self) -> u64 {
        footprint(self.header.len(), self.payload_length as usize)
    }
}

fn grain(offset: u64) -> u32 {
    assert!(offset.is_multiple_of(GRAIN), "a record begins at a grain");
    u32::try_from(offset / GRAIN).expect("a segment is below 256 GiB")
}

fn slot_offset(slot: &Slot) -> u64 {
    u64::from(slot.grain) * GRAIN
}

fn record_footprint(slot: &Slot) -> u64 {
    footprint(slot.header_length.into(), slot.payload_length as usize)
}

#[cfg(test)]
mod tests;
