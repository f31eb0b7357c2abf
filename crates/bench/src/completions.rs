//! When operations succeeded: how many in each step of time, and the longest time in which none did.

use std::time::{Duration, Instant};

/// A step.
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// Time without a success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    since: Instant,
    longest: Duration,
}

impl Window {
    /// Nothing is known of the time before.
    pub(crate) fn new(since: Instant) -> Window {
        Window {
            since,
            longest: Duration::ZERO,
        }
    }

    /// An operation succeeded, or nothing is looked at any more.
    pub(crate) fn ends(&mut self, now: Instant) {
        self.longest = self.longest.max(now.saturating_duration_since(self.since));
        self.since = now;
    }

    /// The longest that has ended.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// The longest that has ended so far; from now on another one is looked for. The one that lasts is part of it.
    fn take_longest(&mut self) -> Duration {
        std::mem::take(&mut self.longest)
    }
}

/// Successes over time, with a disturbance in it.
#[derive(Clone, Debug)]
pub(crate) struct Completions {
    begin: Instant,
    steps: Vec<u64>,
    window: Window,
    disturbed: Option<(Instant, Duration)>,
}

/// What they come to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seen {
    /// In each step.
    pub(crate) steps: Vec<u64>,
    /// From the beginning to the disturbance.
    pub(crate) disturbed_after: Duration,
    /// The longest time without a success that ended before it.
    pub(crate) gap_before: Duration,
    /// The longest one that ended later, or did not end.
    pub(crate) gap_after: Duration,
}

impl Completions {
    /// From `begin` on, for `time`.
    pub(crate) fn new(begin: Instant, time: Duration) -> Completions {
        let steps = time.as_nanos().div_ceil(STEP.as_nanos());
        Completions {
            begin,
            steps: vec![0; usize::try_from(steps).expect("a time that can be waited for")],
            window: Window::new(begin),
            disturbed: None,
        }
    }

    /// An operation succeeded. What is too early or too late is not counted.
    pub(crate) fn succeeded(&mut self, now: Instant) {
        let Some(since) = now.checked_duration_since(self.begin) else {
            return;
        };
        let step = (since.as_nanos() / STEP.as_nanos()) as usize;
        if let Some(step) = self.steps.get_mut(step) {
            *step += 1;
            self.window.ends(now);
        }
    }

    /// The disturbance begins.
    pub(crate) fn disturb(&mut self, now: Instant) {
        self.disturbed = Some((now, self.window.take_longest()));
    }

    /// Everything, `end` being when it is over.
    pub(crate) fn seen(mut self, end: Instant) -> Seen {
        self.window.ends(end);
        let longest = self.window.longest();
        let (at, gap_before) = self.disturbed.unwrap_or((end, longest));
        Seen {
            steps: self.steps,
            disturbed_after: at.saturating_duration_since(self.begin),
            gap_before,
            gap_after: longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn seen(at: &[u32], disturbed: u32, time: u32) -> Seen {
        let before = Instant::now();
        let begin = before + MS;
        let mut completions = Completions::new(begin, time * MS);
        completions.succeeded(before);
        let mut at = at.to_vec();
        at.push(disturbed);
        at.sort_unstable();
        for ms in at {
            let now = begin + ms * MS;
            match ms == disturbed {
                true => completions.disturb(now),
                false => completions.succeeded(now),
            }
        }
        completions.seen(begin + time * MS)
    }

    #[test]
    fn successes_are_counted_by_step_and_gaps_by_what_they_are_part_of() {
        let seen = seen(&[1, 9, 10, 25, 63, 65], 50, 70);
        assert_eq!(seen.steps, [2, 1, 1, 0, 0, 0, 2]);
        assert_eq!(seen.disturbed_after, 50 * MS);
        // From 10 to 25; the one from 25 to 63 has the disturbance in it.
        assert_eq!(seen.gap_before, 15 * MS);
        assert_eq!(seen.gap_after, 38 * MS);
    }

    #[test]
    fn a_gap_that_does_not_end_lasts_to_the_end() {
        let seen = seen(&[5, 15, 95, 250], 20, 90);
        assert_eq!(seen.steps, [1, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((seen.gap_before, seen.gap_after), (10 * MS, 75 * MS));
    }
}
