//! The extent of the log, written beside it: when it is opened, before a segment is used, when one is sealed, when the queue is
//! drained, and when the log is closed. Never on the way of a batch.
//!
//! What is written was durable in the log before, and a removed segment differs from a missing one by the census in the log. So a
//! crash between a change of the log and this file makes it say less than it could, and never more.

use std::io::{self, ErrorKind, IoSlice};

use crate::directory::replace;
use crate::disk::{Disk, File, is_full, may_pass, write_all_at};
use crate::error::{OpenError, StepError};
use crate::format::{EXTENT_NAME, Extent, HeaderFault};

use super::open::{Opener, failed, unsupported};
use super::{Log, OpenReport};

/// Batches after which the file is written at the latest, if the store is looked after.
const BATCHES: u64 = 1024;

/// The extent file beside the log.
pub(super) struct Extents<D: Disk> {
    beside: D,
    /// `None`: there was no room for the file yet.
    file: Option<D::File>,
    /// The content of the file, or that of the file to be made.
    written: Extent,
    /// The newest durable batch: its segment, and its sequence.
    pub(super) reached: (u64, u64),
    /// The file is to be written, or made.
    pub(super) is_due: bool,
}

/// The extent file as recovery found it.
pub(super) struct FoundExtent<F> {
    file: F,
    /// `None`: it is damaged.
    extent: Option<Extent>,
}

impl<D: Disk> Extents<D> {
    pub(super) fn new(beside: D) -> Self {
        Self {
            beside,
            file: None,
            written: Extent::default(),
            reached: (0, 0),
            is_due: false,
        }
    }

    /// The number of durable batches that the file does not count yet.
    pub(super) fn behind(&self) -> u64 {
        let behind = self.reached.1.saturating_sub(self.written.sequence);
        if self.file.is_some() { behind } else { 0 }
    }

    /// The number of the newest segment that there was.
    pub(super) fn last_number(&self) -> u64 {
        self.written.next_number.saturating_sub(1)
    }

    /// True if recovery cut this segment at this length, or was about to.
    pub(super) fn cuts(&self, number: u64, length: u64) -> bool {
        (self.written.cut_segment, self.written.cut_at) == (number, length)
    }

    /// More is missing than can be listed.
    pub(super) fn note_loss(&mut self) {
        assert!(self.file.is_some(), "the loss is remembered there");
        self.is_due = true;
        self.written.is_lost = true;
    }
}

impl<D: Disk> Log<D> {
    /// Number of writes to the extent file; 0: none yet. The next start must get it ([`super::LogOptions::extent`]).
    pub fn extent(&self) -> u64 {
        match self.extents.file {
            Some(_) => self.extents.written.generation,
            None => 0,
        }
    }

    /// Says beside the log how far it reaches. `next_number`: every segment below it is there, or was.
    ///
    /// # Errors
    /// That of the disk; the log is poisoned.
    pub(super) fn mark(&mut self, next_number: u64) -> io::Result<()> {
        let (segment, sequence) = self.extents.reached;
        let written = self.extents.written;
        assert!(sequence <= self.durable, "only what is durable is demanded");
        assert!(
            sequence == 0 || segment < next_number,
            "a batch is in a segment that was counted"
        );
        self.write_extent(Extent {
            next_number: next_number.max(written.next_number),
            segment: if sequence > written.sequence {
                segment
            } else {
                written.segment
            },
            sequence: sequence.max(written.sequence),
            ..written
        })
    }

    /// Recovery is about to cut a torn batch out of this segment.
    pub(super) fn note_cut(&mut self, number: u64, at: u64) -> io::Result<()> {
        self.write_extent(Extent {
            cut_segment: number,
            cut_at: at,
            ..self.extents.written
        })
    }

    /// Writes the file if that is due. `true`: it was.
    pub(super) fn renew_extent(&mut self) -> Result<bool, StepError> {
        let is_due = std::mem::take(&mut self.extents.is_due);
        if !is_due && self.extents.behind() < BATCHES {
            return Ok(false);
        }
        let next_number = self.segments.next_number;
        let written = match self.make_extent() {
            Ok(()) => self.mark(next_number),
            // Nothing is missed that was not missed before.
            Err(error) if is_full(&error) || may_pass(&error) => {
                self.extents.is_due = true;
                return Ok(false);
            }
            Err(error) => Err(error),
        };
        let operation = "writing EXTENT";
        written.map_err(|source| StepError::Io { operation, source })?;
        Ok(true)
    }

