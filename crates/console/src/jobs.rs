//! Changes that take longer than a request: they go on when the browser is closed, and pages show how far they are.

use crate::command::Command;
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

/// Changes of one key that are kept: the oldest finished one makes room.
const KEPT: usize = 64;
/// Changes of one key that are carried out at a time.
const RUNNING: usize = 8;
/// The time for which a request waits for a refusal of its change.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);

/// All changes since the start of the process, the newest last.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The number of the newest one.
    last: u64,
    jobs: VecDeque<Arc<Job>>,
}

impl Jobs {
    /// A new change of this key.
    ///
    /// # Errors
    /// Too many of this key are under way.
    fn begin(
        &self,
        title: String,
        command: &Command,
        key: Option<&str>,
    ) -> Result<Arc<Job>, Trouble> {
        let mut kept = locked(&self.0);
        let is_of_key = |it: &Arc<Job>| it.key.as_deref() == key;
        let of_key = kept.jobs.iter().filter(|it| is_of_key(it));
        let (all, running) = of_key.fold((0, 0), |(all, running), it| {
            (all + 1, running + usize::from(it.is_running()))
        });
        if running >= RUNNING {
            return Err(Trouble::usage(format!(
                "{RUNNING} changes of this key are under way in this console: wait for one"
            )));
        }
        if all >= KEPT
            && let Some(oldest) = kept
                .jobs
                .iter()
                .position(|it| is_of_key(it) && !it.is_running())
        {
            kept.jobs.remove(oldest);
        }
        kept.last += 1;
        let key = key.map(str::to_owned);
        let job = Arc::new(Job::new(kept.last, title, command.to_string(), key));
        kept.jobs.push_back(Arc::clone(&job));
        Ok(job)
    }

    /// The changes of this key, the newest first.
    fn of_key(&self, key: Option<&str>) -> Vec<JobView> {
        let kept = locked(&self.0);
        let of_key = kept.jobs.iter().rev().filter(|it| it.key.as_deref() == key);
        of_key.map(|it| it.view()).collect()
    }
}

impl Visit {
    /// Begins a change, which goes on after the request. `work` returns the sentence that says what was reached.
    ///
    /// # Errors
    /// Too many are under way.
    pub(crate) fn begin<F>(
        &self,
        title: impl Into<String>,
        command: &Command,
        work: impl FnOnce(Arc<Job>) -> F,
    ) -> Result<u64, Trouble>
    where
        F: Future<Output = Result<String, Trouble>> + Send + 'static,
    {
        let (jobs, key) = (&self.console.0.jobs, self.session.key.as_deref());
        let job = jobs.begin(title.into(), command, key)?;
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
        command: &Command,
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
        self.console.0.jobs.of_key(self.session.key.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_takes_no_place_of_another() {
        let jobs = Jobs::default();
        let begin = |key| jobs.begin("a change".into(), &Command::new("status"), key);
        let of_one: Vec<_> = (0..RUNNING).map(|_| begin(Some("one")).unwrap()).collect();
        let full = begin(Some("one")).err().expect("too many of one key");
        assert!(full.sentence.contains("of this key"), "{}", full.sentence);
        begin(None).expect("the console's own");
        of_one[0].end(Ok("done".into()));
        begin(Some("one")).expect("one has ended");
        for _ in 0..KEPT * 2 {
            begin(Some("other")).unwrap().end(Ok("done".into()));
        }
        assert_eq!(jobs.of_key(Some("other")).len(), KEPT);
        assert_eq!(jobs.of_key(Some("one")).len(), RUNNING + 1);
        assert_eq!(jobs.of_key(None).len(), 1);
    }
}
