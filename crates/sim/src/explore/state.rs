//! States of a case: where each client and each server is, which messages have not been taken by a server, and which answers have
//! not been read by their client. Module `steps` has what leads from one to another.

use super::clients::{ClientView, Input};
use super::engine::Engine;
use super::servers::Automaton;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Marks the state of a server that takes nothing any more.
pub(super) const CRASHED: u32 = 1 << 31;

pub(super) fn is_crashed(server: u32) -> bool {
    server & CRASHED != 0
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) clients: Vec<Part>,
    /// For each server its state, perhaps marked by [`CRASHED`].
    pub(super) servers: Vec<u32>,
    /// Notes between servers that have not arrived: recipient and message. Equal notes count once: servers join their
    /// content.
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
    /// For each of its operations the number of each client's operations that had ended when it began.
    pub(super) after: Vec<u8>,
}

/// A way in which a client may go on from its node.
pub(super) struct Reading {
    pub(super) node: u32,
    pub(super) fed: Vec<Input>,
    /// Answers that remain unread afterwards.
    pub(super) unread: Vec<(u16, u32)>,
}

/// A step, as a schedule tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// The clients whose next operations begin.
    pub(super) invokes: Vec<usize>,
    /// The servers that take messages: of whom, and which.
    pub(super) takes: Vec<(usize, Vec<(usize, u16)>)>,
    /// The server that hears what another one said, and the message.
    pub(super) hears: Option<(usize, u32)>,
    pub(super) crashes: Option<usize>,
    /// The client that reads.
    pub(super) reads: Option<(usize, Vec<Input>)>,
}

impl Step {
    /// The next operations of these clients begin.
    pub(super) fn beginning(invokes: Vec<usize>) -> Step {
        Step {
            invokes,
            ..Step::default()
        }
    }

    /// Adds the inputs of each client.
    pub(super) fn feeds(&self, fed: &mut [Vec<Input>]) {
        for client in &self.invokes {
            fed[*client].push(Input::Invoke);
        }
        if let Some((client, inputs)) = &self.reads {
            fed[*client].extend(inputs);
        }
    }
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

    /// A server has answered a message that the client waits for.
    pub(super) fn answer(&mut self, client: usize, message: u16, answer: u32) {
        let part = &mut self.clients[client];
        part.pending.retain(|pending| *pending != message);
        let unread = (message, answer);
        let place = part.unread.partition_point(|known| *known < unread);
        part.unread.insert(place, unread);
    }

    /// Equal if all of it is equal.
    pub(super) fn hash(&self) -> u128 {
        let mut hash = Hash::default();
        hash.add_servers(self);
        for part in &self.clients {
            hash.add_part(part);
        }
        hash.end()
    }
}

struct Hash(u64, u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b)
    }
}

impl Hash {
    fn add(&mut self, word: u64) {
        use crate::random::mix;
        self.0 = mix(self.0 ^ word);
        self.1 = mix(self.1.rotate_left(23).wrapping_add(word) ^ 0x9e37_79b9_7f4a_7c15);
    }

    fn add_servers(&mut self, state: &State) {
        for server in &state.servers {
            self.add(u64::from(*server));
        }
        for (server, message) in &state.said {
            self.add((*server as u64) << 32 | u64::from(*message));
        }
    }

    fn add_part(&mut self, part: &Part) {
        self.add(u64::from(part.node) << 32 | (part.pending.len() as u64) << 16);
        self.add((part.unread.len() as u64) << 16 | part.after.len() as u64);
        for message in &part.pending {
            self.add(u64::from(*message));
        }
        for (message, answer) in &part.unread {
            self.add(u64::from(*message) << 32 | u64::from(*answer));
        }
        self.add_order(part);
    }

    /// Adds, for each operation, the operations that had ended when it began.
    fn add_order(&mut self, part: &Part) {
        for count in &part.after {
            self.add(u64::from(*count));
        }
    }

    fn end(&self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
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
    /// Equal if nothing that is to come, and nothing that clients saw, differs. Of a client that is done what it saw matters and what of
    /// it is on its way; of servers nothing when all are done.
    pub(super) fn hash(&mut self, state: &State) -> u128 {
        let mut hash = Hash::default();
        if !self.is_over(state) {
            hash.add_servers(state);
        }
        for (client, part) in state.clients.iter().enumerate() {
            if !self.clients[client].is_done(&self.case, part.node) {
                hash.add_part(part);
                continue;
            }
            // Nodes are below.
            hash.add(1 << 63 | part.pending.len() as u64);
            for ended in &*self.endings_of(client, part.node) {
                hash.add(*ended);
            }
            let seen = self.clients[client].seen(part.node);
            let sent = part.pending.iter().map(|it| seen.sent[usize::from(*it)]);
            let mut sent: Vec<u64> = sent
                .map(|it| (it.server as u64) << 32 | u64::from(it.message))
                .collect();
            sent.sort_unstable();
            for word in sent {
                hash.add(word);
            }
            hash.add_order(part);
        }
        hash.end()
    }

    /// Results of the client's operations, as numbers.
    pub(super) fn endings_of(&mut self, client: usize, node: u32) -> Rc<[u64]> {
        if let Some(known) = self.ended.get(&(client, node)) {
            return Rc::clone(known);
        }
        let seen = self.clients[client].seen(node);
        let texts = seen
            .ended
            .iter()
            .map(|ended| ended.to_string().into_bytes());
        let number = |text| u64::from(self.endings.number(text, || ()).0);
        let numbers: Rc<[u64]> = texts.map(number).collect();
        self.ended.insert((client, node), Rc::clone(&numbers));
        numbers
    }

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

    /// The state in which the client has begun its next operation.
    pub(super) fn invoke(&mut self, state: &State, client: usize) -> Result<Option<State>, String> {
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

    pub(super) fn seen(&self, state: &State, client: usize) -> &ClientView {
        self.clients[client].seen(state.clients[client].node)
    }

    /// Every operation of every client has ended.
    pub(super) fn is_over(&self, state: &State) -> bool {
        (0..state.clients.len())
            .all(|client| self.seen(state, client).ended.len() == self.case.clients[client].len())
    }
}
