//! The end of every reconfiguration, of a sequence and of a lattice: transfer, finalize, collect (`docs/spec` 3.3).

use super::sequence;
use super::transfer::{self, Progress, TransferOutcome};
use super::walk;
use super::{LeaveOff, ReconfigError, Reconfigurer};
use crate::config::Configuration;
use crate::consensus::Consensus;
use crate::env::Env;
use crate::limits;
use crate::pointer::Pointer;
use crate::span;
use std::sync::Arc;
use tracing::Instrument;

/// Brings the state of a path's configurations into its last one, makes that final and lets the others go. Returns the
/// configuration that is final by then: that one, or a later one; `None` if it is left off before.
pub(super) async fn finish<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    mut path: Vec<Arc<Configuration>>,
    until: Option<LeaveOff>,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
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
        match transferred.map_err(ReconfigError::Pending)? {
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
                    .map_err(ReconfigError::Pending)?;
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
) -> Result<(), ReconfigError> {
    assert!(predecessor.precedes(target), "the state came from below");
    (by.progress)(Progress::Finalizing);
    let pointer = Pointer::finalized(target);
    let shown = sequence::put_config(by.env, predecessor, &pointer).await;
    let shown = shown.map_err(ReconfigError::Pending)?;
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
