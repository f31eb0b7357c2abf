//! The writing of a value that is no longer than a block: at once.

use crate::checksum;
use crate::domain::Domain;
use crate::error::{Error, Invalid, Operation};
use crate::object::{Metadata, PutOptions, now_ms};
use crate::session::Context;
use areo_core::dsm::conditional::{Condition, Wish, WriteDecision};
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::limits;
use areo_core::object::Name;
use areo_core::tag::Tag as Version;
use areo_trust::grant::Verb;
use bytes::Bytes;
use futures_util::future::BoxFuture;

impl Domain {
    /// Writes a value that is no longer than a block.
    pub(crate) fn put_at_once(
        &self,
        name: Name,
        value: Bytes,
        options: PutOptions,
    ) -> BoxFuture<'_, Result<Version, Error>> {
        Box::pin(async move {
            let request = options.request;
            let value = value_to_put(value, options)?;
            self.run(Operation::Put, name, move |context: Context| async move {
                context.demand(&[Verb::Write])?;
                if request != 0 && context.latest().dap().is_conditional() {
                    match put_once(&context, &value, request).await {
                        // The kinds that may come next know no requests.
                        Err(WriteError::NotApplied(failed)) if failed.is_not_conditional() => {}
                        written => return written.map_err(|error| context.write_error(&error)),
                    }
                }
                let written = context.handle().put(context.name(), &value).await;
                written.map_err(|error| context.write_error(&error))
            })
            .await
        })
    }
}

/// Writes it unless this request has done so. Not applied where the domain has ceased to be conditional.
async fn put_once(context: &Context, value: &Value, request: u128) -> Result<Version, WriteError> {
    let domain = context.handle();
    let wish = Wish {
        request,
        ..domain.client.wish(value, Condition::Always)
    };
    match domain.put_decided(context.name(), wish).await? {
        WriteDecision::Written { tag, .. } => Ok(tag),
        WriteDecision::Conflict(_) => unreachable!("without a condition there is no conflict"),
    }
}

/// The value with its metadata, if that is within the limits.
pub(crate) fn value_to_put(content: Bytes, options: PutOptions) -> Result<Value, Error> {
    check(&options)?;
    let metadata = Metadata {
        content_type: options.content_type,
        user: options.user_metadata,
        checksum: Some(checksum::of(std::slice::from_ref(&content))),
        etag: options.etag,
        written_at_ms: options.written_at_ms.or_else(now_ms),
        blocks: None,
        lost: None,
    };
    Ok(Value::new(metadata.encode()?, content))
}

/// Checks the length of blocks in the options.
///
/// # Errors
/// [`Invalid::BlockBytes`].
pub(super) fn check(options: &PutOptions) -> Result<(), Error> {
    check_block_bytes(options.block_bytes)
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
