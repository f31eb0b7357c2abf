//! Changes that take longer than a request: they go on when the browser is closed, and pages show how far they are.

use crate::door::Visit;
use crate::job::{Job, JobView};
use crate::locked;
use crate::trouble::Trouble;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Changes that are kept, the oldest finished ones make room.
const KEPT: usize = 64;
/// Changes that one console carries out at a time.
const RUNNING: usize = 8;
/// The time for which a request waits for a refusal of its change.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);

/// All changes since the start of the process.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<(u64, VecDeque<Arc<Job>>)>);

impl Visit {
    /// Begins a change, which goes on after the request. `work` returns the sentence that says what was reached.
    ///
    /// # Errors
    /// Too many are under way.
    pub(crate) fn begin<F>(
        &self,
        title: impl Into<String>,
        command: impl Into<String>,
        work: impl FnOnce(Arc<Job>) -> F,
    ) -> Result<u64, Trouble>
    where
        F: Future<Output = Result<String, Trouble>> + Send + 'static,
    {
        let jobs = &self.console.0.jobs;
        let job = {
            let mut guard = locked(&jobs.0);
            let (last, kept) = &mut *guard;
            if kept.iter().filter(|it| it.is_running()).count() >= RUNNING {
                return Err(Trouble::usage(format!(
                    "{RUNNING} changes are under way in this console: wait for one"
                )));
            }
            *last += 1;
            let key = self.session.key.clone();
            let job = Arc::new(Job::new(*last, title.into(), command.into(), key));
            kept.push_back(Arc::clone(&job));
            if kept.len() > KEPT
                && let Some(oldest) = kept.iter().position(|it| !it.is_running())
            {
                kept.remove(oldest);
            }
            job
        };
        let (number, working) = (job.number, tokio::spawn(work(Arc::clone(&job))));
        tokio::spawn(async move {
            job.end(match working.await {
                Ok(ended) => ended.map_err(|trouble| trouble.sentence),
                // It would hold a place for ever.
                Err(_) => {
                    Err("the console has failed in it: the log of the console says where".into())
                }
            });
        });
        Ok(number)
    }

    /// Begins a change as [`Visit::begin`] does. One that the servers refuse at once is refused by the answer of the request, too.
    ///
    /// # Errors
    /// Too many are under way, or this one has failed already.
    pub(crate) async fn begin_unless_refused<F>(
        &self,
        title: impl Into<String>,
        command: impl Into<String>,
        work: impl FnOnce(Arc<Job>) -> F,
    ) -> Result<u64, Trouble>
    where
        F: Future<Output = Result<String, Trouble>> + Send + 'static,
    {
        let (tell, refusal) = oneshot::channel();
        let number = self.begin(title, command, |job| {
            let working = work(job);
            async move {
                let ended = working.await;
                if let Err(trouble) = &ended {
                    // The request has been answered where none listens.
                    let _ = tell.send(Trouble::new(trouble.status, &trouble.sentence));
                }
                ended
            }
        })?;
        match timeout(REFUSED_WITHIN, refusal).await {
            Ok(Ok(trouble)) => Err(trouble),
            Ok(Err(_)) | Err(_) => Ok(number),
        }
    }

    /// The changes that sessions of this key began, the newest first.
    pub(crate) fn jobs(&self) -> Vec<JobView> {
        let jobs = locked(&self.console.0.jobs.0);
        let of_key = jobs.1.iter().rev().filter(|it| it.key == self.session.key);
        of_key.map(|it| it.view()).collect()
    }
}
