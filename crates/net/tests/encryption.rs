//! Connections over TLS, and each way in which none comes about.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::*;
use areo_core::config::ServerId;
use areo_net::connection::{ConnectionConfig, Handler, drive};
use areo_net::handshake::{HandshakeError, greet};
use areo_net::network::Network;
use areo_net::presence::{Presence, presence};
use areo_net::{
    Allowance, CloseReason, Connection, Incoming, Peer, PeerConfig, Pool, Rate, Status, Tls,
};
use areo_trust::authority::{Authority, CERTIFICATE_SECONDS, ServerKey};
use areo_trust::roots::Roots;
use areo_trust::tls::{Credentials, DefaultTimeProvider, Endpoint};
use areo_wire::frame::{Header, Kind, Limits, Refusal};
use areo_wire::hello::{Channel, Hello, Role};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(100);
/// A server that is not the one that is called.
const ANOTHER: u128 = 0x52;

/// Seconds since 1970 by the clock of the machine, which certificates are judged by.
fn now() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.expect("after 1970").as_secs()
}

fn authority() -> Authority {
    Authority::create(IDENTITY.cluster, now()).expect("a CA")
}

/// The TLS of the server with this id, whose certificate was issued at that time.
fn server(authority: &Authority, id: u128, issued_seconds: u64) -> Endpoint {
    let key = ServerKey::create().expect("a key");
    let certificate = authority.issue(ServerId(id), &key.public(), issued_seconds);
    let credentials = Credentials::new(certificate.expect("issued"), authority.root(), &key);
    Endpoint {
        credentials: Some(credentials),
        ..client(authority)
    }
}

fn client(authority: &Authority) -> Endpoint {
    Endpoint {
        cluster: IDENTITY.cluster,
        roots: Roots::new(authority.root().clone()),
        credentials: None,
        clock: Arc::new(DefaultTimeProvider),
    }
}

/// A server with a certificate that gives a caller this time for its hello.
async fn serve_impatiently(authority: &Authority, hello_timeout: Duration) -> TestServer {
    let tls = Tls::new(server(authority, IDENTITY.server, now()));
    let service = TestService::new(Manner::Echo);
    TestServer::start_at(loopback(0), service, |config| {
        config.tls = Some(tls);
        config.hello_timeout = hello_timeout;
    })
    .await
}

async fn serve(manner: Manner, tls: Option<Tls>) -> TestServer {
    let service = TestService::new(manner);
    TestServer::start_at(loopback(0), service, |config| config.tls = tls).await
}

fn encrypted(address: SocketAddr, endpoint: Endpoint) -> PeerConfig {
    PeerConfig {
        tls: Some(Tls::new(endpoint)),
        ..peer_config(address)
    }
}

/// Why a peer does not reach its server.
async fn failure(config: PeerConfig) -> String {
    let peer = Peer::new(config);
    peer.connect();
    until("the attempt failed", || peer.state().last_error.is_some()).await;
    peer.state().last_error.expect("it failed")
}

#[test]
fn small_and_large_calls_go_over_tls_and_a_drain_loses_no_answer() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let caller = server(&authority, ANOTHER, now());
        let called = serve(Manner::Echo, Some(tls)).await;
        let peer = Peer::new(encrypted(called.address, caller));
        let record = Record::new();
        for token in 0..100 {
            let body = token.to_string().into_bytes();
            peer.call(message(body), record.clone(), token).unwrap();
        }
        peer.call(
            message_with(b"large", &[3 << 20, 70_000]),
            record.clone(),
            100,
        )
        .unwrap();
        for token in 0..100 {
            assert_eq!(record.reply(token).await.0, token.to_string().into_bytes());
        }
        let (body, payload) = record.reply(100).await;
        assert_eq!(body, b"large");
        let lengths: Vec<usize> = payload.iter().map(bytes::Bytes::len).collect();
        assert_eq!(lengths, [3 << 20, 70_000]);
        assert!(payload[0].iter().all(|byte| *byte == 1));

        // An answer larger than what the sockets hold.
        called.service.manner.set(Manner::Large(20 << 20));
        peer.call(message_with(b"last", &[300_000]), record.clone(), 101)
            .unwrap();
        until("it arrived", || called.service.requests.get() == 102).await;
        called.listener.drain(PATIENCE).await;
        let (_, payload) = record.reply(101).await;
        assert_eq!(payload[0].len(), 20 << 20);
        assert_eq!(record.of(101).len(), 1, "the first attempt came through");
    });
}

