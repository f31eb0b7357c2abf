//! Type-length-value fields with a must-understand bit: what descriptors and metadata are written in, so that a later
//! version can add fields that an older one either skips or refuses.
//!
//! ```text
//!  u16 type (bit 15: must understand)   u32 length   length bytes      all little-endian, fields in any order
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// Set in a field's type when a reader that does not know it must refuse the whole.
pub const MUST_UNDERSTAND: u16 = 0x8000;

/// Bytes of a field before its content: its type and its length.
pub const HEAD_BYTES: usize = 6;

/// Appends one field.
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
    /// A known field whose content is not what it should be.
    Invalid {
        /// The field's type.
        kind: u16,
    },
    /// A field that must be there is not.
    Missing {
        /// The field's type.
        kind: u16,
    },
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

/// Splits `bytes` into fields, in their order.
pub fn fields(bytes: &Bytes) -> impl Iterator<Item = Result<(u16, Bytes), TlvError>> {
    let mut rest = bytes.clone();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.len() < HEAD_BYTES {
            rest.clear();
            return Some(Err(TlvError::Truncated));
        }
        let head = rest.split_to(HEAD_BYTES);
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        if rest.len() < length {
            rest.clear();
            return Some(Err(TlvError::Truncated));
        }
        Some(Ok((kind, rest.split_to(length))))
    })
}

/// What a reader does with a field that it does not know: skip it, or refuse the whole.
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
pub fn number<const N: usize>(kind: u16, value: &Bytes) -> Result<[u8; N], TlvError> {
    <[u8; N]>::try_from(value.as_ref()).map_err(|_| TlvError::Invalid { kind })
}

/// The content of a field that is UTF-8 text.
///
/// # Errors
/// [`TlvError`].
pub fn text(kind: u16, value: &Bytes) -> Result<String, TlvError> {
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
            [
                (1, Bytes::from_static(b"one")),
                (MUST_UNDERSTAND | 2, Bytes::new())
            ]
        );
        for end in 1..bytes.len() {
            let cut: Result<Vec<_>, _> = fields(&bytes.slice(..end)).collect();
            assert_eq!(cut.is_ok(), end == 9, "cut at {end}");
        }
        assert_eq!(unknown(7), Ok(()));
        assert!(unknown(MUST_UNDERSTAND | 7).is_err());
    }
}
