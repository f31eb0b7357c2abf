//! The wait of a reconfigurer for the leader of L-Rambo (`docs/spec` 6.5, `[R-31 designated-leader]`).
//!
//! A reconfigurer posts its change and waits, as long as the leader gets on: the path changes, or the leader's status says that it has
//! transferred more. Then it makes the change itself, with what others posted, and finishes what is pending. So a leader that dies, at
//! any step, costs two patiences at most. Such a wait takes one look along the path for each pause, and one at the leader for each patience.

use super::Reconfigurer;
use super::transfer::Progress;
use crate::config::{Configuration, ConfigurationId, Members, ServerId};
use crate::env::Env;
use crate::gather;
use crate::instant::Instant;
use crate::message::{Reply, Request, Transferred};
use crate::timing::{HOLDINGS_PATIENCE, LEADER_PAUSE, LEADER_PAUSE_MOST};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

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