#[test]
fn a_wrong_certificate_is_refused_by_the_caller_with_its_sentence() {
    local(async {
        let (ours, foreign) = (authority(), authority());
        let long_ago = now() - CERTIFICATE_SECONDS - 3 * 60 * 60;
        for (endpoint, sentence) in [
            (
                server(&foreign, IDENTITY.server, now()),
                "issued by a CA that this cluster does not trust",
            ),
            (
                server(&ours, ANOTHER, now()),
                "is for server 00000000000000000000000000000052, and server 00000000000000000000000000000051 was called",
            ),
            (
                server(&ours, IDENTITY.server, long_ago),
                "the certificate expired 3 h ago",
            ),
        ] {
            let server = serve(Manner::Echo, Some(Tls::new(endpoint))).await;
            let found = failure(encrypted(server.address, client(&ours))).await;
            assert!(found.contains(sentence), "{found}");
            assert_eq!(server.service.requests.get(), 0);
        }
    });
}

#[test]
fn a_caller_with_a_wrong_certificate_is_refused_and_sees_that_it_was() {
    local(async {
        let (ours, foreign) = (authority(), authority());
        let tls = Tls::new(server(&ours, IDENTITY.server, now()));
        let called = serve(Manner::Echo, Some(tls)).await;
        // It trusts the server, and the server does not trust it.
        let mut stranger = server(&foreign, ANOTHER, now());
        stranger.roots = Roots::new(ours.root().clone());
        let found = failure(encrypted(called.address, stranger)).await;
        let sentences = [
            "refused this end's certificate",
            "connection reset",
            "closed",
        ];
        assert!(
            sentences.iter().any(|sentence| found.contains(sentence)),
            "{found}"
        );
        assert_eq!(called.listener.counts().without_hello, 1);
    });
}

#[test]
fn a_caller_is_the_server_of_its_certificate_or_no_server() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let called = serve(Manner::Echo, Some(tls)).await;
        let claims = |endpoint, own_id| PeerConfig {
            role: Role::Server,
            own_id,
            ..encrypted(called.address, endpoint)
        };
        for config in [
            claims(client(&authority), ANOTHER),
            claims(server(&authority, ANOTHER, now()), ANOTHER + 1),
        ] {
            let peer = Peer::new(config);
            peer.connect();
            let refused = Status::Refused(Refusal::Unauthorised);
            until("it was refused", || peer.status() == refused).await;
        }
        let peer = Peer::new(claims(server(&authority, ANOTHER, now()), ANOTHER));
        peer.connect();
        until("it is in", || peer.status() == Status::Connected).await;
    });
}

#[test]
fn plain_to_tls_and_tls_to_plain_have_their_sentences() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let tls_port = serve(Manner::Echo, Some(tls)).await;
        let found = failure(peer_config(tls_port.address)).await;
        assert!(found.starts_with("the other end speaks TLS"), "{found}");
        assert_eq!(tls_port.listener.counts().without_hello, 1);

        let plain = serve(Manner::Echo, None).await;
        let found = failure(encrypted(plain.address, client(&authority))).await;
        assert!(
            found.contains("started without TLS: its cluster has no keys"),
            "{found}"
        );
        assert_eq!(plain.listener.counts().without_hello, 1);
        let mut stream = TcpStream::connect(plain.address).await.unwrap();
        stream.write_all(&[22, 3, 1, 0, 5, 1]).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, [21, 3, 3, 0, 2, 2, 71], "insufficient security");
    });
}

