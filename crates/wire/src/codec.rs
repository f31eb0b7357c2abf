//! Messages to bytes and back: everything of [`areo_core::message`], as `docs/wire.md` draws it under "Message bodies".
//!
//! A message is a *body*, small and copied freely, and a *payload*: one segment per element, the very bytes that the
//! element holds, with the checksum that it has had since it was made. Reading is the same in reverse: names, keys and
//! metadata of a decoded message are copies out of its body, elements are its segments.
//!
//! Every body begins with a kind and a flags byte. A flag that this version does not know is refused, because it may
//! change what follows; this is the room for what later versions attach to a message. Every byte and every segment has
//! to be accounted for, so that two programs never read two messages out of the same bytes.
//!
//! | file | |
//! |---|---|
//! | `writer`, `reader` | numbers, lengths, lists, with all bounds checks |
//! | `parts` | tags, ids, names, elements, records of servers |
//! | `request`, `reply`, `note`, `status`, `view` | the messages |
//! | [`trust`] | messages that another crate reads |
//! | `refusal` | refusals of the algorithms and of frames |

mod answer;
mod error;
mod held;
mod list;
mod note;
pub(crate) mod parts;
pub(crate) mod ranked;
pub(crate) mod reader;
mod reply;
mod request;
mod restart;
mod status;
#[cfg(test)]
mod tests;
pub mod trust;
mod view;
pub(crate) mod writer;

pub use error::DecodeError;

use crate::frame;
use areo_core::message::{Note, Reply, Request};
use bytes::Bytes;
use reader::Reader;
use writer::Encode;

/// Parts of a request up to this size, in bytes, are copied: a question about one object has one part, its name.
const SHORT_REQUEST_BYTES: usize = 96;
/// Parts of a reply up to this size, in bytes, are copied: the answer about one object has one part, its metadata, and
/// often none.
const SHORT_REPLY_BYTES: usize = 256;

/// A message as it goes into a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedMessage {
    /// The body. Larger than [`frame::MAX_BODY_BYTES`] only if a caller batched objects with long names and metadata
    /// without looking at their size; the sender refuses such a frame.
    pub body: Bytes,
    /// The payloads of the elements, in their order, shared and not copied; each with its CRC-32C. Elements without
    /// bytes have none.
    pub payload: Vec<(Bytes, u32)>,
}

/// The bytes of a request. Checksums that an element does not have are computed here.
pub fn encode_request(request: &Request) -> EncodedMessage {
    EncodedMessage {
        body: request.to_vec().into(),
        payload: request::segments(request),
    }
}

/// The bytes of a reply, whose elements must be there ([`areo_core::element::ReplyElement::Whole`]).
///
/// A page that is too long for one frame is cut, and says so: the caller continues behind its last entry.
pub fn encode_reply(reply: &Reply) -> EncodedMessage {
    EncodedMessage {
        body: reply.to_vec().into(),
        payload: reply::segments(reply),
    }
}

/// The bytes of a note, which has no payload.
pub fn encode_note(note: &Note) -> EncodedMessage {
    EncodedMessage {
        body: note.to_vec().into(),
        payload: Vec::new(),
    }
}

/// Reads a request. Its names and metadata do not keep `body`; its elements are the segments of `payload`, whose checksums
/// must have been verified.
///
/// # Errors
/// The first rule that the bytes break; [`DecodeError::refusal`] says what to answer.
pub fn decode_request(body: &[u8], payload: Vec<(Bytes, u32)>) -> Result<Request, DecodeError> {
    decode(body, payload, SHORT_REQUEST_BYTES, request::request)
}

/// Reads a reply, as [`decode_request`] does a request.
///
/// # Errors
/// The first rule that the bytes break.
pub fn decode_reply(body: &[u8], payload: Vec<(Bytes, u32)>) -> Result<Reply, DecodeError> {
    decode(body, payload, SHORT_REPLY_BYTES, reply::reply)
}

/// Reads a note, as [`decode_request`] does a request.
///
/// # Errors
/// The first rule that the bytes break.
pub fn decode_note(body: &[u8], payload: Vec<(Bytes, u32)>) -> Result<Note, DecodeError> {
    decode(body, payload, SHORT_REQUEST_BYTES, note::note)
}

fn decode<'a, T>(
    body: &'a [u8],
    payload: Vec<(Bytes, u32)>,
    short_bytes: usize,
    message: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let limit_bytes = frame::MAX_BODY_BYTES as usize;
    if body.len() > limit_bytes {
        return Err(DecodeError::TooLong {
            what: "body",
            bytes: body.len(),
            limit_bytes,
        });
    }
    let mut reader = Reader::new(body, payload, short_bytes);
    let message = message(&mut reader)?;
    reader.finish()?;
    Ok(message)
}
