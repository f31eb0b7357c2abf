//! Reconfiguration over a lattice (`docs/spec` 6.3, 6.5, 6.6; Jehl and Meling, "The Case for Reconfiguration without Consensus").
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
//! | L-Rambo | the same; a leader proposes what was posted together ([`crate::consensus::leader`]) | 1 to `r` |
//! | SM | lattice agreement, which merges what is proposed | 1 to `r` |
//! | SpSn | a speculating snapshot, which merges what is proposed | 1 to `r` |
//! | DynaStore | a weak snapshot: what one member heard of first, and nothing stops another one | `r` at least, and their joins |
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | reconf(change) | [`append`] | those below |
//! | next configuration of DAG | [`walk::path`] | 1 for each configuration |
//! | establish&collect | [`establish`] | Rambo 3, L-Rambo 2 for who proposed the configuration, SM and SpSn 2, DynaStore 3, undisturbed |
//! | FORWARD | [`look`] | 0: in the place of what reads the pointers |
//! | SET-STATE, START | [`finish`] | as Ares |

use super::finish::finish;
use super::leader_wait::LeaderWait;
use super::transfer::Progress;
use super::{LeaveOff, ReconfigError, ReconfigOutcome, Reconfigurer};
use super::{sequence, walk};
use crate::config::{Configuration, Decider, Descriptor, InvalidConfiguration, Membership};
use crate::consensus::{Consensus, ProposeError, leader, mailbox, merging, snapshot};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::pointer::Pointer;
use crate::span;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// Brings the change that `wanted` is to the domain, wherever its configurations end.
///
/// # Errors
/// [`ReconfigError`].
pub(super) async fn append<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    until: Option<LeaveOff>,
) -> Result<Option<ReconfigOutcome>, ReconfigError> {
    let wanted = change(wanted);
    let (mut todo, mut has_begun) = (wanted.clone(), false);
    // What is to be left off is no one else's.
    let (posts, patience) = match until {
        None => (true, by.patience),
        Some(_) => (false, Duration::ZERO),
    };
    let mut wait = LeaderWait::new(patience);
    loop {
        let (path, posted) = look(by, known, (&wanted, posts), &mut has_begun).await?;
        let last = path.last().expect("there is a first configuration");
        let there = membership_of(last);
        if there.is_removal() && !wanted.is_removal() {
            if path.len() > 1 {
                finish(by, path, None).await?;
            }
            return Err(ReconfigError::Removed);
        }
        let is_made = there.is_removal() || wanted.is_within(there);
        let is_the_leaders = match is_made {
            true => path.len() > 1 && last.leader().is_some() && !there.is_removal(),
            false => is_posted(last, &wanted),
        };
        if is_the_leaders && wait.a_little(by, &path).await {
            continue;
        }
        if is_made {
            return conclude(by, path, has_begun, until).await;
        }
        // Members that stay keep their slots ([R-32 slots-stay]).
        todo = todo.join(&there.settled());
        check(last, &todo)?;
        has_begun = true;
        let joined = extend(by, &path, &todo, &posted).await?;
        todo = todo.join(&joined);
    }
}

/// Has a successor of the path's last configuration established that contains `todo`, and announces it: the path must
/// be looked at again. Returns the changes of others that it heard of.
pub(super) async fn extend<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: &[Arc<Configuration>],
    todo: &Membership,
    posted: &BTreeSet<Bytes>,
) -> Result<Membership, ReconfigError> {
    let last = path.last().expect("there is a first configuration");
    assert!(
        membership_of(last).precedes(todo),
        "there is something to do"
    );
    (by.progress)(Progress::Deciding);
    let span = span::in_configuration!(span::CONFIG_ADD, last);
    let (joined, next) = span::watch!(span, establish(by, path, todo, posted))?;
    if let Some(next) = next {
        if !last.branches() {
            check(last, membership_of(&next))?;
        }
        (by.progress)(Progress::Announcing);
        let pending = Pointer::pending(&next);
        let shown = sequence::put_config(by.env, last, &pending).await;
        let shown = shown.map_err(ReconfigError::Pending)?;
        if shown.is_final() {
            by.sequences.learn(&shown.configuration);
        }
        // What servers showed with that is on the path, too ([R-5 look-again]).
    }
    Ok(joined)
}

