//! The ways in which single samples become a value. Each of these is a small state that samples are added to.

use std::collections::VecDeque;

/// Intervals from which the accrual detector learns.
const INTERVALS: usize = 100;
/// The least deviation that is assumed, in milliseconds: intervals that were alike so far prove nothing.
const LEAST_DEVIATION_MS: f64 = 500.0;

/// An exponentially weighted mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ewma {
    value: Option<f64>,
}

impl Ewma {
    /// The part of the new sample in the mean.
    const WEIGHT: f64 = 0.2;

    /// Adds a sample to the mean.
    pub fn add(&mut self, sample: f64) {
        let before = self.value.unwrap_or(sample);
        self.value = Some(before + Ewma::WEIGHT * (sample - before));
    }

    /// The mean; `None` without a sample.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

/// An accrual detector of failures: how sure is it, by the times between earlier answers, that the next answer does not come any more?
///
/// The suspicion is −log10 of the probability that an answer comes later than now, of intervals that are distributed normally (N. Hayashibara et al., *The φ
/// Accrual Failure Detector*, 2004): 8 is one in 10^8.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhiAccrual {
    intervals: VecDeque<f64>,
    last_ms: Option<u64>,
}

impl PhiAccrual {
    /// Notes that an answer came.
    pub fn add(&mut self, now_ms: u64) {
        if let Some(last_ms) = self.last_ms {
            self.intervals
                .push_back(now_ms.saturating_sub(last_ms) as f64);
            if self.intervals.len() > INTERVALS {
                self.intervals.pop_front();
            }
        }
        self.last_ms = Some(now_ms);
    }

    /// The suspicion as of now; `None` before two answers, which teach the first interval.
    pub fn suspicion(&self, now_ms: u64) -> Option<f64> {
        let last_ms = self.last_ms.filter(|_| !self.intervals.is_empty())?;
        let count = self.intervals.len() as f64;
        let mean = self.intervals.iter().sum::<f64>() / count;
        let squares = self
            .intervals
            .iter()
            .map(|it| (it - mean).powi(2))
            .sum::<f64>();
        let deviation = (squares / count).sqrt().max(LEAST_DEVIATION_MS);
        let silent = now_ms.saturating_sub(last_ms) as f64;
        // The logistic approximation of the normal distribution, in a form that does not vanish for large values.
        let y = (silent - mean) / deviation;
        let exponent = y * (1.5976 + 0.070_566 * y * y);
        let nats = if exponent > 30.0 {
            exponent
        } else {
            exponent.exp().ln_1p()
        };
        Some(nats / std::f64::consts::LN_10)
    }
}

/// Windows of 10 s in a row in which a value stood far above the median of its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowWindows {
    mean: Ewma,
    /// The window that is counted now, and whether it is slow so far.
    window: Option<(u64, bool)>,
    slow: u32,
}

impl SlowWindows {
    const WINDOW_MS: u64 = 10_000;

    /// Adds a sample to the mean.
    pub fn add(&mut self, sample: f64) {
        self.mean.add(sample);
    }

    /// The smoothed value of all samples.
    pub fn mean(&self) -> Option<f64> {
        self.mean.value()
    }

    /// Judges the mean by the value from which it is slow. A window is slow if the mean was in each of its judgements.
    pub fn judge(&mut self, slow_from: f64, now_ms: u64) {
        let is_slow = self.mean.value().is_some_and(|mean| mean >= slow_from);
        let window = now_ms / SlowWindows::WINDOW_MS;
        self.window = match self.window {
            Some((current, slow)) if current == window => Some((current, slow && is_slow)),
            before => {
                // A window without a judgement ends the row.
                let is_next = before.is_some_and(|(last, slow)| slow && last + 1 == window);
                self.slow = if is_next { self.slow + 1 } else { 0 };
                Some((window, is_slow))
            }
        };
    }

    /// Slow windows that ended, in a row up to now; 0 where the window before this one was not judged.
    pub fn slow(&self, now_ms: u64) -> u32 {
        let window = now_ms / SlowWindows::WINDOW_MS;
        let is_of_now = self.window.is_some_and(|(last, _)| last + 1 >= window);
        if is_of_now { self.slow } else { 0 }
    }
}

/// The samples of a time that has just passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recent {
    samples: VecDeque<(u64, f64)>,
}

