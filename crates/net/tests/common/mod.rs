//! The common part of the tests over real sockets.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test code, of which each file uses its own part"
)]

use areo_wire::checksum::crc32c;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use areo_net::handshake::{greet, read_hello, write_welcome};
use areo_net::listener::Class;
use areo_net::{
    Answer, Identity, Incoming, Listener, ListenerConfig, Origin, Outgoing, Peer, PeerConfig, Pool,
    Responder, Segment, Service, Sink,
};
use areo_wire::frame::{self, BodyPlace, DecodeOutcome, Header, Kind, Limits, Refusal, SegmentRow};
use areo_wire::hello::{Channel, Hello, Role, Welcome};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Long enough for anything that is going to happen at all.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const IDENTITY: Identity = Identity {
    cluster: 0xC1,
    server: 0x51,
    incarnation: 3,
};

/// Runs a test on a current-thread runtime, as production does.
pub fn local<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(PATIENCE * 2, test)
            .await
            .expect("test hangs")
    })
}

/// Waits until `reached` holds.
pub async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let wait = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("never happened: {what}"));
}

pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The reaction of a test server to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Echoes body and payload at once.
    Echo,
    /// Collects, and echoes the bodies at the end of the batch, last first.
    Backwards,
    /// Answers nothing until the test changes that.
    Hold,
    /// Answers with a payload of this size.
    Large(usize),
}

pub struct TestService {
    pub identity: Cell<Identity>,
    pub manner: Cell<Manner>,
    pub held: RefCell<Vec<(Vec<u8>, Responder)>>,
    pub requests: Cell<usize>,
    /// The callers of requests: the key of each, if it has shown a ticket.
    pub callers: RefCell<Vec<Option<String>>>,
    pub notes: Cell<usize>,
    pub batches: Cell<usize>,
    /// True if callers that say that they are servers count as registered.
    pub knows_servers: Cell<bool>,
}

impl TestService {
    pub fn new(manner: Manner) -> Rc<TestService> {
        Rc::new(TestService {
            identity: Cell::new(IDENTITY),
            manner: Cell::new(manner),
            held: RefCell::default(),
            requests: Cell::new(0),
            callers: RefCell::default(),
            notes: Cell::new(0),
            batches: Cell::new(0),
            knows_servers: Cell::new(true),
        })
    }

    pub fn answer_held(&self) {
        let held = std::mem::take(&mut *self.held.borrow_mut());
        for (body, responder) in held.into_iter().rev() {
            responder.reply(&body, &[]);
        }
    }
}

impl Service for TestService {
    fn identity(&self) -> Identity {
        self.identity.get()
    }