#[test]
fn an_older_tls_gets_an_alert_and_nothing_else() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let server = serve(Manner::Echo, Some(tls)).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // A hello of TLS 1.2 that offers one suite and one way to sign.
        let mut hello = vec![22, 3, 1, 0, 55, 1, 0, 0, 51, 3, 3];
        hello.extend_from_slice(&[7; 32]);
        hello.extend_from_slice(&[0, 0, 2, 0xc0, 0x2b, 1, 0]);
        hello.extend_from_slice(&[0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
        stream.write_all(&hello).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        // An alert, fatal, of the protocol's version.
        assert_eq!(answer[0], 21);
        assert_eq!(answer[answer.len() - 2..], [2, 70], "{answer:?}");
    });
}

#[test]
fn a_stranger_that_is_silent_in_tls_has_the_time_of_a_hello() {
    local(async {
        let authority = authority();
        let server = serve_impatiently(&authority, SHORT).await;
        // One says nothing, and one begins a record of TLS.
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        let mut begun = TcpStream::connect(server.address).await.unwrap();
        begun.write_all(&[22, 3, 1, 1]).await.unwrap();
        for stream in [&mut silent, &mut begun] {
            let closed = stream.read_to_end(&mut Vec::new()).await;
            assert!(closed.is_ok(), "{closed:?}");
        }
        until("both are counted", || {
            server.listener.counts().without_hello == 2
        })
        .await;
        assert_eq!(server.listener.connections(), 0);
    });
}

/// Callers from one address could have the server compute without end. Without TLS there is nothing to compute, and callers that share an
/// address do not pay for each other.
#[test]
fn an_address_has_an_allowance_of_handshakes_where_connections_are_encrypted() {
    local(async {
        let authority = authority();
        let rate = Rate {
            burst: 3,
            per_second: 0,
        };
        let limit = Allowance {
            address: rate,
            strangers: rate,
            is_for_loopback: true,
        };
        for is_encrypted in [true, false] {
            let endpoint = || server(&authority, IDENTITY.server, now());
            let tls = is_encrypted.then(|| Tls::new(endpoint()));
            let service = TestService::new(Manner::Echo);
            let server = TestServer::start_at(loopback(0), service, |config| {
                (config.tls, config.handshake_allowance) = (tls, limit);
            })
            .await;
            for failures in 0..3 {
                let mut stranger = TcpStream::connect(server.address).await.unwrap();
                stranger.write_all(&[7; 100]).await.unwrap();
                until("it failed", || {
                    server.listener.counts().without_hello == failures + 1
                })
                .await;
            }
            let config = match is_encrypted {
                true => encrypted(server.address, client(&authority)),
                false => peer_config(server.address),
            };
            let peer = Peer::new(config);
            peer.connect();
            until("it is heard or not", || {
                let is_heard = peer.state().status == Status::Connected;
                is_heard || server.listener.counts().limited > 0
            })
            .await;
            let is_heard = peer.state().status == Status::Connected;
            assert_eq!(is_heard, !is_encrypted);
        }
    });
}

#[test]
fn a_renewed_certificate_counts_from_the_next_connection_on() {
    local(async {
        let (old, new) = (authority(), authority());
        let tls = Tls::new(server(&old, IDENTITY.server, now()));
        let server_tls = tls.clone();
        let called = serve(Manner::Echo, Some(tls)).await;
        let first = Peer::new(encrypted(called.address, client(&old)));
        let record = Record::new();
        first.call(message("1"), record.clone(), 1).unwrap();
        record.reply(1).await;
        let renewed = server(&new, IDENTITY.server, now());
        server_tls.update(|_| renewed).unwrap();
        first.call(message("2"), record.clone(), 2).unwrap();
        record.reply(2).await;
        assert_eq!(first.connections_made(), 1, "what is connected stays");
        let second = Peer::new(encrypted(called.address, client(&new)));
        second.call(message("3"), record.clone(), 3).unwrap();
        record.reply(3).await;
        let found = failure(encrypted(called.address, client(&old))).await;
        assert!(found.contains("issued by a CA"), "{found}");
    });
}

