//! The clients of a case as automata: nodes are found as they are needed, by running the client's futures again from the
//! start with everything that they were fed.

use super::node::LiveClient;
use super::servers::OTHER_PASTS;
use super::table::{Table, Words};
use super::{Case, Identity, Outcome};
use areo_core::config::ServerId;
use std::collections::HashMap;
use std::rc::Rc;

/// Quorum calls before the last one whose answers a client may go by ([`Identity::Recent`]).
const RECENT: u16 = 4;

/// An input of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Input {
    /// Its next operation begins.
    Invoke,
    /// The answer to the message of this number.
    Answer(u16, u32),
    /// The patience of this quorum call runs out.
    Tick(u16),
}

impl Input {
    pub(super) fn is_answer(self) -> bool {
        matches!(self, Input::Answer(..))
    }
}

/// All states of one client, and the steps between them.
pub(super) struct Automaton {
    number: usize,
    identity: Identity,
    nodes: Table<Node>,
    steps: HashMap<(u32, Input), u32>,
}

/// A state of a client.
pub(super) struct Node {
    pasts: Vec<Rc<[Input]>>,
    taken: Vec<Input>,
    pub(super) seen: ClientView,
}

/// The part of a client's state that other processes can see.
pub(super) struct ClientView {
    pub(super) sent: Vec<Sent>,
    /// Quorum calls that are not decided, and those of them whose patience may run out.
    pub(super) open: Vec<u16>,
    pub(super) impatient: Vec<u16>,
    pub(super) invoked: usize,
    pub(super) is_busy: bool,
    pub(super) ended: Vec<Outcome>,
    /// Times that patience ran out in the operation that was invoked last.
    pub(super) ticks: usize,
    visible: u64,
}

/// A message that it sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) server: usize,
    pub(super) message: u32,
    pub(super) call: Option<u16>,
    pub(super) is_question: bool,
}

impl ClientView {
    pub(super) fn is_open(&self, call: u16) -> bool {
        self.open.contains(&call)
    }

    /// True if an open quorum call waits for the answer to this message.
    pub(super) fn is_awaited(&self, message: u16) -> bool {
        let call = self.sent[usize::from(message)].call;
        call.is_some_and(|call| self.is_open(call))
    }

    /// True if something became visible since `before`.
    pub(super) fn shows_more_than(&self, before: &ClientView) -> bool {
        (self.visible, self.ended.len(), self.invoked)
            != (before.visible, before.ended.len(), before.invoked)
    }
}

impl Automaton {
    /// Its first node is number 0: nothing was invoked.
    pub(super) fn new(
        case: &Case,
        words: &mut Words,
        number: usize,
        identity: Identity,
    ) -> Automaton {
        let mut automaton = Automaton {
            number,
            identity,
            nodes: Table::default(),
            steps: HashMap::new(),
        };
        let seen = automaton.live(case, words, &[]);
        automaton.node(seen, Rc::new([]));
        automaton
    }