impl Recent {
    /// Adds a sample, and drops those that are older than `span_ms`, but for one that the span begins with.
    pub fn add(&mut self, value: f64, now_ms: u64, span_ms: u64) {
        self.samples.push_back((now_ms, value));
        let begin = now_ms.saturating_sub(span_ms);
        while self
            .samples
            .get(1)
            .is_some_and(|(at_ms, _)| *at_ms <= begin)
        {
            self.samples.pop_front();
        }
    }

    /// The rise of a counter over the span. A counter that fell began again at 0.
    pub fn rise(&self) -> f64 {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        let rise = |(before, after): (&(u64, f64), &(u64, f64))| match after.1 < before.1 {
            true => after.1,
            false => after.1 - before.1,
        };
        pairs.map(rise).sum()
    }

    /// The change of a level per hour over the span; 0 before an hour has passed.
    pub fn per_hour(&self) -> f64 {
        const HOUR_MS: f64 = 3_600_000.0;
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let hours = last.0.saturating_sub(first.0) as f64 / HOUR_MS;
        if hours < 1.0 {
            0.0
        } else {
            (last.1 - first.1) / hours
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicion_rises_with_silence_and_falls_with_an_answer() {
        let mut detector = PhiAccrual::default();
        assert_eq!(detector.suspicion(1_000_000), None);
        for second in 0..20 {
            detector.add(second * 1000);
        }
        let last = 19_000;
        let after = |ms| detector.suspicion(last + ms).unwrap();
        assert!(after(1000) < 1.0 && after(2500) < 8.0 && after(6000) > 8.0);
        let mut before = 0.0;
        for silent in (0..100_000_000).step_by(999_999) {
            let now = after(silent);
            assert!(now.is_finite() && now >= before, "{silent}: {now}");
            before = now;
        }
        detector.add(last + 6000);
        assert!(detector.suspicion(last + 6500).unwrap() < 1.0);
    }

    #[test]
    fn irregular_answers_are_given_more_time() {
        let (mut even, mut uneven) = (PhiAccrual::default(), PhiAccrual::default());
        for i in 0..50 {
            even.add(i * 2000);
            uneven.add(i * 2000 + (i % 2) * 1800);
        }
        assert!(even.suspicion(105_000).unwrap() > uneven.suspicion(105_000).unwrap());
    }

    #[test]
    fn a_mean_follows_its_samples_slowly() {
        let mut mean = Ewma::default();
        assert_eq!(mean.value(), None);
        mean.add(10.0);
        mean.add(20.0);
        assert_eq!(mean.value(), Some(12.0));
    }

    #[test]
    fn slow_windows_count_in_a_row() {
        let mut windows = SlowWindows::default();
        windows.add(40.0);
        for second in 0..70 {
            windows.judge(40.0, second * 1000);
        }
        assert_eq!(windows.slow(69_000), 6);
        assert_eq!(windows.slow(79_999), 6, "the window may still be judged");
        assert_eq!(windows.slow(80_000), 0, "no window is judged any more");
        windows.judge(44.0, 70_500);
        windows.judge(40.0, 80_000);
        assert_eq!(
            windows.slow(80_000),
            0,
            "one judgement of the window was fast"
        );
        let mut gap = SlowWindows::default();
        gap.add(40.0);
        for at_ms in [0, 10_000, 30_000] {
            gap.judge(40.0, at_ms);
        }
        assert_eq!(gap.slow(30_000), 0, "a window was not judged");
    }

    #[test]
    fn a_counter_rises_over_its_span_and_restarts() {
        let mut recent = Recent::default();
        for (value, at_ms) in [(5.0, 0), (7.0, 10), (1.0, 20), (4.0, 30)] {
            recent.add(value, at_ms, 100);
        }
        assert!((recent.rise() - 6.0).abs() < 1e-9);
        recent.add(4.0, 125, 100);
        assert!(
            (recent.rise() - 3.0).abs() < 1e-9,
            "the first rises are too old"
        );
    }

    #[test]
    fn growth_is_known_after_an_hour() {
        let mut recent = Recent::default();
        recent.add(100.0, 0, 6 * 3_600_000);
        recent.add(200.0, 3_599_999, 6 * 3_600_000);
        assert!(recent.per_hour() == 0.0);
        recent.add(300.0, 7_200_000, 6 * 3_600_000);
        assert!((recent.per_hour() - 100.0).abs() < 1e-9);
    }
}
