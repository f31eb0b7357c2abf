//! Servers that go away, come back, or are not who they should be.

use std::time::Duration;

use crate::common::*;
use areo_net::{CallRefusal, Identity, Peer, PeerConfig, Status, Traffic};
use areo_wire::frame::{Header, Kind, Refusal};
use tokio::net::TcpListener;

#[test]
fn an_undecided_call_is_sent_again_after_a_reconnect() {
    local(async {
        let (listener, peer, record) = listening().await;
        peer.call(message_with(b"first", &[10, 10_000]), record.clone(), 1)
            .unwrap();
        let decided = peer.call(message(b"forgotten"), record.clone(), 2).unwrap();
        let mut server = Raw::accept(&listener).await;
        let (first, _) = server.receive().await.unwrap();
        assert_eq!(server.receive().await.unwrap().1, b"forgotten");
        peer.forget(decided.key);
        drop(server);

        let mut server = Raw::accept(&listener).await;
        let (again, body) = server.receive().await.unwrap();
        assert_eq!((again.call_id, &body[..]), (first.call_id, &b"first"[..]));
        assert!(
            again.deadline_ms <= first.deadline_ms,
            "what is left of the deadline"
        );
        assert_eq!(record.of(1), [Told::Retrying]);
        peer.call(message(b"next"), record.clone(), 3).unwrap();
        // The forgotten call would have come between these two.
        assert_eq!(server.receive().await.unwrap().1, b"next");
        server.reply(&again, b"done").await;
        assert_eq!(record.reply(1).await.0, b"done");
        assert_eq!(record.of(2), []);
    });
}

#[test]
fn a_killed_server_that_comes_back_answers_what_was_asked_meanwhile() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"before"), record.clone(), 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        let service = server.service.clone();
        let address = server.kill().await;
        until("the loss is known", || peer.status() == Status::Unreachable).await;
        assert_eq!(record.of(1), [Told::Retrying]);
        let call = peer
            .call(message(b"while down"), record.clone(), 2)
            .unwrap();
        assert!(!call.reachable);

        service.manner.set(Manner::Echo);
        let server = TestServer::start_at(address, service, |_| {}).await;
        assert_eq!(record.reply(1).await.0, b"before");
        assert_eq!(record.reply(2).await.0, b"while down");
        assert_eq!(
            record.of(2).len(),
            1,
            "a call known to wait is not told so again"
        );
        let state = peer.state();
        assert_eq!(
            (state.status, state.calls, state.last_error),
            (Status::Connected, 0, None)
        );
        assert_eq!(
            (state.server, state.incarnation),
            (IDENTITY.server, IDENTITY.incarnation)
        );
        drop(server);
    });
}

#[test]
fn traffic_grows_in_the_middle_of_a_frame_and_survives_a_reconnect() {
    local(async {
        const PAYLOAD: usize = 1 << 20;
        let (listener, peer, record) = listening().await;
        assert_eq!(peer.traffic(), Traffic::default());
        peer.call(message_with(b"ask", &[PAYLOAD]), record.clone(), 1)
            .unwrap();
        let mut server = Raw::accept(&listener).await;
        let (first, _) = server.receive().await.unwrap();
        let reply = frame_bytes(
            &Header::new(Kind::Reply, first.call_id),
            b"done",
            &[vec![7; PAYLOAD]],
        );
        server.send(&reply[..reply.len() / 2]).await;
        let half = reply.len() as u64 / 2;
        until("half of it came", || peer.traffic().received_bytes == half).await;
        assert_eq!(record.of(1), [], "no frame is complete");
        let sent_once = peer.traffic().sent_bytes;
        assert!(sent_once > PAYLOAD as u64);
        drop(server);

        // The whole call is sent again and answered in full; what the lost connection moved stays counted.
        let mut server = Raw::accept(&listener).await;
        server.receive().await.unwrap();
        server.send(&reply).await;
        assert_eq!(record.reply(1).await.0, b"done");
        let moved = peer.traffic();
        assert_eq!(moved.received_bytes, half + reply.len() as u64);
        assert!(moved.sent_bytes >= 2 * sent_once, "{moved:?}");
    });
}