/// Goes along the path, and posts the change where a leader may make a successor that contains it. Returns the path,
/// and the changes posted at a quorum of its last configuration. `has_begun`: set before members may hear of the
/// change.
async fn look<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    (wanted, posts): (&Membership, bool),
    has_begun: &mut bool,
) -> Result<(Vec<Arc<Configuration>>, BTreeSet<Bytes>), ReconfigError> {
    let mut posted = BTreeSet::new();
    let ask = async |at: &Visit| {
        posted.clear();
        if !posts || !is_posted(at.c(), wanted) {
            return walk::read_pointers(by.env, at).await;
        }
        let had_begun = std::mem::replace(has_begun, true);
        if !had_begun {
            // The leader decides, or who takes over.
            (by.progress)(Progress::Deciding);
        }
        let span = span::in_configuration!(span::CONFIG_READ, at.c());
        let post = mailbox::post(by.env, at, wanted.encode());
        let heard = post.instrument(span).await;
        if heard == Err(CallError::Moved) {
            // A successor is final: what was posted there comes to nothing.
            *has_begun = had_begun;
        }
        posted = heard?;
        Ok(())
    };
    let path = walk::path_asking(by.env, by.sequences, known, ask).await;
    let path = path.map_err(|unavailable| ReconfigError::on_the_way(unavailable, *has_begun))?;
    Ok((path, posted))
}

/// True if a successor of the configuration may be made with the change in it, by others. One that is refused there is not posted: if it were, others
/// could make it.
fn is_posted(c: &Configuration, wanted: &Membership) -> bool {
    let there = membership_of(c);
    let is_led = c.descriptor().decided_by.owner().is_some();
    let is_done = there.is_removal() || wanted.is_within(there);
    is_led && !is_done && !wanted.is_removal() && fits(c, &wanted.join(there))
}

/// True if the configuration may have a successor of this membership.
fn fits(c: &Configuration, next: &Membership) -> bool {
    check(c, next).is_ok() && c.with_membership(next.clone()).is_ok()
}

/// The path ends with a configuration that contains the change: it is finished, if it is pending.
async fn conclude<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: Vec<Arc<Configuration>>,
    has_begun: bool,
    until: Option<LeaveOff>,
) -> Result<Option<ReconfigOutcome>, ReconfigError> {
    if let [last] = path.as_slice() {
        let last = last.clone();
        // Another reconfigurer finished it meanwhile.
        return Ok(Some(match has_begun {
            true => ReconfigOutcome::Installed(last),
            false => ReconfigOutcome::Unchanged(last),
        }));
    }
    let installed = finish(by, path, until).await?;
    Ok(installed.map(ReconfigOutcome::Installed))
}

/// The change that the descriptor makes.
fn change(wanted: &Descriptor) -> Membership {
    let membership = wanted.lattice.as_ref();
    let membership = membership.expect("a domain keeps its family");
    match wanted.dap.is_removal() {
        true => membership.removal(),
        false => membership.clone(),
    }
}

pub(super) fn membership_of(c: &Configuration) -> &Membership {
    let membership = c.descriptor().lattice.as_ref();
    membership.expect("each configuration of a lattice has one")
}

/// Refuses what would leave too few members (`[R-3 never-too-few]`). Those of a removal keep nothing.
fn check(last: &Configuration, next: &Membership) -> Result<(), ReconfigError> {
    let members = next.members().len();
    let least = last.least_members();
    match members < least && !next.is_removal() {
        true => Err(ReconfigError::TooFew { members, least }),
        false => Ok(()),
    }
}

