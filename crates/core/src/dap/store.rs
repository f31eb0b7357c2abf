//! The tally of put-data: one element to each member, acknowledged by a quorum.

use super::single;
use super::versions::Arrival;
use crate::config::{Configuration, Thrift};
use crate::element::{Element, Form};
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
    /// The element of each member, by position.
    elements: Vec<Element>,
    quorum: usize,
    arrival: Arrival,
    /// Members that must hold the version so that it may be decided to be kept: enough to read it. A reader has read it.
    pieces: usize,
    members: Vec<State>,
    /// The time that members that are silent are waited for once one is busy or has a fence; after it they are late.
    grace: Duration,
    late: bool,
    /// Members that are asked are waited for although there is a quorum without them.
    completes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    Stored,
    Refused(Refusal),
}

/// The end of a put-data.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A quorum holds the element, or trimmed it.
    Stored,
    /// No quorum is left: too many members refuse another unconfirmed version, or have not answered for long
    /// (`[X-3 unconfirmed-cap]`).
    Unconfirmed,
    /// No quorum is left, and members have a fence above the version: it is to be decided whether it is kept
    /// (`[X-3 unconfirmed-cap]`). Either enough members hold it to read it, or fences keep it from every quorum: only then may
    /// it be dropped. A member that refuses it for another reason may take it in from a reader that completes it.
    Fenced {
        /// Enough members hold it, or a reader has read it.
        readable: bool,
        /// The answer of each member, by position.
        responses: Vec<Response>,
    },
    /// A member knows that the object is a ranked register from the next configuration on, and takes nothing in
    /// (`[W-12 becoming-conditional]`).
    Closed,
}

/// True if a put of a version that these members hold would ask a member. Members that a thrifty call leaves out are not brought
/// a version that a quorum holds.
pub(super) fn asks_a_member(c: &Configuration, holders: &[bool]) -> bool {
    let held = holders.iter().filter(|holds| **holds).count();
    let spares = c.options().thrift == Thrift::Calls && c.dap().is_replicated();
    held < if spares { c.quorums().quorum() } else { c.n() }
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
        let pieces = match elements[0].form {
            Form::Fragment { k, .. } => usize::from(k),
            Form::Copy | Form::Manifest | Form::Trimmed => 1,
        };
        Store {
            name: name.clone(),
            tag,
            elements,
            quorum: c.quorums().quorum(),
            arrival: match holders.is_empty() {
                true => Arrival::New,
                false => Arrival::WriteBack,
            },
            pieces: if holders.is_empty() { pieces } else { 0 },
            members,
            grace: timing::ROOM_GRACE,
            late: false,
            completes: false,
        }
    }

    /// Sets the time that the call waits for silent members.
    pub(super) fn waiting(self, grace: Duration) -> Store {
        Store { grace, ..self }
    }

    /// Makes this the put of a version that is at a quorum, and is to reach all members.
    pub(super) fn completing(self) -> Store {
        assert!(self.arrival == Arrival::WriteBack, "its holders are known");
        let completes = true;
        Store { completes, ..self }
    }

    /// Makes this the put of a version that was decided to be kept.
    pub(super) fn keeping(self) -> Store {
        Store {
            arrival: Arrival::Kept,
            ..self
        }
    }

    fn count(&self, state: State) -> usize {
        self.members.iter().filter(|it| **it == state).count()
    }

    fn stored(&self) -> usize {
        self.count(State::Stored)
    }

    /// Members at the cap, and members behind a fence.
    fn busy_and_fenced(&self) -> (usize, usize) {
        let refused = |refusal| self.count(State::Refused(refusal));
        (refused(Refusal::Busy), refused(Refusal::Fenced))
    }

    /// The answer of each member, by position.
    fn responses(&self) -> Vec<Response> {
        let response = |member: &State| match member {
            State::Asked => Response::NotAwaited,
            State::Stored => Response::Answered,
            State::Refused(refusal) => Response::Refused(*refusal),
        };
        self.members.iter().map(response).collect()
    }

    fn evaluate(&self) -> Decision<Outcome> {
        if self.stored() >= self.quorum {
            let waits = self.completes && !self.late && self.count(State::Asked) > 0;
            return match waits {
                true => Decision::Pending,
                false => Decision::Done(Outcome::Stored),
            };
        }
        let can_be_stored = self.stored() + self.count(State::Asked) >= self.quorum;
        if can_be_stored && !self.late {
            return Decision::Pending;
        }
        let (busy, fenced) = self.busy_and_fenced();
        let is_held_back = fenced > self.members.len() - self.quorum;
        let readable = self.stored() >= self.pieces;
        if is_held_back || (fenced > 0 && readable) {
            let responses = self.responses();
            return Decision::Done(Outcome::Fenced {
                readable,
                responses,
            });
        }
        match can_be_stored {
            _ if busy > 0 => Decision::Done(Outcome::Unconfirmed),
            true => Decision::Pending,
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
                Some(Answer::Ranked(answer)) if answer.closed => {
                    return Decision::Done(Outcome::Closed);
                }
                _ => State::Refused(Refusal::Malformed),
            },
        };
        // An acknowledgement stands whatever is said after it.
        if self.members[from] != State::Stored {
            self.members[from] = state;
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<Outcome> {
        self.late = self.completes || self.busy_and_fenced() != (0, 0);
        self.evaluate()
    }

    /// The further time for which the put waits for members that have not answered; `None`: until its deadline. The
    /// time is short for a put that only repairs members, because a quorum holds the version already. It is also short
    /// if a member refuses until another version is decided, or room is made: members that may be down must not delay
    /// these two.
    fn patience(&self) -> Option<Duration> {
        if self.completes {
            return Some(timing::COMPLETION_PATIENCE);
        }
        if self.stored() >= self.quorum {
            return Some(timing::REPAIR_GRACE);
        }
        let waits = !self.late && self.busy_and_fenced() != (0, 0);
        waits.then_some(self.grace)
    }
}

#[cfg(test)]
mod tests;
