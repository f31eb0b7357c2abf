//! Identifies the other side of a connection, before the first frame.
//!
//! The caller says what it believes about the server, the server checks it against what it is, and the
//! caller checks the answer against what it believes: either side alone may be the one that is wrong, or old.

use std::fmt;
use std::io;
use std::time::Duration;

use areo_core::config::ServerId;
use areo_trust::certificate::ServerIdentity;
use areo_trust::tls::explain_io;
use areo_wire::frame::Refusal;
use areo_wire::hello::{self, Hello, HelloError, PREFIX_BYTES, Welcome};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::encryption::Stream;

/// The first byte of a TLS record that refuses plain bytes. The version follows, which begins alike in each version of TLS.
const TLS_ALERT: u8 = 21;
/// The first byte of a TLS record with a hello.
const TLS_HANDSHAKE: u8 = 22;
const TLS_VERSION: u8 = 3;
/// A fatal alert of TLS: insufficient security.
const NO_TLS: [u8; 7] = [TLS_ALERT, TLS_VERSION, 3, 0, 2, 2, 71];
/// Bytes of the hello of TLS that are read before it is refused; few are longer.
const MAX_READ_BYTES: usize = 4096;

/// Why no connection came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The operating system said so.
    Failed {
        /// The kind of its error.
        kind: io::ErrorKind,
    },
    /// The name of the host has no address.
    Unresolved,
    /// The other side did not answer in time.
    TimedOut,
    /// The other side closed the connection instead of answering.
    Closed,
    /// The other side closed the connection instead of agreeing on TLS.
    ClosedInTls,
    /// The other side speaks TLS, and this one does not.
    Encrypted,
    /// TLS refused the other side, or was refused by it.
    Tls {
        /// The fault, and the way to mend it, in one sentence.
        sentence: String,
    },
    /// The certificate of the other side is that of another server than the one which it says that it is.
    Misnamed {
        /// The server of the certificate.
        certificate: ServerIdentity,
        /// The server that it says it is.
        said: ServerIdentity,
    },
    /// The other side does not speak this protocol.
    Malformed {
        /// The rule that was broken.
        error: HelloError,
    },
    /// The server will not talk to this caller, or is not the one that was meant.
    Refused {
        refusal: Refusal,
        /// The server that answered; 0 if it does not say.
        server: u128,
        /// Its cluster; 0 if it has none.
        cluster: u128,
        /// The sentence that the server gives with it.
        reason: Option<String>,
    },
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> HandshakeError {
        if let Some(sentence) = explain_io(&error) {
            return HandshakeError::Tls { sentence };
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => HandshakeError::Closed,
            kind => HandshakeError::Failed { kind },
        }
    }
}

impl From<HelloError> for HandshakeError {
    fn from(error: HelloError) -> HandshakeError {
        HandshakeError::Malformed { error }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Failed { kind } => write!(formatter, "{kind}"),
            HandshakeError::Unresolved => formatter.write_str("its name does not resolve"),
            HandshakeError::TimedOut => formatter.write_str("no answer to the hello in time"),
            HandshakeError::Closed => formatter.write_str("closed instead of answering the hello"),
            HandshakeError::ClosedInTls => formatter.write_str(
                "closed instead of agreeing on TLS: the server was started without TLS, or refuses this caller",
            ),
            HandshakeError::Encrypted => formatter.write_str(
                "the other end speaks TLS, and this one was started without it: its cluster has keys",
            ),
            HandshakeError::Tls { sentence } => formatter.write_str(sentence),
            HandshakeError::Misnamed { certificate, said } => write!(
                formatter,
                "the certificate is for {certificate}, and the server says that it is {said}: another process has that server's certificate, or the server was started on another's data directory"
            ),
            HandshakeError::Malformed { error } => write!(formatter, "{error}"),
            HandshakeError::Refused {
                reason: Some(reason),
                ..
            } => formatter.write_str(reason),
            HandshakeError::Refused {
                refusal,
                server,
                cluster,
                reason: None,
            } => {
                write!(
                    formatter,
                    "refused: {refusal} (server {server:032x} of cluster {cluster:032x})"
                )
            }
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Says `hello` and judges the answer, within `patience`.
///
/// # Errors
/// No answer, not this protocol, a refusal, or a server that is not the one the hello asked for.
pub async fn greet<S>(
    stream: &mut S,
    hello: &Hello,
    patience: Duration,
) -> Result<Welcome, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet_shown(stream, hello, None, patience).await
}

/// Sends `hello` to a server that showed this certificate, and judges the answer, within `patience`.
pub(crate) async fn greet_shown<S>(
    stream: &mut S,
    hello: &Hello,
    certificate: Option<ServerIdentity>,
    patience: Duration,
) -> Result<Welcome, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let welcome = timeout(patience, exchange(stream, hello, certificate))
        .await
        .map_err(|_| HandshakeError::TimedOut)??;
    match welcome.refusal.or_else(|| misfit(hello, &welcome)) {
        Some(refusal) => Err(HandshakeError::Refused {
            refusal,
            server: welcome.server,
            cluster: welcome.cluster,
            reason: welcome.reason(),
        }),
        None => Ok(welcome),
    }
}

