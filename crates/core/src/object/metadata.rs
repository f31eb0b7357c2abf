//! The metadata of a version.

use super::blocks::{self, Blocks};
use super::manifest::{self, Manifest, PartList};
use crate::limits;
use crate::tag::{ClientId, Tag, Writer};
use crate::tlv::{self, TlvError};
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// Everything of a version but its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// MIME type, at most [`limits::CONTENT_TYPE_BYTES`] bytes.
    pub content_type: Option<String>,
    /// User pairs, at most [`limits::USER_METADATA_BYTES`] bytes in total.
    pub user: Vec<(String, String)>,
    /// CRC-32C of the whole value.
    pub checksum: Option<u32>,
    /// The writer's entity tag for the content.
    pub etag: Option<Etag>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
    /// The blocks that hold the value. A reader that does not understand this field must not take the value for an empty one.
    pub blocks: Option<Manifest>,
    /// It stands for this version, of which too few elements were left when a person changed the domain (`[W-18 lost-version]`). A reader that
    /// does not understand this field must not take the value for an empty one.
    pub lost: Option<Tag>,
}

/// An entity tag that the writer of a version gave: compared, never computed by Areo. 1 to [`limits::ETAG_BYTES`]
/// visible ASCII characters without quotation marks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Etag(Box<str>);

impl Etag {
    /// Makes an entity tag of this text.
    ///
    /// # Errors
    /// [`InvalidMetadata::Etag`].
    pub fn new(text: &str) -> Result<Etag, InvalidMetadata> {
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        let fits = (1..=limits::ETAG_BYTES).contains(&text.len());
        match fits && text.bytes().all(is_allowed) {
            true => Ok(Etag(text.into())),
            false => Err(InvalidMetadata::Etag { bytes: text.len() }),
        }
    }

    /// The text of the entity tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const CONTENT_TYPE: u16 = 1;
const USER_PAIR: u16 = 2;
const CHECKSUM: u16 = 3;
const WRITTEN_AT_MS: u16 = 4;
const BLOCKS: u16 = tlv::MUST_UNDERSTAND | 5;
const ETAG: u16 = 6;
const LOST: u16 = tlv::MUST_UNDERSTAND | 7;
const PART_LIST: u16 = tlv::MUST_UNDERSTAND | 8;

/// User pairs that are taken at most. Short ones are dominated by their framing: their number is bounded with their bytes.
const USER_PAIRS: usize = limits::USER_METADATA_BYTES / 16;
/// Bytes of all fields together, each with its head and a pair with the length of its name.
const MOST_BYTES: usize = limits::CONTENT_TYPE_BYTES
    + limits::USER_METADATA_BYTES
    + USER_PAIRS * (tlv::HEAD_BYTES + 2)
    + 6 * tlv::HEAD_BYTES
    + (4 + 8 + limits::ETAG_BYTES + blocks::MOST_BYTES + TAG_BYTES);
/// Bytes of a tag.
const TAG_BYTES: usize = 24;
const _: () = assert!(
    manifest::ENCODED_BYTES <= blocks::MOST_BYTES,
    "a list takes less than the parts"
);
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
        /// Length of the content type.
        bytes: usize,
    },
    /// The ETag is too long, or no visible ASCII.
    Etag {
        /// Length of the entity tag.
        bytes: usize,
    },
    /// The user pairs are too long together.
    UserPairs {
        /// Sum of the lengths of the pairs.
        bytes: usize,
    },
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, bytes, limit) = match self {
            InvalidMetadata::Etag { bytes } => {
                return write!(
                    f,
                    "an ETag has 1 to {} visible ASCII characters without quotation marks, this one has {bytes} bytes",
                    limits::ETAG_BYTES
                );
            }
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
    /// Encodes the metadata for records and messages ([`tlv`] fields).
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
        if let Some(etag) = &self.etag {
            tlv::put_field(&mut out, ETAG, etag.as_str().as_bytes());
        }
        match &self.blocks {
            Some(Manifest::Parts(blocks)) => {
                tlv::put_field(&mut out, BLOCKS, &blocks.encode());
            }
            Some(Manifest::List(list)) => tlv::put_field(&mut out, PART_LIST, &list.encode()),
            None => {}
        }
        if let Some(lost) = &self.lost {
            let Writer { client, counter } = lost.writer;
            let parts = [lost.number, client.0, counter];
            let bytes: Vec<u8> = parts.iter().flat_map(|it| it.to_le_bytes()).collect();
            tlv::put_field(&mut out, LOST, &bytes);
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
                CONTENT_TYPE => metadata.content_type = Some(tlv::text(kind, value)?),
                USER_PAIR => metadata.user.push(decode_pair(value)?),
                CHECKSUM => {
                    let checksum = u32::from_le_bytes(tlv::number(kind, value)?);
                    metadata.checksum = Some(checksum);
                }
                WRITTEN_AT_MS => {
                    let time = u64::from_le_bytes(tlv::number(kind, value)?);
                    metadata.written_at_ms = Some(time);
                }
                ETAG => metadata.etag = Some(decode_etag(value)?),
                BLOCKS => metadata.blocks = Some(Blocks::decode(kind, value)?.into()),
                PART_LIST => {
                    let list = PartList::decode(kind, value)?;
                    metadata.blocks = Some(Manifest::List(list));
                }
                LOST => metadata.lost = Some(decode_tag(value)?),
                _ => tlv::unknown(kind)?,
            }
        }
        Ok(metadata)
    }

    /// The entity tag and the time that a listing shows. Unreadable metadata has neither: a server keeps for clients
    /// what it cannot read.
    pub fn listed(bytes: &[u8]) -> (Option<Etag>, Option<u64>) {
        let (mut etag, mut written_at_ms) = (None, None);
        for (kind, value) in tlv::fields(bytes).map_while(Result::ok) {
            match kind {
                ETAG => etag = decode_etag(value).ok(),
                WRITTEN_AT_MS => {
                    written_at_ms = tlv::number(kind, value).ok().map(u64::from_le_bytes);
                }
                _ => {}
            }
        }
        (etag, written_at_ms)
    }
}

