//! The errors of a frame.

/// Why bytes are no frame, or why a message cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The fifth byte is not [`MAGIC`](super::MAGIC).
    #[error("not a frame: byte 4 is {found:#04x}")]
    NotAFrame {
        /// The byte that stood there.
        found: u8,
    },
    /// A version that was not agreed on.
    #[error("unknown frame version {version}")]
    UnknownVersion {
        /// The version in the header.
        version: u8,
    },
    /// A kind that this version does not have.
    #[error("unknown frame kind {kind}")]
    UnknownKind {
        /// The kind in the header.
        kind: u8,
    },
    /// A flag that this version does not have.
    #[error("unknown frame flags {flags:#04x}")]
    UnknownFlags {
        /// The flags in the header.
        flags: u8,
    },
    /// A refusal without a code of the list, or a code on something else.
    #[error("wrong refusal code {code}")]
    WrongRefusalCode {
        /// The code in the header.
        code: u16,
    },
    /// Reserved bytes that are not zero.
    #[error("reserved bytes are {found:#x}")]
    ReservedNotZero {
        /// The value that stood there.
        found: u32,
    },
    /// A body over the limit.
    #[error("body of {body_bytes} bytes, limit {limit_bytes}")]
    BodyTooLarge {
        /// Length in the header.
        body_bytes: u64,
        limit_bytes: u32,
    },
    /// A payload over the limit.
    #[error("payload of {payload_bytes} bytes, limit {limit_bytes}")]
    PayloadTooLarge {
        /// Length in the header.
        payload_bytes: u64,
        limit_bytes: u64,
    },
    /// More segments than the limit.
    #[error("{segments} payload segments, limit {limit}")]
    TooManySegments {
        /// Count in the header.
        segments: u64,
        limit: u16,
    },
    /// A signal (ping, pong, goodbye) with a body or a payload.
    #[error("a signal with a body or a payload")]
    SignalWithContent,
    /// The head does not match its checksum.
    #[error("head damaged: checksum {stored:08x}, computed {computed:08x}")]
    HeadDamaged {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
    /// The rows of the segment table do not add up to the payload length in the header.
    #[error("segments of {table_bytes} bytes in a payload of {payload_bytes}")]
    SegmentsDisagree {
        /// Length in the header.
        payload_bytes: u64,
        /// Sum of the table.
        table_bytes: u64,
    },
}
