//! One batch on its way to the disk: built in memory, written and synced as a job of its own, readable all the while.

use std::fmt::Display;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::checksum::crc32c;
use crate::disk::{File, write_all_at};
use crate::error::CommitError;
use crate::format::{
    BATCH_HEADER_BYTES, BatchHeader, GRAIN, MAX_SEGMENT_BYTES, PAGE, Place, RecordHeader, align,
};

/// Set once a write or sync has failed, or a commit was dropped without having run: nothing the log says can be trusted.
/// Remembers the first error, which is the one to report.
#[derive(Clone, Default)]
pub(crate) struct Poison(Arc<OnceLock<String>>);

impl Poison {
    pub(crate) fn set(&self, cause: &dyn Display) {
        self.0.get_or_init(|| cause.to_string());
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// The place that a batch goes to.
pub(crate) struct Target<F> {
    pub(crate) file: F,
    /// Index of the segment in the log's table.
    pub(crate) segment: u32,
    pub(crate) place: Place,
    pub(crate) sequence: u64,
    pub(crate) predecessor: u64,
}

/// The batch: everything but payloads in one buffer, payloads as the caller's own buffers.
pub(crate) struct Piece<F> {
    pub(crate) target: Target<F>,
    pub(crate) records: u32,
    /// The offset of the next record in the segment.
    pub(crate) end: u64,
    small: Vec<u8>,
    parts: Vec<Part>,
}

struct Part {
    /// Position in the segment.
    at: u64,
    data: Data,
}

enum Data {
    Small(Range<usize>),
    Payload(Bytes),
}

/// The content of a record.
pub(crate) struct Content<'a> {
    pub(crate) kind: u32,
    pub(crate) header: &'a [u8],
    pub(crate) payload: &'a [Bytes],
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
}

impl<F> Piece<F> {
    pub(crate) fn new(target: Target<F>) -> Self {
        let start = target.place.offset;
        assert!(
            start >= PAGE && start.is_multiple_of(PAGE),
            "a batch begins on a fresh page, behind the segment's header"
        );
        assert!(target.sequence > 0, "batches are numbered from 1");
        assert!(
            target.sequence > 1 || target.predecessor == 0,
            "the first batch of all has none before it"
        );
        let mut piece = Self {
            target,
            records: 0,
            end: start,
            small: Vec::new(),
            parts: Vec::new(),
        };
        piece.push_small(&[0; BATCH_HEADER_BYTES]);
        piece
    }

    /// Appends a record; returns its position in the segment.
    pub(crate) fn push(&mut self, content: &Content<'_>) -> u64 {
        let at = self.end;
        assert!(at.is_multiple_of(GRAIN), "records begin at grains");
        assert!(!self.is_finished(), "nothing joins a batch that is closed");
        let header = RecordHeader {
            kind: content.kind,
            header_length: u32::try_from(content.header.len()).expect("checked by the caller"),
            payload_length: content.payload_length,
            payload_checksum: content.payload_checksum,
            header_checksum: crc32c(content.header),
            sequence: self.target.sequence,
            index: self.records,
        };
        assert!(header.is_plausible(), "recovery accepts what is written");
        let place = Place {
            offset: at,
            ..self.target.place
        };
        self.push_small(&header.encode(place));
        self.push_small(content.header);
        self.pad();
        let payload_at = self.end;
        for part in content.payload {
            if !part.is_empty() {
                self.parts.push(Part {
                    at: self.end,
                    data: Data::Payload(part.clone()),
                });
                self.end += part.len() as u64;
            }
        }
        assert_eq!(
            self.end - payload_at,
            u64::from(content.payload_length),
            "the parts are as long as the header says"
        );
        self.pad();
        assert_eq!(
            self.end,
            at + header.footprint(),
            "footprint is what was counted"
        );
        self.records += 1;
        at
    }

    /// Writes the batch header, which must know all records.
    pub(crate) fn finish(&mut self) {
        assert!(!self.is_finished(), "a batch is closed once");
        let header = BatchHeader {
            sequence: self.target.sequence,
            predecessor: self.target.predecessor,
            length: self.end - self.target.place.offset,
            records: self.records,
        };
        assert!(
            header.length <= MAX_SEGMENT_BYTES && header.length.is_multiple_of(GRAIN),
            "a batch is whole grains within a segment"
        );
        assert!(
            u64::from(header.records) <= header.length / GRAIN,
            "recovery believes no more records than there are grains"
        );
        self.small[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode(self.target.place));
    }

    /// The first bytes are zeros until they are the batch header.
    fn is_finished(&self) -> bool {
        self.small[0] != 0
    }

    pub(crate) fn contains(&self, segment: u32, at: u64) -> bool {
        self.target.segment == segment && at >= self.target.place.offset && at < self.end
    }