fn decode_etag(value: &[u8]) -> Result<Etag, TlvError> {
    let etag = std::str::from_utf8(value).ok();
    let etag = etag.and_then(|etag| Etag::new(etag).ok());
    etag.ok_or(TlvError::Invalid { kind: ETAG })
}

fn decode_tag(value: &[u8]) -> Result<Tag, TlvError> {
    let invalid = TlvError::Invalid { kind: LOST };
    let bytes: &[u8; TAG_BYTES] = value.try_into().map_err(|_| invalid)?;
    let part = |place: usize| {
        let part = bytes[8 * place..8 * (place + 1)].try_into();
        u64::from_le_bytes(part.expect("eight bytes"))
    };
    let (client, counter) = (ClientId(part(1)), part(2));
    Ok(Tag {
        number: part(0),
        writer: Writer { client, counter },
    })
}

fn decode_pair(value: &[u8]) -> Result<(String, String), TlvError> {
    let invalid = TlvError::Invalid { kind: USER_PAIR };
    if value.len() < 2 {
        return Err(invalid);
    }
    let split = 2 + usize::from(u16::from_le_bytes([value[0], value[1]]));
    if value.len() < split {
        return Err(invalid);
    }
    let name = tlv::text(USER_PAIR, &value[2..split])?;
    Ok((name, tlv::text(USER_PAIR, &value[split..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            etag: Some(Etag::new("d41d8cd98f00b204-2").unwrap()),
            blocks: Some(Blocks::new(Writer::default(), 10, 4).into()),
            lost: Some(Tag {
                number: 3,
                writer: Writer {
                    client: ClientId(5),
                    counter: 7,
                },
            }),
        };
        assert_eq!(
            Metadata::decode(&metadata.encode().unwrap()),
            Ok(metadata.clone())
        );
        assert_eq!(
            Metadata::listed(&metadata.encode().unwrap()),
            (metadata.etag.clone(), Some(9))
        );
        assert_eq!(Metadata::listed(&Bytes::from_static(b"?")), (None, None));
        assert_eq!(Metadata::decode(&Bytes::new()), Ok(Metadata::default()));
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
    #[test]
    fn an_etag_is_visible_ascii() {
        assert!(Etag::new(&"e".repeat(64)).is_ok());
        for text in ["", "a b", "\"a\"", "ä", "a\n", &"e".repeat(65)] {
            let bytes = text.len();
            assert_eq!(Etag::new(text), Err(InvalidMetadata::Etag { bytes }));
        }
    }
}
