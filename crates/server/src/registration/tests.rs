use super::*;
use crate::identity::root_configuration;
use crate::metrics::Metrics;
use crate::worker;
use areo_core::config::{Dap, Descriptor};
use areo_core::message::{Directory, Levels, Program, Reply, ServerStatus};
use areo_core::object::DomainId;
use areo_net::listener::{self, Listener, ListenerConfig, Service};
use areo_net::pool::Pool;
use areo_net::{Incoming, Origin, Responder};
use areo_wire::codec;
use bytes::Bytes;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

const CLUSTER: u128 = 7;
const START: Starts = Starts {
    incarnation: 2,
    unconfirmed: Some(1),
};

/// A server that has moved: it tells where the others were before, and registers every server.
struct MovedServer {
    server: ServerId,
    directory: Directory,
}

impl Service for MovedServer {
    fn identity(&self) -> listener::Identity {
        listener::Identity {
            cluster: CLUSTER,
            server: self.server.0,
            incarnation: START.incarnation,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        let body = Bytes::copy_from_slice(request.body);
        let request = codec::decode_request(&body, Vec::new()).unwrap();
        let reply = match request {
            Request::Directory => Reply::Directory(self.directory.clone()),
            Request::Configured { .. } => Reply::Registered,
            Request::Status => Reply::Status(Box::new(ServerStatus {
                serving: true,
                ..ServerStatus::default()
            })),
            other => unreachable!("nobody asks for {other:?}"),
        };
        responder.reply(&codec::encode_reply(&reply).body, &[]);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Serves as these servers, and returns their addresses.
async fn serve(ids: &[ServerId], directory: &Directory) -> Vec<String> {
    let mut addresses = Vec::new();
    for server in ids {
        let (server, directory) = (*server, directory.clone());
        let service = MovedServer { server, directory };
        let config = ListenerConfig::new(Pool::new(0));
        let anywhere = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(anywhere, config, Rc::new(service))
            .await
            .unwrap();
        addresses.push(listener.local_addr().unwrap().to_string());
        spawn_local(async move { listener.run().await });
    }
    addresses
}

/// The question to a root domain without a quorum takes all of its time: none was left for the members of the domains that are known, and each
/// of them counted as away.
#[test]
fn a_domain_is_seen_to_serve_while_the_root_domain_is_away() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let members: Vec<ServerId> = (2..=4).map(ServerId).collect();
        let root = root_configuration(&[ServerId(1)], false);
        let directory = Directory {
            root: root.clone(),
            servers: Vec::new(),
        };
        let addresses = serve(&members, &directory).await;
        let served = members.iter().zip(addresses);
        let served = served.map(|(id, address)| ServerRecord::at_address(*id, address));
        // No process listens there.
        let away = ServerRecord::at_address(ServerId(1), "127.0.0.1:1".into());
        let network = Network::with_tls(Role::Server, 9, None);
        network.learn(CLUSTER, served.chain([away]));
        let env = || network.env(Duration::from_millis(400));
        let c = Descriptor::new(DomainId(7), members, Dap::Abd);
        let c = Configuration::new(c).unwrap();
        let mut known = vec![("d".to_owned(), c)];
        let seen = cluster::look(&Client::new(env()), env, &root, &mut known).await;
        let seen = seen.domains.iter();
        let seen: Vec<_> = seen.map(|it| (it.domain.as_str(), it.serving)).collect();
        assert_eq!(seen, [(cluster::ROOT, 0), ("d", 3)]);
    });
}

/// Each server that answers tells of the others what it knew before all of them moved. Where one has answered itself counts
/// more, also if it did so before; or a server that starts looks for a quorum at old addresses.
#[test]
fn where_a_server_answered_counts_more_than_what_others_say() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ids: Vec<ServerId> = (1..=3).map(ServerId).collect();
        let root = root_configuration(&ids, false);
        // No process listens there.
        let before = ids
            .iter()
            .map(|id| ServerRecord::at_address(*id, "127.0.0.1:1".into()));
        let known: Vec<ServerRecord> = before.collect();
        let directory = Directory {
            root: root.clone(),
            servers: known.clone(),
        };
        let seeds = serve(&ids, &directory).await;
        let identity = Identity {
            cluster: CLUSTER,
            server: ServerId(9),
            name: "s9".into(),
            starts: START,
            memory: false,
            extent: 0,
            root: root.clone(),
            has_trust: false,
            succession: crate::identity::Succession::default(),
        };
        let record = ServerRecord::at_address(identity.server, "127.0.0.1:2".into());
        let peers = Metrics::new().peers();
        let seeds = Seeds {
            all: seeds,
            joined: Vec::new(),
        };
        let worker = worker::tests::in_memory(identity.server, &root);
        let shown = (0, peers, None);
        let registrar = Registrar::new(&identity, record, seeds, (known, root), shown, &worker);
        let started = registrar.start(&identity, false, |_| Ok(()));
        let started = timeout(ATTEMPT, started).await.expect("all are there");
        assert!(matches!(started.unwrap(), StartOutcome::Confirmed(_)));
    });
}

#[test]
fn a_directory_that_knows_of_a_higher_level_is_refused_before_any_server_is_asked() {
    let program = |level| Program {
        version: "0.1.0".into(),
        level,
    };
    let record = ServerRecord {
        levels: Levels {
            required: 2,
            finalized: 1,
        },
        ..ServerRecord::at_address(ServerId(1), "host:1".into())
    };
    let known = [
        record,
        ServerRecord::at_address(ServerId(2), "host:2".into()),
    ];
    for (level, is_refused) in [(0, true), (1, true), (2, false), (3, false)] {
        let checked = place::check_program(&known, &program(level));
        assert_eq!(checked.is_err(), is_refused, "{level}");
    }
    assert!(place::check_program(&[], &program(0)).is_ok());
}