/// Has a successor of the path's last configuration established that contains `todo`. Returns the changes of others
/// that it heard of, and the successor; `None`: there is one already.
async fn establish<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: &[Arc<Configuration>],
    todo: &Membership,
    posted: &BTreeSet<Bytes>,
) -> Result<(Membership, Option<Arc<Configuration>>), ReconfigError> {
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
                    return Err(ReconfigError::Pending(unavailable));
                }
            };
        }
        if !is_last {
            // With its successor goes what is decided there ([R-17 agreement-everywhere]).
            return Ok((joined, None));
        }
        check(last, &joined)?;
        let next = last.with_membership(joined.clone());
        return Ok((joined, Some(next.map_err(ReconfigError::Invalid)?)));
    }
    if last.branches() {
        let next = successor(by, last, todo).await?;
        return Ok((joined, next));
    }
    let proposal = proposal(by, last, todo, posted).map_err(ReconfigError::Invalid)?;
    let at = Visit::new(last);
    let decided = match last.descriptor().decided_by {
        Decider::Leader { .. } => lead(by, &at, &proposal).await,
        _ => by.consensus.propose(by.env, &at, proposal.encoded()).await,
    };
    match decided {
        Ok(Some(decided)) => {
            let decided = Configuration::decode(decided).map_err(ReconfigError::Decided)?;
            assert!(last.precedes(&decided), "what is proposed comes next");
            Ok((joined, Some(decided)))
        }
        // A decision is known there by now: it is on the path.
        Ok(None) | Err(ProposeError::Failed(CallError::Moved)) => Ok((joined, None)),
        Err(ProposeError::Failed(CallError::Unavailable(unavailable))) => {
            Err(ReconfigError::Pending(unavailable))
        }
        Err(ProposeError::Undecided(undecided)) => Err(ReconfigError::Undecided(undecided)),
    }
}

/// DynaStore: the successor that one member knows already, or the one that it heard of first, which is what contains `todo` if none came
/// before. `None`: one is final.
async fn successor<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    last: &Arc<Configuration>,
    todo: &Membership,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let own = last.with_membership(todo.clone());
    let own = own.map_err(ReconfigError::Invalid)?;
    assert!(last.precedes(&own), "there is something to do");
    let at = Visit::new(last);
    let first = match snapshot::first(by.env, &at, todo).await {
        Ok(first) => first,
        Err(CallError::Moved) => return Ok(None),
        Err(CallError::Unavailable(unavailable)) => {
            return Err(ReconfigError::Pending(unavailable));
        }
    };
    // Also one that only this member knows: who had it announced may have died.
    if let Some(known) = at.next() {
        return Ok(Some(known.configuration));
    }
    let first = last.with_membership(first).ok();
    Ok(first.filter(|first| last.precedes(first)).or(Some(own)))
}

/// The successor to propose: what contains `todo`, and by a leader also all that was posted and goes together with it.
fn proposal<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    last: &Configuration,
    todo: &Membership,
    posted: &BTreeSet<Bytes>,
) -> Result<Arc<Configuration>, InvalidConfiguration> {
    if last.descriptor().decided_by.owner().is_none() {
        return last.with_membership(todo.clone());
    }
    last.led_by(batch(last, todo, posted), by.consensus.writer())
}

/// The membership that contains `todo`, and all that was posted and goes together with it.
pub(super) fn batch(
    last: &Configuration,
    todo: &Membership,
    posted: &BTreeSet<Bytes>,
) -> Membership {
    leader::batch(todo, posted, |joined| fits(last, joined))
}

/// Proposes a successor as a leader does. If that is decided, the client owns ballot 0 there.
async fn lead<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    at: &Visit,
    proposal: &Arc<Configuration>,
) -> Result<Option<Bytes>, ProposeError> {
    // Before it is used: also a proposal that ends without an answer has used it.
    let owner = by.sequences.take_ballot(at.c());
    let writer = || by.consensus.writer();
    let decided = leader::propose(by.env, at, proposal.encoded(), owner, writer).await?;
    if decided.as_ref() == Some(proposal.encoded()) {
        by.sequences.lead(proposal);
    }
    Ok(decided)
}