/// A renewal that knew the old roots, and a rotation that knew the old certificate, undid each other.
#[test]
fn a_renewal_and_a_rotation_keep_what_the_other_has_done() {
    let (old, new) = (authority(), authority());
    let tls = Tls::new(server(&old, IDENTITY.server, now()));
    let mut roots = Roots::new(old.root().clone());
    roots.trust(new.root().clone()).unwrap();
    let renewed = server(&new, IDENTITY.server, now()).credentials;
    let rotated = roots.clone();
    tls.update(|endpoint| Endpoint {
        roots: rotated,
        ..endpoint.clone()
    })
    .unwrap();
    tls.update(|endpoint| {
        assert_eq!(endpoint.roots, roots, "the rotation stays");
        Endpoint {
            credentials: renewed,
            ..endpoint.clone()
        }
    })
    .unwrap();
    // A certificate for another key.
    let key = ServerKey::create().unwrap();
    let certificate = old.issue(ServerId(IDENTITY.server), &key.public(), now());
    let other = ServerKey::create().unwrap();
    let broken = Credentials::new(certificate.unwrap(), old.root(), &other);
    let refused = tls.update(|endpoint| Endpoint {
        roots: Roots::new(old.root().clone()),
        credentials: Some(broken),
        ..endpoint.clone()
    });
    assert!(refused.is_err());
    tls.update(|endpoint| {
        assert_eq!(endpoint.roots, roots, "nothing was changed");
        endpoint.clone()
    })
    .unwrap();
}

/// A certificate was judged once, at the handshake: its connection outlived its CA.
#[test]
fn a_dropped_root_closes_the_connections_that_stand_on_it_at_both_ends() {
    local(async {
        let (old, new) = (authority(), authority());
        let mut both = Roots::new(new.root().clone());
        both.trust(old.root().clone()).unwrap();
        let trusting = |endpoint| Endpoint {
            roots: both.clone(),
            ..endpoint
        };
        let tls = Tls::new(trusting(server(&new, IDENTITY.server, now())));
        let called = serve(Manner::Echo, Some(tls.clone())).await;
        let behind = Tls::new(trusting(server(&old, ANOTHER, now())));
        let config = |endpoint: &Tls, own_id| PeerConfig {
            role: Role::Server,
            own_id,
            tls: Some(endpoint.clone()),
            ..peer_config(called.address)
        };
        let renewed = Tls::new(trusting(server(&new, ANOTHER + 1, now())));
        let (first, second) = (
            Peer::new(config(&behind, ANOTHER)),
            Peer::new(config(&renewed, ANOTHER + 1)),
        );
        let client = Peer::new(encrypted(called.address, trusting(client(&new))));
        for peer in [&first, &second, &client] {
            peer.connect();
            until("it is in", || peer.status() == Status::Connected).await;
        }
        let drop_old = |endpoint: &Endpoint| {
            let mut roots = endpoint.roots.clone();
            roots.drop_root(old.root().digest()).unwrap();
            Endpoint {
                roots,
                ..endpoint.clone()
            }
        };
        tls.update(drop_old).unwrap();
        until("the one that stands on it is closed", || {
            called.listener.counts().distrusted == 1
        })
        .await;
        called.has_connections(2).await;
        assert_eq!(second.connections_made(), 1);
        assert_eq!(client.connections_made(), 1);

        // The caller drops the root on which the server stands.
        let only_old = Roots::new(old.root().clone());
        renewed
            .update(|endpoint| Endpoint {
                roots: only_old,
                ..endpoint.clone()
            })
            .unwrap();
        until("the caller is gone", || second.state().last_error.is_some()).await;
        let error = second.state().last_error.unwrap();
        assert!(error.contains("issued by a CA"), "{error}");
    });
}

/// The id in the certificate was checked, and the id in the welcome was believed.
#[test]
fn a_server_that_says_that_it_is_another_one_is_left() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, ANOTHER, now()));
        // Its identity is that of another server.
        let called = serve(Manner::Echo, Some(tls)).await;
        for expected in [0, ANOTHER] {
            let config = PeerConfig {
                server: expected,
                ..encrypted(called.address, client(&authority))
            };
            let found = failure(config).await;
            assert!(found.contains("the server says that it is"), "{found}");
        }
        let who = (IDENTITY.cluster, ANOTHER);
        let address = called.address.to_string();
        let tls = Tls::new(client(&authority));
        let found = presence(&address, who, Some(&tls), PATIENCE).await;
        assert_eq!(found, Presence::Silent);
        assert_eq!(called.service.requests.get(), 0);
    });
}

