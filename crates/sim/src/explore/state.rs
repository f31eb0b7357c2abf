//! States of a case, and how one leads to others.
//!
//! A state says where each client and each server is, which messages have not been taken by a server, and which answers
//! have not been read by their client. A step is: one server takes, after any notes and belated messages for which it is
//! the moment, one message that somebody waits for, and the client that waits for the answer perhaps reads it, after any
//! of the answers that it has not read yet. Why these steps are enough stands in `docs/simulator.md`; in short:
//!
//! - *Deliveries to different servers commute*, so a state does not contain the order in which they were made.
//! - *A message that nobody waits for* changes what its server answers next and nothing else: it is taken immediately
//!   before something that somebody waits for, or never. A question that nobody waits for changes nothing: it is dropped.
//! - *An answer that leaves its client waiting* is seen by nobody: it is read immediately before the one that moves the
//!   client on. And that happens as soon as the last of the answers was given: it commutes with what others did
//!   meanwhile, and an earlier end of an operation only forbids more.
//! - *An operation begins* when the first of its messages is taken: that, too, only forbids more.

use super::clients::{ClientView, Input};
use super::engine::Engine;
use super::servers::{Automaton, ServerStep};
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// Marks the state of a server that takes nothing any more.
pub(super) const CRASHED: u32 = 1 << 31;

pub(super) fn is_crashed(server: u32) -> bool {
    server & CRASHED != 0
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) clients: Vec<Part>,
    /// By server: its state, perhaps marked by [`CRASHED`].
    pub(super) servers: Vec<u32>,
    /// What servers said of their own accord and has not arrived: to which server, and the message. Each once: they join.
    pub(super) said: BTreeSet<(usize, u32)>,
}

/// A client's part of a state.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) node: u32,
    /// Messages that no server took, ascending.
    pub(super) pending: Vec<u16>,
    /// Answers that it has not read, ascending.
    pub(super) unread: Vec<(u16, u32)>,
    /// Of each of its operations: how many operations of each client had ended when it began.
    pub(super) after: Vec<u8>,
}

/// How a client may read on from where it is.
pub(super) struct Reading {
    pub(super) node: u32,
    /// What it was fed.
    pub(super) fed: Vec<Input>,
    /// What it has not read then.
    pub(super) unread: Vec<(u16, u32)>,
}

/// A step, as a schedule tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// The client whose next operation begins.
    pub(super) invokes: Option<usize>,
    /// The server that takes messages: of whom, and which.
    pub(super) takes: Option<(usize, Vec<(usize, u16)>)>,
    /// The server that hears what another one said, and the message.
    pub(super) hears: Option<(usize, u32)>,
    pub(super) crashes: Option<usize>,
    /// The client that reads.
    pub(super) reads: Option<(usize, Vec<Input>)>,
}

impl State {
    /// The server is there now, and has said that. What it said to a server that takes nothing any more is lost.
    pub(super) fn moves<'a>(
        &mut self,
        server: usize,
        at: u32,
        said: impl IntoIterator<Item = &'a (usize, u32)>,
    ) {
        self.servers[server] = at;
        let servers = &self.servers;
        let arrives = |(to, _): &&(usize, u32)| !is_crashed(servers[*to]);
        self.said.extend(said.into_iter().filter(arrives));
    }

    pub(super) fn hash(&self) -> u128 {
        let mut hash = Hash(0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b);
        for server in &self.servers {
            hash.add(u64::from(*server));
        }
        for (server, message) in &self.said {
            hash.add((*server as u64) << 32 | u64::from(*message));
        }
        for part in &self.clients {
            hash.add(u64::from(part.node) << 32 | (part.pending.len() as u64) << 16);
            hash.add((part.unread.len() as u64) << 16 | part.after.len() as u64);
            part.pending
                .iter()
                .for_each(|message| hash.add(u64::from(*message)));
            for (message, answer) in &part.unread {
                hash.add(u64::from(*message) << 32 | u64::from(*answer));
            }
            part.after
                .iter()
                .for_each(|count| hash.add(u64::from(*count)));
        }
        u128::from(hash.0) << 64 | u128::from(hash.1)
    }
}

struct Hash(u64, u64);

impl Hash {
    fn add(&mut self, word: u64) {
        use crate::random::mix;
        self.0 = mix(self.0 ^ word);
        self.1 = mix(self.1.rotate_left(23).wrapping_add(word) ^ 0x9e37_79b9_7f4a_7c15);
    }
}

