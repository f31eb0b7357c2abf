//! What connections hand over: bytes to requests, requests to the worker.

use std::rc::Rc;

use areo_core::config::ServerId;
use areo_core::message::{Refusal, Request};
use areo_net::listener::{Class, Identity, Service};
use areo_net::{Incoming, Responder, Segment};
use areo_wire::codec;
use areo_wire::hello::{Hello, Role};
use bytes::Bytes;

use crate::caller::Caller;
use crate::worker::Worker;

/// One server as its connections see it.
pub(crate) struct NodeService {
    pub(crate) identity: Identity,
    pub(crate) worker: Rc<Worker>,
}

fn pairs(payload: Vec<Segment>) -> Vec<(Bytes, u32)> {
    let pair = |segment: Segment| (segment.bytes, segment.crc32c);
    payload.into_iter().map(pair).collect()
}

impl Service for NodeService {
    fn identity(&self) -> Identity {
        self.identity
    }

    /// A caller that says that it is a server has to be registered to have the place of one: the id is no secret, but a stranger
    /// has to ask for it first.
    fn class_of(&self, hello: &Hello) -> Class {
        match hello.role == Role::Server && self.worker.knows(ServerId(hello.own_id)) {
            true => Class::Server,
            false => Class::Client,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        let (remaining, trace) = (request.remaining(), request.header.trace);
        match codec::decode_request(request.body, pairs(request.payload)) {
            // What a server knows of others comes from the registry and from themselves: decision record 0033.
            Ok(Request::Know(_)) => responder.refuse(Refusal::Unauthorised, &[][..]),
            Ok(decoded) => {
                let caller = Caller::connection(responder, &decoded, self.worker.arrival(), trace);
                self.worker.request(decoded, caller, remaining);
            }
            Err(error) => {
                let remote = responder.connection().remote();
                tracing::warn!(%remote, %error, "a request that cannot be read");
                responder.refuse(Refusal::Malformed, &[][..]);
            }
        }
    }

    fn on_note(&self, note: Incoming<'_>) {
        match codec::decode_note(note.body, pairs(note.payload)) {
            Ok(note) => self.worker.note(note),
            Err(error) => tracing::warn!(%error, "a note that cannot be read"),
        }
    }

    fn on_batch_end(&self) {
        self.worker.turn();
    }
}
