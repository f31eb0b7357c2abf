//! Requests to the admin ports of servers, and the metrics that they answer.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer answers are refused.
const ANSWER_BYTES: usize = 64 << 20;

/// The reason why a server did not answer as requested, in a few words.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// It did not answer in time.
    #[error("timed out")]
    Timeout,
    /// There is no connection to its address.
    #[error("{}", plain(error))]
    Connect {
        /// The reason of the operating system.
        error: io::Error,
    },
    /// The address or the path is none that can be requested.
    #[error("{error}")]
    Request {
        /// The part that is malformed.
        error: hyper::http::Error,
    },
    /// The connection broke, or what is at the address speaks another protocol.
    #[error("{error}")]
    Exchange {
        /// The step that failed, and why.
        error: hyper::Error,
    },
    /// The answer broke off, or is longer than an answer may be.
    #[error("{error}")]
    Body {
        /// The reason why it cannot be read.
        error: Box<dyn Error + Send + Sync>,
    },
    /// It is on another machine, to which no key is shown without encryption.
    #[error("its admin port is on another machine, which shows health alone")]
    Elsewhere,
    /// It refused the request.
    #[error("answered {status}")]
    Status {
        /// The status of the answer.
        status: StatusCode,
    },
    /// The answer is no text.
    #[error("answered no text")]
    NoText,
}

/// The answer to `GET path`, as text.
///
/// # Errors
/// No server answers in time, or the answer is not the requested one.
pub async fn get(address: &str, path: &str, patience: Duration) -> Result<String, AdminError> {
    let answered = timeout(patience, ask(address, path, None)).await;
    answered.unwrap_or(Err(AdminError::Timeout))
}

/// The answer to `GET path` for the bearer of this key, as text. Nothing is encrypted on the way, so that the key is shown to an address of
/// loopback alone.
///
/// # Errors
/// Those of [`get`]; the address is another one.
pub async fn get_as(
    bearer: &str,
    address: &str,
    path: &str,
    patience: Duration,
) -> Result<String, AdminError> {
    let address: SocketAddr = address.parse().map_err(|_| AdminError::Elsewhere)?;
    if !address.ip().is_loopback() {
        return Err(AdminError::Elsewhere);
    }
    let address = address.to_string();
    let answered = timeout(patience, ask(&address, path, Some(bearer))).await;
    answered.unwrap_or(Err(AdminError::Timeout))
}

async fn ask(address: &str, path: &str, bearer: Option<&str>) -> Result<String, AdminError> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| AdminError::Connect { error })?;
    let broken = |error| AdminError::Exchange { error };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Ends with the answer.
    let connection = tokio::spawn(connection);
    let mut request = Request::get(path).header(header::HOST, address);
    if let Some(bearer) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| AdminError::Request { error })?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect();
    let body = body.await.map_err(|error| AdminError::Body { error })?;
    drop(sender);
    connection.abort();
    match status {
        StatusCode::OK => String::from_utf8(body.to_bytes().into()).map_err(|_| AdminError::NoText),
        status => Err(AdminError::Status { status }),
    }
}

/// An error of the operating system without its number, which says nothing to a reader.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let (first, rest) = text[..end].split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}", first.to_lowercase())
}

/// A number in the metrics that a process shows at `/metrics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample<'a> {
    /// The name of the metric; of a histogram with the ending `_bucket`, `_sum` or `_count`.
    pub name: &'a str,
    /// The number as it is written.
    pub value: &'a str,
    labels: &'a str,
}

/// The numbers in this text, without its comments.
pub fn samples(metrics: &str) -> impl Iterator<Item = Sample<'_>> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some(Sample {
            name,
            value,
            labels,
        })
    })
}

impl Sample<'_> {
    /// The value of this label, without its escapes.
    pub fn label(&self, name: &str) -> Option<String> {
        let mut rest = self.labels;
        loop {
            let (known, quoted) = rest.split_once("=\"")?;
            let (value, after) = unquoted(quoted)?;
            if known.trim_start_matches(',') == name {
                return Some(value);
            }
            rest = after;
        }
    }

    /// The other server that a sample of `areo_server_peers` is about, and true if it is connected. `None` of another metric, and of a
    /// state that the connection is not in: an idle one is in none.
    pub fn peer(&self) -> Option<(String, bool)> {
        if self.name != "areo_server_peers" || self.value == "0" {
            return None;
        }
        Some((self.label("server")?, self.label("state")? == "connected"))
    }
}

/// The text up to the closing quote, and what follows that.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), quoted.chars());
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            letter => value.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_labels_with_any_text() {
        let text = "\
# HELP a_seconds Time of 3
# TYPE a_seconds histogram
a_seconds_bucket{peer=\"le=\\\"1\\\"\",le=\"0.5\"} 7
a_seconds_count 9
";
        let [bucket, count] = samples(text).collect::<Vec<_>>()[..] else {
            panic!("two samples")
        };
        assert_eq!((bucket.name, bucket.value), ("a_seconds_bucket", "7"));
        assert_eq!(bucket.label("le").as_deref(), Some("0.5"));
        assert_eq!(bucket.label("peer").as_deref(), Some("le=\"1\""));
        assert_eq!(bucket.label("l"), None);
        assert_eq!((count.name, count.value), ("a_seconds_count", "9"));
        assert_eq!(count.label("le"), None);
    }

    #[test]
    fn errors_of_the_system_lose_their_number() {
        let missing = std::fs::File::open("/nonexistent/file").unwrap_err();
        assert_eq!(plain(&missing), "no such file or directory");
        assert_eq!(plain(&io::Error::other("Ärger")), "ärger");
    }
}
