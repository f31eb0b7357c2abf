//! The messages that wait to be written on one connection.

use std::collections::VecDeque;
use std::io::IoSlice;

use areo_wire::frame::{self, BodyPlace, FrameError, Header};
use bytes::Bytes;

use crate::message::{Body, Segment};

/// Segments and bodies up to this many bytes are gathered; above it they are a slice of their own. Copying
/// 4 KiB costs less than another entry in the kernel's list.
pub(crate) const GATHER_BYTES: usize = 4096;
/// A gathered chunk takes no further frame beyond this size, so that it can be reused while the next fills.
const CHUNK_BYTES: usize = 64 << 10;
/// An emptied chunk above this size is freed, not reused.
const KEEP_BYTES: usize = 2 * CHUNK_BYTES;
/// The most emptied chunks that wait for reuse.
const SPARE_CHUNKS: usize = 2;

/// A queue of bytes: small things gathered, large things by reference, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    chunks: VecDeque<Chunk>,
    /// The number of bytes of the first chunk that are written already.
    written_of_front: usize,
    queued_bytes: usize,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Chunk {
    /// Heads, small bodies, small segments of any number of frames.
    Gathered(Vec<u8>),
    /// One large body or segment.
    Shared(Bytes),
}

impl Chunk {
    fn as_slice(&self) -> &[u8] {
        match self {
            Chunk::Gathered(bytes) => bytes,
            Chunk::Shared(bytes) => bytes,
        }
    }
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    /// Bytes not yet given to the kernel.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Queues one frame, whole or not at all.
    pub(crate) fn push(
        &mut self,
        header: &Header,
        body: Body<'_>,
        payload: &[Segment],
    ) -> Result<(), FrameError> {
        let bytes = body.as_slice();
        let apart = match body {
            Body::Shared(shared) if shared.len() > GATHER_BYTES => Some(shared.clone()),
            _ => None,
        };
        let place = if apart.is_some() {
            BodyPlace::Apart
        } else {
            BodyPlace::Inline
        };
        let gathered = self.gathered();
        let before = gathered.len();
        frame::encode(
            gathered,
            header,
            payload.iter().map(Segment::row),
            bytes,
            place,
        )?;
        self.queued_bytes += gathered.len() - before;
        if let Some(shared) = apart {
            self.push_shared(shared);
        }
        for segment in payload {
            if segment.bytes.len() > GATHER_BYTES {
                self.push_shared(segment.bytes.clone());
            } else {
                self.queued_bytes += segment.bytes.len();
                self.gathered().extend_from_slice(&segment.bytes);
            }
        }
        Ok(())
    }

    fn push_shared(&mut self, bytes: Bytes) {
        assert!(!bytes.is_empty());
        self.queued_bytes += bytes.len();
        self.chunks.push_back(Chunk::Shared(bytes));
    }

    /// The gathered chunk at the end of the queue, a new one if need be.
    fn gathered(&mut self) -> &mut Vec<u8> {
        let has_room =
            matches!(self.chunks.back(), Some(Chunk::Gathered(bytes)) if bytes.len() < CHUNK_BYTES);
        if !has_room {
            let chunk = self.spare.pop().unwrap_or_default();
            assert!(chunk.is_empty());
            self.chunks.push_back(Chunk::Gathered(chunk));
        }
        match self.chunks.back_mut() {
            Some(Chunk::Gathered(bytes)) => bytes,
            _ => unreachable!("a gathered chunk was just put there"),
        }
    }