#[test]
fn a_refused_connection_is_told_at_once_and_tried_again() {
    local(async {
        let vacant = vacant().await;
        let peer = Peer::new(peer_config(vacant));
        let record = Record::new();
        assert!(
            peer.call(message(b"x"), record.clone(), 1)
                .unwrap()
                .reachable,
            "not known yet"
        );
        until("the attempt failed", || record.of(1) == [Told::Retrying]).await;
        assert_eq!(peer.status(), Status::Unreachable);
        assert!(peer.state().last_error.is_some());
        let server = TestServer::start_at(vacant, TestService::new(Manner::Echo), |_| {}).await;
        assert_eq!(record.reply(1).await.0, b"x");
        assert_eq!(record.of(1).len(), 2);
        drop(server);
    });
}

#[test]
fn a_call_ends_with_its_deadline() {
    local(async {
        let vacant = vacant().await;
        let peer = Peer::new(peer_config(vacant));
        let record = Record::new();
        let mut short = message(b"short");
        short.deadline = Some(short.started + Duration::from_millis(1));
        peer.call(short, record.clone(), 1).unwrap();
        peer.call(message(b"long"), record.clone(), 2).unwrap();
        until("it was given up", || record.last(1) == Some(Told::GivenUp)).await;
        assert_eq!(peer.state().calls, 1);
        assert_eq!(record.of(2), [Told::Retrying]);
    });
}

#[test]
fn a_server_that_is_not_the_one_meant_refuses_every_call_until_it_is() {
    local(async {
        for (identity, known_incarnation, refusal) in [
            (
                Identity {
                    cluster: 5,
                    ..IDENTITY
                },
                0,
                Refusal::WrongCluster,
            ),
            (
                Identity {
                    server: 5,
                    ..IDENTITY
                },
                0,
                Refusal::WrongServer,
            ),
            (IDENTITY, IDENTITY.incarnation + 1, Refusal::RolledBack),
        ] {
            let service = TestService::new(Manner::Echo);
            service.identity.set(identity);
            let server = TestServer::start_at(loopback(0), service, |_| {}).await;
            let peer = Peer::new(PeerConfig {
                known_incarnation,
                ..server.peer_config()
            });
            let record = Record::new();
            peer.call(message(b"x"), record.clone(), 1).unwrap();
            record.refused(1, refusal).await;
            assert_eq!(peer.status(), Status::Refused(refusal));
            let error = peer.call(message(b"y"), record.clone(), 2).unwrap_err();
            assert_eq!(error, CallRefusal::ByServer { refusal });

            server.service.identity.set(Identity {
                incarnation: known_incarnation.max(3),
                ..IDENTITY
            });
            until("the right server was found", || {
                peer.status() == Status::Connected
            })
            .await;
            peer.call(message(b"z"), record.clone(), 3).unwrap();
            assert_eq!(record.reply(3).await.0, b"z");
            assert_eq!((record.of(1).len(), record.of(2).len()), (1, 0));
        }
    });
}

#[test]
fn a_server_whose_data_goes_back_in_time_is_refused_by_a_client_that_has_seen_more() {
    local(async {
        let (server, peer, record) = serving(Manner::Echo).await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        record.reply(1).await;
        let service = server.service.clone();
        let address = server.kill().await;
        service.identity.set(Identity {
            incarnation: IDENTITY.incarnation - 1,
            ..IDENTITY
        });
        let server = TestServer::start_at(address, service, |_| {}).await;
        until("it was refused", || {
            peer.status() == Status::Refused(Refusal::RolledBack)
        })
        .await;
        drop(server);
    });
}

#[test]
fn a_draining_server_answers_what_it_has_and_takes_nothing_new() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"last"), record.clone(), 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        let drain = server.listener.drain(PATIENCE);
        let watch = async {
            let refused = Status::Refused(Refusal::Draining);
            until("goodbye was heard", || peer.status() == refused).await;
            let error = peer.call(message(b"new"), record.clone(), 2).unwrap_err();
            assert_eq!(
                error,
                CallRefusal::ByServer {
                    refusal: Refusal::Draining
                }
            );
            assert_eq!(record.of(1), []);
            server.service.answer_held();
        };
        tokio::join!(drain, watch);
        assert_eq!(record.reply(1).await.0, b"last");
        assert_eq!(server.listener.connections(), 0);
    });
}

