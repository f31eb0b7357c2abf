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
//! | update-config | [`transfer`] | 1 for a page of objects, then 2 for each object, many at once |
//! | finalize-config | [`finish`] | 1 |
//! | gc-config | [`collect`] | 1 |

use super::change::{self, Contradiction};
use super::lattice;
use super::sequence::{self, Sequences};
use super::transfer::{self, Progress, TransferOutcome};
use super::walk;
use crate::config::{Configuration, Descriptor, InvalidConfiguration};
use crate::consensus::{Consensus, ProposeError};
use crate::env::Env;
use crate::error::{CallError, DeciderError, Unavailable};
use crate::gather::Visit;
use crate::limits;
use crate::pointer::Pointer;
use crate::span::{self, ErrorType};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

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
pub enum AresError {
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

impl AresError {
    /// Without a quorum on the way along the configurations. `has_begun`: members may have heard of the change.
    pub(super) fn on_the_way(unavailable: Unavailable, has_begun: bool) -> AresError {
        match has_begun {
            true => AresError::Pending(unavailable),
            false => AresError::NotBegun(unavailable),
        }
    }
}

impl ErrorType for AresError {
    fn error_type(&self) -> &'static str {
        match self {
            AresError::Removed => "removed",
            AresError::Invalid(_) | AresError::Decided(_) => "invalid",
            AresError::TooFew { .. } => "too_few",
            AresError::Contradicts(..) => "conflict",
            AresError::Unwanted(_) => "unwanted",
            AresError::NotBegun(_) => "not_begun",
            AresError::Undecided(_) => "undecided",
            AresError::Pending(_) => "pending",
        }
    }
}

/// Appends a configuration to the domain's sequence, `wanted` but for its index, and leaves off after this step. Returns the
/// configuration that is final then; `None` if the wanted one is pending. `known`: any final configuration of the domain. Changes
/// of others that are made at the same time come before it; a change that is no experiment is made by
/// [`merged::make`](super::merged::make).
///
/// # Errors
/// [`AresError`].
pub async fn leave_off<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    after: LeaveOff,
) -> Result<Option<Arc<Configuration>>, AresError> {
    if known.descriptor().lattice.is_some() {
        let done = lattice::append(by, known, wanted, Some(after)).await?;
        return Ok(done.map(ReconfigOutcome::into_configuration));
    }
    loop {
        let path = walk::path(by.env, by.sequences, known);
        let path = path.await.map_err(AresError::NotBegun)?;
        let last = path.last().expect("a sequence has a last configuration");
        if last.dap().is_removal() {
            return Err(AresError::Removed);
        }
        let next = change::next(last, wanted).map_err(AresError::Invalid)?;
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
) -> Result<Option<Vec<Arc<Configuration>>>, AresError> {
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
        Ok(Some(decided)) => Configuration::decode(decided).map_err(AresError::Decided)?,
        // Another reconfigurer's decision is known there by now: it is on the path.
        Ok(None) | Err(ProposeError::Failed(CallError::Moved)) => return Ok(None),
        Err(ProposeError::Failed(CallError::Unavailable(unavailable))) => {
            return Err(AresError::Pending(unavailable));
        }
        Err(ProposeError::Undecided(undecided)) => {
            return Err(AresError::Undecided(undecided));
        }
    };
    assert_eq!(
        (decided.id().domain, decided.id().index),
        (next.id().domain, next.id().index),
        "what is proposed comes next"
    );
    last.check_next(&decided).map_err(AresError::Decided)?;
    let pending = Pointer::pending(&decided);
    (by.progress)(Progress::Announcing);
    let shown = sequence::put_config(by.env, last, &pending).await;
    let shown = shown.map_err(AresError::Pending)?;
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
/// [`AresError`].
pub async fn resume<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
) -> Result<Option<Arc<Configuration>>, AresError> {
    let resume = async {
        let path = walk::path(by.env, by.sequences, known);
        let path = path.await.map_err(AresError::NotBegun)?;
        match path.len() {
            1 => Ok(None),
            _ => finish(by, path, None).await,
        }
    };
    span::watch!(span::of_phase!(span::RECONFIG), resume)
}

