//! The probability that a server is lost within 14 days: a logistic model of signals of the last day.
//!
//! The weights stand in `prediction.toml`. `areo-lab predict --weights` makes them of drawn histories.

use crate::records::ServerRecord;
use serde::{Deserialize, Serialize};

/// The built-in weights, as a file has them.
pub const BUILT_IN: &str = include_str!("../prediction.toml");

/// The signals that the model weighs, in their order.
pub const SIGNALS: [&str; 8] = [
    "corrupted",
    "io_errors",
    "slow_sync_windows",
    "restarts",
    "growth",
    "smart_rises",
    "smart_critical",
    "wear",
];

/// The signals of a server as numbers of a like size. What is not known is 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Features(pub [f64; SIGNALS.len()]);

/// A logistic model: a bias and a weight for each signal.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The logit of a server without any signal.
    pub bias: f64,
    /// The rise of the logit for each signal.
    pub weights: [f64; SIGNALS.len()],
}

impl From<&ServerRecord> for Features {
    /// The first ones of a count say the most: counts are taken by their logarithm.
    fn from(server: &ServerRecord) -> Features {
        let smart = server.smart.unwrap_or_default();
        let growth = server.growth_bytes_per_hour.max(0.0) * 24.0;
        let capacity = server.capacity_bytes as f64;
        Features([
            (server.corrupted as f64).ln_1p(),
            (server.io_errors as f64).ln_1p(),
            f64::from(server.slow_sync_windows).ln_1p(),
            (server.restarts as f64).ln_1p(),
            // The part of the disk that a day fills.
            if capacity > 0.0 {
                (growth / capacity).min(1.0)
            } else {
                0.0
            },
            f64::from(smart.rises).ln_1p(),
            f64::from(u8::from(smart.is_critical)),
            f64::from(smart.wear_percent) / 100.0,
        ])
    }
}

impl Model {
    /// The model of `prediction.toml`.
    pub fn built_in() -> Model {
        toml::from_str(BUILT_IN).expect("the built-in weights are tested")
    }

    /// The probability of a loss within 14 days.
    pub fn probability(&self, features: &Features) -> f64 {
        let weighed = self.weights.iter().zip(&features.0);
        let logit = self.bias + weighed.map(|(weight, it)| weight * it).sum::<f64>();
        1.0 / (1.0 + (-logit).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Smart;

    #[test]
    fn what_a_disk_shows_raises_the_probability() {
        let model = Model::built_in();
        let of = |server: &ServerRecord| model.probability(&Features::from(server));
        let sound = ServerRecord::default();
        assert!(of(&sound) < 0.1, "{}", of(&sound));
        let smart = |rises, is_critical, wear_percent| {
            Some(Smart {
                rises,
                is_critical,
                wear_percent,
            })
        };
        let signs = [
            ServerRecord {
                corrupted: 2,
                ..sound.clone()
            },
            ServerRecord {
                io_errors: 1,
                ..sound.clone()
            },
            ServerRecord {
                slow_sync_windows: 6,
                ..sound.clone()
            },
            ServerRecord {
                restarts: 2,
                ..sound.clone()
            },
            ServerRecord {
                smart: smart(1, false, 0),
                ..sound.clone()
            },
            ServerRecord {
                smart: smart(0, true, 0),
                ..sound.clone()
            },
            ServerRecord {
                smart: smart(0, false, 90),
                ..sound.clone()
            },
        ];
        for sign in signs {
            assert!(of(&sign) > of(&sound), "{sign:?}");
        }
    }
}
