//! Requests that are sent again, and uploads that are completed at once or twice.

use super::{Case, Remarks, read_everywhere, together};
use crate::probe::Verdict;
use crate::probe::operation::{Condition, Ending};
use crate::probe::run::{Client, Run};
use crate::probe::store::Upload;
use std::collections::HashMap;
use std::sync::Arc;

/// A create and a replacement are sent again, before and after a later write.
pub(super) async fn retry(run: &Arc<Run>) -> Remarks {
    let key = run.key(Case::Retry.name());
    let at = |number: usize| run.clients(number + 1)[number];
    let absent = Condition::Absent;
    let id = run.invocation();
    let first = run.put_as(at(0), &key, absent.clone(), &id).await;
    if !first.is_done() {
        return Remarks::default();
    }
    let again = (first.value.as_str(), &absent);
    let created = run.put_again(at(1), &key, again, &id).await;
    let base = Condition::Match(first.value.clone());
    let replacing = run.invocation();
    let second = run.put_as(at(0), &key, base.clone(), &replacing).await;
    let mut replaced = Ending::Done;
    if second.is_done() {
        let again = (second.value.as_str(), &base);
        replaced = run.put_again(at(1), &key, again, &replacing).await;
        // The object has gone on since: the first request must not bring its value back.
        let again = (first.value.as_str(), &absent);
        run.put_again(at(0), &key, again, &id).await;
    }
    read_everywhere(run, &key).await;
    let is_refused = |ending| matches!(ending, Ending::ConditionFailed | Ending::Conflict);
    let verdict = (is_refused(created) || is_refused(replaced)).then(|| {
        let sentence = "a request that was applied and is sent again is refused: a client that lost the answer reads and compares before it writes again";
        (Verdict::NotOffered, sentence.to_owned())
    });
    Remarks {
        verdict,
        ..Remarks::default()
    }
}

/// Several uploads of one key are completed at once if it is absent; then one upload is completed, replaced, and completed again.
pub(super) async fn completion(run: &Arc<Run>, writers: usize) -> Remarks {
    let key = run.key(Case::Completion.name());
    let mut uploads: HashMap<usize, Arc<(String, Upload)>> = HashMap::new();
    for client in run.clients(writers) {
        if let Ok(upload) = run.upload(client, &key).await {
            uploads.insert(client.number, Arc::new(upload));
        }
    }
    let complete = |run: &Arc<Run>, client: Client| {
        let (run, key) = (run.clone(), key.clone());
        let upload = uploads.get(&client.number).cloned();
        async move {
            if let Some(upload) = upload {
                let (value, upload) = &*upload;
                let absent = Condition::Absent;
                run.complete(client, &key, (value, upload), absent, true)
                    .await;
            }
        }
    };
    together(run, writers, complete).await;
    read_everywhere(run, &key).await;
    for client in run.clients(run.endpoints()) {
        let key = run.key(Case::Completion.name());
        let Ok((value, upload)) = run.upload(client, &key).await else {
            continue;
        };
        let upload = (value.as_str(), &upload);
        run.complete(client, &key, upload, Condition::None, true)
            .await;
        run.put(client, &key, Condition::None).await;
        // 404 and 200 are both in order: the object is that of the later write.
        run.complete(client, &key, upload, Condition::None, false)
            .await;
        read_everywhere(run, &key).await;
    }
    Remarks::default()
}
