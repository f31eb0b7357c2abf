//! Turns received bytes into frames.
//!
//! Small frames are read many at a time into one window and looked at in place. A payload of more than
//! 4 KiB gets an exact buffer from the pool: what of it is in the window already moves over, and the
//! rest is read straight into it, a piece at a time, each checked while it is in the processor's caches. Smaller payloads are copied out, so that a short element that is kept does
//! not keep 64 KiB alive.

use std::ops::Range;

use areo_wire::checksum::{Crc32c, crc32c};
use areo_wire::frame::{self, DecodeOutcome, FrameError, Header, Limits, SegmentRow};
use bytes::Bytes;

use crate::connection::outbox::GATHER_BYTES;
use crate::message::{Incoming, Segment};
use crate::pool::{Buffer, Pool};

/// The smallest window: a header, its trace and a small payload fit many times.
const MIN_WINDOW_BYTES: usize = 16 << 10;
/// The length of a piece of a large payload that is read, and checked, at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Turns received bytes into frames.
#[derive(Debug)]
pub(crate) struct Reader {
    window: Vec<u8>,
    /// The bytes that have arrived and are not yet consumed: `window[start..end]`.
    start: usize,
    end: usize,
    /// The number of bytes that have to lie in the window, from `start`, before it is worth looking again.
    needed: usize,
    window_bytes: usize,
    arriving: Option<PartialFrame>,
    /// The segment table of the frame that is being looked at or whose payload is arriving.
    rows: Vec<SegmentRow>,
    /// The body of the frame whose payload is arriving, and of the last one that did.
    body: Vec<u8>,
    limits: Limits,
    pool: Pool,
}

/// A frame whose head is verified and whose payload is on its way.
#[derive(Debug)]
struct PartialFrame {
    header: Header,
    buffer: Buffer,
    filled: usize,
    check: Check,
}

/// Segments of a payload that is on its way, against their checksums.
#[derive(Debug, Default)]
struct Check {
    /// The segment that is arriving, and how much of it has.
    segment: usize,
    arrived: usize,
    digest: Crc32c,
    is_damaged: bool,
}

impl Check {
    /// Takes the next bytes of the payload.
    fn add(&mut self, mut bytes: &[u8], rows: &[SegmentRow]) {
        self.close(rows);
        while !bytes.is_empty() {
            let missing = rows[self.segment].bytes as usize - self.arrived;
            let (here, behind) = bytes.split_at(missing.min(bytes.len()));
            self.digest.update(here);
            self.arrived += here.len();
            self.close(rows);
            bytes = behind;
        }
    }

    /// Judges the segments that are complete; some may be empty.
    fn close(&mut self, rows: &[SegmentRow]) {
        while let Some(row) = rows.get(self.segment)
            && row.bytes as usize == self.arrived
        {
            self.is_damaged |= std::mem::take(&mut self.digest).finish() != row.crc32c;
            self.segment += 1;
            self.arrived = 0;
        }
    }
}

/// The next thing that the reader has for its caller.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// A whole frame, verified.
    Frame(Incoming<'a>),
    /// A frame whose head is right and whose payload is not. The connection is still in step.
    Damaged(Header),
    /// Nothing until more is read.
    More,
}

impl Reader {
    /// A reader with a window of `window_bytes`. A connection of large payloads does with a small one: what
    /// lands in the window has to be moved.
    pub(crate) fn new(window_bytes: usize, limits: Limits, pool: Pool) -> Reader {
        let window_bytes = window_bytes.max(MIN_WINDOW_BYTES);
        Reader {
            window: vec![0; window_bytes],
            start: 0,
            end: 0,
            needed: frame::HEADER_BYTES,
            window_bytes,
            arriving: None,
            rows: Vec::new(),
            body: Vec::new(),
            limits,
            pool,
        }
    }

    /// True if a frame has begun and is not complete.
    pub(crate) fn is_mid_frame(&self) -> bool {
        self.arriving.is_some() || self.start != self.end
    }

