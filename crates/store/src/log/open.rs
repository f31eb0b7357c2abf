//! Recovery: what the segments hold, and what of it was torn, damaged or lost.
//!
//! A segment with a valid hint is not read, only its first page; the others are scanned. Then the log as a whole
//! decides about every segment that ends in something that does not verify. It is a torn batch, and cut, only if nothing
//! shows that it was durable: its segment was not sealed, no batch anywhere has a larger sequence, and no batch names
//! this segment as the place of a predecessor that is not there. Everything else is damage.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::checksum::crc32c;
use crate::disk::{Disk, File, read_exactly};
use crate::error::OpenError;
use crate::format::{
    END_BYTES, EXTENT_NAME, FORMAT_VERSION, GRAIN, HeaderFault, Hint, HintHeader, KIND_USER,
    SEGMENT_HEADER_BYTES, SegmentHeader, footprint, hint_name, parse_name, segment_name,
};
use crate::index::{Entry, Handle, SlotState};

use super::reader::Reader;
use super::scan::{Batch, FoundRecord, Scan, Subject};
use super::segment::{Segment, SegmentState};
use super::{Log, LogOptions, grain};

/// The number of bytes that are read at a time.
pub(super) const WINDOW_BYTES: usize = 1 << 20;

/// One record that was found, in no particular order.
#[derive(Clone, Copy, Debug)]
pub struct RecoveredRecord<'a> {
    /// Names the record from now on.
    pub handle: Handle,
    /// The record's header, verified.
    pub header: &'a [u8],
    /// The length of the payload in bytes.
    pub payload_length: u64,
    /// The CRC-32C of the payload as it was appended.
    pub payload_checksum: u32,
    /// The state of the payload.
    pub state: PayloadState,
}

/// The state of a record's payload after opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadState {
    /// Read and verified, or empty.
    Intact,
    /// Not read: the record comes from a hint file. Reading it verifies it.
    PayloadUnverified,
    /// Known to be damaged: abstain for this key `[X-11 damage-abstains]`.
    PayloadDamaged,
}

/// The batch that was being written when the log was last used: never durable, so never acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The number of the segment.
    pub segment: u64,
    /// Its offset in the segment.
    pub offset: u64,
}

/// The report of opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Number of records that were handed over.
    pub records: u64,
    /// Segments opened by their hint file.
    pub hinted_segments: u64,
    /// Segments that were read.
    pub scanned_segments: u64,
    /// The bytes read from them.
    pub scanned_bytes: u64,
    /// The batch that was cut off.
    pub torn_tail: Option<TornTail>,
    /// Records handed over as [`PayloadState::PayloadDamaged`].
    pub damaged_payloads: u64,
    /// Batches that do not verify although they had been durable; their records are among the other figures.
    pub damaged_batches: u64,
    /// Hint files that do not verify; nothing is lost by that.
    pub damaged_hints: u64,
    /// First pages of segments that do not verify; nothing is lost by that.
    pub damaged_segment_headers: u64,
    /// Segments that should be there and are not, at most 32 of them.
    pub missing_segments: Vec<u64>,
    /// Segments that something made shorter than they were.
    pub cut_segments: Vec<u64>,
    /// Segments that are whole and lack batches that they held.
    pub older_segments: Vec<u64>,
    /// The extent file is gone, damaged or older than the last start: it is not known what else is missing.
    pub has_lost_extent: bool,
    /// Records, at least so many, that were lost without a trace of their keys, each missing segment and a lost extent counted as one. While
    /// it is not 0 the whole shard must abstain `[X-11 damage-abstains]`. It stays: what may have been lost is in no other log.
    pub unknown_damaged: u64,
}

pub(super) struct Opener<'a, D: Disk> {
    pub(super) log: Log<D>,
    pub(super) report: OpenReport,
    each: &'a mut dyn FnMut(RecoveredRecord<'_>),
    pub(super) unjudged: Vec<ScannedSegment>,
    /// Per segment the last sequence that it is known to have held.
    pub(super) required: BTreeMap<u64, u64>,
    /// Each census with the header of its record.
    pub(super) censuses: Vec<(Handle, Vec<u8>)>,
    /// The buffer that segments are read into, one after another.
    window: Vec<u8>,
    /// Some segment says how long it was made, as those do that are made where an extent is written.
    pub(super) has_sizes: bool,
}

