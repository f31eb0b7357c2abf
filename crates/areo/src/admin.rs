//! Asking servers' admin ports.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer answers are refused.
const ANSWER_BYTES: usize = 64 << 20;

/// The answer to `GET path`, as text; or why there is none, in a few words.
///
/// # Errors
/// No server answers in time, or the answer is not the requested one.
pub async fn get(address: &str, path: &str, patience: Duration) -> Result<String, String> {
    match timeout(patience, ask(address, path)).await {
        Ok(answered) => answered,
        Err(_) => Err("timed out".into()),
    }
}

async fn ask(address: &str, path: &str) -> Result<String, String> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| crate::exit::plain(&error))?;
    let spoken = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(spoken)?;
    // Ends with the answer.
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header(header::HOST, address)
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(spoken)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect();
    let body = body.await.map_err(|error| error.to_string())?.to_bytes();
    drop(sender);
    connection.abort();
    match status {
        StatusCode::OK => String::from_utf8(body.into()).map_err(|_| "answered no text".into()),
        status => Err(format!("answered {status}")),
    }
}
