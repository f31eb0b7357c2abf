//! Reconfiguration by Ares and Ares II (`docs/spec` 3.3 and 3.4; Nicolaou, Cadambe, Prakash and others).
//!
//! Consensus, among the members of the last configuration or outside, says which one comes next. It is announced as pending at a quorum
//! of its predecessor, so that every operation that goes on from there sees it. Then it receives the state of all
//! configurations that may have some, each *closed* by the very requests that read it; without that, a write that
//! was under way could complete in the old configuration behind the back of the transfer (`[A-8 closed-get]`, 3.5 item 1).
//! Now it is final: operations may start there, and its predecessors may forget what they hold.
//!
//! No step needs to be taken by the one who began. Whoever finds a pending configuration can finish it ([`resume`]), and two
//! who do so at once do each other no harm (3.5 items 12 and 16).
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | reconfig | [`merged::make`](super::merged::make) | those below |
//! | read-config | [`walk::path`] | 1 |
//! | add-config, put-config (P) | [`extend`] | consensus (2), and 1 |
//! | update-config | [`transfer`](super::transfer::transfer) | 1 for a page of objects, then 2 for each object, many at once |
//! | finalize-config | [`finish`] | 1 |
//! | gc-config | [`finish`] | 1 |

use super::change;
use super::finish::finish;
use super::lattice;
use super::sequence;
use super::transfer::Progress;
use super::walk;
use super::{LeaveOff, ReconfigError, ReconfigOutcome, Reconfigurer};
use crate::config::{Configuration, Descriptor};
use crate::consensus::{Consensus, ProposeError};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::pointer::Pointer;
use crate::span;
use std::sync::Arc;

/// Appends a configuration to the domain's sequence, `wanted` but for its index, and leaves off after this step. Returns the
/// configuration that is final then; `None` if the wanted one is pending. `known`: any final configuration of the domain. Changes
/// of others that are made at the same time come before it; a change that is no experiment is made by
/// [`merged::make`](super::merged::make).
///
/// # Errors
/// [`ReconfigError`].
pub async fn leave_off<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    after: LeaveOff,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    if known.descriptor().lattice.is_some() {
        let done = lattice::append(by, known, wanted, Some(after)).await?;
        return Ok(done.map(ReconfigOutcome::into_configuration));
    }
    loop {
        let path = walk::path(by.env, by.sequences, known);
        let path = path.await.map_err(ReconfigError::NotBegun)?;
        let last = path.last().expect("a sequence has a last configuration");
        if last.dap().is_removal() {
            return Err(ReconfigError::Removed);
        }
        let next = change::next(last, wanted).map_err(ReconfigError::Invalid)?;
        // Only what is one's own is left off.
        if let Some(path) = extend(by, path, &next).await?
            && path.last() == Some(&next)
        {
            return finish(by, path, Some(after)).await;
        }
    }
}

/// Has the successor of the path decided, with `next` as the proposal, and makes it known: the path leads there then.
/// `None`: a successor is known there already, or something had to be finished first; the path must be read again.
pub(super) async fn extend<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: Vec<Arc<Configuration>>,
    next: &Arc<Configuration>,
) -> Result<Option<Vec<Arc<Configuration>>>, ReconfigError> {
    let last = path.last().expect("a sequence has a last configuration");
    if path.len() > 1 && last.changes_into(next) {
        // [W-14 change-of-kind-alone]
        finish(by, path, None).await?;
        return Ok(None);
    }
    (by.progress)(Progress::Deciding);
    let at = Visit::new(last);
    let propose = by.consensus.propose(by.env, &at, next.encoded());
    let span = span::in_configuration!(span::CONFIG_ADD, last);
    let decided = match span::watch!(span, propose) {
        Ok(Some(decided)) => Configuration::decode(decided).map_err(ReconfigError::Decided)?,
        // Another reconfigurer's decision is known there by now: it is on the path.
        Ok(None) | Err(ProposeError::Failed(CallError::Moved)) => return Ok(None),
        Err(ProposeError::Failed(CallError::Unavailable(unavailable))) => {
            return Err(ReconfigError::Pending(unavailable));
        }
        Err(ProposeError::Undecided(undecided)) => {
            return Err(ReconfigError::Undecided(undecided));
        }
    };
    assert_eq!(
        (decided.id().domain, decided.id().index),
        (next.id().domain, next.id().index),
        "what is proposed comes next"
    );
    last.check_next(&decided).map_err(ReconfigError::Decided)?;
    let pending = Pointer::pending(&decided);
    (by.progress)(Progress::Announcing);
    let shown = sequence::put_config(by.env, last, &pending).await;
    let shown = shown.map_err(ReconfigError::Pending)?;
    by.env.progressed();
    if shown.is_final() {
        by.sequences.learn(&shown.configuration);
    }
    let path = [path, vec![decided]].concat();
    Ok(Some(walk::since_last_change_of_kind(path)))
}

/// Finishes what another reconfigurer left pending. `None`: nothing is.
///
/// # Errors
/// [`ReconfigError`].
pub async fn resume<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let resume = async {
        let path = walk::path(by.env, by.sequences, known);
        let path = path.await.map_err(ReconfigError::NotBegun)?;
        match path.len() {
            1 => Ok(None),
            _ => finish(by, path, None).await,
        }
    };
    span::watch!(span::of_phase!(span::RECONFIG), resume)
}
