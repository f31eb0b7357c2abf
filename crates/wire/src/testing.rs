//! Messages and records to test with: one example of every variant ([`examples`]), and strategies that draw any
//! ([`strategies`]). Built for the tests of this crate, and for others by the feature `testing`.
//!
//! All of them are in the form in which they come back from the codec: an element with a payload has a checksum, one
//! without has none.

pub mod examples;
#[cfg(test)]
pub(crate) mod golden;
mod parts;
mod ranked;
mod restart;
pub mod strategies;

use areo_core::message::{
    Access, Answer, Body, CellReply, CellRequest, Enrolment, Note, Reply, Request, Want,
};
use areo_core::server::record::Header;

/// The name of a request in golden files. For a variant that this does not know nothing compiles: give it a name, an example and a place in its
/// strategy.
pub fn request_name(request: &Request) -> &'static str {
    match request {
        Request::Configured { body, .. } => match body {
            Body::Access(accesses) => accesses
                .first()
                .map_or("access-none", |(_, access)| access_name(access)),
            Body::List(_) => "list",
            Body::Cell { step, .. } => match step {
                CellRequest::Query => "cell-query",
                CellRequest::Prepare { .. } => "cell-prepare",
                CellRequest::Accept { .. } => "cell-accept",
                CellRequest::Join(_) => "cell-join",
            },
            Body::Cells { .. } => "cells",
            Body::ReadConfig => "read-config",
            Body::Register { step, .. } => match step {
                Enrolment::Ask => "ask-to-register",
                Enrolment::Register => "register",
                Enrolment::HandOn => "hand-on",
            },
            Body::Servers => "servers",
        },
        Request::Directory => "directory",
        Request::Know(_) => "know",
        Request::Status => "status",
        Request::View => "view",
        Request::Latest { .. } => "latest",
    }
}

fn access_name(access: &Access) -> &'static str {
    match access {
        Access::Query {
            announced: Some(_), ..
        } => "query-announced",
        Access::Query { want, .. } => match want {
            Want::Tags => "query-tags",
            Want::Metadata => "query-metadata",
            Want::Fragment => "query-fragment",
            Want::Element => "query-element",
        },
        Access::Fetch { payload: true, .. } => "fetch-payload",
        Access::Fetch { payload: false, .. } => "fetch-metadata",
        Access::Put {
            write_back: false, ..
        } => "put",
        Access::Put {
            write_back: true, ..
        } => "put-write-back",
        Access::Keep { .. } => "keep",
        Access::Adopt(_) => "adopt",
        Access::Fence { .. } => "fence",
        Access::Drop(_) => "drop",
        Access::Finalize { complete: true, .. } => "finalize-complete",
        Access::Finalize { want, .. } => match want {
            Want::Tags => "finalize",
            _ => "finalize-giving",
        },
        Access::Rank { ballot: None, .. } => "rank",
        Access::Rank { .. } => "rank-prepare",
        Access::Accept(proposal) if proposal.settles => "accept-settle",
        Access::Accept(_) => "accept",
    }
}

/// The name of a reply in golden files.
pub fn reply_name(reply: &Reply) -> &'static str {
    match reply {
        Reply::Access(answers) => match answers.first() {
            None => "access-none",
            Some(Answer::Held(held)) if held.element.is_some() => "held-element",
            Some(Answer::Held(held)) if !held.complete.is_initial() => "held-complete",
            Some(Answer::Held(held)) if !held.fence.is_initial() => "held-fence",
            Some(Answer::Held(_)) => "held",
            Some(Answer::Fetched(_)) => "fetched",
            Some(Answer::Evicted) => "evicted",
            Some(Answer::Stored) => "stored",
            Some(Answer::Needed) => "needed",
            Some(Answer::Dropped) => "dropped",
            Some(Answer::Ranked(ranked)) if ranked.element.is_some() => "ranked-element",
            Some(Answer::Ranked(_)) => "ranked",
            Some(Answer::Refused(_)) => "refused",
            Some(Answer::Later { .. }) => "later",
        },
        Reply::Listed(_) => "listed",
        Reply::Cell(reply) => match reply {
            CellReply::Promised { accepted: None } => "cell-promised",
            CellReply::Promised { accepted: Some(_) } => "cell-promised-accepted",
            CellReply::Accepted => "cell-accepted",
            CellReply::Rejected { .. } => "cell-rejected",
            CellReply::Decided(_) => "cell-decided",
            CellReply::Closed { .. } => "cell-closed",
        },
        Reply::Cells { .. } => "cells",
        Reply::Directory(_) => "directory",
        Reply::Servers(_) => "servers",
        Reply::Registered => "registered",
        Reply::Admissible(_) => "admissible",
        Reply::Outdated { .. } => "outdated",
        Reply::Status(_) => "status",
        Reply::View(_) => "view",
        Reply::Config => "config",
        Reply::Latest(_) => "latest",
        Reply::Next { reply: Some(_), .. } => "next",
        Reply::Next { reply: None, .. } => "withheld",
    }
}

/// The name of a note in golden files.
pub fn note_name(note: &Note) -> &'static str {
    match note {
        Note::Confirm { .. } => "confirm",
        Note::Chosen { .. } => "chosen",
        Note::Decided { .. } => "decided",
        Note::Next { .. } => "next",
        Note::Forget { .. } => "forget",
        Note::Serving(_) => "serving",
        Note::Gossip(_) => "gossip",
        Note::Restart(_) => "restart",
    }
}

/// The name of the header of a record in golden files.
pub fn header_name(header: &Header) -> &'static str {
    match header {
        Header::Configuration(_) => "configuration",
        Header::Element(_) => "element",
        Header::Marks { marks, .. } if !marks.complete.is_initial() => "marks-complete",
        Header::Marks { .. } => "marks",
        Header::Register { .. } => "register",
        Header::BallotFloor { .. } => "ballot-floor",
        Header::Cell { acceptor, .. } => match (&acceptor.accepted, acceptor.decided) {
            (None, _) => "cell-promised",
            (Some(_), false) => "cell-accepted",
            (Some(_), true) => "cell-decided",
        },
        Header::Registry(_) => "registry",
        Header::Pointer { .. } => "pointer",
        Header::Final(_) => "final",
    }
}
