//! Connections: taken, bounded, and ended in order.

use super::{Gateway, lifecycle};
use areo_net::timed::TimedWrites;
use futures_util::future::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// The time for the head of a request, also of the first one of a connection.
const HEAD: Duration = Duration::from_secs(30);
/// The longest time for which a caller reads nothing of a response.
const UNREAD: Duration = Duration::from_mins(5);
/// Bytes of a head at most.
const HEAD_BYTES: usize = 64 << 10;
/// Headers of a request at most.
const HEADERS: usize = 128;
/// The pause after a connection could not be taken, for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Bounds of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Connections at a time; further ones wait.
    pub connections: usize,
    /// The time for requests under way when the gateway stops.
    pub drain: Duration,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            connections: 1024,
            drain: Duration::from_secs(30),
        }
    }
}

/// Tells a gateway to stop.
pub type Stop = watch::Receiver<bool>;

/// The stream of a connection: TCP, or TLS over it.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// Makes a stream of a connection, with TLS or without: an error closes that connection.
pub type Secure =
    Arc<dyn Fn(TcpStream) -> BoxFuture<'static, io::Result<Box<dyn Duplex>>> + Send + Sync>;

/// Makes connections that are served without TLS.
pub fn plain() -> Secure {
    Arc::new(|stream| Box::pin(async { Ok(Box::new(stream) as Box<dyn Duplex>) }))
}

/// Takes connections, and carries lifecycle rules out, until `stop` becomes true; requests under way are finished then, within [`ServeOptions::drain`].
pub fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    options: ServeOptions,
    secure: Secure,
    stop: Stop,
) -> BoxFuture<'static, ()> {
    Box::pin(take_connections(gateway, listener, options, secure, stop))
}

async fn take_connections(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    options: ServeOptions,
    secure: Secure,
    mut stop: Stop,
) {
    lifecycle::start(&gateway, &stop);
    let places = Arc::new(Semaphore::new(options.connections));
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = async {
                let place = place.await.expect("it is never closed");
                (listener.accept().await, place)
            } => accepted,
        };
        let (stream, place) = match accepted {
            (Ok((stream, _)), place) => (stream, place),
            (Err(error), _) => {
                tracing::warn!(%error, "connection cannot be taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        // A response is small, and waited for.
        let _ = stream.set_nodelay(true);
        let (gateway, secure, stop) = (Arc::clone(&gateway), secure.clone(), stop.clone());
        tokio::spawn(async move {
            let _counted = gateway.metrics.connection();
            match timeout(HEAD, secure(stream)).await {
                Ok(Ok(stream)) => connection(gateway, stream, stop).await,
                Ok(Err(error)) => tracing::debug!(%error, "connection closed before a request"),
                Err(_) => tracing::debug!("connection closed: no TLS in time"),
            }
            drop(place);
        });
    }
    drop(listener);
    let all = u32::try_from(options.connections).unwrap_or(u32::MAX);
    if timeout(options.drain, places.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("requests under way are given up: they took too long");
    }
}

async fn connection(gateway: Arc<Gateway>, stream: Box<dyn Duplex>, mut stop: Stop) {
    let service = service_fn(move |request| {
        let gateway = Arc::clone(&gateway);
        async move { Ok::<_, Infallible>(gateway.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .half_close(true);
    let stream = TokioIo::new(TimedWrites::new(stream, UNREAD));
    let connection = builder.serve_connection(stream, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection broken off");
    }
}

/// Waits until the gateway is to stop.
pub(super) async fn stopped(stop: &mut Stop) {
    // The sender may be gone: then the gateway is never stopped.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
