//! Servers that judge callers over encrypted connections, with what they ask each other for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::element::{Element, Form, Value};
use areo_core::gather::survey;
use areo_core::manager::{Creation, Registration};
use areo_core::message::{Access, Answer, Body, Enrolment, PeerView, Reply, Request, ServerRecord};
use areo_core::object::Name;
use areo_core::pointer::{Pointer, Successors};
use areo_core::starts::Starts;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_net::env::NetEnv;
use areo_net::network::Network;
use areo_net::{Bearer, Listener, ListenerConfig, Pool, Role, Tls, pool};
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::grant::Grants;
use areo_trust::id::KeyId;
use areo_trust::roots::Roots;
use areo_trust::ticket::{Holder, Signer, Ticket, Verifier};
use areo_trust::tls::{Credentials, DefaultTimeProvider, Endpoint};
use areo_wire::hello::Channel;
use tokio::task::{LocalSet, spawn_local};

mod names;
mod readers;

use super::need::tests::{PHOTOS, ROOT, configuration};
use super::*;
use crate::caller::Caller;
use crate::identity;
use crate::metrics::Metrics;
use crate::registration::{Registrar, Seeds};
use crate::worker;

const CLUSTER: u128 = 0xc1;
const ATTEMPT: Duration = Duration::from_secs(10);

/// The identity that a server shows to its callers.
fn wire(id: ServerId) -> Identity {
    Identity {
        cluster: CLUSTER,
        server: id.0,
        incarnation: 1,
    }
}

fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    since.expect("after 1970").as_secs()
}

struct Server {
    id: ServerId,
    address: SocketAddr,
    worker: Rc<Worker>,
}

/// A cluster of three servers, the last of which may be down.
struct Cluster {
    authority: Authority,
    signer: Signer,
    servers: Vec<Server>,
}

impl Cluster {
    async fn start(serving: u128) -> Cluster {
        let mut cluster = Cluster {
            authority: Authority::create(CLUSTER, now()).expect("a CA"),
            signer: Signer::create().expect("a signer"),
            servers: Vec::new(),
        };
        let mut networks = Vec::new();
        for id in (1..=serving).map(ServerId) {
            let (server, network) = cluster.server(id).await;
            cluster.servers.push(server);
            networks.push(network);
        }
        for network in networks {
            cluster.introduce(&network);
        }
        for server in &cluster.servers {
            server.worker.serve(server.worker.standstills());
            for known in cluster.records() {
                let know = Request::Know(known);
                server.worker.request(know, Caller::nobody(), None);
            }
        }
        cluster
    }

    /// The end of a server with a certificate for this id.
    fn certified(&self, id: ServerId) -> Tls {
        let key = ServerKey::create().expect("a key");
        let certificate = self.authority.issue(id, &key.public(), now());
        let issuer = self.authority.root();
        Tls::new(Endpoint {
            credentials: Some(Credentials::new(certificate.expect("issued"), issuer, &key)),
            ..self.endpoint()
        })
    }

    async fn server(&self, id: ServerId) -> (Server, Network) {
        let root = configuration(ROOT, 0);
        let tls = self.certified(id);
        tls.verify_by(Verifier {
            cluster: CLUSTER,
            signers: vec![self.signer.public()],
            revoked: [].into(),
            least: [].into(),
        });
        let worker = worker::tests::in_memory(id, &root);
        let config = ListenerConfig {
            tls: Some(tls.clone()),
            ..ListenerConfig::new(Pool::new(pool::IDLE_BYTES))
        };
        let service = Rc::new(NodeService::new(wire(id), &worker, ROOT, None));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(address, config, service).await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        spawn_local(async move { listener.run().await });
        spawn_local(Rc::clone(&worker).upkeep());
        let network = Network::with_tls(Role::Server, id.0, Some(tls));
        worker.reach(&Cluster::identity(id, root), network.clone());
        let server = Server {
            id,
            address,
            worker,
        };
        (server, network)
    }

    fn identity(id: ServerId, root: Arc<Configuration>) -> identity::Identity {
        identity::Identity {
            cluster: CLUSTER,
            server: id,
            name: format!("s{}", id.0),
            starts: Starts::NONE,
            memory: true,
            extent: 0,
            root,
            has_trust: true,
            succession: identity::Succession::default(),
        }
    }

