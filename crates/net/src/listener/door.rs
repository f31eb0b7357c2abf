//! Admits connections: a place before the hello, the hello, and a place after it.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use areo_core::config::ServerId;
use areo_wire::frame::{self, Refusal};
use areo_wire::hello::{self, Hello, KNOWN_FEATURES, Role, Welcome};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::places::{Class, displaceable, stranger_to_go};
use super::{Service, Shared};
use crate::connection::CloseReason;
use crate::encryption::{Origin, Session, Stream, accepted};
use crate::handshake::{HandshakeError, read_hello, refuse_tls, write_welcome};

/// A caller that was taken in.
pub(super) struct Admitted {
    pub(super) stream: Stream,
    /// The session of TLS below; none of a plain stream.
    pub(super) session: Option<Session>,
    pub(super) origin: Origin,
    pub(super) hello: Hello,
    pub(super) class: Class,
}

impl<S: Service> Shared<S> {
    /// False: its address, or all strangers, have used up the allowance of handshakes. Otherwise it takes one.
    pub(super) fn hears(&self, tcp: &TcpStream, remote: SocketAddr) -> bool {
        let limit = &self.config.handshake_allowance;
        let is_own = || tcp.local_addr().is_ok_and(|own| own.ip() == remote.ip());
        if self.config.tls.is_none() || (is_own() && !limit.is_for_loopback) {
            return true;
        }
        let (mut allowances, now) = (self.allowances.borrow_mut(), Instant::now());
        if allowances.admits(remote.ip(), limit, now) {
            allowances.charge(remote.ip(), limit, now);
            return true;
        }
        self.counts.borrow_mut().limited += 1;
        tracing::info!(%remote, "not heard: too many handshakes with its address, or with strangers");
        false
    }

