//! A change that takes longer than a request, and how far it is.

use crate::locked;
use serde::Serialize;
use std::sync::Mutex;
use std::time::Instant;

/// One change, and its progress.
pub(crate) struct Job {
    pub(crate) number: u64,
    title: String,
    command: String,
    /// The key of the session that began it.
    pub(crate) key: Option<String>,
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
    /// Parts of the step, as the objects of each server.
    pub(crate) parts: Vec<Part>,
    /// Findings of the change, a sentence each.
    pub(crate) found: Vec<String>,
}

/// A part of a step, such as a server that gets objects.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
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

impl Job {
    /// A change that begins now.
    pub(crate) fn new(number: u64, title: String, command: String, key: Option<String>) -> Job {
        let progress = Progress {
            state: JobState::Running,
            sentence: "begins".into(),
            done: 0,
            total: 0,
            parts: Vec::new(),
            found: Vec::new(),
        };
        Job {
            number,
            title,
            command,
            key,
            begun: Instant::now(),
            progress: Mutex::new(progress),
        }
    }

    /// Sets the step under way.
    pub(crate) fn step(&self, sentence: impl Into<String>, done: u64, total: u64) {
        let mut progress = locked(&self.progress);
        progress.sentence = sentence.into();
        (progress.done, progress.total) = (done, total);
    }

    /// Sets the parts of the step under way.
    pub(crate) fn parts(&self, parts: Vec<Part>) {
        locked(&self.progress).parts = parts;
    }

    /// Sets the sentences about what was found.
    pub(crate) fn found(&self, sentences: Vec<String>) {
        locked(&self.progress).found = sentences;
    }

    /// Ends it with the sentence that says what was reached, or why not.
    pub(crate) fn end(&self, ended: Result<String, String>) {
        let mut progress = locked(&self.progress);
        (progress.state, progress.sentence) = match ended {
            Ok(sentence) => (JobState::Done, sentence),
            Err(sentence) => (JobState::Failed, sentence),
        };
    }

    pub(crate) fn is_running(&self) -> bool {
        locked(&self.progress).state == JobState::Running
    }

    pub(crate) fn view(&self) -> JobView {
        JobView {
            number: self.number,
            title: self.title.clone(),
            command: self.command.clone(),
            seconds: self.begun.elapsed().as_secs(),
            progress: locked(&self.progress).clone(),
        }
    }
}