/// A live server that cannot be verified is not absent: a second process in its place would be let in.
#[test]
fn a_server_that_cannot_be_verified_is_not_absent() {
    local(async {
        let (ours, foreign) = (authority(), authority());
        let who = (IDENTITY.cluster, IDENTITY.server);
        let encrypted = Some(Tls::new(server(&ours, IDENTITY.server, now())));
        let stranger = Some(Tls::new(server(&foreign, IDENTITY.server, now())));
        let cases = [
            ("TLS to plain", None, &encrypted),
            ("plain to TLS", encrypted.clone(), &None),
            ("another CA", stranger, &encrypted),
        ];
        for (case, of_server, of_caller) in cases {
            let called = serve(Manner::Echo, of_server).await;
            let address = called.address.to_string();
            let found = presence(&address, who, of_caller.as_ref(), PATIENCE).await;
            assert_eq!(found, Presence::Silent, "{case}");
        }
        let nothing = vacant().await.to_string();
        let found = presence(&nothing, who, encrypted.as_ref(), PATIENCE).await;
        assert_eq!(found, Presence::Absent);
    });
}

#[test]
fn presence_is_asked_over_tls_too() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let called = serve(Manner::Echo, Some(tls.clone())).await;
        let who = (IDENTITY.cluster, IDENTITY.server);
        let address = called.address.to_string();
        let found = presence(&address, who, Some(&tls), PATIENCE).await;
        let process = Some(called.listener.process());
        let is_stopping = false;
        assert_eq!(
            found,
            Presence::Answers {
                process,
                is_stopping
            }
        );
    });
}

#[tokio::test]
async fn bytes_of_tls_are_known_as_such_where_a_hello_is_expected() {
    let hello = Hello::new(Role::Client, Channel::Calls, 9);
    for (first, is_tls) in [
        (&[21, 3, 3, 0, 2, 2, 70][..], true),
        (&[23, 3, 3, 0, 2, 2, 70], false),
    ] {
        let (mut caller, mut called) = tokio::io::duplex(1 << 12);
        called.write_all(first).await.unwrap();
        let found = greet(&mut caller, &hello, PATIENCE).await;
        assert_eq!(found == Err(HandshakeError::Encrypted), is_tls, "{found:?}");
    }
}

/// A stream that takes every byte at once and sends none before it may, as an encrypted one does.
struct Holding(Rc<Cell<bool>>);

impl AsyncRead for Holding {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Holding {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.0.get() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A service that ignores every message.
struct Deaf;

impl Handler for Deaf {
    fn on_frame(&self, _connection: &Connection, _frame: Incoming<'_>) {}

    fn on_batch_end(&self, _connection: &Connection) {}
}

#[test]
fn a_connection_that_is_to_finish_waits_until_its_stream_has_sent_all() {
    let may_send = Rc::new(Cell::new(false));
    let config = ConnectionConfig {
        window_bytes: 0,
        limits: Limits::default(),
        peer_limits: Limits::default(),
        max_queued_bytes: 1 << 20,
        pool: Pool::new(0),
    };
    let stream = Holding(Rc::clone(&may_send));
    let (connection, mut driver) = drive(stream, loopback(1), &config, Deaf);
    connection
        .send(&Header::new(Kind::Ping, 0), &[][..], &[])
        .unwrap();
    connection.finish();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut driver).poll(&mut context), Poll::Pending);
    may_send.set(true);
    let ended = Pin::new(&mut driver).poll(&mut context);
    assert_eq!(ended, Poll::Ready(CloseReason::Finished));
}

/// Strangers took the places of clients, and those of which each waited for an answer kept all others out.
#[test]
fn strangers_have_places_of_their_own_and_make_room_for_each_other() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let service = TestService::new(Manner::Hold);
        service.knows_servers.set(false);
        let called = TestServer::start_at(loopback(0), service, |config| {
            config.tls = Some(tls);
            config.places.strangers = 3;
            config.places.clients = 1;
        })
        .await;
        let known = Peer::new(PeerConfig {
            role: Role::Server,
            own_id: ANOTHER,
            ..encrypted(called.address, server(&authority, ANOTHER, now()))
        });
        known.connect();
        until("it is in", || known.status() == Status::Connected).await;
        let mut strangers = Vec::new();
        for number in 1..=6 {
            let tls = Tls::of_prover(Arc::new(DefaultTimeProvider));
            let network = Network::with_tls(Role::Client, number as u128, Some(tls));
            let address = called.address.to_string();
            strangers.push(tokio::task::spawn_local(async move {
                let asked = network.ask(&*address, PATIENCE, |_| Bytes::from_static(b"x"));
                asked.await
            }));
            until("it waits for an answer", || {
                called.service.requests.get() == number
            })
            .await;
        }
        for gone in strangers.drain(..3) {
            assert!(gone.await.unwrap().is_err());
        }
        let counts = called.listener.counts();
        assert_eq!(counts.open, [0, 3, 1, 0]);
        assert_eq!(counts.displaced, [0, 3, 0, 0]);
        assert_eq!(known.status(), Status::Connected);
        called.service.answer_held();
        for answered in strangers {
            assert_eq!(answered.await.unwrap().expect("an answer").body[..], *b"x");
        }
    });
}

