//! The stream below the frames: plain TCP, or TLS over it. Nothing above knows which one it is.
//!
//! A [`Tls`] is what a process needs for both sides. Without one its connections are plain. A certificate that was renewed, or a change
//! of the trusted CAs, counts from the next connection on ([`Tls::update`]). Open connections are closed if the other end's certificate stands on
//! no trusted CA any more, or if its ticket counts no longer. A process that knows nothing but the digest of a CA, to join or as a client,
//! begins with [`Tls::of_digest`].
//!
//! A stream over TLS that ends without TLS's own farewell counts as closed: frames have lengths, so that a cut one is noticed above.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::task::{Context, Poll};

use areo_core::config::ServerId;
use areo_trust::certificate::{CertificateError, ServerIdentity, Usage};
use areo_trust::roots::RootDigest;
use areo_trust::ticket::{Ticket, Verifier};
use areo_trust::tls::{BINDING_BYTES, BINDING_LABEL, Endpoint, Peer, peer, server_name};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, Error, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::handshake::HandshakeError;

use knowledge::Knowledge;
pub use tickets::Bearer;
use tickets::Renewal;

mod knowledge;
mod tickets;

/// The end of encrypted connections that a process is. Clones are the same end.
#[derive(Clone, Debug)]
pub struct Tls {
    current: Arc<RwLock<Arc<Current>>>,
    renewal: Arc<Renewal>,
}

/// The certificates that count, with the configurations made of them, once for all connections.
#[derive(Clone, Debug)]
struct Current {
    known: Knowledge,
    calling: Result<Arc<ClientConfig>, Error>,
    called: Result<Arc<ServerConfig>, Error>,
    /// The CA that issued the certificate of this process: a request does not pay for a verification by each CA.
    issuer: Option<RootDigest>,
    /// Counts the changes that dropped a root.
    changes: u64,
    /// The ticket that this process shows.
    bearer: Option<Arc<Bearer>>,
    /// The keys and lists by which it judges tickets of others.
    verifier: Option<Arc<Verifier>>,
}

impl Current {
    fn new(endpoint: Endpoint) -> Current {
        Current {
            // The server that is called is judged after the handshake: one configuration serves for all.
            calling: endpoint.client_config(None),
            called: endpoint.server_config(),
            issuer: endpoint.issuer(),
            known: Knowledge::Cluster(endpoint),
            changes: 0,
            bearer: None,
            verifier: None,
        }
    }

    /// Seconds since 1970 by the clock of this end; 0 if the system has no clock, so that no certificate with a first
    /// second counts yet.
    fn now_seconds(&self) -> u64 {
        let now = self.known.clock().current_time();
        now.map_or(0, |now| now.as_secs())
    }
}

impl Tls {
    /// Connections with these certificates.
    pub fn new(endpoint: Endpoint) -> Tls {
        Tls::from(Current::new(endpoint))
    }

    /// Changes the certificates of connections that begin from now on. A change is made of the present endpoint, and of no other one
    /// meanwhile: so a renewal keeps the roots of a rotation, and a rotation a renewed certificate.
    ///
    /// # Errors
    /// The new key does not belong to its certificate, or this process knows a digest alone. Nothing is changed.
    pub fn update(&self, change: impl FnOnce(&Endpoint) -> Endpoint) -> Result<(), Error> {
        self.know(|known| match known {
            Knowledge::Cluster(endpoint) => Ok(change(endpoint)),
            Knowledge::NoRoots { .. } => Err(Error::General(
                "nothing is known of the CAs of the cluster".to_owned(),
            )),
        })
    }

