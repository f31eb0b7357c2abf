//! A connection to a server, up to the answer to its hello.

use std::net::SocketAddr;

use areo_wire::hello::{Channel, Hello, Welcome};
use tokio::time::timeout;

use crate::encryption::{Called, Stream, connected};
use crate::handshake::{HandshakeError, greet_shown};
use crate::peer::PeerConfig;
use crate::peer::known::{HelloAnswer, PeerKnowledge};
use crate::sockets;

/// A stream on which the hello was exchanged.
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    /// The address of the other end.
    pub(crate) remote: SocketAddr,
    /// The server's answer to the hello.
    pub(crate) welcome: Welcome,
}

/// Connects, agrees on TLS if the process encrypts, and says hello.
pub(crate) async fn open(
    channel: Channel,
    config: &PeerConfig,
    known: &PeerKnowledge,
) -> Result<Opened, HandshakeError> {
    let address = known.address.borrow().clone();
    let connecting = timeout(config.connect_timeout, sockets::connect(&address));
    let tcp = connecting.await.map_err(|_| HandshakeError::TimedOut)??;
    sockets::prepare(&tcp, config.silence_timeout)?;
    let remote = tcp.peer_addr()?;
    let encrypting = connected(tcp, config.server, config.tls.as_ref());
    let encrypting = timeout(config.hello_timeout, encrypting);
    let called = encrypting.await.map_err(|_| HandshakeError::TimedOut)?;
    if let (Err(HandshakeError::Tls { .. }), Some(tls)) = (&called, &config.tls) {
        // The CA may have been rotated: who has a key learns of it with the next ticket.
        tls.ask_for_ticket();
    }
    let Called {
        mut stream,
        certificate,
    } = called?;
    let hello = Hello {
        cluster: config.cluster,
        expected_server: config.server,
        known_incarnation: known.highest_incarnation.get(),
        ..Hello::new(config.role, channel, config.own_id)
    };
    let hello = match (&config.tls, certificate, stream.session()) {
        (Some(tls), Some(called), Some(session)) => {
            tls.with_ticket(hello, called.server, session.binding)
        }
        _ => hello,
    };
    let welcome = greet_shown(&mut stream, &hello, certificate, config.hello_timeout);
    let welcome = welcome.await?;
    if config.server != 0 {
        // An incarnation says nothing about an address.
        known.learn(welcome.incarnation);
    }
    known.answered.set(HelloAnswer {
        server: welcome.server,
        cluster: welcome.cluster,
        incarnation: welcome.incarnation,
    });
    Ok(Opened {
        stream,
        remote,
        welcome,
    })
}
