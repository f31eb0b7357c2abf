//! A server's records in a [`Log`]: the typed layer. It gives each record of [`areo_core::server::record`] its bytes, and
//! knows under which place of the log the server's own handles are kept.

use areo_core::element::{Element, Handle as RecordHandle};
use areo_core::server::record::{ElementHeader, Header, Step};
use areo_core::shard::{Heap, LostRecord};
use areo_wire::record;
use bytes::Bytes;

use crate::batch::{Commit, CommitProof};
use crate::checksum::crc32c;
use crate::disk::Disk;
use crate::error::{CommitError, OpenError, ReserveError, StepError};
use crate::format::{MAX_HEADER_BYTES, footprint};
use crate::index::Handle;
use crate::log::{
    CloseError, Log, LogOptions, OpenReport, PayloadState, ScrubOutcome, ScrubPlace, StepOutcome,
    Usage,
};

/// The most bytes of a record's header beside a name and metadata.
const HEADER_BYTES: usize = 256;

const _: () = assert!(
    record::MAX_HEADER_BYTES <= MAX_HEADER_BYTES,
    "the log takes every header that there is"
);

/// A server's records on a disk.
pub struct Records<D: Disk> {
    log: Log<D>,
    /// The places of records, by the server's handle.
    places: Vec<Option<Handle>>,
}

/// A damaged record of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedElement {
    /// The header of the record.
    pub header: ElementHeader,
    record: Handle,
}

/// The report of opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpeningReport {
    /// The report of the log.
    pub log: OpenReport,
    /// Records whose headers are intact and of no kind that this version knows.
    pub unknown_records: u64,
}

impl OpeningReport {
    /// Records were lost of which not even the key is known: nothing may be answered for any object
    /// (`[X-11 damage-abstains]`).
    pub fn is_unreadable(&self) -> bool {
        self.log.unknown_damaged > 0 || self.unknown_records > 0
    }
}

/// Space that an element's record takes at most, in bytes; for [`Records::reserve`].
pub fn element_footprint(name_bytes: usize, metadata_bytes: usize, payload_bytes: usize) -> u64 {
    footprint(HEADER_BYTES + name_bytes + metadata_bytes, payload_bytes)
}

/// Space that a record without an element takes at most, in bytes.
pub fn small_footprint(content_bytes: usize) -> u64 {
    footprint(HEADER_BYTES + content_bytes, 0)
}

