//! The bytes of the data files, version 1, as drawn in `docs/data-file.md`. All integers are little-endian.
//!
//! Every batch header and record header names its store, segment and position (in its bytes or in its checksum), so that
//! bytes that merely look like one (a payload that is itself a data file) are never taken for one.

use crate::checksum::crc32c;

mod census;
mod extent;
mod hint;

pub(crate) use census::{Census, CensusEntry};
pub(crate) use extent::{EXTENT_NAME, Extent};
pub(crate) use hint::{HINT_HEADER_BYTES, Hint, HintEntry, HintHeader};

/// The version of this format. Another number in a segment or hint header is refused politely.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Batches begin at multiples of this, so that no write touches a page with older, acknowledged bytes.
pub(crate) const PAGE: u64 = 4096;
/// Records and payloads begin at multiples of this.
pub(crate) const GRAIN: u64 = 64;
/// The zeros, in bytes, behind the last batch of a segment that is cut to its length. A file that ends with a batch was
/// cut by something else.
pub(crate) const END_BYTES: u64 = GRAIN;

pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
pub(crate) const BATCH_HEADER_BYTES: usize = 64;
pub(crate) const RECORD_HEADER_BYTES: usize = 48;

/// The longest header of a record, in bytes.
pub const MAX_HEADER_BYTES: usize = 16 << 10;
/// The longest payload of a record, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 30;

/// A segment is below this: records are found by their grain, in 32 bits.
pub(crate) const MAX_SEGMENT_BYTES: u64 = GRAIN << 32;
/// The largest sequence: no log lives to write as many batches. A larger number is damage that a checksum did not
/// show.
pub(crate) const MAX_SEQUENCE: u64 = 1 << 62;

const _: () = assert!(
    PAGE.is_multiple_of(GRAIN) && (BATCH_HEADER_BYTES as u64).is_multiple_of(GRAIN),
    "the first record of a batch begins at a grain"
);
const _: () = assert!(
    SEGMENT_HEADER_BYTES as u64 <= PAGE,
    "the first batch is behind the segment's header"
);
const _: () = assert!(
    MAX_HEADER_BYTES <= u16::MAX as usize,
    "the index and hints keep the length of a header in 16 bits"
);
const _: () = assert!(
    MAX_PAYLOAD_BYTES <= u32::MAX as usize,
    "a record header keeps the length of a payload in 32 bits"
);
const _: () = assert!(
    PAGE + BATCH_HEADER_BYTES as u64 + footprint(MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES)
        <= MAX_SEGMENT_BYTES,
    "a segment takes the largest record"
);
const _: () = assert!(
    KIND_USER < KIND_CENSUS && KIND_CENSUS <= u8::MAX as u32,
    "the index and hints keep a kind in 8 bits"
);
const _: () = assert!(
    (MAX_SEGMENT_BYTES - 1) / GRAIN == u32::MAX as u64,
    "the last grain of a segment has a number of 32 bits"
);

const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"AreoSegm");
const BATCH_MAGIC: u64 = u64::from_le_bytes(*b"AreoBtch");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"AReC");

/// The kind of a record: the layer above, or the log itself.
pub(crate) const KIND_USER: u32 = 0;
/// The record is a [`Census`].
pub(crate) const KIND_CENSUS: u32 = 1;

/// The space in a segment of one record with a header and a payload of these lengths, in bytes. Pass the sum over the
/// records to [`crate::Log::reserve`].
pub const fn footprint(header_bytes: usize, payload_bytes: usize) -> u64 {
    payload_at(header_bytes) + align(payload_bytes as u64, GRAIN)
}

/// The offset of the payload, counted from the record.
pub(crate) const fn payload_at(header_bytes: usize) -> u64 {
    align((RECORD_HEADER_BYTES + header_bytes) as u64, GRAIN)
}

pub(crate) const fn align(value: u64, to: u64) -> u64 {
    value.next_multiple_of(to)
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("segment-{number:016x}.log")
}

pub(crate) fn hint_name(number: u64) -> String {
    format!("segment-{number:016x}.hint")
}

/// The number in `segment-<16 hex>` + `suffix`.
pub(crate) fn parse_name(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_prefix("segment-")?.strip_suffix(suffix)?;
    let is_canonical = digits.len() == 16
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_canonical.then(|| u64::from_str_radix(digits, 16).ok())?
}

pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store_id: u64,
    pub(crate) number: u64,
    /// The length of the file while batches are appended to it, in bytes. 0: it was made before this was written down.
    pub(crate) size: u64,
}

/// Why a header of a file was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    Damaged,
    Version(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        put_u64(&mut bytes, 0, SEGMENT_MAGIC);
        put_u32(&mut bytes, 8, FORMAT_VERSION);
        put_u64(&mut bytes, 16, self.store_id);
        put_u64(&mut bytes, 24, self.number);
        put_u64(&mut bytes, 32, self.size);
        let checksum = crc32c(&bytes[..60]);
        put_u32(&mut bytes, 60, checksum);
        bytes
    }

    /// The places of magic, version and checksum are the same in every version, so that a flipped bit in the version is
    /// damage and not a refusal.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        if bytes.len() < SEGMENT_HEADER_BYTES
            || get_u64(bytes, 0) != SEGMENT_MAGIC
            || get_u32(bytes, 60) != crc32c(&bytes[..60])
        {
            return Err(HeaderFault::Damaged);
        }
        match get_u32(bytes, 8) {
            FORMAT_VERSION => Ok(Self {
                store_id: get_u64(bytes, 16),
                number: get_u64(bytes, 24),
                size: get_u64(bytes, 32),
            }),
            other => Err(HeaderFault::Version(other)),
        }
    }
}