    /// Fills `slices` with the bytes to write next; returns how many it set.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut skip = self.written_of_front;
        for (slot, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slot = IoSlice::new(&chunk.as_slice()[skip..]);
            skip = 0;
            count += 1;
        }
        count
    }

    /// Drops the first `written` bytes of the queue.
    pub(crate) fn advance(&mut self, written: usize) {
        assert!(written <= self.queued_bytes);
        self.queued_bytes -= written;
        let mut left = written + self.written_of_front;
        while let Some(front) = self.chunks.front() {
            let length = front.as_slice().len();
            if left < length {
                break;
            }
            left -= length;
            if let Some(Chunk::Gathered(mut bytes)) = self.chunks.pop_front()
                && self.spare.len() < SPARE_CHUNKS
                && bytes.capacity() <= KEEP_BYTES
            {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
        self.written_of_front = left;
        assert!(!self.chunks.is_empty() || (left == 0 && self.queued_bytes == 0));
    }

    /// Drops all queued messages.
    pub(crate) fn clear(&mut self) {
        *self = Outbox::default();
    }
}

#[cfg(test)]
mod tests {
    use areo_wire::checksum::crc32c;
    use areo_wire::frame::Kind;

    use super::*;

    /// Takes the queue apart in writes of `step` bytes.
    fn drain(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let count = outbox.slices(&mut slices);
            let flat: Vec<u8> = slices[..count]
                .iter()
                .flat_map(|slice| slice.to_vec())
                .collect();
            assert!(!flat.is_empty());
            let written = step.min(flat.len());
            out.extend_from_slice(&flat[..written]);
            outbox.advance(written);
        }
        out
    }

    fn expected(header: &Header, body: &[u8], payload: &[Segment]) -> Vec<u8> {
        let mut out = Vec::new();
        let rows = payload.iter().map(Segment::row);
        frame::encode(&mut out, header, rows, body, BodyPlace::Inline).unwrap();
        for segment in payload {
            out.extend_from_slice(&segment.bytes);
        }
        out
    }

    #[test]
    fn any_mixture_comes_out_in_order_whatever_the_kernel_takes() {
        let sizes = [0, 1, 100, GATHER_BYTES, GATHER_BYTES + 1, 70_000];
        for step in [1000, 4097, 1 << 20] {
            let mut outbox = Outbox::default();
            let mut all = Vec::new();
            for (id, &size) in sizes.iter().cycle().take(12).enumerate() {
                let header = Header::new(Kind::Request, id as u64);
                let body = Bytes::from(vec![id as u8; size]);
                let payload = sizes.map(|size| Segment {
                    bytes: Bytes::from(vec![!(id as u8); size]),
                    crc32c: crc32c(b"as given, not checked here"),
                });
                outbox.push(&header, Body::Shared(&body), &payload).unwrap();
                outbox.push(&header, Body::Borrowed(&body), &[]).unwrap();
                all.extend(expected(&header, &body, &payload));
                all.extend(expected(&header, &body, &[]));
            }
            assert_eq!(outbox.queued_bytes(), all.len());
            assert!(drain(&mut outbox, step) == all);
            assert!(outbox.spare.len() <= SPARE_CHUNKS);
        }
    }

    #[test]
    fn large_segments_are_not_copied_and_small_frames_share_a_slice() {
        let mut outbox = Outbox::default();
        let large = Bytes::from(vec![1; GATHER_BYTES + 1]);
        for id in 0..10 {
            outbox
                .push(&Header::new(Kind::Note, id), Body::Borrowed(b"small"), &[])
                .unwrap();
        }
        let payload = [Segment::checksummed(large.clone())];
        outbox
            .push(&Header::new(Kind::Note, 11), Body::Borrowed(b""), &payload)
            .unwrap();
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(outbox.slices(&mut slices), 2);
        assert_eq!(slices[1].as_ptr(), large.as_ptr());
    }

    #[test]
    fn a_message_over_the_limits_leaves_nothing_behind() {
        let mut outbox = Outbox::default();
        let body = vec![0; frame::MAX_BODY_BYTES as usize + 1];
        let error = outbox.push(&Header::new(Kind::Note, 0), Body::Borrowed(&body), &[]);
        assert!(matches!(error, Err(FrameError::BodyTooLarge { .. })));
        assert!(outbox.is_empty());
        outbox
            .push(&Header::new(Kind::Note, 0), Body::Borrowed(b"next"), &[])
            .unwrap();
        assert_eq!(outbox.queued_bytes(), frame::HEADER_BYTES + 4);
    }
}
