//! Removes what a run has made.

use super::Run;
use crate::probe::operation::Ending;
use crate::probe::store::{call, encoded};
use crate::probe::xml;
use http::Method;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

impl Run {
    /// Removes everything that the run has made: uploads, objects below its prefix, and the bucket if it is its own.
    ///
    /// # Errors
    /// A sentence that says what is left.
    pub(in crate::probe) async fn remove(&self) -> Result<(), String> {
        const PAGE: usize = 1_000;
        let left = |what: &str, why: &str| {
            let (bucket, prefix) = (&self.store.bucket, &self.prefix);
            format!(
                "cannot remove {what} of the bucket {bucket} below {prefix}: {why}; remove it by hand"
            )
        };
        if self.is_own_bucket && !self.is_made.load(Ordering::Relaxed) {
            return Ok(());
        }
        let touched: Vec<String> = {
            let keys = self.keys.lock().expect("no holder of the lock panics");
            keys.iter().cloned().collect()
        };
        for key in touched {
            let gone = self.store.delete(0, &key, None, &self.invocation()).await;
            if gone.answer.is_none() {
                return Err(left("objects", &gone.text));
            }
        }
        self.abort_uploads().await;
        for pause in [0, 50, 200, 1_000, 2_000] {
            sleep(Duration::from_millis(pause)).await;
            let listed = self.store.list(0, &self.prefix, None, PAGE).await;
            let listed = match listed {
                Ok(listed) => listed,
                // There is no bucket: it was not created yet, or is gone.
                Err(reply) if reply.ending == Ending::ConditionFailed => return Ok(()),
                Err(reply) => return Err(left("objects", &reply.text)),
            };
            for (key, _) in &listed.entries {
                // A store that lists what it should not must not cost an object of others.
                if key.starts_with(&self.prefix) {
                    self.store.delete(0, key, None, &self.invocation()).await;
                }
            }
            if !listed.entries.is_empty() {
                continue;
            }
            if !self.is_own_bucket {
                return Ok(());
            }
            let removed = self.store.send(0, call(Method::DELETE, "", ""), None).await;
            match removed.ending {
                Ending::Done => return Ok(()),
                // An object that was on its way, or that is not listed yet.
                Ending::Conflict | Ending::Unknown => {}
                _ => return Err(left("the rest", &removed.text)),
            }
        }
        Err(left("objects", "they do not go"))
    }

    async fn abort_uploads(&self) {
        let query = format!("?uploads&prefix={}", self.prefix.replace('/', "%2F"));
        let reply = self
            .store
            .send(0, call(Method::GET, &query, ""), None)
            .await;
        let Some(answer) = reply.answer else { return };
        let leaves = xml::leaves(&answer.body);
        let id = "ListMultipartUploadsResult/Upload/UploadId";
        let key = "ListMultipartUploadsResult/Upload/Key";
        for (id, key) in xml::pairs(&leaves, id, key) {
            if key.starts_with(&self.prefix) {
                let abort = call(Method::DELETE, &format!("?uploadId={}", encoded(&id)), "");
                self.store.send(0, abort, Some(&key)).await;
            }
        }
    }
}
