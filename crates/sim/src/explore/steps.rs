//! The steps from one state to others.
//!
//! A step is: operations begin, servers take messages, and one client reads answers until it goes on. What is taken is what
//! the client reads the answers to, and before each of these, at the same server, any of the other messages that are on their way
//! there. Why these steps are enough stands in `docs/simulator.md`; in short:
//!
//! - *Deliveries to different servers commute*, and so does a delivery with everything that clients do, but for the reading of its
//!   answer. So a message is taken immediately before its answer is read, or immediately before another message that the same server
//!   takes so, or never. That is the latest moment; what a client does, and in which order clients do it, stays the same. A question
//!   that no client waits for changes nothing: it is dropped.
//! - *An answer that leaves its client waiting* has no visible effect: it is read immediately before the one that moves the
//!   client on.
//! - *An operation begins* when the first of its messages is taken: that only forbids more.
//! - *A message that changes nothing any more*, and that no client waits for, is dropped. Module `spent` checks that it never would.

use super::belated::Passage;
use super::engine::Engine;
use super::servers::ServerStep;
use super::state::{CRASHED, Reading, State, Step, is_crashed};
use std::collections::HashSet;
use std::rc::Rc;

/// A state in which servers have taken messages that a client is to read the answers to.
#[derive(Clone)]
struct Arrival {
    state: State,
    /// The taken messages, whose answers the client reads.
    newest: Vec<u16>,
    step: Step,
}

impl Engine {
    /// The states to which one step leads, each with the step.
    pub(super) fn successors(
        &mut self,
        state: &State,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        let mut idle = Vec::new();
        for client in 0..state.clients.len() {
            if self.seen(state, client).is_busy {
                continue;
            }
            let Some(invoked) = self.invoke(state, client)? else {
                continue;
            };
            let seen = self.seen(&invoked, client);
            if seen.is_busy && seen.sent.iter().any(|sent| sent.call.is_some()) {
                idle.push(client);
            } else {
                // It sends nothing that could be taken.
                out.push((invoked, Step::beginning(vec![client])));
            }
        }
        // Each of those that begin here must matter to the step.
        for begun in 0..1_usize << idle.len() {
            let begins = |place: &usize| begun & (1 << place) != 0;
            let begun: Vec<usize> = (0..idle.len()).filter(begins).map(|at| idle[at]).collect();
            let mut from = state.clone();
            for client in &begun {
                from = self.invoke(&from, *client)?.expect("it was begun before");
            }
            let step = Step::beginning(begun);
            for client in 0..from.clients.len() {
                if self.seen(&from, client).is_busy {
                    self.moves_on(&from, client, &step, out)?;
                }
            }
            self.crashes(&from, &step, out)?;
            self.speaks(&from, &step, out)?;
        }
        self.hears(state, out)
    }

    /// Adds a step, if all that begin in it matter to it.
    fn emit(
        &mut self,
        mut next: State,
        step: Step,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        let reads = |client: usize| step.reads.as_ref().is_some_and(|(of, _)| *of == client);
        let taken = || step.takes.iter().flat_map(|(_, taken)| taken);
        let takes = |client: usize| taken().any(|(of, _)| *of == client);
        let matters = |client: &usize| reads(*client) || takes(*client);
        if !step.invokes.iter().all(matters) {
            return Ok(());
        }
        if self.is_over(&next) {
            // Nothing that is still on its way can be seen by any client.
            for part in &mut next.clients {
                part.pending.clear();
                part.unread.clear();
            }
            next.said.clear();
        } else {
            self.drop_spent(&mut next)?;
        }
        out.push((next, step));
        Ok(())
    }

    /// A note between servers arrives, at any moment or never. Hearing is a step of its own, because it may make the
    /// server send notes.
    fn hears(&mut self, state: &State, out: &mut Vec<(State, Step)>) -> Result<(), String> {
        for (server, message) in &state.said {
            let taken = self.take(*server, state.servers[*server], *message)?;
            let mut next = state.clone();
            next.said.remove(&(*server, *message));
            next.moves(*server, taken.next, taken.said.iter());
            let hears = Some((*server, *message));
            let step = Step {
                hears,
                ..Step::default()
            };
            self.emit(next, step, out)?;
        }
        Ok(())
    }

    /// A message that makes a server speak is taken in a step of its own, too.
    fn speaks(
        &mut self,
        state: &State,
        begins: &Step,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        if !self.case.speaks {
            return Ok(());
        }
        for server in 0..state.servers.len() {
            if is_crashed(state.servers[server]) {
                continue;
            }
            for passage in self.passages(state, server, None)? {
                if !passage.said.is_empty() {
                    let (next, step) = passed(state, server, &passage, begins);
                    self.emit(next, step, out)?;
                }
            }
        }
        Ok(())
    }

    /// Servers stop. Before that they may have answered messages whose answers a client reads later.
    fn crashes(
        &mut self,
        state: &State,
        begins: &Step,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        let crashed = state.servers.iter().filter(|server| is_crashed(**server));
        if crashed.count() >= self.case.crashes {
            return Ok(());
        }
        for server in 0..state.servers.len() {
            if is_crashed(state.servers[server]) {
                continue;
            }
            for passage in self.passages(state, server, None)? {
                let is_awaited = |whose: &(usize, u16)| {
                    let mut answers = passage.answers.iter();
                    answers.any(|(client, (message, _))| (*client, *message) == *whose)
                };
                // What no client waits for changes nothing any more.
                if passage.taken.last().is_some_and(|last| !is_awaited(last)) {
                    continue;
                }
                let (mut next, mut step) = passed(state, server, &passage, begins);
                next.servers[server] |= CRASHED;
                next.said.retain(|(to, _)| *to != server);
                for client in 0..next.clients.len() {
                    let seen = self.seen(state, client);
                    let to = |message: &u16| seen.sent[usize::from(*message)].server;
                    let pending = &mut next.clients[client].pending;
                    pending.retain(|message| to(message) != server);
                }
                step.crashes = Some(server);
                self.emit(next, step, out)?;
            }
        }
        Ok(())
    }

