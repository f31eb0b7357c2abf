//! A live server under input that no client sends: it refuses, closes that connection, and serves all others.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dap::{self, PutError};
use areo_core::dsm::Client;
use areo_core::element::Value;
use areo_core::error::{CallError, Response};
use areo_core::gather::Visit;
use areo_core::limits;
use areo_core::message::Refusal;
use areo_core::object::{DomainId, Name};
use areo_core::tag::Tag;
use areo_core::timing::ROOM_GRACE;
use areo_net::env::NetEnv;
use areo_net::network::Network;
use areo_net::{Role, crc32c};
use areo_wire::fuzzing::Golden;
use areo_wire::hello::{Channel, Hello, encode_hello};
use bytes::Bytes;
use tokio::task::LocalSet;

mod support;

/// Inputs on every change; `AREO_HOSTILE_REQUESTS` asks for more.
const INPUTS: usize = 10_000;
/// Inputs on one connection, if the server leaves it open so long.
const INPUTS_PER_CONNECTION: usize = 20;
/// The largest growth of the server's memory, in bytes.
const GROWTH_BYTES: u64 = 64 << 20;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// One frame: a well-formed head with a correct checksum around a body that was tampered with, or plain noise.
fn input(random: &mut Random, bodies: &[Vec<u8>]) -> Vec<u8> {
    if random.below(4) == 0 {
        return (0..random.below(300))
            .map(|_| random.next() as u8)
            .collect();
    }
    let mut body = bodies[random.below(bodies.len())].clone();
    for _ in 0..random.below(4) {
        let at = random.below(body.len());
        body[at] ^= 1 << random.below(8);
    }
    let kept = body.len() - random.below(body.len()) * random.below(2);
    body.truncate(kept);
    let kind = [
        areo_wire::frame::Kind::Request,
        areo_wire::frame::Kind::Note,
    ][random.below(2)];
    let header = areo_wire::frame::Header::new(kind, random.next());
    let payload = vec![7u8; random.below(2) * random.below(5000)];
    let row = areo_wire::frame::SegmentRow {
        bytes: payload.len() as u32,
        crc32c: crc32c(&payload),
    };
    let rows = (!payload.is_empty()).then_some(row);
    let mut frame = Vec::new();
    let place = areo_wire::frame::BodyPlace::Inline;
    areo_wire::frame::encode(&mut frame, &header, rows.into_iter(), &body, place).unwrap();
    frame.extend_from_slice(&payload);
    if random.below(8) == 0 {
        frame.truncate(random.below(frame.len()));
    }
    frame
}

fn ping() -> Vec<u8> {
    let header = areo_wire::frame::Header::new(areo_wire::frame::Kind::Ping, 0);
    let mut frame = Vec::new();
    let place = areo_wire::frame::BodyPlace::Inline;
    areo_wire::frame::encode(&mut frame, &header, [].into_iter(), &[], place).unwrap();
    frame
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib << 10
}

/// Runs what a client does at the server, with a domain of its own that the server alone keeps.
fn as_client<F: Future>(
    listen: SocketAddr,
    act: impl FnOnce(Client<NetEnv>, Arc<Configuration>) -> F,
) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let network = Network::new(Role::Client, 1);
        let patience = Duration::from_secs(20);
        let found = network.bootstrap(&listen.to_string(), None, patience).await;
        let found = found.expect("an ordinary caller is answered");
        network.learn(found.cluster, found.directory.servers);
        let descriptor = Descriptor::new(DomainId(7), vec![found.server], Dap::Abd);
        let configuration = Configuration::new(descriptor);
        let configuration = configuration.expect("one server can replicate alone");
        act(Client::new(network.env(patience)), configuration).await
    })
}

/// An ordinary client writes an object and reads it back.
fn check_ordinary_operations(listen: SocketAddr, value: &'static [u8]) {
    as_client(listen, async |client, configuration| {
        let (name, content) = (Name::user("key").unwrap(), Bytes::from_static(value));
        let written = Value::new(Bytes::new(), content.clone());
        let tag = client.domain(&configuration).put(&name, &written).await;
        let read = client
            .domain(&configuration)
            .read(&name, None)
            .await
            .unwrap();
        assert_eq!(tag.unwrap(), read.tag);
        assert_eq!(read.value.unwrap().content, [content]);
    });
}

