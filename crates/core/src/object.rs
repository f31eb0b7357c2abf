//! Names of objects, and the metadata that is kept with a version.

use crate::hash::stable_hash;
use crate::limits;
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

mod blocks;
mod manifest;
mod metadata;

pub use blocks::{Block, Blocks, Part};
pub use manifest::{Manifest, PartList};
pub use metadata::{Etag, InvalidMetadata, Metadata};

/// A domain: random, drawn when it is created, so that a name that is used again is another domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u128);

impl fmt::Debug for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The purpose of an object. User keys and the store's own objects can never collide, and no listing mixes them (`[X-24 kind-byte]`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Kind {
    /// An object that a user has written.
    User = 0,
    /// A fragment of a file or of a large object.
    Block = 1,
    /// The first block of a file.
    Genesis = 2,
    /// An object of the store itself.
    System = 3,
    /// A record of an upload in progress, which no listing of users' objects shows. Its name is the key of a user's object, a byte 0,
    /// and a suffix without one. Who may read or write it is judged by the key (`[X-43 upload-records]`).
    Upload = 4,
}

impl Kind {
    /// All that there are.
    pub const ALL: [Kind; 5] = [
        Kind::User,
        Kind::Block,
        Kind::Genesis,
        Kind::System,
        Kind::Upload,
    ];

    /// The kind of this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// True if objects of this kind are ranked registers in a conditional domain: those that clients write over and delete at will. Blocks and what
    /// files consist of are written once or coverably.
    pub fn is_register(self) -> bool {
        match self {
            Kind::User | Kind::Upload => true,
            Kind::Block | Kind::Genesis | Kind::System => false,
        }
    }

    /// The most bytes that a name of this kind has behind the kind byte.
    pub fn most_bytes(self) -> usize {
        match self {
            Kind::Upload => limits::OBJECT_NAME_BYTES,
            Kind::User | Kind::Block | Kind::Genesis | Kind::System => limits::KEY_BYTES,
        }
    }
}

/// Between the key and the suffix of a record of an upload. No byte is smaller: records are listed in the order of their keys.
const SUFFIX: char = '\0';

/// The key that decides who may read records whose names begin so: their keys begin with it.
pub fn key_of_record(name: &str) -> &str {
    name.rsplit_once(SUFFIX).map_or(name, |(key, _)| key)
}

/// The key of the records that are documents of a domain. It may be the key of an object as well: a document is known by its suffix.
const DOCUMENTS_KEY: &str = "domain";
/// The beginning of the suffixes of documents of a domain. Those of records of uploads begin with 32 hexadecimal digits.
const DOCUMENT_PREFIX: &str = "document/";

