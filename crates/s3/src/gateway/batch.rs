//! Many deletions in one request.

use super::reply::Reply;
use super::{window, write};
use crate::wire::xml::delete::DeleteFailure;
use crate::wire::{S3Error, xml};
use areo_client::Domain;
use bytes::Bytes;

/// Answers a batch of deletions: each succeeds or fails by itself.
///
/// # Errors
/// The document cannot be read.
pub(super) async fn delete(
    domain: &Domain,
    document: &Bytes,
    request: u128,
) -> Result<Reply, S3Error> {
    let batch = xml::delete::read_delete(document)?;
    let objects = batch.objects.clone();
    let outcomes = window::each(objects, |object| {
        let domain = domain.clone();
        async move {
            let condition = object.condition.as_ref();
            Ok(write::delete(&domain, &object.key, condition, request).await)
        }
    });
    let outcomes = outcomes.await?;
    let (mut deleted, mut failures) = (Vec::new(), Vec::new());
    for (object, outcome) in batch.objects.into_iter().zip(outcomes) {
        let key = object.key;
        match outcome {
            Ok(()) if batch.is_quiet => {}
            Ok(()) => deleted.push(key),
            Err(error) => failures.push(DeleteFailure { key, error }),
        }
    }
    let text = xml::delete::deleted(&deleted, &failures);
    Ok(Reply::document(text))
}
