//! The messages that a server takes before another one: other messages that are on their way to it.

use super::engine::Engine;
use super::state::State;
use std::collections::BTreeSet;

/// A message of a client: the client, its number, and its content.
type Whose = (usize, u16, u32);

/// A server after messages on their way to it.
#[derive(Clone)]
pub(super) struct Passage {
    pub(super) at: u32,
    /// The messages that the server took: client, and number of the message.
    pub(super) taken: Vec<(usize, u16)>,
    /// The answers that clients wait for.
    pub(super) answers: BTreeSet<(usize, (u16, u32))>,
    /// Notes that the server sent: recipient, and message.
    pub(super) said: BTreeSet<(usize, u32)>,
    /// The state before the last of these messages, if a client sent it, and its content.
    last: Option<(u32, u32)>,
}

/// A message or another event that a server takes on the way.
struct Passing {
    word: u32,
    /// The client and the number of its message; `None` if the event is no message of a client.
    whose: Option<(usize, u16)>,
    /// Equal to `whose` if the client waits for the answer, else `None`.
    answers: Option<(usize, u16)>,
}

impl Passage {
    pub(super) fn apply(&self, state: &mut State, server: usize) {
        state.moves(server, self.at, self.said.iter());
        for (client, message) in &self.taken {
            let pending = &mut state.clients[*client].pending;
            pending.retain(|pending| pending != message);
        }
        for (client, (message, answer)) in &self.answers {
            state.answer(*client, *message, *answer);
        }
    }
}

impl Engine {
    /// The states that a server may reach by messages on their way to it, before it takes `next`. If two ways lead to
    /// one state and give equal answers, the way with more messages is left out, because a message that no client
    /// waits for may stay on its way. A way whose last message might as well be taken after `next` is left out, too.
    pub(super) fn passages(
        &mut self,
        state: &State,
        server: usize,
        next: Option<Whose>,
    ) -> Result<Vec<Passage>, String> {
        let mut waiting = Vec::new();
        for (client, part) in state.clients.iter().enumerate() {
            let seen = self.seen(state, client);
            for message in &part.pending {
                let sent = seen.sent[usize::from(*message)];
                let is_next = next.is_some_and(|(of, it, _)| (of, it) == (client, *message));
                if sent.server == server && !is_next {
                    let whose = (client, *message, sent.message);
                    waiting.push((whose, seen.is_awaited(*message)));
                }
            }
        }
        let mut found = vec![Passage {
            at: state.servers[server],
            taken: Vec::new(),
            answers: BTreeSet::new(),
            said: BTreeSet::new(),
            last: None,
        }];
        let mut place = 0;
        while place < found.len() {
            let from = found[place].clone();
            place += 1;
            for ((client, message, word), is_awaited) in &waiting {
                let whose = (*client, *message);
                if !from.taken.contains(&whose) {
                    let message = Passing {
                        word: *word,
                        whose: Some(whose),
                        answers: is_awaited.then_some(whose),
                    };
                    self.found(server, &from, &message, &mut found)?;
                }
            }
            let passes = [self.quiet, self.full[server], self.gossip[server]];
            for passes in passes.into_iter().flatten() {
                let message = Passing {
                    word: passes,
                    whose: None,
                    answers: None,
                };
                self.found(server, &from, &message, &mut found)?;
            }
        }
        let Some((_, _, word)) = next else {
            return Ok(found);
        };
        let mut needed = Vec::new();
        for passage in found {
            if !self.commutes(server, &passage, word)? {
                needed.push(passage);
            }
        }
        Ok(needed)
    }

    /// True if the last message of the passage and `next` have equal effects and answers in either order.
    fn commutes(&mut self, server: usize, passage: &Passage, next: u32) -> Result<bool, String> {
        let (Some((before, last)), false) = (passage.last, self.case.speaks) else {
            return Ok(false);
        };
        let after = (
            self.take(server, before, last)?.answer,
            self.take(server, passage.at, next)?,
        );
        let first = self.take(server, before, next)?;
        if first.answer != after.1.answer {
            return Ok(false);
        }
        let second = self.take(server, first.next, last)?;
        Ok((second.answer, second.next) == (after.0, after.1.next))
    }

    fn found(
        &mut self,
        server: usize,
        from: &Passage,
        message: &Passing,
        found: &mut Vec<Passage>,
    ) -> Result<(), String> {
        let next = self.take(server, from.at, message.word)?;
        assert!(
            next.said.is_empty() || self.case.speaks,
            "the case says whether servers speak"
        );
        let mut more = Passage {
            at: next.next,
            last: message.whose.map(|_| (from.at, message.word)),
            ..from.clone()
        };
        more.taken.extend(message.whose);
        if let Some((client, number)) = message.answers {
            let answer = next.answer.expect("requests are answered");
            more.answers.insert((client, (number, answer)));
        }
        more.said.extend(next.said.iter().copied());
        let covered = |other: &Passage| {
            (other.at, &other.said, &other.answers) == (more.at, &more.said, &more.answers)
                && other.taken.iter().all(|one| more.taken.contains(one))
        };
        if !found.iter().any(covered) {
            found.push(more);
        }
        Ok(())
    }
}