#[test]
fn a_server_that_says_nothing_is_cut_off() {
    local(async {
        let listener = TcpListener::bind(loopback(0)).await.unwrap();
        let config = PeerConfig {
            silence_timeout: Duration::from_millis(100),
            ..peer_config(listener.local_addr().unwrap())
        };
        let peer = Peer::new(config);
        let record = Record::new();
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        // Accepts and reads, answers nothing, not even the pings.
        let mut hung = Raw::accept(&listener).await;
        while hung.receive().await.is_some() {}
        until("the loss is known", || record.of(1) == [Told::Retrying]).await;
        let mut server = Raw::accept(&listener).await;
        let (header, _) = server.receive().await.unwrap();
        server.reply(&header, b"done").await;
        assert_eq!(record.reply(1).await.0, b"done");
    });
}

/// The time for which a silent server stays connected, in virtual time, and the pings that the peer sends
/// meanwhile.
async fn silence_of(peer: &Peer, mut server: Raw) -> (Duration, usize) {
    until("the hello was answered", || {
        peer.status() == Status::Connected
    })
    .await;
    // Time goes on when nothing else does.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    while peer.status() == Status::Connected {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let silent = begun.elapsed();
    tokio::time::resume();
    let mut pings = 0;
    while let Some((header, _)) = server.receive().await {
        pings += usize::from(header.kind == Kind::Ping);
    }
    (silent, pings)
}

/// The operating system takes the pings of a server that is gone for minutes, and that counted as a sign of life.
#[test]
fn bytes_that_the_system_takes_are_no_sign_of_life() {
    local(async {
        let limit = Duration::from_secs(15);
        let (listener, peer, record) = listening().await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        let owing = Raw::accept(&listener).await;
        let (silent, pings) = silence_of(&peer, owing).await;
        assert!(silent <= limit && silent > limit / 2, "{silent:?}");
        assert!(pings > 3, "{pings} pings");
        assert_eq!(record.of(1), [Told::Retrying]);
    });
}

/// A server that owes no answer stayed *connected* for as long as TCP waits, which is 15 minutes.
#[test]
fn a_server_that_owes_nothing_is_missed_too() {
    local(async {
        let (listener, peer, _) = listening().await;
        peer.connect();
        let idle = Raw::accept(&listener).await;
        let (silent, pings) = silence_of(&peer, idle).await;
        assert!(silent <= Duration::from_secs(15), "{silent:?}");
        assert!(pings > 3, "{pings} pings");
    });
}

/// An upload to a server that reads slowly, and says nothing before it has all of it.
#[test]
fn a_slow_reader_is_no_silent_server() {
    local(async {
        let (listener, peer, record) = listening().await;
        peer.call(message_with(b"x", &[64 << 20]), record.clone(), 1)
            .unwrap();
        let mut server = Raw::accept(&listener).await;
        tokio::time::pause();
        let mut buffer = vec![0; 4 << 20];
        for _ in 0..7 {
            tokio::time::sleep(Duration::from_secs(4)).await;
            let read = tokio::io::AsyncReadExt::read_exact(&mut server.stream, &mut buffer).await;
            assert_eq!(read.ok(), Some(buffer.len()), "it is not cut off");
        }
        assert_eq!(record.of(1), []);
        assert_eq!(peer.state().bulk_status, Status::Connected);
    });
}

#[test]
fn dropping_the_peer_closes_its_connections() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        peer.call(message_with(b"y", &[1 << 20]), record.clone(), 2)
            .unwrap();
        until("both arrived", || server.service.requests.get() == 2).await;
        assert_eq!(server.listener.connections(), 2);
        drop(peer);
        until("both are closed", || server.listener.connections() == 0).await;
        // Their responders answer into the void.
        server.service.answer_held();
        assert_eq!((record.of(1), record.of(2)), (vec![], vec![]));
        assert_eq!(
            std::rc::Rc::strong_count(&record),
            1,
            "no task keeps a sink"
        );
    });
}
