//! How long the operating system itself waits for the other side of a connection.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Keepalive probes without an answer after which a connection ends.
const PROBES: u32 = 3;

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
