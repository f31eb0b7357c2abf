//! Frames: how a message travels on a connection.
//!
//! ```text
//!  0        4  5  6  7  8                16       20       24               32    34    36       40
//!  ┌────────┬──┬──┬──┬──┬────────────────┬────────┬────────┬────────────────┬─────┬─────┬────────┐
//!  │ crc32c │AE│ 1│kd│fl│    call id     │deadline│  body  │    payload     │segs │code │  zero  │
//!  │        │  │  │  │  │                │   ms   │ bytes  │     bytes      │     │     │        │
//!  └────────┴──┴──┴──┴──┴────────────────┴────────┴────────┴────────────────┴─────┴─────┴────────┘
//!  40  [trace id 16 · span id 8 · trace flags 1]        when bit 0 of the flags is set
//!   +  [length u32 · crc32c u32] × segments             one row per payload segment
//!   +  body                                             at most 1 MiB: the message, by the codec
//!   ─── the crc32c in front covers everything from byte 4 to here: the *head* ───
//!   +  segment, segment, ...                            the payload, each under the crc of its own row
//! ```
//!
//! Everything is little-endian. The checksum comes first so that what it covers is one contiguous run. The
//! head is verified before a single byte is set aside for the payload, so a flipped length cannot make a
//! receiver allocate; the payload is under the checksums that its sender had anyway (an element's own), so
//! no byte of it is read twice on the sending side and it can be received straight into its final buffer.

#![allow(
    clippy::missing_panics_doc,
    reason = "the asserts state invariants of this code; no input reaches them"
)]

mod error;
#[cfg(test)]
mod tests;

use crate::checksum::{Crc32c, crc32c};
pub use areo_core::message::Refusal;
pub use error::FrameError;

/// The version of the frame format that this code speaks.
pub const VERSION: u8 = 2;
/// The fifth byte of every frame.
pub const MAGIC: u8 = 0xAE;
/// Size of the fixed part of a head, in bytes.
pub const HEADER_BYTES: usize = 40;
/// Size of a trace context on the wire, in bytes.
pub const TRACE_BYTES: usize = 25;
/// Size of one row of the segment table, in bytes.
pub const SEGMENT_ROW_BYTES: usize = 8;
/// The largest body of one frame, in bytes.
pub const MAX_BODY_BYTES: u32 = 1 << 20;
/// The largest payload of one frame, all segments together, in bytes.
pub const MAX_PAYLOAD_BYTES: u64 = 1 << 30;
/// The most payload segments in one frame.
pub const MAX_SEGMENTS: u16 = 1024;
/// The `deadline ms` of a message without a deadline.
pub const NO_DEADLINE: u32 = u32::MAX;

const FLAG_TRACE: u8 = 1;
const KNOWN_FLAGS: u8 = FLAG_TRACE;
/// The offset at which the area under the head's checksum begins.
const CHECKED_FROM: usize = 4;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Asks for a reply or a refusal with the same call id.
    Request = 1,
    /// The reply to a request.
    Reply = 2,
    /// Answers a request with a [`Refusal`]; the body may explain, in the codec's terms.
    Refusal = 3,
    /// A message without an answer; its call id is 0.
    Note = 4,
    /// Asks whether the other side still reads; answered by a pong with the same call id.
    Ping = 5,
    /// The answer to a ping.
    Pong = 6,
    /// The sender will take no new requests on this connection and will close it.
    Goodbye = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Request,
            2 => Kind::Reply,
            3 => Kind::Refusal,
            4 => Kind::Note,
            5 => Kind::Ping,
            6 => Kind::Pong,
            7 => Kind::Goodbye,
            _ => return None,
        })
    }

    /// True if a frame of this kind carries a body and a payload; the others are bare signals.
    fn is_message(self) -> bool {
        !matches!(self, Kind::Ping | Kind::Pong | Kind::Goodbye)
    }
}

