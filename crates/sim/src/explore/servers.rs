//! The servers of a case as automata: states are found as they are needed, and each step is taken once.

use super::env::Message;
use super::node::{LiveServer, bytes_of_answer};
use super::table::{Table, Words};
use super::{Answers, Case, Digest};
use areo_core::config::ServerId;
use areo_core::message::Note;
use std::collections::HashMap;
use std::rc::Rc;

/// Different pasts of one state that are followed beside the first, to see whether they are one state indeed.
pub(super) const OTHER_PASTS: usize = 8;

/// One server.
///
/// Two pasts are taken for one state if everything that can be asked of the server has equal answers: what it holds of
/// every subject with all elements, and the answers to the case's probes. That this sees everything is checked: several
/// pasts of each state are followed, and must answer every message alike and lead to the same state.
pub(super) struct Automaton {
    id: ServerId,
    states: Table<State>,
    steps: HashMap<(u32, u32), ServerStep>,
    /// Notes that it sends before it takes anything.
    begins: ServerSends,
}

/// Notes that a server sends without a request: the place of the recipient in the case, and the message.
pub(super) type ServerSends = Rc<[(usize, u32)]>;

/// The effect of a message on a server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServerStep {
    /// The server's state afterwards.
    pub(super) next: u32,
    pub(super) answer: Option<u32>,
    pub(super) said: ServerSends,
}

/// The effect of the last message on a live server, and the state that can be seen then.
struct LastStep {
    answer: Option<Answers>,
    said: Vec<(ServerId, Note)>,
    view: ServerView,
}

/// The part of a server that distinguishes two of its states.
struct ServerView {
    answers: Rc<[Answers]>,
    /// Its durable records if the case's digest includes them, and the gossip that it heard if servers gossip.
    records: Vec<u8>,
}

struct State {
    /// The messages that lead here; the first past stands for all.
    pasts: Vec<Rc<[u32]>>,
    view: ServerView,
    /// The messages whose steps were taken.
    taken: Vec<u32>,
}

impl Automaton {
    /// Its first state is number 0.
    pub(super) fn new(case: &Case, words: &mut Words, id: ServerId) -> Automaton {
        let mut automaton = Automaton {
            id,
            states: Table::default(),
            steps: HashMap::new(),
            begins: Rc::new([]),
        };
        let lived = automaton.live(case, &[], words);
        automaton.begins = said(case, words, lived.said);
        automaton.state(lived.view, Rc::new([]));
        automaton
    }

    /// Notes that it sends before it takes anything.
    pub(super) fn begins(&self) -> impl Iterator<Item = (usize, u32)> {
        self.begins.iter().copied()
    }

    /// The observable part of the server's state.
    pub(super) fn view(&self, state: u32) -> &Rc<[Answers]> {
        &self.states.get(state).view.answers
    }

    /// For each state the states that one message was seen to lead to.
    pub(super) fn follows(&self) -> HashMap<u32, Vec<u32>> {
        let mut follows: HashMap<u32, Vec<u32>> = HashMap::new();
        for ((from, _), step) in &self.steps {
            follows.entry(*from).or_default().push(step.next);
        }
        follows
    }

    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// The state after the message, the answer to it, and the notes that the server sends.
    ///
    /// # Errors
    /// Two pasts of the state differ after all.
    pub(super) fn step(
        &mut self,
        case: &Case,
        words: &mut Words,
        state: u32,
        message: u32,
    ) -> Result<ServerStep, String> {
        if let Some(taken) = self.steps.get(&(state, message)) {
            return Ok(taken.clone());
        }
        let past = self.states.get(state).pasts[0].clone();
        let (lived, past) = self.follow(case, words, &past, message);
        let answer = lived.answer.map(|answer| words.answer(&answer));
        let said = said(case, words, lived.said);
        let (next, past_is_new) = self.state(lived.view, past);
        let taken = ServerStep { next, answer, said };
        assert!(
            next == state || !words.is_question(message),
            "a question changed a server: {:?}",
            words.message_of(message)
        );
        self.steps.insert((state, message), taken.clone());
        self.states.get_mut(state).taken.push(message);
        for other in 1..self.states.get(state).pasts.len() {
            self.compare(case, words, state, other, message)?;
        }
        if past_is_new {
            let last = self.states.get(next).pasts.len() - 1;
            for message in self.states.get(next).taken.clone() {
                self.compare(case, words, next, last, message)?;
            }
        }
        Ok(taken)
    }

    /// Checks that another past of the state leads to the same behaviour as the first one.
    fn compare(
        &self,
        case: &Case,
        words: &mut Words,
        state: u32,
        other: usize,
        message: u32,
    ) -> Result<(), String> {
        let past = self.states.get(state).pasts[other].clone();
        let (lived, _) = self.follow(case, words, &past, message);
        let answer = lived.answer.map(|answer| words.answer(&answer));
        let said = said(case, words, lived.said);
        let first = &self.steps[&(state, message)];
        let alike = answer == first.answer
            && said == first.said
            && lived.view.bytes() == self.states.get(first.next).view.bytes();
        alike.then_some(()).ok_or_else(|| {
            let message = words.message_of(message);
            format!("the probes do not show all of a server's state: pasts differ at {message:?}")
        })
    }

    fn follow(
        &self,
        case: &Case,
        words: &Words,
        past: &[u32],
        message: u32,
    ) -> (LastStep, Rc<[u32]>) {
        let past: Vec<u32> = past.iter().copied().chain([message]).collect();
        (self.live(case, &past, words), past.into())
    }

    fn live(&self, case: &Case, past: &[u32], words: &Words) -> LastStep {
        let mut server = LiveServer::new(case, self.id);
        let mut answer = None;
        for message in past {
            server.said();
            answer = server.take(words.message_of(*message));
        }
        let said = server.said();
        // Before it is looked at, which may change it.
        let mut records = match case.digest {
            Digest::Records => server.found_again(),
            Digest::Answers => Vec::new(),
        };
        if !case.gossips.is_empty() {
            records.extend(server.heard(&case.subjects));
        }
        let view = ServerView {
            answers: server.look(&case.subjects, &case.probes).into(),
            records,
        };
        LastStep { answer, said, view }
    }

    fn state(&mut self, view: ServerView, past: Rc<[u32]>) -> (u32, bool) {
        let bytes = view.bytes();
        let make = || State {
            pasts: Vec::new(),
            view,
            taken: Vec::new(),
        };
        let (number, _) = self.states.number(bytes, make);
        let pasts = &mut self.states.get_mut(number).pasts;
        let another = pasts.len() <= OTHER_PASTS && !pasts.contains(&past);
        if another {
            pasts.push(past);
        }
        (number, another && self.states.get(number).pasts.len() > 1)
    }
}

/// The notes of a server. Notes to servers outside the case are lost.
fn said(case: &Case, words: &mut Words, said: Vec<(ServerId, Note)>) -> ServerSends {
    let place = |(to, note): (ServerId, Note)| {
        let place = case.servers.iter().position(|id| *id == to)?;
        Some((place, words.message(&Message::Note(note))))
    };
    said.into_iter().filter_map(place).collect()
}

impl ServerView {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for answer in self.answers.iter() {
            let answer = bytes_of_answer(answer);
            bytes.extend_from_slice(&(answer.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&answer);
        }
        bytes.extend_from_slice(&self.records);
        bytes
    }
}
