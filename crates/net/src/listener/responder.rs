//! Answering one request.

use areo_wire::frame::{Header, Kind, Refusal};

use crate::connection::{CloseReason, Connection, SendError};
use crate::encryption::Origin;
use crate::message::{Body, Segment};

/// Answers one request. Dropped without an answer, it refuses the request as "busy", so that no caller waits for
/// a reply that will not be sent.
#[derive(Debug)]
pub struct Responder {
    connection: Connection,
    call_id: u64,
    origin: Origin,
    answered: bool,
}

impl Responder {
    pub(super) fn new(connection: &Connection, call_id: u64, origin: Origin) -> Responder {
        connection.request_taken();
        Responder {
            connection: connection.clone(),
            call_id,
            origin,
            answered: false,
        }
    }

    /// Replies. If the client is gone, or has let too much pile up, the reply is dropped.
    pub fn reply<'a>(self, body: impl Into<Body<'a>>, payload: &[Segment]) {
        let header = Header::new(Kind::Reply, self.call_id);
        self.answer(&header, body.into(), payload);
    }

    /// Refuses, with `body` to explain it in the codec's terms.
    pub fn refuse<'a>(self, refusal: Refusal, body: impl Into<Body<'a>>) {
        let header = Header::refusal(self.call_id, refusal);
        self.answer(&header, body.into(), &[]);
    }

    /// The caller, as far as it has proven itself.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The connection that the request came on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn answer(mut self, header: &Header, body: Body<'_>, payload: &[Segment]) {
        self.answered = true;
        match self.connection.send(header, body, payload) {
            Ok(()) | Err(SendError::Closed) => {}
            Err(SendError::Full { queued_bytes }) => {
                self.connection
                    .close(CloseReason::NotReading { queued_bytes });
            }
            Err(SendError::TooLarge { error }) => {
                let remote = self.connection.remote();
                tracing::warn!(%remote, call = self.call_id, %error, "reply too large");
                let header = Header::refusal(self.call_id, Refusal::TooLarge);
                // A client that is gone, or does not read, gets no answer.
                let _ = self.connection.send(&header, &[][..], &[]);
            }
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.connection.request_answered();
        if !self.answered {
            let header = Header::refusal(self.call_id, Refusal::Busy);
            // A client that is gone, or does not read, gets no answer.
            let _ = self.connection.send(&header, &[][..], &[]);
        }
    }
}
