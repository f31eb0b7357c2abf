//! The hint file of a sealed segment: the headers of its records, so that opening need not read the segment.
//!
//! That the file exists, with any content, proves that its segment was sealed: everything in it was durable, and
//! nothing in it is a torn tail.

use crate::checksum::crc32c;

use super::{
    FORMAT_VERSION, GRAIN, HeaderFault, KIND_CENSUS, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES,
    MAX_SEGMENT_BYTES, MAX_SEQUENCE, PAGE, footprint, get_u32, get_u64, put_u32, put_u64,
};

pub(crate) const HINT_HEADER_BYTES: usize = 96;
const ENTRY_BYTES: usize = 16;
const HINT_MAGIC: u64 = u64::from_le_bytes(*b"AreoHint");
const FLAG_SCAN: u32 = 1;
const ENTRY_DAMAGED: u8 = 1;

/// The first bytes of a hint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HintHeader {
    pub(crate) store_id: u64,
    pub(crate) segment: u64,
    /// The sequences of the first and the last batch, 0 if there is none.
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    /// The predecessor named by the first batch.
    pub(crate) predecessor: u64,
    /// The end of the last batch, rounded up to a page: the length of the segment.
    pub(crate) end: u64,
    /// There are no entries, because reading the segment costs about as much as reading them would.
    pub(crate) must_scan: bool,
    pub(crate) records: u32,
    /// Lost records whose headers are not known, carried until the layer above has repaired them.
    pub(crate) unknown_damaged: u32,
}

/// The hint for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HintEntry<'a> {
    /// The position in the segment, in grains.
    pub(crate) grain: u32,
    pub(crate) kind: u32,
    pub(crate) is_damaged: bool,
    pub(crate) payload_length: u32,
    pub(crate) payload_checksum: u32,
    pub(crate) header: &'a [u8],
}

/// A whole hint file whose checksums are right.
pub(crate) struct Hint<'a> {
    pub(crate) header: HintHeader,
    body: &'a [u8],
}

impl HintHeader {
    /// The header in the bytes, right or wrong.
    pub(crate) fn unchecked(bytes: &[u8]) -> Self {
        Self {
            store_id: get_u64(bytes, 16),
            segment: get_u64(bytes, 24),
            first_sequence: get_u64(bytes, 32),
            last_sequence: get_u64(bytes, 40),
            predecessor: get_u64(bytes, 48),
            end: get_u64(bytes, 56),
            must_scan: get_u32(bytes, 12) & FLAG_SCAN != 0,
            records: get_u32(bytes, 72),
            unknown_damaged: get_u32(bytes, 76),
        }
    }

    fn is_plausible(&self) -> bool {
        self.is_consistent() && self.end <= MAX_SEGMENT_BYTES && self.last_sequence <= MAX_SEQUENCE
    }

    /// True of each written hint; a hint that is read is believed if it is.
    pub(crate) fn is_consistent(&self) -> bool {
        self.end >= PAGE
            && self.end.is_multiple_of(PAGE)
            && self.first_sequence <= self.last_sequence
    }

    pub(crate) fn encode(&self, body: &[u8]) -> [u8; HINT_HEADER_BYTES] {
        let mut bytes = [0; HINT_HEADER_BYTES];
        put_u64(&mut bytes, 0, HINT_MAGIC);
        put_u32(&mut bytes, 8, FORMAT_VERSION);
        put_u32(&mut bytes, 12, if self.must_scan { FLAG_SCAN } else { 0 });
        put_u64(&mut bytes, 16, self.store_id);
        put_u64(&mut bytes, 24, self.segment);
        put_u64(&mut bytes, 32, self.first_sequence);
        put_u64(&mut bytes, 40, self.last_sequence);
        put_u64(&mut bytes, 48, self.predecessor);
        put_u64(&mut bytes, 56, self.end);
        put_u64(&mut bytes, 64, body.len() as u64);
        put_u32(&mut bytes, 72, self.records);
        put_u32(&mut bytes, 76, self.unknown_damaged);
        put_u32(&mut bytes, 80, crc32c(body));
        let checksum = crc32c(&bytes[..92]);
        put_u32(&mut bytes, 92, checksum);
        bytes
    }
}

impl HintEntry<'_> {
    /// True if a segment that ends there can hold the record: memory is set aside for a payload before it is read.
    fn is_plausible(&self, end: u64) -> bool {
        let payload_length = self.payload_length as usize;
        let size = footprint(self.header.len(), payload_length);
        payload_length <= MAX_PAYLOAD_BYTES
            && u64::from(self.grain) * GRAIN + size <= end
            && self.kind <= KIND_CENSUS
    }

    pub(crate) fn length(header_bytes: usize) -> usize {
        ENTRY_BYTES + header_bytes
    }

    pub(crate) fn encode(&self, body: &mut Vec<u8>) {
        let header_length = u16::try_from(self.header.len()).expect("at most 16 KiB");
        body.extend_from_slice(&self.grain.to_le_bytes());
        body.push(u8::try_from(self.kind).expect("a small number"));
        body.push(if self.is_damaged { ENTRY_DAMAGED } else { 0 });
        body.extend_from_slice(&header_length.to_le_bytes());
        body.extend_from_slice(&self.payload_length.to_le_bytes());
        body.extend_from_slice(&self.payload_checksum.to_le_bytes());
        body.extend_from_slice(self.header);
    }
}

