//! Tickets in hellos: each way in which one does not count, and what a revocation does to open connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::*;
use areo_core::config::ServerId;
use areo_net::network::{BootstrapError, Network};
use areo_net::{Bearer, Peer, PeerConfig, Status, Tls};
use areo_trust::SKEW_SECONDS;
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::grant::Grants;
use areo_trust::id::KeyId;
use areo_trust::roots::Roots;
use areo_trust::ticket::{Holder, Signer, TICKET_SECONDS, Ticket, Verifier};
use areo_trust::tls::{Credentials, DefaultTimeProvider, Endpoint};
use areo_wire::frame::Refusal;
use areo_wire::hello::Role;
use bytes::Bytes;

const KEY: KeyId = KeyId(7);

fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    since.expect("after 1970").as_secs()
}

/// A cluster's CA with its signer of tickets.
struct Cluster {
    authority: Authority,
    signer: Signer,
}

impl Cluster {
    fn new() -> Cluster {
        Cluster {
            authority: Authority::create(IDENTITY.cluster, now()).expect("a CA"),
            signer: Signer::create().expect("a signer"),
        }
    }

    fn verifier(&self) -> Verifier {
        Verifier {
            cluster: IDENTITY.cluster,
            signers: vec![self.signer.public()],
            revoked: [].into(),
            least: [].into(),
        }
    }

    fn server(&self, id: u128) -> Tls {
        let key = ServerKey::create().expect("a key");
        let certificate = self.authority.issue(ServerId(id), &key.public(), now());
        let root = self.authority.root();
        Tls::new(Endpoint {
            credentials: Some(Credentials::new(certificate.expect("issued"), root, &key)),
            ..self.client()
        })
    }

    fn client(&self) -> Endpoint {
        Endpoint {
            cluster: IDENTITY.cluster,
            roots: Roots::new(self.authority.root().clone()),
            credentials: None,
            clock: Arc::new(DefaultTimeProvider),
        }
    }

    fn ticket(&self, holder: &Holder, issued_seconds: u64) -> Bytes {
        let grants = Grants::of_administrator();
        let cluster = IDENTITY.cluster;
        let ticket = Ticket::new(cluster, KEY, grants, holder.public(), issued_seconds);
        self.signer.sign(&ticket)
    }

    fn bearer(&self, issued_seconds: u64) -> Bearer {
        let holder = Holder::create().expect("a key");
        Bearer {
            ticket: self.ticket(&holder, issued_seconds),
            holder: Arc::new(holder),
        }
    }
}

/// A server that judges tickets of this cluster.
async fn serve(cluster: &Cluster) -> (TestServer, Tls) {
    let tls = cluster.server(IDENTITY.server);
    tls.verify_by(cluster.verifier());
    let own = tls.clone();
    let service = TestService::new(Manner::Echo);
    let server = TestServer::start_at(loopback(0), service, |config| config.tls = Some(tls));
    (server.await, own)
}

fn caller(address: SocketAddr, cluster: &Cluster, bearer: Option<Bearer>) -> Peer {
    let tls = Tls::new(cluster.client());
    if let Some(bearer) = bearer {
        tls.bear(bearer);
    }
    Peer::new(PeerConfig {
        tls: Some(tls),
        ..peer_config(address)
    })
}

async fn is_served(peer: &Peer) {
    let record = Record::new();
    peer.call(message("x"), record.clone(), 1)
        .expect("it is taken");
    record.reply(1).await;
}

async fn refusal(peer: &Peer) -> (Status, String) {
    peer.connect();
    until("the attempt failed", || peer.state().last_error.is_some()).await;
    let state = peer.state();
    (state.status, state.last_error.expect("it failed"))
}

#[test]
fn a_ticket_that_counts_is_taken_and_the_caller_known_by_it() {
    local(async {
        let cluster = Cluster::new();
        let (server, _) = serve(&cluster).await;
        let bearer = cluster.bearer(now());
        is_served(&caller(server.address, &cluster, Some(bearer))).await;
        let callers = server.service.callers.borrow();
        assert_eq!(callers.last().expect("it asked").as_deref(), Some("key 7"));
    });
}

#[test]
fn a_ticket_that_does_not_count_is_refused_with_its_sentence() {
    local(async {
        let (cluster, foreign) = (Cluster::new(), Cluster::new());
        let (server, _) = serve(&cluster).await;
        let good = cluster.bearer(now());
        let changed = |at: usize| {
            let mut ticket = good.ticket.to_vec();
            ticket[at] ^= 1;
            Bearer {
                ticket: ticket.into(),
                ..good.clone()
            }
        };
        let stolen = Bearer {
            ticket: good.ticket.clone(),
            ..cluster.bearer(now())
        };
        let long_ago = now() - TICKET_SECONDS - SKEW_SECONDS - 60;
        for (bearer, sentence) in [
            (foreign.bearer(now()), "was not signed by this cluster"),
            (changed(3), "was not signed by this cluster"),
            (
                changed(good.ticket.len() - 3),
                "was not signed by this cluster",
            ),
            (stolen, "does not hold the ticket"),
            (cluster.bearer(long_ago), "expired"),
            (cluster.bearer(now() + SKEW_SECONDS + 600), "ahead of"),
            (
                Bearer {
                    ticket: Bytes::from_static(b"short"),
                    ..good.clone()
                },
                "this is no ticket",
            ),
        ] {
            let peer = caller(server.address, &cluster, Some(bearer));
            let (status, found) = refusal(&peer).await;
            assert_eq!(status, Status::Refused(Refusal::Unauthorised));
            assert!(found.contains(sentence), "{sentence}: {found}");
        }
        assert_eq!(server.service.requests.get(), 0);
    });
}

