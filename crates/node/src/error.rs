//! Why a node cannot go on.

use std::{error, fmt};

use areo_store::{CommitError, ReserveError, StepError};

/// Why a node cannot go on. Nothing that may not be durable is ever shown, so its process ends (`[X-10 durable-replies]`).
#[derive(Debug)]
pub enum NodeError {
    /// A batch could not be made durable: acknowledged records are safe, records in memory may not be.
    Commit(CommitError),
    /// A step of housekeeping failed.
    Step(StepError),
    /// Room cannot be made, for another reason than that there is none.
    Reserve(ReserveError),
    /// The store was broken before it was asked for more.
    Broken {
        /// The first failure, as a sentence with the error of the system.
        first: String,
    },
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Commit(error) => error.fmt(f),
            NodeError::Step(error) => error.fmt(f),
            NodeError::Reserve(error) => error.fmt(f),
            NodeError::Broken { first } => f.write_str(first),
        }
    }
}

impl error::Error for NodeError {}

impl NodeError {
    /// It says no more than that something failed before.
    pub(crate) fn is_poisoned(&self) -> bool {
        matches!(
            self,
            NodeError::Commit(CommitError::Poisoned)
                | NodeError::Step(StepError::Poisoned)
                | NodeError::Reserve(ReserveError::Poisoned)
        )
    }
}
