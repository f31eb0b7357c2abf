//! Completing what a client has read that may only read, in its place (decision record 0072).
//!
//! A reader writes back what it finds at too few members, and servers take in all that it says: a client without the right to write could so
//! write anything. So of its request a server takes the names and the versions, brings those objects to all members itself, as repair does,
//! and answers when each is at a quorum in this version or a larger one. The elements that the client sent do not matter.

use super::Client;
use crate::config::Configuration;
use crate::env::Env;
use crate::message::{Access, Answer, Ballot, Body, RankedVersions, Reply, Request};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

/// The requests of a reader that change something, because the version that it found may not be at a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It brings elements.
    WriteBack,
    /// It finalizes a version, and may want its element.
    Finalize,
    /// It asks for a promise, to have a version of a ranked register chosen.
    Prepare(Ballot),
}

/// The end of such a request, once its versions are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// This is the answer.
    Answered(Reply),
    /// It changes nothing any more: it is handled as any other.
    PassedOn,
}

impl Completion {
    /// That of a request all of whose accesses are such.
    pub fn of(request: &Request) -> Option<Completion> {
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
            // A closing ballot is of a change of the domain.
            Access::Rank {
                ballot: Some(ballot),
                ..
            } if !ballot.is_closing() => Some(Completion::Prepare(*ballot)),
            // A register's version is accepted only after a promise, and the others are of writers and of those that tidy up.
            Access::Put { .. }
            | Access::Query { .. }
            | Access::Fetch { .. }
            | Access::Keep { .. }
            | Access::Adopt(_)
            | Access::Fence { .. }
            | Access::Drop(_)
            | Access::Rank { .. }
            | Access::Accept(_) => None,
        }
    }

    fn answer(self, accesses: usize) -> Completed {
        let answer = match self {
            Completion::WriteBack => Answer::Stored,
            Completion::Finalize => return Completed::PassedOn,
            // Not granted: the reader looks again, and finds the version chosen.
            Completion::Prepare(promised) => Answer::Ranked(Box::new(RankedVersions {
                promised,
                ..RankedVersions::default()
            })),
        };
        Completed::Answered(Reply::Access(vec![answer; accesses]))
    }
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

/// The version that the reader has found; of a ranked register the one that is current.
fn version_of(access: &Access) -> Tag {
    match access {
        Access::Put { tag, .. } | Access::Finalize { tag, .. } => *tag,
        _ => Tag::INITIAL,
    }
}

impl<E: Env> Client<E> {
    /// Completes the versions of a reader's request. `c`: the last final configuration of the domain that is known. `None`: some of
    /// the versions are not found, there is no quorum, or the domain is moving; the reader is to ask again.
    pub async fn complete_for(
        &self,
        c: &Arc<Configuration>,
        request: &Request,
    ) -> Option<Completed> {
        let completion = Completion::of(request)?;
        let accesses = accesses_of(request);
        assert!(!accesses.is_empty(), "a completion is of something");
        let domain = self.domain(c);
        let c = domain.start();
        for (name, access) in accesses {
            let completed = domain.complete_version(&c, name, version_of(access)).await;
            completed.ok().filter(|is_there| *is_there)?;
        }
        Some(completion.answer(accesses.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigurationId;
    use crate::element::{Element, Form};
    use crate::limits;
    use crate::message::{Lineage, Proposal, Want};
    use crate::object::DomainId;
    use crate::pointer::Successors;

    fn request(accesses: Vec<Access>) -> Request {
        let configuration = ConfigurationId {
            domain: DomainId(2),
            partition: 0,
            index: 0,
            digest: 0,
        };
        let name = Name::user("a").unwrap();
        let accesses = accesses.into_iter().map(|it| (name.clone(), it));
        Request::Configured {
            configuration,
            descriptor: None,
            successors: Successors::default(),
            body: Body::Access(accesses.collect()),
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
                metadata: bytes::Bytes::new(),
                payload: bytes::Bytes::new(),
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
        let accept = Access::Accept(Box::new(Proposal {
            ballot: Ballot::default(),
            tag,
            element: None,
            lineage: Lineage::default(),
            settles: true,
            base_chosen: false,
        }));
        let prepare = Completion::Prepare(Ballot::default());
        for (accesses, expected) in [
            (vec![put(true)], Some(Completion::WriteBack)),
            (vec![put(true), put(true)], Some(Completion::WriteBack)),
            (vec![finalize(), finalize()], Some(Completion::Finalize)),
            (vec![rank(0)], Some(prepare)),
            (vec![rank(limits::CLOSING)], None),
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
    }
}
