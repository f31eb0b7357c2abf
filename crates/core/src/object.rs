//! Names of objects, and the metadata that is kept with a version.

use crate::hash::stable_hash;
use crate::limits;
use crate::tag::{ClientId, Writer};
use crate::tlv::{self, TlvError};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::fmt;
use std::ops::Range;

/// A domain: random, drawn when it is created, so that a name that is used again is another domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u128);

impl fmt::Debug for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What an object is for. User keys and the store's own objects can never collide, and no listing mixes them
/// (`[X-24 kind-byte]`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A user's object.
    User = 0,
    /// A fragment of a file or of a large object.
    Block = 1,
    /// The first block of a file.
    Genesis = 2,
    /// The store's own.
    System = 3,
}

impl Kind {
    /// All that there are.
    pub const ALL: [Kind; 4] = [Kind::User, Kind::Block, Kind::Genesis, Kind::System];

    /// The kind of this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// How the keys of blocks of uploads begin, and the names of their cells.
pub const UPLOAD_PREFIX: &str = "upload-";

/// The name of an object within its domain: the kind byte, then the key (1 to 1024 bytes of UTF-8). Ordered by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Bytes);

/// A key that cannot name an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidKey {
    /// The key has no bytes.
    Empty,
    /// The key has more than [`limits::KEY_BYTES`] bytes.
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The key is not UTF-8.
    NotUtf8,
    /// The kind byte is none of [`Kind`].
    UnknownKind {
        /// The byte.
        byte: u8,
    },
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = limits::KEY_BYTES;
        match self {
            InvalidKey::Empty => {
                write!(f, "the key is empty: keys have 1 to {limit} bytes of UTF-8")
            }
            InvalidKey::TooLong { bytes } => {
                write!(
                    f,
                    "the key has {bytes} bytes: keys have 1 to {limit} bytes of UTF-8"
                )
            }
            InvalidKey::NotUtf8 => write!(
                f,
                "the key is not UTF-8: keys have 1 to {limit} bytes of UTF-8"
            ),
            InvalidKey::UnknownKind { byte } => {
                write!(f, "objects of kind {byte} are not known here")
            }
        }
    }
}

impl std::error::Error for InvalidKey {}

impl Name {
    /// The name of a user's object.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn user(key: &str) -> Result<Name, InvalidKey> {
        Name::new(Kind::User, key)
    }

    /// The name of an object of this kind.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn new(kind: Kind, key: &str) -> Result<Name, InvalidKey> {
        let mut bytes = BytesMut::with_capacity(1 + key.len());
        bytes.put_u8(kind as u8);
        bytes.put_slice(key.as_bytes());
        Name::from_bytes(bytes.freeze())
    }

    /// A name that was sent or stored: kind byte and key. Refuses what [`Name::new`] could not have made.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn from_bytes(bytes: Bytes) -> Result<Name, InvalidKey> {
        let (kind, key) = bytes.split_first().ok_or(InvalidKey::Empty)?;
        Kind::from_byte(*kind).ok_or(InvalidKey::UnknownKind { byte: *kind })?;
        match key.len() {
            0 => Err(InvalidKey::Empty),
            bytes if bytes > limits::KEY_BYTES => Err(InvalidKey::TooLong { bytes }),
            _ if std::str::from_utf8(key).is_err() => Err(InvalidKey::NotUtf8),
            _ => Ok(Name(bytes)),
        }
    }

    /// Kind byte and key.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Kind byte and key.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.0[0]).expect("checked when the name was made")
    }

    /// The key.
    pub fn key(&self) -> &str {
        std::str::from_utf8(&self.0[1..]).expect("checked when the name was made")
    }

    /// A stable number by which placement rotates over the members of a configuration (`[X-6 rotating-index]`).
    pub fn placement_hash(&self, domain: DomainId) -> u64 {
        stable_hash(&self.0) ^ stable_hash(&domain.0.to_le_bytes())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.kind(), self.key())
    }
}

/// What is kept with a version beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// MIME type, at most [`limits::CONTENT_TYPE_BYTES`] bytes.
    pub content_type: Option<String>,
    /// User pairs, at most [`limits::USER_METADATA_BYTES`] bytes in total.
    pub user: Vec<(String, String)>,
    /// CRC-32C of the whole value.
    pub checksum: Option<u32>,
    /// When the writer wrote it, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
    /// The value is in blocks: which. Whoever does not understand this must not take the value for an empty one.
    pub blocks: Option<Blocks>,
}

