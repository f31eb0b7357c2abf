//! Wrong clients: what the worlds must catch. Each bug is planted between a client and its quorum calls.

use crate::world::{WorldEnv, like_the_inner_world};
use areo_core::config::Members;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::message::{Access, Body, Reply, Request};
use areo_core::pointer::Status;
use areo_core::tally::{Decision, Event, Tally};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    None,
    /// The transfer does not list tombstones (`[X-18 tombstone-versions]`).
    TombstonesStay,
    /// The transfer lists one page.
    FirstPageOnly,
    /// A put ends, and is confirmed, although an acknowledgement showed a pending pointer (`[F-5 clean-confirm]`).
    PutEndsBehindPointer,
    /// A read is over after one round although a reply showed a pending pointer (`[F-4 last-configuration]`).
    FastReadBehindPointer,
    /// Servers lose their pointers when they start again (`[A-2 pointers-rise]`). The world does that.
    PointerGoesBack,
    /// The configuration is called final, and its predecessors collected, before the transfer
    /// (`[X-14 final-after-transfer]`).
    FinalBeforeTransfer,
}

/// The world of a client with a bug.
#[derive(Clone)]
pub struct Bent {
    pub env: WorldEnv,
    pub bug: Bug,
}

struct Bending<T> {
    tally: T,
    bug: Bug,
    /// What was asked last: of all members the same.
    asked: Asked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Put,
    Query,
    /// A page of objects, by a transfer.
    TransferList,
    Other,
}

fn asked(request: &Request) -> Asked {
    let Request::Configured { pointer, body, .. } = request else {
        return Asked::Other;
    };
    match (body, pointer) {
        (Body::List(_), Some(_)) => Asked::TransferList,
        (Body::Access(accesses), None) => match accesses.first() {
            Some((_, Access::Put { .. })) => Asked::Put,
            _ => Asked::Query,
        },
        _ => Asked::Other,
    }
}

impl<T: Tally> Bending<T> {
    fn bend_request(&mut self, mut request: Request) -> Request {
        self.asked = asked(&request);
        if let (Bug::FinalBeforeTransfer, Request::Configured { pointer, body, .. }) =
            (self.bug, &mut request)
            && *body == Body::ReadConfig
            && let Some(pointer) = pointer
        {
            pointer.status = Status::Final;
        }
        request
    }

    fn bend_reply(&self, reply: Reply) -> Reply {
        match (self.bug, self.asked, reply) {
            (Bug::PutEndsBehindPointer, Asked::Put, reply)
            | (Bug::FastReadBehindPointer, Asked::Query, reply) => match reply {
                Reply::Next {
                    pointer,
                    reply: Some(reply),
                } if !pointer.is_final() => *reply,
                reply => reply,
            },
            (Bug::TombstonesStay | Bug::FirstPageOnly, Asked::TransferList, mut reply) => {
                self.bend_list(&mut reply);
                reply
            }
            (_, _, reply) => reply,
        }
    }

    fn bend_list(&self, reply: &mut Reply) {
        match reply {
            Reply::Next {
                reply: Some(reply), ..
            } => self.bend_list(reply),
            Reply::Listed(listed) if self.bug == Bug::TombstonesStay => {
                listed.entries.retain(|entry| !entry.deleted);
            }
            Reply::Listed(listed) => listed.entries.truncate(2),
            _ => {}
        }
    }
}

impl<T: Tally> Tally for Bending<T> {
    type Output = T::Output;

    fn needed(&self) -> usize {
        self.tally.needed()
    }

    fn ask(&mut self, position: usize) -> Option<Request> {
        let request = self.tally.ask(position)?;
        Some(self.bend_request(request))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<T::Output> {
        let event = match event {
            Event::Reply(reply) => Event::Reply(self.bend_reply(reply)),
            event => event,
        };
        self.tally.add(from, event)
    }

    fn tick(&mut self) -> Decision<T::Output> {
        self.tally.tick()
    }

    fn patience(&self) -> Option<Duration> {
        self.tally.patience()
    }
}

impl Env for Bent {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let bending = Bending {
            tally,
            bug: self.bug,
            asked: Asked::Other,
        };
        self.env.gather(to, bending)
    }

    like_the_inner_world!();
}
