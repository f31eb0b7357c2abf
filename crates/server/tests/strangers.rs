//! A live server and strangers who connect and do nothing, more of them than there are places: they lose theirs, and clients,
//! servers and administrators do not notice.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use areo_net::network::Network;
use areo_net::{Places, Role};
use areo_wire::hello::{Channel, Hello, PREFIX_BYTES, encode_hello, message_bytes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::LocalSet;

mod support;

/// Descriptors that the server and the strangers of this process take.
const DESCRIPTORS: u64 = 16 << 10;
/// Connections to the admin port for which there are places.
const ADMIN_PLACES: usize = 64;

/// Raises the limit of descriptors, because both ends of all connections are in this process. False: the system does
/// not allow enough.
fn has_descriptors() -> bool {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    maximum.is_none_or(|maximum| maximum >= DESCRIPTORS)
}

/// Connects and says this hello, if any; waits for the welcome.
fn stranger(address: SocketAddr, hello: Option<&Hello>) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    if let Some(hello) = hello {
        stream.write_all(&encode_hello(hello)).unwrap();
        let mut prefix = [0; PREFIX_BYTES];
        stream.read_exact(&mut prefix).unwrap();
        let mut rest = vec![0; message_bytes(&prefix).unwrap() - PREFIX_BYTES];
        stream.read_exact(&mut rest).unwrap();
    }
    stream
}

/// True if a process of this role gets the directory from the server.
fn is_answered(listen: SocketAddr, role: Role) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let patience = Duration::from_secs(20);
        let network = Network::new(role, 5);
        let found = network.bootstrap(&listen.to_string(), None, patience).await;
        found.is_ok()
    })
}

fn metrics(admin: SocketAddr) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn value(metrics: &str, series: &str) -> u64 {
    let mut lines = metrics.lines();
    let line = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}"))
        .parse()
        .unwrap()
}

/// 1024 silent connections kept every client and every server out, while the server said that it was ready.
#[test]
fn silent_strangers_keep_no_other_caller_out() {
    if !has_descriptors() {
        eprintln!(
            "skipped: a process may not have {DESCRIPTORS} file descriptors here (ulimit -n)"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (listen, admin) = support::start(folder.path(), "s1", support::init());
    let places = Places::USUAL;
    let mut silent = Vec::new();
    for (role, count) in [(Role::Client, places.clients), (Role::Server, 100)] {
        let hello = Hello::new(role, Channel::Calls, 77);
        silent.extend((0..count).map(|_| stranger(listen, Some(&hello))));
    }
    silent.extend((0..places.waiting + 50).map(|_| stranger(listen, None)));
    silent.extend((0..2 * ADMIN_PLACES).map(|_| stranger(admin, None)));

    assert!(is_answered(listen, Role::Client), "clients get in");
    assert!(is_answered(listen, Role::Server), "servers get in");
    assert!(support::is_ready(admin), "administrators get in");
    let text = metrics(admin);
    let open = |class: &str| {
        value(
            &text,
            &format!("areo_server_connections{{class=\"{class}\"}}"),
        )
    };
    assert!(open("client") <= places.clients as u64);
    assert!(open("waiting") <= places.waiting as u64);
    assert!(open("admin") <= ADMIN_PLACES as u64);
    let displaced = |class: &str| {
        let series = format!("areo_server_displaced_connections_total{{class=\"{class}\"}}");
        value(&text, &series)
    };
    assert!(displaced("client") >= 100, "strangers lose their places");
    assert!(displaced("waiting") >= 50 && displaced("admin") >= ADMIN_PLACES as u64);
    drop(silent);
}