impl<'a> Hint<'a> {
    /// Checks everything: the result can be walked without errors.
    pub(crate) fn decode(
        bytes: &'a [u8],
        store_id: u64,
        segment: u64,
    ) -> Result<Self, HeaderFault> {
        if bytes.len() < HINT_HEADER_BYTES
            || get_u64(bytes, 0) != HINT_MAGIC
            || get_u32(bytes, 92) != crc32c(&bytes[..92])
        {
            return Err(HeaderFault::Damaged);
        }
        let version = get_u32(bytes, 8);
        if version != FORMAT_VERSION {
            return Err(HeaderFault::Version(version));
        }
        let header = HintHeader::unchecked(bytes);
        let body = &bytes[HINT_HEADER_BYTES..];
        let hint = Self { header, body };
        let is_whole = header.store_id == store_id
            && header.segment == segment
            && header.is_plausible()
            && get_u64(bytes, 64) == body.len() as u64
            && get_u32(bytes, 80) == crc32c(body)
            && hint.entries().count() == header.records as usize
            && hint.entries().all(|entry| entry.is_plausible(header.end))
            && hint.entries().map(|e| Self::length_of(&e)).sum::<usize>() == body.len();
        is_whole.then_some(hint).ok_or(HeaderFault::Damaged)
    }

    /// The records, in the order of the segment.
    pub(crate) fn entries(&self) -> impl Iterator<Item = HintEntry<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (entry, behind) = Self::split(rest)?;
            rest = behind;
            Some(entry)
        })
    }

    fn length_of(entry: &HintEntry<'_>) -> usize {
        ENTRY_BYTES + entry.header.len()
    }

    fn split(bytes: &'a [u8]) -> Option<(HintEntry<'a>, &'a [u8])> {
        let (fixed, rest) = bytes.split_at_checked(ENTRY_BYTES)?;
        let header_length = usize::from(u16::from_le_bytes([fixed[6], fixed[7]]));
        if header_length > MAX_HEADER_BYTES {
            return None;
        }
        let (header, rest) = rest.split_at_checked(header_length)?;
        let entry = HintEntry {
            grain: get_u32(fixed, 0),
            kind: u32::from(fixed[4]),
            is_damaged: fixed[5] & ENTRY_DAMAGED != 0,
            payload_length: get_u32(fixed, 8),
            payload_checksum: get_u32(fixed, 12),
            header,
        };
        Some((entry, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<(u32, Vec<u8>)> {
        vec![(65, b"one".to_vec()), (67, vec![]), (900, vec![9; 300])]
    }

    fn sample() -> (HintHeader, Vec<u8>) {
        sample_of(5)
    }

    /// An encoded hint whose first payload has this length.
    fn sample_of(payload_length: u32) -> (HintHeader, Vec<u8>) {
        let mut body = Vec::new();
        for (grain, header) in &entries() {
            HintEntry {
                grain: *grain,
                kind: 0,
                is_damaged: *grain == 67,
                payload_length: if *grain == 65 { payload_length } else { 5 },
                payload_checksum: 6,
                header,
            }
            .encode(&mut body);
        }
        let header = HintHeader {
            store_id: 1,
            segment: 2,
            first_sequence: 3,
            last_sequence: 4,
            predecessor: 1,
            end: 61_440,
            must_scan: false,
            records: 3,
            unknown_damaged: 0,
        };
        (header, body)
    }

    #[test]
    fn comes_back_and_every_flipped_byte_is_noticed() {
        let (header, body) = sample();
        let mut file = header.encode(&body).to_vec();
        file.extend_from_slice(&body);
        let hint = Hint::decode(&file, 1, 2).ok().unwrap();
        assert_eq!(hint.header, header);
        let back: Vec<_> = hint
            .entries()
            .map(|e| (e.grain, e.header.to_vec()))
            .collect();
        assert_eq!(back, entries());
        assert!(hint.entries().nth(1).unwrap().is_damaged);

        assert!(Hint::decode(&file, 9, 2).is_err());
        assert!(Hint::decode(&file, 1, 9).is_err());
        for at in 0..file.len() {
            file[at] ^= 0x10;
            assert!(Hint::decode(&file, 1, 2).is_err(), "byte {at}");
            file[at] ^= 0x10;
            assert!(Hint::decode(&file[..at], 1, 2).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_damage_behind_a_right_checksum() {
        let (header, body) = sample();
        let ends = [0, 4095, 61_441, 57_344, MAX_SEGMENT_BYTES + PAGE]
            .map(|end| HintHeader { end, ..header });
        let lasts = [2, MAX_SEQUENCE + 1].map(|last_sequence| HintHeader {
            last_sequence,
            ..header
        });
        for wrong in ends.into_iter().chain(lasts) {
            let mut file = wrong.encode(&body).to_vec();
            file.extend_from_slice(&body);
            let decoded = Hint::decode(&file, 1, 2);
            assert_eq!(decoded.err(), Some(HeaderFault::Damaged), "{wrong:?}");
        }
    }

    #[test]
    fn a_record_that_cannot_be_in_its_segment_is_damage_behind_a_right_checksum() {
        let most = MAX_PAYLOAD_BYTES as u32;
        for (payload_length, end, is_right) in [
            (5, 61_440, true),
            (u32::MAX, 61_440, false),
            (most, 61_440, false),
            (most, 1 << 31, true),
            (most + 1, 1 << 31, false),
        ] {
            let (header, body) = sample_of(payload_length);
            let mut file = HintHeader { end, ..header }.encode(&body).to_vec();
            file.extend_from_slice(&body);
            let decoded = Hint::decode(&file, 1, 2);
            assert_eq!(decoded.is_ok(), is_right, "{payload_length} until {end}");
        }
    }
}
