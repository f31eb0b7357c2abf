//! Every queue has a bound, and reaching it hurts only the caller that reached it.

use std::time::Duration;

use crate::common::*;
use areo_net::handshake::HandshakeError;
use areo_net::{CallRefusal, Peer, PeerConfig, Places, Status};
use areo_wire::frame::Refusal;
use areo_wire::hello::{Channel, Hello, Role};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

#[test]
fn a_full_queue_refuses_at_once_and_only_its_own_server() {
    local(async {
        // Takes the hello and reads nothing after it.
        let deaf = TcpListener::bind(loopback(0)).await.unwrap();
        let config = PeerConfig {
            max_bytes: 1 << 20,
            ..peer_config(deaf.local_addr().unwrap())
        };
        let slow = Peer::new(config);
        let server = TestServer::start(Manner::Echo).await;
        let quick = server.peer();
        let record = Record::new();
        let large = message_with(b"x", &[100_000]);
        slow.call(large.clone(), record.clone(), 0).unwrap();
        let _open = Raw::accept(&deaf).await;
        let mut taken = 1;
        let refused = loop {
            match slow.call(large.clone(), record.clone(), taken) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(refused, CallRefusal::QueueFull { .. }),
            "{refused}"
        );
        assert_eq!(taken, 10, "1 MiB holds ten of 100 kB");
        assert_eq!(slow.state().calls, taken as usize);
        quick.call(large, record.clone(), 100).unwrap();
        assert_eq!(record.reply(100).await.0, b"x");
        assert!((0..taken).all(|token| record.of(token).is_empty()));
    });
}

#[test]
fn bytes_of_forgotten_calls_count_until_they_are_written() {
    local(async {
        let deaf = TcpListener::bind(loopback(0)).await.unwrap();
        let config = PeerConfig {
            max_bytes: 8 << 20,
            ..peer_config(deaf.local_addr().unwrap())
        };
        let peer = Peer::new(config);
        let record = Record::new();
        peer.connect();
        let _open = Raw::accept(&deaf).await;
        until("connected", || peer.status() == Status::Connected).await;
        let large = message_with(b"x", &[200_000]);
        // The kernel takes some megabytes; then the queue fills, although no call stays in the table.
        let refused = loop {
            match peer.call(large.clone(), record.clone(), 0) {
                Ok(call) => peer.forget(call.key),
                Err(error) => break error,
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(peer.state().calls, 0);
        let CallRefusal::QueueFull { calls: 0, bytes } = refused else {
            panic!("{refused}")
        };
        assert!(bytes <= 8 << 20 && bytes > 7 << 20, "{bytes} bytes queued");
    });
}

#[test]
fn calls_in_flight_are_bounded_while_a_server_is_down() {
    local(async {
        let vacant = vacant().await;
        let peer = Peer::new(PeerConfig {
            max_calls: 3,
            ..peer_config(vacant)
        });
        let record = Record::new();
        for token in 0..3 {
            peer.call(message(b"x"), record.clone(), token).unwrap();
        }
        let error = peer.call(message(b"x"), record.clone(), 3).unwrap_err();
        assert!(
            matches!(error, CallRefusal::QueueFull { calls: 3, .. }),
            "{error}"
        );
    });
}

#[test]
fn a_message_over_the_limits_is_refused_where_it_is_made() {
    local(async {
        let service = TestService::new(Manner::Echo);
        let adjust = |config: &mut areo_net::ListenerConfig| config.limits.max_payload_bytes = 1000;
        let server = TestServer::start_at(loopback(0), service, adjust).await;
        let peer = server.peer();
        let record = Record::new();
        let error = peer
            .call(message(vec![0; (1 << 20) + 1]), record.clone(), 1)
            .unwrap_err();
        assert!(matches!(error, CallRefusal::TooLarge { .. }), "{error}");
        // The server's own limit is known once it has said so.
        peer.call(message_with(b"", &[1001]), record.clone(), 2)
            .unwrap();
        record.refused(2, Refusal::TooLarge).await;
        let error = peer
            .call(message_with(b"", &[1001]), record.clone(), 3)
            .unwrap_err();
        assert!(matches!(error, CallRefusal::TooLarge { .. }), "{error}");
        peer.call(message_with(b"ok", &[1000]), record.clone(), 4)
            .unwrap();
        assert_eq!(record.reply(4).await.0, b"ok");
    });
}

#[test]
fn a_client_that_asks_and_does_not_read_is_paused_then_closed() {
    local(async {
        let reply_bytes = 100_000;
        let service = TestService::new(Manner::Large(reply_bytes));
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.pause_above_bytes = 1 << 20;
            config.stall_timeout = Duration::from_secs(2);
        })
        .await;
        let mut raw = Raw::connect(server.address).await;
        let requests = 2000;
        for id in 0..requests {
            raw.send(&request_bytes(id, b"", &[])).await;
        }
        server.has_connections(0).await;
        // What the kernel's buffers and the bound take, not the 200 MB that were asked for.
        let answered = server.service.requests.get();
        assert!(
            answered > 10 && answered < requests as usize / 2,
            "{answered} answered"
        );
        let record = Record::new();
        let bystander = server.peer();
        bystander.call(message(b"next"), record.clone(), 1).unwrap();
        assert_eq!(record.reply(1).await.0, b"next");
    });
}

