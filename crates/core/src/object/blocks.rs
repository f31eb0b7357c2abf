//! The places of the bytes of a large value (`docs/spec` 10.6): the parts that a manifest lists.

use crate::limits;
use crate::tag::{ClientId, Writer};
use crate::tlv::{self, TlvError};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::ops::Range;

/// The value is its parts, one after another; each is in blocks of one upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The upload that wrote them: the names of the blocks derive from it and their numbers, and from nothing else.
    pub upload: Writer,
    /// The parts: at least one, at most [`limits::PARTS`], in a list [`limits::LISTED_PARTS`].
    parts: Vec<Part>,
    /// The place where each part begins.
    starts: Vec<Start>,
}

/// The place where a part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    /// Bytes of the value before it.
    byte: u64,
    /// Number of blocks before it.
    place: u64,
}

/// A part of a large value, of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The writer that numbers its blocks; `None`: the upload itself. In a list each part has a lane (decision record 0079).
    pub lane: Option<Writer>,
    /// The number of its first block; the others have the numbers after it.
    pub first: u32,
    /// Its length in bytes.
    pub length: u64,
    /// Length of each of its blocks in bytes but the last one, which may be shorter; not 0.
    pub block_bytes: u32,
}

/// One block of a large value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The lane of its part.
    pub lane: Option<Writer>,
    /// Its number in the upload, or in the lane.
    pub number: u32,
    /// The bytes of the value that it holds.
    pub range: Range<u64>,
}

impl Part {
    /// The count of its blocks.
    pub fn count(&self) -> u64 {
        self.length.div_ceil(self.block_bytes.into())
    }

    /// True if its blocks have a length, and numbers.
    fn is_possible(&self) -> bool {
        let numbers = 1 << 32;
        self.block_bytes > 0 && self.count() <= numbers - u64::from(self.first)
    }
}

impl Blocks {
    /// A value of one part.
    pub fn new(upload: Writer, length: u64, block_bytes: u32) -> Blocks {
        let part = Part {
            lane: None,
            first: 0,
            length,
            block_bytes,
        };
        Blocks::of_parts(upload, vec![part]).expect("fewer than 2^32 blocks of some length")
    }

    /// A value of several parts without lanes. `None` if there are none or too many of them, or if one has no width or too many blocks.
    pub fn of_parts(upload: Writer, parts: Vec<Part>) -> Option<Blocks> {
        let fits = parts.len() <= limits::PARTS && parts.iter().all(|part| part.lane.is_none());
        fits.then(|| Blocks::listed(upload, parts)).flatten()
    }

