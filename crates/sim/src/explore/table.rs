//! Things of which there are few and that occur often: kept once, named by numbers.

use super::Answers;
use super::env::Message;
use super::node::{bytes_of_answer, bytes_of_message, is_proposal, is_question};
use std::collections::HashMap;

/// Values by number, each once: those of equal bytes are the same.
pub(super) struct Table<T> {
    numbers: HashMap<Box<[u8]>, u32>,
    values: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }
}

impl<T> Table<T> {
    /// The number of the value with these bytes; `make` makes it if it is new. True: it is.
    pub(super) fn number(&mut self, bytes: Vec<u8>, make: impl FnOnce() -> T) -> (u32, bool) {
        if let Some(known) = self.numbers.get(bytes.as_slice()) {
            return (*known, false);
        }
        let number = u32::try_from(self.values.len()).expect("fewer than 2^32 of anything");
        self.numbers.insert(bytes.into(), number);
        self.values.push(make());
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// A message, with its classification.
struct Word {
    message: Message,
    is_question: bool,
    is_proposal: bool,
}

/// All different messages to servers, and all different answers, numbered.
#[derive(Default)]
pub(super) struct Words {
    messages: Table<Word>,
    answers: Table<Answers>,
}

impl Words {
    pub(super) fn message(&mut self, message: &Message) -> u32 {
        let make = || Word {
            message: message.clone(),
            is_question: is_question(message),
            is_proposal: is_proposal(message),
        };
        self.messages.number(bytes_of_message(message), make).0
    }

    pub(super) fn answer(&mut self, answer: &Answers) -> u32 {
        let make = || answer.clone();
        self.answers.number(bytes_of_answer(answer), make).0
    }

    pub(super) fn message_of(&self, number: u32) -> &Message {
        &self.messages.get(number).message
    }

    /// True if this message changes no server's state.
    pub(super) fn is_question(&self, number: u32) -> bool {
        self.messages.get(number).is_question
    }

    /// True if the message is a proposal: the explorer drops one when it cannot change anything any more.
    pub(super) fn may_be_spent(&self, number: u32) -> bool {
        self.messages.get(number).is_proposal
    }

    pub(super) fn answer_of(&self, number: u32) -> &Answers {
        self.answers.get(number)
    }
}
