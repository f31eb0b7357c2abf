//! The servers of a case as automata: states are found as they are needed, and each step is taken once.

use super::node::{LiveServer, bytes_of_answer};
use super::table::{Table, Words};
use super::{Answered, Case};
use areo_core::config::ServerId;
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
    steps: HashMap<(u32, u32), (u32, Option<u32>)>,
}

struct State {
    /// The messages that lead here; the first past stands for all.
    pasts: Vec<Rc<[u32]>>,
    view: Rc<[Answered]>,
    /// The messages whose steps were taken.
    taken: Vec<u32>,
}

impl Automaton {
    /// Its first state is number 0.
    pub(super) fn new(case: &Case, id: ServerId) -> Automaton {
        let mut automaton = Automaton {
            id,
            states: Table::default(),
            steps: HashMap::new(),
        };
        let view = automaton.live(case, &[], &Words::default());
        automaton.state(view.1, Rc::new([]));
        automaton
    }

    /// What can be seen of the server in this state.
    pub(super) fn view(&self, state: u32) -> &Rc<[Answered]> {
        &self.states.get(state).view
    }

    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// The state after the message, and the answer to it.
    ///
    /// # Errors
    /// Two pasts of the state differ after all.
    pub(super) fn step(
        &mut self,
        case: &Case,
        words: &mut Words,
        state: u32,
        message: u32,
    ) -> Result<(u32, Option<u32>), String> {
        if let Some(step) = self.steps.get(&(state, message)) {
            return Ok(*step);
        }
        let past = self.states.get(state).pasts[0].clone();
        let (answer, view, past) = self.follow(case, words, &past, message);
        let answer = answer.map(|answer| words.answer(&answer));
        let (next, past_is_new) = self.state(view, past);
        assert!(
            next == state || !words.is_question(message),
            "a question changed a server: {:?}",
            words.message_of(message)
        );
        self.steps.insert((state, message), (next, answer));
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
        Ok((next, answer))
    }

    /// Another past of the state must do as the first does.
    fn compare(
        &self,
        case: &Case,
        words: &mut Words,
        state: u32,
        other: usize,
        message: u32,
    ) -> Result<(), String> {
        let past = self.states.get(state).pasts[other].clone();
        let (answer, view, _) = self.follow(case, words, &past, message);
        let answer = answer.map(|answer| words.answer(&answer));
        let (next, first) = self.steps[&(state, message)];
        let alike = answer == first && bytes_of_view(&view) == bytes_of_view(self.view(next));
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
    ) -> (Option<Answered>, Vec<Answered>, Rc<[u32]>) {
        let past: Vec<u32> = past.iter().copied().chain([message]).collect();
        let (answer, view) = self.live(case, &past, words);
        (answer, view, past.into())
    }

    /// The answer to the last message, and what can be seen then.
    fn live(&self, case: &Case, past: &[u32], words: &Words) -> (Option<Answered>, Vec<Answered>) {
        let mut server = LiveServer::new(case, self.id);
        let mut answer = None;
        for message in past {
            answer = server.take(words.message_of(*message));
        }
        (answer, server.look(&case.subjects, &case.probes))
    }

    fn state(&mut self, view: Vec<Answered>, past: Rc<[u32]>) -> (u32, bool) {
        let bytes = bytes_of_view(&view);
        let make = || State {
            pasts: Vec::new(),
            view: view.into(),
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

fn bytes_of_view(view: &[Answered]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for answer in view {
        let answer = bytes_of_answer(answer);
        bytes.extend_from_slice(&(answer.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&answer);
    }
    bytes
}
