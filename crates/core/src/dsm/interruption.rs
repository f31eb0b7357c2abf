//! Why an operation on an object that is no register ends before its time: the domain becomes conditional under its hands
//! (`[W-12 becoming-conditional]`).
//!
//! An operation that began in `abd` or `ec` asks and puts as these kinds do, until it comes to a configuration in which the object is
//! a ranked register. There it goes on as a proposer ([`super::conditional`]), which begins again where the domain is known to be
//! final. The walk has made the pointer known to a quorum of each configuration that it left, so that the proposer comes there, too.

use super::{Domain, pause};
use crate::env::Env;
use crate::error::{CallError, Unavailable, WriteError};
use crate::gather::Visit;
use crate::reconfig::walk::Step;
use crate::span::ErrorType;
use crate::tag::Tag;

/// What a trace shows of a phase that ended so.
const RANKED: &str = "ranked";

/// Why an operation ends before its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Interruption {
    /// No quorum in time.
    Unavailable(Unavailable),
    /// The object is a ranked register in a configuration on the way.
    Ranked,
}

impl ErrorType for Interruption {
    fn error_type(&self) -> &'static str {
        match self {
            Interruption::Unavailable(unavailable) => unavailable.error_type(),
            Interruption::Ranked => RANKED,
        }
    }
}

impl ErrorType for PutInterruption {
    fn error_type(&self) -> &'static str {
        match self {
            PutInterruption::Failed(error) => error.error_type(),
            PutInterruption::Ranked { .. } => RANKED,
        }
    }
}

impl From<Unavailable> for Interruption {
    fn from(unavailable: Unavailable) -> Interruption {
        Interruption::Unavailable(unavailable)
    }
}

/// Why the second phase of a write ends before its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PutInterruption {
    /// It was not acknowledged.
    Failed(WriteError),
    /// As [`Interruption::Ranked`].
    Ranked {
        /// The version, if it was handed to a connection: it may be current where the domain was no conditional one yet.
        put: Option<Tag>,
    },
}

impl PutInterruption {
    /// The same as the first phase ended, in which nothing is sent.
    pub(super) fn from_first_phase(ended: Interruption) -> PutInterruption {
        match ended {
            Interruption::Unavailable(failed) => {
                PutInterruption::Failed(WriteError::NotApplied(failed))
            }
            Interruption::Ranked => PutInterruption::Ranked { put: None },
        }
    }
}

/// How a visit ends that had something to ask only of an object that is no register.
pub(super) enum Detour<B> {
    /// As the operation wants.
    Ended(B),
    /// As [`Interruption::Ranked`].
    Ranked,
}

/// A step of making room, within a visit: where the object is a register it ends.
pub(super) fn within<T>(made: Result<T, Interruption>) -> Result<Option<T>, CallError> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Interruption::Ranked) => Ok(None),
        Err(Interruption::Unavailable(unavailable)) => Err(unavailable.into()),
    }
}

impl<E: Env> Domain<E> {
    /// After a put that a member takes in no more: on to what comes next, which it has shown.
    pub(super) async fn leave<B>(&self, at: &Visit) -> Step<B> {
        assert!(!at.c().dap().is_conditional(), "registers take no puts");
        if at.is_last() {
            // It has not, so that it is out of order: another quorum may do without it.
            pause(&self.client).await;
            return Step::Again(at.c().clone());
        }
        Step::GoOn
    }
}
