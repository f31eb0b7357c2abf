//! How a server is, and what it says of itself.

use super::{Identity, Server};
use crate::config::ServerId;
use crate::instant::Instant;
use crate::message::{Note, ServerRecord, ServerStatus};

impl Server {
    /// What it says to other servers of its own accord. It leaves when the steps taken with it are durable.
    pub(crate) fn take_sends(&mut self) -> Vec<(ServerId, Note)> {
        match self.serving {
            true => {
                let Identity {
                    id, incarnation, ..
                } = self.identity;
                self.registry.introduce(id, incarnation)
            }
            false => Vec::new(),
        }
    }

    /// The records of servers that changed since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<ServerRecord> {
        self.registry.take_news()
    }

    /// It has gone over its objects, all of them or some, and lacks so many (`[X-26 self-repair]`).
    pub(crate) fn gone_over(&mut self, now: Instant, lacking: u64, is_all: bool) {
        assert!(self.serving, "before that it is no member");
        self.lacking = lacking;
        if is_all {
            self.proven = Some(now);
        }
    }

    pub(super) fn status(&self, now: Instant) -> ServerStatus {
        let mut status = ServerStatus {
            incarnation: self.identity.incarnation,
            serving: self.serving,
            durable: self.identity.durable,
            configurations: self.states.len() as u64,
            trimmed: self.ledger.trimmed,
            repaired: self.ledger.repaired,
            lacking: self.lacking,
            proven_ms: self.proven.map(|at| now.since(at).as_millis() as u64),
            ..ServerStatus::default()
        };
        for state in self.states.values() {
            state.count(now, &mut status);
        }
        status
    }
}
