//! The request for a listing.

use super::error::DecodeError;
use super::reader::Reader;
use super::writer::Sink;
use areo_core::limits;
use areo_core::message::ListRequest;
use areo_core::object::Kind;

/// Prefix, start and delimiter come from the caller: if they are too long the server refuses them.
pub(super) fn put_list<S: Sink>(out: &mut S, request: &ListRequest) {
    out.u8(request.kind as u8);
    out.u16(request.limit);
    out.long(request.prefix.len());
    out.long(request.after.len());
    out.long(request.delimiter.len());
    out.put(request.prefix.as_bytes());
    out.put(request.after.as_bytes());
    out.put(request.delimiter.as_bytes());
}

pub(super) fn list(reader: &mut Reader<'_>) -> Result<ListRequest, DecodeError> {
    let kind = reader.u8()?;
    let kind = Kind::from_byte(kind).ok_or(DecodeError::UnknownValue {
        what: "kind of object",
        value: kind.into(),
    })?;
    let limit = reader.u16()?;
    let (prefix_bytes, after_bytes) = (reader.long()?, reader.long()?);
    let delimiter_bytes = reader.long()?;
    Ok(ListRequest {
        kind,
        prefix: reader.text("prefix of keys", prefix_bytes, kind.most_bytes())?,
        after: reader.text("key", after_bytes, kind.most_bytes())?,
        delimiter: reader.text("delimiter", delimiter_bytes, limits::KEY_BYTES)?,
        limit,
    })
}