#[test]
fn answers_that_pile_up_beyond_the_bound_close_the_connection() {
    local(async {
        let service = TestService::new(Manner::Hold);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.max_queued_calls_bytes = 1 << 20;
        })
        .await;
        let mut raw = Raw::connect(server.address).await;
        for id in 0..200 {
            raw.send(&request_bytes(id, &vec![7; 100_000], &[])).await;
        }
        until("all arrived", || server.service.held.borrow().len() == 200).await;
        // All at once, as after a group commit: 20 MB into a queue of 1.
        server.service.answer_held();
        server.has_connections(0).await;
    });
}

#[test]
fn requests_that_are_not_answered_stop_the_reading() {
    local(async {
        let service = TestService::new(Manner::Hold);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.max_unanswered_calls = 5;
        })
        .await;
        let peer = server.peer();
        let record = Record::new();
        for token in 0..50 {
            peer.call(message(b"x"), record.clone(), token).unwrap();
        }
        for round in 1..=10 {
            until("five were taken", || {
                server.service.held.borrow().len() == 5
            })
            .await;
            assert_eq!(server.service.requests.get(), round * 5);
            server.service.answer_held();
        }
        until("all are answered", || record.replies() == 50).await;
    });
}

#[test]
fn a_dropped_responder_refuses_so_that_nobody_waits_for_it() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        server.service.held.borrow_mut().clear();
        record.refused(1, Refusal::Busy).await;
    });
}

#[test]
fn a_reply_over_the_limits_is_told_as_such() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        server.service.held.borrow_mut()[0].0 = vec![0; (1 << 20) + 1];
        server.service.answer_held();
        record.refused(1, Refusal::TooLarge).await;
    });
}

