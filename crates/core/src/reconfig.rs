//! Reconfiguration: the sequence of a domain's configurations, and how one is appended to it.
//!
//! | file | what |
//! |---|---|
//! | [`walk`] | going along the sequence: what every operation does |
//! | [`sequence`] | what a client remembers of it; reading and writing pointers |
//! | [`ares`] | appending a configuration: decide, announce (`docs/spec` 3.3, 3.4) |
//! | `finish` | the end of each reconfiguration: transfer, finalize, collect |
//! | [`change`] | what is to be different, and what two changes come to |
//! | [`merged`] | changes of several reconfigurers at once, merged (`docs/spec` `[A-14 merged-changes]`) |
//! | `lattice` | the same in a domain whose configurations are a lattice: Rambo, L-Rambo, SM, SpSn, DynaStore (`docs/spec` 6.3, 6.5, 6.6) |
//! | [`leading`] | the leader of L-Rambo |
//! | `leader_wait` | the wait of the other reconfigurers for it |
//! | [`transfer`] | bringing the state of a domain into a configuration |

pub mod ares;
pub mod change;
mod finish;
mod lattice;
mod leader_wait;
pub mod leading;
pub mod merged;
pub mod sequence;
pub mod transfer;
pub mod walk;

use crate::config::{Configuration, InvalidConfiguration};
use crate::error::{DeciderError, Unavailable};
use crate::span::ErrorType;
use change::Contradiction;
use sequence::Sequences;
use std::sync::Arc;
use std::time::Duration;
use transfer::Progress;

/// A reconfigurer: the world, its knowledge of sequences, and the consensus that decides for it.
pub struct Reconfigurer<'a, E, C> {
    /// The world, as the reconfiguration sees it.
    pub env: &'a E,
    /// The client's knowledge of sequences.
    pub sequences: &'a Sequences,
    /// The consensus on the next configuration.
    pub consensus: &'a C,
    /// Is told what goes on.
    pub progress: &'a dyn Fn(Progress),
    /// The time that it waits for a leader to get on, where one leads (`[R-31 designated-leader]`).
    pub patience: Duration,
}

/// The end of a reconfiguration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReconfigOutcome {
    /// The configuration asked for is final.
    Installed(Arc<Configuration>),
    /// The domain has this configuration already; nothing was done.
    Unchanged(Arc<Configuration>),
    /// The configuration asked for was decided, and others went on from it: this later one is final.
    Superseded(Arc<Configuration>),
}

impl ReconfigOutcome {
    /// The configuration that is final.
    pub fn into_configuration(self) -> Arc<Configuration> {
        match self {
            ReconfigOutcome::Installed(c)
            | ReconfigOutcome::Unchanged(c)
            | ReconfigOutcome::Superseded(c) => c,
        }
    }
}

/// The step at which a reconfiguration is left off, as if its client died there; any client can resume it. For experiments that begin with such a
/// sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaveOff {
    /// The new configuration has the state of its predecessors, and is pending.
    Transferred,
    /// It is final, and only its predecessor was told.
    Finalized,
}

/// A reconfiguration that did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReconfigError {
    /// The domain was removed: nothing comes after its last configuration.
    Removed,
    /// No such configuration can be.
    Invalid(InvalidConfiguration),
    /// Together with the changes of others this one would leave too few servers (`[R-3 never-too-few]`); it is not made. By lattice
    /// agreement it stays proposed: each later change contains it (`[R-26 refused-stays]`).
    TooFew {
        /// The number that would be left.
        members: usize,
        /// The number that there must be.
        least: usize,
    },
    /// Another change came first, and the two contradict each other. This configuration has that one, and nothing of this one is
    /// made (`[A-13 change-after-its-base]`).
    Contradicts(Arc<Configuration>, Contradiction),
    /// Another change came first, and the caller does not want the join of both, which is this configuration. Nothing
    /// of the change is made.
    Unwanted(Arc<Configuration>),
    /// The decided configuration cannot be read by this version.
    Decided(InvalidConfiguration),
    /// No quorum in time, before any server could have heard of it: the domain is as it was.
    NotBegun(Unavailable),
    /// The service outside did not decide. Where it was asked, or where members have the change, it may be made all the same, by the
    /// next reconfigurer.
    Undecided(DeciderError),
    /// No quorum in time. The configuration may be pending: operations go on in both, any client can resume.
    Pending(Unavailable),
}

impl ReconfigError {
    /// Without a quorum on the way along the configurations. `has_begun`: members may have heard of the change.
    fn on_the_way(unavailable: Unavailable, has_begun: bool) -> ReconfigError {
        match has_begun {
            true => ReconfigError::Pending(unavailable),
            false => ReconfigError::NotBegun(unavailable),
        }
    }
}

impl ErrorType for ReconfigError {
    fn error_type(&self) -> &'static str {
        match self {
            ReconfigError::Removed => "removed",
            ReconfigError::Invalid(_) | ReconfigError::Decided(_) => "invalid",
            ReconfigError::TooFew { .. } => "too_few",
            ReconfigError::Contradicts(..) => "conflict",
            ReconfigError::Unwanted(_) => "unwanted",
            ReconfigError::NotBegun(_) => "not_begun",
            ReconfigError::Undecided(_) => "undecided",
            ReconfigError::Pending(_) => "pending",
        }
    }
}