/// The place of a batch or record; part of what its checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) store_id: u64,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// The first bytes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Counts all batches of a log, from 1.
    pub(crate) sequence: u64,
    /// The segment of the batch before this one, 0 for the first of all.
    pub(crate) predecessor: u64,
    /// The length from the batch header to the end of the last record.
    pub(crate) length: u64,
    pub(crate) records: u32,
}

impl BatchHeader {
    pub(crate) fn encode(&self, place: Place) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        put_u64(&mut bytes, 0, BATCH_MAGIC);
        put_u64(&mut bytes, 8, place.store_id);
        put_u64(&mut bytes, 16, place.segment);
        put_u64(&mut bytes, 24, place.offset);
        put_u64(&mut bytes, 32, self.sequence);
        put_u64(&mut bytes, 40, self.predecessor);
        put_u64(&mut bytes, 48, self.length);
        put_u32(&mut bytes, 56, self.records);
        let checksum = crc32c(&bytes[..60]);
        put_u32(&mut bytes, 60, checksum);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], place: Place) -> Option<Self> {
        let is_ours = bytes.len() >= BATCH_HEADER_BYTES
            && get_u64(bytes, 0) == BATCH_MAGIC
            && get_u64(bytes, 8) == place.store_id
            && get_u64(bytes, 16) == place.segment
            && get_u64(bytes, 24) == place.offset
            && get_u32(bytes, 60) == crc32c(&bytes[..60]);
        let header = is_ours.then(|| Self::unchecked(bytes))?;
        let is_plausible = (BATCH_HEADER_BYTES as u64..=MAX_SEGMENT_BYTES).contains(&header.length)
            && (1..=MAX_SEQUENCE).contains(&header.sequence)
            && u64::from(header.records) <= header.length / GRAIN;
        is_plausible.then_some(header)
    }

    /// The header in the bytes, right or wrong.
    pub(crate) fn unchecked(bytes: &[u8]) -> Self {
        Self {
            sequence: get_u64(bytes, 32),
            predecessor: get_u64(bytes, 40),
            length: get_u64(bytes, 48),
            records: get_u32(bytes, 56),
        }
    }
}

/// The first bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: u32,
    pub(crate) header_length: u32,
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
    pub(crate) header_checksum: u32,
    /// The sequence of the batch.
    pub(crate) sequence: u64,
    /// Counts the records of the batch, from 0.
    pub(crate) index: u32,
}

