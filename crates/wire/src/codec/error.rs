//! The errors of a message body or a record header.

use areo_core::config::InvalidConfiguration;
use areo_core::message::Refusal;
use areo_core::object::{InvalidKey, InvalidMetadata};
use areo_core::tlv::TlvError;

/// Why bytes are no message, or no record header.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within a part that they announce.
    #[error("cut short: {needed_bytes} bytes are due at byte {offset}, {left_bytes} are left")]
    CutShort {
        /// The offset at which it begins, in bytes.
        offset: usize,
        /// Bytes that it needs.
        needed_bytes: usize,
        /// Bytes that are left.
        left_bytes: usize,
    },
    /// Bytes after the end of the message.
    #[error("{bytes} bytes after the end")]
    TrailingBytes {
        /// Number of these bytes.
        bytes: usize,
    },
    /// A record of a version that this code does not read.
    #[error("unknown version {version}")]
    UnknownVersion { version: u8 },
    /// A number that stands for nothing in this version.
    #[error("unknown {what} {value}")]
    UnknownValue {
        /// The kind of the number.
        what: &'static str,
        value: u16,
    },
    /// Flags that this version does not have: they would change the meaning of the rest.
    #[error("unknown flags {flags:#04x} of a {what}")]
    UnknownFlags {
        /// The thing that the flags belong to.
        what: &'static str,
        /// All flags that are set.
        flags: u8,
    },
    /// More items than the limit.
    #[error("{count} {what}, at most {limit} are allowed")]
    TooMany {
        /// The name of the items.
        what: &'static str,
        count: usize,
        limit: usize,
    },
    /// More bytes than the limit.
    #[error("{what} of {bytes} bytes, at most {limit_bytes} are allowed")]
    TooLong {
        /// The thing of this length.
        what: &'static str,
        bytes: usize,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A name of an object that is none.
    #[error("{0}")]
    Key(InvalidKey),
    /// An ETag that is none.
    #[error("{0}")]
    Etag(InvalidMetadata),
    /// Text that is not UTF-8.
    #[error("the {what} is not UTF-8")]
    NotUtf8 {
        /// The name of the text.
        what: &'static str,
    },
    /// A descriptor that is none.
    #[error("{0}")]
    Descriptor(InvalidConfiguration),
    /// Fields that cannot be read.
    #[error("{0}")]
    Fields(TlvError),
    /// A fragment of a code that does not exist.
    #[error("there is no fragment {index} of a [{n}, {k}] code")]
    ImpossibleForm {
        /// Fragments of the code.
        n: u8,
        /// Fragments that make a value.
        k: u8,
        /// The index of this one.
        index: u8,
    },
    /// A full copy whose payload is not as long as the value.
    #[error("a full copy of {payload_bytes} bytes of a value of {length}")]
    WrongLength {
        /// Length of the value.
        length: u64,
        /// Length of the payload.
        payload_bytes: u64,
    },
    /// The versions of an object are not in ascending order, or one is there twice.
    #[error("versions out of order")]
    VersionsOutOfOrder,
    /// A decided cell without a value.
    #[error("a decided cell without a value")]
    DecidedWithoutValue,
    /// A withheld answer that does not say where to go on.
    #[error("a withheld answer without a pointer")]
    WithheldWithoutPointer,
    /// An element announces a payload that did not come.
    #[error("an element's payload is missing")]
    MissingSegment,
    /// A payload segment of no bytes, which no element has.
    #[error("a payload segment of no bytes")]
    EmptySegment,
    /// Payload segments that belong to no element.
    #[error("{segments} payload segments belong to no element")]
    UnusedSegments { segments: usize },
}

impl DecodeError {
    /// The refusal of a request that is wrong in this way.
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
