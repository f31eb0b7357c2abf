//! Connections: how many, how long a request may take to arrive, and TLS where the operator wants it.

use areo_net::timed::TimedWrites;
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
/// The longest time for TLS, and for the head of a request, also of the next one of a connection.
const HEAD: Duration = Duration::from_secs(10);
/// The longest time for which a browser reads nothing of an answer.
const UNREAD: Duration = Duration::from_mins(1);
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
    serve_within(listener, router, accept, HEAD).await;
}

/// Serves with this longest time for TLS and for a head.
async fn serve_within(listener: TcpListener, router: Router, accept: Accept, head: Duration) {
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
            let Ok(Ok(stream)) = timeout(head, accepting).await else {
                return;
            };
            let serving = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head)
                .serve_connection(
                    TokioIo::new(TimedWrites::new(stream, UNREAD)),
                    TowerToHyperService::new(router),
                );
            // A browser that goes away in the middle is no error of the console.
            let _ = serving.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_stranger_who_sends_no_whole_head_loses_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept: Accept = Arc::new(|stream| {
            Box::pin(async move {
                let stream: Box<dyn Connection> = Box::new(stream);
                Ok(stream)
            })
        });
        let head = Duration::from_millis(20);
        tokio::spawn(serve_within(listener, Router::new(), accept, head));
        let whole = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        for sent in ["", &whole[..20], whole] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let closed = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer));
            let closed = closed.await.expect("it does not wait for ever");
            closed.expect("it is closed in order");
            assert_eq!(answer.starts_with(b"HTTP/1.1 404"), sent == whole);
        }
    }
}
