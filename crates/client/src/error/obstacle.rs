//! What ends an operation at once.

use crate::Version;
use areo_core::error;
use std::fmt;

/// Why an operation was ended before its time: no further answer would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The object has the last version that there can be, which no execution of this software wrote: its number was made up
    /// or damaged before it was stored.
    NumbersUsedUp {
        /// That version.
        largest: Version,
    },
}

impl Obstacle {
    pub(super) fn of(obstacle: &error::Obstacle) -> Obstacle {
        match obstacle {
            error::Obstacle::NumbersUsedUp(used_up) => Obstacle::NumbersUsedUp {
                largest: used_up.largest,
            },
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NumbersUsedUp { largest } => {
                write!(
                    f,
                    "no version can come after {largest}: numbers end at 2^62"
                )
            }
        }
    }
}