    /// Gives a caller a place before its hello. What tells it to leave.
    pub(super) fn enter(&self, id: u64, remote: SocketAddr) -> Rc<Notify> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.count() >= self.config.places.waiting && waiting.send_one_away() {
            self.displaced(Class::Waiting, 1);
        }
        waiting.enter(id, remote.ip())
    }

    /// Hears the hello and answers it. `None`: it was refused, or there was none.
    pub(super) async fn greet(&self, tcp: TcpStream, remote: SocketAddr) -> Option<Admitted> {
        let patience = self.config.hello_timeout;
        let heard = timeout(patience, self.hear(tcp)).await;
        let heard = heard.unwrap_or(Err(HandshakeError::TimedOut));
        let (mut stream, hello, shown) = match heard {
            Ok(heard) => heard,
            Err(error) => {
                self.counts.borrow_mut().without_hello += 1;
                tracing::info!(%remote, %error, "no hello");
                return None;
            }
        };
        let session = stream.session();
        let judged = self.judge(&hello, shown, session.as_ref(), remote);
        let welcome = self.welcome(judged.as_ref().err());
        if let Err(error) = write_welcome(&mut stream, &welcome, patience).await {
            tracing::info!(%remote, %error, "welcome not delivered");
            return None;
        }
        match judged {
            Ok((origin, class)) => {
                let mut allowances = self.allowances.borrow_mut();
                match origin {
                    Origin::Server(_) if class == Class::Server => allowances.spare(remote.ip()),
                    Origin::Key(_) => allowances.prove(remote.ip()),
                    Origin::Server(_) | Origin::Plain | Origin::Anonymous => {}
                }
                drop(allowances);
                Some(Admitted {
                    stream,
                    session,
                    origin,
                    hello,
                    class,
                })
            }
            Err((refusal, reason)) => {
                self.counts.borrow_mut().refuse(refusal);
                tracing::info!(%remote, %refusal, reason, "caller refused");
                None
            }
        }
    }

    /// TLS if this server encrypts, and the hello.
    async fn hear(&self, tcp: TcpStream) -> Result<(Stream, Hello, Origin), HandshakeError> {
        let (mut stream, origin) = accepted(tcp, self.config.tls.as_ref()).await?;
        let hello = read_hello(&mut stream, self.config.hello_timeout).await;
        if hello == Err(HandshakeError::Encrypted) {
            refuse_tls(&mut stream).await;
        }
        Ok((stream, hello?, origin))
    }

    /// Judges a caller that showed this certificate, or none: by its ticket, too, if there is one in the hello. A refusal may have a
    /// sentence that explains it.
    fn judge(
        &self,
        hello: &Hello,
        shown: Origin,
        session: Option<&Session>,
        remote: SocketAddr,
    ) -> Result<(Origin, Class), (Refusal, Option<String>)> {
        let bare = |refusal| (refusal, None);
        if self.draining.get() {
            return Err(bare(Refusal::Draining));
        }
        if hello.role == Role::Server && !shown.may_be(ServerId(hello.own_id)) {
            return Err(bare(Refusal::Unauthorised));
        }
        let origin = match (&self.config.tls, session) {
            (Some(tls), Some(session)) => {
                let server = ServerId(self.service.identity().server);
                let admitted = tls.admit(hello, shown, (server, session.binding));
                admitted.map_err(|error| error.refusal())?
            }
            // A ticket says nothing where each caller may do everything.
            _ => shown,
        };
        self.service
            .on_hello(hello, &origin, remote)
            .map_err(|refusal| (refusal, explain(refusal, hello)))?;
        let class = match origin {
            Origin::Anonymous => Class::Stranger,
            Origin::Plain | Origin::Server(_) | Origin::Key(_) => self.service.class_of(hello),
        };
        match self.make_room(class) {
            true => Ok((origin, class)),
            false => Err(bare(Refusal::Busy)),
        }
    }

    /// Makes sure that there is a place for one more. False: all that have one are busy.
    fn make_room(&self, class: Class) -> bool {
        let connections = self.connections.borrow();
        let open = || {
            let of_class = connections
                .values()
                .filter(|watched| watched.class == class);
            of_class.filter(|watched| watched.connection.is_open())
        };
        let over = (open().count() + 1).saturating_sub(self.config.places.of(class));
        if over == 0 {
            return true;
        }
        if class == Class::Stranger {
            let allowances = self.allowances.borrow();
            let going = stranger_to_go(&connections, |address| allowances.has_proven(address));
            let going = going.expect("all places are taken by strangers");
            connections[&going].connection.close(CloseReason::Displaced);
            self.displaced(class, 1);
            return true;
        }
        let Some(idle) = displaceable(open(), over, self.config.stall_timeout) else {
            tracing::warn!(?class, "all places are taken, and none is idle");
            return false;
        };
        for watched in &idle {
            watched.connection.close(CloseReason::Displaced);
        }
        self.displaced(class, idle.len());
        true
    }

    /// The system has no descriptor for one more: a caller without a hello goes, or an idle client.
    pub(super) fn give_up_one(&self, error: &io::Error) {
        tracing::warn!(%error, "cannot accept");
        if self.waiting.borrow_mut().send_one_away() {
            self.displaced(Class::Waiting, 1);
            return;
        }
        let connections = self.connections.borrow();
        let clients = connections.values();
        let clients = clients.filter(|watched| watched.class == Class::Client);
        let open = clients.filter(|watched| watched.connection.is_open());
        if let Some(idle) = displaceable(open, 1, self.config.stall_timeout) {
            idle[0].connection.close(CloseReason::Displaced);
            self.displaced(Class::Client, 1);
        }
    }

    fn displaced(&self, class: Class, count: usize) {
        self.counts.borrow_mut().displaced[class as usize] += count as u64;
        let places = self.config.places.of(class);
        match class {
            // A line of its own: strangers do not use up the lines that are written of others.
            Class::Waiting | Class::Stranger => tracing::info!(
                ?class,
                places,
                "connections of strangers are closed: others want their places"
            ),
            Class::Client | Class::Server => tracing::warn!(
                ?class,
                places,
                "idle connections are closed: others want their places"
            ),
        }
    }

    fn welcome(&self, refused: Option<&(Refusal, Option<String>)>) -> Welcome {
        let identity = self.service.identity();
        let refusal = refused.map(|(refusal, _)| *refusal);
        let reason = refused.and_then(|(_, reason)| hello::reason_field(reason.as_deref()?));
        let process = hello::process_field(self.process);
        Welcome {
            version: if refusal.is_some() { 0 } else { frame::VERSION },
            must_features: 0,
            optional_features: KNOWN_FEATURES,
            refusal,
            max_body_bytes: self.config.limits.max_body_bytes,
            max_payload_bytes: self.config.limits.max_payload_bytes,
            cluster: identity.cluster,
            server: identity.server,
            incarnation: identity.incarnation,
            fields: [process].into_iter().chain(reason).collect(),
        }
    }
}

/// The sentence for a caller without a version in common; other refusals have none.
fn explain(refusal: Refusal, hello: &Hello) -> Option<String> {
    let (low, high) = (hello.version_low, hello.version_high);
    (refusal == Refusal::UnsupportedVersion).then(|| {
        format!(
            "this server, areo {}, speaks version {} of the protocol, and the caller versions {low} to {high}: use programs of one version, or \
             of two that follow each other",
            env!("CARGO_PKG_VERSION"),
            frame::VERSION
        )
    })
}