impl Part {
    /// The client is at `node` now: new messages are on their way, and what nobody needs any more goes.
    fn move_to(
        &mut self,
        before: usize,
        node: u32,
        seen: &ClientView,
        lost: impl Fn(usize) -> bool,
    ) {
        self.node = node;
        for message in before..seen.sent.len() {
            if !lost(message) {
                self.pending
                    .push(u16::try_from(message).expect("cases are short"));
            }
        }
        self.pending.retain(|message| {
            !seen.sent[usize::from(*message)].is_question || seen.is_awaited(*message)
        });
        self.unread.retain(|(message, _)| seen.is_awaited(*message));
    }
}

impl Engine {
    pub(super) fn start(&self) -> State {
        let part = Part {
            node: 0,
            pending: Vec::new(),
            unread: Vec::new(),
            after: Vec::new(),
        };
        State {
            clients: vec![part; self.clients.len()],
            servers: vec![0; self.servers.len()],
            said: self.servers.iter().flat_map(Automaton::begins).collect(),
        }
    }

    /// The states to which one step leads, each with the step.
    pub(super) fn successors(
        &mut self,
        state: &State,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        for client in 0..state.clients.len() {
            if self.seen(state, client).is_busy {
                self.takes(state, client, None, out)?;
                if self.seen(state, client).open.len() > 1 {
                    // Calls of one client do not commute: what one has is read whenever it likes.
                    self.reads(state, client, None, &Step::default(), out)?;
                }
            } else if let Some(invoked) = self.invoke(state, client)? {
                let step = Step {
                    invokes: Some(client),
                    ..Step::default()
                };
                let seen = self.seen(&invoked, client);
                let waits = seen.is_busy && seen.sent.iter().any(|sent| sent.call.is_some());
                if waits {
                    self.takes(&invoked, client, Some(client), out)?;
                } else {
                    out.push((invoked, step));
                }
            }
        }
        self.crashes(state, out);
        self.hears(state, out)
    }

    /// What servers say of their own accord arrives, each at any moment or never. It leaves one out of the reductions above:
    /// what a server hears may make it speak, so that hearing is a step of its own. So is what no client waits for any more
    /// and makes a server speak.
    fn hears(&mut self, state: &State, out: &mut Vec<(State, Step)>) -> Result<(), String> {
        for (server, message) in &state.said {
            let taken = self.take(*server, state.servers[*server], *message)?;
            let mut next = state.clone();
            next.said.remove(&(*server, *message));
            next.moves(*server, taken.next, taken.said.iter());
            let hears = Some((*server, *message));
            out.push((
                next,
                Step {
                    hears,
                    ..Step::default()
                },
            ));
        }
        if !self.case.speaks {
            return Ok(());
        }
        for server in 0..state.servers.len() {
            if is_crashed(state.servers[server]) {
                continue;
            }
            for belated in self.belated(state, server)? {
                if belated.said.is_empty() {
                    continue;
                }
                let mut next = state.clone();
                belated.apply(&mut next, server);
                let takes = Some((server, belated.taken));
                out.push((
                    next,
                    Step {
                        takes,
                        ..Step::default()
                    },
                ));
            }
        }
        Ok(())
    }

    fn crashes(&self, state: &State, out: &mut Vec<(State, Step)>) {
        let crashed = state.servers.iter().filter(|server| is_crashed(**server));
        if crashed.count() >= self.case.crashes || self.is_over(state) {
            return;
        }
        for server in 0..state.servers.len() {
            if is_crashed(state.servers[server]) {
                continue;
            }
            let mut next = state.clone();
            next.servers[server] |= CRASHED;
            next.said.retain(|(to, _)| *to != server);
            for client in 0..next.clients.len() {
                let seen = self.seen(state, client);
                let to = |message: &u16| seen.sent[usize::from(*message)].server;
                next.clients[client]
                    .pending
                    .retain(|message| to(message) != server);
            }
            let crashes = Some(server);
            out.push((
                next,
                Step {
                    crashes,
                    ..Step::default()
                },
            ));
        }
    }

    /// The state in which the client has begun its next operation.
    fn invoke(&mut self, state: &State, client: usize) -> Result<Option<State>, String> {
        if self.seen(state, client).invoked == self.case.clients[client].len() {
            return Ok(None);
        }
        let mut next = state.clone();
        for other in 0..state.clients.len() {
            let ended = self.seen(state, other).ended.len();
            let ended = u8::try_from(ended).expect("cases are short");
            next.clients[client].after.push(ended);
        }
        let node = self.feed(client, state.clients[client].node, Input::Invoke)?;
        self.put(&mut next, client, node);
        Ok(Some(next))
    }

    /// The client of `state` is at `node` now.
    pub(super) fn put(&self, state: &mut State, client: usize, node: u32) {
        let before = self.seen(state, client).sent.len();
        let seen = self.clients[client].seen(node);
        let servers = &state.servers;
        let lost = |message: usize| {
            let sent = &seen.sent[message];
            is_crashed(servers[sent.server]) || (sent.call.is_none() && !self.case.notes)
        };
        state.clients[client].move_to(before, node, seen, lost);
    }

