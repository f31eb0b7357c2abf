//! The timeouts of the operating system for the other side of a connection.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpStream, lookup_host};

use crate::handshake::HandshakeError;

/// Keepalive probes without an answer after which a connection ends.
const PROBES: u32 = 3;

/// Connects to the first address of this host and port at which a process listens. A name is resolved apart: its error has no kind that says
/// that it is about the name.
pub(crate) async fn connect(address: &str) -> Result<TcpStream, HandshakeError> {
    let found = match lookup_host(address).await {
        Ok(found) => found,
        // The system lacks something for the look-up, such as a descriptor: the error is not about the name.
        Err(error) if error.raw_os_error().is_some() => return Err(error.into()),
        Err(_) => return Err(HandshakeError::Unresolved),
    };
    let mut failed = HandshakeError::Unresolved;
    for address in found {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

/// Has the operating system end a connection whose other side acknowledges no bytes for so long. Small calls are sent at once:
/// they must not wait for the delayed acknowledgement of the ones before.
pub(crate) fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, patience_ms)?)
}

/// Has the operating system end an accepted connection whose other side acknowledges no bytes for so long, or, with nothing
/// to acknowledge, answers no probes: the accepting side has no other means to know that a machine is gone. Small answers are
/// sent at once.
///
/// # Errors
/// The operating system does not take an option.
pub fn prepare_accepted(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    prepare(stream, patience)?;
    // The system counts in whole seconds, and takes no zero.
    let second = Duration::from_secs(1);
    let idle = (patience / 2).max(second);
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, (idle / PROBES).max(second))?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_does_not_resolve_is_said_to_be_the_reason() {
        for address in [
            "no.such.invalid:1",
            ":1",
            "http://h:1",
            "a b:1",
            "host",
            "host:x",
        ] {
            let error = connect(address).await.unwrap_err();
            assert_eq!(error, HandshakeError::Unresolved, "{address}");
            assert_eq!(error.to_string(), "its name does not resolve");
        }
        let kind = io::ErrorKind::ConnectionRefused;
        let error = connect("127.0.0.1:1").await.unwrap_err();
        assert_eq!(error, HandshakeError::Failed { kind });
    }
}
