//! Medians, and ratios of them.

use serde::Serialize;

/// What several runs showed of one thing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The middle one; of an even number the lower one of the two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(super) fn of(values: &[f64]) -> Option<Spread> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Some(Spread {
            median: *values.get(values.len().checked_sub(1)? / 2)?,
            min: *values.first()?,
            max: *values.last()?,
        })
    }

    /// Of the ratios, run by run: runs of what is compared follow each other closely, and see the same machine.
    pub(super) fn of_ratios(above: &[f64], below: &[f64]) -> Option<Spread> {
        let ratio = |(above, below): (&f64, &f64)| above / below;
        let ratios: Vec<f64> = above.iter().zip(below).map(ratio).collect();
        Spread::of(&ratios)
    }
}

/// A figure, short enough for a table.
pub fn short(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The mean; `None` of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_both_ends() {
        let of = |values: &[f64]| Spread::of(values).map(|s| (s.median, s.min, s.max));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some((2.0, 1.0, 4.0)));
        assert_eq!(of(&[7.0]), Some((7.0, 7.0, 7.0)));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn ratios_are_those_of_the_same_run() {
        let ratio = Spread::of_ratios(&[1.0, 10.0, 4.0], &[2.0, 10.0, 1.0]).unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (1.0, 0.5, 4.0));
        assert_eq!(Spread::of_ratios(&[], &[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
    }
}