    /// The bytes at a position of the segment that this batch covers; without a copy if they are within one payload
    /// part.
    pub(crate) fn read(&self, at: u64, length: usize) -> Bytes {
        assert!(at + length as u64 <= self.end, "within this batch");
        assert!(self.target.place.offset <= at, "not before this batch");
        if length == 0 {
            return Bytes::new();
        }
        let mut index = self.parts.partition_point(|part| part.at <= at) - 1;
        let skip = |part: &Part, at: u64| usize::try_from(at - part.at).expect("within a part");
        if let Data::Payload(bytes) = &self.parts[index].data {
            let start = skip(&self.parts[index], at);
            if start + length <= bytes.len() {
                return bytes.slice(start..start + length);
            }
        }
        let mut gathered = Vec::with_capacity(length);
        while gathered.len() < length {
            let part = &self.parts[index];
            let start = skip(part, at + gathered.len() as u64);
            let bytes = &self.slice(part)[start..];
            let wanted = length - gathered.len();
            gathered.extend_from_slice(&bytes[..bytes.len().min(wanted)]);
            index += 1;
        }
        Bytes::from(gathered)
    }

    fn slice<'a>(&'a self, part: &'a Part) -> &'a [u8] {
        match &part.data {
            Data::Small(range) => &self.small[range.clone()],
            Data::Payload(bytes) => bytes,
        }
    }

    fn push_small(&mut self, bytes: &[u8]) {
        let start = self.small.len();
        self.small.extend_from_slice(bytes);
        let end = self.small.len();
        match self.parts.last_mut() {
            Some(Part {
                data: Data::Small(range),
                ..
            }) => range.end = end,
            _ => self.parts.push(Part {
                at: self.end,
                data: Data::Small(start..end),
            }),
        }
        self.end += bytes.len() as u64;
    }

    fn pad(&mut self) {
        const ZEROS: [u8; GRAIN as usize] = [0; GRAIN as usize];
        let missing = usize::try_from(align(self.end, GRAIN) - self.end).expect("below a grain");
        if missing > 0 {
            self.push_small(&ZEROS[..missing]);
        }
    }
}

impl<F: File> Piece<F> {
    /// Writes the batch and syncs the segment.
    fn write(&self) -> Result<(), CommitError> {
        assert!(self.is_finished(), "only a closed batch is written");
        let lengths = self.parts.iter().map(|part| self.slice(part).len() as u64);
        assert_eq!(
            lengths.sum::<u64>(),
            self.end - self.target.place.offset,
            "what is written is as long as the batch header says"
        );
        let segment = self.target.place.segment;
        let slice = |part| IoSlice::new(self.slice(part));
        let mut slices: Vec<IoSlice<'_>> = self.parts.iter().map(slice).collect();
        write_all_at(&self.target.file, &mut slices, self.target.place.offset)
            .map_err(|source| CommitError::Write { segment, source })?;
        let synced = self.target.file.sync_data();
        synced.map_err(|source| CommitError::Sync { segment, source })
    }
}

/// The batch that was open, as a job that owns all it needs: run it on any thread, then hand the result to
/// [`crate::Log::finish_commit`]. Dropping it, or a failure in it, poisons the log.
#[must_use = "a commit that does not run poisons the log"]
pub struct Commit<F: File> {
    pieces: Vec<Arc<Piece<F>>>,
    guard: Guard,
}

/// The proof that a [`Commit`] is durable.
#[must_use = "hand it to finish_commit"]
pub struct CommitProof {
    pub(crate) sequence: u64,
}

struct Guard {
    poison: Poison,
    is_armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_armed {
            self.poison.set(&"a batch was not made durable");
        }
    }
}

impl<F: File> Commit<F> {
    pub(crate) fn new(pieces: Vec<Arc<Piece<F>>>, poison: Poison) -> Self {
        assert!(!pieces.is_empty(), "a commit has something to write");
        let is_next = |pair: &[Arc<Piece<F>>]| {
            let [one, next] = [&pair[0].target, &pair[1].target];
            one.sequence + 1 == next.sequence && one.place.segment == next.predecessor
        };
        assert!(
            pieces.windows(2).all(is_next),
            "batches are written in their order, and each names the one before"
        );
        Self {
            pieces,
            guard: Guard {
                poison,
                is_armed: true,
            },
        }
    }

    /// The bytes that will be written.
    pub fn bytes(&self) -> u64 {
        let lengths = self.pieces.iter().map(|p| p.end - p.target.place.offset);
        lengths.sum()
    }

    /// Writes and syncs. Blocks.
    ///
    /// # Errors
    /// The error of the disk; the log is poisoned then.
    pub fn run(mut self) -> Result<CommitProof, CommitError> {
        // A batch that spills into the next segment is two batches, the second begun only when the first is durable: so
        // of all batches only the last can ever be torn, which recovery relies on.
        if let Err(error) = self.pieces.iter().try_for_each(|piece| piece.write()) {
            self.guard.poison.set(&error);
            return Err(error);
        }
        self.guard.is_armed = false;
        let last = self.pieces.last().expect("asserted when made");
        Ok(CommitProof {
            sequence: last.target.sequence,
        })
    }
}