    /// A registrar of this server, which knows no address yet.
    fn registrar(&self, own: &identity::Identity, worker: &Rc<Worker>) -> Registrar {
        let record = ServerRecord::at_address(own.server, "127.0.0.1:1".into());
        let seeds = Seeds {
            all: Vec::new(),
            joined: Vec::new(),
        };
        let known = (Vec::new(), own.root.clone());
        let tls = self.certified(own.server);
        let shown = (0, Metrics::new().peers(), Some(tls));
        Registrar::new(own, record, seeds, known, shown, worker)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            cluster: CLUSTER,
            roots: Roots::new(self.authority.root().clone()),
            credentials: None,
            clock: Arc::new(DefaultTimeProvider),
        }
    }

    /// The servers that are up.
    fn records(&self) -> Vec<ServerRecord> {
        let record = |it: &Server| ServerRecord::at_address(it.id, it.address.to_string());
        self.servers.iter().map(record).collect()
    }

    fn introduce(&self, network: &Network) {
        // Nothing listens where a server that is down was.
        let down = |id| ServerRecord::at_address(ServerId(id), "127.0.0.1:1".into());
        let down = (self.servers.len() as u128 + 1..=3).map(down);
        network.learn(CLUSTER, self.records().into_iter().chain(down));
    }

    /// A client whose key has these grants, or without a key.
    fn client(&self, grants: Option<&[&str]>) -> Client<NetEnv> {
        let tls = Tls::new(self.endpoint());
        if let Some(texts) = grants {
            let holder = Holder::create().expect("a key");
            let parsed = texts.iter().map(|text| text.parse().expect("a grant"));
            let grants = Grants::new(parsed.collect()).expect("they are few");
            let ticket = Ticket::new(CLUSTER, KeyId(7), grants, holder.public(), now());
            let ticket = self.signer.sign(&ticket);
            let holder = Arc::new(holder);
            tls.bear(Bearer { ticket, holder });
        }
        let network = Network::with_tls(Role::Client, 0, Some(tls));
        self.introduce(&network);
        Client::new(network.env(ATTEMPT))
    }

    /// The domain `photos`, made by an administrator.
    async fn photos(&self) -> Arc<Configuration> {
        self.create(configuration(PHOTOS, 0)).await
    }

    /// The domain `photos` with this first configuration.
    async fn create(&self, photos: Arc<Configuration>) -> Arc<Configuration> {
        let admin = self.client(Some(&["admin:photos"]));
        let root = admin.root(&configuration(ROOT, 0));
        let created = root.create_domain("photos", &photos).await;
        assert_eq!(created, Ok(Creation::Created));
        photos
    }

    /// The answer of the server at this position to its own process.
    async fn ask_directly(&self, position: usize, request: Request) -> Reply {
        let worker = &self.servers[position].worker;
        let (caller, answer) = Caller::admin();
        worker.request(request, caller, None);
        worker.turn();
        answer.await.expect("it answers")
    }

    /// The answer of this server to a client; `None`: it refuses.
    async fn ask(
        &self,
        client: &Client<NetEnv>,
        position: usize,
        request: Request,
    ) -> Option<Reply> {
        let to = [self.servers[position].id].into();
        let mut replies = survey(&client.env, &to, request).await;
        replies.pop().expect("one was asked")
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

fn name() -> Name {
    Name::user("a").expect("it is short")
}

fn value(content: &'static str) -> Value {
    Value::new(Bytes::new(), Bytes::from_static(content.as_bytes()))
}

fn refused<T, E>(client: &Client<NetEnv>, outcome: &Result<T, E>, reason: &str) {
    assert!(outcome.is_err(), "it lacks {reason}");
    let sentence = client.env.unauthorised().unwrap_or_default();
    assert!(sentence.contains(reason), "{reason} in: {sentence}");
}

#[test]
fn each_key_does_what_its_grants_say_and_hears_what_it_lacks() {
    run(async {
        let cluster = Cluster::start(3).await;
        let photos = cluster.photos().await;
        let domain = |client: &Client<NetEnv>| client.domain(&photos);
        let writer = cluster.client(Some(&["write:photos"]));
        let written = domain(&writer).write(&name(), &value("x")).await;
        assert!(
            written.is_ok(),
            "{written:?}: {:?}",
            writer.env.unauthorised()
        );
        let read = domain(&writer).read(&name(), None).await;
        refused(&writer, &read, "'read:photos'");

        let reader = cluster.client(Some(&["read:ph*"]));
        let read = domain(&reader).read(&name(), None).await;
        let read = read.expect("its key may read").value.expect("it is there");
        assert_eq!(read.contiguous(), "x");
        let written = domain(&reader).write(&name(), &value("y")).await;
        refused(
            &reader,
            &written,
            "key 0000000000000007 lacks the grant 'write:photos'",
        );
        let tombstone = Value::tombstone(Bytes::new());
        let deleted = domain(&writer).write(&name(), &tombstone).await;
        refused(&writer, &deleted, "'delete:photos'");

        let other = cluster.client(Some(&["read,write:logs"]));
        let read = domain(&other).read(&name(), None).await;
        refused(&other, &read, "'read:photos'");
        let root = other.root(&configuration(ROOT, 0));
        let created = root
            .create_domain("new", &configuration(DomainId(9), 0))
            .await;
        refused(&other, &created, "'admin:new'");

        let stranger = cluster.client(None);
        let read = domain(&stranger).read(&name(), None).await;
        refused(&stranger, &read, "AREO_KEY");
        let directory = cluster.ask(&stranger, 0, Request::Directory).await;
        assert!(
            matches!(directory, Some(Reply::Directory(_))),
            "{directory:?}"
        );
        let status = cluster.ask(&stranger, 0, Request::Status).await;
        assert_eq!(status, None, "a stranger sees no more");

        let all = cluster.client(Some(&["read,write,list,delete,admin:*"]));
        let made_up = all.domain(&configuration(DomainId(77), 0));
        let written = made_up.write(&name(), &value("z")).await;
        refused(&all, &written, "no domain of this cluster");
    });
}

/// The process answers with its view, to callers with the grant `status`.
#[test]
fn a_view_names_the_servers_that_are_connected() {
    run(async {
        let cluster = Cluster::start(3).await;
        let others = cluster.servers[0].worker.network();
        let own = Client::new(others.expect("it reaches others").env(ATTEMPT));
        assert!(cluster.ask(&own, 1, Request::Directory).await.is_some());
        let operator = cluster.client(Some(&["status"]));
        let Some(Reply::View(view)) = cluster.ask(&operator, 0, Request::View).await else {
            panic!("it has a view");
        };
        let peer = PeerView {
            server: cluster.servers[1].id,
            is_connected: true,
        };
        assert!(view.peers.contains(&peer), "{view:?}");
        for caller in [cluster.client(None), cluster.client(Some(&["read:photos"]))] {
            assert_eq!(cluster.ask(&caller, 0, Request::View).await, None);
        }
    });
}

/// Places of servers are for servers: neither clients nor strangers may use them up.
#[test]
fn a_caller_has_the_place_of_a_server_once_that_is_registered() {
    run(async {
        let cluster = Cluster::start(3).await;
        let worker = &cluster.servers[0].worker;
        worker.turn();
        let service = NodeService::new(wire(ServerId(1)), worker, ROOT, None);
        let class = |role, id| service.class_of(&Hello::new(role, Channel::Calls, id));
        assert_eq!(class(Role::Server, 2), Class::Server);
        assert_eq!(class(Role::Client, 2), Class::Client);
        assert_eq!(class(Role::Server, 0x44), Class::Client, "not registered");
    });
}

/// A valid certificate for any id had the standing of a server.
#[test]
fn a_certificate_counts_once_its_server_is_registered() {
    run(async {
        let cluster = Cluster::start(3).await;
        let photos = cluster.photos().await;
        let id = ServerId(0x44);
        let network = Network::with_tls(Role::Server, id.0, Some(cluster.certified(id)));
        cluster.introduce(&network);
        let client = Client::new(network.env(ATTEMPT));
        let written = client.domain(&photos).write(&name(), &value("x")).await;
        refused(&client, &written, "not registered");
        let root = client.root(&configuration(ROOT, 0));
        let (chain, entry) = (root.chain("trust"), Bytes::from_static(b"x"));
        let appended = chain.append(None, &entry).await;
        refused(&client, &appended, "not registered");

        // It gets a name, and registers; servers that have not heard of it look.
        let record = ServerRecord::at_address(id, "127.0.0.1:1".into());
        let another = ServerRecord::at_address(ServerId(0x45), "127.0.0.1:1".into());
        assert!(root.name_server(&record, None).await.is_ok());
        let forged = root.register(Enrolment::Register, &another).await;
        refused(&client, &forged, "");
        let registered = root.register(Enrolment::Register, &record).await;
        assert_eq!(registered, Ok(Registration::Registered));
        let client = Client::new(network.env(ATTEMPT));
        let written = client.domain(&photos).write(&name(), &value("x")).await;
        assert!(
            written.is_ok(),
            "{written:?}: {:?}",
            client.env.unauthorised()
        );
        // One that is forgotten has no standing again.
        let last = record.forgotten();
        let admin = cluster.client(Some(&["reconfig"]));
        let admin = admin.root(&configuration(ROOT, 0));
        let forgotten = admin.register(Enrolment::Register, &last).await;
        assert!(forgotten.is_ok(), "{forgotten:?}");
        let written = client.domain(&photos).write(&name(), &value("y")).await;
        refused(&client, &written, "key");
    });
}

/// A server that was not a member of the root domain when another one was forgotten gave that the rights of a server until it started again.
#[test]
fn a_server_that_was_forgotten_loses_its_standing_at_servers_that_no_one_tells() {
    run(async {
        let cluster = Cluster::start(4).await;
        let other = 3;
        let worker = &cluster.servers[other].worker;
        let admin = cluster.client(Some(&["reconfig"]));
        let admin = admin.root(&configuration(ROOT, 0));
        let mut clients = Vec::new();
        for id in [ServerId(0x44), ServerId(0x45)] {
            let network = Network::with_tls(Role::Server, id.0, Some(cluster.certified(id)));
            cluster.introduce(&network);
            let client = Client::new(network.env(ATTEMPT));
            let record = ServerRecord::at_address(id, "127.0.0.1:1".into());
            let root = client.root(&configuration(ROOT, 0));
            let registered = root.register(Enrolment::Register, &record).await;
            assert_eq!(registered, Ok(Registration::Registered));
            clients.push((record, client));
        }
        let [(known, first), (unknown, second)] = &clients[..] else {
            unreachable!("there are two")
        };
        cluster
            .ask_directly(other, Request::Know(known.clone()))
            .await;
        let answer = cluster.ask(first, other, Request::Status).await;
        assert!(matches!(answer, Some(Reply::Status(_))), "{answer:?}");
        for record in [known, unknown] {
            let forgotten = admin
                .register(Enrolment::Register, &record.forgotten())
                .await;
            assert!(forgotten.is_ok(), "{forgotten:?}");
        }
        assert_eq!(worker.has_forgotten(known.id), Some(false));

        // It looks for one that it does not know, and finds out about both.
        let latest = Request::Latest {
            domain: ROOT,
            partition: 0,
            known: None,
        };
        for request in [Request::Status, latest.clone()] {
            assert_eq!(cluster.ask(second, other, request).await, None);
        }
        assert_eq!(worker.has_forgotten(unknown.id), Some(true));
        assert_eq!(cluster.ask(first, other, latest).await, None);
    });
}

/// A server looks at the directory every few seconds, for the addresses of others.
#[test]
fn a_look_for_addresses_finds_servers_that_were_forgotten() {
    run(async {
        let cluster = Cluster::start(4).await;
        let other = &cluster.servers[3];
        let gone = ServerRecord::at_address(ServerId(0x44), "127.0.0.1:1".into());
        for member in 0..3 {
            let last = Request::Know(gone.forgotten());
            cluster.ask_directly(member, last).await;
        }
        cluster.ask_directly(3, Request::Know(gone.clone())).await;
        assert_eq!(other.worker.has_forgotten(gone.id), Some(false));
        let own = Cluster::identity(other.id, configuration(ROOT, 0));
        let registrar = cluster.registrar(&own, &other.worker);
        cluster.introduce(registrar.network());
        registrar.learn_addresses(&own, &other.worker).await;
        assert_eq!(other.worker.has_forgotten(gone.id), Some(true));
    });
}

/// A server without a data directory looked for the root domain for ever at members that were gone, as did the growth of that domain at each server.
#[test]
fn what_outlives_an_operation_begins_where_the_server_knows_the_root_domain_to_be() {
    run(async {
        let cluster = Cluster::start(3).await;
        let worker = &cluster.servers[0].worker;
        let moved = configuration(ROOT, 1);
        let latest = Request::Latest {
            domain: ROOT,
            partition: 0,
            known: Some(moved.clone()),
        };
        worker.tell_itself(latest).await;
        assert_eq!(worker.root(), Some(moved.clone()));
        let own = Cluster::identity(ServerId(1), configuration(ROOT, 0));
        let registrar = cluster.registrar(&own, worker);
        let env = || registrar.network().env(ATTEMPT);
        let client = registrar.access.client(env());
        assert_eq!(client.sequences().start(&own.root), moved);
        let another = Client::new(env());
        registrar.access.begin(&another);
        assert_eq!(another.sequences().start(&own.root), moved);
    });
}

fn put(photos: &Arc<Configuration>, tag: Tag, content: &'static str, write_back: bool) -> Request {
    let element = Element {
        form: Form::Copy,
        deleted: false,
        length: content.len() as u64,
        metadata: Bytes::new(),
        payload: Bytes::from_static(content.as_bytes()),
        checksum: None,
    };
    let put = Access::Put {
        tag,
        element,
        write_back,
    };
    about(photos, Body::Access(vec![(name(), put)]))
}

fn about(c: &Arc<Configuration>, body: Body) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: Successors::default(),
        body,
    }
}