/// Brings the state of a path's configurations into its last one, makes that final and lets the others go. Returns the
/// configuration that is final by then: that one, or a later one; `None` if it is left off before.
pub(super) async fn finish<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    mut path: Vec<Arc<Configuration>>,
    until: Option<LeaveOff>,
) -> Result<Option<Arc<Configuration>>, AresError> {
    loop {
        let (target, sources) = path.split_last().expect("there is something to finish");
        let is_upwards = sources.iter().all(|source| source.precedes(target));
        assert!(
            is_upwards && !sources.is_empty(),
            "a target follows its sources"
        );
        let transferred = if target.dap().is_removal() {
            // It keeps nothing.
            Ok(TransferOutcome::Complete)
        } else {
            let span = span::in_configuration!(span::CONFIG_UPDATE, target);
            let transfer = transfer::transfer(by.env, sources, target, by.progress);
            span::watch!(span, transfer)
        };
        match transferred.map_err(AresError::Pending)? {
            TransferOutcome::Complete if until == Some(LeaveOff::Transferred) => {
                return Ok(None);
            }
            TransferOutcome::Complete => {
                let predecessor = sources.last().expect("a pending one has a predecessor");
                let finalize = finalize(by, predecessor, target);
                let span = span::in_configuration!(span::CONFIG_FINALIZE, target);
                span::watch!(span, finalize)?;
                if until.is_none() {
                    let span = span::in_configuration!(span::CONFIG_COLLECT, target);
                    collect(by, sources, target).instrument(span).await;
                }
                return Ok(Some(target.clone()));
            }
            TransferOutcome::Final(later) => {
                assert!(!later.precedes(target), "it was superseded");
                by.sequences.learn(&later);
                return Ok(Some(later));
            }
            // Whoever goes on from there transfers from the same sources: help.
            TransferOutcome::Overtaken => {
                let known = path.swap_remove(0);
                path = walk::path(by.env, by.sequences, &known)
                    .await
                    .map_err(AresError::Pending)?;
                if path.len() == 1 {
                    return Ok(Some(path.swap_remove(0)));
                }
            }
        }
    }
}

/// The target has everything: an operation that starts there misses nothing. Only said after the whole transfer
/// (`[X-14 final-after-transfer]`).
async fn finalize<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    predecessor: &Arc<Configuration>,
    target: &Arc<Configuration>,
) -> Result<(), AresError> {
    assert!(predecessor.precedes(target), "the state came from below");
    (by.progress)(Progress::Finalizing);
    let pointer = Pointer::finalized(target);
    let shown = sequence::put_config(by.env, predecessor, &pointer).await;
    let shown = shown.map_err(AresError::Pending)?;
    by.env.progressed();
    assert!(shown.is_final(), "no pending pointer is above a final one");
    by.sequences.learn(target);
    by.sequences.learn(&shown.configuration);
    Ok(())
}

/// Tells the members of superseded configurations where to point to from now on. What they hold goes. Best effort:
/// nothing rests on it (3.5 item 12 d).
async fn collect<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    superseded: &[Arc<Configuration>],
    target: &Arc<Configuration>,
) {
    let is_superseded = |c: &Arc<Configuration>| c.precedes(target);
    assert!(
        superseded.iter().all(is_superseded),
        "what comes later is not collected"
    );
    (by.progress)(Progress::Collecting);
    let pointer = Pointer::finalized(target);
    let pointer = &pointer;
    let tell = superseded.iter().map(|c| async move {
        let told = sequence::put_config(by.env, c, pointer);
        // A quorum that does not answer may be switched off already.
        told.await.is_ok()
    });
    crate::gather::join(limits::TRANSFER_WINDOW, tell).await;
}