impl RecordHeader {
    pub(crate) fn encode(&self, place: Place) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        put_u32(&mut bytes, 0, RECORD_MAGIC);
        put_u32(&mut bytes, 4, self.kind);
        put_u32(&mut bytes, 8, self.header_length);
        put_u32(&mut bytes, 12, self.payload_length);
        put_u32(&mut bytes, 16, self.payload_checksum);
        put_u32(&mut bytes, 20, self.header_checksum);
        put_u64(&mut bytes, 24, self.sequence);
        put_u64(&mut bytes, 32, place.store_id);
        put_u32(&mut bytes, 40, self.index);
        let checksum = Self::checksum(&bytes, place);
        put_u32(&mut bytes, 44, checksum);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], place: Place) -> Option<Self> {
        if bytes.len() < RECORD_HEADER_BYTES
            || get_u32(bytes, 0) != RECORD_MAGIC
            || get_u64(bytes, 32) != place.store_id
            || get_u32(bytes, 44) != Self::checksum(bytes, place)
        {
            return None;
        }
        let header = Self::unchecked(bytes);
        header.is_plausible().then_some(header)
    }

    /// True of each written header; a header that is read is believed if it is.
    pub(crate) fn is_plausible(&self) -> bool {
        self.header_length as usize <= MAX_HEADER_BYTES
            && self.payload_length as usize <= MAX_PAYLOAD_BYTES
            && self.kind <= KIND_CENSUS
            && self.index < u32::MAX
    }

    /// The header in the bytes, right or wrong.
    pub(crate) fn unchecked(bytes: &[u8]) -> Self {
        Self {
            kind: get_u32(bytes, 4),
            header_length: get_u32(bytes, 8),
            payload_length: get_u32(bytes, 12),
            payload_checksum: get_u32(bytes, 16),
            header_checksum: get_u32(bytes, 20),
            sequence: get_u64(bytes, 24),
            index: get_u32(bytes, 40),
        }
    }

    pub(crate) fn footprint(&self) -> u64 {
        footprint(self.header_length as usize, self.payload_length as usize)
    }

    /// Covers the position too, which is not stored: a record is valid only where it was written.
    fn checksum(bytes: &[u8], place: Place) -> u32 {
        let mut covered = [0; 60];
        covered[..44].copy_from_slice(&bytes[..44]);
        put_u64(&mut covered, 44, place.segment);
        put_u64(&mut covered, 52, place.offset);
        crc32c(&covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place {
        store_id: 7,
        segment: 3,
        offset: 8192,
    };

    #[test]
    fn headers_come_back_and_every_flipped_bit_is_noticed() {
        let segment = SegmentHeader {
            store_id: 7,
            number: 3,
            size: 64 << 20,
        };
        let batch = BatchHeader {
            sequence: 9,
            predecessor: 2,
            length: 640,
            records: 4,
        };
        let record = RecordHeader {
            kind: KIND_USER,
            header_length: 100,
            payload_length: 5000,
            payload_checksum: 1,
            header_checksum: 2,
            sequence: 9,
            index: 3,
        };
        assert_eq!(SegmentHeader::decode(&segment.encode()), Ok(segment));
        assert_eq!(
            BatchHeader::decode(&batch.encode(PLACE), PLACE),
            Some(batch)
        );
        assert_eq!(
            RecordHeader::decode(&record.encode(PLACE), PLACE),
            Some(record)
        );
        for bit in 0..64 * 8 {
            let flip = |bytes: &mut [u8]| bytes[bit / 8] ^= 1 << (bit % 8);
            let mut bytes = segment.encode();
            flip(&mut bytes);
            assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Damaged));
            let mut bytes = batch.encode(PLACE);
            flip(&mut bytes);
            assert_eq!(BatchHeader::decode(&bytes, PLACE), None);
            if bit < RECORD_HEADER_BYTES * 8 {
                let mut bytes = record.encode(PLACE);
                flip(&mut bytes);
                assert_eq!(RecordHeader::decode(&bytes, PLACE), None);
            }
        }
    }

    #[test]
    fn nothing_is_valid_in_another_place() {
        let batch = BatchHeader {
            sequence: 1,
            predecessor: 0,
            length: 64,
            records: 0,
        };
        let record = RecordHeader {
            kind: KIND_USER,
            header_length: 0,
            payload_length: 0,
            payload_checksum: 0,
            header_checksum: 0,
            sequence: 1,
            index: 0,
        };
        let elsewhere = [
            Place {
                store_id: 8,
                ..PLACE
            },
            Place {
                segment: 4,
                ..PLACE
            },
            Place {
                offset: 4096,
                ..PLACE
            },
        ];
        for other in elsewhere {
            assert_eq!(BatchHeader::decode(&batch.encode(PLACE), other), None);
            assert_eq!(RecordHeader::decode(&record.encode(PLACE), other), None);
        }
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut bytes = SegmentHeader {
            store_id: 1,
            number: 1,
            size: 0,
        }
        .encode();
        put_u32(&mut bytes, 8, 2);
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Damaged));
        let checksum = crc32c(&bytes[..60]);
        put_u32(&mut bytes, 60, checksum);
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Version(2)));
    }

    #[test]
    fn numbers_that_cannot_be_are_damage_behind_a_right_checksum() {
        let batch = BatchHeader {
            sequence: 9,
            predecessor: 2,
            length: 640,
            records: 4,
        };
        let decoded = |header: BatchHeader| BatchHeader::decode(&header.encode(PLACE), PLACE);
        assert_eq!(decoded(batch), Some(batch));
        let sequences =
            [0, MAX_SEQUENCE + 1, u64::MAX].map(|sequence| BatchHeader { sequence, ..batch });
        let lengths =
            [63, MAX_SEGMENT_BYTES + 1, u64::MAX].map(|length| BatchHeader { length, ..batch });
        let records = [11, u32::MAX].map(|records| BatchHeader { records, ..batch });
        for wrong in sequences.into_iter().chain(lengths).chain(records) {
            assert_eq!(decoded(wrong), None, "{wrong:?}");
        }
        let record = RecordHeader {
            kind: KIND_USER,
            header_length: 0,
            payload_length: 0,
            payload_checksum: 0,
            header_checksum: 0,
            sequence: 9,
            index: u32::MAX,
        };
        assert_eq!(RecordHeader::decode(&record.encode(PLACE), PLACE), None);
    }

    #[test]
    fn names_come_back() {
        assert_eq!(parse_name(&segment_name(0x1f), ".log"), Some(0x1f));
        assert_eq!(parse_name(&hint_name(u64::MAX), ".hint"), Some(u64::MAX));
        for foreign in [
            "segment-1.log",
            "segment-000000000000001F.log",
            "segment-+00000000000001f.log",
            "LOCK",
        ] {
            assert_eq!(parse_name(foreign, ".log"), None);
        }
        assert_eq!(
            parse_name(&format!("{}.new", segment_name(1)), ".log"),
            None
        );
    }

    #[test]
    fn footprints_are_whole_grains() {
        assert_eq!(footprint(0, 0), 64);
        assert_eq!(footprint(16, 0), 64);
        assert_eq!(footprint(17, 1), 192);
        assert_eq!(footprint(17, 65), 256);
    }
}
