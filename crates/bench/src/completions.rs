//! The successful operations of each step of time.

use std::time::{Duration, Instant};

/// Length of a step.
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// Successes, step by step of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// `None`: nothing is counted.
    begin: Option<Instant>,
    counts: Vec<u64>,
}

impl Steps {
    /// Steps from `begin` on.
    pub(crate) fn from(begin: Instant) -> Steps {
        let counts = Vec::new();
        Steps {
            begin: Some(begin),
            counts,
        }
    }

    /// Counts a success at this time.
    pub(crate) fn succeeded(&mut self, now: Instant) {
        let Some(step) = self.step(now) else {
            return;
        };
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
    }

    fn step(&self, at: Instant) -> Option<usize> {
        let since = at.checked_duration_since(self.begin?)?;
        Some((since.as_nanos() / STEP.as_nanos()) as usize)
    }

    /// The number of completions in each step that began before `end`.
    pub(crate) fn counts(mut self, end: Instant) -> Vec<u64> {
        let since = self
            .begin
            .map_or(Duration::ZERO, |begin| end.saturating_duration_since(begin));
        let steps = since.as_nanos().div_ceil(STEP.as_nanos());
        let steps = usize::try_from(steps).expect("a time that was waited for");
        self.counts.resize(steps, 0);
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successes_are_counted_by_step() {
        let ms = |ms: u64| Duration::from_millis(ms);
        let before = Instant::now();
        let begin = before + ms(1);
        let mut steps = Steps::from(begin);
        steps.succeeded(before);
        for at in [1, 9, 10, 25, 63, 65, 250] {
            steps.succeeded(begin + ms(at));
        }
        assert_eq!(steps.clone().counts(begin + ms(70)), [2, 1, 1, 0, 0, 0, 2]);
        assert_eq!(steps.counts(begin + ms(81)).len(), 9);
        assert!(Steps::default().counts(begin).is_empty());
    }
}
