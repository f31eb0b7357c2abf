//! The fate of frames on bad connections. Messages usually travel as the codec's output; one that a fault
//! strikes becomes the bytes of a real frame, and what arrives of them goes through the real decoder.

use super::World;
use super::network::{Body, Content, Message};
use crate::fault::Fault;
use areo_core::message::Refusal;
use areo_wire::checksum::crc32c;
use areo_wire::frame::{self, BodyPlace, DecodeOutcome, Header, Kind, Limits, SegmentRow};
use bytes::Bytes;

/// The result of decoding a message.
enum FrameOutcome {
    /// A whole message, verified.
    Content(Content),
    /// A message whose head is right and whose payload is not.
    DamagedPayload,
    /// Nothing, and nothing that comes after it on this connection.
    Nothing,
}

impl World {
    /// Lets a fault of frames strike. The message, if it arrives as one.
    pub(super) fn through_frames(&self, message: Message) -> Option<Message> {
        if self.strikes(Fault::CutFrame) {
            let mut bytes = frame_of(&message.content);
            bytes.truncate(self.random().index(bytes.len()));
            if !matches!(receive(&bytes, &message.content), FrameOutcome::Nothing) {
                self.violate("frame: a part of a frame was taken for a whole one".to_owned());
            }
            self.break_connection(&message);
            return None;
        }
        if self.strikes(Fault::FlippedFrame) {
            let mut bytes = frame_of(&message.content);
            let place = self.random().index(bytes.len());
            bytes[place] ^= 1 << self.random().below(8);
            return self.arrive_flipped(message, &bytes);
        }
        Some(message)
    }

    fn arrive_flipped(&self, message: Message, bytes: &[u8]) -> Option<Message> {
        match receive(bytes, &message.content) {
            // Whatever is taken for a message is one.
            FrameOutcome::Content(content) => Some(message.with(content)),
            FrameOutcome::Nothing => {
                self.break_connection(&message);
                None
            }
            // As in `net`: whoever asked is told, both sides go on.
            FrameOutcome::DamagedPayload => {
                let call = message.content.call()?;
                Some(message.with(Content::Reply(call, Err(Refusal::Damaged))))
            }
        }
    }
}

fn frame_of(content: &Content) -> Vec<u8> {
    let (header, body) = match content {
        Content::Request {
            call,
            deadline_ms,
            body,
        } => {
            let header = Header::new(Kind::Request, *call);
            let deadline_ms = *deadline_ms;
            (
                Header {
                    deadline_ms,
                    ..header
                },
                Some(body),
            )
        }
        Content::Note(body) => (Header::new(Kind::Note, 0), Some(body)),
        Content::Reply(call, Ok(body)) => (Header::new(Kind::Reply, *call), Some(body)),
        Content::Reply(call, Err(refusal)) => (Header::refusal(*call, *refusal), None),
    };
    let payload = body.map_or(&[][..], |body| &body.payload);
    let rows = payload.iter().map(|(bytes, crc32c)| SegmentRow {
        bytes: u32::try_from(bytes.len()).expect("values of the simulator are small"),
        crc32c: *crc32c,
    });
    let body = body.map_or(&[][..], |body| &body.body);
    let mut bytes = Vec::new();
    frame::encode(&mut bytes, &header, rows, body, BodyPlace::Inline)
        .expect("messages of the simulator are small");
    for (segment, _) in payload {
        bytes.extend_from_slice(segment);
    }
    bytes
}

/// Decodes a message as the reader of `net` does: the head by the decoder, then each segment by the checksum in its
/// row.
fn receive(bytes: &[u8], sent: &Content) -> FrameOutcome {
    let Ok(DecodeOutcome::Head(head)) = frame::decode(bytes, &Limits::default()) else {
        return FrameOutcome::Nothing;
    };
    let mut rest = &bytes[head.head_bytes..];
    let mut payload = Vec::new();
    let mut is_whole = true;
    for row in head.segments.iter() {
        let Some((segment, after)) = rest.split_at_checked(row.bytes as usize) else {
            return FrameOutcome::Nothing;
        };
        is_whole &= crc32c(segment) == row.crc32c;
        payload.push((Bytes::copy_from_slice(segment), row.crc32c));
        rest = after;
    }
    if !is_whole {
        return FrameOutcome::DamagedPayload;
    }
    let body = Body {
        body: Bytes::copy_from_slice(head.body),
        payload,
    };
    let call = head.header.call_id;
    match (head.header.kind, sent) {
        (Kind::Request, Content::Request { .. }) => FrameOutcome::Content(Content::Request {
            call,
            deadline_ms: head.header.deadline_ms,
            body,
        }),
        (Kind::Note, Content::Note(_)) => FrameOutcome::Content(Content::Note(body)),
        (Kind::Reply, Content::Reply(..)) => FrameOutcome::Content(Content::Reply(call, Ok(body))),
        (Kind::Refusal, Content::Reply(_, Err(refusal))) => {
            FrameOutcome::Content(Content::Reply(call, Err(*refusal)))
        }
        // Nobody sends that in this direction.
        _ => FrameOutcome::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        let segment = Bytes::from_static(b"an element");
        let checksum = crc32c(&segment);
        let body = Body {
            body: Bytes::from_static(b"what the codec says"),
            payload: vec![(segment, checksum)],
        };
        Content::Reply(7, Ok(body))
    }

    #[test]
    fn what_was_not_touched_arrives_as_it_was() {
        let Content::Reply(_, Ok(sent)) = content() else {
            unreachable!("it is a reply");
        };
        match receive(&frame_of(&content()), &content()) {
            FrameOutcome::Content(Content::Reply(7, Ok(body))) => assert!(body == sent),
            _ => panic!("it did not arrive"),
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_goes_unnoticed() {
        let bytes = frame_of(&content());
        let is_noticed =
            |bytes: &[u8]| !matches!(receive(bytes, &content()), FrameOutcome::Content(_));
        for place in 0..bytes.len() {
            assert!(is_noticed(&bytes[..place]), "cut at {place}");
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[place] ^= 1 << bit;
                assert!(is_noticed(&flipped), "bit {bit} of byte {place}");
            }
        }
    }
}