    /// Every message of the client that it waits for may be taken.
    fn takes(
        &mut self,
        state: &State,
        client: usize,
        invokes: Option<usize>,
        out: &mut Vec<(State, Step)>,
    ) -> Result<(), String> {
        for place in 0..state.clients[client].pending.len() {
            let message = state.clients[client].pending[place];
            let seen = self.seen(state, client);
            if !seen.is_awaited(message) {
                continue;
            }
            let sent = seen.sent[usize::from(message)];
            for belated in self.belated(state, sent.server)? {
                let mut moved = state.clone();
                belated.apply(&mut moved, sent.server);
                let ServerStep { next, answer, said } =
                    self.take(sent.server, belated.at, sent.message)?;
                moved.moves(sent.server, next, said.iter());
                let mut taken = belated.taken;
                let part = &mut moved.clients[client];
                part.pending.retain(|pending| *pending != message);
                let unread = (message, answer.expect("requests are answered"));
                let place = part.unread.partition_point(|known| *known < unread);
                part.unread.insert(place, unread);
                taken.push((client, message));
                let step = Step {
                    invokes,
                    takes: Some((sent.server, taken)),
                    ..Step::default()
                };
                let reads = self.reads(&moved, client, Some(message), &step, out)?;
                // Unread, if something else can still come that moves the client on.
                if !reads || self.expects(&moved, client, message) {
                    out.push((moved, step));
                }
            }
        }
        Ok(())
    }

    /// Whether another message of the call of `message` may still be taken, or other calls are open.
    fn expects(&self, state: &State, client: usize, message: u16) -> bool {
        let seen = self.seen(state, client);
        let call = seen.sent[usize::from(message)].call;
        let of_call = |message: &u16| seen.sent[usize::from(*message)].call == call;
        seen.open.len() > 1 || state.clients[client].pending.iter().any(of_call)
    }

    /// What the client may read; `newest` must be among it. Whether there is anything.
    fn reads(
        &mut self,
        state: &State,
        client: usize,
        newest: Option<u16>,
        step: &Step,
        out: &mut Vec<(State, Step)>,
    ) -> Result<bool, String> {
        let part = &state.clients[client];
        let readings = self.readings(client, part.node, &part.unread, newest)?;
        for Reading { node, fed, unread } in readings.iter() {
            let mut next = state.clone();
            next.clients[client].unread.clone_from(unread);
            self.put(&mut next, client, *node);
            if self.is_over(&next) {
                // Nothing that is still on its way can be seen by anybody.
                for part in &mut next.clients {
                    part.pending.clear();
                    part.unread.clear();
                }
                next.said.clear();
            }
            let reads = Some((client, fed.clone()));
            out.push((
                next,
                Step {
                    reads,
                    ..step.clone()
                },
            ));
        }
        Ok(!readings.is_empty())
    }

    /// Clients that wait while nothing is on its way to them: their patience runs out until they move on.
    ///
    /// Returns false for a client that does not move on then either.
    pub(super) fn unstick(
        &mut self,
        state: &State,
        out: &mut Vec<(State, Step)>,
    ) -> Result<bool, String> {
        for client in 0..state.clients.len() {
            if !self.seen(state, client).is_busy {
                continue;
            }
            let part = &state.clients[client];
            let (node, unread) = (part.node, part.unread.clone());
            if !self.readings(client, node, &unread, None)?.is_empty() {
                // It can read on, which it does as soon as it can: that is another path.
                return Ok(true);
            }
            let Some(reading) = self.wait_long(client, node, &unread)? else {
                return Ok(false);
            };
            let mut next = state.clone();
            next.clients[client].unread = reading.unread;
            self.put(&mut next, client, reading.node);
            let reads = Some((client, reading.fed));
            out.push((
                next,
                Step {
                    reads,
                    ..Step::default()
                },
            ));
        }
        Ok(true)
    }

    pub(super) fn seen(&self, state: &State, client: usize) -> &ClientView {
        self.clients[client].seen(state.clients[client].node)
    }

    /// Every operation of every client has ended.
    pub(super) fn is_over(&self, state: &State) -> bool {
        (0..state.clients.len())
            .all(|client| self.seen(state, client).ended.len() == self.case.clients[client].len())
    }

    /// The readings, remembered.
    pub(super) fn readings(
        &mut self,
        client: usize,
        node: u32,
        unread: &[(u16, u32)],
        newest: Option<u16>,
    ) -> Result<Rc<[Reading]>, String> {
        let key = (client, node, unread.to_vec(), newest);
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
