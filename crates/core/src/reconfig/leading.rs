//! The leader of L-Rambo, and the wait for it (`docs/spec` 6.5, `[R-31 designated-leader]`).
//!
//! A server leads. It reads what reconfigurers posted in the last configuration, has one successor established with all of that which goes
//! together, and finishes it. It has no change of its own, and posts nothing: what was posted in an earlier configuration
//! may have been refused since. Nothing rests on there being one leader: it proposes as every reconfigurer does.
//!
//! A reconfigurer posts its change and waits, as long as the leader gets on. Then it makes the change itself, with what others
//! posted, and finishes what is pending. So a leader that dies, at any step, costs a patience.
//!
//! | | rounds |
//! |---|---|
//! | [`lead`] | those of a reconfigurer; 2 to establish a successor of a configuration that it proposed |
//! | [`LeaderWait`] | one look along the path for each pause |

use super::ares::{self, AresError, Reconfigurer};
use super::{lattice, walk};
use crate::config::{Configuration, ConfigurationId};
use crate::consensus::Consensus;
use crate::consensus::mailbox::{self, PostedChanges};
use crate::env::Env;
use crate::gather::Visit;
use crate::instant::Instant;
use crate::span;
use crate::timing::{LEADER_PAUSE, LEADER_PAUSE_MOST};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// Makes what was posted in a configuration, and returns the one that is final then; `None`: there is nothing to make, and nothing to
/// finish. `known`: any final configuration of the domain. `posted`: what the leader's own server has.
///
/// # Errors
/// [`AresError`].
pub async fn lead<E: Env, C: Consensus<E>>(
    by: &Reconfigurer<'_, E, C>,
    known: &Arc<Configuration>,
    posted: &PostedChanges,
) -> Result<Option<Arc<Configuration>>, AresError> {
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
                _ => ares::finish(by, path, None).await,
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
) -> Result<(Vec<Arc<Configuration>>, BTreeSet<Bytes>), AresError> {
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
    let path = path.map_err(AresError::Pending)?;
    Ok((path, all))
}

/// The wait of a reconfigurer for the leader.
pub(super) struct LeaderWait {
    /// How long the leader may take until something is new; none once the reconfigurer has taken over.
    patience: Duration,
    /// Where the path ended at the last look, and until when it is waited for that to change.
    last: Option<(ConfigurationId, Instant)>,
    pause: Duration,
}

impl LeaderWait {
    pub(super) fn new(patience: Duration) -> LeaderWait {
        LeaderWait {
            patience,
            last: None,
            pause: LEADER_PAUSE,
        }
    }

    /// Waits until it is time for another look. False: the leader does not get on, and the reconfigurer takes over, to the end.
    pub(super) async fn a_little<E: Env>(&mut self, env: &E, last: &Configuration) -> bool {
        let (now, id) = (env.now(), last.id());
        let known = self.last.filter(|(known, _)| *known == id);
        let (_, until) = known.unwrap_or_else(|| {
            self.pause = LEADER_PAUSE;
            (id, now.plus(self.patience))
        });
        self.last = Some((id, until));
        if now >= until {
            self.patience = Duration::ZERO;
            return false;
        }
        env.sleep(self.pause.min(until.since(now))).await;
        self.pause = (self.pause * 5 / 4).min(LEADER_PAUSE_MOST);
        true
    }
}
