//! The tally of put-data: one element to each member, acknowledged by a quorum.

use super::single;
use crate::config::Configuration;
use crate::element::Element;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::limits;
use crate::message::{Access, Answer, Body, Refusal};
use crate::object::Name;
use crate::tag::Tag;
use std::time::Duration;

pub(super) struct Store {
    name: Name,
    tag: Tag,
    /// What each member is to hold, by position.
    elements: Vec<Element>,
    quorum: usize,
    write_back: bool,
    members: Vec<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    Stored,
    Refused,
    Unconfirmed,
}

/// How a put-data ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A quorum holds the element, or trimmed it.
    Stored,
    /// So many members refuse another unconfirmed version that no quorum is left (`[X-3]`).
    Unconfirmed,
}

impl Store {
    pub(super) fn new(
        c: &Configuration,
        name: &Name,
        tag: Tag,
        elements: Vec<Element>,
        holders: &[bool],
    ) -> Store {
        assert_eq!(elements.len(), c.n(), "one element for each member");
        assert!(
            holders.is_empty() || holders.len() == c.n(),
            "known of all members, or of none"
        );
        let held = |position: usize| holders.get(position).copied().unwrap_or(false);
        let state = |position| {
            if held(position) {
                State::Stored
            } else {
                State::Asked
            }
        };
        let members: Vec<State> = (0..c.n()).map(state).collect();
        Store {
            name: name.clone(),
            tag,
            elements,
            quorum: c.quorums().quorum(),
            write_back: !holders.is_empty(),
            members,
        }
    }

    fn count(&self, state: State) -> usize {
        self.members
            .iter()
            .filter(|member| **member == state)
            .count()
    }

    fn evaluate(&self) -> Decision<Outcome> {
        let (refused, unconfirmed) = (self.count(State::Refused), self.count(State::Unconfirmed));
        if self.count(State::Stored) >= self.quorum {
            return Decision::Done(Outcome::Stored);
        }
        if self.members.len() - refused - unconfirmed >= self.quorum {
            return Decision::Pending;
        }
        match unconfirmed {
            0 => Decision::Impossible,
            _ => Decision::Done(Outcome::Unconfirmed),
        }
    }
}

impl ConfiguredTally for Store {
    type Output = Outcome;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        if self.members[position] != State::Asked {
            return None;
        }
        let access = Access::Put {
            tag: self.tag,
            element: self.elements[position].clone(),
            write_back: self.write_back,
        };
        Some(Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Outcome> {
        let state = match event {
            Event::Unreachable => return self.evaluate(),
            Event::Refused(_) => State::Refused,
            Event::Reply(reply) => match single(reply) {
                Some(Answer::Stored) => State::Stored,
                Some(Answer::Refused(Refusal::Busy)) => State::Unconfirmed,
                _ => State::Refused,
            },
        };
        // An acknowledgement stands whatever is said after it.
        if self.members[from] != State::Stored {
            self.members[from] = state;
        }
        self.evaluate()
    }

    /// Where a quorum held it from the start, the put only repairs the others, and need not wait for them.
    fn tick(&mut self) -> Decision<Outcome> {
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        (self.count(State::Stored) >= self.quorum).then_some(limits::HEDGE)
    }
}

#[cfg(test)]
mod tests;
