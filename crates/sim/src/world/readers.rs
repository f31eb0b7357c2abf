//! Operations of clients that may only read (decision record 0072). As in `server`, a server completes what such a client writes back, under its
//! own name, and refuses what a reader has no right to send. A read needs nothing of that: a refusal breaks the rule `rights`.
//!
//! What such a client passes on of configurations is taken in here, as that of other clients is.

use super::World;
use super::call::SimEnv;
use super::network::Body;
use crate::fault::Fault;
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::dsm::Client;
use areo_core::dsm::completion::{Completed, Completion};
use areo_core::message::{Access, Body as Asked, CellRequest, Refusal, Request};
use areo_wire::codec;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The longest time for a completion, as in `server`.
const COMPLETION: Duration = Duration::from_secs(5);

/// The calls of readers, and what servers do for them.
pub(super) struct Readers {
    /// Numbers of calls whose senders may only read.
    calls: RefCell<BTreeSet<u64>>,
    /// Tasks of each server that complete versions for readers.
    completing: RefCell<Vec<Vec<usize>>>,
}

impl Readers {
    pub(super) fn new(servers: usize) -> Readers {
        Readers {
            calls: RefCell::default(),
            completing: RefCell::new(vec![Vec::new(); servers]),
        }
    }
}

/// The handling of a reader's request by a server.
enum Handling {
    Answer,
    Complete,
    Refuse,
}

impl World {
    pub(super) fn note_reader(&self, call: u64) {
        self.0.readers.calls.borrow_mut().insert(call);
    }

    pub(super) fn is_of_reader(&self, call: u64) -> bool {
        self.0.readers.calls.borrow().contains(&call)
    }

    /// The server is gone, and with it its work for readers.
    pub(super) fn end_completions(&self, server: usize) {
        let tasks = std::mem::take(&mut self.0.readers.completing.borrow_mut()[server]);
        for task in tasks {
            self.abort(task);
        }
    }

    pub(super) fn on_request_of_reader(
        &self,
        ends: (usize, usize),
        (call, deadline_ms): (u64, u32),
        body: Body,
    ) {
        let (_, server) = ends;
        let Ok(request) = codec::decode_request(&body.body, body.payload.clone()) else {
            return self.on_request(ends, (call, deadline_ms), body);
        };
        if !self.is_serving(server) {
            // It says so, and does nothing.
            return self.on_request(ends, (call, deadline_ms), body);
        }
        match handling(&request) {
            Handling::Answer => self.on_request(ends, (call, deadline_ms), body),
            Handling::Refuse => {
                self.violate(format!("rights: a reader sends {request:?}"));
                self.send_reply(ends, call, Err(Refusal::Unauthorised));
            }
            Handling::Complete => self.complete(ends, (call, deadline_ms), (request, body)),
        }
    }

    fn complete(
        &self,
        ends: (usize, usize),
        (call, deadline_ms): (u64, u32),
        (request, body): (Request, Body),
    ) {
        let (_, server) = ends;
        let Request::Configured { configuration, .. } = &request else {
            unreachable!("a completion is of accesses")
        };
        let Some(known) = self.latest_known(server, configuration) else {
            return self.send_reply(ends, call, Err(Refusal::Starting));
        };
        self.plan().note(Fault::CompletedForReader);
        let world = self.clone();
        let task = self.spawn(async move {
            let env = SimEnv::new(&world, world.caller_of(server), COMPLETION);
            let completed = Client::new(env).complete_for(&known, &request).await;
            match completed {
                None => world.send_reply(ends, call, Err(Refusal::Starting)),
                Some(Completed::Answered(reply)) => {
                    world.send_reply(ends, call, Ok(codec::encode_reply(&reply)));
                }
                Some(Completed::PassedOn) => world.on_request(ends, (call, deadline_ms), body),
                Some(Completed::Replaced(request)) => {
                    let codec::EncodedMessage { body, payload } = codec::encode_request(&request);
                    let body = Body { body, payload };
                    world.on_request(ends, (call, deadline_ms), body);
                }
                Some(Completed::Unfounded) => unreachable!("it is of cells alone"),
            }
        });
        self.0.readers.completing.borrow_mut()[server].push(task);
    }

    /// The last final configuration of the domain that the server knows, or else the first one, by the directory.
    fn latest_known(&self, server: usize, id: &ConfigurationId) -> Option<Arc<Configuration>> {
        let known = self.0.machines.borrow().list[server].latest_of(id);
        let is_of_domain = |c: &&Arc<Configuration>| c.id().domain == id.domain;
        let watch = self.0.watch.borrow();
        known.or_else(|| watch.shapes.values().find(is_of_domain).cloned())
    }
}

/// The table of grants in `server`, for a caller with `read` alone. A new access or request is to be placed here, too.
fn handling(request: &Request) -> Handling {
    match Completion::of(request) {
        // Only cells of the directory are decided for a reader, which finds its domain without them here.
        Some(Completion::Decision) => return Handling::Refuse,
        Some(_) => return Handling::Complete,
        None => {}
    }
    let may_send = match request {
        Request::Configured { body, .. } => match body {
            Asked::Access(accesses) => accesses.iter().all(|(_, access)| is_look(access)),
            Asked::ReadConfig | Asked::Servers => true,
            Asked::Cell { step, .. } => matches!(step, CellRequest::Query),
            Asked::List(_) | Asked::Cells { .. } | Asked::Register { .. } => false,
        },
        Request::Directory | Request::Latest { .. } => true,
        Request::Status | Request::View | Request::Know(_) => false,
    };
    match may_send {
        true => Handling::Answer,
        false => Handling::Refuse,
    }
}

fn is_look(access: &Access) -> bool {
    match access {
        Access::Query { announced, .. } => announced.is_none(),
        Access::Rank { ballot, .. } => ballot.is_none(),
        Access::Fetch { .. } => true,
        Access::Put { .. }
        | Access::Keep { .. }
        | Access::Adopt(_)
        | Access::Fence { .. }
        | Access::Finalize { .. }
        | Access::Drop(_)
        | Access::Accept(_) => false,
    }
}