/// The server is asked before it has read anything of the log of trust.
#[test]
fn a_server_that_cannot_judge_yet_says_that_it_is_starting() {
    local(async {
        let cluster = Cluster::new();
        let tls = cluster.server(IDENTITY.server);
        let own = tls.clone();
        let service = TestService::new(Manner::Echo);
        let server = TestServer::start_at(loopback(0), service, |config| config.tls = Some(tls));
        let server = server.await;
        let peer = caller(server.address, &cluster, Some(cluster.bearer(now())));
        let (status, _) = refusal(&peer).await;
        assert_eq!(status, Status::Refused(Refusal::Starting));
        own.verify_by(cluster.verifier());
        until("it is let in", || peer.state().status == Status::Connected).await;
    });
}

#[test]
fn a_revoked_key_loses_its_open_connections_and_gets_no_others() {
    local(async {
        let cluster = Cluster::new();
        let (server, own) = serve(&cluster).await;
        let peer = caller(server.address, &cluster, Some(cluster.bearer(now())));
        is_served(&peer).await;
        own.verify_by(Verifier {
            revoked: [KEY].into(),
            ..cluster.verifier()
        });
        let refused = Status::Refused(Refusal::Unauthorised);
        until("it is out", || peer.state().status == refused).await;
        let found = peer.state().last_error.unwrap_or_default();
        assert!(found.contains("was revoked"), "{found}");
        assert_eq!(server.listener.counts().distrusted, 1);
    });
}

/// Calls that are under way when a ticket ends go out again with the next one.
#[test]
fn a_ticket_that_was_renewed_meanwhile_loses_no_call() {
    local(async {
        let cluster = Cluster::new();
        let (server, own) = serve(&cluster).await;
        let tls = Tls::new(cluster.client());
        tls.bear(cluster.bearer(now()));
        let peer = Peer::new(PeerConfig {
            tls: Some(tls.clone()),
            ..peer_config(server.address)
        });
        is_served(&peer).await;
        server.service.manner.set(Manner::Hold);
        let record = Record::new();
        peer.call(message("x"), record.clone(), 1).unwrap();
        until("it is under way", || server.service.requests.get() == 2).await;
        // The signer was changed, and this process has proven its key again.
        let next = Cluster {
            signer: Signer::create().expect("a signer"),
            authority: Cluster::new().authority,
        };
        tls.bear(next.bearer(now()));
        let retired = Verifier {
            signers: vec![next.signer.public()],
            revoked: [KEY].into(),
            ..cluster.verifier()
        };
        own.verify_by(retired.clone());
        until("it is out", || {
            peer.connections_made() == 1 && server.listener.counts().distrusted == 1
        })
        .await;
        server.service.manner.set(Manner::Echo);
        own.verify_by(Verifier {
            revoked: [].into(),
            ..retired
        });
        record.reply(1).await;
    });
}

/// A call that meets a ticket which counts no longer waits for the next one, if the process renews it; otherwise it is refused.
#[test]
fn a_call_waits_for_the_next_ticket_where_there_will_be_one() {
    local(async {
        let (cluster, foreign) = (Cluster::new(), Cluster::new());
        let (server, _) = serve(&cluster).await;
        for renews in [true, false] {
            let tls = Tls::new(cluster.client());
            tls.bear(foreign.bearer(now()));
            if renews {
                tls.renew_tickets();
            }
            let peer = Peer::new(PeerConfig {
                tls: Some(tls.clone()),
                ..peer_config(server.address)
            });
            let record = Record::new();
            peer.call(message("x"), record.clone(), 1).unwrap();
            until("it is not let in", || peer.state().last_error.is_some()).await;
            let refused = Status::Refused(Refusal::Unauthorised);
            assert_eq!(peer.state().status == refused, !renews);
            if renews {
                tls.ticket_wanted().await;
                tls.bear(cluster.bearer(now()));
                peer.connect();
                record.reply(1).await;
            }
        }
    });
}

/// A client that says that it is a server is refused, with any ticket.
/// A request with a connection of its own is not refused where there will be another ticket: its caller asks again.
#[test]
fn a_request_of_its_own_finds_a_server_out_of_reach_until_there_is_another_ticket() {
    local(async {
        let cluster = Cluster::new();
        let (server, _) = serve(&cluster).await;
        let address = server.address.to_string();
        let tls = Tls::new(cluster.client());
        tls.bear(cluster.bearer(now() - TICKET_SECONDS - SKEW_SECONDS - 60));
        let network = Network::with_tls(Role::Client, 9, Some(tls.clone()));
        let ask = async || {
            let patience = Duration::from_secs(10);
            let asked = network.ask(&*address, patience, |_| Bytes::from_static(b"x"));
            asked.await.map(|response| response.body)
        };
        let refused = ask().await.expect_err("the ticket has ended");
        let refusal = Refusal::Unauthorised;
        assert_eq!(refused.cause, BootstrapError::Refused { refusal });
        tls.renew_tickets();
        let refused = ask().await.expect_err("the ticket has ended");
        assert!(
            matches!(refused.cause, BootstrapError::Unreachable { .. }),
            "{refused:?}"
        );
        assert!(!refused.is_sent);
        tls.ticket_wanted().await;
        tls.bear(cluster.bearer(now()));
        ask().await.expect("another ticket");
    });
}

#[test]
fn no_ticket_makes_a_client_a_server() {
    local(async {
        let cluster = Cluster::new();
        let (server, _) = serve(&cluster).await;
        let tls = Tls::new(cluster.client());
        tls.bear(cluster.bearer(now()));
        let peer = Peer::new(PeerConfig {
            role: Role::Server,
            tls: Some(tls),
            ..peer_config(server.address)
        });
        let (status, _) = refusal(&peer).await;
        assert_eq!(status, Status::Refused(Refusal::Unauthorised));
    });
}