/// Where the bytes of a large value are (10.6). Block `i` holds those from `i * block_bytes` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The upload that wrote them: their names derive from it, and from nothing else.
    pub upload: Writer,
    /// Length of the value in bytes.
    pub length: u64,
    /// Length of each of them in bytes but the last one, which may be shorter; not 0.
    pub block_bytes: u32,
}

impl Blocks {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.length.div_ceil(self.block_bytes.into())
    }

    /// The range of the value's bytes that is in block `index`.
    pub fn range(&self, index: u64) -> Range<u64> {
        assert!(index < self.count(), "a block that there is");
        let start = index * u64::from(self.block_bytes);
        start..self.length.min(start + u64::from(self.block_bytes))
    }

    fn encode(&self) -> [u8; BLOCKS_BYTES] {
        assert!(self.block_bytes > 0, "what is written can be read");
        let mut out = BytesMut::with_capacity(BLOCKS_BYTES);
        out.put_u64_le(self.upload.client.0);
        out.put_u64_le(self.upload.counter);
        out.put_u64_le(self.length);
        out.put_u32_le(self.block_bytes);
        out.as_ref().try_into().expect("its width")
    }

    fn decode(value: &Bytes) -> Result<Blocks, TlvError> {
        let mut fields = Bytes::copy_from_slice(&tlv::number::<BLOCKS_BYTES>(BLOCKS, value)?);
        let upload = Writer {
            client: ClientId(fields.get_u64_le()),
            counter: fields.get_u64_le(),
        };
        let (length, block_bytes) = (fields.get_u64_le(), fields.get_u32_le());
        match block_bytes {
            0 => Err(TlvError::Invalid { kind: BLOCKS }),
            _ => Ok(Blocks {
                upload,
                length,
                block_bytes,
            }),
        }
    }
}

const CONTENT_TYPE: u16 = 1;
const USER_PAIR: u16 = 2;
const CHECKSUM: u16 = 3;
const WRITTEN_AT_MS: u16 = 4;
const BLOCKS: u16 = tlv::MUST_UNDERSTAND | 5;
const BLOCKS_BYTES: usize = 28;

/// User pairs that are taken at most. Short ones are dominated by their framing: their number is bounded with their bytes.
const USER_PAIRS: usize = limits::USER_METADATA_BYTES / 16;
/// Bytes of all fields together, each with its head and a pair with the length of its name.
const MOST_BYTES: usize = limits::CONTENT_TYPE_BYTES
    + limits::USER_METADATA_BYTES
    + USER_PAIRS * (tlv::HEAD_BYTES + 2)
    + 4 * tlv::HEAD_BYTES
    + (4 + 8 + BLOCKS_BYTES);
const _: () = assert!(MOST_BYTES <= limits::METADATA_BYTES, "what is encoded fits");
const _: () = assert!(
    limits::USER_METADATA_BYTES <= u16::MAX as usize,
    "so does a name's length"
);

/// Metadata that is larger than the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidMetadata {
    /// The content type is too long.
    ContentType {
        /// Its length.
        bytes: usize,
    },
    /// The user pairs are too long together.
    UserPairs {
        /// Their length.
        bytes: usize,
    },
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, bytes, limit) = match self {
            InvalidMetadata::ContentType { bytes } => {
                ("content type has", bytes, limits::CONTENT_TYPE_BYTES)
            }
            InvalidMetadata::UserPairs { bytes } => {
                ("user metadata has", bytes, limits::USER_METADATA_BYTES)
            }
        };
        write!(f, "the {what} {bytes} bytes, at most {limit} are kept")
    }
}

impl std::error::Error for InvalidMetadata {}

impl Metadata {
    /// As it is stored and sent ([`tlv`] fields).
    ///
    /// # Errors
    /// [`InvalidMetadata`] beyond the limits.
    pub fn encode(&self) -> Result<Bytes, InvalidMetadata> {
        let mut out = BytesMut::new();
        if let Some(content_type) = &self.content_type {
            if content_type.len() > limits::CONTENT_TYPE_BYTES {
                let bytes = content_type.len();
                return Err(InvalidMetadata::ContentType { bytes });
            }
            tlv::put_field(&mut out, CONTENT_TYPE, content_type.as_bytes());
        }
        let bytes = self
            .user
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > limits::USER_METADATA_BYTES || self.user.len() > USER_PAIRS {
            return Err(InvalidMetadata::UserPairs { bytes });
        }
        for (name, value) in &self.user {
            let mut pair = BytesMut::with_capacity(2 + name.len() + value.len());
            pair.put_u16_le(u16::try_from(name.len()).expect("bounded above"));
            pair.put_slice(name.as_bytes());
            pair.put_slice(value.as_bytes());
            tlv::put_field(&mut out, USER_PAIR, &pair);
        }
        if let Some(checksum) = self.checksum {
            tlv::put_field(&mut out, CHECKSUM, &checksum.to_le_bytes());
        }
        if let Some(time) = self.written_at_ms {
            tlv::put_field(&mut out, WRITTEN_AT_MS, &time.to_le_bytes());
        }
        if let Some(blocks) = &self.blocks {
            tlv::put_field(&mut out, BLOCKS, &blocks.encode());
        }
        assert!(out.len() <= limits::METADATA_BYTES, "the parts are bounded");
        Ok(out.freeze())
    }

