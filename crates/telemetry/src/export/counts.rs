//! The fates of spans that were to be exported.

use opentelemetry_sdk::error::OTelSdkError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Losses are logged this often at most.
const QUIET: Duration = Duration::from_mins(1);

/// Counts of the spans that were to be exported.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ExportCounts {
    /// A collector has them.
    pub delivered: u64,
    /// Too many were waiting.
    pub overflowed: u64,
    /// No collector took them.
    pub refused: u64,
    /// Spans that are queued or being sent.
    pub waiting: u64,
    /// Why the collector did not take them, the last time.
    pub why: Option<String>,
}

impl ExportCounts {
    /// Number of lost spans.
    pub fn lost(&self) -> u64 {
        self.overflowed + self.refused
    }
}

/// The counters behind it.
#[derive(Default, Debug)]
pub(super) struct Counts {
    waiting: AtomicUsize,
    delivered: AtomicU64,
    overflowed: AtomicU64,
    refused: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Default, Debug)]
struct Trouble {
    why: Option<String>,
    logged: Option<Instant>,
}

impl Counts {
    /// Takes a place among those that wait, or counts a loss.
    pub(super) fn admit(&self, queue: usize) -> bool {
        let admitted = self.waiting.fetch_add(1, Ordering::Relaxed) < queue;
        if !admitted {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.overflowed.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// A batch was delivered, or not.
    pub(super) fn ended(&self, spans: usize, error: Option<&OTelSdkError>) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let Some(error) = error else {
            self.delivered.fetch_add(spans as u64, Ordering::Relaxed);
            return;
        };
        self.refused.fetch_add(spans as u64, Ordering::Relaxed);
        let why = match error {
            OTelSdkError::InternalFailure(why) => why.clone(),
            error => error.to_string(),
        };
        let mut trouble = self.trouble.lock().expect("no holder of the lock panics");
        if trouble.logged.is_none_or(|when| when.elapsed() >= QUIET) {
            trouble.logged = Some(Instant::now());
            let lost = self.now().lost();
            tracing::warn!(lost, error = %why, "the collector does not take traces");
        }
        trouble.why = Some(why);
    }

    /// Waiting spans will not be delivered.
    pub(super) fn give_up(&self) {
        let waiting = self.waiting.swap(0, Ordering::Relaxed);
        self.refused.fetch_add(waiting as u64, Ordering::Relaxed);
        let mut trouble = self.trouble.lock().expect("no holder of the lock panics");
        trouble
            .why
            .get_or_insert_with(|| "it does not answer in time".into());
    }

    /// The counts as they stand, without the reason.
    fn now(&self) -> ExportCounts {
        ExportCounts {
            delivered: self.delivered.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed) as u64,
            why: None,
        }
    }

    /// The counts as they stand.
    pub(super) fn exported(&self) -> ExportCounts {
        let trouble = self.trouble.lock().expect("no holder of the lock panics");
        ExportCounts {
            why: trouble.why.clone(),
            ..self.now()
        }
    }
}
