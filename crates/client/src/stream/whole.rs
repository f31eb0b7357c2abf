//! The writing of a value that is in memory: at once, or in blocks that are slices of it.

use super::conflict;
use super::upload::Upload;
use super::value::{check_length, value_to_put};
use crate::domain::Domain;
use crate::error::Error;
use crate::object::PutOptions;
use crate::operation::Operation;
use crate::reconfig_kind::ReconfigKind;
use crate::session::{Context, Deadline};
use areo_core::dsm::conditional::{Condition, Wish, WriteDecision};
use areo_core::element::Value;
use areo_core::error::WriteError;
use areo_core::limits;
use areo_core::object::{InvalidKey, Kind, Name};
use areo_core::tag::Tag as Version;
use areo_trust::grant::Verb;
use bytes::Bytes;
use futures_util::future::BoxFuture;

impl Domain {
    /// Writes a value, which is not copied, at once or in blocks. Records and documents are not in blocks. With a condition the write is not applied where the domain has ceased to be
    /// conditional, also if this handle has not heard of that.
    pub(crate) fn write(
        &self,
        name: Result<Name, InvalidKey>,
        content: Bytes,
        options: PutOptions,
        condition: Option<Condition>,
    ) -> BoxFuture<'_, Result<Version, Error>> {
        Box::pin(async move {
            let name = name?;
            if name.kind() != Kind::User {
                check_length(&content, &options)?;
            }
            let block_bytes = self.block_bytes(&options);
            if content.len() > block_bytes {
                let mut upload = Upload::begin(self, name, &options, condition)?;
                for start in (0..content.len()).step_by(block_bytes) {
                    let end = content.len().min(start + block_bytes);
                    upload.push(content.slice(start..end)).await?;
                }
                return upload.finish(options).await;
            }
            let request = options.request;
            let value = value_to_put(content, options)?;
            if let Some(condition) = condition {
                let wish = (condition, request);
                return self.decide(Operation::WriteIf, Ok(name), value, wish).await;
            }
            let put = move |context| async move { put(&context, &value, request).await };
            self.run(Deadline::Timeout, Operation::Put, name, put).await
        })
    }

    /// Writes a value that is no longer than a block, on a condition, for the request of this name. Not applied where the domain has
    /// ceased to be conditional, also if this handle has not heard of that.
    pub(crate) fn decide(
        &self,
        operation: Operation,
        name: Result<Name, InvalidKey>,
        value: Value,
        (condition, request): (Condition, u128),
    ) -> BoxFuture<'_, Result<Version, Error>> {
        Box::pin(async move {
            let name = name?;
            let key = name.user_key().to_owned();
            let verbs: &[Verb] = match (operation, value.deleted) {
                (Operation::Stat, _) => &[Verb::Write, Verb::Delete],
                (_, true) => &[Verb::Delete],
                (_, false) => &[Verb::Write],
            };
            let write = move |context: Context| async move {
                context.demand(verbs)?;
                let decided = put_decided(&context, &value, condition, request).await;
                decided.map_err(|error| context.write_error(&error))
            };
            let decided = self.run(Deadline::Timeout, operation, name, write).await?;
            match decided {
                WriteDecision::Written { tag, .. } => Ok(tag),
                WriteDecision::Conflict(found) => {
                    Err(conflict(&self.known, &key, condition, found))
                }
            }
        })
    }

    /// The length of each block of a value but the last one. A value that is no longer is written at once.
    pub(super) fn block_bytes(&self, options: &PutOptions) -> usize {
        match self.reconfig_kind() {
            ReconfigKind::Ares => options.block_bytes as usize,
            // Values are not in blocks there: the first one is the whole value.
            ReconfigKind::Rambo
            | ReconfigKind::LRambo
            | ReconfigKind::Sm
            | ReconfigKind::Spsn
            | ReconfigKind::DynaStore => limits::MAX_BLOCK_BYTES as usize,
        }
    }
}

/// Writes the value on no condition.
async fn put(context: &Context, value: &Value, request: u128) -> Result<Version, Error> {
    context.demand(&[Verb::Write])?;
    if request != 0 && context.latest().dap().is_conditional() {
        match put_decided(context, value, Condition::Always, request).await {
            Ok(WriteDecision::Written { tag, .. }) => return Ok(tag),
            Ok(WriteDecision::Conflict(_)) => unreachable!("`Always` holds of every version"),
            // The kinds that may come next know no requests.
            Err(WriteError::NotApplied(failed)) if failed.is_not_conditional() => {}
            Err(error) => return Err(context.write_error(&error)),
        }
    }
    assert_fits(value);
    let written = context.handle().put(context.name(), value).await;
    written.map_err(|error| context.write_error(&error))
}

/// Writes the value on a condition, unless this request has done so. Not applied where the domain has ceased to be conditional.
async fn put_decided(
    context: &Context,
    value: &Value,
    condition: Condition,
    request: u128,
) -> Result<WriteDecision, WriteError> {
    assert_fits(value);
    let domain = context.handle();
    let wish = Wish {
        request,
        ..domain.client.wish(value, condition)
    };
    domain.put_decided(context.name(), wish).await
}

/// States on the network thread what the caller's thread decided by: a longer value is in blocks.
fn assert_fits(value: &Value) {
    let most = u64::from(limits::MAX_BLOCK_BYTES);
    assert!(
        value.length() <= most,
        "a value that is written at once is a block at most"
    );
}
