//! Why an operation on an object that is no register ends before its time: the domain becomes conditional under its hands
//! (`[W-12 becoming-conditional]`).
//!
//! An operation that began in `abd` or `ec` asks and puts as these kinds do, until it comes to a configuration in which the object is
//! a ranked register. There it goes on as a proposer ([`super::conditional`]), which begins again where the domain is known to be
//! final. The walk has made the pointer known to a quorum of each configuration that it left, so that the proposer comes there, too.

use super::{Domain, pause};
use crate::config::Configuration;
use crate::dap::FoundVersion;
use crate::dap::conditional::closing::{self, LastVersion};
use crate::env::Env;
use crate::error::{CallError, Unavailable, WriteError};
use crate::gather::Visit;
use crate::object::Name;
use crate::pointer::Pointer;
use crate::reconfig::sequence;
use crate::reconfig::walk::Step;
use crate::span::ErrorType;
use crate::tag::{NumbersUsedUp, Tag};
use std::sync::Arc;

/// The word that a trace shows of a phase that ended so.
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
    /// The object is a ranked register ([`Interruption::Ranked`]).
    Ranked {
        /// The version, if it was handed to a connection: it may be current where the domain was no conditional one yet.
        put: Option<Tag>,
    },
}

impl From<NumbersUsedUp> for Interruption {
    fn from(used_up: NumbersUsedUp) -> Interruption {
        Interruption::Unavailable(used_up.into())
    }
}

impl PutInterruption {
    /// The interruption of a first phase, in which nothing is sent.
    pub(super) fn from_first_phase(ended: Interruption) -> PutInterruption {
        match ended {
            Interruption::Unavailable(failed) => {
                PutInterruption::Failed(WriteError::NotApplied(failed))
            }
            Interruption::Ranked => PutInterruption::Ranked { put: None },
        }
    }
}

/// The end of a visit that had something to ask only of an object that is no register.
pub(super) enum Detour<B> {
    /// The end that the operation wants.
    Ended(B),
    /// The object is a ranked register ([`Interruption::Ranked`]).
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

/// True if an operation that began at `start` may put or write back a version of the object here: it is no register, and was none in between
/// (`[W-13 ceasing-to-be-conditional]`).
pub(super) fn is_put_to(c: &Configuration, start: &Configuration, name: &Name) -> bool {
    assert!(c.is_at_least(start), "a walk leads upwards");
    let is_later = name.kind().is_register() && c.era() > start.era();
    !c.is_ranked(name) && !is_later
}

/// The era in which first versions of the object are made there. Only objects that may be registers have one.
pub(super) fn era_of(name: &Name, c: &Configuration) -> u32 {
    if name.kind().is_register() {
        c.era()
    } else {
        0
    }
}

/// The last version of a register, as a read finds it.
pub(super) fn found_of(last: LastVersion, c: &Configuration) -> FoundVersion {
    assert!(c.dap().is_conditional(), "it was a register there");
    FoundVersion {
        tag: last.current.tag,
        value: Some(last.value),
        length: last.length,
        complete: false,
        holders: vec![true; c.n()],
        damaged: false,
        unaware: false,
        fence: Tag::INITIAL,
    }
}

/// The departure of an operation on an object from a configuration in which the object is a register.
pub(super) enum Departure {
    /// It does not: nothing comes next, or the object is a register there, too.
    Stays,
    /// Nothing that comes next knows the object as a register (`[W-13 ceasing-to-be-conditional]`).
    Leaves {
        /// The last version of the register; `None`: none was chosen, or the successor has it.
        last: Option<Box<LastVersion>>,
        next: Arc<Configuration>,
    },
}

impl<E: Env> Domain<E> {
    /// Leaves a configuration in which the object is a register, if the domain has ceased to be conditional after it. `ends`: as in
    /// [`closing::close`].
    pub(super) async fn depart(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        ends: bool,
    ) -> Result<Departure, CallError> {
        let (env, sequences) = (&self.client.env, self.client.sequences());
        let pointer = if let Some(next) = sequences.expected(c) {
            Pointer::pending(&next)
        } else {
            let at = Visit::new(c);
            sequence::read_config(env, &at).await?;
            let Some(pointer) = at.next() else {
                return Ok(Departure::Stays);
            };
            pointer
        };
        self.depart_to(c, &pointer, (name, ends)).await
    }

    /// [`Self::depart`] where a reply showed the next configuration.
    pub(super) async fn depart_to(
        &self,
        c: &Arc<Configuration>,
        pointer: &Pointer,
        (name, ends): (&Name, bool),
    ) -> Result<Departure, CallError> {
        let (env, sequences) = (&self.client.env, self.client.sequences());
        let next = &pointer.configuration;
        if next.is_ranked(name) || next.dap().is_removal() {
            return Ok(Departure::Stays);
        }
        if pointer.is_final() {
            sequences.learn(next);
            let (last, next) = (None, next.clone());
            return Ok(Departure::Leaves { last, next });
        }
        // [W-14 change-of-kind-alone]
        sequences.learn(c);
        let (at, closed) = closing::close(env, (c, pointer), name, ends).await;
        let last = match closed {
            Ok(last) => last.map(Box::new),
            Err(CallError::Moved) => None,
            Err(failed) => return Err(failed),
        };
        let next = at.next().expect("a closed request is answered so");
        match next.is_final() {
            true => sequences.learn(&next.configuration),
            false => sequences.expect(&next.configuration),
        }
        assert!(c.precedes(&next.configuration), "a walk leads upwards");
        let next = next.configuration;
        Ok(Departure::Leaves { last, next })
    }

    /// Goes on to the successor, which a member has shown, after a put that the member takes in no more.
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