    /// The client reads what moves it on.
    fn moves_on(
        &mut self,
        state: &State,
        client: usize,
        begins: &Step,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        for arrival in self.arrivals(state, client, begins)? {
            let Arrival {
                state,
                newest,
                step,
            } = arrival;
            let part = &state.clients[client];
            // Calls of one client do not commute: what one has is read whenever it likes.
            let is_alone = self.seen(&state, client).open.len() == 1;
            if is_alone && newest.is_empty() && part.unread.is_empty() {
                continue;
            }
            let readings = self.readings(client, part.node, &part.unread, &newest)?;
            for Reading { node, fed, unread } in readings.iter() {
                if is_alone && !fed.iter().any(|input| input.is_answer()) {
                    continue;
                }
                let mut next = state.clone();
                next.clients[client].unread.clone_from(unread);
                self.put(&mut next, client, *node);
                let reads = Some((client, fed.clone()));
                let step = Step {
                    reads,
                    ..step.clone()
                };
                self.emit(next, step, out)?;
            }
        }
        Ok(())
    }

    /// The messages that servers may have taken when the client reads: any of those that it waits for, each with the
    /// messages before it.
    fn arrivals(
        &mut self,
        state: &State,
        client: usize,
        begins: &Step,
    ) -> Result<Vec<Arrival>, String> {
        let mut known = HashSet::new();
        let mut found = vec![Arrival {
            state: state.clone(),
            newest: Vec::new(),
            step: begins.clone(),
        }];
        let mut place = 0;
        while place < found.len() {
            let from = found[place].clone();
            place += 1;
            for message in from.state.clients[client].pending.clone() {
                let seen = self.seen(&from.state, client);
                let is_next = from.newest.last().is_none_or(|last| *last < message);
                if !is_next || !seen.is_awaited(message) {
                    continue;
                }
                let sent = seen.sent[usize::from(message)];
                let whose = (client, message, sent.message);
                for passage in self.passages(&from.state, sent.server, Some(whose))? {
                    let (mut state, mut step) =
                        passed(&from.state, sent.server, &passage, &from.step);
                    let ServerStep { next, answer, said } =
                        self.take(sent.server, passage.at, sent.message)?;
                    state.moves(sent.server, next, said.iter());
                    state.answer(client, message, answer.expect("requests are answered"));
                    let (_, taken) = step.takes.last_mut().expect("it was passed");
                    taken.push((client, message));
                    let mut newest = from.newest.clone();
                    newest.push(message);
                    if known.insert((state.hash(), newest.clone())) {
                        found.push(Arrival {
                            state,
                            newest,
                            step,
                        });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Clients that wait while nothing that is on its way to them moves them on: their patience runs out until they move on.
    ///
    /// Returns false for a client that does not move on then either.
    pub(super) fn unstick(
        &mut self,
        state: &State,
        out: &mut Vec<(State, Step)>,
    ) -> Result<bool, String> {
        // An operation that gets nowhere without patience begins in a step of its own.
        for client in 0..state.clients.len() {
            if self.seen(state, client).is_busy {
                continue;
            }
            if let Some(invoked) = self.invoke(state, client)? {
                out.push((invoked, Step::beginning(vec![client])));
            }
        }
        if !out.is_empty() {
            return Ok(true);
        }
        for client in 0..state.clients.len() {
            if !self.seen(state, client).is_busy {
                continue;
            }
            for arrival in self.arrivals(state, client, &Step::default())? {
                let Arrival { state, step, .. } = arrival;
                let part = &state.clients[client];
                let (node, unread) = (part.node, part.unread.clone());
                let seen = self.seen(&state, client);
                if part.pending.iter().any(|message| seen.is_awaited(*message)) {
                    continue;
                }
                let Some(reading) = self.wait_long(client, node, &unread)? else {
                    return Ok(false);
                };
                let mut next = state.clone();
                next.clients[client].unread = reading.unread;
                self.put(&mut next, client, reading.node);
                let reads = Some((client, reading.fed));
                let step = Step { reads, ..step };
                self.emit(next, step, out)?;
            }
        }
        Ok(true)
    }

    /// The possible readings of a client; cached.
    fn readings(
        &mut self,
        client: usize,
        node: u32,
        unread: &[(u16, u32)],
        newest: &[u16],
    ) -> Result<Rc<[Reading]>, String> {
        let key = (client, node, unread.to_vec(), newest.to_vec());
        if let Some(known) = self.readings.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut found = Vec::new();
        let (mut fed, mut been) = (Vec::new(), HashSet::new());
        let from = (node, unread, newest);
        self.read_on(client, from, (&mut fed, &mut been), &mut found)?;
        let found: Rc<[Reading]> = found.into();
        self.readings.insert(key, Rc::clone(&found));
        Ok(found)
    }
}

/// The state after the passage, and the step that leads there.
fn passed(state: &State, server: usize, passage: &Passage, begins: &Step) -> (State, Step) {
    let (mut next, mut step) = (state.clone(), begins.clone());
    passage.apply(&mut next, server);
    step.takes.push((server, passage.taken.clone()));
    (next, step)
}