    fn class_of(&self, hello: &Hello) -> Class {
        match hello.role == Role::Server && self.knows_servers.get() {
            true => Class::Server,
            false => Class::Client,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        self.requests.set(self.requests.get() + 1);
        let key = match responder.origin() {
            Origin::Key(ticket) => Some(format!("key {}", ticket.key.0)),
            Origin::Plain | Origin::Anonymous | Origin::Server(_) => None,
        };
        self.callers.borrow_mut().push(key);
        match self.manner.get() {
            Manner::Echo => responder.reply(request.body, &request.payload),
            Manner::Large(bytes) => {
                let segment = Segment::checksummed(Bytes::from(vec![9; bytes]));
                responder.reply(request.body, &[segment]);
            }
            Manner::Backwards | Manner::Hold => {
                self.held
                    .borrow_mut()
                    .push((request.body.to_vec(), responder));
            }
        }
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {
        self.notes.set(self.notes.get() + 1);
    }

    fn on_batch_end(&self) {
        self.batches.set(self.batches.get() + 1);
        if self.manner.get() == Manner::Backwards {
            self.answer_held();
        }
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    pub service: Rc<TestService>,
    pub listener: Rc<Listener<TestService>>,
    pub pool: Pool,
    task: JoinHandle<()>,
}

impl TestServer {
    /// Waits until the server has this number of connections.
    pub async fn has_connections(&self, count: usize) {
        until("connections", || self.listener.connections() == count).await;
    }

    pub async fn start(manner: Manner) -> TestServer {
        TestServer::start_at(loopback(0), TestService::new(manner), |_| {}).await
    }

    pub async fn start_at(
        address: SocketAddr,
        service: Rc<TestService>,
        adjust: impl FnOnce(&mut ListenerConfig),
    ) -> TestServer {
        let pool = Pool::new(64 << 20);
        let mut config = ListenerConfig::new(pool.clone());
        adjust(&mut config);
        let listener = Listener::bind(address, config, Rc::clone(&service))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Rc::new(listener);
        let running = Rc::clone(&listener);
        let task = spawn_local(async move { running.run().await });
        TestServer {
            address,
            service,
            listener,
            pool,
            task,
        }
    }

    /// Stops accepting and cuts every connection, as a killed process would; the port is free again after.
    pub async fn kill(self) -> SocketAddr {
        self.listener.drain(Duration::ZERO).await;
        self.task.await.unwrap();
        until("connections are gone", || self.listener.connections() == 0).await;
        self.address
    }

    pub fn peer(&self) -> Peer {
        Peer::new(self.peer_config())
    }

    pub fn peer_config(&self) -> PeerConfig {
        peer_config(self.address)
    }
}

pub fn peer_config(address: SocketAddr) -> PeerConfig {
    PeerConfig {
        cluster: IDENTITY.cluster,
        server: IDENTITY.server,
        ..PeerConfig::new(address.to_string(), 0xC11E, Pool::new(64 << 20))
    }
}

/// An event of a sink, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Reply(Vec<u8>, Vec<Bytes>),
    Refused(Refusal),
    Retrying,
    GivenUp,
}

/// Remembers all its events, by token.
#[derive(Default)]
pub struct Record {
    told: RefCell<BTreeMap<u64, Vec<Told>>>,
    replies: Cell<usize>,
}

impl Record {
    pub fn new() -> Rc<Record> {
        Rc::new(Record::default())
    }

    pub fn of(&self, token: u64) -> Vec<Told> {
        self.told.borrow().get(&token).cloned().unwrap_or_default()
    }

    pub fn last(&self, token: u64) -> Option<Told> {
        self.of(token).pop()
    }

    /// Waits until the call was refused.
    pub async fn refused(&self, token: u64, refusal: Refusal) {
        let refused = [Told::Refused(refusal)];
        until("it was refused", || self.of(token) == refused).await;
    }

    pub fn replies(&self) -> usize {
        self.replies.get()
    }

    pub async fn reply(&self, token: u64) -> (Vec<u8>, Vec<Bytes>) {
        until(&format!("a reply to {token}"), || {
            matches!(self.last(token), Some(Told::Reply(..)))
        })
        .await;
        match self.last(token) {
            Some(Told::Reply(body, payload)) => (body, payload),
            other => panic!("{other:?}"),
        }
    }
}

impl Sink for Record {
    fn on_answer(&self, token: u64, answer: Answer<'_>) {
        let told = match answer {
            Answer::Reply(reply) => {
                self.replies.set(self.replies.get() + 1);
                Told::Reply(
                    reply.body.to_vec(),
                    reply
                        .payload
                        .into_iter()
                        .map(|segment| segment.bytes)
                        .collect(),
                )
            }
            Answer::Refused { refusal, .. } => Told::Refused(refusal),
            Answer::Unreachable { will_retry: true } => Told::Retrying,
            Answer::Unreachable { will_retry: false } => Told::GivenUp,
        };
        self.told.borrow_mut().entry(token).or_default().push(told);
    }
}

/// A server, a peer that calls it, and what becomes of the calls.
pub async fn serving(manner: Manner) -> (TestServer, Peer, Rc<Record>) {
    let server = TestServer::start(manner).await;
    let peer = server.peer();
    (server, peer, Record::new())
}

/// A peer of a server that the test plays itself, which has to accept.
pub async fn listening() -> (TcpListener, Peer, Rc<Record>) {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let peer = Peer::new(peer_config(listener.local_addr().unwrap()));
    (listener, peer, Record::new())
}

/// An address at which no server listens.
pub async fn vacant() -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    listener.local_addr().unwrap()
}

pub fn message(body: impl Into<Vec<u8>>) -> Outgoing {
    Outgoing::new(Bytes::from(body.into()), Some(PATIENCE))
}

pub fn message_with(body: &[u8], payload: &[usize]) -> Outgoing {
    let mut message = message(body);
    message.payload = payload
        .iter()
        .enumerate()
        .map(|(index, &bytes)| Segment::checksummed(Bytes::from(vec![index as u8 + 1; bytes])))
        .collect();
    message
}

/// A frame as bytes.
pub fn frame_bytes(header: &Header, body: &[u8], payload: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let rows = payload.iter().map(|segment| SegmentRow {
        bytes: segment.len() as u32,
        crc32c: crc32c(segment),
    });
    frame::encode(&mut out, header, rows, body, BodyPlace::Inline).unwrap();
    for segment in payload {
        out.extend_from_slice(segment);
    }
    out
}

pub fn request_bytes(call_id: u64, body: &[u8], payload: &[Vec<u8>]) -> Vec<u8> {
    frame_bytes(&Header::new(Kind::Request, call_id), body, payload)
}

/// One side of a connection in the hands of the test.
pub struct Raw {
    pub stream: TcpStream,
    pub hello: Hello,
    buffer: Vec<u8>,
}

impl Raw {
    /// Connects to a server and says hello.
    pub async fn connect(address: SocketAddr) -> Raw {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let hello = Hello::new(Role::Client, Channel::Calls, 77);
        greet(&mut stream, &hello, PATIENCE).await.unwrap();
        Raw {
            stream,
            hello,
            buffer: Vec::new(),
        }
    }

    /// Accepts a caller and welcomes it.
    pub async fn accept(listener: &TcpListener) -> Raw {
        let (mut stream, _) = listener.accept().await.unwrap();
        let hello = read_hello(&mut stream, PATIENCE).await.unwrap();
        let limits = Limits::default();
        let welcome = Welcome {
            version: frame::VERSION,
            must_features: 0,
            optional_features: 0,
            refusal: None,
            max_body_bytes: limits.max_body_bytes,
            max_payload_bytes: limits.max_payload_bytes,
            cluster: IDENTITY.cluster,
            server: IDENTITY.server,
            incarnation: IDENTITY.incarnation,
            fields: Vec::new(),
        };
        write_welcome(&mut stream, &welcome, PATIENCE)
            .await
            .unwrap();
        Raw {
            stream,
            hello,
            buffer: Vec::new(),
        }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Answers the call of this frame.
    pub async fn reply(&mut self, call: &Header, body: &[u8]) {
        let reply = Header::new(Kind::Reply, call.call_id);
        self.send(&frame_bytes(&reply, body, &[])).await;
    }

    /// The next frame, its payload skipped; `None` if the other side closes or resets.
    pub async fn receive(&mut self) -> Option<(Header, Vec<u8>)> {
        loop {
            if let DecodeOutcome::Head(head) =
                frame::decode(&self.buffer, &Limits::default()).unwrap()
            {
                let end = head.head_bytes + head.payload_bytes as usize;
                if self.buffer.len() >= end {
                    let found = (head.header, head.body.to_vec());
                    self.buffer.drain(..end);
                    return Some(found);
                }
            }
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}