/// The beginning of the keys of blocks of uploads, and of the names of their cells.
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
        /// Length of the key.
        bytes: usize,
    },
    /// The key is not UTF-8.
    NotUtf8,
    /// The suffix of a record of an upload has no bytes, too many, or a byte 0.
    Suffix {
        /// Length of the suffix.
        bytes: usize,
    },
    /// The kind byte is none of [`Kind`].
    UnknownKind { byte: u8 },
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
            InvalidKey::Suffix { bytes } => write!(
                f,
                "the suffix of the record has {bytes} bytes: suffixes have 1 to {} bytes of UTF-8 without a byte 0",
                limits::RECORD_SUFFIX_BYTES
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

    /// The name of the record with this suffix of an upload of this key.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn record(key: &str, suffix: &str) -> Result<Name, InvalidKey> {
        if suffix.contains(SUFFIX) {
            let bytes = suffix.len();
            return Err(InvalidKey::Suffix { bytes });
        }
        let name = Name::new(Kind::Upload, &format!("{key}{SUFFIX}{suffix}"))?;
        assert_eq!(name.user_key(), key, "a suffix has no byte 0");
        Ok(name)
    }

    /// The name of a document of a domain (`[X-45 domain-documents]`).
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn document(name: &str) -> Result<Name, InvalidKey> {
        Name::record(DOCUMENTS_KEY, &format!("{DOCUMENT_PREFIX}{name}"))
    }

    /// True if it is that of a document of a domain, of any key: no record of an upload has such a suffix.
    pub fn is_document(&self) -> bool {
        let suffix = self.key().rsplit_once(SUFFIX).map(|(_, suffix)| suffix);
        let is_of_document = suffix.is_some_and(|suffix| suffix.starts_with(DOCUMENT_PREFIX));
        self.kind() == Kind::Upload && is_of_document
    }

    /// A name that was sent or stored: kind byte and key. Refuses what [`Name::new`] could not have made.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn from_bytes(bytes: Bytes) -> Result<Name, InvalidKey> {
        let (byte, key) = bytes.split_first().ok_or(InvalidKey::Empty)?;
        let kind = Kind::from_byte(*byte).ok_or(InvalidKey::UnknownKind { byte: *byte })?;
        let most = limits::OBJECT_NAME_BYTES;
        if key.len() > most {
            let bytes = key.len();
            return Err(InvalidKey::TooLong { bytes });
        }
        let key = std::str::from_utf8(key).map_err(|_| InvalidKey::NotUtf8)?;
        Name::check(kind, key)?;
        Ok(Name(bytes))
    }

    /// Checks that this may be the key of an object of this kind.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn check(kind: Kind, key: &str) -> Result<(), InvalidKey> {
        let key = match (kind, key.rsplit_once(SUFFIX)) {
            (Kind::Upload, None) => return Err(InvalidKey::Suffix { bytes: 0 }),
            (Kind::Upload, Some((key, suffix))) => {
                let bytes = suffix.len();
                if !(1..=limits::RECORD_SUFFIX_BYTES).contains(&bytes) {
                    return Err(InvalidKey::Suffix { bytes });
                }
                key
            }
            (Kind::User | Kind::Block | Kind::Genesis | Kind::System, _) => key,
        };
        match key.len() {
            0 => Err(InvalidKey::Empty),
            bytes if bytes > limits::KEY_BYTES => Err(InvalidKey::TooLong { bytes }),
            _ => Ok(()),
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

    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.0[0]).expect("checked when the name was made")
    }

    /// The key without the kind byte.
    pub fn key(&self) -> &str {
        std::str::from_utf8(&self.0[1..]).expect("checked when the name was made")
    }

    /// The key that people know the object by: that of a record is the key of its upload.
    pub fn user_key(&self) -> &str {
        match self.kind() {
            Kind::Upload => key_of_record(self.key()),
            Kind::User | Kind::Block | Kind::Genesis | Kind::System => self.key(),
        }
    }

    /// True if it is that of a block of an upload: a block that is written once, and is not one of a file.
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

    #[test]
    fn a_record_is_known_by_key_and_suffix() {
        let name = Name::record("a/b", "17").unwrap();
        assert_eq!((name.kind(), name.key()), (Kind::Upload, "a/b\x0017"));
        assert_eq!(name.user_key(), "a/b");
        assert_eq!(Name::record("a\0b", "17").unwrap().user_key(), "a\0b");
        let (longest, suffix) = ("k".repeat(1024), "s".repeat(79));
        let name = Name::record(&longest, &suffix).unwrap();
        assert_eq!(Name::from_bytes(name.as_bytes().clone()), Ok(name.clone()));
        assert_eq!(name.key().len(), Kind::Upload.most_bytes());
        let refused = |bytes| Err(InvalidKey::Suffix { bytes });
        assert_eq!(Name::record("k", ""), refused(0));
        assert_eq!(Name::record("k", &"s".repeat(80)), refused(80));
        assert_eq!(Name::record("k", "a\0b"), refused(3));
        assert_eq!(Name::record("", "s"), Err(InvalidKey::Empty));
        let too_long = "k".repeat(1025);
        let bytes = too_long.len();
        assert_eq!(
            Name::record(&too_long, "s"),
            Err(InvalidKey::TooLong { bytes })
        );
        let without = Bytes::from_static(b"\x04key");
        assert_eq!(Name::from_bytes(without), refused(0));
    }

    #[test]
    fn a_document_is_known_by_its_suffix() {
        let document = Name::document("cors").unwrap();
        assert!(document.is_document(), "{document:?}");
        assert_ne!(document.user_key(), document.key());
        assert!(Name::record("a", "document/cors").unwrap().is_document());
        for name in [
            Name::record("document/a", "0"),
            Name::record("a", "document"),
            Name::user("domain"),
            Name::user("domain\0document/cors"),
            Name::new(Kind::System, "domain\0document/cors"),
        ] {
            assert!(!name.clone().unwrap().is_document(), "{name:?}");
        }
    }

    #[test]
    fn names_that_begin_alike_are_of_keys_that_begin_alike() {
        for prefix in ["a", "a\0", "a\0s", "a\0b\0", "a\0b\0s", ""] {
            for rest in ["x", "\0x", "x\0y", "x\0y\0z"] {
                let name = format!("{prefix}{rest}");
                let key = key_of_record(&name);
                assert!(key.starts_with(key_of_record(prefix)), "{name:?}");
            }
        }
    }
}
