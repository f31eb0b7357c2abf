//! Names of objects, and the metadata that is kept with a version.

use crate::hash::stable_hash;
use crate::limits;
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

mod blocks;
mod metadata;

pub use blocks::{Block, Blocks, Part};
pub use metadata::{Etag, InvalidMetadata, Metadata};

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

    /// Whether it is that of a block of an upload: a block that is written once, and is not one of a file.
    pub fn is_upload_block(&self) -> bool {
        self.kind() == Kind::Block && self.key().starts_with(UPLOAD_PREFIX)
    }

    /// The number by which a store remembers records of this block that a start may find again (`[X-30 dropped-tombstones]`).
    /// Where two blocks have the same one, each waits for the other.
    pub fn grave(&self) -> u64 {
        assert!(self.is_upload_block(), "only of these it is remembered");
        stable_hash(&self.0)
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
}