/// A segment that was scanned.
pub(super) struct ScannedSegment {
    pub(super) at: u32,
    pub(super) scan: Scan,
    /// It has a hint file: nothing in it can be torn.
    pub(super) was_sealed: bool,
    /// The content of a valid hint without entries.
    pub(super) hint: Option<HintHeader>,
    /// The size in its own header ([`SegmentHeader`]), if that can be read.
    pub(super) size: Option<u64>,
}

impl<D: Disk> Log<D> {
    /// Opens the log on `disk`, empty or not, and hands over every record found. Makes durable all that it hands over,
    /// cuts off a torn tail, and writes the hints of segments it had to read.
    ///
    /// # Errors
    /// See [`OpenError`]. Damage is no error, see [`OpenReport`].
    ///
    /// # Panics
    /// If the options are out of range.
    pub fn open(
        disk: D,
        options: LogOptions,
        mut each: impl FnMut(RecoveredRecord<'_>),
    ) -> Result<(Self, OpenReport), OpenError> {
        let mut opener = Opener {
            log: Self::empty(disk, options),
            report: OpenReport::default(),
            each: &mut each,
            unjudged: Vec::new(),
            required: BTreeMap::new(),
            censuses: Vec::new(),
            window: Vec::new(),
            has_sizes: false,
        };
        let extent = opener.read_extent()?;
        opener.read_segments()?;
        opener.take_extent(extent)?;
        opener.require_census();
        opener.judge()?;
        opener.take_census();
        opener.settle()?;
        let log = &opener.log;
        assert_eq!(
            opener.report.records + log.internal,
            log.index.live(),
            "every record is handed over, once"
        );
        assert!(!log.has_open_batch(), "opening writes no batch of its own");
        Ok((opener.log, opener.report))
    }
}

impl<D: Disk> Opener<'_, D> {
    fn read_segments(&mut self) -> Result<(), OpenError> {
        let disk = &self.log.disk;
        let names = disk.list().map_err(failed("listing", ""))?;
        let mut numbers = BTreeSet::new();
        let mut hints = BTreeSet::new();
        for name in &names {
            let unfinished = name.strip_suffix(".new");
            if unfinished.is_some_and(|name| name.starts_with("segment-")) {
                disk.remove(name).map_err(failed("removing", name))?;
            }
            numbers.extend(parse_name(name, ".log"));
            hints.extend(parse_name(name, ".hint"));
        }
        for orphan in hints.difference(&numbers) {
            let name = hint_name(*orphan);
            disk.remove(&name).map_err(failed("removing", &name))?;
        }
        disk.sync_dir().map_err(failed("syncing", ""))?;
        for number in &numbers {
            self.read_segment(*number, hints.contains(number))?;
        }
        Ok(())
    }

    fn read_segment(&mut self, number: u64, was_sealed: bool) -> Result<(), OpenError> {
        let name = segment_name(number);
        let file = self
            .log
            .disk
            .open(&name)
            .map_err(failed("opening", &name))?;
        let length = file.length().map_err(failed("reading", &name))?;
        let size = self.check_header(&file, &name, number)?;
        self.report.damaged_segment_headers += u64::from(size.is_none());
        self.has_sizes |= size.is_some_and(|size| size > 0);
        let mut segment = Segment::new(number, file, length);
        segment.state = SegmentState::Filled;
        let at = self.log.segments.insert(segment);

        let mut must_scan = None;
        if was_sealed {
            let hint_name = hint_name(number);
            let bytes = self.read_file(&hint_name);
            let bytes = bytes.map_err(failed("reading", &hint_name))?;
            match Hint::decode(&bytes, self.log.options.store_id, number) {
                Ok(hint) if !hint.header.must_scan => {
                    self.take_hint(at, &hint);
                    return Ok(());
                }
                Ok(hint) => must_scan = Some(hint.header),
                Err(HeaderFault::Version(found)) => return Err(unsupported(&hint_name, found)),
                Err(HeaderFault::Damaged) => self.report.damaged_hints += 1,
            }
        }
        self.scan_segment(at, size, was_sealed, must_scan)
            .map_err(failed("reading", &name))
    }