/// Says `hello` and reads the answer, which may be a refusal. A server that shows a certificate is the one that this names, also to a
/// caller that does not know which one it calls: nothing is believed of a server that says that it is another one.
pub(crate) async fn exchange<S>(
    stream: &mut S,
    hello: &Hello,
    certificate: Option<ServerIdentity>,
) -> Result<Welcome, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&hello::encode_hello(hello)).await?;
    let bytes = read_message(stream).await?;
    let welcome = hello::decode_welcome(&bytes)?;
    let said = ServerIdentity {
        cluster: welcome.cluster,
        server: ServerId(welcome.server),
    };
    match certificate {
        Some(certificate) if certificate != said => {
            Err(HandshakeError::Misnamed { certificate, said })
        }
        _ => Ok(welcome),
    }
}

/// The reason against a server that has accepted the hello.
fn misfit(hello: &Hello, welcome: &Welcome) -> Option<Refusal> {
    if hello.cluster != 0 && welcome.cluster != hello.cluster {
        return Some(Refusal::WrongCluster);
    }
    if hello.expected_server != 0 && welcome.server != hello.expected_server {
        return Some(Refusal::WrongServer);
    }
    if hello.expected_server != 0 && welcome.incarnation < hello.known_incarnation {
        return Some(Refusal::RolledBack);
    }
    let needs_unknown = welcome.must_features & !hello::KNOWN_FEATURES != 0
        || welcome.fields.iter().any(hello::Field::must_understand);
    needs_unknown.then_some(Refusal::UnsupportedVersion)
}

/// Reads a caller's hello, within `patience`.
///
/// # Errors
/// Nothing came in time, or it is no hello.
pub async fn read_hello<S>(stream: &mut S, patience: Duration) -> Result<Hello, HandshakeError>
where
    S: AsyncRead + Unpin,
{
    let message = timeout(patience, read_message(stream)).await;
    let bytes = message.map_err(|_| HandshakeError::TimedOut)??;
    Ok(hello::decode_hello(&bytes)?)
}

/// Answers a caller that began with TLS, where there is none, by an alert of TLS: insufficient security.
pub(crate) async fn refuse_tls(stream: &mut Stream) {
    if let Stream::Plain(tcp) = stream {
        // A connection that is closed before all was read is reset, and the alert with it. What has not come yet is not waited for.
        let _ = tcp.try_read(&mut [0; MAX_READ_BYTES]);
        // The caller may be gone.
        let _ = tcp.write_all(&NO_TLS).await;
    }
}

/// Answers a hello, within `patience`.
///
/// # Errors
/// The caller is gone or does not read.
pub async fn write_welcome<S>(
    stream: &mut S,
    welcome: &Welcome,
    patience: Duration,
) -> Result<(), HandshakeError>
where
    S: AsyncWrite + Unpin,
{
    let bytes = hello::encode_welcome(welcome);
    let written = timeout(patience, stream.write_all(&bytes)).await;
    Ok(written.map_err(|_| HandshakeError::TimedOut)??)
}

