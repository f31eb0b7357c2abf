//! Reading one segment without its hint: which batches are whole, what is left of the others, and what stands at the end.
//!
//! A batch that does not verify is judged by what follows. If a valid batch follows in the segment, it is damage, and
//! its records are *salvaged*: each record header is checked on its own, so that one flipped bit costs one record. If
//! nothing valid follows, it is the [`Tail`], and only the whole log can tell a torn batch from a damaged one.

use std::io;
use std::ops::Range;

use crate::checksum::crc32c;
use crate::disk::File;
use crate::format::{
    BATCH_HEADER_BYTES, BatchHeader, GRAIN, PAGE, Place, RECORD_HEADER_BYTES, RecordHeader, align,
    footprint, payload_at,
};

use super::reader::Reader;

/// The least that a disk writes as a whole, in bytes.
const SECTOR: u64 = 512;

/// A record that was found. Its header bytes are in the [`Batch`] it came with.
pub(crate) struct FoundRecord {
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
    pub(crate) is_damaged: bool,
    header: Range<usize>,
}

/// The records that one read has found.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) found: Vec<FoundRecord>,
    headers: Vec<u8>,
    /// Least number of records of which nothing is known, not even the key.
    pub(crate) unknown: u32,
}

/// The bytes of a segment after its last valid batch, if they are not zeros.
pub(crate) struct Tail {
    pub(crate) at: u64,
    /// The batch header, if at least that is valid.
    pub(crate) header: Option<BatchHeader>,
    /// The rest of it that can be read.
    pub(crate) salvage: Batch,
    /// No part of it is missing, so that it is not torn: bytes that do not verify have rotted.
    pub(crate) was_written: bool,
}

/// A segment that was read.
#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    /// The predecessor named by the first valid batch.
    pub(crate) predecessor: u64,
    /// The offset at which the last valid batch begins, and the offset at which it ends, rounded up to a page.
    pub(crate) last_batch_at: u64,
    pub(crate) end: u64,
    /// Batches before the tail that do not verify, and the records lost in them.
    pub(crate) damaged_batches: u32,
    pub(crate) unknown: u32,
    pub(crate) tail: Option<Tail>,
    pub(crate) bytes_read: u64,
}

/// The segment to read.
pub(crate) struct Subject<'a, F> {
    pub(crate) reader: Reader<'a, F>,
    pub(crate) store_id: u64,
    pub(crate) segment: u64,
}

impl Batch {
    pub(crate) fn header(&self, found: &FoundRecord) -> &[u8] {
        &self.headers[found.header.clone()]
    }

    fn clear(&mut self) {
        self.found.clear();
        self.headers.clear();
        self.unknown = 0;
    }
}

