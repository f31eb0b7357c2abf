//! A server's answers about ranked registers ([`crate::dap::conditional`]).

use super::state::ranked::AcceptReply;
use super::{Read, Server};
use crate::config::ConfigurationId;
use crate::element::Form;
use crate::instant::Instant;
use crate::message::{Access, Answer, Ballot, Proposal, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;

impl Server {
    /// Answers a request for a ranked register.
    pub(super) fn ranked(
        &mut self,
        now: Instant,
        of: (ConfigurationId, &Name),
        access: Access,
        place: (usize, &mut Vec<Read>),
    ) -> Answer {
        match access {
            Access::Rank { ballot, want, have } => self.rank(of, ballot, (want, have), place),
            Access::Accept(proposal) => self.accept(now, of, *proposal),
            _ => unreachable!("the others are asked of other objects"),
        }
    }

    /// PREPARE, or a question that promises nothing.
    fn rank(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        ballot: Option<Ballot>,
        wanted: (Want, Tag),
        (answer, reads): (usize, &mut Vec<Read>),
    ) -> Answer {
        let state = self.states.get_mut(&key).expect("admitted");
        match state.rank((key, name), ballot, wanted, &mut self.ledger) {
            Ok(ranked) => {
                let read = |(tag, _): &(Tag, _)| Read::of_element(answer, (key, name), *tag);
                reads.extend(ranked.element.as_ref().map(read));
                Answer::Ranked(Box::new(ranked))
            }
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    /// Handles an ACCEPT: stores the proposed version unless a larger ballot was promised.
    fn accept(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        proposal: Proposal,
    ) -> Answer {
        let too_large = proposal.element.as_ref().is_some_and(|element| {
            // What a manifest stands for came in blocks.
            let is_here = element.form != Form::Manifest;
            is_here && element.length > self.identity.max_value_bytes
        });
        if too_large || proposal.tag.is_initial() {
            return Answer::Refused(Refusal::TooLarge);
        }
        let cap = self.identity.max_ranked;
        let state = self.states.get_mut(&key).expect("admitted");
        match state.accept(now, (key, name), (proposal, cap), &mut self.ledger) {
            Ok(AcceptReply::Stored) => Answer::Stored,
            Ok(AcceptReply::Needed) => Answer::Needed,
            Ok(AcceptReply::Refused(ranked)) => Answer::Ranked(ranked),
            Err(refusal) => Answer::Refused(refusal),
        }
    }
}
