//! One request on a connection of its own, whose content may depend on the connection.
//!
//! A proof is bound to the session of TLS on which it is sent, so that such a request cannot wait in a table of calls and be
//! sent again on the next connection: it is made when there is a connection, sent once, and its caller learns whether it was sent.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_core::config::ServerId;
use areo_core::message::Refusal;
use areo_trust::certificate::CertificateError;
use areo_trust::protocol::{Ask, TrustAnswer};
use areo_trust::roots::{Root, RootDigest};
use areo_trust::tls::shown_root;
use areo_wire::codec::trust;
use areo_wire::frame::{Kind, Limits};
use areo_wire::hello::Channel;
use bytes::Bytes;
use tokio::time::timeout_at;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{BootstrapError, Network};
use crate::connection::{Connection, ConnectionConfig, Handler, drive};
use crate::encryption::{Binding, Tls};
use crate::handshake::HandshakeError;
use crate::message::{Incoming, Outgoing};
use crate::peer::PeerConfig;
use crate::peer::known::PeerKnowledge;
use crate::peer::opening::{Opened, open};

/// The server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// Any server at this host and port.
    Address(&'a str),
    /// A server that the network has learnt, by its id.
    Server(ServerId),
}

impl<'a> From<&'a str> for Destination<'a> {
    fn from(address: &'a str) -> Destination<'a> {
        Destination::Address(address)
    }
}

impl From<ServerId> for Destination<'_> {
    fn from(server: ServerId) -> Self {
        Destination::Server(server)
    }
}

/// The server that a request is about to be sent to, after its hello.
#[derive(Clone, Debug)]
pub struct Contact {
    /// Id of the server's cluster.
    pub cluster: u128,
    /// Its id; of an encrypted connection that of its certificate.
    pub server: ServerId,
    /// The session of TLS, to be signed with proofs; `None` of a plain connection.
    pub binding: Option<Binding>,
    shown: Vec<CertificateDer<'static>>,
}

impl Contact {
    /// The CA with this digest among the certificates that the server showed: the one that a digest alone stands for.
    pub fn shown_root(&self, digest: RootDigest) -> Option<Root> {
        shown_root(&self.shown, digest)
    }

    /// Judges the server by the CAs that this end knows: by the certificates of the connection, or by others of the server for the same key. An end that
    /// knows no CA takes any.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn judge(&self, tls: &Tls, also: &[CertificateDer<'_>]) -> Result<(), CertificateError> {
        tls.judge(&self.shown, also)
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// The server that gave it.
    pub contact: Contact,
    /// The body of the reply.
    pub body: Bytes,
}

/// The answer to a request about trust.
#[derive(Clone, Debug)]
pub struct TrustResponse {
    /// The server that gave it.
    pub contact: Contact,
    pub answer: TrustAnswer,
}

/// A request without a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskError {
    pub cause: BootstrapError,
    /// True if the request was sent, so that the server may have carried it out.
    pub is_sent: bool,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for AskError {}

impl Network {
    /// Sends one request to a server, on a connection that is made for it, and waits for the reply. `body` makes the request from the
    /// server that answered the hello, and is called at most once.
    ///
    /// # Errors
    /// [`AskError`]; a server that was not learnt is unreachable.
    pub async fn ask(
        &self,
        to: impl Into<Destination<'_>>,
        patience: Duration,
        body: impl FnOnce(&Contact) -> Bytes,
    ) -> Result<Response, AskError> {
        let config = self.destination(to.into()).ok_or(AskError {
            cause: BootstrapError::Unreachable {
                error: "its address is not known".to_owned(),
            },
            is_sent: false,
        })?;
        let until = tokio::time::Instant::now() + patience;
        let known = PeerKnowledge::new(&config);
        let opened = timeout_at(until, open(Channel::Calls, &config, &known)).await;
        let opened = opened.unwrap_or(Err(HandshakeError::TimedOut));
        let opened = opened.map_err(|error| AskError {
            cause: match is_for_want_of_ticket(&error, &config) {
                true => BootstrapError::Unreachable {
                    error: error.to_string(),
                },
                false => not_opened(error),
            },
            is_sent: false,
        })?;
        let contact = contact(&opened);
        let message = Outgoing::new(
            body(&contact),
            Some(until.saturating_duration_since(tokio::time::Instant::now())),
        );
        let exchanged = timeout_at(until, exchange(opened, &config, &message)).await;
        match exchanged.unwrap_or(Err(BootstrapError::TimedOut)) {
            Ok(body) => Ok(Response { contact, body }),
            Err(cause) => Err(AskError {
                cause,
                is_sent: true,
            }),
        }
    }

