//! The service behind connections: bytes to requests, requests to the worker.

use std::net::SocketAddr;
use std::rc::Rc;

use areo_core::config::ServerId;
use areo_core::message::Refusal;
use areo_core::object::DomainId;
use areo_net::listener::{Class, Identity, Service};
use areo_net::{Incoming, Origin, Responder, Segment};
use areo_wire::codec;
use areo_wire::hello::{Hello, Role};
use bytes::Bytes;

use crate::trusting::{self, Trusting};
use crate::worker::Worker;
use gate::{Asked, Gate};
pub(crate) use need::Hearsay;

mod gate;
mod judge;
mod names;
mod need;
mod others;

/// One server as its connections see it.
pub(crate) struct NodeService {
    identity: Identity,
    worker: Rc<Worker>,
    gate: Rc<Gate>,
    /// Answers requests about the trust of the cluster; none where connections are plain.
    trusting: Option<Rc<Trusting>>,
}

impl NodeService {
    pub(crate) fn new(
        identity: Identity,
        worker: &Rc<Worker>,
        root: DomainId,
        trusting: Option<Rc<Trusting>>,
    ) -> NodeService {
        NodeService {
            identity,
            worker: Rc::clone(worker),
            gate: Gate::new(worker, root),
            trusting,
        }
    }
}

/// Says that a request cannot be read. That of a stranger has a line of its own: strangers do not use up the lines that are written of others.
pub(crate) fn unreadable(origin: &Origin, remote: SocketAddr, error: &dyn std::fmt::Display) {
    match origin {
        Origin::Anonymous => {
            tracing::info!(%remote, %error, "a request of a stranger that cannot be read");
        }
        Origin::Plain | Origin::Server(_) | Origin::Key(_) => {
            tracing::warn!(%remote, %error, "a request that cannot be read");
        }
    }
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
        if codec::trust::is_request(request.body) {
            match &self.trusting {
                Some(trusting) => Rc::clone(trusting).on_request(request.body, responder),
                None => trusting::refuse(responder),
            }
            return;
        }
        let (remaining, trace) = (request.remaining(), request.header.trace);
        match codec::decode_request(request.body, pairs(request.payload)) {
            Ok(request) => self.gate.request(Asked {
                request,
                responder,
                remaining,
                trace,
            }),
            Err(error) => {
                let remote = responder.connection().remote();
                unreadable(responder.origin(), remote, &error);
                responder.refuse(Refusal::Malformed, &[][..]);
            }
        }
    }

    fn on_note(&self, note: Incoming<'_>, origin: &Origin) {
        match codec::decode_note(note.body, pairs(note.payload)) {
            Ok(note) => self.gate.note(note, origin),
            Err(error) if *origin == Origin::Anonymous => {
                tracing::info!(%error, "a note of a stranger that cannot be read");
            }
            Err(error) => tracing::warn!(%error, "a note that cannot be read"),
        }
    }

    fn on_batch_end(&self) {
        self.worker.turn();
    }
}

#[cfg(test)]
mod tests;
