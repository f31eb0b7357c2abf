//! The field of metadata that says where the bytes of a large value are: the parts themselves, or the place of their list.

use super::blocks::{Blocks, Part};
use crate::limits;
use crate::tag::{ClientId, Writer};
use crate::tlv::TlvError;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The place of the bytes of a large value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// The bytes are in these blocks.
    Parts(Blocks),
    /// Blocks that a list names.
    List(PartList),
}

/// The list of the parts of a value, which is a block itself (decision record 0079).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartList {
    /// The upload in whose name space the blocks of the parts are, and the list.
    pub upload: Writer,
    /// The publication: the upload whose cell decides whether this list becomes a version, and the writer in the tag of that.
    pub publication: Writer,
    /// Length of the value in bytes.
    pub length: u64,
    /// Count of the blocks.
    pub count: u64,
    /// The longest that one of them may be, in bytes; not 0.
    pub block_bytes: u32,
}

impl From<Blocks> for Manifest {
    fn from(blocks: Blocks) -> Manifest {
        Manifest::Parts(blocks)
    }
}

impl Manifest {
    /// The writer in the tag of the version, and the one whose cell says whether it is one.
    pub fn writer(&self) -> Writer {
        match self {
            Manifest::Parts(blocks) => blocks.upload,
            Manifest::List(list) => list.publication,
        }
    }

    /// Length of the value in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Manifest::Parts(blocks) => blocks.length(),
            Manifest::List(list) => list.length,
        }
    }

    /// Count of the blocks.
    pub fn count(&self) -> u64 {
        match self {
            Manifest::Parts(blocks) => blocks.count(),
            Manifest::List(list) => list.count,
        }
    }

    /// The longest that one of them may be, in bytes.
    pub fn block_bytes(&self) -> u32 {
        match self {
            Manifest::Parts(blocks) => blocks.block_bytes(),
            Manifest::List(list) => list.block_bytes,
        }
    }
}

impl PartList {
    /// The list of these parts for this publication. `None`: as [`Blocks::listed`].
    pub fn of(upload: Writer, publication: Writer, parts: &[Part]) -> Option<PartList> {
        let blocks = Blocks::listed(upload, parts.to_vec())?;
        assert!(blocks.count() <= limits::BLOCKS, "they have places");
        Some(PartList {
            upload,
            publication,
            length: blocks.length(),
            count: blocks.count(),
            block_bytes: blocks.block_bytes(),
        })
    }

    /// The content of the list.
    pub fn encode_parts(parts: &[Part]) -> Bytes {
        assert!(
            parts.len() <= limits::LISTED_PARTS,
            "what is written can be read"
        );
        let mut out = BytesMut::with_capacity(4 + LISTED_BYTES * parts.len());
        out.put_u32_le(LIST_VERSION);
        for part in parts {
            let lane = part.lane.unwrap_or_default();
            out.put_u64_le(lane.client.0);
            out.put_u64_le(lane.counter);
            out.put_u32_le(part.first);
            out.put_u64_le(part.length);
            out.put_u32_le(part.block_bytes);
        }
        out.freeze()
    }

    /// The blocks that a list with this content names. `None`: it is of a later version, or not the list of this value.
    pub fn decode_parts(&self, mut content: &[u8]) -> Option<Blocks> {
        let entries = content.len().checked_sub(4)?;
        if content.get_u32_le() != LIST_VERSION || entries / LISTED_BYTES > limits::LISTED_PARTS {
            return None;
        }
        let (entries, rest) = content.as_chunks::<LISTED_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        let part = |mut part: &[u8]| {
            let lane = Writer {
                client: ClientId(part.get_u64_le()),
                counter: part.get_u64_le(),
            };
            Part {
                lane: (lane != Writer::default()).then_some(lane),
                first: part.get_u32_le(),
                length: part.get_u64_le(),
                block_bytes: part.get_u32_le(),
            }
        };
        let parts = entries.iter().map(|bytes| part(bytes)).collect();
        let blocks = Blocks::listed(self.upload, parts)?;
        let shape = (blocks.length(), blocks.count(), blocks.block_bytes());
        (shape == (self.length, self.count, self.block_bytes)).then_some(blocks)
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(ENCODED_BYTES);
        for writer in [self.upload, self.publication] {
            out.put_u64_le(writer.client.0);
            out.put_u64_le(writer.counter);
        }
        out.put_u64_le(self.length);
        out.put_u64_le(self.count);
        out.put_u32_le(self.block_bytes);
        assert_eq!(out.len(), ENCODED_BYTES, "all fields are of one length");
        out.freeze()
    }

