//! What can be wrong with a message body or a record header.

use areo_core::config::InvalidConfiguration;
use areo_core::message::Refusal;
use areo_core::object::{InvalidKey, InvalidMetadata};
use areo_core::tlv::TlvError;
use std::fmt;

/// Why bytes are no message, or no record header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes end within what they announce.
    CutShort {
        /// Where it begins.
        offset: usize,
        /// Bytes that it needs.
        needed_bytes: usize,
        /// Bytes that are left.
        left_bytes: usize,
    },
    /// Bytes after the end of the message.
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// A record of a version that this code does not read.
    UnknownVersion {
        /// The version.
        version: u8,
    },
    /// A number that stands for nothing in this version.
    UnknownValue {
        /// What it should be.
        what: &'static str,
        /// The number.
        value: u16,
    },
    /// Flags that this version does not have: they would change what the rest means.
    UnknownFlags {
        /// Of what.
        what: &'static str,
        /// All flags that are set.
        flags: u8,
    },
    /// More items than the limit.
    TooMany {
        /// Of what.
        what: &'static str,
        /// The number announced.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// More bytes than the limit.
    TooLong {
        /// Of what.
        what: &'static str,
        /// The length announced.
        bytes: usize,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A name of an object that is none.
    Key(InvalidKey),
    /// An ETag that is none.
    Etag(InvalidMetadata),
    /// Text that is not UTF-8.
    NotUtf8 {
        /// What it should be.
        what: &'static str,
    },
    /// A descriptor that is none.
    Descriptor(InvalidConfiguration),
    /// Fields that cannot be read.
    Fields(TlvError),
    /// A fragment of a code that does not exist.
    ImpossibleForm {
        /// Fragments of the code.
        n: u8,
        /// Fragments that make a value.
        k: u8,
        /// The index of this one.
        index: u8,
    },
    /// A full copy whose payload is not as long as the value.
    WrongLength {
        /// Length of the value.
        length: u64,
        /// Length of the payload.
        payload_bytes: u64,
    },
    /// The versions of an object are not in ascending order, or one is there twice.
    VersionsOutOfOrder,
    /// A decided cell without a value.
    DecidedWithoutValue,
    /// A withheld answer that does not say where to go on.
    WithheldWithoutPointer,
    /// An element announces a payload that did not come.
    MissingSegment,
    /// A payload segment of no bytes, which no element has.
    EmptySegment,
    /// Payload segments that belong to no element.
    UnusedSegments {
        /// How many.
        segments: usize,
    },
}

impl DecodeError {
    /// What to answer to a request that is wrong in this way.
    pub fn refusal(&self) -> Refusal {
        match self {
            DecodeError::UnknownVersion { .. }
            | DecodeError::UnknownValue { .. }
            | DecodeError::UnknownFlags { .. }
            | DecodeError::Key(InvalidKey::UnknownKind { .. })
            | DecodeError::Fields(TlvError::Unknown { .. })
            | DecodeError::Descriptor(InvalidConfiguration::Encoding(TlvError::Unknown {
                ..
            })) => Refusal::UnknownRequest,
            DecodeError::TooMany { .. }
            | DecodeError::TooLong { .. }
            | DecodeError::Key(InvalidKey::TooLong { .. }) => Refusal::TooLarge,
            _ => Refusal::Malformed,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::CutShort {
                offset,
                needed_bytes,
                left_bytes,
            } => write!(
                f,
                "cut short: {needed_bytes} bytes are due at byte {offset}, {left_bytes} are left"
            ),
            DecodeError::TrailingBytes { bytes } => write!(f, "{bytes} bytes after the end"),
            DecodeError::UnknownVersion { version } => write!(f, "unknown version {version}"),
            DecodeError::UnknownValue { what, value } => write!(f, "unknown {what} {value}"),
            DecodeError::UnknownFlags { what, flags } => {
                write!(f, "unknown flags {flags:#04x} of a {what}")
            }
            DecodeError::TooMany { what, count, limit } => {
                write!(f, "{count} {what}, at most {limit} are allowed")
            }
            DecodeError::TooLong {
                what,
                bytes,
                limit_bytes,
            } => write!(
                f,
                "{what} of {bytes} bytes, at most {limit_bytes} are allowed"
            ),
            DecodeError::Key(error) => error.fmt(f),
            DecodeError::Etag(error) => error.fmt(f),
            DecodeError::NotUtf8 { what } => write!(f, "the {what} is not UTF-8"),
            DecodeError::Descriptor(error) => error.fmt(f),
            DecodeError::Fields(error) => error.fmt(f),
            DecodeError::ImpossibleForm { n, k, index } => {
                write!(f, "there is no fragment {index} of a [{n}, {k}] code")
            }
            DecodeError::WrongLength {
                length,
                payload_bytes,
            } => write!(
                f,
                "a full copy of {payload_bytes} bytes of a value of {length}"
            ),
            DecodeError::VersionsOutOfOrder => f.write_str("versions out of order"),
            DecodeError::DecidedWithoutValue => f.write_str("a decided cell without a value"),
            DecodeError::WithheldWithoutPointer => {
                f.write_str("a withheld answer without a pointer")
            }
            DecodeError::MissingSegment => f.write_str("an element's payload is missing"),
            DecodeError::EmptySegment => f.write_str("a payload segment of no bytes"),
            DecodeError::UnusedSegments { segments } => {
                write!(f, "{segments} payload segments belong to no element")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
