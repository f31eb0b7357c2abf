//! The leader of a domain whose configurations are a lattice (`docs/spec` 6.5; Jehl and Meling, L-Rambo).
//!
//! A leader proposes all changes that it has heard of at once, and needs no PREPARE. Changes are posted in the [`super::mailbox`] of the last
//! configuration. A server leads ([`crate::reconfig::leading`]); a reconfigurer that takes over proposes what it finds there together with
//! its own change. One of several configurations that are proposed at the same time is decided by Paxos, as in Rambo.
//!
//! Ballot 0 of a configuration belongs to the reconfigurer that proposed the configuration, which names it. Every other
//! ballot is above it, so that nothing can have been accepted before: the owner need not ask. It proposes at ballot 0
//! once (`[R-11 owned-ballot]`). So a client that makes one change after the other has each decided in one round, until another client
//! comes.
//!
//! | | rounds |
//! |---|---|
//! | [`propose`], the owner of ballot 0 | 1 undisturbed |
//! | [`propose`], another one | 2 undisturbed |
//!
//! | pseudocode | here |
//! |---|---|
//! | FORWARD(change) | [`super::mailbox::post`] |
//! | drain the queue, join all | [`batch`] |
//! | ACCEPT(0, v) | [`paxos::propose_as_owner`] |

use super::{SUCCESSOR_CELL, paxos};
use crate::config::Membership;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::tag::Writer;
use bytes::Bytes;
use std::collections::BTreeSet;

/// A membership that contains `own`, and of the posted ones those with which it still `fits`.
pub fn batch(
    own: &Membership,
    posted: &BTreeSet<Bytes>,
    fits: impl Fn(&Membership) -> bool,
) -> Membership {
    let mut joined = own.clone();
    // Removals are not posted.
    let others = posted
        .iter()
        .filter_map(|entry| Membership::decode(entry).ok())
        .filter(|other| !other.is_removal());
    for other in others {
        let both = joined.join(&other);
        if fits(&both) {
            joined = both;
        }
    }
    assert!(own.is_within(&joined), "the own change is in");
    joined
}

/// Proposes an encoded configuration as the successor of the one visited. `owner`: with which writer the client owns ballot 0
/// there, and has not used it. `None`: a successor is known there already; the visit knows it.
///
/// # Errors
/// As [`paxos::propose`].
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    proposal: &Bytes,
    owner: Option<Writer>,
    proposer: impl FnMut() -> Writer,
) -> Result<Option<Bytes>, CallError> {
    let cell = Bytes::from_static(SUCCESSOR_CELL);
    if let Some(owner) = owner {
        assert_eq!(
            at.c().descriptor().decided_by.owner(),
            Some(owner),
            "the configuration names its owner"
        );
        let decided = paxos::propose_as_owner(env, at, &cell, proposal, owner).await?;
        if decided.is_some() {
            return Ok(decided);
        }
    }
    match paxos::propose(env, at, &cell, proposal, None, proposer).await? {
        paxos::Outcome::Decided(decided) => Ok(Some(decided)),
        paxos::Outcome::Closed => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerId;

    /// Changes that do not fit into the batch are left out, and never take the place of changes that fit.
    #[test]
    fn a_batch_has_what_fits() {
        let first = Membership::first((1..=4).map(ServerId));
        let own = first.with(ServerId(5));
        let posted = [
            first.with(ServerId(6)).encode(),
            [1, 2, 4]
                .into_iter()
                .fold(first.clone(), |few, gone| few.without(ServerId(gone)))
                .encode(),
            first.without(ServerId(3)).encode(),
            first.removal().encode(),
            own.encode(),
            Bytes::from_static(b"x"),
        ];
        let batched = batch(&own, &posted.into(), |it| it.members().len() >= 4);
        assert_eq!(batched, own.with(ServerId(6)).without(ServerId(3)));
        assert_eq!(batch(&own, &BTreeSet::new(), |_| true), own);
        assert_eq!(batch(&own, &[batched.encode()].into(), |_| false), own);
    }
}
