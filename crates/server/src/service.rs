//! What connections hand over: bytes to requests, requests to the worker.

use std::rc::Rc;

use areo_core::config::ServerId;
use areo_core::message::{Body, Enrolment, Note, Refusal, Request};
use areo_net::listener::{Class, Identity, Service};
use areo_net::{Incoming, Origin, Responder, Segment};
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

/// The callers that may send a message where connections are encrypted. Grants of clients are judged beside this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// Any caller.
    Anyone,
    /// The server of this id alone.
    Server(ServerId),
    /// No caller.
    Nothing,
}

impl Sender {
    /// Judges a caller.
    fn is(self, origin: &Origin) -> bool {
        match self {
            Sender::Anyone => true,
            Sender::Server(server) => origin.may_be(server),
            Sender::Nothing => false,
        }
    }
}

/// The callers that may send a request.
fn sender_of(request: &Request) -> Sender {
    match request {
        Request::Configured { body, .. } => sender_of_body(body),
        Request::Directory | Request::Status | Request::Latest { .. } => Sender::Anyone,
        // What a server knows of others comes from the registry and from themselves: decision record 0033.
        Request::Know(_) => Sender::Nothing,
    }
}

fn sender_of_body(body: &Body) -> Sender {
    match body {
        // Readers and writers are clients, and so is a server that repairs itself. Clients decide configurations and uploads, too.
        Body::Access(_)
        | Body::List(_)
        | Body::ReadConfig
        | Body::Cell { .. }
        | Body::Cells { .. }
        | Body::Servers => Sender::Anyone,
        Body::Register { step, record } => match step {
            // An operator's client forgets a server. No start is later than that.
            Enrolment::Register if record.is_forgotten() => Sender::Anyone,
            Enrolment::Ask | Enrolment::Register => Sender::Server(record.id),
            // The client of a reconfiguration of the root domain, or of a mark that a server is to go.
            Enrolment::HandOn => Sender::Anyone,
        },
    }
}

/// The callers that may send a note.
fn sender_of_note(note: &Note) -> Sender {
    match note {
        // Said by writers, and by clients that change a domain.
        Note::Confirm { .. }
        | Note::Chosen { .. }
        | Note::Decided { .. }
        | Note::Forget { .. }
        | Note::Next { .. } => Sender::Anyone,
        Note::Serving(record) => Sender::Server(record.id),
        Note::Gossip(gossip) => Sender::Server(gossip.from),
        Note::Restart(restart) => Sender::Server(restart.from),
    }
}

impl NodeService {
    fn is_of_forgotten(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Server(server) => self.worker.has_forgotten(*server),
            Origin::Plain | Origin::Anonymous | Origin::Key(_) => false,
        }
    }
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
            Ok(decoded) if !sender_of(&decoded).is(responder.origin()) => {
                responder.refuse(Refusal::Unauthorised, &[][..]);
            }
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

    fn on_note(&self, note: Incoming<'_>, origin: &Origin) {
        match codec::decode_note(note.body, pairs(note.payload)) {
            // A server that is forgotten says nothing more. Its own start it may ask for: the answer tells it.
            Ok(note) if sender_of_note(&note).is(origin) && !self.is_of_forgotten(origin) => {
                self.worker.note(note);
            }
            Ok(_) => tracing::warn!(?origin, "a note that is a server's, from another caller"),
            Err(error) => tracing::warn!(%error, "a note that cannot be read"),
        }
    }

    fn on_batch_end(&self) {
        self.worker.turn();
    }
}

#[cfg(test)]
mod tests {
    use areo_core::message::ServerRecord;

    use super::*;

    const OWN: ServerId = ServerId(1);

    fn enrolment(step: Enrolment, record: ServerRecord) -> Request {
        let root = crate::identity::root_configuration(&[OWN], false);
        Request::Configured {
            configuration: root.id(),
            descriptor: None,
            successors: areo_core::pointer::Successors::default(),
            body: Body::Register {
                step,
                record: Box::new(record),
            },
        }
    }

    fn takers(sender: Sender) -> [bool; 4] {
        [
            Origin::Plain,
            Origin::Anonymous,
            Origin::Server(OWN),
            Origin::Server(ServerId(2)),
        ]
        .map(|origin| sender.is(&origin))
    }

    #[test]
    fn a_start_is_registered_by_the_server_of_the_certificate_alone() {
        let record = ServerRecord::at_address(OWN, "host:1".into());
        for step in [Enrolment::Ask, Enrolment::Register] {
            let request = enrolment(step, record.clone());
            let found = takers(sender_of(&request));
            assert_eq!(found, [true, false, true, false], "{step:?}");
        }
        let forgets = enrolment(Enrolment::Register, record.forgotten());
        assert_eq!(takers(sender_of(&forgets)), [true; 4], "an operator's");
        let marks = enrolment(Enrolment::HandOn, record.with_leaving(true));
        assert_eq!(takers(sender_of(&marks)), [true; 4], "an operator's");
        let introduces = Request::Know(record.clone());
        assert_eq!(takers(sender_of(&introduces)), [false; 4]);
        assert_eq!(takers(sender_of(&Request::Status)), [true; 4]);
    }

    #[test]
    fn a_server_speaks_for_itself_alone() {
        let record = ServerRecord::at_address(OWN, "host:1".into());
        let root = crate::identity::root_configuration(&[OWN], false);
        let gossip = areo_core::message::Gossip {
            configuration: root.id(),
            from: OWN,
            objects: [].into(),
        };
        for note in [Note::Serving(record), Note::Gossip(gossip)] {
            let found = takers(sender_of_note(&note));
            assert_eq!(found, [true, false, true, false], "{note:?}");
        }
        let forget = Note::Forget {
            configuration: root.id(),
            cell: Bytes::new(),
        };
        assert_eq!(takers(sender_of_note(&forget)), [true; 4]);
    }
}
