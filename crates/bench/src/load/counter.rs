//! Objects that clients count up, and whether they count every increment once.

use crate::error::{RunError, failed};
use crate::target::{CallError, Target};
use bytes::Bytes;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a counter's value.
pub(crate) const SIZE: usize = 16;

/// The value of a counter that stands at `count`.
pub fn value(count: u64) -> Bytes {
    format!("{count:0SIZE$}").into()
}

/// The count of a counter of this value; of one that was never written, 0.
///
/// # Panics
/// It is no value of a counter.
pub fn count(value: Option<&[u8]>) -> u64 {
    let text = value.map(|value| str::from_utf8(value).expect("counters are text"));
    text.map_or(0, |text| text.parse().expect("counters are numbers"))
}

/// The key of a new counter, on which nothing from before can still have an effect.
pub(super) fn new_key() -> String {
    static COUNTERS: AtomicU64 = AtomicU64::new(0);
    let number = COUNTERS.fetch_add(1, Ordering::Relaxed);
    format!("counter-{number:08}")
}

/// Increments of one counter, by how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Increments {
    done: u64,
    unknown: u64,
}

impl Increments {
    /// Counts an increment that begins: as long as it has not ended, it may have an effect.
    pub(super) fn begin(&mut self) {
        self.unknown += 1;
    }

    /// Counts an increment that ended; `done`: no other write has won.
    pub(super) fn end(&mut self, done: Result<bool, &CallError>) {
        match done {
            Ok(done) => {
                self.unknown -= 1;
                self.done += u64::from(done);
            }
            Err(CallError::NotApplied(_) | CallError::NotConditional(_)) => self.unknown -= 1,
            Err(CallError::Unknown(_) | CallError::Unexpected(_)) => {}
        }
    }

    /// The error of a counter that has this count, if there is one.
    pub(crate) fn against(&self, count: u64) -> Option<String> {
        let Increments { done, unknown } = *self;
        if count < done {
            Some(format!("{} of {done} increments are lost", done - count))
        } else if count > done + unknown {
            Some(format!(
                "{done} increments succeeded, and what became of {unknown} is not known"
            ))
        } else {
            None
        }
    }
}

/// The result of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CounterReport {
    /// Increments that succeeded, also before and after the measurement.
    pub done: u64,
    /// Increments of which it is not known whether they had an effect.
    pub unknown: u64,
    /// The count in the end; it began at 0.
    pub count: u64,
}

impl CounterReport {
    /// The result, when all clients have ended.
    ///
    /// # Errors
    /// [`RunError`].
    pub(super) async fn read(
        target: &dyn Target,
        key: &str,
        increments: Increments,
    ) -> Result<CounterReport, RunError> {
        let found = target.caller().await?.get(key).await;
        let (found, _) = found.map_err(failed("read the counter"))?;
        let Increments { done, unknown } = increments;
        Ok(CounterReport {
            done,
            unknown,
            count: count(found.as_deref()),
        })
    }

    /// The error of it, if there is one.
    pub(super) fn wrong(&self) -> Option<String> {
        let (done, unknown) = (self.done, self.unknown);
        Increments { done, unknown }.against(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_increment_and_one_too_many_are_seen() {
        let mut increments = Increments::default();
        let why = || "cut".to_owned();
        let unknown = [CallError::Unknown(why()), CallError::Unexpected(why())];
        let refused = [
            CallError::NotApplied(why()),
            CallError::NotConditional(why()),
        ];
        let ended = [Ok(true); 4].into_iter().chain([Ok(false)]);
        for done in ended.chain(unknown.iter().chain(&refused).map(Err)) {
            increments.begin();
            increments.end(done);
        }
        // Given up.
        increments.begin();
        let wrong = |count| increments.against(count).is_some();
        assert_eq!(
            [3, 4, 5, 7, 8].map(wrong),
            [true, false, false, false, true]
        );
    }
}
