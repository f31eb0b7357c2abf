//! Many deletions in one request.

use super::reply::Reply;
use super::write;
use crate::wire::xml::delete::DeleteFailure;
use crate::wire::{S3Error, xml};
use areo_client::Domain;
use bytes::Bytes;
use tokio::task::JoinSet;

/// Deletions under way at a time.
const WINDOW: usize = 32;

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
    let mut running = JoinSet::new();
    let mut outcomes: Vec<Option<Result<(), S3Error>>> = vec![None; batch.objects.len()];
    for (place, object) in batch.objects.iter().enumerate() {
        if running.len() >= WINDOW {
            ended(&mut running, &mut outcomes).await;
        }
        let (domain, key) = (domain.clone(), object.key.clone());
        let condition = object.condition.clone();
        running.spawn(async move {
            let deleted = write::delete(&domain, &key, condition.as_ref(), request).await;
            (place, deleted)
        });
    }
    while !running.is_empty() {
        ended(&mut running, &mut outcomes).await;
    }
    let (mut deleted, mut failures) = (Vec::new(), Vec::new());
    for (object, outcome) in batch.objects.into_iter().zip(outcomes) {
        let key = object.key;
        match outcome.expect("each has ended") {
            Ok(()) if batch.is_quiet => {}
            Ok(()) => deleted.push(key),
            Err(error) => failures.push(DeleteFailure { key, error }),
        }
    }
    let text = xml::delete::deleted(&deleted, &failures);
    Ok(Reply::document(text))
}

type Ended = (usize, Result<(), S3Error>);

async fn ended(running: &mut JoinSet<Ended>, outcomes: &mut [Option<Result<(), S3Error>>]) {
    if let Some(ended) = running.join_next().await {
        let (place, outcome) = ended.expect("a deletion does not panic");
        outcomes[place] = Some(outcome);
    }
}
