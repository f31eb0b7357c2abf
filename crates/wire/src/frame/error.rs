//! What can be wrong with a frame.

use std::fmt;

/// Why bytes are no frame, or why a message cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The fifth byte is not [`MAGIC`](super::MAGIC).
    NotAFrame {
        /// What stood there.
        found: u8,
    },
    /// A version that was not agreed on.
    UnknownVersion {
        /// The version in the header.
        version: u8,
    },
    /// A kind that this version does not have.
    UnknownKind {
        /// The kind in the header.
        kind: u8,
    },
    /// A flag that this version does not have.
    UnknownFlags {
        /// The flags in the header.
        flags: u8,
    },
    /// A refusal without a code of the list, or a code on something else.
    WrongRefusalCode {
        /// The code in the header.
        code: u16,
    },
    /// Reserved bytes that are not zero.
    ReservedNotZero {
        /// What stood there.
        found: u32,
    },
    /// A body over the limit.
    BodyTooLarge {
        /// Length in the header.
        body_bytes: u64,
        /// The receiver's limit.
        limit_bytes: u32,
    },
    /// A payload over the limit.
    PayloadTooLarge {
        /// Length in the header.
        payload_bytes: u64,
        /// The receiver's limit.
        limit_bytes: u64,
    },
    /// More segments than the limit.
    TooManySegments {
        /// Count in the header.
        segments: u64,
        /// The receiver's limit.
        limit: u16,
    },
    /// A signal (ping, pong, goodbye) with a body or a payload.
    SignalWithContent,
    /// The head does not match its checksum.
    HeadDamaged {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
    /// The rows of the segment table do not add up to the payload length in the header.
    SegmentsDisagree {
        /// Length in the header.
        payload_bytes: u64,
        /// Sum of the table.
        table_bytes: u64,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FrameError::NotAFrame { found } => {
                write!(formatter, "not a frame: byte 4 is {found:#04x}")
            }
            FrameError::UnknownVersion { version } => {
                write!(formatter, "unknown frame version {version}")
            }
            FrameError::UnknownKind { kind } => write!(formatter, "unknown frame kind {kind}"),
            FrameError::UnknownFlags { flags } => {
                write!(formatter, "unknown frame flags {flags:#04x}")
            }
            FrameError::WrongRefusalCode { code } => write!(formatter, "wrong refusal code {code}"),
            FrameError::ReservedNotZero { found } => {
                write!(formatter, "reserved bytes are {found:#x}")
            }
            FrameError::BodyTooLarge {
                body_bytes,
                limit_bytes,
            } => {
                write!(formatter, "body of {body_bytes} bytes, limit {limit_bytes}")
            }
            FrameError::PayloadTooLarge {
                payload_bytes,
                limit_bytes,
            } => {
                write!(
                    formatter,
                    "payload of {payload_bytes} bytes, limit {limit_bytes}"
                )
            }
            FrameError::TooManySegments { segments, limit } => {
                write!(formatter, "{segments} payload segments, limit {limit}")
            }
            FrameError::SignalWithContent => {
                formatter.write_str("a signal with a body or a payload")
            }
            FrameError::HeadDamaged { stored, computed } => {
                write!(
                    formatter,
                    "head damaged: checksum {stored:08x}, computed {computed:08x}"
                )
            }
            FrameError::SegmentsDisagree {
                payload_bytes,
                table_bytes,
            } => {
                write!(
                    formatter,
                    "segments of {table_bytes} bytes in a payload of {payload_bytes}"
                )
            }
        }
    }
}

impl std::error::Error for FrameError {}