    /// The space that the next bytes are to be read into; never empty.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if let Some(arriving) = &mut self.arriving {
            let filled = arriving.filled;
            assert!(filled < arriving.buffer.len());
            let until = arriving.buffer.len().min(filled + PIECE_BYTES);
            return &mut arriving.buffer.as_mut_slice()[filled..until];
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.window.len() > self.window_bytes {
                // A large body came through; one is no reason to stay large.
                self.window = vec![0; self.window_bytes];
            }
        }
        let crowded =
            self.end > self.window.len() / 2 || self.start + self.needed > self.window.len();
        if self.start > 0 && crowded {
            self.window.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.start + self.needed > self.window.len() {
            assert!(self.needed <= self.limits.max_head_bytes() + GATHER_BYTES);
            self.window.resize(self.start + self.needed, 0);
        }
        &mut self.window[self.end..]
    }

    /// Takes note that `count` bytes were read into the start of [`Reader::space`].
    pub(crate) fn filled(&mut self, count: usize) {
        if let Some(arriving) = &mut self.arriving {
            let before = arriving.filled;
            arriving.filled += count;
            assert!(arriving.filled <= arriving.buffer.len());
            let bytes = &arriving.buffer.as_mut_slice()[before..arriving.filled];
            arriving.check.add(bytes, &self.rows);
        } else {
            self.end += count;
            assert!(self.end <= self.window.len());
        }
    }

    /// The next frame in the bytes that have arrived. After an error the stream is out of step and must be closed.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, FrameError> {
        if let Some(arriving) = &self.arriving {
            if arriving.filled < arriving.buffer.len() {
                return Ok(Next::More);
            }
            return Ok(self.arrived());
        }
        if self.end - self.start < self.needed {
            return Ok(Next::More);
        }
        let (header, head_bytes, body_bytes, payload_bytes) =
            match frame::decode(&self.window[self.start..self.end], &self.limits)? {
                DecodeOutcome::Need { total_bytes } => {
                    assert!(total_bytes > self.end - self.start);
                    self.needed = total_bytes;
                    return Ok(Next::More);
                }
                DecodeOutcome::Head(head) => {
                    self.rows.clear();
                    self.rows.extend(head.segments.iter());
                    (
                        head.header,
                        head.head_bytes,
                        head.body.len(),
                        head.payload_bytes,
                    )
                }
            };
        let payload_bytes = usize::try_from(payload_bytes).expect("limited to 1 GiB");
        let payload_from = self.start + head_bytes;
        let body = payload_from - body_bytes..payload_from;
        if payload_bytes > GATHER_BYTES {
            return Ok(self.begin_payload(header, body, payload_bytes));
        }
        let frame_end = payload_from + payload_bytes;
        if frame_end > self.end {
            self.needed = frame_end - self.start;
            return Ok(Next::More);
        }
        self.start = frame_end;
        self.needed = frame::HEADER_BYTES;
        Ok(
            match copy_segments(&self.window[payload_from..frame_end], &self.rows) {
                Some(payload) => Next::Frame(Incoming {
                    header,
                    body: &self.window[body],
                    payload,
                }),
                None => Next::Damaged(header),
            },
        )
    }

    /// Sets a buffer aside for a large payload and moves over what of it has arrived.
    fn begin_payload(
        &mut self,
        header: Header,
        body: Range<usize>,
        payload_bytes: usize,
    ) -> Next<'_> {
        assert!(payload_bytes as u64 <= self.limits.max_payload_bytes);
        let from = body.end;
        let here = payload_bytes.min(self.end - from);
        let mut buffer = self.pool.take(payload_bytes);
        buffer.as_mut_slice()[..here].copy_from_slice(&self.window[from..from + here]);
        self.body.clear();
        self.body.extend_from_slice(&self.window[body]);
        let mut check = Check::default();
        check.add(&buffer.as_mut_slice()[..here], &self.rows);
        self.arriving = Some(PartialFrame {
            header,
            buffer,
            filled: here,
            check,
        });
        self.start = from + here;
        self.needed = frame::HEADER_BYTES;
        if here == payload_bytes {
            self.arrived()
        } else {
            Next::More
        }
    }

    /// Hands out the frame whose payload is complete.
    fn arrived(&mut self) -> Next<'_> {
        let arriving = self
            .arriving
            .take()
            .expect("called when a payload is complete");
        assert_eq!(arriving.filled, arriving.buffer.len());
        assert_eq!(arriving.check.segment, self.rows.len(), "all were judged");
        if arriving.check.is_damaged {
            return Next::Damaged(arriving.header);
        }
        Next::Frame(Incoming {
            header: arriving.header,
            body: &self.body,
            payload: share_segments(arriving.buffer.freeze(), &self.rows),
        })
    }
}

