//! The leader of L-Rambo, and the wait for it (`docs/spec` 6.5, `[R-31 designated-leader]`).
//!
//! A server leads. It reads what reconfigurers posted in the last configuration, has one successor established with all of that which goes
//! together, and finishes it. It has no change of its own, and posts nothing: what was posted in an earlier configuration
//! may have been refused since. Nothing rests on there being one leader: it proposes as every reconfigurer does.
//!
//! A reconfigurer posts its change and waits, as long as the leader gets on: the path changes, or the leader's status says that it has
//! transferred more. Then it makes the change itself, with what others posted, and finishes what is pending. So a leader that dies, at
//! any step, costs two patiences at most.
//!
//! | | rounds |
//! |---|---|
//! | [`lead`] | those of a reconfigurer; 2 to establish a successor of a configuration that it proposed |
//! | [`LeaderWait`] | one look along the path for each pause, and one at the leader for each patience |

use super::ares::{self, AresError, Reconfigurer};
use super::transfer::Progress;
use super::{lattice, walk};
use crate::config::{Configuration, ConfigurationId, Members, ServerId};
use crate::consensus::Consensus;
use crate::consensus::mailbox::{self, PostedChanges};
use crate::env::Env;
use crate::gather::{self, Visit};
use crate::instant::Instant;
use crate::message::{Reply, Request, Transferred};
use crate::span;
use crate::timing::{HOLDINGS_PATIENCE, LEADER_PAUSE, LEADER_PAUSE_MOST};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// Makes the changes that were posted in a configuration, and returns the configuration that is final then; `None`:
/// there is nothing to make, and nothing to finish. `known`: any final configuration of the domain. `posted`: the
/// changes at the leader's own server.
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
    /// The longest time that the leader may take until something is new; none once the reconfigurer has taken over.
    patience: Duration,
    /// The end of the path at the last look, and the time until which a change of it is waited for.
    last: Option<(ConfigurationId, Instant)>,
    /// The most that a leader is known to have transferred since. One that fails, and begins again, gets on when it has come farther.
    most: Transferred,
    pause: Duration,
}

impl LeaderWait {
    pub(super) fn new(patience: Duration) -> LeaderWait {
        LeaderWait {
            patience,
            last: None,
            most: Transferred::default(),
            pause: LEADER_PAUSE,
        }
    }

    /// Waits until it is time for another look at the path. False: the leader does not get on, and the reconfigurer takes over, to the end.
    pub(super) async fn a_little<E: Env, C>(
        &mut self,
        by: &Reconfigurer<'_, E, C>,
        path: &[Arc<Configuration>],
    ) -> bool {
        if self.patience.is_zero() {
            return false;
        }
        let last = path.last().expect("there is a first configuration");
        let (now, id) = (by.env.now(), last.id());
        let known = self.last.filter(|(known, _)| *known == id);
        if known.is_none() {
            (self.pause, self.most) = (LEADER_PAUSE, Transferred::default());
            report(by, last.leader(), self.most);
        }
        let mut until = known.map_or_else(|| now.plus(self.patience), |(_, until)| until);
        if now >= until {
            if !self.gets_on(by, path).await {
                self.patience = Duration::ZERO;
                return false;
            }
            until = by.env.now().plus(self.patience);
        }
        self.last = Some((id, until));
        by.env.sleep(self.pause.min(until.since(now))).await;
        self.pause = (self.pause * 5 / 4).min(LEADER_PAUSE_MOST);
        true
    }

    /// True if a leader has transferred more than was known. Those of earlier configurations of the path may be at work, too.
    async fn gets_on<E: Env, C>(
        &mut self,
        by: &Reconfigurer<'_, E, C>,
        path: &[Arc<Configuration>],
    ) -> bool {
        let leaders: BTreeSet<ServerId> = path.iter().filter_map(|c| c.leader()).collect();
        let leaders: Members = leaders.into_iter().collect();
        let patience = Some(HOLDINGS_PATIENCE);
        let replies = gather::survey_for(by.env, &leaders, Request::Status, patience).await;
        let domain = path[0].id().domain;
        let before = self.most;
        for (leader, reply) in leaders.iter().zip(replies) {
            let Some(Reply::Status(status)) = reply else {
                continue;
            };
            let standing = status.leads.iter().find(|it| it.domain == domain);
            if let Some(standing) = standing.filter(|it| it.transferred > self.most) {
                self.most = standing.transferred;
                report(by, Some(*leader), self.most);
            }
        }
        self.most > before
    }
}

fn report<E, C>(by: &Reconfigurer<'_, E, C>, leader: Option<ServerId>, transferred: Transferred) {
    if let Some(leader) = leader {
        (by.progress)(Progress::Waiting {
            leader,
            transferred,
        });
    }
}
