//! The tally of ACCEPT: acknowledged by a quorum, the version is chosen.

use crate::config::Configuration;
use crate::dap::single;
use crate::element::Element;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Ballot, Body, Proposal, Refusal};
use crate::object::Name;

pub(super) struct Accept {
    name: Name,
    proposal: Proposal,
    /// What each member is brought, by position; `None`: it said that it holds its element.
    elements: Vec<Option<Element>>,
    quorum: usize,
    members: Vec<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    Accepted,
    Full,
    Refused,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// A quorum accepted: the version is chosen.
    Chosen,
    /// A larger ballot was promised.
    Overtaken(Ballot),
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
        Accept {
            name: name.clone(),
            proposal,
            quorum: c.quorums().quorum(),
            members: vec![State::Asked; elements.len()],
            elements,
        }
    }

    fn count(&self, state: State) -> usize {
        self.members.iter().filter(|it| **it == state).count()
    }

    fn evaluate(&self) -> Decision<AcceptOutcome> {
        if self.count(State::Accepted) >= self.quorum {
            return Decision::Done(AcceptOutcome::Chosen);
        }
        if self.count(State::Accepted) + self.count(State::Asked) >= self.quorum {
            return Decision::Pending;
        }
        match self.count(State::Full) {
            0 => Decision::Impossible,
            _ => Decision::Done(AcceptOutcome::Again),
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
            Event::Unreachable => return self.evaluate(),
            Event::Refused(_) => State::Refused,
            Event::Reply(reply) => match single(reply) {
                Some(Answer::Stored) => State::Accepted,
                Some(Answer::Ranked(answer)) if answer.closed && !is_closing => {
                    return Decision::Done(AcceptOutcome::Closed);
                }
                Some(Answer::Ranked(answer)) => {
                    return Decision::Done(AcceptOutcome::Overtaken(answer.promised));
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
}