impl<D: Disk> Records<D> {
    /// Opens the log and hands every record to `recover`, with whether its payload is damaged; the handle that this
    /// returns names the record from now on.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open(
        disk: D,
        options: LogOptions,
        mut recover: impl FnMut(Header, bool) -> RecordHandle,
    ) -> Result<(Records<D>, OpeningReport), OpenError> {
        let mut places = Vec::new();
        let mut unknown_records = 0;
        let (log, report) = Log::open(disk, options, |found| {
            match record::decode_header(found.header) {
                Ok(header) => {
                    let handle = recover(header, found.state == PayloadState::PayloadDamaged);
                    place(&mut places, handle, found.handle);
                }
                Err(error) => {
                    tracing::error!(%error, "a record that cannot be understood");
                    unknown_records += 1;
                }
            }
        })?;
        let placed = places.iter().flatten().count() as u64;
        assert_eq!(
            placed + unknown_records,
            report.records,
            "every record has a place of its own"
        );
        let opened = OpeningReport {
            log: report,
            unknown_records,
        };
        Ok((Records { log, places }, opened))
    }

    /// See [`Log::reserve`].
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.log.reserve(bytes)
    }

    /// See [`Log::reserve_to_release`].
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve_to_release(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.log.reserve_to_release(bytes)
    }

    /// See [`Log::reserve_to_free`].
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve_to_free(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.log.reserve_to_free(bytes)
    }

    /// See [`Log::reserve_to_complete`].
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn reserve_to_complete(&mut self, bytes: u64) -> Result<(), ReserveError> {
        self.log.reserve_to_complete(bytes)
    }

    /// The generation of the extent file, see [`Log::extent`].
    pub fn extent(&self) -> u64 {
        self.log.extent()
    }

    /// The number of the last batch, see [`Log::position`].
    pub fn position(&self) -> u64 {
        self.log.position()
    }

    /// [`Log::failure`] of the records' log.
    pub fn failure(&self) -> Option<&str> {
        self.log.failure()
    }

    /// Space that these steps take, in bytes; for [`Records::reserve`].
    pub fn footprint(steps: &[Step]) -> u64 {
        let of = |step: &Step| match step {
            Step::Append {
                header, payload, ..
            } => footprint(record::encode_header(header).len(), payload.len()),
            Step::Free(_) | Step::Bury { .. } => 0,
        };
        steps.iter().map(of).sum()
    }

    /// Puts the steps into the open batch.
    pub fn apply(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Append {
                    handle,
                    header,
                    payload,
                    checksum,
                } => {
                    let checksum = checksum.unwrap_or_else(|| crc32c(&payload));
                    let bytes = record::encode_header(&header);
                    if let Header::Element(header) = &*header {
                        assert!(
                            bytes.len()
                                <= HEADER_BYTES
                                    + header.name.as_bytes().len()
                                    + header.metadata.len(),
                            "an element takes no more than `element_footprint` says"
                        );
                    }
                    let payload = if payload.is_empty() {
                        vec![]
                    } else {
                        vec![payload]
                    };
                    let kept = self.log.append(&bytes, &payload, checksum);
                    place(&mut self.places, handle, kept);
                }
                Step::Free(handle) => {
                    let kept = self.take(handle);
                    self.log.free(kept);
                }
                Step::Bury { handle, grave } => {
                    let kept = self.take(handle);
                    self.log.bury(kept, grave);
                }
            }
        }
    }

    /// The place of a record that goes.
    fn take(&mut self, handle: RecordHandle) -> Handle {
        let kept = self.places[handle.0 as usize].take();
        kept.expect("only what is kept is freed, once")
    }

    /// [`Log::may_return`] of the records' log.
    pub fn may_return(&self, grave: u64) -> bool {
        self.log.may_return(grave)
    }

    /// See [`Log::begin_commit`].
    ///
    /// # Errors
    /// As [`Log::begin_commit`].
    pub fn begin_commit(&mut self) -> Result<Option<Commit<D::File>>, CommitError> {
        self.log.begin_commit()
    }

    /// [`Log::finish_commit`] of the records' log.
    pub fn finish_commit(&mut self, committed: CommitProof) {
        self.log.finish_commit(committed);
    }

    /// See [`Log::commit`].
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit(&mut self) -> Result<(), CommitError> {
        self.log.commit()
    }

    /// See [`Log::seal`].
    ///
    /// # Errors
    /// As [`Log::seal`].
    pub fn seal(&mut self) -> Result<(), CommitError> {
        self.log.seal()
    }

    /// True if this handle of the server names the damaged record. The element may have another record by now.
    pub fn is_damaged(&self, handle: RecordHandle, element: &DamagedElement) -> bool {
        self.places.get(handle.0 as usize) == Some(&Some(element.record))
    }

    /// See [`Log::step`]. A damaged record is said by its header, if that can still be read.
    ///
    /// # Errors
    /// As [`Log::step`].
    pub fn step(&mut self) -> Result<(StepOutcome, Option<DamagedElement>), StepError> {
        let outcome = self.log.step()?;
        let damaged = match outcome {
            StepOutcome::Damaged(handle) => self.damaged_element(handle),
            _ => None,
        };
        Ok((outcome, damaged))
    }

    /// [`Log::scrub_place`] of the records' log.
    pub fn scrub_place(&self) -> ScrubPlace {
        self.log.scrub_place()
    }

    /// [`Log::scrub_at`] of the records' log.
    pub fn scrub_at(&mut self, place: ScrubPlace) {
        self.log.scrub_at(place);
    }

    /// [`Log::scrub_from`] of the records' log.
    pub fn scrub_from(&mut self, number: u64) {
        self.log.scrub_from(number);
    }

    /// Verifies records, see [`Log::scrub`]; returns the damaged elements.
    pub fn scrub(&mut self, budget_bytes: u64) -> (ScrubOutcome, Vec<DamagedElement>) {
        let mut damaged = Vec::new();
        let outcome = self.log.scrub(budget_bytes, |handle| damaged.push(handle));
        let elements = damaged
            .into_iter()
            .filter_map(|handle| self.damaged_element(handle));
        (outcome, elements.collect())
    }

    fn damaged_element(&self, record: Handle) -> Option<DamagedElement> {
        let header = self.log.read_header(record).ok()?;
        match record::decode_header(&header) {
            Ok(Header::Element(header)) => Some(DamagedElement { header, record }),
            _ => None,
        }
    }

    /// [`Log::usage`] of the records' log.
    pub fn usage(&self) -> Usage {
        self.log.usage()
    }

    /// See [`Log::close`].
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn close(self) -> Result<(), CloseError> {
        self.log.close()
    }
}