fn tag(number: u64) -> Tag {
    let writer = Writer {
        client: ClientId(5),
        counter: 1,
    };
    Tag { number, writer }
}

/// The version and the content that the server at this position holds.
async fn held(cluster: &Cluster, position: usize, photos: &Arc<Configuration>) -> (Tag, Bytes) {
    let query = Access::query(areo_core::message::Want::Element, Tag::INITIAL);
    let asked = about(photos, Body::Access(vec![(name(), query)]));
    let reply = cluster.ask_directly(position, asked).await;
    let Reply::Access(answers) = reply else {
        panic!("{reply:?}");
    };
    let Some(Answer::Held(held)) = answers.into_iter().next() else {
        panic!("a query is answered");
    };
    let Some((tag, areo_core::element::ReplyElement::Whole(element))) = held.element else {
        return (held.max_tag(), Bytes::new());
    };
    (tag, element.payload)
}

#[test]
fn a_key_that_only_reads_completes_a_version_and_writes_nothing() {
    run(async {
        // A quorum is the first two: one has what a writer left that died, and the other one does not.
        let cluster = Cluster::start(2).await;
        let photos = cluster.photos().await;
        cluster
            .ask_directly(0, put(&photos, tag(1), "x", false))
            .await;
        let none = held(&cluster, 1, &photos).await;
        assert_eq!(none.0, Tag::INITIAL);

        let reader = cluster.client(Some(&["read:photos"]));
        let forged = put(&photos, tag(2), "forged", true);
        assert_eq!(cluster.ask(&reader, 1, forged).await, None, "of no version");
        let new = put(&photos, tag(2), "forged", false);
        assert_eq!(cluster.ask(&reader, 1, new).await, None);
        let forged = put(&photos, tag(1), "forged", true);
        let answered = cluster.ask(&reader, 1, forged).await;
        assert_eq!(answered, Some(Reply::Access(vec![Answer::Stored])));
        let expected = (tag(1), Bytes::from_static(b"x"));
        assert_eq!(held(&cluster, 1, &photos).await, expected, "of the writer");

        cluster
            .ask_directly(0, put(&photos, tag(3), "y", false))
            .await;
        let read = reader.domain(&photos).read(&name(), None).await;
        let read = read.expect("a quorum serves");
        assert_eq!(read.tag, tag(3), "{:?}", reader.env.unauthorised());
        let expected = (tag(3), Bytes::from_static(b"y"));
        assert_eq!(held(&cluster, 1, &photos).await, expected);
    });
}

