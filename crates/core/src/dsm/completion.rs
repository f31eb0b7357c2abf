//! Completing what a client has read that may only read, in its place (decision record 0072).
//!
//! A reader writes back what it finds at too few members, and servers take in all that it says: a client without the right to write could so
//! write anything. So of its request a server takes the names and the versions, brings those objects to all members itself, as repair does,
//! and answers when each is at a quorum in this version or a larger one. The elements that the client sent do not matter.
//!
//! Repair leaves a domain that is being reconfigured to the transfer. A reader does not wait for that, which may never come to its end: there
//! the server reads the object from all configurations on the way, and brings it to the last one, as each reader does.
//!
//! A client looks up a value that consensus has decided. It may find members that have accepted the value and have not heard that it is decided, and then
//! proposes the value again. A client without the right to propose has the server do that: the server decides the cell with the value that members have accepted, and answers
//! with it. It proposes no value that the client brings, so that a cell without an accepted value stays empty.

use super::interruption::Interruption;
use super::newest::SettledVersion;
use super::redundancy::Incomplete;
use super::{Client, Domain};
use crate::config::{Configuration, ConfigurationId};
use crate::dap::PassedVersions;
use crate::env::Env;
use crate::error::Unavailable;
use crate::message::{Access, Answer, Body, CellReply, CellRequest, Reply, Request};
use crate::object::Name;
use crate::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

/// The requests of a reader that change something, because the version that it found may not be at a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A put of elements.
    WriteBack,
    /// It finalizes a version, and may want its element.
    Finalize,
    /// It asks for a promise, to have a version of a ranked register chosen.
    Prepare,
    /// It asks for a promise in a cell, to have a value decided that members have accepted.
    Decision,
}

/// The end of such a request, once its versions are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The request is answered with this.
    Answered(Reply),
    /// It changes nothing any more: it is handled as any other.
    PassedOn,
    /// This request is handled in place of the reader's, like any other: it changes nothing.
    Replaced(Request),
    /// There is nothing to complete: the request begins a proposal of the client's own.
    Unfounded,
}

impl Completion {
    /// The completion of a request all of whose accesses are such, or of a step in a cell.
    pub fn of(request: &Request) -> Option<Completion> {
        if let Some((_, step)) = cell_of(request) {
            let is_such = matches!(step, CellRequest::Prepare { .. });
            return is_such.then_some(Completion::Decision);
        }
        let mut accesses = accesses_of(request).iter();
        let (_, first) = accesses.next()?;
        let first = Completion::of_access(first)?;
        let is_such = |(_, access): &(Name, Access)| Completion::of_access(access) == Some(first);
        accesses.all(is_such).then_some(first)
    }

    fn of_access(access: &Access) -> Option<Completion> {
        match access {
            Access::Put {
                write_back: true, ..
            } => Some(Completion::WriteBack),
            Access::Finalize { .. } => Some(Completion::Finalize),
            Access::Rank {
                ballot: Some(_), ..
            } => Some(Completion::Prepare),
            // A register's version is accepted only after a promise, and the others are of writers and of those that tidy up.
            Access::Put { .. }
            | Access::Query { .. }
            | Access::Fetch { .. }
            | Access::Keep { .. }
            | Access::Adopt(_)
            | Access::Fence { .. }
            | Access::Drop(_)
            | Access::Rank { ballot: None, .. }
            | Access::Accept(_) => None,
        }
    }

    fn answer(self, request: &Request) -> Completed {
        match self {
            Completion::WriteBack => {
                let accesses = accesses_of(request).len();
                Completed::Answered(Reply::Access(vec![Answer::Stored; accesses]))
            }
            Completion::Finalize => Completed::PassedOn,
            // Not granted: the reader looks again, and finds the version chosen.
            Completion::Prepare => Completed::Replaced(without_ballots(request.clone())),
            Completion::Decision => unreachable!("a decision has its answer from the cell"),
        }
    }
}

/// The question of the request, which promises nothing.
fn without_ballots(mut request: Request) -> Request {
    if let Request::Configured {
        body: Body::Access(accesses),
        ..
    } = &mut request
    {
        for (_, access) in accesses {
            if let Access::Rank { ballot, .. } = access {
                *ballot = None;
            }
        }
    }
    request
}

/// The accesses of a request, if it is one.
pub fn accesses_of(request: &Request) -> &[(Name, Access)] {
    match request {
        Request::Configured {
            body: Body::Access(accesses),
            ..
        } => accesses,
        _ => &[],
    }
}

/// The cell of a request with its step there, if it is one.
pub fn cell_of(request: &Request) -> Option<(&Bytes, &CellRequest)> {
    match request {
        Request::Configured {
            body: Body::Cell { cell, step },
            ..
        } => Some((cell, step)),
        _ => None,
    }
}

/// The version that the reader has found; of a ranked register the one that is current.
fn version_of(access: &Access) -> Tag {
    match access {
        Access::Put { tag, .. } | Access::Finalize { tag, .. } => *tag,
        _ => Tag::INITIAL,
    }
}

impl<E: Env> Client<E> {
    /// Completes the versions of a reader's request, or decides its cell. `c`: the last final configuration of the domain that is known. `None`:
    /// some of the versions are not found, or there is no quorum; the reader is to ask again.
    pub async fn complete_for(
        &self,
        c: &Arc<Configuration>,
        request: &Request,
    ) -> Option<Completed> {
        let completion = Completion::of(request)?;
        let Request::Configured { configuration, .. } = request else {
            unreachable!("a completion is of a configuration")
        };
        let domain = self.domain(c);
        if let Some((cell, _)) = cell_of(request) {
            return domain.finish_decision(cell).await;
        }
        let accesses = accesses_of(request);
        assert!(!accesses.is_empty(), "a completion is of something");
        for (name, access) in accesses {
            let (c, tag) = (domain.start(), version_of(access));
            let completed = match domain.complete_version(&c, name, tag).await {
                Err(Incomplete::Moving) => {
                    domain.complete_on_the_way(configuration, name, tag).await
                }
                completed => completed.ok(),
            };
            completed.filter(|is_there| *is_there)?;
        }
        Some(completion.answer(request))
    }
}