/// A W3C trace context: which trace and which span of it asked for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    /// Id of the span that is the parent.
    pub span_id: [u8; 8],
    /// The trace flags; bit 0 means sampled.
    pub flags: u8,
}

/// Limits of frames that a receiver accepts; never above the constants of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest body, in bytes.
    pub max_body_bytes: u32,
    /// Largest payload of one frame, in bytes.
    pub max_payload_bytes: u64,
    /// Maximum number of payload segments.
    pub max_segments: u16,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_body_bytes: MAX_BODY_BYTES,
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            max_segments: MAX_SEGMENTS,
        }
    }
}

impl Limits {
    /// The longest head that these limits let through, in bytes.
    pub fn max_head_bytes(&self) -> usize {
        let table = usize::from(self.max_segments) * SEGMENT_ROW_BYTES;
        HEADER_BYTES + TRACE_BYTES + table + self.max_body_bytes as usize
    }

    /// Checks that a message of this size may travel.
    ///
    /// # Errors
    /// The first limit that it breaks.
    pub fn check(
        &self,
        body_bytes: u64,
        payload_bytes: u64,
        segments: u64,
    ) -> Result<(), FrameError> {
        assert!(self.max_body_bytes <= MAX_BODY_BYTES && self.max_segments <= MAX_SEGMENTS);
        assert!(self.max_payload_bytes <= MAX_PAYLOAD_BYTES);
        if body_bytes > u64::from(self.max_body_bytes) {
            return Err(FrameError::BodyTooLarge {
                body_bytes,
                limit_bytes: self.max_body_bytes,
            });
        }
        if payload_bytes > self.max_payload_bytes {
            return Err(FrameError::PayloadTooLarge {
                payload_bytes,
                limit_bytes: self.max_payload_bytes,
            });
        }
        if segments > u64::from(self.max_segments) {
            return Err(FrameError::TooManySegments {
                segments,
                limit: self.max_segments,
            });
        }
        Ok(())
    }
}

/// The fields of a head that a sender chooses: all but the lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the frame.
    pub kind: Kind,
    /// Names the call on its connection; the answer carries the same one.
    pub call_id: u64,
    /// The time that is left until the caller stops waiting, in milliseconds; [`NO_DEADLINE`] if it waits for ever.
    pub deadline_ms: u32,
    /// The reason; set exactly when the kind is [`Kind::Refusal`].
    pub refusal: Option<Refusal>,
    /// The span that asked, if it is traced.
    pub trace: Option<TraceContext>,
}

impl Header {
    /// A header of `kind` for `call_id`, without deadline, refusal or trace.
    pub fn new(kind: Kind, call_id: u64) -> Header {
        Header {
            kind,
            call_id,
            deadline_ms: NO_DEADLINE,
            refusal: None,
            trace: None,
        }
    }

    /// The header of a refusal of call `call_id`.
    pub fn refusal(call_id: u64, refusal: Refusal) -> Header {
        Header {
            refusal: Some(refusal),
            ..Header::new(Kind::Refusal, call_id)
        }
    }
}

/// One row of the segment table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// Length of the segment in bytes.
    pub bytes: u32,
    /// CRC-32C of the segment.
    pub crc32c: u32,
}

/// The segment table of a received head, read in place.
#[derive(Clone, Copy, Debug)]
pub struct SegmentTable<'a> {
    rows: &'a [u8],
}

impl<'a> SegmentTable<'a> {
    pub fn len(&self) -> usize {
        self.rows.len() / SEGMENT_ROW_BYTES
    }

    /// True if the frame has no payload segments.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in the order of the payload.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SegmentRow> + use<'a> {
        self.rows
            .chunks_exact(SEGMENT_ROW_BYTES)
            .map(|row| SegmentRow {
                bytes: u32_at(row, 0),
                crc32c: u32_at(row, 4),
            })
    }
}

