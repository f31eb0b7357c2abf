//! Values and their metadata, before they are sent.

use crate::checksum;
use crate::error::{Error, Invalid};
use crate::object::{Metadata, PutOptions, now_ms};
use areo_core::element::Value;
use areo_core::limits;
use bytes::Bytes;

/// The value with its metadata, if that is within the limits.
pub(crate) fn value_to_put(content: Bytes, options: PutOptions) -> Result<Value, Error> {
    check_block_bytes(options.block_bytes)?;
    let checksum = checksum::of(std::slice::from_ref(&content));
    Ok(Value::new(metadata(options, checksum).encode()?, content))
}

/// The metadata of a value that is written with these options.
pub(super) fn metadata(options: PutOptions, checksum: u32) -> Metadata {
    Metadata {
        content_type: options.content_type,
        user: options.user_metadata,
        checksum: Some(checksum),
        etag: options.etag,
        written_at_ms: options.written_at_ms.or_else(now_ms),
        blocks: None,
        lost: None,
    }
}

/// Checks the options before anything is read or sent.
///
/// # Errors
/// [`Invalid::BlockBytes`], and metadata over its limits.
pub(super) fn refuse(options: &PutOptions) -> Result<(), Error> {
    check_block_bytes(options.block_bytes)?;
    metadata(options.clone(), 0).encode()?;
    Ok(())
}

/// Checks that blocks may have this length.
///
/// # Errors
/// [`Invalid::BlockBytes`].
pub(super) fn check_block_bytes(block_bytes: u32) -> Result<(), Error> {
    let limits = limits::MIN_BLOCK_BYTES..=limits::MAX_BLOCK_BYTES;
    if limits.contains(&block_bytes) {
        return Ok(());
    }
    let bytes = block_bytes.into();
    let reason = Invalid::BlockBytes { bytes };
    Err(Error::Invalid { reason })
}

/// Checks that the value is no longer than a block.
///
/// # Errors
/// [`Invalid::ValueTooLarge`].
pub(super) fn check_length(value: &Bytes, options: &PutOptions) -> Result<(), Error> {
    let (bytes, limit_bytes) = (value.len() as u64, options.block_bytes.into());
    if bytes <= limit_bytes {
        return Ok(());
    }
    let reason = Invalid::ValueTooLarge { bytes, limit_bytes };
    Err(Error::Invalid { reason })
}

/// A block with its own checksum.
pub(super) fn block_value(content: Bytes) -> Result<Value, Error> {
    let metadata = Metadata {
        checksum: Some(checksum::of(std::slice::from_ref(&content))),
        written_at_ms: now_ms(),
        ..Metadata::default()
    };
    Ok(Value::new(metadata.encode()?, content))
}
