//! The draw of the object of an operation.

use crate::random::Random;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The distribution by which objects are wanted.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Popularity {
    /// All of them equally.
    #[default]
    Uniform,
    /// All of them in turn, by each client.
    InTurn,
    /// The one of rank r by r to the power of minus this, which is above 0 and not 1: few of them most of the time.
    Zipf(f64),
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => f.write_str("uniform"),
            Popularity::InTurn => f.write_str("in-turn"),
            Popularity::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Popularity, String> {
        let wrong = || {
            format!(
                "'{text}' is no popularity of objects: there are uniform, in-turn, zipf and zipf:0.99"
            )
        };
        match text.split_once(':') {
            None if text == "uniform" => Ok(Popularity::Uniform),
            None if text == "in-turn" => Ok(Popularity::InTurn),
            None if text == "zipf" => Ok(Popularity::Zipf(0.99)),
            Some(("zipf", exponent)) => match exponent.parse::<f64>() {
                Ok(exponent)
                    if 0.0 < exponent && exponent < 10.0 && (exponent - 1.0).abs() > 1e-6 =>
                {
                    Ok(Popularity::Zipf(exponent))
                }
                _ => Err(format!(
                    "the exponent of zipf is above 0, below 10 and not 1, not '{exponent}'"
                )),
            },
            _ => Err(wrong()),
        }
    }
}

/// Draws the objects of operations.
pub(super) struct Keys {
    popularity: Popularity,
    first: u64,
    objects: u64,
    drawn: u64,
}

impl Keys {
    /// Keys of this count of objects, from this number on.
    pub(super) fn new(popularity: Popularity, (first, objects): (u64, u64)) -> Keys {
        Keys {
            popularity,
            first,
            objects,
            drawn: 0,
        }
    }

    /// The count of objects.
    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    /// The number of the next object.
    pub(super) fn next(&mut self, random: &mut Random) -> u64 {
        self.drawn += 1;
        self.first
            + match self.popularity {
                Popularity::Uniform => random.below(self.objects),
                Popularity::InTurn => (self.drawn - 1) % self.objects,
                Popularity::Zipf(exponent) => self.ranked(exponent, random) - 1,
            }
    }

    /// A rank from 1, by rejection from the continuous distribution that lies above (W. Hörmann and G. Derflinger, 1996).
    fn ranked(&self, exponent: f64, random: &mut Random) -> u64 {
        let integral = |x: f64| (x.powf(1.0 - exponent) - 1.0) / (1.0 - exponent);
        let inverse = |y: f64| (1.0 + y * (1.0 - exponent)).powf(1.0 / (1.0 - exponent));
        let (from, to) = (integral(1.5) - 1.0, integral(self.objects as f64 + 0.5));
        loop {
            let drawn = random.next() as f64 / u64::MAX as f64;
            let y = from + drawn * (to - from);
            let rank = inverse(y).round().clamp(1.0, self.objects as f64);
            if y >= integral(rank + 0.5) - rank.powf(-exponent) {
                #[allow(clippy::cast_sign_loss, reason = "from 1 on")]
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(popularity: Popularity) -> Vec<u64> {
        let (mut keys, mut random) = (Keys::new(popularity, (1_000, 100)), Random::new(7));
        let mut counts = vec![0; 100];
        for _ in 0..100_000 {
            counts[keys.next(&mut random) as usize - 1_000] += 1;
        }
        counts
    }

    #[test]
    fn uniform_objects_are_drawn_equally_often() {
        let counts = drawn(Popularity::Uniform);
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn objects_in_turn_are_drawn_one_after_the_other() {
        let (mut keys, mut random) = (Keys::new(Popularity::InTurn, (7, 3)), Random::new(7));
        let drawn: Vec<u64> = (0..5).map(|_| keys.next(&mut random)).collect();
        assert_eq!(drawn, [7, 8, 9, 7, 8]);
    }

    #[test]
    fn ranked_objects_are_drawn_by_their_rank() {
        for exponent in [0.5, 0.99, 2.0] {
            let counts = drawn(Popularity::Zipf(exponent));
            let all: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1_u32, 2, 5, 20] {
                let expected = 100_000.0 * f64::from(rank).powf(-exponent) / all;
                let found = counts[rank as usize - 1] as f64;
                let tolerance = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (found - expected).abs() < tolerance,
                    "{exponent} {rank}: {found}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn popularities_are_read_as_they_are_shown() {
        for popularity in [
            Popularity::Uniform,
            Popularity::InTurn,
            Popularity::Zipf(0.5),
        ] {
            assert_eq!(popularity.to_string().parse(), Ok(popularity));
        }
        assert_eq!("zipf".parse(), Ok(Popularity::Zipf(0.99)));
        for wrong in ["zipf:1", "zipf:-1", "zipf:x", "zipf:NaN", "normal", ""] {
            assert!(wrong.parse::<Popularity>().is_err(), "{wrong}");
        }
    }
}
