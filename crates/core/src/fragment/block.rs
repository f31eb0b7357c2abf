//! Blocks as objects: their names, and what is written with their data (4.2).
//!
//! The name of a data block is that of the write that created it, which is unique (`[X-7 writer-per-write]`); the genesis
//! block's is that of the file. What follows, and what the data is, stands in the metadata of a block's version, so that it
//! can be read without the data.
//!
//! The genesis block has no data. In the place of it stands a *hint*: the blocks of the file when it was written. It says
//! what to ask for before the links are known, and is never believed.

use super::Digest;
use crate::element::Value;
use crate::object::{InvalidKey, Kind, Name, UPLOAD_PREFIX};
use crate::tag::{ClientId, Writer};
use crate::tlv::{self, MUST_UNDERSTAND, TlvError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Prefix of the names of data blocks of files.
pub const PREFIX: &str = "file-";
const _: () = assert!(
    PREFIX.as_bytes()[0] != UPLOAD_PREFIX.as_bytes()[0],
    "a sweep tells blocks of files from those of uploads"
);

/// The name of a data block.
pub fn name(id: Writer) -> Name {
    let key = format!("{PREFIX}{:016x}{:016x}", id.client.0, id.counter);
    Name::new(Kind::Block, &key).expect("a short key")
}

/// The data block with this key, if it is that of one.
pub(super) fn parse_key(key: &str) -> Option<Writer> {
    let (client, counter) = key.strip_prefix(PREFIX)?.split_at_checked(16)?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Writer {
        client: ClientId(number(client)?),
        counter: number(counter)?,
    })
}

/// The name of a file's genesis block.
///
/// # Errors
/// [`InvalidKey`].
pub fn genesis(file: &str) -> Result<Name, InvalidKey> {
    Name::new(Kind::Genesis, file)
}

/// Metadata of a version of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// The next block; `None` at the end of the file.
    pub next: Option<Writer>,
    /// Digest of the data; `None`: the block is empty.
    pub digest: Option<Digest>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
}

/// The file that a block belongs to, in all versions of the block. Only a sweep reads it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Home {
    /// The name of the file's genesis block.
    pub file: Name,
    /// The era of that name that the file is of ([`crate::tag::Tag::era`]).
    pub era: u64,
}

impl Home {
    /// Reads what [`Metadata::encode`] wrote; `None` if that did not say it, or cannot be understood.
    pub fn decode(metadata: &Bytes) -> Option<Home> {
        let (mut file, mut era) = (None, None);
        for field in tlv::fields(metadata) {
            let (kind, value) = field.ok()?;
            match kind {
                FILE => file = Some(genesis(std::str::from_utf8(value).ok()?).ok()?),
                ERA => era = Some(u64::from_le_bytes(tlv::number(kind, value).ok()?)),
                _ => {}
            }
        }
        Some(Home {
            file: file?,
            era: era?,
        })
    }
}

const WRITTEN_AT_MS: u16 = 4;
const FILE: u16 = 5;
const ERA: u16 = 6;
const NEXT: u16 = MUST_UNDERSTAND | 32;
const DIGEST: u16 = MUST_UNDERSTAND | 33;

impl Metadata {
    /// Encodes the metadata for records and messages ([`tlv`] fields).
    pub fn encode(&self, home: &Home) -> Bytes {
        assert_eq!(
            home.file.kind(),
            Kind::Genesis,
            "what reads it makes it one"
        );
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, FILE, home.file.key().as_bytes());
        tlv::put_field(&mut out, ERA, &home.era.to_le_bytes());
        if let Some(next) = self.next {
            tlv::put_field(&mut out, NEXT, &encode(next));
        }
        if let Some(digest) = self.digest {
            tlv::put_field(&mut out, DIGEST, &digest.0);
        }
        if let Some(time) = self.written_at_ms {
            tlv::put_field(&mut out, WRITTEN_AT_MS, &time.to_le_bytes());
        }
        out.freeze()
    }

    /// Reads what [`Metadata::encode`] wrote.
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(bytes: &Bytes) -> Result<Metadata, TlvError> {
        let mut metadata = Metadata::default();
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                NEXT => metadata.next = Some(decode(&mut &tlv::number::<16>(kind, value)?[..])),
                DIGEST => metadata.digest = Some(Digest(tlv::number(kind, value)?)),
                WRITTEN_AT_MS => {
                    let time = u64::from_le_bytes(tlv::number(kind, value)?);
                    metadata.written_at_ms = Some(time);
                }
                _ => tlv::unknown(kind)?,
            }
        }
        Ok(metadata)
    }

    /// The version of a block of this file with this data.
    pub fn with(&self, home: &Home, data: Bytes) -> Value {
        Value::new(self.encode(home), data)
    }
}

