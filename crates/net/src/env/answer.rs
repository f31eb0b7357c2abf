//! The answers of servers, in the terms of the algorithms.

use areo_core::message::Refusal;
use areo_core::tally::Event;
use areo_wire::codec;

use crate::message::Segment;
use crate::peer::{Answer, CallRefusal};

/// An event for the tally.
pub(super) fn event_of(answer: Answer<'_>) -> Event {
    match answer {
        Answer::Unreachable { .. } => Event::Unreachable,
        Answer::Refused { refusal, .. } => Event::Refused(refusal),
        Answer::Reply(incoming) => {
            let pair = |segment: Segment| (segment.bytes, segment.crc32c);
            let payload = incoming.payload.into_iter().map(pair).collect();
            match codec::decode_reply(incoming.body, payload) {
                Ok(reply) => Event::Reply(reply),
                Err(error) => {
                    tracing::warn!(%error, "a reply that cannot be read");
                    Event::Refused(Refusal::Malformed)
                }
            }
        }
    }
}

/// Why a call was not even queued, in the terms of the algorithms.
pub(super) fn refusal_of(refused: CallRefusal) -> Refusal {
    match refused {
        CallRefusal::QueueFull { .. } => Refusal::Busy,
        CallRefusal::ByServer { refusal } => refusal,
        CallRefusal::TooLarge { .. } => Refusal::TooLarge,
    }
}