#[test]
fn what_a_reader_passes_on_counts_where_a_server_says_it() {
    run(async {
        let cluster = Cluster::start(3).await;
        let photos = cluster.photos().await;
        let read_config = || about(&photos, Body::ReadConfig);
        for position in 0..3 {
            let none = cluster.ask_directly(position, read_config()).await;
            assert_eq!(none, Reply::Config);
        }
        let next = Successors::from(&Pointer::pending(&configuration(PHOTOS, 1)));
        let pointing = || Request::Configured {
            configuration: photos.id(),
            descriptor: None,
            successors: next.clone(),
            body: Body::ReadConfig,
        };
        let reader = cluster.client(Some(&["read,write:photos"]));
        assert_eq!(cluster.ask(&reader, 0, pointing()).await, None, "made up");
        let answer = cluster.ask_directly(0, read_config()).await;
        assert_eq!(answer, Reply::Config, "nothing was taken in");

        let answer = cluster.ask_directly(1, pointing()).await;
        let (known, _) = answer.open();
        assert_eq!(known, next);
        let answer = cluster.ask(&reader, 0, pointing()).await;
        let (known, _) = answer.expect("a server says it").open();
        assert_eq!(known, next);

        // A configuration that no server and no directory has.
        let made_up = about(&configuration(PHOTOS, 3), Body::ReadConfig);
        assert_eq!(cluster.ask(&reader, 2, made_up).await, None);
        // A change that is decided is described by the pointer to it.
        let decided = about(&configuration(PHOTOS, 1), Body::ReadConfig);
        let answer = cluster.ask(&reader, 0, decided).await;
        assert_eq!(answer, Some(Reply::Config));
    });
}
