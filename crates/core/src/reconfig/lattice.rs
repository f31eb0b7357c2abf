//! Reconfiguration over a lattice (`docs/spec` 6.3, 6.5; Jehl and Meling, "The Case for Reconfiguration without Consensus").
//!
//! A change is a membership. A reconfigurer goes along all configurations that it hears of and joins them to its own change.
//! Where the path ends it has a successor established that contains all of that, and goes on; it is done when the last
//! configuration contains its change and has received the state of those before it. Changes of others are never undone, so that
//! each of them is made.
//!
//! The algorithms differ in how a successor is established, which the configuration says ([`Decider`](crate::config::Decider)):
//!
//! | | by | `r` changes at once make |
//! |---|---|---|
//! | Rambo | consensus of the members, one configuration for each proposal | `r` configurations |
//! | SM | lattice agreement, which merges what is proposed | 1 to `r` |
//! | SpSn | a speculating snapshot, which merges what is proposed | 1 to `r` |
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | reconf(change) | [`append`] | those below |
//! | next configuration of DAG | [`walk::path`] | 1 for each configuration |
//! | establish&collect | [`establish`] | Rambo 3, SM and SpSn 2 undisturbed |
//! | SET-STATE, START | [`ares::finish`] | as Ares |

use super::ares::{self, AresError, LeaveOff, ReconfigOutcome, Reconfigurer};
use super::transfer::Progress;
use super::{sequence, walk};
use crate::config::{Configuration, Descriptor, Membership};
use crate::consensus::{Consensus, ProposeError, merging};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::limits;
use crate::pointer::Pointer;
use crate::span;
use std::sync::Arc;

/// Brings the change that `wanted` is to the domain, wherever its configurations end.
///
/// # Errors
/// [`AresError`].
pub(super) async fn append<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    until: Option<LeaveOff>,
) -> Result<Option<ReconfigOutcome>, AresError> {
    let wanted = change(wanted);
    let (mut todo, mut has_begun) = (wanted.clone(), false);
    loop {
        let path = walk::path(by.env, by.sequences, known).await;
        let path = path.map_err(|unavailable| match has_begun {
            true => AresError::Pending(unavailable),
            false => AresError::NotBegun(unavailable),
        })?;
        let last = path.last().expect("there is a first configuration");
        let there = membership_of(last);
        if there.is_removal() && !wanted.is_removal() {
            if path.len() > 1 {
                ares::finish(by, path, None).await?;
            }
            return Err(AresError::Removed);
        }
        if there.is_removal() || wanted.is_within(there) {
            return conclude(by, path, has_begun, until).await;
        }
        todo = todo.join(there);
        assert!(there.precedes(&todo), "there is something to do");
        check(last, &todo)?;
        (by.progress)(Progress::Deciding);
        has_begun = true;
        let span = span::in_configuration!(span::CONFIG_ADD, last);
        let (joined, next) = span::watch!(span, establish(by, &path, &todo))?;
        todo = todo.join(&joined);
        if let Some(next) = next {
            check(last, membership_of(&next))?;
            (by.progress)(Progress::Announcing);
            let pending = Pointer::pending(&next);
            let shown = sequence::put_config(by.env, last, &pending).await;
            let shown = shown.map_err(AresError::Pending)?;
            if shown.is_final() {
                by.sequences.learn(&shown.configuration);
            }
            // What servers showed with that is on the path, too ([R-5 look-again]).
        }
    }
}

/// The path ends with a configuration that contains the change: it is finished, if it is pending.
async fn conclude<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: Vec<Arc<Configuration>>,
    has_begun: bool,
    until: Option<LeaveOff>,
) -> Result<Option<ReconfigOutcome>, AresError> {
    if let [last] = path.as_slice() {
        let last = last.clone();
        // Another reconfigurer finished it meanwhile.
        return Ok(Some(match has_begun {
            true => ReconfigOutcome::Installed(last),
            false => ReconfigOutcome::Unchanged(last),
        }));
    }
    let installed = ares::finish(by, path, until).await?;
    Ok(installed.map(ReconfigOutcome::Installed))
}

/// What the descriptor changes.
fn change(wanted: &Descriptor) -> Membership {
    let membership = wanted.lattice.as_ref();
    let membership = membership.expect("a domain keeps its family");
    match wanted.dap.is_removal() {
        true => membership.removal(),
        false => membership.clone(),
    }
}

fn membership_of(c: &Configuration) -> &Membership {
    let membership = c.descriptor().lattice.as_ref();
    membership.expect("each configuration of a lattice has one")
}

/// Refuses what would leave too few members (`[R-3 never-too-few]`). Those of a removal keep nothing.
fn check(last: &Configuration, next: &Membership) -> Result<(), AresError> {
    let members = next.members().len();
    let least = limits::LATTICE_MEMBERS.min(last.n());
    match members < least && !next.is_removal() {
        true => Err(AresError::TooFew { members, least }),
        false => Ok(()),
    }
}

/// Has the last configuration of the path a successor established that contains `todo`. Returns what was heard of the changes
/// of others, and the successor; `None`: there is one already.
async fn establish<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: &[Arc<Configuration>],
    todo: &Membership,
) -> Result<(Membership, Option<Arc<Configuration>>), AresError> {
    let last = path.last().expect("there is a first configuration");
    let (mut joined, mut is_last) = (todo.clone(), true);
    if last.descriptor().decided_by.merges() {
        // In each of them, before a successor is established anywhere ([R-17 agreement-everywhere]).
        for c in path {
            let at = Visit::new(c);
            let agreed = merging::propose(by.env, &at, &joined).await;
            (joined, is_last) = match agreed {
                Ok(agreed) => (agreed, at.is_last()),
                Err(CallError::Moved) => return Ok((joined, None)),
                Err(CallError::Unavailable(unavailable)) => {
                    return Err(AresError::Pending(unavailable));
                }
            };
        }
        let next = last.with_membership(joined.clone());
        let next = next.map_err(AresError::Invalid)?;
        // With a successor of the last one goes what is decided there ([R-17 agreement-everywhere]).
        return Ok((joined, is_last.then_some(next)));
    }
    let proposal = last.with_membership(joined.clone());
    let proposal = proposal.map_err(AresError::Invalid)?;
    let at = Visit::new(last);
    let decided = by.consensus.propose(by.env, &at, proposal.encoded()).await;
    match decided {
        Ok(Some(decided)) => {
            let decided = Configuration::decode(decided).map_err(AresError::Decided)?;
            assert!(last.precedes(&decided), "what is proposed comes next");
            Ok((joined, Some(decided)))
        }
        // A decision is known there by now: it is on the path.
        Ok(None) | Err(ProposeError::Failed(CallError::Moved)) => Ok((joined, None)),
        Err(ProposeError::Failed(CallError::Unavailable(unavailable))) => {
            Err(AresError::Pending(unavailable))
        }
        Err(ProposeError::Undecided(undecided)) => Err(AresError::Undecided(undecided)),
    }
}
