//! One object that all clients of a load count up, and whether it counts every increment once.

use super::LoadError;
use crate::target::{Cost, IncrementError, Target};
use crate::workload::Increments;
use bytes::Bytes;
use serde::Serialize;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a counter's value.
pub(crate) const SIZE: usize = 16;

/// The value of a counter that stands at `count`.
pub fn value(count: u64) -> Bytes {
    format!("{count:0SIZE$}").into()
}

/// What a counter of this value stands at; of one that was never written, 0.
///
/// # Panics
/// It is no value of a counter.
pub fn count(value: Option<&[u8]>) -> u64 {
    let text = value.map(|value| str::from_utf8(value).expect("counters are text"));
    text.map_or(0, |text| text.parse().expect("counters are numbers"))
}

/// The counter of one measurement: a new object, on which nothing from before can still have an effect.
pub(super) struct Counter {
    key: String,
    increments: Cell<Increments>,
}

/// What a counter came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CounterReport {
    /// Increments that succeeded, also before and after what was measured.
    pub done: u64,
    /// Increments of which it is not known whether they had an effect.
    pub unknown: u64,
    /// What the counter stood at in the end; it began at 0.
    pub count: u64,
}

impl CounterReport {
    /// What is wrong with it, if anything is.
    pub(super) fn wrong(&self) -> Option<String> {
        let (done, unknown) = (self.done, self.unknown);
        Increments { done, unknown }.against(self.count)
    }
}

impl Counter {
    pub(super) fn new() -> Counter {
        static COUNTERS: AtomicU64 = AtomicU64::new(0);
        let number = COUNTERS.fetch_add(1, Ordering::Relaxed);
        Counter {
            key: format!("counter-{number:08}"),
            increments: Cell::default(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// An increment ended.
    pub(super) fn ended(&self, ended: &Result<Cost, IncrementError>) {
        let mut increments = self.increments.get();
        match ended {
            Ok(_) => increments.done += 1,
            Err(IncrementError::Unknown(_)) => increments.unknown += 1,
            Err(IncrementError::NotApplied(_)) => {}
        }
        self.increments.set(increments);
    }

    /// What it came to, when all clients have ended.
    ///
    /// # Errors
    /// [`LoadError::Connect`], [`LoadError::Count`].
    pub(super) async fn report(&self, target: &dyn Target) -> Result<CounterReport, LoadError> {
        let caller = target.caller().await;
        let mut caller = caller.map_err(|source| LoadError::Connect { source })?;
        let found = caller.get(&self.key).await;
        let (found, _) = found.map_err(|error| LoadError::Count { error })?;
        let Increments { done, unknown } = self.increments.get();
        Ok(CounterReport {
            done,
            unknown,
            count: count(found.as_deref()),
        })
    }
}
