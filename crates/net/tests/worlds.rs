//! The worlds of operations: unknown servers, operations without a deadline, and what is counted.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use areo_core::config::{Members, ServerId};
use areo_core::env::Env;
use areo_core::error::{Response, Unavailable};
use areo_core::gather::{Fold, Servers};
use areo_core::message::{Labels, Levels, Program, Reply, Request, ServerRecord};
use areo_net::env::NetEnv;
use areo_net::listener::{Identity, Service};
use areo_net::network::Network;
use areo_net::{Incoming, Listener, ListenerConfig, Origin, Pool, Responder, Role};
use areo_wire::codec;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

const SERVER: ServerId = ServerId(7);
const CLUSTER: u128 = 1;
const PATIENCE: Duration = Duration::from_secs(2);
/// A delay well below the patience; several of them exceed it.
const DELAY: Duration = Duration::from_millis(100);
const CALLS: u64 = 30;

/// A server that takes its time, or says nothing.
struct Slow {
    answers: bool,
}

impl Service for Slow {
    fn identity(&self) -> Identity {
        Identity {
            cluster: CLUSTER,
            server: SERVER.0,
            incarnation: 1,
        }
    }

    fn on_request(&self, _request: Incoming<'_>, responder: Responder) {
        let answers = self.answers;
        spawn_local(async move {
            sleep(DELAY).await;
            if answers {
                let reply = Reply::Status(Box::default());
                responder.reply(&codec::encode_reply(&reply).body, &[]);
            } else {
                std::future::pending::<()>().await;
            }
        });
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Starts such a server, and returns its record.
async fn serve(answers: bool) -> ServerRecord {
    let config = ListenerConfig::new(Pool::new(1 << 20));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = Listener::bind(any, config, Rc::new(Slow { answers })).await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    spawn_local(async move { listener.run().await });
    ServerRecord {
        id: SERVER,
        incarnation: 1,
        start: 1,
        resumed: false,
        name: "s1".into(),
        address,
        admin: String::new(),
        generation: None,
        leaving: 0,
        position: None,
        program: Program::default(),
        levels: Levels::default(),
        labels: Labels::default(),
    }
}

async fn ask(env: &NetEnv) -> Result<(), Unavailable> {
    let members: Members = vec![SERVER].into();
    let fold = |(): &mut (), _from: usize, _reply: Reply| Fold::Count;
    let tally = Servers::new(1, 1, Request::Status, (), fold);
    env.gather(&members, tally).await
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), test);
}

#[test]
fn what_is_asked_of_a_stranger_waits_until_somebody_says_where_it_is() {
    local(async {
        let network = Network::new(Role::Client, 1);
        network.learn(CLUSTER, []);
        let env = network.env(Duration::from_mins(1));
        let introduce = async {
            network.stranger_asked().await;
            assert_eq!(network.strangers_wanted(), [SERVER].into());
            assert!(network.server_state(SERVER).is_none(), "nobody said where");
            network.learn(CLUSTER, [serve(true).await]);
        };
        let (asked, ()) = tokio::join!(ask(&env), introduce);
        assert_eq!(asked, Ok(()));
        assert!(network.strangers_wanted().is_empty());
        assert!(network.server_state(SERVER).is_some());
    });
}

#[test]
fn a_stranger_that_nobody_knows_is_unreachable_and_was_sent_nothing() {
    local(async {
        let network = Network::new(Role::Client, 1);
        network.learn(CLUSTER, []);
        let failed = ask(&network.env(Duration::from_millis(200))).await;
        let failed = failed.expect_err("nobody says where it is");
        assert_eq!(failed.servers, [(SERVER, Response::Unreachable)]);
        assert!(!failed.handed_over);
    });
}

#[test]
fn an_operation_without_a_deadline_goes_on_as_long_as_it_gets_on() {
    local(async {
        let network = Network::new(Role::Client, 1);
        network.learn(CLUSTER, [serve(true).await]);
        let env = network.patient_env(PATIENCE);
        for call in 0..CALLS {
            assert_eq!(ask(&env).await, Ok(()), "call {call}");
        }
        let counts = env.counts();
        assert_eq!((counts.rounds, counts.configurations), (CALLS, 0));
        let request = codec::encode_request(&Request::Status).body.len() as u64;
        let reply = codec::encode_reply(&Reply::Status(Box::default()));
        let reply = reply.body.len() as u64;
        assert_eq!(counts.sent_bytes, CALLS * request);
        assert_eq!(counts.received_bytes, CALLS * reply);
        assert_eq!(network.env(PATIENCE).counts().rounds, 0, "each has its own");
    });
}

#[test]
fn an_operation_without_a_deadline_ends_when_nothing_happens() {
    local(async {
        let network = Network::new(Role::Client, 1);
        network.learn(CLUSTER, [serve(false).await]);
        let env = network.patient_env(Duration::from_millis(300));
        let failed = ask(&env).await.expect_err("nobody answers");
        assert_eq!(failed.servers, [(SERVER, Response::Silent)]);
        assert!(failed.handed_over);
    });
}

#[test]
fn a_server_that_has_not_answered_owes_until_it_has() {
    local(async {
        for answers in [false, true] {
            let network = Network::new(Role::Client, 1);
            network.learn(CLUSTER, [serve(answers).await]);
            assert_eq!(network.owing(Duration::ZERO), [], "nothing was asked");
            let env = network.env(2 * DELAY);
            let look = async {
                while network.owing(Duration::ZERO).is_empty() {
                    sleep(DELAY / 10).await;
                }
                assert_eq!(network.owing(Duration::ZERO), [SERVER]);
                assert_eq!(network.owing(Duration::from_hours(1)), []);
            };
            let (asked, ()) = tokio::join!(ask(&env), look);
            assert_eq!(asked.is_ok(), answers);
            assert_eq!(network.owing(Duration::ZERO), [], "the call is over");
        }
    });
}

/// Another server may be at its address by then. What is said of it later was true before.
#[test]
fn a_forgotten_server_is_not_called_any_more() {
    local(async {
        let network = Network::new(Role::Client, 1);
        let server = serve(true).await;
        network.learn(CLUSTER, [server.clone()]);
        let env = network.env(Duration::from_mins(1));
        assert_eq!(ask(&env).await, Ok(()));
        network.learn(CLUSTER, [server.forgotten()]);
        assert!(network.server_state(SERVER).is_none());
        network.learn(CLUSTER, [server]);
        assert!(network.server_state(SERVER).is_none());
        let last = network.env(Duration::from_millis(100));
        assert!(ask(&last).await.is_err());
        assert!(
            network.strangers_wanted().is_empty(),
            "it is not looked for"
        );
    });
}