/// Reads one hello or welcome, whole and not a byte beyond it.
async fn read_message<S>(stream: &mut S) -> Result<Vec<u8>, HandshakeError>
where
    S: AsyncRead + Unpin,
{
    let mut prefix = [0; PREFIX_BYTES];
    stream.read_exact(&mut prefix).await?;
    if let [TLS_ALERT | TLS_HANDSHAKE, TLS_VERSION, ..] = prefix {
        return Err(HandshakeError::Encrypted);
    }
    let mut bytes = vec![0; hello::message_bytes(&prefix)?];
    bytes[..PREFIX_BYTES].copy_from_slice(&prefix);
    stream.read_exact(&mut bytes[PREFIX_BYTES..]).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use areo_wire::hello::{Channel, Role};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn hello() -> Hello {
        Hello {
            cluster: 1,
            expected_server: 2,
            known_incarnation: 5,
            ..Hello::new(Role::Client, Channel::Calls, 9)
        }
    }

    fn welcome() -> Welcome {
        Welcome {
            version: areo_wire::frame::VERSION,
            must_features: 0,
            optional_features: 0,
            refusal: None,
            max_body_bytes: 10,
            max_payload_bytes: 20,
            cluster: 1,
            server: 2,
            incarnation: 5,
            fields: Vec::new(),
        }
    }

    async fn outcome(answer: Welcome) -> Result<Welcome, HandshakeError> {
        let (mut caller, mut server) = tokio::io::duplex(1 << 16);
        let serve = async {
            assert_eq!(read_hello(&mut server, PATIENCE).await, Ok(hello()));
            write_welcome(&mut server, &answer, PATIENCE).await.unwrap();
        };
        let said = hello();
        let (outcome, ()) = tokio::join!(greet(&mut caller, &said, PATIENCE), serve);
        outcome
    }

    #[tokio::test]
    async fn the_caller_checks_the_server_that_accepted_it() {
        assert_eq!(outcome(welcome()).await, Ok(welcome()));
        let newer = Welcome {
            incarnation: 6,
            ..welcome()
        };
        assert_eq!(outcome(newer.clone()).await, Ok(newer));
        for (answer, expected) in [
            (
                Welcome {
                    cluster: 7,
                    ..welcome()
                },
                Refusal::WrongCluster,
            ),
            (
                Welcome {
                    cluster: 0,
                    ..welcome()
                },
                Refusal::WrongCluster,
            ),
            (
                Welcome {
                    server: 7,
                    ..welcome()
                },
                Refusal::WrongServer,
            ),
            (
                Welcome {
                    incarnation: 4,
                    ..welcome()
                },
                Refusal::RolledBack,
            ),
            (
                Welcome {
                    must_features: 2,
                    ..welcome()
                },
                Refusal::UnsupportedVersion,
            ),
            (
                Welcome {
                    version: 0,
                    refusal: Some(Refusal::Starting),
                    ..welcome()
                },
                Refusal::Starting,
            ),
        ] {
            let (server, cluster) = (answer.server, answer.cluster);
            let refused = HandshakeError::Refused {
                refusal: expected,
                server,
                cluster,
                reason: None,
            };
            assert_eq!(outcome(answer).await, Err(refused));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_a_closed_door_and_a_stranger_are_told_apart() {
        let (mut caller, server) = tokio::io::duplex(1 << 16);
        assert_eq!(
            greet(&mut caller, &hello(), PATIENCE).await,
            Err(HandshakeError::TimedOut)
        );
        drop(server);
        assert!(matches!(
            greet(&mut caller, &hello(), PATIENCE).await,
            Err(HandshakeError::Failed { .. })
        ));

        let (mut caller, mut server) = tokio::io::duplex(1 << 16);
        server.write_all(b"HTTP/1.1 400 Bad Request").await.unwrap();
        let error = greet(&mut caller, &hello(), PATIENCE).await.unwrap_err();
        assert_eq!(
            error,
            HandshakeError::Malformed {
                error: HelloError::NotAreo { found: *b"HTTP" }
            }
        );
    }
}
