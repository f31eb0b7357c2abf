//! The ways to merge the changes of a configuration whose domain is a lattice, as its descriptor says ([`Decider`]): lattice agreement, or a
//! speculating snapshot. Of either the same holds: what one proposer is done with contains its own proposal, and of two such
//! memberships one contains the other.

use super::{agreement, speculating};
use crate::config::{Decider, Membership};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;

/// Comes to a membership that contains this one and that may become a successor.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<Membership, CallError> {
    match at.c().descriptor().decided_by {
        Decider::Speculation => speculating::propose(env, at, membership).await,
        _ => agreement::propose(env, at, membership).await,
    }
}

/// The join of all that proposers are done with here, and perhaps more; `None` if nothing was proposed. In a visit that closes the
/// configuration (`[R-16 agreement-moves]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn read<E: Env>(env: &E, at: &Visit) -> Result<Option<Membership>, CallError> {
    match at.c().descriptor().decided_by {
        Decider::Speculation => speculating::read(env, at).await,
        _ => agreement::read(env, at).await,
    }
}

/// Brings the result of reading an earlier configuration into the decisions of all proposers that begin here afterwards
/// (`[R-16 agreement-moves]`).
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn hand_on<E: Env>(
    env: &E,
    at: &Visit,
    membership: &Membership,
) -> Result<(), CallError> {
    match at.c().descriptor().decided_by {
        // Not in the first round alone: a proposer that is past it would miss it.
        Decider::Speculation => speculating::propose(env, at, membership).await.map(drop),
        _ => agreement::hand_on(env, at, membership).await,
    }
}