    /// Changes the knowledge about the cluster.
    fn know(
        &self,
        change: impl FnOnce(&Knowledge) -> Result<Endpoint, Error>,
    ) -> Result<(), Error> {
        let mut current = self.write();
        let endpoint = change(&current.known)?;
        let has_dropped = current.known.has_more_than(&endpoint);
        let has_credentials = endpoint.credentials.is_some();
        let next = Current {
            changes: current.changes + u64::from(has_dropped),
            bearer: current.bearer.clone(),
            verifier: current.verifier.clone(),
            ..Current::new(endpoint)
        };
        next.calling.clone()?;
        if has_credentials {
            next.called.clone()?;
        }
        *current = Arc::new(next);
        Ok(())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Arc<Current>> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// The reason for which the other end's certificate counts no longer, if a root was dropped since it was judged last.
    pub(crate) fn distrusts(&self, session: &Session) -> Option<CertificateError> {
        let current = self.current();
        let judged = session.judged_at.replace(Some(current.changes));
        if session.shown.is_empty() || judged == Some(current.changes) {
            return None;
        }
        let judged = current.known.judge(&session.shown, session.usage);
        judged.err()
    }

    /// Encrypts a connection that was made, to this server if the caller knows which one it calls. The server is the one of its
    /// certificate.
    async fn connect(&self, tcp: TcpStream, server: u128) -> Result<Called, HandshakeError> {
        let config = self.current().calling.clone();
        let connector = TlsConnector::from(config.map_err(io::Error::other)?);
        let encrypted = connector.connect(server_name(), tcp).await;
        let encrypted = encrypted.map_err(|error| match error.kind() {
            // A server that does not read all that it was sent resets the connection when it closes it.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => HandshakeError::ClosedInTls,
            _ => error.into(),
        })?;
        let shown = peer(encrypted.get_ref().1).map_err(io::Error::other)?;
        let Peer::Server(identity) = shown else {
            let sentence = CertificateError::NoIdentity.to_string();
            return Err(HandshakeError::Tls { sentence });
        };
        let (expected, found) = (ServerId(server), identity.server);
        if server != 0 && expected != found {
            let error = CertificateError::OtherServer { expected, found };
            let sentence = error.to_string();
            return Err(HandshakeError::Tls { sentence });
        }
        Ok(Called {
            stream: Stream::Tls(Box::new(encrypted.into())),
            certificate: Some(identity),
        })
    }

    /// Encrypts a connection that was accepted.
    async fn accept(&self, tcp: TcpStream) -> Result<(Stream, Origin), HandshakeError> {
        let config = self.current().called.clone();
        let acceptor = TlsAcceptor::from(config.map_err(io::Error::other)?);
        let encrypted = acceptor.accept(tcp).await?;
        let origin = match peer(encrypted.get_ref().1).map_err(io::Error::other)? {
            Peer::Anonymous => Origin::Anonymous,
            Peer::Server(identity) => Origin::Server(identity.server),
        };
        Ok((Stream::Tls(Box::new(encrypted.into())), origin))
    }
}

/// The caller of a connection, as far as it has proven itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The connection is plain: a caller is the one that it says.
    Plain,
    /// It showed no certificate and no ticket: a client that is about to prove a key, or a server that is about to join.
    Anonymous,
    /// A server of this cluster, by its certificate.
    Server(ServerId),
    /// The holder of an access key, by its ticket.
    Key(Rc<Ticket>),
}

impl Origin {
    /// True if the caller may say that it is this server.
    pub fn may_be(&self, server: ServerId) -> bool {
        match self {
            Origin::Plain => true,
            Origin::Anonymous | Origin::Key(_) => false,
            Origin::Server(shown) => *shown == server,
        }
    }
}

/// A connection that was made, before the hello.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) stream: Stream,
    /// The server by its certificate; `None` of a plain connection.
    pub(crate) certificate: Option<ServerIdentity>,
}

/// A stream on which a hello may be exchanged.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Bytes go out unchanged.
    Plain(TcpStream),
    /// An encrypted stream (TLS).
    Tls(Box<TlsStream<TcpStream>>),
}

/// The caller's side of a connection that was made, encrypted if the process encrypts.
pub(crate) async fn connected(
    tcp: TcpStream,
    server: u128,
    tls: Option<&Tls>,
) -> Result<Called, HandshakeError> {
    match tls {
        Some(tls) => tls.connect(tcp, server).await,
        None => Ok(Called {
            stream: Stream::Plain(tcp),
            certificate: None,
        }),
    }
}

/// The server's side of a connection that was accepted.
pub(crate) async fn accepted(
    tcp: TcpStream,
    tls: Option<&Tls>,
) -> Result<(Stream, Origin), HandshakeError> {
    match tls {
        Some(tls) => tls.accept(tcp).await,
        None => Ok((Stream::Plain(tcp), Origin::Plain)),
    }
}

/// Bytes that both ends of one session of TLS have, and no other session: to be signed with proofs (RFC 9266, `tls-exporter`). A man in
/// the middle has two sessions, and passes no proof on.
pub type Binding = [u8; BINDING_BYTES];