    pub(super) fn seen(&self, node: u32) -> &ClientView {
        &self.nodes.get(node).seen
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The client's state after the input.
    ///
    /// # Errors
    /// Two pasts of the node differ after all.
    pub(super) fn step(
        &mut self,
        case: &Case,
        words: &mut Words,
        node: u32,
        input: Input,
    ) -> Result<u32, String> {
        if let Some(next) = self.steps.get(&(node, input)) {
            return Ok(*next);
        }
        let (seen, past) = self.follow(case, words, (node, 0), input);
        let (next, past_is_new) = self.node(seen, past);
        self.steps.insert((node, input), next);
        self.nodes.get_mut(node).taken.push(input);
        for other in 1..self.nodes.get(node).pasts.len() {
            self.compare(case, words, (node, other), input)?;
        }
        if past_is_new {
            let last = self.nodes.get(next).pasts.len() - 1;
            for input in self.nodes.get(next).taken.clone() {
                self.compare(case, words, (next, last), input)?;
            }
        }
        Ok(next)
    }

    fn compare(
        &self,
        case: &Case,
        words: &mut Words,
        (node, other): (u32, usize),
        input: Input,
    ) -> Result<(), String> {
        let (seen, past) = self.follow(case, words, (node, other), input);
        let next = self.steps[&(node, input)];
        let first = &self.nodes.get(next);
        let alike = self.bytes(&seen, &past) == self.bytes(&first.seen, &first.pasts[0]);
        alike.then_some(()).ok_or_else(|| {
            let client = self.number;
            format!("client {client} remembers more than it said: pasts differ at {input:?}")
        })
    }

    /// Checks that a client with these inputs is at the node.
    ///
    /// # Errors
    /// It is somewhere else: its past was taken for another one.
    pub(super) fn check_past(
        &self,
        case: &Case,
        words: &mut Words,
        node: u32,
        fed: &[Input],
    ) -> Result<(), String> {
        let seen = self.live(case, words, fed);
        let known = self.nodes.get(node);
        let is_there = self.bytes(&seen, fed) == self.bytes(&known.seen, &known.pasts[0]);
        is_there.then_some(()).ok_or_else(|| {
            let client = self.number;
            format!("client {client} remembers more than it said: a schedule cannot be followed")
        })
    }

    fn follow(
        &self,
        case: &Case,
        words: &mut Words,
        (node, past): (u32, usize),
        input: Input,
    ) -> (ClientView, Rc<[Input]>) {
        let past = &self.nodes.get(node).pasts[past];
        let past: Rc<[Input]> = past.iter().copied().chain([input]).collect();
        (self.live(case, words, &past), past)
    }

    fn live(&self, case: &Case, words: &mut Words, past: &[Input]) -> ClientView {
        let mut client = LiveClient::new(self.number, &case.clients[self.number]);
        let mut ticks = 0;
        for input in past {
            match *input {
                Input::Invoke => {
                    ticks = 0;
                    client.invoke();
                }
                Input::Answer(message, answer) => {
                    client.answer(usize::from(message), words.answer_of(answer));
                }
                Input::Tick(call) => {
                    ticks += 1;
                    client.tick(usize::from(call));
                }
            }
        }
        let small = |number: usize| u16::try_from(number).expect("operations of cases are short");
        let mut sent = Vec::new();
        for message in client.world.sent().iter() {
            let number = words.message(&message.what);
            sent.push(Sent {
                server: place(&case.servers, message.to),
                message: number,
                call: message.call.map(|(call, _)| small(call)),
                is_question: words.is_question(number),
            });
        }
        ClientView {
            sent,
            open: client.world.open().into_iter().map(small).collect(),
            impatient: client.world.impatient().into_iter().map(small).collect(),
            invoked: client.invoked,
            is_busy: client.is_busy(),
            visible: client.world.visible(),
            ended: client.ended,
            ticks,
        }
    }

    fn node(&mut self, seen: ClientView, past: Rc<[Input]>) -> (u32, bool) {
        let bytes = self.bytes(&seen, &past);
        let make = || Node {
            pasts: Vec::new(),
            taken: Vec::new(),
            seen,
        };
        let (number, _) = self.nodes.number(bytes, make);
        let pasts = &mut self.nodes.get_mut(number).pasts;
        let another = pasts.len() <= OTHER_PASTS && !pasts.contains(&past);
        if another {
            pasts.push(past);
        }
        (number, another && self.nodes.get(number).pasts.len() > 1)
    }

    /// The quorum calls of which the answers tell nodes apart, ascending.
    fn shown(&self, seen: &ClientView) -> Vec<u16> {
        let mut shown = seen.open.clone();
        if self.identity == Identity::Recent && seen.is_busy {
            let last = seen.sent.iter().filter_map(|sent| sent.call).max();
            let recent = last.map_or(0, |last| last.saturating_sub(RECENT));
            shown.extend(recent..=last.unwrap_or(0));
            shown.sort_unstable();
            shown.dedup();
        }
        shown
    }

    /// True if the client has completed all operations of its program.
    pub(super) fn is_done(&self, case: &Case, node: u32) -> bool {
        let seen = self.seen(node);
        !seen.is_busy && seen.invoked == case.clients[self.number].len()
    }

    /// Two pasts with equal bytes are taken for one node.
    fn bytes(&self, seen: &ClientView, past: &[Input]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |numbers: &[u32]| {
            for number in numbers {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        };
        let code = |input: &Input| match *input {
            Input::Invoke => [0, 0, 0],
            Input::Answer(message, answer) => [1, u32::from(message), answer],
            Input::Tick(call) => [2, u32::from(call), 0],
        };
        if self.identity == Identity::Fed {
            for input in past {
                put(&code(input));
            }
            return bytes;
        }
        put(&[
            seen.invoked as u32,
            u32::from(seen.is_busy),
            seen.ticks as u32,
            seen.sent.len() as u32,
        ]);
        for sent in &seen.sent {
            let call = sent.call.map_or(0, |call| u32::from(call) + 1);
            put(&[sent.server as u32, sent.message, call]);
        }
        for call in self.shown(seen) {
            put(&[u32::from(call)]);
            let of_call = |input: &&Input| match input {
                Input::Invoke => false,
                Input::Answer(message, _) => seen.sent[usize::from(*message)].call == Some(call),
                Input::Tick(ticked) => *ticked == call,
            };
            let mut fed: Vec<[u32; 3]> = past.iter().filter(of_call).map(code).collect();
            // Between two ticks the order of answers does not matter to a tally that has not shown anything.
            let ticks = |code: &[u32; 3]| code[0] == 2;
            fed.split_mut(ticks).for_each(<[_]>::sort_unstable);
            put(&[fed.len() as u32]);
            for code in &fed {
                put(code);
            }
        }
        for ended in &seen.ended {
            let text = ended.to_string();
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

fn place(servers: &[ServerId], id: ServerId) -> usize {
    let place = servers.iter().position(|server| *server == id);
    place.expect("members of configurations are servers of the case")
}
