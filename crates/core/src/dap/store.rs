//! The tally of put-data: one element to each member, acknowledged by a quorum.

use super::single;
use super::versions::Arrival;
use crate::config::Configuration;
use crate::element::Element;
use crate::error::Response;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Body, Refusal};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::time::Duration;

pub(super) struct Store {
    name: Name,
    tag: Tag,
    /// What each member is to hold, by position.
    elements: Vec<Element>,
    quorum: usize,
    arrival: Arrival,
    members: Vec<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    Stored,
    Refused(Refusal),
}

/// How a put-data ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A quorum holds the element, or trimmed it.
    Stored,
    /// So many members refuse another unconfirmed version that no quorum is left (`[X-3 unconfirmed-cap]`).
    Unconfirmed,
    /// No quorum is left, and a member has a fence above the version: it is to be decided whether it is kept
    /// (`[X-3 unconfirmed-cap]`). What each member said, by position.
    Fenced(Vec<Response>),
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
        assert!(!tag.is_initial(), "the initial version is everywhere");
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
            arrival: match holders.is_empty() {
                true => Arrival::New,
                false => Arrival::WriteBack,
            },
            members,
        }
    }

    /// The same for a version that was decided to be kept.
    pub(super) fn keeping(self) -> Store {
        Store {
            arrival: Arrival::Kept,
            ..self
        }
    }

    fn stored(&self) -> usize {
        let stored = |member: &&State| **member == State::Stored;
        self.members.iter().filter(stored).count()
    }

    fn refuses(&self, refusal: Refusal) -> bool {
        self.members.contains(&State::Refused(refusal))
    }

    /// What each member said, by position.
    fn responses(&self) -> Vec<Response> {
        let response = |member: &State| match member {
            State::Asked => Response::Silent,
            State::Stored => Response::Answered,
            State::Refused(refusal) => Response::Refused(*refusal),
        };
        self.members.iter().map(response).collect()
    }

    fn evaluate(&self) -> Decision<Outcome> {
        if self.stored() >= self.quorum {
            return Decision::Done(Outcome::Stored);
        }
        let refused = |member: &&State| matches!(member, State::Refused(_));
        let refused = self.members.iter().filter(refused).count();
        if self.members.len() - refused >= self.quorum {
            return Decision::Pending;
        }
        if self.refuses(Refusal::Fenced) {
            return Decision::Done(Outcome::Fenced(self.responses()));
        }
        match self.refuses(Refusal::Busy) {
            true => Decision::Done(Outcome::Unconfirmed),
            false => Decision::Impossible,
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
        let (tag, element) = (self.tag, self.elements[position].clone());
        let access = match self.arrival {
            Arrival::Kept => Access::Keep { tag, element },
            Arrival::New | Arrival::WriteBack => Access::Put {
                tag,
                element,
                write_back: self.arrival == Arrival::WriteBack,
            },
        };
        Some(Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Outcome> {
        let state = match event {
            Event::Unreachable => return self.evaluate(),
            Event::Refused(refusal) => State::Refused(refusal),
            Event::Reply(reply) => match single(reply) {
                Some(Answer::Stored) => State::Stored,
                Some(Answer::Refused(refusal)) => State::Refused(refusal),
                _ => State::Refused(Refusal::Malformed),
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
        (self.stored() >= self.quorum).then_some(timing::REPAIR_GRACE)
    }
}

#[cfg(test)]
mod tests;