impl<F: File> Subject<'_, F> {
    /// Reads the segment and hands over the records of every batch but the tail.
    pub(crate) fn scan(&mut self, emit: &mut dyn FnMut(&Batch)) -> io::Result<Scan> {
        let mut scan = Scan {
            end: PAGE,
            ..Scan::default()
        };
        let mut batch = Batch::default();
        while scan.end < self.reader.length {
            let at = scan.end;
            let header = self.batch_header(at)?;
            if let Some(header) = header
                && header.sequence > scan.last_sequence
                && self.read_whole(at, header, &mut batch)?
            {
                scan.take(at, header);
                emit(&batch);
                continue;
            }
            if self.reader.is_zero(at, self.reader.length)? {
                break;
            }
            // A length that was checked need not be doubted; without one any page can hold the next batch.
            let search = header.map_or(at + PAGE, |header| {
                let end = at.saturating_add(header.length);
                align(end.min(self.reader.length), PAGE)
            });
            let next = self.next_batch(search, scan.last_sequence)?;
            let end = next.unwrap_or(self.reader.length);
            assert!(end > at, "every turn gets on");
            self.salvage(at, end, header, &mut batch)?;
            if next.is_none() {
                let was_written = self.was_written(at, header, &batch)?;
                let salvage = std::mem::take(&mut batch);
                scan.tail = Some(Tail {
                    at,
                    header,
                    salvage,
                    was_written,
                });
                break;
            }
            scan.damaged_batches += 1;
            scan.unknown = scan.unknown.saturating_add(batch.unknown);
            scan.end = end;
            emit(&batch);
        }
        scan.bytes_read = self.reader.bytes_read;
        Ok(scan)
    }

    fn place(&self, offset: u64) -> Place {
        Place {
            store_id: self.store_id,
            segment: self.segment,
            offset,
        }
    }

    fn batch_header(&mut self, at: u64) -> io::Result<Option<BatchHeader>> {
        let place = self.place(at);
        let bytes = self.reader.slice(at, BATCH_HEADER_BYTES)?;
        Ok(bytes.and_then(|bytes| BatchHeader::decode(bytes, place)))
    }

    fn record_header(&mut self, at: u64) -> io::Result<Option<RecordHeader>> {
        let place = self.place(at);
        let bytes = self.reader.slice(at, RECORD_HEADER_BYTES)?;
        Ok(bytes.and_then(|bytes| RecordHeader::decode(bytes, place)))
    }

    /// The next valid batch header at or after `from`; one that repeats an older sequence is not believed.
    fn next_batch(&mut self, from: u64, last_sequence: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.reader.length {
            let header = self.batch_header(at)?;
            if header.is_some_and(|header| header.sequence > last_sequence) {
                return Ok(Some(at));
            }
            at += PAGE;
        }
        Ok(None)
    }

    /// Reads a batch; whether every byte that matters verifies.
    fn read_whole(&mut self, at: u64, header: BatchHeader, batch: &mut Batch) -> io::Result<bool> {
        batch.clear();
        let Some(end) = at.checked_add(header.length) else {
            return Ok(false);
        };
        if end > self.reader.length {
            return Ok(false);
        }
        let mut position = at + BATCH_HEADER_BYTES as u64;
        for index in 0..header.records {
            let Some(record) = self.record_header(position)? else {
                return Ok(false);
            };
            let is_next = record.sequence == header.sequence && record.index == index;
            let next = position + record.footprint();
            if !is_next || next > end || !self.take(position, record, batch)? {
                return Ok(false);
            }
            if batch.found.last().is_some_and(|found| found.is_damaged) {
                return Ok(false);
            }
            position = next;
        }
        assert_eq!(
            batch.found.len(),
            header.records as usize,
            "every record is taken or the batch is refused"
        );
        Ok(position == end)
    }

    /// Adds a record whose record header is valid; `false` if its header bytes are not.
    fn take(&mut self, at: u64, record: RecordHeader, batch: &mut Batch) -> io::Result<bool> {
        let header_at = at + RECORD_HEADER_BYTES as u64;
        let header = self
            .reader
            .slice(header_at, record.header_length as usize)?;
        let Some(header) = header.filter(|h| crc32c(h) == record.header_checksum) else {
            return Ok(false);
        };
        let start = batch.headers.len();
        batch.headers.extend_from_slice(header);
        let payload = at + payload_at(record.header_length as usize);
        let checksum = self
            .reader
            .checksum(payload, record.payload_length.into())?;
        batch.found.push(FoundRecord {
            offset: at,
            kind: record.kind,
            payload_length: record.payload_length,
            payload_checksum: record.payload_checksum,
            is_damaged: checksum != Some(record.payload_checksum),
            header: start..batch.headers.len(),
        });
        Ok(true)
    }

    /// Collects the rest between `at` and `end`, where one batch, or several with damaged batch headers, stood.
    fn salvage(
        &mut self,
        at: u64,
        end: u64,
        header: Option<BatchHeader>,
        batch: &mut Batch,
    ) -> io::Result<()> {
        batch.clear();
        let end = header.map_or(end, |h| end.min(at.saturating_add(h.length)));
        let mut seen = 0u32;
        let mut holes = 0u32;
        // Where the next record must begin, and its index, if nothing is missing.
        let mut expected = (at + BATCH_HEADER_BYTES as u64, 0u32);
        let mut position = expected.0;
        while position < end {
            let Some(record) = self.record_header(position)? else {
                position += GRAIN;
                continue;
            };
            let follows = (position, record.index) == expected;
            let begins = record.index == 0
                && position == align(expected.0, PAGE) + BATCH_HEADER_BYTES as u64
                && self.reader.is_zero(expected.0, align(expected.0, PAGE))?;
            if !follows && !begins {
                holes += 1;
            }
            if self.take(position, record, batch)? {
                seen += 1;
            } else {
                holes += 1;
            }
            position += record.footprint();
            expected = (position, record.index + 1);
        }
        let rest_is_empty = self.reader.is_zero(expected.0.min(end), end)?;
        if !rest_is_empty || (expected.1 == 0 && header.is_none()) {
            holes += 1;
        }
        batch.unknown = match header {
            Some(header) => header.records.saturating_sub(seen),
            None => holes,
        };
        Ok(())
    }
}

impl<F: File> Subject<'_, F> {
    /// True if every sector of a batch that does not verify was written. A segment is zeros before a batch comes to it, and a write that was cut
    /// short leaves sectors as they were, or ends within one: a torn batch has a sector of zeros, or ends with zeros. One that has neither has
    /// rotted. One that has may be torn, or be rotten and hold zeros.
    fn was_written(
        &mut self,
        at: u64,
        header: Option<BatchHeader>,
        batch: &Batch,
    ) -> io::Result<bool> {
        let Some(last) = batch.found.last() else {
            return Ok(false);
        };
        let (header_length, payload_length) = (last.header.len(), last.payload_length);
        let next = last.offset + footprint(header_length, payload_length as usize);
        let end = header.map_or(next, |header| at.saturating_add(header.length));
        if end > self.reader.length {
            return Ok(false);
        }
        let ends_cut = if next == end {
            last.is_damaged && self.is_cut(last.offset, header_length, payload_length)?
        } else {
            match self.record_header(next)? {
                // Its header bytes do not verify.
                Some(record) if next + record.footprint() == end => {
                    self.is_cut(next, record.header_length as usize, record.payload_length)?
                }
                // Within one grain nothing tells a cut from rot.
                _ => next + GRAIN >= end || self.reader.is_zero(end - GRAIN, end)?,
            }
        };
        if ends_cut {
            return Ok(false);
        }
        let mut sector = at;
        while sector < end {
            let following = (sector + SECTOR).min(end);
            if self.reader.is_zero(sector, following)? {
                return Ok(false);
            }
            sector = following;
        }
        Ok(true)
    }

    /// True if the last byte of a record that does not verify is zero, as it is if the write ended within the record.
    fn is_cut(&mut self, at: u64, header_length: usize, payload_length: u32) -> io::Result<bool> {
        let end = match payload_length {
            0 => at + (RECORD_HEADER_BYTES + header_length) as u64,
            length => at + payload_at(header_length) + u64::from(length),
        };
        self.reader.is_zero(end - 1, end)
    }
}

impl Scan {
    fn take(&mut self, at: u64, header: BatchHeader) {
        assert!(at >= self.end, "batches do not overlap");
        assert!(
            header.sequence > self.last_sequence,
            "an older sequence is not believed"
        );
        if self.first_sequence == 0 {
            self.first_sequence = header.sequence;
            self.predecessor = header.predecessor;
        }
        self.last_sequence = header.sequence;
        self.last_batch_at = at;
        self.end = align(at + header.length, PAGE);
    }
}