    /// A value of as many parts as a list may have, with or without lanes. `None` as from [`Blocks::of_parts`].
    pub fn listed(upload: Writer, parts: Vec<Part>) -> Option<Blocks> {
        let is_possible = (1..=limits::LISTED_PARTS).contains(&parts.len())
            && parts.iter().all(Part::is_possible);
        if !is_possible {
            return None;
        }
        let (mut byte, mut place, mut starts) = (0_u64, 0_u64, Vec::with_capacity(parts.len()));
        for part in &parts {
            starts.push(Start { byte, place });
            byte = byte.checked_add(part.length)?;
            place += part.count();
        }
        (place <= limits::BLOCKS).then_some(Blocks {
            upload,
            parts,
            starts,
        })
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Length of the value in bytes.
    pub fn length(&self) -> u64 {
        let (last, start) = self.last();
        start.byte + last.length
    }

    /// The number of blocks.
    pub fn count(&self) -> u64 {
        let (last, start) = self.last();
        start.place + last.count()
    }

    /// The last part, and where it begins.
    fn last(&self) -> (&Part, Start) {
        let last = self.parts.last().zip(self.starts.last());
        let (part, start) = last.expect("there is a part");
        (part, *start)
    }

    /// The longest that one of them may be, in bytes.
    pub fn block_bytes(&self) -> u32 {
        let widths = self.parts.iter().map(|part| part.block_bytes);
        widths.max().expect("there is a part")
    }

    /// The block at this place.
    pub fn block(&self, place: u64) -> Block {
        assert!(place < self.count(), "a block that there is");
        // The last part that begins there, or before: those before it that begin there, too, are empty.
        let index = self.starts.partition_point(|start| start.place <= place) - 1;
        let (part, start) = (&self.parts[index], self.starts[index]);
        assert!(
            place - start.place < part.count(),
            "an empty part has no block"
        );
        let (at, width) = (place - start.place, u64::from(part.block_bytes));
        let end = part.length.min((at + 1) * width);
        let number = u64::from(part.first) + at;
        Block {
            lane: part.lane,
            number: u32::try_from(number).expect("a part with larger numbers is refused"),
            range: start.byte + at * width..start.byte + end,
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Block> {
        (0..self.count()).map(|place| self.block(place))
    }

    /// The places of those that hold bytes of this range of the value.
    pub fn places(&self, range: &Range<u64>) -> Range<u64> {
        assert!(range.end <= self.length(), "bytes that there are");
        if range.is_empty() {
            return 0..0;
        }
        self.place(range.start)..self.place(range.end - 1) + 1
    }

    /// The place of the block that holds this byte.
    fn place(&self, byte: u64) -> u64 {
        let index = self.starts.partition_point(|start| start.byte <= byte) - 1;
        let (part, start) = (&self.parts[index], self.starts[index]);
        assert!(byte - start.byte < part.length, "an empty part has no byte");
        start.place + (byte - start.byte) / u64::from(part.block_bytes)
    }

    /// `upload`, then the parts.
    pub(super) fn encode(&self) -> Bytes {
        assert!(!self.parts.is_empty(), "what is written can be read");
        let mut out = BytesMut::with_capacity(UPLOAD_BYTES + PART_BYTES * self.parts.len());
        out.put_u64_le(self.upload.client.0);
        out.put_u64_le(self.upload.counter);
        for part in &self.parts {
            out.put_u32_le(part.first);
            out.put_u64_le(part.length);
            out.put_u32_le(part.block_bytes);
        }
        out.freeze()
    }

    pub(super) fn decode(kind: u16, value: &[u8]) -> Result<Blocks, TlvError> {
        let invalid = TlvError::Invalid { kind };
        let Some((mut upload, rest)) = value.split_at_checked(UPLOAD_BYTES) else {
            return Err(invalid);
        };
        let upload = Writer {
            client: ClientId(upload.get_u64_le()),
            counter: upload.get_u64_le(),
        };
        let (parts, rest) = rest.as_chunks::<PART_BYTES>();
        if !rest.is_empty() || parts.len() > limits::PARTS {
            return Err(invalid);
        }
        let part = |mut part: &[u8]| Part {
            lane: None,
            first: part.get_u32_le(),
            length: part.get_u64_le(),
            block_bytes: part.get_u32_le(),
        };
        let parts = parts.iter().map(|bytes| part(bytes)).collect();
        Blocks::of_parts(upload, parts).ok_or(invalid)
    }
}

const UPLOAD_BYTES: usize = 16;
const PART_BYTES: usize = 16;
/// The longest encoding, in bytes.
pub(super) const MOST_BYTES: usize = UPLOAD_BYTES + limits::PARTS * PART_BYTES;
const _: () = assert!(MOST_BYTES + tlv::HEAD_BYTES < limits::METADATA_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: u32, length: u64, block_bytes: u32) -> Part {
        Part {
            lane: None,
            first,
            length,
            block_bytes,
        }
    }

    fn block(number: u32, range: Range<u64>) -> Block {
        let lane = None;
        Block {
            lane,
            number,
            range,
        }
    }

    #[test]
    fn a_value_is_its_parts_one_after_another() {
        let upload = Writer::default();
        let one = Blocks::new(upload, 10, 4);
        let blocks: Vec<Block> = one.iter().collect();
        assert_eq!(blocks, [block(0, 0..4), block(1, 4..8), block(2, 8..10)]);
        assert_eq!(one.places(&(3..5)), 0..2);
        assert_eq!(one.places(&(5..5)), 0..0);

        let parts = vec![part(0, 5, 4), part(7, 0, 9), part(1000, 3, 2)];
        let several = Blocks::of_parts(upload, parts).unwrap();
        assert_eq!((several.length(), several.count()), (8, 4));
        assert_eq!(several.block_bytes(), 9);
        let blocks: Vec<Block> = several.iter().collect();
        let expected = [(0, 0..4), (1, 4..5), (1000, 5..7), (1001, 7..8)];
        assert_eq!(blocks, expected.map(|(number, range)| block(number, range)));
        for start in 0..8 {
            for end in start + 1..=8 {
                let overlaps = |it: &Block| it.range.start < end && start < it.range.end;
                let all = (0..4).filter(|place| overlaps(&several.block(*place)));
                let places = several.places(&(start..end));
                assert_eq!(places.collect::<Vec<_>>(), all.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_no_writer_makes_is_refused() {
        let upload = Writer::default();
        let encoded = Blocks::new(upload, 10, 4).encode();
        assert_eq!(Blocks::decode(5, &encoded), Ok(Blocks::new(upload, 10, 4)));
        for end in [0, 15, 16, 31] {
            assert!(Blocks::decode(5, &encoded.slice(..end)).is_err(), "{end}");
        }
        let several = |parts: Vec<Part>| Blocks::of_parts(upload, parts).is_some();
        assert!(several(vec![part(u32::MAX, 4, 4); limits::PARTS]));
        assert!(!several(vec![part(0, 4, 4); limits::PARTS + 1]));
        assert!(!several(vec![part(0, 4, 0)]), "no width");
        assert!(!several(vec![part(u32::MAX, 5, 4)]), "no such number");
        assert!(!several(vec![part(0, u64::MAX, 1 << 31), part(0, 1, 1)]));
    }
}