/// `[N-1 bounded-numbers]`: one put with number 2^64-1 made an object unwritable for ever, and ended every process that
/// wrote it.
#[test]
fn a_version_number_that_is_not_possible_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (listen, _) = support::start(folder.path(), "s1", support::init());
    check_ordinary_operations(listen, b"before");
    as_client(listen, async |client, configuration| {
        let name = Name::user("key").unwrap();
        let value = Value::new(Bytes::new(), Bytes::from_static(b"hostile"));
        for number in [limits::NUMBER, u64::MAX] {
            let writer = client.next_writer();
            let tag = Tag { number, writer };
            for is_new in [true, false] {
                let (env, at) = (&client.env, Visit::new(&configuration));
                let put = match is_new {
                    true => dap::put_new(env, &at, &name, (tag, &value), ROOM_GRACE).await,
                    false => dap::put_data(env, &at, &name, tag, &value, &[false]).await,
                };
                let Err(PutError::Failed(CallError::Unavailable(refused))) = put else {
                    panic!("{put:?}")
                };
                let too_large = Response::Refused(Refusal::TooLarge);
                assert_eq!(refused.servers[0].1, too_large);
            }
            let last = Visit::new(&configuration);
            dap::confirm(&client.env, &last, &name, tag);
        }
        let value = Value::new(Bytes::new(), Bytes::from_static(b"written"));
        let written = client.domain(&configuration).put(&name, &value).await;
        let written = written.expect("the object is writable");
        assert!(written.number < 10, "{written}");
    });
    check_ordinary_operations(listen, b"after");
}

/// Panics so far, in the tasks of the server too, whose other tasks go on.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        print(panic);
    }));
}

/// The number of inputs to send: the value of `AREO_HOSTILE_REQUESTS`.
fn wanted() -> usize {
    match std::env::var("AREO_HOSTILE_REQUESTS") {
        Ok(number) => number
            .parse()
            .expect("AREO_HOSTILE_REQUESTS is a number of requests"),
        Err(_) => INPUTS,
    }
}

#[test]
fn hostile_inputs_hurt_nobody_else() {
    let inputs = wanted();
    count_panics();
    let folder = tempfile::tempdir().unwrap();
    let (listen, admin) = support::start(folder.path(), "s1", support::init());
    check_ordinary_operations(listen, b"before");
    let golden = include_str!("../../wire/tests/golden/request-v2.txt");
    let golden: Vec<Vec<u8>> = Golden::parse(golden)
        .into_iter()
        .map(|example| example.body)
        .collect();
    let before = resident_bytes();
    let mut random = Random(0x0a2e_0a2e_0a2e_0a2e);
    let (mut sent, mut answered) = (0, 0);
    while sent < inputs {
        let mut stream = TcpStream::connect(listen).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        if random.below(10) > 0 {
            let hello = Hello::new(Role::Client, Channel::Calls, random.next().into());
            stream.write_all(&encode_hello(&hello)).unwrap();
        }
        let mut answer = [0; 4096];
        for _ in 0..INPUTS_PER_CONNECTION {
            sent += 1;
            // The ping makes sure that the server has come to the input; a cut frame swallows it.
            let mut bytes = input(&mut random, &golden);
            bytes.extend_from_slice(&ping());
            let written = stream.write_all(&bytes);
            match written.and_then(|()| stream.read(&mut answer)) {
                Ok(1..) => answered += 1,
                // It closed the connection, or waits for the rest of a frame.
                Ok(0) | Err(_) => break,
            }
        }
    }
    assert!(
        answered > inputs / 4,
        "{answered} of {sent} were well-formed enough for an answer"
    );
    check_ordinary_operations(listen, b"after");
    assert!(support::is_ready(admin));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES, "{grown} bytes more");
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    println!("{sent} inputs, {answered} answered, {grown} bytes more resident memory");
}
