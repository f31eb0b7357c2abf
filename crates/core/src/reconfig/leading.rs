//! The leader of L-Rambo (`docs/spec` 6.5, `[R-31 designated-leader]`).
//!
//! A server leads. It reads what reconfigurers posted in the last configuration, has one successor established with all of that which goes
//! together, and finishes it. It has no change of its own, and posts nothing: what was posted in an earlier configuration
//! may have been refused since. Nothing rests on there being one leader: it proposes as every reconfigurer does.
//!
//! | | rounds |
//! |---|---|
//! | [`lead`] | those of a reconfigurer; 2 to establish a successor of a configuration that it proposed |

use super::finish::finish;
use super::{ReconfigError, Reconfigurer};
use super::{lattice, walk};
use crate::config::Configuration;
use crate::consensus::Consensus;
use crate::consensus::mailbox::{self, PostedChanges};
use crate::env::Env;
use crate::gather::Visit;
use crate::span;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::Instrument;

/// Makes the changes that were posted in a configuration, and returns the configuration that is final then; `None`:
/// there is nothing to make, and nothing to finish. `known`: any final configuration of the domain. `posted`: the
/// changes at the leader's own server.
///
/// # Errors
/// [`ReconfigError`].
pub async fn lead<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    posted: &PostedChanges,
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let leading = async {
        loop {
            let (path, all) = look(by, known, posted).await?;
            let last = path.last().expect("there is a first configuration");
            let there = lattice::membership_of(last);
            // What was posted in an earlier one is for its reconfigurer to post again.
            let todo = match *last == posted.configuration {
                true => lattice::batch(last, there, &all),
                false => there.clone(),
            };
            assert!(there.is_within(&todo), "it adds to what is there");
            if todo != *there {
                lattice::extend(by, &path, &todo, &all).await?;
                continue;
            }
            return match path.len() {
                1 => Ok(None),
                _ => finish(by, path, None).await,
            };
        }
    };
    span::watch!(span::of_phase!(span::RECONFIG), leading)
}

/// Goes along the path, and reads the mailbox where the changes were posted. Returns the path and all that is known to be posted there.
async fn look<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    posted: &PostedChanges,
) -> Result<(Vec<Arc<Configuration>>, BTreeSet<Bytes>), ReconfigError> {
    let mut all = posted.changes.clone();
    let ask = async |at: &Visit| {
        if *at.c() != posted.configuration {
            return walk::read_pointers(by.env, at).await;
        }
        let span = span::in_configuration!(span::CONFIG_READ, at.c());
        let read = mailbox::read(by.env, at).instrument(span).await;
        all.extend(read?);
        Ok(())
    };
    let path = walk::path_asking(by.env, by.sequences, known, ask).await;
    let path = path.map_err(ReconfigError::Pending)?;
    Ok((path, all))
}
