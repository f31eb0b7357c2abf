//! Messages that change nothing any more.
//!
//! A PREPARE or an ACCEPT that no client waits for, and that leaves its server as it is, is dropped: the register has promised
//! more than its ballot, or has its version already. Whether it would never change the server later is not for this module to know. It
//! notes where messages were dropped, and when all states are known it looks whether the message leaves each state to which the
//! server can come from there as it is. If not, the exploration begins again and drops nothing.

use super::engine::Engine;
use super::servers::Automaton;
use super::state::{State, is_crashed};
use std::collections::HashMap;

impl Engine {
    pub(super) fn drop_spent(&mut self, state: &mut State) -> Result<(), String> {
        if self.keeps_spent {
            return Ok(());
        }
        for client in 0..state.clients.len() {
            for message in state.clients[client].pending.clone() {
                let seen = self.seen(state, client);
                let sent = seen.sent[usize::from(message)];
                let at = state.servers[sent.server];
                let may_be_spent = self.words.may_be_spent(sent.message);
                if !may_be_spent || seen.is_awaited(message) || is_crashed(at) {
                    continue;
                }
                let taken = self.take(sent.server, at, sent.message)?;
                if taken.next == at && taken.said.is_empty() {
                    self.spent.insert((sent.server, sent.message, at));
                    let pending = &mut state.clients[client].pending;
                    pending.retain(|pending| *pending != message);
                }
            }
        }
        Ok(())
    }

    /// Checks that the dropped messages would have changed nothing at any later time.
    ///
    /// # Errors
    /// A message that would have.
    pub(super) fn check_spent(&mut self) -> Result<(), String> {
        let mut dropped: HashMap<(usize, u32), Vec<u32>> = HashMap::new();
        for (server, message, at) in self.spent.drain() {
            dropped.entry((server, message)).or_default().push(at);
        }
        let follows: Vec<HashMap<u32, Vec<u32>>> =
            self.servers.iter().map(Automaton::follows).collect();
        for ((server, message), mut reached) in dropped {
            let mut place = 0;
            while place < reached.len() {
                let at = reached[place];
                place += 1;
                let taken = self.take(server, at, message)?;
                if taken.next != at || !taken.said.is_empty() {
                    let message = self.words.message_of(message);
                    return Err(format!("a message was dropped too early: {message:?}"));
                }
                for next in follows[server].get(&at).into_iter().flatten() {
                    if !reached.contains(next) {
                        reached.push(*next);
                    }
                }
            }
        }
        Ok(())
    }
}