impl<E: Env> Domain<E> {
    /// Decides the cell with the value that members have accepted. `None`: no quorum.
    async fn finish_decision(&self, cell: &Bytes) -> Option<Completed> {
        let decided = self.learn(cell).await.ok()?;
        let answer = decided.map(|value| Reply::Cell(CellReply::Decided(value)));
        Some(answer.map_or(Completed::Unfounded, Completed::Answered))
    }

    /// Brings the object to a quorum of the last configuration, as a read does while the domain is being reconfigured. True if that is the
    /// asked one or comes after it, and the version is this one or a larger one. `None`: no quorum.
    async fn complete_on_the_way(
        &self,
        asked: &ConfigurationId,
        name: &Name,
        tag: Tag,
    ) -> Option<bool> {
        assert_eq!(
            asked.domain,
            self.start().id().domain,
            "it is of this domain"
        );
        let awaited = self.members_that_list(name, tag).await.ok()?;
        let passed = PassedVersions {
            awaited,
            ..PassedVersions::default()
        };
        let settled = self.settle_on_the_way(name, passed).await.ok()?;
        let last = settled.last.c().id();
        // The reader has made the asked one known to a quorum of each configuration before it.
        let is_reached = last == *asked || last.index > asked.index;
        Some(is_reached && settled.found.tag >= tag)
    }

    async fn settle_on_the_way(
        &self,
        name: &Name,
        passed: PassedVersions,
    ) -> Result<SettledVersion, Unavailable> {
        let mut is_register = self.is_ranked(name);
        loop {
            if is_register && let Some(chosen) = Box::pin(self.choose_again(name)).await? {
                return Ok(chosen);
            }
            match self.read_settled(name, None, passed.clone()).await {
                Ok(settled) => return Ok(settled),
                Err(Interruption::Unavailable(unavailable)) => return Err(unavailable),
                Err(Interruption::Ranked) => is_register = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigurationId;
    use crate::element::{Element, Form};
    use crate::limits;
    use crate::message::{Ballot, Lineage, Proposal, Want};
    use crate::object::DomainId;
    use crate::pointer::Successors;

    fn request(accesses: Vec<Access>) -> Request {
        let name = Name::user("a").unwrap();
        let accesses = accesses.into_iter().map(|it| (name.clone(), it));
        asked(Body::Access(accesses.collect()))
    }

    fn asked(body: Body) -> Request {
        let configuration = ConfigurationId {
            domain: DomainId(2),
            partition: 0,
            index: 0,
            digest: 0,
        };
        Request::Configured {
            configuration,
            descriptor: None,
            successors: Successors::default(),
            body,
        }
    }

    #[test]
    fn what_a_reader_completes_is_told_from_what_a_writer_does() {
        let tag = Tag::INITIAL;
        let put = |write_back| Access::Put {
            tag,
            element: Element {
                form: Form::Copy,
                deleted: false,
                length: 0,
                metadata: Bytes::new(),
                payload: Bytes::new(),
                checksum: None,
            },
            write_back,
        };
        let finalize = || Access::Finalize {
            tag,
            want: Want::Element,
            complete: false,
        };
        let rank = |number| Access::Rank {
            ballot: Some(Ballot {
                number,
                ..Ballot::default()
            }),
            want: Want::Element,
            have: tag,
        };
        let look = || Access::Rank {
            ballot: None,
            want: Want::Element,
            have: tag,
        };
        let accept = Access::Accept(Box::new(Proposal {
            ballot: Ballot::default(),
            tag,
            element: None,
            lineage: Lineage::default(),
            settles: true,
            base_chosen: false,
        }));
        let prepare = Completion::Prepare;
        for (accesses, expected) in [
            (vec![put(true)], Some(Completion::WriteBack)),
            (vec![put(true), put(true)], Some(Completion::WriteBack)),
            (vec![finalize(), finalize()], Some(Completion::Finalize)),
            (vec![rank(0)], Some(prepare)),
            (vec![rank(limits::CLOSING)], Some(prepare)),
            (vec![look()], None),
            (vec![put(true), put(false)], None),
            (vec![put(true), finalize()], None),
            (vec![put(true), Access::query(Want::Tags, tag)], None),
            (vec![accept], None),
            (vec![Access::Adopt(tag)], None),
            (vec![Access::Drop(tag)], None),
            (vec![], None),
        ] {
            assert_eq!(
                Completion::of(&request(accesses.clone())),
                expected,
                "{accesses:?}"
            );
        }
        assert_eq!(Completion::of(&Request::Status), None);
        let completed = Completion::Prepare.answer(&request(vec![rank(1)]));
        assert_eq!(completed, Completed::Replaced(request(vec![look()])));
    }

    #[test]
    fn a_ballot_for_a_cell_is_completed_and_a_value_is_not() {
        let ballot = Ballot::default();
        let value = Bytes::from_static(b"of the caller");
        for (step, expected) in [
            (CellRequest::Prepare { ballot }, Some(Completion::Decision)),
            (CellRequest::Accept { ballot, value }, None),
            (CellRequest::Query, None),
        ] {
            let cell = Bytes::from_static(b"cell");
            let of_cell = asked(Body::Cell { cell, step });
            assert_eq!(Completion::of(&of_cell), expected, "{of_cell:?}");
        }
    }
}
