//! Changes of several reconfigurers at once, merged (`docs/spec` `[A-14 merged-changes]`, `[A-13 change-after-its-base]`).
//!
//! A reconfigurer posts its change in the mailbox of the last configuration and hears of the changes of others there. It proposes
//! all of them that go together with its own. Which proposal is decided is said by consensus as before; a reconfigurer whose
//! change is in the decided one is done once that is final. One whose change is not makes it again of
//! the configuration that came first, and posts it there. So `r` reconfigurers at the same time need one configuration and one
//! transfer, or a few, instead of `r`.
//!
//! What is merged is checked as what is planned is: nothing is merged that cannot be, or that tolerates fewer crashes than each
//! change alone, and the caller refuses the rest ([`make`]). A change is refused only where a successor is decided that does not have it. Its entries are
//! in mailboxes of earlier configurations then, of which no reconfigurer can make use any more: nothing of it is made.
//!
//! | | rounds |
//! |---|---|
//! | [`make`], undisturbed | those of [`ares`]: posting takes the place of reading the last configuration's pointers |
//! | [`make`], after another proposal was decided | those of its path once more |

use super::ares;
use super::change::{Change, Obstruction};
use super::finish::finish;
use super::{ReconfigError, ReconfigOutcome, Reconfigurer};
use super::{lattice, walk};
use crate::config::Configuration;
use crate::consensus::{Consensus, mailbox};
use crate::env::Env;
use crate::gather::Visit;
use crate::span;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::Instrument;

/// Makes a change of a domain, together with changes that others make at the same time, or after them. `known`: any
/// final configuration of the domain. `approves`: whether the caller accepts the result of the change together with
/// others, or after them; the result of the change alone is always accepted.
///
/// # Errors
/// [`ReconfigError`].
pub async fn make<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    change: &Change,
    approves: &impl AsyncFn(&Change) -> bool,
) -> Result<ReconfigOutcome, ReconfigError> {
    assert!(
        !change.base().precedes(known),
        "a change is made from a configuration of its domain, final or later"
    );
    let making = async {
        if known.descriptor().lattice.is_none() {
            return to_the_end(by, known, change, approves).await;
        }
        let wanted = change.made().descriptor();
        let done = lattice::append(by, known, wanted, None).await?;
        Ok(done.expect("it is not left off"))
    };
    span::watch!(span::of_phase!(span::RECONFIG), making)
}

async fn to_the_end<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    change: &Change,
    approves: &impl AsyncFn(&Change) -> bool,
) -> Result<ReconfigOutcome, ReconfigError> {
    let mut here = change.clone();
    let mut has_begun = false;
    loop {
        let Look { path, posted } = look(by, known, (change, &here), &mut has_begun).await?;
        let last = path.last().expect("a sequence has a last configuration");
        if change.is_in(last) {
            return conclude(by, path, has_begun).await;
        }
        if last.dap().is_removal() {
            finished(by, path).await?;
            return Err(ReconfigError::Removed);
        }
        if last != here.base() {
            here = made_after(last, change, approves).await?;
            continue;
        }
        let next = proposal(&here, &posted, approves).await;
        let extended = ares::extend(by, path, &next).await;
        let extended = extended.map_err(|error| match error {
            // Members have the change.
            ReconfigError::Undecided(mut undecided) => {
                undecided.handed_over |= !here.is_removal();
                ReconfigError::Undecided(undecided)
            }
            error => error,
        })?;
        has_begun = true;
        // Otherwise another proposal was decided, or is known there: it is on the path.
        let Some(path) = extended else { continue };
        let decided = path.last().expect("it was extended");
        if change.is_in(decided) {
            return conclude(by, path, has_begun).await;
        }
        if !decided.dap().is_removal() {
            // So it is posted there by the next look, before others have gone on from there.
            here = made_after(decided, change, approves).await?;
        }
    }
}

/// The change on top of the changes that others made, up to `last` (`[A-13 change-after-its-base]`).
async fn made_after(
    last: &Arc<Configuration>,
    change: &Change,
    approves: &impl AsyncFn(&Change) -> bool,
) -> Result<Change, ReconfigError> {
    let here = change.after(last).map_err(|why| match why {
        Obstruction::Contradiction(about) => ReconfigError::Contradicts(last.clone(), about),
        Obstruction::Invalid(invalid) => ReconfigError::Invalid(invalid),
    })?;
    match approves(&here).await {
        true => Ok(here),
        false => Err(ReconfigError::Unwanted(here.made().clone())),
    }
}

/// The view of a reconfigurer before it proposes.
struct Look {
    /// The sequence from its last final configuration to its end.
    path: Vec<Arc<Configuration>>,
    /// The changes that a quorum of the last one has in its mailbox, if the change was posted there.
    posted: BTreeSet<Bytes>,
}

/// Goes along the path. Where it comes to the configuration that `here` is made from it posts that, unless nothing of the change is left to do
/// there. `has_begun`: set before members may hear of the change.
async fn look<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    (change, here): (&Change, &Change),
    has_begun: &mut bool,
) -> Result<Look, ReconfigError> {
    let is_posted = !change.is_removal() && !change.is_in(here.base());
    let mut posted = BTreeSet::new();
    let ask = async |at: &Visit| {
        if at.c() != here.base() || !is_posted {
            return walk::read_pointers(by.env, at).await;
        }
        *has_begun = true;
        let post = mailbox::post(by.env, at, here.encode());
        let span = span::in_configuration!(span::CONFIG_READ, at.c());
        posted = post.instrument(span).await?;
        Ok(())
    };
    let path = walk::path_asking(by.env, by.sequences, known, ask).await;
    let path = path.map_err(|unavailable| ReconfigError::on_the_way(unavailable, *has_begun))?;
    Ok(Look { path, posted })
}

/// The configuration to propose: the result of the change with those that others posted, or alone.
async fn proposal(
    here: &Change,
    posted: &BTreeSet<Bytes>,
    approves: &impl AsyncFn(&Change) -> bool,
) -> Arc<Configuration> {
    let others = posted
        .iter()
        .filter_map(|it| Change::decode(here.base(), it));
    let others: Vec<Change> = others.filter(|other| other != here).collect();
    let joined = here.join(&others);
    match joined.made() == here.made() || approves(&joined).await {
        true => joined.made().clone(),
        false => here.made().clone(),
    }
}

/// The path ends with a configuration that has the change: it is finished, if it is pending.
async fn conclude<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: Vec<Arc<Configuration>>,
    has_begun: bool,
) -> Result<ReconfigOutcome, ReconfigError> {
    let last = path.last().expect("a sequence has an end").clone();
    let is_pending = path.len() > 1;
    let installed = finished(by, path).await?;
    assert!(!installed.precedes(&last), "finishing never leads back");
    Ok(match (installed == last, has_begun || is_pending) {
        (true, true) => ReconfigOutcome::Installed(installed),
        (true, false) => ReconfigOutcome::Unchanged(installed),
        (false, _) => ReconfigOutcome::Superseded(installed),
    })
}

/// The configuration that is final once the path is finished.
async fn finished<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    path: Vec<Arc<Configuration>>,
) -> Result<Arc<Configuration>, ReconfigError> {
    match <[_; 1]>::try_from(path) {
        Ok([last]) => Ok(last),
        Err(path) => {
            let finished = finish(by, path, None).await?;
            Ok(finished.expect("it is not left off"))
        }
    }
}
