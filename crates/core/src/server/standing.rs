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

    pub(super) fn status(&self, now: Instant) -> ServerStatus {
        let mut status = ServerStatus {
            incarnation: self.identity.incarnation,
            serving: self.serving,
            durable: self.identity.durable,
            configurations: self.states.len() as u64,
            trimmed: self.ledger.trimmed,
            repaired: self.ledger.repaired,
            ..ServerStatus::default()
        };
        for state in self.states.values() {
            state.count(now, &mut status);
        }
        status
    }
}
