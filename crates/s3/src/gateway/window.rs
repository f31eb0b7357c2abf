//! Many requests to the store for one request of a caller.

use crate::wire::S3Error;
use std::future::Future;
use tokio::task::JoinSet;

/// Requests under way at a time.
const WINDOW: usize = 32;

/// Runs the work of each item, [`WINDOW`] at a time. The results are in the order of the items.
///
/// # Errors
/// The first error: the rest is dropped.
pub(super) async fn each<T, R, F>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> F + Send,
) -> Result<Vec<R>, S3Error>
where
    R: Send + 'static,
    F: Future<Output = Result<R, S3Error>> + Send + 'static,
{
    let (mut running, mut results) = (JoinSet::new(), Vec::new());
    for (place, item) in items.into_iter().enumerate() {
        if running.len() >= WINDOW {
            ended(&mut running, &mut results).await?;
        }
        results.push(None);
        let work = work(item);
        running.spawn(async move { (place, work.await) });
    }
    while !running.is_empty() {
        ended(&mut running, &mut results).await?;
    }
    let results = results.into_iter();
    Ok(results.map(|it| it.expect("each has ended")).collect())
}

async fn ended<R: 'static>(
    running: &mut JoinSet<(usize, Result<R, S3Error>)>,
    results: &mut [Option<R>],
) -> Result<(), S3Error> {
    if let Some(ended) = running.join_next().await {
        let (place, result) = ended.expect("a request to the store does not panic");
        results[place] = Some(result?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Code;

    #[tokio::test]
    async fn results_are_in_order_and_the_first_error_ends_it() {
        let work = |number: usize| async move {
            for _ in number..100 {
                tokio::task::yield_now().await;
            }
            let error = || S3Error::new(Code::InternalError, "at 70");
            (number != 70).then_some(number).ok_or_else(error)
        };
        assert_eq!(each(0..70, work).await, Ok((0..70).collect()));
        assert_eq!(each(0..0, work).await, Ok(Vec::new()));
        let failed = each(0..100, work).await.unwrap_err();
        assert_eq!(failed.message, "at 70");
    }
}
