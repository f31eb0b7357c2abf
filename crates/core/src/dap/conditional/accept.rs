//! The tally of ACCEPT: acknowledged by a quorum, the version is chosen.
//!
//! A refusal does not end it, because the others may be a quorum. If they are not, it waits a little longer for refusals after which
//! no proposer ever finds the version (`[W-15 conclusive-refusal]`).

use crate::config::Configuration;
use crate::dap::single;
use crate::element::Element;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Ballot, Body, Proposal, Refusal};
use crate::object::Name;
use crate::timing;
use std::time::Duration;

pub(super) struct Accept {
    name: Name,
    proposal: Proposal,
    /// The element that each member is brought, by position; `None`: it said that it holds its element.
    elements: Vec<Option<Element>>,
    quorum: usize,
    /// Refusals after which the version is never current.
    conclusive: usize,
    members: Vec<State>,
    /// The largest ballot with which a member refused.
    overtaken: Option<Ballot>,
    /// Time has passed since a member refused.
    late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    /// It is out of reach, and may accept later.
    Away,
    Accepted,
    Full,
    Refused,
    /// It has accepted nothing at this ballot, and never will.
    NeverAccepts,
}

/// The end of an ACCEPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// A quorum accepted: the version is chosen.
    Chosen,
    /// A larger ballot was promised. The version may be chosen all the same, by others who find it.
    Overtaken(Ballot),
    /// A larger ballot was promised, and the proposal is never chosen (`[W-15 conclusive-refusal]`).
    Void(Ballot),
    /// A configuration comes after this one.
    Closed,
    /// Members hold as many versions as they may, or the version is not held any more where it was: begin again.
    Again,
}

impl Accept {
    /// `proposal` has no element; they are in `elements`.
    pub(super) fn new(
        c: &Configuration,
        name: &Name,
        proposal: Proposal,
        elements: Vec<Option<Element>>,
    ) -> Accept {
        assert_eq!(elements.len(), c.n(), "known of each member");
        assert!(proposal.element.is_none(), "each member has its own");
        let is_possible = proposal.ballot.is_possible() && proposal.tag.is_possible();
        assert!(is_possible, "servers refuse others");
        let conclusive = c.n() + 1 - c.quorums().intersection();
        assert!(conclusive <= c.n(), "two quorums share a member");
        Accept {
            name: name.clone(),
            proposal,
            quorum: c.quorums().quorum(),
            conclusive,
            members: vec![State::Asked; elements.len()],
            elements,
            overtaken: None,
            late: false,
        }
    }

    fn count(&self, state: State) -> usize {
        self.members.iter().filter(|it| **it == state).count()
    }

    /// True if no quorum is left that may accept.
    fn is_refused(&self) -> bool {
        let may_accept = [State::Accepted, State::Asked, State::Away];
        let may_accept: usize = may_accept.map(|state| self.count(state)).iter().sum();
        may_accept < self.quorum
    }

    /// True if those that are asked can make the version chosen or void. What is settled is held by others, and never void.
    fn is_worth_waiting(&self, asked: usize, never: usize) -> bool {
        let may_choose = self.count(State::Accepted) + asked >= self.quorum;
        let may_be_void = !self.proposal.settles && never + asked >= self.conclusive;
        asked > 0 && (may_choose || may_be_void)
    }

    fn evaluate(&self) -> Decision<AcceptOutcome> {
        if self.count(State::Accepted) >= self.quorum {
            return Decision::Done(AcceptOutcome::Chosen);
        }
        let (never, asked) = (self.count(State::NeverAccepts), self.count(State::Asked));
        match self.overtaken {
            Some(by) if never >= self.conclusive && !self.proposal.settles => {
                Decision::Done(AcceptOutcome::Void(by))
            }
            Some(_) if !self.late && self.is_worth_waiting(asked, never) => Decision::Pending,
            Some(by) => Decision::Done(AcceptOutcome::Overtaken(by)),
            // A member that is full takes the version once the one before it is settled, which another attempt does. Members that have
            // said nothing by then may say nothing for as long as they are away.
            None if self.count(State::Full) > 0 && (self.late || self.is_refused()) => {
                Decision::Done(AcceptOutcome::Again)
            }
            None if self.is_refused() => Decision::Impossible,
            None => Decision::Pending,
        }
    }
}

impl ConfiguredTally for Accept {
    type Output = AcceptOutcome;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        if self.members[position] != State::Asked {
            return None;
        }
        let proposal = Proposal {
            element: self.elements[position].clone(),
            ..self.proposal.clone()
        };
        let access = Access::Accept(Box::new(proposal));
        Some(Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<AcceptOutcome> {
        let is_closing = self.proposal.ballot.is_closing();
        let state = match event {
            Event::Unreachable if self.members[from] == State::Asked => State::Away,
            Event::Unreachable => return self.evaluate(),
            Event::Refused(_) => State::Refused,
            Event::Reply(reply) => match single(reply) {
                Some(Answer::Stored) => State::Accepted,
                Some(Answer::Ranked(answer)) if answer.closed && !is_closing => {
                    return Decision::Done(AcceptOutcome::Closed);
                }
                Some(Answer::Ranked(answer)) => {
                    self.overtaken = self.overtaken.max(Some(answer.promised));
                    match answer.never_accepts(self.proposal.ballot) {
                        true => State::NeverAccepts,
                        false => State::Refused,
                    }
                }
                // It was held when it was asked, and went: another proposer got on.
                Some(Answer::Needed | Answer::Refused(Refusal::Busy)) => State::Full,
                _ => State::Refused,
            },
        };
        // An acknowledgement stands, also after a later refusal.
        if self.members[from] != State::Accepted {
            self.members[from] = state;
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<AcceptOutcome> {
        self.late = true;
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        let is_refused = self.overtaken.is_some() || self.count(State::Full) > 0;
        (is_refused && !self.late).then_some(timing::REFUSAL_GRACE)
    }
}

#[cfg(test)]
mod tests;