fn encode(id: Writer) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&id.client.0.to_le_bytes());
    out[8..].copy_from_slice(&id.counter.to_le_bytes());
    out
}

fn decode(bytes: &mut impl Buf) -> Writer {
    Writer {
        client: ClientId(bytes.get_u64_le()),
        counter: bytes.get_u64_le(),
    }
}

/// A hint as it is written: runs of ids that follow each other, as those of one update do.
pub fn encode_hint(ids: impl IntoIterator<Item = Writer>) -> Bytes {
    let mut runs: Vec<(Writer, u32)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((first, count))
                if first.client == id.client
                    && first.counter.checked_add(u64::from(*count)) == Some(id.counter) =>
            {
                *count += 1;
            }
            _ => runs.push((id, 1)),
        }
    }
    let mut out = BytesMut::with_capacity(RUN_BYTES * runs.len());
    for (first, count) in runs {
        out.put_slice(&encode(first));
        out.put_u32_le(count);
    }
    assert!(out.len().is_multiple_of(RUN_BYTES), "whole runs are read");
    out.freeze()
}

const RUN_BYTES: usize = 20;
const _: () = assert!(
    RUN_BYTES == size_of::<Writer>() + size_of::<u32>(),
    "its fields, no gaps"
);
/// Ids that are taken from a hint; of more nothing is known beforehand.
const HINTED: usize = 1 << 20;

/// The ids of a hint. Whatever the bytes are: a hint that is none is useless, and does no harm.
pub fn decode_hint(hint: &[u8]) -> Vec<Writer> {
    let mut ids = Vec::new();
    for mut run in hint.chunks_exact(RUN_BYTES) {
        let (first, count) = (decode(&mut run), run.get_u32_le());
        let counters = (0..u64::from(count)).map_while(|place| first.counter.checked_add(place));
        let client = first.client;
        let id = |counter| Writer { client, counter };
        ids.extend(counters.map(id).take(HINTED - ids.len()));
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(client: u64, counter: u64) -> Writer {
        let client = ClientId(client);
        Writer { client, counter }
    }

    #[test]
    fn names_tell_blocks_apart() {
        assert_eq!(
            name(id(0xabc, 0x12)).key(),
            "file-0000000000000abc0000000000000012"
        );
        assert_eq!(parse_key(name(id(7, 9)).key()), Some(id(7, 9)));
        for foreign in [
            "file-1",
            "file-",
            "upload-1",
            "file-000000000000000x0000000000000001",
        ] {
            assert_eq!(parse_key(foreign), None, "{foreign}");
        }
        assert_eq!(genesis("notes").unwrap().kind(), Kind::Genesis);
        assert_eq!(genesis(""), Err(InvalidKey::Empty));
    }

    #[test]
    fn metadata_survives_and_later_versions_are_told() {
        let metadata = Metadata {
            next: Some(id(1, 2)),
            digest: Some(Digest([7; 32])),
            written_at_ms: Some(9),
        };
        let home = Home {
            file: genesis("notes").unwrap(),
            era: 3,
        };
        let bytes = metadata.encode(&home);
        assert_eq!(Metadata::decode(&bytes), Ok(metadata));
        assert_eq!(Home::decode(&bytes), Some(home));
        assert_eq!(Home::decode(&Bytes::new()), None);
        assert_eq!(Metadata::decode(&Bytes::new()), Ok(Metadata::default()));
        for end in 1..bytes.len() {
            assert_ne!(Metadata::decode(&bytes.slice(..end)), Ok(metadata), "{end}");
        }
        let mut later = BytesMut::new();
        tlv::put_field(&mut later, MUST_UNDERSTAND | 34, b"");
        assert!(Metadata::decode(&later.freeze()).is_err());
    }

    #[test]
    fn a_hint_is_short_and_never_trusted() {
        let ids: Vec<Writer> = (5..1005)
            .map(|n| id(1, n))
            .chain([id(2, 7), id(1, 3)])
            .collect();
        let hint = encode_hint(ids.iter().copied());
        assert_eq!(hint.len(), 3 * RUN_BYTES);
        assert_eq!(decode_hint(&hint), ids);
        assert_eq!(decode_hint(&[]), []);
        assert!(decode_hint(&[0xff; 199]).len() <= HINTED, "nonsense");
        assert_eq!(
            encode_hint([id(1, u64::MAX), id(1, 0)]).len(),
            2 * RUN_BYTES
        );
    }
}