/// The handshake of a connection, as far as it is needed later.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) binding: Binding,
    /// The certificates of the other end.
    pub(crate) shown: Vec<CertificateDer<'static>>,
    usage: Usage,
    /// The change of the roots by which they were judged last. None at first: the roots may change during a handshake.
    judged_at: Cell<Option<u64>>,
}

impl Stream {
    /// The session below; `None` of a plain stream.
    pub(crate) fn session(&self) -> Option<Session> {
        let Stream::Tls(stream) = self else {
            return None;
        };
        let (empty, context) = ([0; BINDING_BYTES], Some(&b""[..]));
        let exported = match &**stream {
            TlsStream::Client(stream) => {
                let session = stream.get_ref().1;
                session.export_keying_material(empty, BINDING_LABEL, context)
            }
            TlsStream::Server(stream) => {
                let session = stream.get_ref().1;
                session.export_keying_material(empty, BINDING_LABEL, context)
            }
        };
        let shown = stream.get_ref().1.peer_certificates();
        Some(Session {
            binding: exported.expect("the handshake is over, and 32 bytes are few"),
            shown: shown.unwrap_or_default().to_vec(),
            usage: match &**stream {
                TlsStream::Client(_) => Usage::Server,
                TlsStream::Server(_) => Usage::Client,
            },
            judged_at: Cell::new(None),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, space),
            Stream::Tls(stream) => match Pin::new(stream).poll_read(context, space) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                read => read,
            },
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use areo_trust::authority::{Authority, ServerKey};
    use areo_trust::roots::Roots;
    use areo_trust::tls::{Credentials, DefaultTimeProvider};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    fn tls() -> Tls {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let authority = Authority::create(1, now.as_secs()).unwrap();
        let key = ServerKey::create().unwrap();
        let certificate = authority.issue(ServerId(2), &key.public(), now.as_secs());
        let credentials = Credentials::new(certificate.unwrap(), authority.root(), &key);
        Tls::new(Endpoint {
            cluster: 1,
            roots: Roots::new(authority.root().clone()),
            credentials: Some(credentials),
            clock: Arc::new(DefaultTimeProvider),
        })
    }

    async fn session(tls: Option<&Tls>) -> (Called, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tcp = TcpStream::connect(address).await.unwrap();
        let (called, _) = listener.accept().await.unwrap();
        let ends = tokio::join!(connected(tcp, 2, tls), accepted(called, tls));
        (ends.0.unwrap(), ends.1.unwrap().0)
    }

    #[tokio::test]
    async fn certificates_are_judged_again_where_the_roots_have_changed() {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let tls = tls();
        let (caller, _called) = session(Some(&tls)).await;
        let session = caller.stream.session().unwrap();
        assert_eq!(tls.distrusts(&session), None);
        let other = Authority::create(1, now.as_secs()).unwrap();
        let trust = |change: fn(&mut Roots, &Authority)| {
            let update = tls.update(|endpoint| {
                let mut endpoint = endpoint.clone();
                change(&mut endpoint.roots, &other);
                endpoint
            });
            update.unwrap();
        };
        trust(|roots, other| roots.trust(other.root().clone()).unwrap());
        assert_eq!(tls.distrusts(&session), None, "its root is still there");
        trust(|roots, other| *roots = Roots::new(other.root().clone()));
        let error = CertificateError::OtherAuthority;
        assert_eq!(tls.distrusts(&session), Some(error));
        assert_eq!(tls.distrusts(&session), None, "once for each change");
    }

    #[tokio::test]
    async fn both_ends_of_a_session_and_no_other_have_its_binding() {
        let tls = tls();
        let (one, other) = (session(Some(&tls)).await, session(Some(&tls)).await);
        let binding = |stream: &Stream| stream.session().map(|session| session.binding);
        let first = binding(&one.0.stream);
        assert!(first.is_some_and(|binding| binding != [0; BINDING_BYTES]));
        assert_eq!(first, binding(&one.1));
        assert_ne!(first, binding(&other.1));
        let plain = session(None).await;
        assert_eq!((binding(&plain.0.stream), binding(&plain.1)), (None, None));
    }

    #[tokio::test]
    async fn an_end_without_farewell_counts_as_closed() {
        let (mut caller, called) = session(Some(&tls())).await;
        drop(called);
        assert_eq!(caller.stream.read(&mut [0]).await.unwrap(), 0);
    }
}