    /// Makes the file if there is none.
    ///
    /// # Errors
    /// That of the disk, a full one among them.
    pub(super) fn make_extent(&mut self) -> io::Result<()> {
        if self.extents.file.is_some() {
            return Ok(());
        }
        let first = Extent {
            store_id: self.options.store_id,
            generation: self.extents.written.generation.max(self.options.extent) + 1,
            ..self.extents.written
        };
        replace(&self.extents.beside, EXTENT_NAME, &first.file())?;
        self.extents.file = Some(self.extents.beside.open(EXTENT_NAME)?);
        assert!(
            first.generation > self.options.extent,
            "no later start takes it for older than the last one"
        );
        self.extents.written = first;
        Ok(())
    }

    fn write_extent(&mut self, extent: Extent) -> io::Result<()> {
        let Some(file) = &self.extents.file else {
            return Ok(());
        };
        let extent = Extent {
            generation: self.extents.written.generation + 1,
            ..extent
        };
        let before = &self.extents.written;
        assert!(
            extent.sequence >= before.sequence && extent.next_number >= before.next_number,
            "a log does not become shorter"
        );
        let bytes = extent.encode();
        let written = write_all_at(file, &mut [IoSlice::new(&bytes)], extent.offset());
        if let Err(error) = written.and_then(|()| file.sync_data()) {
            self.poison
                .set(&format_args!("writing {EXTENT_NAME}: {error}"));
            return Err(error);
        }
        self.extents.written = extent;
        Ok(())
    }
}

impl<D: Disk> Opener<'_, D> {
    /// The extent file beside the log; `None`: there is no such file.
    pub(super) fn read_extent(&self) -> Result<Option<FoundExtent<D::File>>, OpenError> {
        let file = match self.log.extents.beside.open(EXTENT_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("opening", EXTENT_NAME)(error)),
        };
        let mut bytes = vec![0; Extent::file_bytes()];
        let read = file.read_at(&mut bytes, 0);
        bytes.truncate(read.map_err(failed("reading", EXTENT_NAME))?);
        let extent = match Extent::newest(&bytes) {
            Ok(extent) => extent,
            Err(HeaderFault::Version(found)) => return Err(unsupported(EXTENT_NAME, found)),
            Err(HeaderFault::Damaged) => None,
        };
        let expected = self.log.options.store_id;
        match extent {
            Some(it) if it.store_id != expected => Err(OpenError::ForeignSegment {
                name: EXTENT_NAME.to_owned(),
                found: it.store_id,
                expected,
            }),
            extent => Ok(Some(FoundExtent { file, extent })),
        }
    }

    /// Checks that the log reaches the extent in the file beside it, and writes to the file whether it was missing,
    /// before anything else is written.
    pub(super) fn take_extent(
        &mut self,
        found: Option<FoundExtent<D::File>>,
    ) -> Result<(), OpenError> {
        let wanted = self.log.options.extent;
        let extents = &mut self.log.extents;
        let is_lost = match found {
            Some(FoundExtent {
                file,
                extent: Some(extent),
            }) => {
                extents.file = Some(file);
                extents.written = extent;
                extent.is_lost || extent.generation < wanted
            }
            Some(_) => true,
            None => wanted > 0 || self.has_sizes,
        };
        extents.written.is_lost = is_lost;
        // What is older than the last start must not be taken for newer at the next one.
        extents.written.generation = extents.written.generation.max(wanted);
        let Extent {
            segment, sequence, ..
        } = extents.written;
        extents.is_due = true;
        self.report.has_lost_extent = is_lost;
        self.report.unknown_damaged += u64::from(is_lost);
        self.require(segment, sequence);
        self.log.sequence = self.log.sequence.max(sequence);
        let written = match self.log.make_extent() {
            Ok(()) => self.log.write_extent(self.log.extents.written),
            Err(error) if is_full(&error) => Ok(()),
            Err(error) => Err(error),
        };
        written.map_err(failed("writing", EXTENT_NAME))
    }
}

impl OpenReport {
    /// The missing parts of the log, for people; empty if nothing is missing.
    pub fn missing(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |numbers: &[u64], one: &str, several: &str| match numbers {
            [] => {}
            [number] => parts.push(format!("segment {} {one}", in_hex(*number))),
            [first, .., last] => parts.push(format!(
                "{} segments between {} and {} {several}",
                numbers.len(),
                in_hex(*first),
                in_hex(*last)
            )),
        };
        add(&self.missing_segments, "is gone", "are gone");
        add(&self.cut_segments, "was cut short", "were cut short");
        add(
            &self.older_segments,
            "lacks its last batches",
            "lack their last batches",
        );
        if self.has_lost_extent {
            parts.push(format!(
                "{EXTENT_NAME} is gone, damaged or older than the last start"
            ));
        }
        parts.join("; ")
    }
}

fn in_hex(number: u64) -> String {
    format!("{number:016x}")
}
