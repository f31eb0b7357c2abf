//! Messages that no client waits for.

use super::engine::Engine;
use super::state::State;
use std::collections::BTreeSet;

/// A server after messages that no client waits for.
#[derive(Clone)]
pub(super) struct BelatedServer {
    /// Its state.
    pub(super) at: u32,
    /// What it took: of whom, and which.
    pub(super) taken: Vec<(usize, u16)>,
    /// What it said.
    pub(super) said: BTreeSet<(usize, u32)>,
}

impl BelatedServer {
    pub(super) fn apply(&self, state: &mut State, server: usize) {
        state.moves(server, self.at, self.said.iter());
        for (client, message) in &self.taken {
            let pending = &mut state.clients[*client].pending;
            pending.retain(|pending| pending != message);
        }
    }
}

impl Engine {
    /// What may become of a server by messages that no client waits for, with the messages that it took: its state as it is
    /// among them. Of two ways to one state the one that took more is left out: what is on its way may stay there.
    pub(super) fn belated(
        &mut self,
        state: &State,
        server: usize,
    ) -> Result<Vec<BelatedServer>, String> {
        let mut waiting = Vec::new();
        for (client, part) in state.clients.iter().enumerate() {
            let seen = self.seen(state, client);
            for message in &part.pending {
                let sent = seen.sent[usize::from(*message)];
                if sent.server == server && !seen.is_awaited(*message) {
                    waiting.push((client, *message, sent.message));
                }
            }
        }
        let mut found = vec![BelatedServer {
            at: state.servers[server],
            taken: Vec::new(),
            said: BTreeSet::new(),
        }];
        let mut place = 0;
        while place < found.len() {
            let from = found[place].clone();
            place += 1;
            for (client, message, word) in &waiting {
                let whose = (*client, *message);
                if !from.taken.contains(&whose) {
                    self.found(server, &from, (*word, Some(whose)), &mut found)?;
                }
            }
            let passes = [self.quiet, self.full[server], self.gossip[server]];
            for passes in passes.into_iter().flatten() {
                self.found(server, &from, (passes, None), &mut found)?;
            }
        }
        Ok(found)
    }

    fn found(
        &mut self,
        server: usize,
        from: &BelatedServer,
        (message, whose): (u32, Option<(usize, u16)>),
        found: &mut Vec<BelatedServer>,
    ) -> Result<(), String> {
        let next = self.take(server, from.at, message)?;
        assert!(
            next.said.is_empty() || self.case.speaks,
            "the case says whether servers speak"
        );
        let mut more = BelatedServer {
            at: next.next,
            ..from.clone()
        };
        more.taken.extend(whose);
        more.said.extend(next.said.iter().copied());
        let covered = |other: &BelatedServer| {
            (other.at, &other.said) == (more.at, &more.said)
                && other.taken.iter().all(|one| more.taken.contains(one))
        };
        if !found.iter().any(covered) {
            found.push(more);
        }
        Ok(())
    }
}
