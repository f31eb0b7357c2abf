//! The state of an exploration: clients and servers as automata, and the readings of clients.

use super::clients::{self, Input};
use super::env::Message;
use super::servers::{self, ServerStep};
use super::state::Reading;
use super::table::{Table, Words};
use super::{Case, Digest, Identity};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Times that the patience of a client runs out before it is said to be stuck.
const LONG: usize = 200;

/// A client, its node, the answers that it has not read, and the messages whose answers it must read.
type Place = (usize, u32, Vec<(u16, u32)>, Vec<u16>);

/// A node that a client went through, the answers that it had not read there, and the messages whose answers it had
/// to read.
type ClientJourney = (u32, Vec<(u16, u32)>, Vec<u16>);

pub(super) struct Engine {
    pub(super) case: Rc<Case>,
    pub(super) words: Words,
    pub(super) clients: Vec<clients::Automaton>,
    pub(super) servers: Vec<servers::Automaton>,
    pub(super) readings: HashMap<Place, Rc<[Reading]>>,
    /// Results of operations, numbered.
    pub(super) endings: Table<()>,
    /// For each client and node the numbers of the results of its operations.
    pub(super) ended: HashMap<(usize, u32), Rc<[u64]>>,
    /// The passing of quiet time, if the case has it.
    pub(super) quiet: Option<u32>,
    /// For each server the message "its disk becomes full", if the case has it.
    pub(super) full: Vec<Option<u32>>,
    /// For each server the message "it gossips", if the case has it.
    pub(super) gossip: Vec<Option<u32>>,
    /// Messages that change nothing any more are not dropped.
    pub(super) keeps_spent: bool,
    /// Dropped messages: the server, the message, and the server's state at that time.
    pub(super) spent: HashSet<(usize, u32, u32)>,
}

impl Engine {
    pub(super) fn new(case: &Rc<Case>, identity: Identity) -> Engine {
        let mut words = Words::default();
        let shows_full =
            case.full.is_empty() && case.fills.is_empty() || case.digest == Digest::Records;
        assert!(shows_full, "no answer shows whether a disk is full");
        let quiet = case.quiet.then(|| words.message(&Message::Quiet));
        let fills = |id| {
            case.fills
                .contains(id)
                .then(|| words.message(&Message::Full))
        };
        let full = case.servers.iter().map(fills).collect();
        let speaks = |id| {
            case.gossips
                .contains(id)
                .then(|| words.message(&Message::Gossip))
        };
        let gossip = case.servers.iter().map(speaks).collect();
        let clients = (0..case.clients.len())
            .map(|client| clients::Automaton::new(case, &mut words, client, identity))
            .collect();
        let servers = case
            .servers
            .iter()
            .map(|id| servers::Automaton::new(case, &mut words, *id))
            .collect();
        Engine {
            case: Rc::clone(case),
            words,
            clients,
            servers,
            readings: HashMap::new(),
            endings: Table::default(),
            ended: HashMap::new(),
            quiet,
            full,
            gossip,
            // What is exact leaves nothing out.
            keeps_spent: identity == Identity::Fed,
            spent: HashSet::new(),
        }
    }

    /// The client's state after the input.
    pub(super) fn feed(&mut self, client: usize, node: u32, input: Input) -> Result<u32, String> {
        self.clients[client].step(&self.case, &mut self.words, node, input)
    }

    /// Checks that a client with these inputs is at the node.
    ///
    /// # Errors
    /// Pasts that were taken for one differ.
    pub(super) fn check_past(
        &mut self,
        client: usize,
        node: u32,
        fed: &[Input],
    ) -> Result<(), String> {
        self.clients[client].check_past(&self.case, &mut self.words, node, fed)
    }

    /// The next state of a server that takes a message, with its answer.
    pub(super) fn take(
        &mut self,
        server: usize,
        state: u32,
        message: u32,
    ) -> Result<ServerStep, String> {
        self.servers[server].step(&self.case, &mut self.words, state, message)
    }

    /// Every node that the client can reach by reading: each reading ends where others see something new. It goes on
    /// from there, because an answer that the client already has may move it on again.
    pub(super) fn read_on(
        &mut self,
        client: usize,
        (node, unread, newest): (u32, &[(u16, u32)], &[u16]),
        (fed, been): (&mut Vec<Input>, &mut HashSet<ClientJourney>),
        found: &mut Vec<Reading>,
    ) -> Result<(), String> {
        if !been.insert((node, unread.to_vec(), newest.to_vec())) {
            return Ok(());
        }
        let seen = self.clients[client].seen(node);
        let mut inputs: Vec<(Input, Vec<(u16, u32)>)> = Vec::new();
        for (message, answer) in unread {
            if seen.is_awaited(*message) {
                let mut rest = unread.to_vec();
                rest.retain(|(other, _)| other != message);
                inputs.push((Input::Answer(*message, *answer), rest));
            }
        }
        if seen.ticks < self.case.ticks {
            for call in &seen.impatient {
                inputs.push((Input::Tick(*call), unread.to_vec()));
            }
        }
        for (input, rest) in inputs {
            let next = self.feed(client, node, input)?;
            let mut missing = newest.to_vec();
            if let Input::Answer(message, _) = input {
                missing.retain(|newest| *newest != message);
            }
            let (before, after) = (
                self.clients[client].seen(node),
                self.clients[client].seen(next),
            );
            let shows = after.shows_more_than(before);
            let mut left = rest;
            left.retain(|(message, _)| after.is_awaited(*message));
            fed.push(input);
            if !shows {
                self.read_on(client, (next, &left, &missing), (fed, been), found)?;
            } else if missing.is_empty() {
                let known = found
                    .iter()
                    .any(|known| known.node == next && known.unread == left);
                if !known {
                    found.push(Reading {
                        node: next,
                        fed: fed.clone(),
                        unread: left.clone(),
                    });
                    self.read_on(client, (next, &left, &[]), (fed, been), found)?;
                }
            }
            fed.pop();
        }
        Ok(())
    }

    /// Reads everything, then lets patience run out until something is seen.
    pub(super) fn wait_long(
        &mut self,
        client: usize,
        node: u32,
        unread: &[(u16, u32)],
    ) -> Result<Option<Reading>, String> {
        let (start, mut node, mut fed) = (node, node, Vec::new());
        for (message, answer) in unread {
            let input = Input::Answer(*message, *answer);
            node = self.feed(client, node, input)?;
            fed.push(input);
        }
        for _ in 0..LONG {
            let seen = self.clients[client].seen(node);
            if seen.shows_more_than(self.clients[client].seen(start)) {
                let unread = Vec::new();
                return Ok(Some(Reading { node, fed, unread }));
            }
            let Some(call) = seen.impatient.first() else {
                return Ok(None);
            };
            let input = Input::Tick(*call);
            node = self.feed(client, node, input)?;
            fed.push(input);
        }
        Ok(None)
    }
}
