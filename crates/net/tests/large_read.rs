//! A large value over a slow link is fetched once: a client that still receives is not impatient.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use areo_core::config::{Configuration, Dap, Decider, Descriptor, Options, ServerId};
use areo_core::dsm::Client;
use areo_core::element::{Element, Form, ReplyElement};
use areo_core::message::{
    Access, Answer, Body, HeldVersions, Labels, Levels, Program, Reply, Request, ServerRecord,
};
use areo_core::object::{DomainId, Name};
use areo_core::tag::{Tag, Writer};
use areo_net::listener::{Identity, Service};
use areo_net::network::Network;
use areo_net::{Incoming, Listener, ListenerConfig, Origin, Pool, Responder, Role, Segment};
use areo_wire::codec;
use bytes::Bytes;
use tokio::task::{LocalSet, spawn_local};

const SERVER: ServerId = ServerId(7);
const CLUSTER: u128 = 1;
const VALUE_BYTES: usize = 24 << 20;
/// Many times longer for the whole value than any patience.
const PAUSE_PER_MIB: Duration = Duration::from_millis(80);

fn tag() -> Tag {
    Tag::first(Writer {
        counter: 1,
        ..Writer::default()
    })
}

/// A server with one large object, that counts how often it is asked for it.
struct Holder {
    fetches: Rc<Cell<usize>>,
}

impl Service for Holder {
    fn identity(&self) -> Identity {
        Identity {
            cluster: CLUSTER,
            server: SERVER.0,
            incarnation: 1,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        let body = Bytes::copy_from_slice(request.body);
        let request = codec::decode_request(&body, Vec::new()).expect("it comes from the client");
        let Request::Configured {
            body: Body::Access(accesses),
            ..
        } = request
        else {
            panic!("only the object is asked for");
        };
        let answer = match &accesses[0].1 {
            Access::Query { .. } => Answer::Held(HeldVersions {
                stored: vec![(tag(), Form::Copy)],
                ..HeldVersions::default()
            }),
            Access::Fetch { .. } => {
                self.fetches.set(self.fetches.get() + 1);
                Answer::Fetched(ReplyElement::Whole(Element {
                    form: Form::Copy,
                    deleted: false,
                    length: VALUE_BYTES as u64,
                    metadata: Bytes::new(),
                    payload: vec![7; VALUE_BYTES].into(),
                    checksum: None,
                }))
            }
            _ => {
                panic!("the version is at the only server")
            }
        };
        let encoded = codec::encode_reply(&Reply::Access(vec![answer]));
        let segment = |(bytes, crc32c): (Bytes, u32)| Segment { bytes, crc32c };
        let payload: Vec<Segment> = encoded.payload.into_iter().map(segment).collect();
        responder.reply(&encoded.body, &payload);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Passes bytes on, those to the client slowly. Ends with its connections.
fn slow_link(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(server).expect("the server listens");
            let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
            let (to_server, from_client) = (clone(&server), clone(&client));
            std::thread::spawn(move || pass_on(from_client, to_server, Duration::ZERO));
            std::thread::spawn(move || pass_on(server, client, PAUSE_PER_MIB));
        }
    });
    address
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, pause_per_mib: Duration) {
    let mut buffer = vec![0; 128 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..bytes]).is_err() {
            return;
        }
        std::thread::sleep(pause_per_mib.mul_f64(bytes as f64 / f64::from(1 << 20)));
    }
}

#[test]
fn a_large_value_over_a_slow_link_is_fetched_once() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let fetches = Rc::new(Cell::new(0));
        let service = Rc::new(Holder {
            fetches: Rc::clone(&fetches),
        });
        let config = ListenerConfig::new(Pool::new(64 << 20));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(any, config, service)
            .await
            .expect("a free port");
        let address = slow_link(listener.local_addr().expect("it is bound"));
        spawn_local(async move { listener.run().await });
        let c = Configuration::new(Descriptor {
            domain: DomainId(1),
            partition: 0,
            index: 0,
            members: vec![SERVER],
            dap: Dap::Abd,
            delta: 1,
            copy_bytes: 0,
            options: Options::default(),
            decided_by: Decider::Members,
            lattice: None,
            era: 0,
            fixed: false,
        })
        .expect("one server is a configuration");
        let network = Network::new(Role::Client, 1);
        let record = ServerRecord {
            id: SERVER,
            incarnation: 1,
            start: 1,
            resumed: false,
            name: "s1".into(),
            address: address.to_string(),
            admin: String::new(),
            generation: None,
            leaving: 0,
            position: None,
            program: Program::default(),
            levels: Levels::default(),
            labels: Labels::default(),
        };
        network.learn(CLUSTER, [record]);
        let client = Client::new(network.env(Duration::from_mins(1)));
        let name = Name::user("large").expect("a key");
        let found = client.domain(&c).read(&name, None).await.expect("it comes");
        assert_eq!(found.length, VALUE_BYTES as u64);
        assert_eq!(fetches.get(), 1);
    });
}
