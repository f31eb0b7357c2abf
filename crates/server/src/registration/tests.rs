use super::*;
use crate::identity::root_configuration;
use crate::metrics::Metrics;
use areo_core::message::{Directory, Reply};
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
            other => unreachable!("nobody asks for {other:?}"),
        };
        responder.reply(&codec::encode_reply(&reply).body, &[]);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
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
        let mut seeds = Vec::new();
        for server in &ids {
            let service = MovedServer {
                server: *server,
                directory: Directory {
                    root: root.clone(),
                    servers: known.clone(),
                },
            };
            let config = ListenerConfig::new(Pool::new(0));
            let anywhere = "127.0.0.1:0".parse().unwrap();
            let listener = Listener::bind(anywhere, config, Rc::new(service))
                .await
                .unwrap();
            seeds.push(listener.local_addr().unwrap().to_string());
            spawn_local(async move { listener.run().await });
        }
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
        let registrar = Registrar::new(&identity, record, seeds, (known, root), (0, peers, None));
        let started = registrar.start(&identity, false, |_| Ok(()));
        let started = timeout(ATTEMPT, started).await.expect("all are there");
        assert!(matches!(started.unwrap(), StartOutcome::Confirmed(_)));
    });
}
