//! Connections: how many, how long a request may take to arrive, and TLS where the operator wants it.

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at a time. A browser has up to six.
const CONNECTIONS: usize = 256;
/// The longest time for TLS, and for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// The pause after the system had no connection to give.
const PAUSE: Duration = Duration::from_millis(100);

/// The stream of a connection, encrypted or not.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Makes a connection of a stream that was accepted: by a handshake, where there is TLS.
pub type Accept = Arc<
    dyn Fn(TcpStream) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send>>
        + Send
        + Sync,
>;

/// Serves these pages until it is dropped. Connections over the limit wait.
pub async fn serve(listener: TcpListener, router: Router, accept: Accept) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let place = place.expect("the places are never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection was not accepted: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (router, accepting) = (router.clone(), accept(stream));
        tokio::spawn(async move {
            let _place = place;
            let Ok(Ok(stream)) = timeout(HEAD, accepting).await else {
                return;
            };
            let serving = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            // A browser that goes away in the middle is no error of the console.
            let _ = serving.await;
        });
    }
}
