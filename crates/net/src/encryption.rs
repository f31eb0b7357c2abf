//! The stream below the frames: plain TCP, or TLS over it. Nothing above knows which one it is.
//!
//! A [`Tls`] is what a process needs for both sides. Without one its connections are plain. A certificate that was renewed, or a change
//! of the trusted CAs, counts from the next connection on: [`Tls::replace`].
//!
//! A stream over TLS that ends without TLS's own farewell counts as closed: frames have lengths, so that a cut one is noticed above.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use areo_core::config::ServerId;
use areo_trust::tls::{Endpoint, Peer, peer, server_name};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::handshake::HandshakeError;

/// The end of encrypted connections that a process is. Clones are the same end.
#[derive(Clone, Debug)]
pub struct Tls {
    endpoint: Arc<RwLock<Arc<Endpoint>>>,
}

impl Tls {
    /// Connections with these certificates.
    pub fn new(endpoint: Endpoint) -> Tls {
        let endpoint = Arc::new(RwLock::new(Arc::new(endpoint)));
        Tls { endpoint }
    }

    /// Connections that begin from now on have these certificates.
    pub fn replace(&self, endpoint: Endpoint) {
        let mut current = self
            .endpoint
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(endpoint);
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        let current = self.endpoint.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Encrypts a connection that was made, to this server if the caller knows which one it calls.
    async fn connect(&self, tcp: TcpStream, server: u128) -> Result<Stream, HandshakeError> {
        let expected = (server != 0).then_some(ServerId(server));
        let config = self.endpoint().client_config(expected);
        let connector = TlsConnector::from(config.map_err(io::Error::other)?);
        let encrypted = connector.connect(server_name(), tcp).await;
        let encrypted = encrypted.map_err(|error| match error.kind() {
            // A server that does not read all that it was sent resets the connection when it closes it.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => HandshakeError::ClosedInTls,
            _ => error.into(),
        })?;
        peer(encrypted.get_ref().1).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(encrypted.into())))
    }

    /// Encrypts a connection that was accepted; whose certificate the caller showed.
    async fn accept(&self, tcp: TcpStream) -> Result<(Stream, Peer), HandshakeError> {
        let config = self.endpoint().server_config();
        let acceptor = TlsAcceptor::from(config.map_err(io::Error::other)?);
        let encrypted = acceptor.accept(tcp).await?;
        let peer = peer(encrypted.get_ref().1).map_err(io::Error::other)?;
        Ok((Stream::Tls(Box::new(encrypted.into())), peer))
    }
}

/// A stream on which a hello may be exchanged.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Bytes go out unchanged.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
}

/// The caller's side of a connection that was made, encrypted if the process encrypts.
pub(crate) async fn connected(
    tcp: TcpStream,
    server: u128,
    tls: Option<&Tls>,
) -> Result<Stream, HandshakeError> {
    match tls {
        Some(tls) => tls.connect(tcp, server).await,
        None => Ok(Stream::Plain(tcp)),
    }
}

/// The server's side of a connection that was accepted. Of a plain one the caller is not known: `None`.
pub(crate) async fn accepted(
    tcp: TcpStream,
    tls: Option<&Tls>,
) -> Result<(Stream, Option<Peer>), HandshakeError> {
    match tls {
        Some(tls) => {
            let (stream, peer) = tls.accept(tcp).await?;
            Ok((stream, Some(peer)))
        }
        None => Ok((Stream::Plain(tcp), None)),
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

    #[tokio::test]
    async fn an_end_without_farewell_counts_as_closed() {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let authority = Authority::create(1, now.as_secs()).unwrap();
        let key = ServerKey::create().unwrap();
        let certificate = authority.issue(ServerId(2), &key.public(), now.as_secs());
        let credentials = Credentials::new(certificate.unwrap(), authority.root(), &key);
        let tls = Tls::new(Endpoint {
            cluster: 1,
            roots: Roots::new(authority.root().clone()),
            credentials: Some(credentials),
            clock: Arc::new(DefaultTimeProvider),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tcp = TcpStream::connect(address).await.unwrap();
        let (called, _) = listener.accept().await.unwrap();
        let ends = tokio::join!(connected(tcp, 2, Some(&tls)), accepted(called, Some(&tls)));
        let (mut caller, called) = (ends.0.unwrap(), ends.1.unwrap());
        drop(called);
        assert_eq!(caller.read(&mut [0]).await.unwrap(), 0);
    }
}