    /// The size that the segment's first page gives, if that is right; a page of another version or store refuses.
    fn check_header(
        &self,
        file: &D::File,
        name: &str,
        number: u64,
    ) -> Result<Option<u64>, OpenError> {
        let page = read_exactly(file, 0, SEGMENT_HEADER_BYTES).map_err(failed("reading", name))?;
        let Some(page) = page else {
            return Ok(None);
        };
        match SegmentHeader::decode(&page) {
            Ok(header) if header.store_id != self.log.options.store_id => {
                Err(OpenError::ForeignSegment {
                    name: name.to_owned(),
                    found: header.store_id,
                    expected: self.log.options.store_id,
                })
            }
            Ok(header) if header.number != number => Err(OpenError::MisnamedSegment {
                name: name.to_owned(),
                number: header.number,
            }),
            Ok(header) => Ok(Some(header.size)),
            Err(HeaderFault::Version(found)) => Err(unsupported(name, found)),
            Err(HeaderFault::Damaged) => Ok(None),
        }
    }

    fn read_file(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.log.disk.open(name)?;
        let length = usize::try_from(file.length()?).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut bytes = vec![0; length];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn take_hint(&mut self, at: u32, hint: &Hint<'_>) {
        self.report.hinted_segments += 1;
        let length = self.log.segments.get(at).length;
        for entry in hint.entries() {
            let offset = u64::from(entry.grain) * GRAIN;
            let size = footprint(entry.header.len(), entry.payload_length as usize);
            let record = Record {
                offset,
                kind: entry.kind,
                header: entry.header,
                payload_length: entry.payload_length,
                payload_checksum: entry.payload_checksum,
                state: if entry.is_damaged || offset + size > length {
                    PayloadState::PayloadDamaged
                } else {
                    PayloadState::PayloadUnverified
                },
            };
            self.adopt(at, &record);
        }
        let header = hint.header;
        self.take_sequences(
            at,
            header.first_sequence,
            header.last_sequence,
            header.predecessor,
        );
        self.report.unknown_damaged += u64::from(header.unknown_damaged);
        let segment = self.log.segments.get_mut(at);
        assert_eq!(
            segment.live_records, header.records,
            "every entry is adopted"
        );
        segment.write_at = header.end;
        segment.unknown_damaged = header.unknown_damaged;
        segment.had_damage |= header.unknown_damaged > 0;
        segment.has_hint = true;
        segment.is_trimmed = length <= header.end + END_BYTES;
    }

    fn scan_segment(
        &mut self,
        at: u32,
        size: Option<u64>,
        was_sealed: bool,
        hint: Option<HintHeader>,
    ) -> io::Result<()> {
        let segment = self.log.segments.get(at);
        let (file, length, number) = (segment.file.clone(), segment.length, segment.number);
        let window = std::mem::take(&mut self.window);
        let mut subject = Subject {
            reader: Reader::new(&file, length, WINDOW_BYTES, window),
            store_id: self.log.options.store_id,
            segment: number,
        };
        let scan = subject.scan(&mut |batch| self.adopt_batch(at, batch))?;
        self.window = subject.reader.into_window();
        // A census in it is read before the segment is judged.
        self.log.segments.get_mut(at).write_at = scan.end;
        self.report.scanned_segments += 1;
        self.report.scanned_bytes += scan.bytes_read;
        self.take_sequences(
            at,
            scan.first_sequence,
            scan.last_sequence,
            scan.predecessor,
        );
        if let Some(hint) = hint {
            self.require(number, hint.last_sequence);
            self.log.sequence = self.log.sequence.max(hint.last_sequence);
        }
        self.unjudged.push(ScannedSegment {
            at,
            scan,
            was_sealed,
            hint,
            size,
        });
        Ok(())
    }

    fn take_sequences(&mut self, at: u32, first: u64, last: u64, predecessor: u64) {
        assert!(first <= last, "sequences rise within a segment");
        let segment = self.log.segments.get_mut(at);
        segment.first_sequence = first;
        segment.last_sequence = last;
        segment.predecessor = predecessor;
        if last > self.log.durable {
            self.log.durable = last;
            self.log.predecessor = segment.number;
            self.log.extents.reached = (segment.number, last);
        }
        self.log.sequence = self.log.sequence.max(last);
        if first > 1 {
            self.require(predecessor, first - 1);
        }
    }

    pub(super) fn require(&mut self, number: u64, sequence: u64) {
        let required = self.required.entry(number).or_default();
        *required = sequence.max(*required);
    }

    pub(super) fn adopt_batch(&mut self, at: u32, batch: &Batch) {
        for found in &batch.found {
            self.adopt(at, &Record::of(found, batch));
        }
    }

    fn adopt(&mut self, at: u32, record: &Record<'_>) {
        let entry = Entry {
            segment: at,
            grain: grain(record.offset),
            payload_length: record.payload_length,
            payload_checksum: record.payload_checksum,
            header_length: u16::try_from(record.header.len()).expect("at most 16 KiB"),
            kind: u8::try_from(record.kind).expect("a small number"),
        };
        let handle = self.log.enter(entry);
        let is_damaged = record.state == PayloadState::PayloadDamaged;
        if is_damaged {
            let slot = self.log.index.resolve(handle).expect("just entered");
            self.log.index.get_mut(slot).state = SlotState::Damaged;
            let segment = self.log.segments.get_mut(at);
            segment.damaged_records += 1;
            segment.had_damage = true;
        }
        if record.kind != KIND_USER {
            self.censuses.push((handle, record.header.to_vec()));
            return;
        }
        self.report.records += 1;
        self.report.damaged_payloads += u64::from(is_damaged);
        (self.each)(RecoveredRecord {
            handle,
            header: record.header,
            payload_length: record.payload_length.into(),
            payload_checksum: record.payload_checksum,
            state: if record.payload_length == 0
                && record.payload_checksum == crc32c(&[])
                && !is_damaged
            {
                PayloadState::Intact
            } else {
                record.state
            },
        });
    }

    /// Writes hints for the records that were read, as far as there is space, so that they need not be read again and
    /// none can be mistaken for a torn tail.
    fn settle(&mut self) -> Result<(), OpenError> {
        self.log.write_all_hints().map_err(|error| OpenError::Io {
            operation: "sealing",
            name: String::new(),
            source: io::Error::other(error),
        })?;
        // On a full disk there may be none yet.
        self.log.renew_extent().map_err(|error| OpenError::Io {
            operation: "writing",
            name: EXTENT_NAME.to_owned(),
            source: io::Error::other(error),
        })?;
        Ok(())
    }
}

/// A record as it is adopted, wherever it was found.
struct Record<'a> {
    offset: u64,
    kind: u32,
    header: &'a [u8],
    payload_length: u32,
    payload_checksum: u32,
    state: PayloadState,
}

impl<'a> Record<'a> {
    fn of(found: &FoundRecord, batch: &'a Batch) -> Self {
        Self {
            offset: found.offset,
            kind: found.kind,
            header: batch.header(found),
            payload_length: found.payload_length,
            payload_checksum: found.payload_checksum,
            state: if found.is_damaged {
                PayloadState::PayloadDamaged
            } else {
                PayloadState::Intact
            },
        }
    }
}

pub(super) fn failed(
    operation: &'static str,
    name: &str,
) -> impl FnOnce(io::Error) -> OpenError + use<> {
    let name = name.to_owned();
    move |source| OpenError::Io {
        operation,
        name,
        source,
    }
}

pub(super) fn unsupported(name: &str, found: u32) -> OpenError {
    OpenError::UnsupportedVersion {
        name: name.to_owned(),
        found,
        supported: FORMAT_VERSION,
    }
}