/// A received and verified head. The payload follows it on the connection.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The fields that are not lengths.
    pub header: Header,
    /// Length and checksum of each payload segment.
    pub segments: SegmentTable<'a>,
    /// The message, by the codec.
    pub body: &'a [u8],
    /// Length of the payload that follows, in bytes; the sum of the segments.
    pub payload_bytes: u64,
    /// Length of this head, in bytes: where the payload begins.
    pub head_bytes: usize,
}

/// The outcome of decoding the bytes that came so far.
#[derive(Clone, Copy, Debug)]
pub enum DecodeOutcome<'a> {
    /// Not enough yet: `total_bytes`, counted from the start of the frame, get the decoder further.
    Need {
        /// More than was shown, at most [`Limits::max_head_bytes`].
        total_bytes: usize,
    },
    /// A whole, verified head.
    Head(Head<'a>),
}

/// Reads the head at the start of `bytes`, which may hold less than a head or much more than one.
///
/// Allocates nothing and never reads past `bytes`.
///
/// # Errors
/// The first rule that the bytes break. Final for the connection: nothing after a malformed head can be
/// trusted to be the start of another one.
pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<DecodeOutcome<'a>, FrameError> {
    if bytes.len() < HEADER_BYTES {
        return Ok(DecodeOutcome::Need {
            total_bytes: HEADER_BYTES,
        });
    }
    let (kind, refusal) = decode_fixed(bytes)?;
    let flags = bytes[7];
    let body_bytes = u32_at(bytes, 20);
    let payload_bytes = u64_at(bytes, 24);
    let segments = u16_at(bytes, 32);
    limits.check(u64::from(body_bytes), payload_bytes, u64::from(segments))?;
    if !kind.is_message() && (body_bytes != 0 || payload_bytes != 0 || segments != 0) {
        return Err(FrameError::SignalWithContent);
    }

    let trace_bytes = if flags & FLAG_TRACE == 0 {
        0
    } else {
        TRACE_BYTES
    };
    let table_from = HEADER_BYTES + trace_bytes;
    let body_from = table_from + usize::from(segments) * SEGMENT_ROW_BYTES;
    let head_bytes = body_from + body_bytes as usize;
    assert!(head_bytes <= limits.max_head_bytes());
    if bytes.len() < head_bytes {
        return Ok(DecodeOutcome::Need {
            total_bytes: head_bytes,
        });
    }

    let stored = u32_at(bytes, 0);
    let computed = crc32c(&bytes[CHECKED_FROM..head_bytes]);
    if stored != computed {
        return Err(FrameError::HeadDamaged { stored, computed });
    }
    let segments = SegmentTable {
        rows: &bytes[table_from..body_from],
    };
    let table_bytes = segments.iter().map(|row| u64::from(row.bytes)).sum::<u64>();
    if table_bytes != payload_bytes {
        return Err(FrameError::SegmentsDisagree {
            payload_bytes,
            table_bytes,
        });
    }
    Ok(DecodeOutcome::Head(Head {
        header: Header {
            kind,
            call_id: u64_at(bytes, 8),
            deadline_ms: u32_at(bytes, 16),
            refusal,
            trace: (trace_bytes != 0).then(|| decode_trace(&bytes[HEADER_BYTES..table_from])),
        },
        segments,
        body: &bytes[body_from..head_bytes],
        payload_bytes,
        head_bytes,
    }))
}

/// Checks the fixed part of a header: magic, version, kind, flags, refusal code, reserved bytes.
fn decode_fixed(bytes: &[u8]) -> Result<(Kind, Option<Refusal>), FrameError> {
    if bytes[4] != MAGIC {
        return Err(FrameError::NotAFrame { found: bytes[4] });
    }
    if bytes[5] != VERSION {
        return Err(FrameError::UnknownVersion { version: bytes[5] });
    }
    let kind = Kind::from_byte(bytes[6]).ok_or(FrameError::UnknownKind { kind: bytes[6] })?;
    if bytes[7] & !KNOWN_FLAGS != 0 {
        return Err(FrameError::UnknownFlags { flags: bytes[7] });
    }
    let code = u16_at(bytes, 34);
    let refusal = Refusal::from_code(code);
    // A code exactly when the kind needs one, and then one of the list.
    if (kind == Kind::Refusal) != refusal.is_some() || (refusal.is_none() && code != 0) {
        return Err(FrameError::WrongRefusalCode { code });
    }
    let reserved = u32_at(bytes, 36);
    if reserved != 0 {
        return Err(FrameError::ReservedNotZero { found: reserved });
    }
    Ok((kind, refusal))
}

