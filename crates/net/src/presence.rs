//! Asks whether a server is at an address: a question before any connection counts as one.

use std::time::Duration;

use areo_wire::frame::Refusal;
use areo_wire::hello::{Channel, Hello, Role, Welcome};
use tokio::time::timeout;

use crate::encryption::{Called, Tls, connected};
use crate::handshake::{HandshakeError, exchange};
use crate::sockets;

/// The answer at the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A process that says that it is the server.
    Answers {
        /// The number of the process; of one of an earlier version none.
        process: Option<u64>,
        /// It is going down.
        is_stopping: bool,
    },
    /// No process of that server: the address refuses connections, or another program answers.
    Absent,
    /// No answer that can be trusted, which says nothing: the process may be slow, stand still, or be out of reach; or one end encrypts
    /// and the other one does not, or does not take the other's certificate.
    Silent,
}

/// Asks at an address whether a process answers there as this server of this cluster.
pub async fn presence(
    address: &str,
    (cluster, server): (u128, u128),
    tls: Option<&Tls>,
    patience: Duration,
) -> Presence {
    let asked = async {
        let tcp = sockets::connect(address).await?;
        let called = connected(tcp, server, tls).await?;
        ask(called, (cluster, server)).await
    };
    match timeout(patience, asked).await {
        Ok(Ok(welcome)) if (welcome.cluster, welcome.server) == (cluster, server) => {
            Presence::Answers {
                process: welcome.process(),
                is_stopping: welcome.refusal == Some(Refusal::Draining),
            }
        }
        Ok(
            Ok(_)
            | Err(
                HandshakeError::Malformed { .. }
                | HandshakeError::Failed {
                    kind: std::io::ErrorKind::ConnectionRefused,
                },
            ),
        ) => Presence::Absent,
        Ok(Err(_)) | Err(_) => Presence::Silent,
    }
}

/// Sends a hello. A refusal is an answer, too, and names the server.
async fn ask(
    mut called: Called,
    (cluster, server): (u128, u128),
) -> Result<Welcome, HandshakeError> {
    let hello = Hello {
        cluster,
        expected_server: server,
        // Whichever start of it answers has the identity.
        known_incarnation: 0,
        ..Hello::new(Role::Server, Channel::Calls, server)
    };
    exchange(&mut called.stream, &hello, called.certificate).await
}
