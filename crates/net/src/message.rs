//! The messages that are sent and received.

use areo_wire::checksum::crc32c;
use std::time::{Duration, Instant};

use areo_wire::frame::{self, FrameError, Header, Kind, Limits, SegmentRow, TraceContext};
use bytes::Bytes;

/// A payload above this many bytes travels on the bulk connection.
pub const BULK_BYTES: u64 = 256 << 10;

/// A piece of a payload with the checksum that it has had since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The bytes; shared, never copied on their way to the socket if they are more than 4 KiB.
    pub bytes: Bytes,
    /// CRC-32C of these bytes.
    pub crc32c: u32,
}

impl Segment {
    /// A segment whose checksum is computed here, for callers who have none.
    pub fn checksummed(bytes: Bytes) -> Segment {
        let crc32c = crc32c(&bytes);
        Segment { bytes, crc32c }
    }

    /// The segment's row in a frame's table. A segment too long for the format gets a row that the limits refuse.
    pub(crate) fn row(&self) -> SegmentRow {
        SegmentRow {
            bytes: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
            crc32c: self.crc32c,
        }
    }
}

/// The body of a message that is about to be queued.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Copied into the queue.
    Borrowed(&'a [u8]),
    /// Copied if it is small, shared if it is not.
    Shared(&'a Bytes),
}

impl Body<'_> {
    /// The bytes of the body.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Body::Borrowed(bytes) => bytes,
            Body::Shared(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Body<'a> {
    fn from(bytes: &'a [u8]) -> Body<'a> {
        Body::Borrowed(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Body<'a> {
    fn from(bytes: &'a Vec<u8>) -> Body<'a> {
        Body::Borrowed(bytes)
    }
}

impl<'a> From<&'a Bytes> for Body<'a> {
    fn from(bytes: &'a Bytes) -> Body<'a> {
        Body::Shared(bytes)
    }
}

/// A message to one server. Cheap to clone: a fan-out shares the body.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The message, by the codec.
    pub body: Bytes,
    /// Elements and other large parts.
    pub payload: Vec<Segment>,
    /// The time at which the operation began this round; the clock is read once for a fan-out, not once per server.
    pub started: Instant,
    /// The time at which the caller stops waiting. After it the call is forgotten by itself; without one, only by
    /// [`Peer::forget`](crate::Peer::forget).
    pub deadline: Option<Instant>,
    /// The span that asks.
    pub trace: Option<TraceContext>,
    /// True if the reply may be large, so that it should not come on the connection of small calls.
    pub expects_bulk: bool,
}

impl Outgoing {
    /// A message without payload, trace or large reply, starting now.
    pub fn new(body: Bytes, timeout: Option<Duration>) -> Outgoing {
        let started = Instant::now();
        Outgoing {
            body,
            payload: Vec::new(),
            started,
            deadline: timeout.map(|timeout| started + timeout),
            trace: None,
            expects_bulk: false,
        }
    }

    /// Bytes of the payload.
    pub fn payload_bytes(&self) -> u64 {
        self.payload
            .iter()
            .map(|segment| segment.bytes.len() as u64)
            .sum()
    }

    pub(crate) fn is_bulk(&self) -> bool {
        self.expects_bulk || self.payload_bytes() > BULK_BYTES
    }

    /// The size of the message in a queue, in bytes, to within a header.
    pub(crate) fn queue_bytes(&self) -> usize {
        let payload = self
            .payload
            .iter()
            .map(|segment| segment.bytes.len())
            .sum::<usize>();
        frame::HEADER_BYTES + self.body.len() + payload
    }

    /// Checks that a receiver with `limits` takes it.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), FrameError> {
        limits.check(
            self.body.len() as u64,
            self.payload_bytes(),
            self.payload.len() as u64,
        )
    }

    /// The frame header for sending it at `now`, with the time left until the deadline.
    pub(crate) fn header(&self, kind: Kind, call_id: u64, now: Instant) -> Header {
        let remaining_ms = |deadline: Instant| {
            let remaining_ms = deadline.saturating_duration_since(now).as_millis();
            // One below "none": a deadline in 49 days is still a deadline.
            u32::try_from(remaining_ms)
                .unwrap_or(u32::MAX)
                .min(frame::NO_DEADLINE - 1)
        };
        Header {
            deadline_ms: self.deadline.map_or(frame::NO_DEADLINE, remaining_ms),
            trace: self.trace,
            ..Header::new(kind, call_id)
        }
    }
}

/// A frame that arrived whole, its checksums verified.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Kind, call id, deadline, refusal code, trace context.
    pub header: Header,
    /// The message, borrowed from the read buffer: decode it or copy it before returning.
    pub body: &'a [u8],
    /// The payload, the receiver's to keep.
    pub payload: Vec<Segment>,
}

impl Incoming<'_> {
    /// The time that was left until the caller's deadline when it sent this; `None` if it has none.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline_ms = self.header.deadline_ms;
        (deadline_ms != frame::NO_DEADLINE).then(|| Duration::from_millis(u64::from(deadline_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_of_a_frame_is_what_is_left() {
        let mut message = Outgoing::new(Bytes::new(), Some(Duration::from_secs(5)));
        let deadline_ms = |message: &Outgoing, after_ms| {
            let now = message.started + Duration::from_millis(after_ms);
            message.header(Kind::Request, 1, now).deadline_ms
        };
        assert_eq!(deadline_ms(&message, 0), 5000);
        assert_eq!(deadline_ms(&message, 4999), 1);
        assert_eq!(deadline_ms(&message, 6000), 0);
        message.deadline = Some(message.started + Duration::from_hours(24 * 365));
        assert_eq!(deadline_ms(&message, 0), frame::NO_DEADLINE - 1);
        message.deadline = None;
        assert_eq!(deadline_ms(&message, 0), frame::NO_DEADLINE);
    }

    #[test]
    fn large_payloads_and_large_replies_are_bulk() {
        let mut message = Outgoing::new(Bytes::from_static(b"x"), None);
        assert!(!message.is_bulk());
        message.payload = vec![Segment::checksummed(Bytes::from(vec![
            0;
            BULK_BYTES as usize
        ]))];
        assert!(!message.is_bulk());
        message
            .payload
            .push(Segment::checksummed(Bytes::from_static(b"1")));
        assert!(message.is_bulk());
        message.payload.clear();
        message.expects_bulk = true;
        assert!(message.is_bulk());
    }
}