/// The cost of a stranger was bounded by its time alone.
#[test]
fn a_stranger_pays_for_a_handshake_after_a_few_requests() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let called = serve(Manner::Echo, Some(tls)).await;
        let stranger = Peer::new(encrypted(called.address, client(&authority)));
        let record = Record::new();
        for number in 1..=9 {
            stranger.call(message("x"), record.clone(), number).unwrap();
            record.reply(number).await;
        }
        assert_eq!(stranger.connections_made(), 3);
        until("both are counted", || {
            called.listener.counts().unproven == 2
        })
        .await;
    });
}

#[test]
fn a_stranger_that_proves_nothing_in_its_time_is_closed_and_counted() {
    local(async {
        let authority = authority();
        let called = serve_impatiently(&authority, Duration::from_secs(1)).await;
        let stranger = Peer::new(encrypted(called.address, client(&authority)));
        stranger.connect();
        until("it is closed", || called.listener.counts().unproven == 1).await;
        let counts = called.listener.counts();
        assert_eq!(counts.displaced, [0; 4], "it was in the way of no one");
    });
}

/// A stranger may prove a key or ask who is there, and is not let to hold memory or a place for that.
#[test]
fn a_stranger_has_small_frames() {
    local(async {
        let authority = authority();
        let tls = Tls::new(server(&authority, IDENTITY.server, now()));
        let called = serve(Manner::Echo, Some(tls)).await;
        let stranger = || Peer::new(encrypted(called.address, client(&authority)));
        let record = Record::new();
        let small = stranger();
        small.call(message("1"), record.clone(), 1).unwrap();
        record.reply(1).await;
        for large in [
            message(vec![7; 20 << 10]),
            message_with(b"payload", &[300_000]),
        ] {
            let peer = stranger();
            peer.call(large, Record::new(), 1).unwrap();
            until("it is closed", || peer.state().last_error.is_some()).await;
        }
        assert_eq!(called.service.requests.get(), 1);
    });
}

/// The certificate of a server is its proof, and a caller without one has the time of a hello to begin its own.
#[test]
fn a_stranger_that_begins_no_proof_is_closed() {
    local(async {
        let authority = authority();
        let called = serve_impatiently(&authority, Duration::from_secs(2)).await;
        let peers = [client(&authority), server(&authority, ANOTHER, now())];
        let [stranger, proven] = peers.map(|endpoint| {
            let own_id = ANOTHER;
            let role = match endpoint.credentials {
                Some(_) => Role::Server,
                None => Role::Client,
            };
            let config = encrypted(called.address, endpoint);
            Peer::new(PeerConfig {
                role,
                own_id,
                ..config
            })
        });
        for peer in [&proven, &stranger] {
            peer.connect();
            until("it is in", || peer.status() == Status::Connected).await;
        }
        until("the stranger is closed", || {
            stranger.status() != Status::Connected
        })
        .await;
        assert_eq!(proven.status(), Status::Connected);
        assert_eq!(proven.connections_made(), 1);
    });
}