    pub(super) fn decode(kind: u16, value: &[u8]) -> Result<PartList, TlvError> {
        let invalid = TlvError::Invalid { kind };
        let Some(mut value) = value.as_array::<ENCODED_BYTES>().map(|it| &it[..]) else {
            return Err(invalid);
        };
        let mut writer = || Writer {
            client: ClientId(value.get_u64_le()),
            counter: value.get_u64_le(),
        };
        let (upload, publication) = (writer(), writer());
        let list = PartList {
            upload,
            publication,
            length: value.get_u64_le(),
            count: value.get_u64_le(),
            block_bytes: value.get_u32_le(),
        };
        let is_possible = list.block_bytes > 0
            && list.count <= limits::BLOCKS
            && list.length <= list.count * u64::from(list.block_bytes);
        is_possible.then_some(list).ok_or(invalid)
    }
}

/// The first bytes of a list.
const LIST_VERSION: u32 = 1;
/// Bytes of one part in the list.
const LISTED_BYTES: usize = 32;
/// Bytes of the field.
pub(super) const ENCODED_BYTES: usize = 2 * 16 + 8 + 8 + 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(counter: u64) -> Writer {
        let client = ClientId(5);
        Writer { client, counter }
    }

    fn part(lane: u64, length: u64) -> Part {
        Part {
            lane: Some(writer(lane)),
            first: 0,
            length,
            block_bytes: 4,
        }
    }

    #[test]
    fn a_list_and_its_content_survive() {
        let parts = [part(1, 9), part(2, 0), part(7, 4)];
        let list = PartList::of(writer(10), writer(11), &parts).unwrap();
        assert_eq!((list.length, list.count, list.block_bytes), (13, 4, 4));
        assert_eq!(PartList::decode(8, &list.encode()), Ok(list));
        let numbers = [5_u64, 10, 5, 11, 13, 4].map(u64::to_le_bytes).concat();
        assert_eq!(list.encode(), [&numbers[..], &[4, 0, 0, 0]].concat());
        for end in 0..ENCODED_BYTES {
            let cut = list.encode().slice(..end);
            assert!(PartList::decode(8, &cut).is_err(), "{end}");
        }
        let content = PartList::encode_parts(&parts);
        let numbers = [5_u64, 1].map(u64::to_le_bytes).concat();
        let first = [&numbers[..], &[0; 4], &9_u64.to_le_bytes(), &[4, 0, 0, 0]].concat();
        assert_eq!(content[..36], [&[1, 0, 0, 0], &first[..]].concat());
        let blocks = list.decode_parts(&content).unwrap();
        assert_eq!(blocks.parts(), parts);
        for end in 0..content.len() {
            assert_eq!(list.decode_parts(&content[..end]), None, "{end}");
        }
        let other = PartList::encode_parts(&parts[..2]);
        assert_eq!(list.decode_parts(&other), None, "of another value");
    }

    #[test]
    fn a_list_has_at_most_ten_thousand_parts() {
        let many = vec![part(1, 4); limits::LISTED_PARTS];
        let list = PartList::of(writer(10), writer(11), &many).unwrap();
        let content = PartList::encode_parts(&many);
        assert_eq!(list.decode_parts(&content).unwrap().count(), 10_000);
        let more = [&many[..], &[part(1, 4)]].concat();
        assert_eq!(PartList::of(writer(10), writer(11), &more), None);
        assert_eq!(PartList::of(writer(10), writer(11), &[]), None);
    }
}