fn place(places: &mut Vec<Option<Handle>>, handle: RecordHandle, kept: Handle) {
    let at = handle.0 as usize;
    if places.len() <= at {
        places.resize(at + 1, None);
    }
    assert!(places[at].is_none(), "a handle names one record");
    places[at] = Some(kept);
}

impl<D: Disk> Heap for Records<D> {
    fn element(&self, handle: RecordHandle, payload: bool) -> Result<Element, LostRecord> {
        let kept = self.places[handle.0 as usize].expect("replies name what is kept");
        let lost = |error| {
            tracing::error!(%error, "an element that cannot be read");
            LostRecord
        };
        let header = self.log.read_header(kept).map_err(lost)?;
        let Ok(Header::Element(header)) = record::decode_header(&header) else {
            return Err(LostRecord);
        };
        let checksum = self.log.payload_checksum(kept).map_err(lost)?;
        let bytes = match payload {
            true => self.log.read_payload(kept).map_err(lost)?,
            false => Bytes::new(),
        };
        Ok(element(header, bytes, payload.then_some(checksum)))
    }
}

fn element(header: ElementHeader, payload: Bytes, checksum: Option<u32>) -> Element {
    Element {
        form: header.form,
        deleted: header.deleted,
        length: header.length,
        metadata: header.metadata,
        payload,
        checksum,
    }
}

/// A server's elements in memory: nothing survives the process.
#[derive(Default)]
pub struct MemoryRecords {
    /// The elements, by the server's handle; records other than elements live in the server's state only.
    elements: Vec<Option<Element>>,
    bytes: u64,
}

impl MemoryRecords {
    /// Takes in the steps.
    pub fn apply(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Append {
                    handle,
                    header,
                    payload,
                    checksum,
                } => {
                    let Header::Element(header) = *header else {
                        continue;
                    };
                    let at = handle.0 as usize;
                    if self.elements.len() <= at {
                        self.elements.resize(at + 1, None);
                    }
                    assert!(self.elements[at].is_none(), "a handle names one record");
                    self.bytes += payload.len() as u64;
                    let checksum = checksum.unwrap_or_else(|| crc32c(&payload));
                    // What came is a part of a frame; what stays beside the payload is a copy of its own.
                    let metadata = Bytes::copy_from_slice(&header.metadata);
                    let header = ElementHeader { metadata, ..header };
                    self.elements[at] = Some(element(header, payload, Some(checksum)));
                }
                Step::Free(handle) | Step::Bury { handle, .. } => {
                    let freed = self
                        .elements
                        .get_mut(handle.0 as usize)
                        .and_then(Option::take);
                    let bytes = freed.map_or(0, |element| element.payload.len() as u64);
                    assert!(bytes <= self.bytes, "what is freed was counted");
                    self.bytes -= bytes;
                }
            }
        }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.elements.iter().flatten().count()
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Heap for MemoryRecords {
    fn element(&self, handle: RecordHandle, payload: bool) -> Result<Element, LostRecord> {
        let element = self.elements[handle.0 as usize].as_ref();
        let element = element.expect("replies name what is kept").clone();
        Ok(match payload {
            true => element,
            false => Element {
                payload: Bytes::new(),
                checksum: None,
                ..element
            },
        })
    }
}
