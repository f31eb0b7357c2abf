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

/// Windows of 10 s in a row in which a value stood far above the median of its peers. They are counted by time: a row does not depend on how often an instance
/// looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowWindows {
    mean: Ewma,
    judged: Option<JudgedWindow>,
    /// The first window since then that had nothing to judge.
    empty: Option<u64>,
    slow: u32,
}

/// The last window that was judged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JudgedWindow {
    number: u64,
    /// It was slow in each judgement.
    is_slow: bool,
}

impl SlowWindows {
    const WINDOW_MS: u64 = 10_000;
    /// Windows that looks may fail in: a judgement that is older says nothing of the time since.
    const LONGEST_GAP: u64 = 6;

    /// Adds a sample to the mean.
    pub fn add(&mut self, sample: f64) {
        self.mean.add(sample);
    }

    /// The smoothed value of all samples.
    pub fn mean(&self) -> Option<f64> {
        self.mean.value()
    }

    /// Judges the window as of now. Windows since the judgement before are like that one: looks have failed, or are rare.
    pub fn judge(&mut self, is_slow: bool, now_ms: u64) {
        let number = now_ms / SlowWindows::WINDOW_MS;
        let is_known = self.empty.is_none_or(|empty| empty >= number);
        self.empty = None;
        let same = self.judged.filter(|it| it.number == number);
        let is_slow = is_slow && same.is_none_or(|it| it.is_slow);
        if same.is_none() {
            let before = self.judged.filter(|it| it.is_slow && is_known);
            let passed = before.map_or(0, |it| number.saturating_sub(it.number));
            self.slow = match passed {
                1..=SlowWindows::LONGEST_GAP => self.slow + passed as u32,
                _ => 0,
            };
        }
        self.judged = Some(JudgedWindow { number, is_slow });
    }

    /// There is nothing to judge as of now. A window without a judgement ends the row.
    pub fn pass(&mut self, now_ms: u64) {
        let number = now_ms / SlowWindows::WINDOW_MS;
        if self.judged.is_some_and(|it| it.number < number) {
            self.empty.get_or_insert(number);
        }
    }

    /// Slow windows that ended, in a row up to now.
    pub fn slow(&self, now_ms: u64) -> u32 {
        let number = now_ms / SlowWindows::WINDOW_MS;
        let is_old = |it: JudgedWindow| it.number + SlowWindows::LONGEST_GAP < number;
        let is_over = self.empty.is_some_and(|empty| empty < number);
        if is_over || self.judged.is_none_or(is_old) {
            0
        } else {
            self.slow
        }
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
    fn slow_windows_count_by_time_and_in_a_row() {
        for every_ms in [1000, 5000, 9000, 20_000, 30_000] {
            let mut windows = SlowWindows::default();
            for look in 0..=60_000 / every_ms {
                windows.judge(true, look * every_ms);
            }
            let ended = 60_000 / every_ms * every_ms / 10_000;
            assert_eq!(u64::from(windows.slow(60_000)), ended, "{every_ms}");
        }
        let mut windows = SlowWindows::default();
        for second in 0..70 {
            // Looks of half a minute fail.
            if !(20..50).contains(&second) {
                windows.judge(true, second * 1000);
            }
        }
        assert_eq!(windows.slow(69_000), 6);
        assert_eq!(windows.slow(129_000), 6, "looks may fail");
        assert_eq!(windows.slow(130_000), 0, "it is too long ago");
        windows.judge(false, 69_500);
        windows.judge(true, 70_000);
        assert_eq!(windows.slow(70_000), 0, "one judgement was fast");
    }

    #[test]
    fn a_window_without_anything_to_judge_ends_a_row() {
        let mut windows = SlowWindows::default();
        for second in 0..30 {
            // One look of each window has something to judge.
            match second % 10 {
                7 => windows.judge(true, second * 1000),
                _ => windows.pass(second * 1000),
            }
        }
        assert_eq!(windows.slow(29_000), 2);
        windows.pass(30_000);
        assert_eq!(windows.slow(39_000), 2, "it may still be judged");
        assert_eq!(windows.slow(40_000), 0);
        windows.judge(true, 40_000);
        assert_eq!(windows.slow(40_000), 0, "the row begins anew");
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
