//! Messages about the trust of a cluster: the two bytes before them.
//!
//! A request about trust travels as others do, in a frame of its own, and passes through no algorithm. What follows its kind and its
//! flags, none yet, are fields that `areo_trust::protocol` writes and reads.

use bytes::{BufMut, Bytes, BytesMut};

use super::error::DecodeError;

/// The kind of a request about trust.
const REQUEST: u8 = 17;
/// The kind of an answer to one.
const REPLY: u8 = 18;

/// The body of a request with these fields.
pub fn encode_request(fields: &[u8]) -> Bytes {
    encode(REQUEST, fields)
}

/// The body of an answer with these fields.
pub fn encode_reply(fields: &[u8]) -> Bytes {
    encode(REPLY, fields)
}

/// True if a body is that of a request about trust.
pub fn is_request(body: &[u8]) -> bool {
    body.first() == Some(&REQUEST)
}

/// The fields of a request about trust.
///
/// # Errors
/// It is another message, or has flags of a later version.
pub fn decode_request(body: &[u8]) -> Result<&[u8], DecodeError> {
    decode("request about trust", REQUEST, body)
}

/// The fields of an answer to a request about trust.
///
/// # Errors
/// It is another message, or has flags of a later version.
pub fn decode_reply(body: &[u8]) -> Result<&[u8], DecodeError> {
    decode("reply about trust", REPLY, body)
}

fn encode(kind: u8, fields: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(2 + fields.len());
    body.put_slice(&[kind, 0]);
    body.put_slice(fields);
    body.freeze()
}

fn decode<'a>(what: &'static str, kind: u8, body: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    match body {
        [found, 0, fields @ ..] if *found == kind => Ok(fields),
        [found, flags, ..] if *found == kind => Err(DecodeError::UnknownFlags {
            what,
            flags: *flags,
        }),
        [value, _, ..] => Err(DecodeError::UnknownValue {
            what,
            value: u16::from(*value),
        }),
        _ => Err(DecodeError::CutShort {
            offset: 0,
            needed_bytes: 2,
            left_bytes: body.len(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_begin_with_their_kind_and_no_flag() {
        let (request, reply) = (encode_request(b"fields"), encode_reply(b""));
        assert_eq!(
            (&request[..], &reply[..]),
            (&b"\x11\x00fields"[..], &[18, 0][..])
        );
        assert_eq!(decode_request(&request), Ok(&b"fields"[..]));
        assert_eq!(decode_reply(&reply), Ok(&b""[..]));
        assert!(is_request(&request) && !is_request(&reply) && !is_request(b""));
        assert!(decode_request(&reply).is_err() && decode_reply(&request).is_err());
        let flagged = DecodeError::UnknownFlags {
            what: "reply about trust",
            flags: 1,
        };
        assert_eq!(decode_reply(&[18, 1]), Err(flagged));
        for length in 0..2 {
            assert!(decode_request(&request[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn no_other_message_has_these_kinds() {
        for body in [encode_request(b""), encode_reply(b"")] {
            assert!(crate::codec::decode_request(&body, Vec::new()).is_err());
            assert!(crate::codec::decode_reply(&body, Vec::new()).is_err());
            assert!(crate::codec::decode_note(&body, Vec::new()).is_err());
        }
    }
}