/// Copies a small payload out of the window; `None` if a checksum does not match.
fn copy_segments(payload: &[u8], rows: &[SegmentRow]) -> Option<Vec<Segment>> {
    let mut rest = payload;
    let mut segments = Vec::with_capacity(rows.len());
    for row in rows {
        let (segment, behind) = rest.split_at(row.bytes as usize);
        rest = behind;
        if crc32c(segment) != row.crc32c {
            return None;
        }
        segments.push(Segment {
            bytes: Bytes::copy_from_slice(segment),
            crc32c: row.crc32c,
        });
    }
    assert!(
        rest.is_empty(),
        "the decoder checked that the table adds up"
    );
    Some(segments)
}

/// Cuts a large payload, which was checked, into its segments without copying.
fn share_segments(payload: Bytes, rows: &[SegmentRow]) -> Vec<Segment> {
    let mut rest = payload;
    let share = |row: &SegmentRow| Segment {
        bytes: rest.split_to(row.bytes as usize),
        crc32c: row.crc32c,
    };
    let segments = rows.iter().map(share).collect();
    assert!(
        rest.is_empty(),
        "the decoder checked that the table adds up"
    );
    segments
}

#[cfg(test)]
mod tests {
    use areo_wire::frame::Kind;
    use proptest::prelude::*;

    use super::*;
    use crate::connection::outbox::Outbox;
    use crate::message::Body;

    type OwnedFrame = (u64, Vec<u8>, Vec<Vec<u8>>);