    /// The reverse of [`Metadata::encode`]; skips fields of later versions unless they must be understood.
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(bytes: &Bytes) -> Result<Metadata, TlvError> {
        let mut metadata = Metadata::default();
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                CONTENT_TYPE => metadata.content_type = Some(tlv::text(kind, &value)?),
                USER_PAIR => metadata.user.push(decode_pair(&value)?),
                CHECKSUM => {
                    let checksum = u32::from_le_bytes(tlv::number(kind, &value)?);
                    metadata.checksum = Some(checksum);
                }
                WRITTEN_AT_MS => {
                    let time = u64::from_le_bytes(tlv::number(kind, &value)?);
                    metadata.written_at_ms = Some(time);
                }
                BLOCKS => metadata.blocks = Some(Blocks::decode(&value)?),
                _ => tlv::unknown(kind)?,
            }
        }
        Ok(metadata)
    }
}

fn decode_pair(value: &Bytes) -> Result<(String, String), TlvError> {
    let invalid = TlvError::Invalid { kind: USER_PAIR };
    if value.len() < 2 {
        return Err(invalid);
    }
    let split = 2 + usize::from(u16::from_le_bytes([value[0], value[1]]));
    if value.len() < split {
        return Err(invalid);
    }
    let name = tlv::text(USER_PAIR, &value.slice(2..split))?;
    Ok((name, tlv::text(USER_PAIR, &value.slice(split..))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_1_to_1024_bytes_of_utf8() {
        assert_eq!(Name::user(""), Err(InvalidKey::Empty));
        assert!(Name::user(&"k".repeat(1024)).is_ok());
        assert_eq!(
            Name::user(&"k".repeat(1025)),
            Err(InvalidKey::TooLong { bytes: 1025 })
        );
        assert_eq!(
            Name::from_bytes(Bytes::from_static(b"\x00\xff")),
            Err(InvalidKey::NotUtf8)
        );
        assert_eq!(
            Name::from_bytes(Bytes::from_static(b"\x09a")),
            Err(InvalidKey::UnknownKind { byte: 9 })
        );
        let name = Name::new(Kind::Block, "ä/b").unwrap();
        assert_eq!((name.kind(), name.key()), (Kind::Block, "ä/b"));
        assert!(
            Name::user("zzz").unwrap() < name,
            "kinds are apart in every order"
        );
    }

    #[test]
    fn metadata_survives_and_is_bounded() {
        let metadata = Metadata {
            content_type: Some("text/plain".into()),
            user: vec![
                ("colour".into(), "blue".into()),
                ("ä".into(), String::new()),
            ],
            checksum: Some(7),
            written_at_ms: Some(9),
            blocks: Some(Blocks {
                upload: Writer::default(),
                length: 10,
                block_bytes: 4,
            }),
        };
        assert_eq!(
            Metadata::decode(&metadata.encode().unwrap()),
            Ok(metadata.clone())
        );
        assert_eq!(Metadata::decode(&Bytes::new()), Ok(Metadata::default()));
        let blocks = metadata.blocks.unwrap();
        assert_eq!(blocks.count(), 3);
        assert_eq!((blocks.range(0), blocks.range(2)), (0..4, 8..10));
        let encoded = Bytes::copy_from_slice(&blocks.encode());
        assert!(Blocks::decode(&encoded.slice(..27)).is_err());
        let no_width = [&encoded[..24], &[0; 4]].concat().into();
        assert!(Blocks::decode(&no_width).is_err());
        let pairs = |bytes: usize| Metadata {
            user: vec![("n".into(), "v".repeat(bytes - 1))],
            ..metadata.clone()
        };
        assert!(pairs(2048).encode().is_ok());
        assert_eq!(
            pairs(2049).encode(),
            Err(InvalidMetadata::UserPairs { bytes: 2049 })
        );
    }
}