fn decode_trace(bytes: &[u8]) -> TraceContext {
    assert_eq!(bytes.len(), TRACE_BYTES);
    TraceContext {
        trace_id: bytes[..16].try_into().expect("16 bytes of 25"),
        span_id: bytes[16..24].try_into().expect("8 bytes of 25"),
        flags: bytes[24],
    }
}

/// The place in which [`encode`] puts the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPlace {
    /// Copied behind the table: best for the usual small body, which shares one buffer with its neighbours.
    Inline,
    /// Covered by the checksum but not copied: the caller writes it next, from where it is.
    Apart,
}

/// Appends a head to `out`: header, trace, segment table, and the body if `place` says so.
///
/// The caller writes the body (if apart) and the segments after it, in the order of `rows`.
///
/// # Errors
/// The message is over the limits of the format; `out` is as it was.
pub fn encode<I>(
    out: &mut Vec<u8>,
    header: &Header,
    rows: I,
    body: &[u8],
    place: BodyPlace,
) -> Result<(), FrameError>
where
    I: ExactSizeIterator<Item = SegmentRow> + Clone,
{
    let payload_bytes = rows.clone().map(|row| u64::from(row.bytes)).sum::<u64>();
    let segments = rows.len();
    Limits::default().check(body.len() as u64, payload_bytes, segments as u64)?;
    assert_eq!(header.kind == Kind::Refusal, header.refusal.is_some());
    assert!(header.kind.is_message() || (body.is_empty() && segments == 0));

    let start = out.len();
    let mut fixed = [0_u8; HEADER_BYTES];
    fixed[4] = MAGIC;
    fixed[5] = VERSION;
    fixed[6] = header.kind as u8;
    fixed[7] = if header.trace.is_some() {
        FLAG_TRACE
    } else {
        0
    };
    fixed[8..16].copy_from_slice(&header.call_id.to_le_bytes());
    fixed[16..20].copy_from_slice(&header.deadline_ms.to_le_bytes());
    fixed[20..24].copy_from_slice(&(body.len() as u32).to_le_bytes());
    fixed[24..32].copy_from_slice(&payload_bytes.to_le_bytes());
    fixed[32..34].copy_from_slice(&(segments as u16).to_le_bytes());
    fixed[34..36].copy_from_slice(&header.refusal.map_or(0, Refusal::code).to_le_bytes());
    out.extend_from_slice(&fixed);
    if let Some(trace) = &header.trace {
        out.extend_from_slice(&trace.trace_id);
        out.extend_from_slice(&trace.span_id);
        out.push(trace.flags);
    }
    for row in rows {
        out.extend_from_slice(&row.bytes.to_le_bytes());
        out.extend_from_slice(&row.crc32c.to_le_bytes());
    }
    let checksum = match place {
        BodyPlace::Inline => {
            out.extend_from_slice(body);
            crc32c(&out[start + CHECKED_FROM..])
        }
        BodyPlace::Apart => {
            let mut digest = Crc32c::default();
            digest.update(&out[start + CHECKED_FROM..]);
            digest.update(body);
            digest.finish()
        }
    };
    out[start..start + CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The length of the head of a message on the wire, body included, payload not, in bytes.
pub fn head_bytes(header: &Header, segments: usize, body_bytes: usize) -> usize {
    let trace_bytes = if header.trace.is_some() {
        TRACE_BYTES
    } else {
        0
    };
    HEADER_BYTES + trace_bytes + segments * SEGMENT_ROW_BYTES + body_bytes
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
