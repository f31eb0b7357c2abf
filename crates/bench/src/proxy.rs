//! Between callers and servers: a TCP proxy that holds, delays, slows, closes and resets, link by link.
//!
//! A *link* is a caller and a server. The caller is known by the id in its hello, so that one address per server is
//! enough, as the directory of a cluster has it, and links between servers are among them. Where connections are encrypted, each counts as
//! that of a caller of its own. What is to happen to links is
//! said by [`Rule`]s, which come and go while bytes flow; each counts what it touched, so that a trouble that met no
//! traffic is not taken for one that happened.

mod pump;
mod rule;

pub(crate) use rule::{Active, Direction, Effect, Rule};

use areo_wire::hello::{PREFIX_BYTES, decode_hello, message_bytes};
use pump::Link;
use rule::Rules;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

/// The longest time that a server may take to accept. It is on the same machine; in a namespace, packets may get lost.
const CONNECT: Duration = Duration::from_secs(2);

/// One listener per server; closes everything when it is dropped.
pub(crate) struct Proxy {
    rules: Rc<Rules>,
    listeners: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Listens at the first of each pair of addresses for the server at the second.
    pub(crate) async fn start(pairs: &[(String, String)]) -> io::Result<Proxy> {
        let rules = Rc::new(Rules::default());
        let mut listeners = Vec::new();
        for (server, (front, back)) in pairs.iter().enumerate() {
            let listener = TcpListener::bind(front).await?;
            let work = accept(rules.clone(), server, listener, back.clone());
            listeners.push(spawn_local(work));
        }
        Ok(Proxy { rules, listeners })
    }

    /// Applies the rule until it is lifted.
    pub(crate) fn apply(&self, rule: Rule) -> Rc<Active> {
        self.rules.add(rule)
    }

    /// Clients that are new to the proxy are at this site from now on; see [`Rule::callers`].
    pub(crate) fn newcomers_are_at(&self, site: usize) {
        self.rules.newcomers_are_at(site);
    }

    /// Ends the effect of a rule.
    pub(crate) fn lift(&self, active: &Rc<Active>) {
        self.rules.remove(active);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
        self.rules.end();
    }
}

async fn accept(rules: Rc<Rules>, server: usize, listener: TcpListener, back: String) {
    loop {
        // Fails for a connection that went away meanwhile, or for lack of descriptors, which passes.
        let Ok((caller, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (rules, back) = (rules.clone(), back.clone());
        spawn_local(async move {
            // However it ends, both sides see their connection end.
            let _ = connection(rules, server, caller, &back).await;
        });
    }
}

async fn connection(
    rules: Rc<Rules>,
    server: usize,
    mut caller: TcpStream,
    back: &str,
) -> io::Result<()> {
    caller.set_nodelay(true)?;
    let hello = read_hello(&mut caller).await?;
    let port = caller.peer_addr()?.port();
    let group = decode_hello(&hello).map_or(rules.group_of(port), |hello| rules.group(&hello));
    let link = Link {
        rules,
        server,
        group,
    };
    link.wait(Direction::ToServer, hello.len()).await?;
    let connected = timeout(CONNECT, TcpStream::connect(back)).await;
    let mut server = connected.map_err(|_| io::ErrorKind::TimedOut)??;
    server.set_nodelay(true)?;
    server.write_all(&hello).await?;
    link.join(caller, server).await;
    Ok(())
}

/// The first message of a connection, or the first bytes where it is something else, as of one that is encrypted.
async fn read_hello(caller: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; PREFIX_BYTES];
    caller.read_exact(&mut prefix).await?;
    let mut bytes = prefix.to_vec();
    bytes.resize(message_bytes(&prefix).unwrap_or(PREFIX_BYTES), 0);
    caller.read_exact(&mut bytes[PREFIX_BYTES..]).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
