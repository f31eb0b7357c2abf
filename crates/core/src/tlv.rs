//! Type-length-value fields with a must-understand bit: what descriptors and metadata are written in, so that a later
//! version can add fields that an older one either skips or refuses.
//!
//! ```text
//!  u16 type (bit 15: must understand)   u32 length   length bytes      all little-endian, fields in any order
//! ```

use bytes::{BufMut, BytesMut};
use std::fmt;

/// Set in a field's type when a reader that does not know it must refuse the whole.
pub const MUST_UNDERSTAND: u16 = 0x8000;

/// Bytes of a field before its content: its type and its length.
pub const HEAD_BYTES: usize = 6;

/// Appends a field: kind, length, value.
pub fn put_field(out: &mut BytesMut, kind: u16, value: &[u8]) {
    let length = u32::try_from(value.len()).expect("fields are far below 4 GiB");
    out.put_u16_le(kind);
    out.put_u32_le(length);
    out.put_slice(value);
}

/// Bytes that are not a sequence of fields, or a field that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlvError {
    /// The bytes end within a field.
    Truncated,
    /// A field that must be understood is not known here.
    Unknown {
        /// The field's type, with its must-understand bit.
        kind: u16,
    },
    /// A known field with an invalid value.
    Invalid { kind: u16 },
    /// A field that must be there is not.
    Missing { kind: u16 },
}

impl fmt::Display for TlvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlvError::Truncated => write!(f, "the fields are cut short"),
            TlvError::Unknown { kind } => {
                write!(
                    f,
                    "field {kind:#06x} is of a later version and must be understood"
                )
            }
            TlvError::Invalid { kind } => write!(f, "field {kind:#06x} has invalid content"),
            TlvError::Missing { kind } => write!(f, "field {kind:#06x} is missing"),
        }
    }
}

impl std::error::Error for TlvError {}

/// Its type and its content.
pub type Field<'a> = (u16, &'a [u8]);

/// Splits `bytes` into fields, in their order. What is to outlive them is cut out with `Bytes::slice_ref`.
pub fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<Field<'_>, TlvError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = split_first(rest);
        (_, rest) = field.unwrap_or_default();
        Some(field.map(|(field, _)| field).ok_or(TlvError::Truncated))
    })
}

/// The first field, and the bytes behind it; `None` if the bytes end before it does.
fn split_first(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let kind = u16::from_le_bytes([head[0], head[1]]);
    let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
    let (value, rest) = rest.split_at_checked(length)?;
    Some(((kind, value), rest))
}

/// Treats a field that the reader does not know: skip it, or refuse the whole.
///
/// # Errors
/// [`TlvError`].
pub fn unknown(kind: u16) -> Result<(), TlvError> {
    match kind & MUST_UNDERSTAND {
        0 => Ok(()),
        _ => Err(TlvError::Unknown { kind }),
    }
}

/// The content of a field that is one little-endian number of exactly its width.
///
/// # Errors
/// [`TlvError`].
pub fn number<const N: usize>(kind: u16, value: &[u8]) -> Result<[u8; N], TlvError> {
    <[u8; N]>::try_from(value).map_err(|_| TlvError::Invalid { kind })
}

/// The content of a field that is UTF-8 text.
///
/// # Errors
/// [`TlvError`].
pub fn text(kind: u16, value: &[u8]) -> Result<String, TlvError> {
    String::from_utf8(value.to_vec()).map_err(|_| TlvError::Invalid { kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_every_truncation_is_told() {
        let mut out = BytesMut::new();
        put_field(&mut out, 1, b"one");
        put_field(&mut out, MUST_UNDERSTAND | 2, b"");
        let bytes = out.freeze();
        let read: Result<Vec<_>, _> = fields(&bytes).collect();
        assert_eq!(
            read.unwrap(),
            [(1, b"one".as_slice()), (MUST_UNDERSTAND | 2, b"")]
        );
        for end in 1..bytes.len() {
            let cut: Result<Vec<_>, _> = fields(&bytes[..end]).collect();
            assert_eq!(cut.is_ok(), end == 9, "cut at {end}");
        }
        assert_eq!(unknown(7), Ok(()));
        assert!(unknown(MUST_UNDERSTAND | 7).is_err());
    }
}
