//! Numbers that no execution produces (`[N-1 bounded-numbers]`): a server refuses what says one, and a client believes no
//! reply that does.

use super::{Access, Answer, Ballot, CellReply, CellRequest, HeldVersions, Reply};
use crate::limits;
use crate::tag::Tag;

impl Ballot {
    /// True if it decides the last version of a register in a configuration that is closed (`[W-13 ceasing-to-be-conditional]`): it is above all
    /// ballots that do not.
    pub fn is_closing(&self) -> bool {
        self.number >= limits::CLOSING
    }

    /// The ballot's place among the ballots of its sort: closing ballots, and others.
    pub fn place(&self) -> u64 {
        self.number % limits::CLOSING
    }

    /// True if its number is below [`limits::NUMBER`].
    pub fn is_possible(&self) -> bool {
        self.number < limits::NUMBER
    }
}

impl Access {
    /// True if its tag is possible ([`Tag::is_possible`]).
    pub fn is_possible(&self) -> bool {
        if let Access::Accept(proposal) = self {
            return proposal.ballot.is_possible()
                && proposal.tag.is_possible()
                && proposal.lineage.is_possible();
        }
        if let Access::Rank {
            ballot: Some(ballot),
            ..
        } = self
            && !ballot.is_possible()
        {
            return false;
        }
        let (Access::Query { have: tag, .. }
        | Access::Rank { have: tag, .. }
        | Access::Fetch { tag, .. }
        | Access::Put { tag, .. }
        | Access::Keep { tag, .. }
        | Access::Fence { upto: tag, .. }
        | Access::Finalize { tag, .. }
        | Access::Drop(tag)
        | Access::Adopt(tag)) = self
        else {
            unreachable!("the others were judged")
        };
        let spared = match self {
            Access::Fence { spared, .. } => *spared,
            _ => Tag::INITIAL,
        };
        tag.is_possible() && spared.is_possible()
    }
}

impl CellRequest {
    /// True if its ballot is possible.
    pub fn is_possible(&self) -> bool {
        match self {
            CellRequest::Query | CellRequest::Join(_) => true,
            CellRequest::Prepare { ballot } | CellRequest::Accept { ballot, .. } => {
                ballot.is_possible()
            }
        }
    }
}

impl HeldVersions {
    fn is_possible(&self) -> bool {
        let element = self.element.iter().map(|(tag, _)| tag);
        let stored = self.stored.iter().map(|(tag, _)| tag);
        let marks = [&self.floor, &self.stable, &self.fence, &self.seen];
        let complete = self.complete <= self.stable;
        complete && stored.chain(marks).chain(element).all(Tag::is_possible)
    }
}

impl CellReply {
    fn is_possible(&self) -> bool {
        match self {
            CellReply::Promised { accepted } | CellReply::Closed { accepted } => {
                accepted.iter().all(|(ballot, _)| ballot.is_possible())
            }
            CellReply::Rejected { promised } => promised.is_possible(),
            CellReply::Accepted | CellReply::Decided(_) => true,
        }
    }
}

impl Reply {
    /// True if every tag and ballot in it is possible.
    pub fn is_possible(&self) -> bool {
        match self {
            Reply::Access(answers) => answers.iter().all(|answer| match answer {
                Answer::Held(held) => held.is_possible(),
                Answer::Ranked(ranked) => ranked.is_possible(),
                _ => true,
            }),
            Reply::Listed(listed) => listed.entries.iter().all(|entry| entry.tag.is_possible()),
            Reply::Cell(reply) => reply.is_possible(),
            Reply::Next {
                reply: Some(reply), ..
            } => reply.is_possible(),
            _ => true,
        }
    }
}
