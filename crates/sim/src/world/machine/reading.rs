//! Callers that may only read, beside those that may do everything: what such a caller read a server completes in its place, by the production
//! code (`core::dsm::completion`). What else it would change is refused.

use super::{Caller, World};
use crate::world::call::envs;
use areo_core::config::Configuration;
use areo_core::dsm::Client;
use areo_core::dsm::completion::{Completed, Completion, accesses_of};
use areo_core::message::{Access, Body, CellRequest, Refusal, Request};
use areo_node::Job;
use areo_wire::codec;
use areo_wire::frame::NO_DEADLINE;
use std::sync::Arc;
use std::time::Duration;

/// How long the completion of what one request is about may take.
const ATTEMPT: Duration = Duration::from_secs(1);

impl World {
    /// The caller of this call may only read.
    pub(in crate::world) fn only_reads(&self, call: u64) {
        self.0.readers.borrow_mut().insert(call);
    }

    /// Takes a request of a caller that may send it.
    pub(super) fn admit(
        &self,
        ends: (usize, usize),
        (call, deadline_ms): (u64, u32),
        request: Request,
    ) {
        if !self.0.readers.borrow().contains(&call) {
            self.handle(ends, (call, deadline_ms), request);
        } else if Completion::of(&request).is_some() {
            self.complete_for(ends, (call, deadline_ms), request);
        } else if changes(&request) {
            self.send_reply(ends, call, Err(Refusal::Unauthorised));
        } else {
            self.handle(ends, (call, deadline_ms), request);
        }
    }

    fn handle(
        &self,
        (client, server): (usize, usize),
        (call, deadline_ms): (u64, u32),
        request: Request,
    ) {
        let subject = self.subject(&request);
        let at = match &request {
            Request::Configured { configuration, .. } => Some(*configuration),
            _ => None,
        };
        let now = self.clock(self.caller_of(server));
        let job = Job::Request {
            request,
            caller: Caller {
                client,
                call,
                at,
                subject,
            },
            deadline: (deadline_ms != NO_DEADLINE)
                .then(|| now.plus(Duration::from_millis(deadline_ms.into()))),
        };
        self.take(server, job);
    }

    /// The last final configuration that the server knows of the domain that is asked, if it serves.
    fn last_known(&self, server: usize, request: &Request) -> Option<Arc<Configuration>> {
        let Request::Configured { configuration, .. } = request else {
            return None;
        };
        let machines = self.0.machines.borrow();
        let live = machines.list[server].live.as_ref()?;
        let it = live.node.shard().server();
        let last = it
            .latest_of(configuration)
            .or_else(|| it.configuration(configuration));
        last.filter(|_| it.is_serving()).cloned()
    }

    fn complete_for(
        &self,
        (client, server): (usize, usize),
        (call, deadline_ms): (u64, u32),
        request: Request,
    ) {
        let ends = (client, server);
        let Some(last) = self.last_known(server, &request) else {
            return self.send_reply(ends, call, Err(Refusal::Starting));
        };
        let (world, env) = (self.clone(), envs(self, self.caller_of(server), ATTEMPT)());
        let task = self.spawn(async move {
            let completed = Client::new(env).complete_for(&last, &request).await;
            let count = &world.0.completed;
            count.set(count.get() + u64::from(completed.is_some()));
            match completed {
                Some(Completed::Answered(reply)) => {
                    world.send_reply(ends, call, Ok(codec::encode_reply(&reply)));
                }
                Some(Completed::PassedOn) => world.handle(ends, (call, deadline_ms), request),
                None => world.send_reply(ends, call, Err(Refusal::Starting)),
            }
        });
        self.0.machines.borrow_mut().list[server]
            .completing
            .push(task);
    }
}

/// Whether it would change something, or promise something, beside what a reader completes.
fn changes(request: &Request) -> bool {
    let Request::Configured { body, .. } = request else {
        return false;
    };
    let is_read = |access: &Access| {
        matches!(
            access,
            Access::Query {
                announced: None,
                ..
            } | Access::Fetch { .. }
                | Access::Rank { ballot: None, .. }
        )
    };
    match body {
        Body::Cell { step, .. } => *step != CellRequest::Query,
        _ => !accesses_of(request)
            .iter()
            .all(|(_, access)| is_read(access)),
    }
}
