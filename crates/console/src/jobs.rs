//! Changes that take longer than a request: they go on when the browser is closed, and pages show how far they are.

use crate::door::Visit;
use crate::trouble::Trouble;
use serde::Serialize;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
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

/// One change, and its progress.
pub(crate) struct Job {
    number: u64,
    title: String,
    command: String,
    /// The key of the session that began it.
    key: Option<String>,
    begun: Instant,
    progress: Mutex<Progress>,
}

/// The progress of a change.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Progress {
    pub(crate) state: JobState,
    /// The step under way; at the end what was reached, or why not.
    pub(crate) sentence: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
    /// Parts of the step, as objects of each server: name, done, total.
    pub(crate) parts: Vec<(String, u64, u64)>,
    /// Findings of the change, a sentence each.
    pub(crate) found: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobState {
    Running,
    Done,
    Failed,
}

/// A change as pages and their JSON show it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobView {
    pub(crate) number: u64,
    pub(crate) title: String,
    /// The command that does it.
    pub(crate) command: String,
    /// Seconds since its begin.
    pub(crate) seconds: u64,
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of the lock panics")
}

impl Job {
    /// Sets the step under way.
    pub(crate) fn step(&self, sentence: impl Into<String>, done: u64, total: u64) {
        let mut progress = locked(&self.progress);
        progress.sentence = sentence.into();
        (progress.done, progress.total) = (done, total);
    }

    /// Sets the parts of the step under way.
    pub(crate) fn parts(&self, parts: Vec<(String, u64, u64)>) {
        locked(&self.progress).parts = parts;
    }

    /// Sets the sentences about what was found.
    pub(crate) fn found(&self, sentences: Vec<String>) {
        locked(&self.progress).found = sentences;
    }

    fn end(&self, ended: Result<String, Trouble>) {
        let mut progress = locked(&self.progress);
        (progress.state, progress.sentence) = match ended {
            Ok(sentence) => (JobState::Done, sentence),
            Err(trouble) => (JobState::Failed, trouble.sentence),
        };
    }

    fn is_running(&self) -> bool {
        locked(&self.progress).state == JobState::Running
    }

    fn view(&self) -> JobView {
        JobView {
            number: self.number,
            title: self.title.clone(),
            command: self.command.clone(),
            seconds: self.begun.elapsed().as_secs(),
            progress: locked(&self.progress).clone(),
        }
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
            let job = Arc::new(Job {
                number: *last,
                title: title.into(),
                command: command.into(),
                key: self.session.key.clone(),
                begun: Instant::now(),
                progress: Mutex::new(Progress {
                    state: JobState::Running,
                    sentence: "begins".into(),
                    done: 0,
                    total: 0,
                    parts: Vec::new(),
                    found: Vec::new(),
                }),
            });
            kept.push_back(Arc::clone(&job));
            if kept.len() > KEPT
                && let Some(oldest) = kept.iter().position(|it| !it.is_running())
            {
                kept.remove(oldest);
            }
            job
        };
        let (number, work) = (job.number, work(Arc::clone(&job)));
        tokio::spawn(async move { job.end(work.await) });
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
        let (tell, told) = oneshot::channel();
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
        match timeout(REFUSED_WITHIN, told).await {
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