    /// Sends one request about the trust of the cluster to a server, as [`Network::ask`] does.
    ///
    /// # Errors
    /// [`AskError`]; an answer that cannot be read is malformed.
    pub async fn ask_trust(
        &self,
        to: impl Into<Destination<'_>>,
        patience: Duration,
        ask: impl FnOnce(&Contact) -> Ask,
    ) -> Result<TrustResponse, AskError> {
        let body = |contact: &Contact| trust::encode_request(&ask(contact).encode());
        let Response { contact, body } = self.ask(to, patience, body).await?;
        let fields = trust::decode_reply(&body).ok();
        match fields.and_then(|fields| TrustAnswer::decode(fields).ok()) {
            Some(answer) => Ok(TrustResponse { contact, answer }),
            None => Err(AskError {
                cause: BootstrapError::Malformed,
                is_sent: true,
            }),
        }
    }

    fn destination(&self, to: Destination<'_>) -> Option<PeerConfig> {
        match to {
            Destination::Address(address) => Some(self.config(address)),
            Destination::Server(server) if self.is_stranger(server) => None,
            Destination::Server(server) => Some(PeerConfig {
                server: server.0,
                ..self.config(&self.peer(server)?.address())
            }),
        }
    }
}

/// True if the server takes the ticket no longer, and there will be another one.
fn is_for_want_of_ticket(error: &HandshakeError, config: &PeerConfig) -> bool {
    let is_refused = matches!(
        error,
        HandshakeError::Refused {
            refusal: Refusal::Unauthorised,
            ..
        }
    );
    is_refused && config.tls.as_ref().is_some_and(Tls::ask_for_ticket)
}

fn not_opened(error: HandshakeError) -> BootstrapError {
    match error {
        // Its sentence has the versions of both.
        HandshakeError::Refused { refusal, .. } if refusal != Refusal::UnsupportedVersion => {
            BootstrapError::Refused { refusal }
        }
        HandshakeError::Malformed { .. } => BootstrapError::Malformed,
        HandshakeError::Tls { sentence } => BootstrapError::Distrusted { sentence },
        error => BootstrapError::Unreachable {
            error: error.to_string(),
        },
    }
}

fn contact(opened: &Opened) -> Contact {
    let session = opened.stream.session();
    Contact {
        cluster: opened.welcome.cluster,
        server: ServerId(opened.welcome.server),
        binding: session.as_ref().map(|session| session.binding),
        shown: session.map(|session| session.shown).unwrap_or_default(),
    }
}

/// Sends a request on a connection on which there is no other one, and waits for the reply.
async fn exchange(
    opened: Opened,
    config: &PeerConfig,
    message: &Outgoing,
) -> Result<Bytes, BootstrapError> {
    let lost = |error: String| BootstrapError::Unreachable { error };
    let connection_config = ConnectionConfig {
        window_bytes: config.window_bytes,
        limits: config.limits,
        peer_limits: Limits::default(),
        max_queued_bytes: config.max_bytes,
        pool: config.pool.clone(),
    };
    let reply = Rc::new(RefCell::new(None));
    let handler = OneReply(Rc::clone(&reply));
    let (connection, driver) = drive(opened.stream, opened.remote, &connection_config, handler);
    let header = message.header(Kind::Request, 0, Instant::now());
    connection
        .send(&header, &message.body, &[])
        .map_err(|error| lost(error.to_string()))?;
    let reason = driver.await;
    let reply = reply.borrow_mut().take();
    reply.unwrap_or_else(|| Err(lost(reason.to_string())))
}

/// Keeps the reply, and ends the connection with it.
struct OneReply(Rc<RefCell<Option<Result<Bytes, BootstrapError>>>>);

impl Handler for OneReply {
    fn on_frame(&self, connection: &Connection, frame: Incoming<'_>) {
        let reply = match frame.header.kind {
            Kind::Reply => Ok(Bytes::copy_from_slice(frame.body)),
            Kind::Refusal => {
                let refusal = frame.header.refusal;
                let refusal = refusal.expect("the decoder checked that a refusal has a code");
                Err(BootstrapError::Refused { refusal })
            }
            // A request that the server has is answered also after a goodbye.
            Kind::Goodbye | Kind::Request | Kind::Note | Kind::Ping | Kind::Pong => return,
        };
        self.0.borrow_mut().get_or_insert(reply);
        connection.close(crate::CloseReason::Finished);
    }

    fn on_batch_end(&self, _connection: &Connection) {}
}