/// Sends a hello, and returns the refusal, if there is one.
async fn hello_at(server: &TestServer, role: Role) -> (TcpStream, Option<Refusal>) {
    let mut stream = TcpStream::connect(server.address)
        .await
        .expect("it listens");
    let hello = Hello::new(role, Channel::Calls, 3);
    match areo_net::handshake::greet(&mut stream, &hello, PATIENCE).await {
        Ok(_) => (stream, None),
        Err(HandshakeError::Refused { refusal, .. }) => (stream, Some(refusal)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_caller_of_another_version_is_told_both_versions() {
    local(async {
        let (server, ..) = serving(Manner::Hold).await;
        for (version_low, version_high) in [(3, 4), (1, 1)] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let hello = Hello {
                version_low,
                version_high,
                ..Hello::new(Role::Client, Channel::Calls, 3)
            };
            let refused = areo_net::handshake::greet(&mut stream, &hello, PATIENCE).await;
            let Err(HandshakeError::Refused {
                refusal: Refusal::UnsupportedVersion,
                reason: Some(sentence),
                ..
            }) = refused
            else {
                panic!("{refused:?}");
            };
            let theirs = format!("the caller versions {version_low} to {version_high}:");
            for words in ["speaks version 2 of the protocol", &theirs] {
                assert!(sentence.contains(words), "{sentence}");
            }
        }
    });
}

/// A server with these places. It answers when the test lets it.
async fn with_places(places: Places) -> TestServer {
    let service = TestService::new(Manner::Hold);
    TestServer::start_at(loopback(0), service, |config| config.places = places).await
}

#[test]
fn a_caller_who_finds_all_places_busy_is_told_so() {
    local(async {
        let server = with_places(Places {
            clients: 2,
            ..Places::USUAL
        })
        .await;
        let mut busy = Vec::new();
        for id in 0..2 {
            let mut client = Raw::connect(server.address).await;
            client.send(&request_bytes(id, b"x", &[])).await;
            until("it waits for an answer", || {
                server.service.held.borrow().len() as u64 == id + 1
            })
            .await;
            busy.push(client);
        }
        assert_eq!(hello_at(&server, Role::Client).await.1, Some(Refusal::Busy));
        // Servers have places of their own.
        let (_peer, refusal) = hello_at(&server, Role::Server).await;
        assert_eq!(refusal, None);
        server.service.answer_held();
        assert!(busy[0].receive().await.is_some());
        assert_eq!(hello_at(&server, Role::Client).await.1, None);
        let counts = server.listener.counts();
        assert_eq!(counts.refused[usize::from(Refusal::Busy.code()) - 1], 1);
        assert_eq!(counts.displaced, [0, 0, 1, 0]);
    });
}

/// A thousand connections that were silent after the hello locked all others out.
#[test]
fn silent_connections_go_first_and_the_oldest_of_them() {
    local(async {
        let server = with_places(Places {
            clients: 4,
            ..Places::USUAL
        })
        .await;
        server.service.manner.set(Manner::Echo);
        let mut customer = Raw::connect(server.address).await;
        customer.send(&request_bytes(1, b"x", &[])).await;
        assert!(customer.receive().await.is_some());
        let mut strangers = Vec::new();
        for _ in 0..20 {
            let (stranger, refusal) = hello_at(&server, Role::Client).await;
            assert_eq!(refusal, None);
            strangers.push(stranger);
        }
        server.has_connections(4).await;
        customer.send(&request_bytes(2, b"y", &[])).await;
        assert!(customer.receive().await.is_some(), "it was never closed");
        let mut last = strangers.split_off(17);
        for mut gone in strangers {
            assert_eq!(gone.read(&mut [0]).await.ok(), Some(0));
        }
        for kept in &mut last {
            assert!(kept.try_read(&mut [0]).is_err(), "the last ones stay");
        }
        assert_eq!(server.listener.counts().displaced, [0, 0, 17, 0]);
    });
}

/// A server that joins says hello before it is registered, and keeps its connection. It would lose its place to clients later.
#[test]
fn a_server_that_is_registered_after_its_hello_gets_the_place_of_one() {
    local(async {
        let server = with_places(Places {
            clients: 1,
            ..Places::USUAL
        })
        .await;
        server.service.knows_servers.set(false);
        let (joining, refusal) = hello_at(&server, Role::Server).await;
        assert_eq!(refusal, None);
        server.has_connections(1).await;
        assert_eq!(server.listener.counts().open, [0, 0, 1, 0], "as a client");
        server.service.knows_servers.set(true);
        until("it is a server's", || {
            server.listener.counts().open == [0, 0, 0, 1]
        })
        .await;
        for _ in 0..3 {
            assert_eq!(hello_at(&server, Role::Client).await.1, None);
        }
        assert!(joining.try_read(&mut [0]).is_err(), "it stays");
    });
}

/// Callers that connect and say nothing cannot keep out a caller that says hello.
#[test]
fn callers_without_a_hello_make_room_for_others() {
    local(async {
        let server = with_places(Places {
            waiting: 8,
            ..Places::USUAL
        })
        .await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        assert_eq!(hello_at(&server, Role::Client).await.1, None);
        assert_eq!(silent[0].read(&mut [0]).await.ok(), Some(0));
        let counts = server.listener.counts();
        assert!(
            counts.open[0] <= 8 && counts.displaced[0] >= 32,
            "{counts:?}"
        );
    });
}

/// Callers that had begun a frame, and sent a byte of it now and then, kept all others out.
#[test]
fn a_caller_that_goes_on_with_no_frame_makes_room_for_others() {
    local(async {
        let service = TestService::new(Manner::Echo);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.places.clients = 1;
            config.stall_timeout = Duration::from_hours(1);
        })
        .await;
        let (stranger, _) = hello_at(&server, Role::Client).await;
        stranger.writable().await.unwrap();
        stranger
            .try_write(&request_bytes(1, b"x", &[])[..5])
            .unwrap();
        until("it is noticed", || {
            server.listener.traffic().received_bytes == 5
        })
        .await;
        let refused = hello_at(&server, Role::Client).await.1;
        assert_eq!(
            refused,
            Some(Refusal::Busy),
            "the frame may just have begun"
        );
        drop(server);

        let service = TestService::new(Manner::Echo);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.places.clients = 1;
            config.stall_timeout = Duration::from_secs(2);
        })
        .await;
        let mut slow = Raw::connect(server.address).await;
        let bytes = request_bytes(1, b"x", &[vec![0; 10_000]]);
        slow.send(&bytes[..1]).await;
        until("it is noticed", || {
            server.listener.traffic().received_bytes == 1
        })
        .await;
        for byte in bytes[1..].chunks(1) {
            if hello_at(&server, Role::Client).await.1.is_none() {
                break;
            }
            slow.send(byte).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(slow.receive().await, None);
        assert_eq!(server.listener.counts().displaced, [0, 0, 1, 0]);
    });
}

#[test]
fn a_caller_that_trickles_a_frame_is_closed_and_counted() {
    local(async {
        let service = TestService::new(Manner::Echo);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.stall_timeout = Duration::from_millis(900);
        })
        .await;
        let slow = Raw::connect(server.address).await;
        let bytes = request_bytes(1, b"x", &[vec![0; 10_000]]);
        for byte in bytes.chunks(1) {
            if server.listener.counts().slow == 1 {
                return;
            }
            // It is closed while it sends.
            let _ = slow.stream.try_write(byte);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never closed");
    });
}

#[test]
fn a_caller_that_says_nothing_does_not_stay() {
    local(async {
        let service = TestService::new(Manner::Echo);
        let server = TestServer::start_at(loopback(0), service, |config| {
            config.hello_timeout = Duration::from_millis(20);
            config.stall_timeout = Duration::from_secs(1);
        })
        .await;
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        let mut answer = Vec::new();
        silent.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty());

        let mut unfinished = Raw::connect(server.address).await;
        unfinished
            .send(&request_bytes(1, b"x", &[vec![0; 10_000]])[..500])
            .await;
        assert_eq!(unfinished.receive().await, None);
    });
}