    fn stream_of(frames: &[OwnedFrame]) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, body, segments) in frames {
            let mut outbox = Outbox::default();
            let payload: Vec<_> = segments
                .iter()
                .map(|s| Segment::checksummed(s.clone().into()))
                .collect();
            outbox
                .push(
                    &Header::new(Kind::Note, *id),
                    Body::Borrowed(body),
                    &payload,
                )
                .unwrap();
            let mut slices = [std::io::IoSlice::new(&[]); 32];
            let count = outbox.slices(&mut slices);
            for slice in &slices[..count] {
                out.extend_from_slice(slice);
            }
        }
        out
    }

    /// Reads `stream` in pieces of at most `step` bytes; gives the frames, and an error if there was one.
    fn read(
        reader: &mut Reader,
        mut stream: &[u8],
        step: usize,
    ) -> (Vec<OwnedFrame>, Option<FrameError>) {
        let mut frames = Vec::new();
        loop {
            loop {
                match reader.next() {
                    Ok(Next::Frame(frame)) => frames.push((
                        frame.header.call_id,
                        frame.body.to_vec(),
                        frame
                            .payload
                            .iter()
                            .map(|segment| segment.bytes.to_vec())
                            .collect(),
                    )),
                    Ok(Next::Damaged(header)) => {
                        frames.push((header.call_id, b"damaged".to_vec(), vec![]));
                    }
                    Ok(Next::More) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
            if stream.is_empty() {
                return (frames, None);
            }
            let space = reader.space();
            let count = space.len().min(step).min(stream.len());
            assert!(count > 0);
            space[..count].copy_from_slice(&stream[..count]);
            reader.filled(count);
            stream = &stream[count..];
        }
    }

    fn sample() -> Vec<OwnedFrame> {
        vec![
            (1, b"small".to_vec(), vec![]),
            (2, vec![2; 100], vec![vec![1; 10], vec![], vec![2; 4000]]),
            (3, vec![3; 50_000], vec![vec![4; 5000], vec![5; 20_000]]),
            (4, vec![4; 100_000], vec![]),
            (5, vec![], vec![vec![6; 70_000]]),
            (6, b"last".to_vec(), vec![vec![7; 1]]),
        ]
    }

    #[test]
    fn frames_come_out_whatever_the_pieces() {
        let frames = sample();
        let stream = stream_of(&frames);
        for step in [1, 7, 39, 41, 4096, 16 << 10, 1 << 20] {
            let pool = Pool::new(1 << 20);
            let mut reader = Reader::new(0, Limits::default(), pool.clone());
            let (found, error) = read(&mut reader, &stream, step);
            assert_eq!(error, None);
            assert!(found == frames, "step {step}");
            assert!(!reader.is_mid_frame());
            reader.space();
            assert_eq!(
                reader.window.len(),
                MIN_WINDOW_BYTES,
                "a large body does not keep the window large"
            );
            assert_eq!(pool.lent(), 0);
            assert!(pool.idle_bytes() > 0);
        }
    }

    #[test]
    fn a_damaged_payload_is_reported_and_the_stream_stays_in_step() {
        let frames = sample();
        let whole = stream_of(&frames);
        for (index, payload_at) in [(1, 300), (2, 60_000)] {
            let before = stream_of(&frames[..index]).len();
            let mut stream = whole.clone();
            stream[before + payload_at] ^= 1;
            let mut reader = Reader::new(0, Limits::default(), Pool::new(0));
            let (found, error) = read(&mut reader, &stream, 1000);
            assert_eq!((found.len(), error), (frames.len(), None));
            for (at, frame) in found.iter().enumerate() {
                assert_eq!(frame.1 == b"damaged", at == index);
                assert_eq!(frame.0, frames[at].0);
            }
        }
    }

    #[test]
    fn nothing_of_earlier_payloads_is_seen_in_a_buffer_that_is_used_again() {
        let pool = Pool::new(1 << 20);
        let frame = |byte: u8, length: usize| (u64::from(byte), vec![], vec![vec![byte; length]]);
        let old = stream_of(&[frame(0xaa, 100_000)]);
        let (found, _) = read(
            &mut Reader::new(0, Limits::default(), pool.clone()),
            &old,
            1 << 20,
        );
        assert_eq!(found[0].2[0].len(), 100_000);
        let shelved = pool.idle_bytes();
        // The connection breaks in the middle of the payload.
        let cut = stream_of(&[frame(0xcc, 99_000)]);
        let mut reader = Reader::new(0, Limits::default(), pool.clone());
        let (found, error) = read(&mut reader, &cut[..50_000], 1000);
        assert!(found.is_empty() && error.is_none());
        assert_eq!(pool.idle_bytes(), 0, "it is the same buffer");
        drop(reader);
        assert_eq!(pool.idle_bytes(), shelved);
        let new = [frame(0xbb, 98_305)];
        let mut reader = Reader::new(0, Limits::default(), pool.clone());
        let (found, error) = read(&mut reader, &stream_of(&new), 1000);
        assert_eq!(error, None);
        assert!(found == new, "these bytes and no others");
        assert_eq!(pool.idle_bytes(), shelved, "and it was that buffer");
    }

    #[test]
    fn nothing_is_set_aside_for_a_payload_before_its_head_is_verified() {
        let limits = Limits {
            max_payload_bytes: 1 << 20,
            ..Limits::default()
        };
        let pool = Pool::new(0);
        let mut stream = stream_of(&[(1, vec![0; 100], vec![vec![1; 1 << 20]])]);
        stream[25] ^= 1;
        let mut reader = Reader::new(0, limits, pool.clone());
        let (found, error) = read(&mut reader, &stream[..200], 200);
        assert!(found.is_empty() && error.is_some());
        assert_eq!(pool.lent(), 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_stay_within_the_limits(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
            flips in proptest::collection::vec((any::<proptest::sample::Index>(), 0_u8..8), 0..4),
            step in 1_usize..5000,
            from_scratch in any::<bool>(),
        ) {
            let limits = Limits { max_body_bytes: 1 << 16, max_payload_bytes: 1 << 17, max_segments: 4 };
            let mut stream = if from_scratch { bytes } else { stream_of(&sample()[..3]) };
            for (at, bit) in flips {
                if !stream.is_empty() {
                    let at = at.index(stream.len());
                    stream[at] ^= 1 << bit;
                }
            }
            let mut reader = Reader::new(0, limits, Pool::new(0));
            read(&mut reader, &stream, step);
            prop_assert!(reader.window.len() <= limits.max_head_bytes() + GATHER_BYTES);
            if let Some(arriving) = &reader.arriving {
                prop_assert!(arriving.buffer.len() as u64 <= limits.max_payload_bytes);
            }
        }
    }
}
