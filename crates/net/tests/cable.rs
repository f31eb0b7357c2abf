//! A cable that is cut: no reset, no end, only silence.

use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::*;
use areo_net::{PeerConfig, Status};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::oneshot;

/// The longest wait of either side for a sign of life.
const LIMIT: Duration = Duration::from_secs(2);

/// A network namespace with a cable to this one; both go when it is dropped.
struct Cable {
    namespace: String,
    here: String,
    there: String,
    server: SocketAddr,
}

impl Cable {
    /// `None`: this process may not make any.
    fn plug_in() -> Option<Cable> {
        let id = std::process::id();
        let cable = Cable {
            namespace: format!("areo-{id}"),
            here: format!("ar{id}a"),
            there: format!("ar{id}b"),
            server: SocketAddr::from(([10, 213, 77, 2], 7400)),
        };
        let (namespace, here, there) = (&cable.namespace, &cable.here, &cable.there);
        let is_made = ip(&format!("netns add {namespace}"))
            && ip(&format!("link add {here} type veth peer name {there}"))
            && ip(&format!("link set {there} netns {namespace}"))
            && ip(&format!("addr add 10.213.77.1/30 dev {here}"))
            && ip(&format!("link set {here} up"))
            && ip(&format!(
                "-n {namespace} addr add 10.213.77.2/30 dev {there}"
            ))
            && ip(&format!("-n {namespace} link set {there} up"));
        is_made.then_some(cable)
    }

    fn cut(&self) {
        let (namespace, there) = (&self.namespace, &self.there);
        assert!(ip(&format!("-n {namespace} link set {there} down")));
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.here));
        ip(&format!("netns del {}", self.namespace));
    }
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

/// A server at the other end of the cable, on a thread of its own that ends when it has noticed that its caller is gone.
fn serve(cable: &Cable, up: oneshot::Sender<()>) -> thread::JoinHandle<()> {
    let namespace = std::fs::File::open(format!("/run/netns/{}", cable.namespace)).unwrap();
    let address = cable.server;
    thread::spawn(move || {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), kind).unwrap();
        local(async {
            let service = TestService::new(Manner::Echo);
            let server =
                TestServer::start_at(address, service, |config| config.stall_timeout = LIMIT);
            let server = server.await;
            up.send(()).unwrap();
            until("a caller", || server.listener.connections() == 1).await;
            server.has_connections(0).await;
        });
    })
}

#[test]
fn both_ends_of_a_cable_that_is_cut_know_it() {
    let Some(cable) = Cable::plug_in() else {
        eprintln!("skipped: this process may not make network namespaces (that needs root and ip)");
        return;
    };
    let (up, is_up) = oneshot::channel();
    let server = serve(&cable, up);
    local(async {
        is_up.await.unwrap();
        let peer = areo_net::Peer::new(PeerConfig {
            silence_timeout: LIMIT,
            ..peer_config(cable.server)
        });
        let record = Record::new();
        peer.call(message(b"before"), record.clone(), 1).unwrap();
        assert_eq!(record.reply(1).await.0, b"before");
        cable.cut();
        let cut = Instant::now();
        until("the server is missed", || {
            peer.status() == Status::Unreachable
        })
        .await;
        eprintln!(
            "unreachable {:?} after the cut, of {LIMIT:?}",
            cut.elapsed()
        );
    });
    server.join().unwrap();
}
