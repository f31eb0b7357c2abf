//! Many calls on one connection, large payloads beside them.

use std::rc::Rc;

use crate::common::*;
use areo_net::{Peer, Status};
use areo_wire::hello::Channel;

#[test]
fn every_one_of_many_calls_gets_its_own_answer() {
    local(async {
        let (server, peer, record) = serving(Manner::Echo).await;
        let sizes = [
            vec![],
            vec![1],
            vec![4096],
            vec![4097, 10, 0],
            vec![100_000],
            vec![1000; 40],
            vec![300_000],
        ];
        let calls = 3000_u64;
        for token in 0..calls {
            let body = token.to_le_bytes();
            let message = message_with(&body, &sizes[token as usize % sizes.len()]);
            // The bound on bytes in flight is real here too: wait for room as a caller would.
            while peer.call(message.clone(), record.clone(), token).is_err() {
                tokio::task::yield_now().await;
            }
        }
        until("all are answered", || record.replies() == calls as usize).await;
        for token in 0..calls {
            let told = record.of(token);
            let [Told::Reply(body, payload)] = &told[..] else {
                panic!("call {token} was told {told:?}");
            };
            assert_eq!(*body, token.to_le_bytes());
            let expected = message_with(&[], &sizes[token as usize % sizes.len()]).payload;
            assert!(
                payload
                    .iter()
                    .eq(expected.iter().map(|segment| &segment.bytes)),
                "payload of {token}"
            );
        }
        assert_eq!(
            server.listener.connections(),
            2,
            "one for calls, one for payloads"
        );
        assert!(
            server.service.batches.get() < calls as usize,
            "frames are handed over many at a time"
        );
        assert_eq!(peer.state().calls, 0);
    });
}

#[test]
fn answers_may_come_in_any_order() {
    local(async {
        let (_server, peer, record) = serving(Manner::Backwards).await;
        for token in 0..500_u64 {
            peer.call(message(token.to_le_bytes()), record.clone(), token)
                .unwrap();
        }
        until("all are answered", || record.replies() == 500).await;
        for token in 0..500_u64 {
            assert_eq!(
                record.of(token),
                [Told::Reply(token.to_le_bytes().to_vec(), vec![])]
            );
        }
    });
}

#[test]
fn small_calls_do_not_wait_for_a_large_payload() {
    local(async {
        // A server that reads nothing on the bulk connection until all small calls are answered.
        let (listener, peer, record) = listening().await;
        peer.call(message_with(b"large", &[32 << 20]), record.clone(), 1000)
            .unwrap();
        let mut bulk = Raw::accept(&listener).await;
        assert_eq!(bulk.hello.channel, Channel::Bulk);
        for token in 0..100 {
            peer.call(message(b"small"), record.clone(), token).unwrap();
        }
        let mut calls = Raw::accept(&listener).await;
        assert_eq!(calls.hello.channel, Channel::Calls);
        for _ in 0..100 {
            let (header, body) = calls.receive().await.unwrap();
            assert_eq!(body, b"small");
            calls.reply(&header, &body).await;
        }
        until("small calls are answered", || record.replies() == 100).await;
        assert_eq!(record.of(1000), []);
        let (header, body) = bulk.receive().await.unwrap();
        assert_eq!(body, b"large");
        bulk.reply(&header, b"done").await;
        assert_eq!(record.reply(1000).await.0, b"done");
    });
}

#[test]
fn a_large_reply_comes_on_the_second_connection_when_it_was_expected() {
    local(async {
        let (_server, peer, record) = serving(Manner::Large(5 << 20)).await;
        let mut get = message(b"get");
        get.expects_bulk = true;
        peer.call(get, record.clone(), 1).unwrap();
        let (_, payload) = record.reply(1).await;
        assert!(payload[0].len() == 5 << 20 && payload[0].iter().all(|&byte| byte == 9));
        assert_eq!(
            (peer.state().status, peer.state().bulk_status),
            (Status::Idle, Status::Connected)
        );
    });
}

#[test]
fn receive_buffers_go_back_to_their_pool() {
    local(async {
        let server = TestServer::start(Manner::Echo).await;
        let config = server.peer_config();
        let peer = Peer::new(config.clone());
        let record = Record::new();
        for token in 0..20 {
            peer.call(message_with(b"", &[1 << 20, 5000]), record.clone(), token)
                .unwrap();
        }
        until("all are answered", || record.replies() == 20).await;
        assert_eq!(config.pool.lent(), 20, "the record holds every reply");
        assert_eq!(
            server.pool.lent(),
            0,
            "the server holds nothing once it has answered"
        );
        assert!(server.pool.idle_bytes() >= 1 << 20);
        drop(record);
        assert_eq!(config.pool.lent(), 0);
        assert!(config.pool.idle_bytes() >= 20 << 20);
    });
}

#[test]
fn a_forgotten_call_hears_nothing_and_the_connection_goes_on() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        let forgotten = peer.call(message(b"a"), record.clone(), 1).unwrap();
        peer.call(message(b"b"), record.clone(), 2).unwrap();
        until("both arrived", || server.service.requests.get() == 2).await;
        peer.forget(forgotten.key);
        peer.forget(forgotten.key);
        assert_eq!(peer.state().calls, 1);
        assert_eq!(
            Rc::strong_count(&record),
            2,
            "the table has let go of the sink"
        );
        server.service.answer_held();
        assert_eq!(record.reply(2).await.0, b"b");
        assert_eq!(record.of(1), []);
    });
}

#[test]
fn notes_go_one_way() {
    local(async {
        let server = TestServer::start(Manner::Echo).await;
        let peer = server.peer();
        assert!(!peer.tell(&message(b"nobody is there yet")));
        peer.connect();
        until("connected", || peer.status() == Status::Connected).await;
        for _ in 0..10 {
            assert!(peer.tell(&message(b"confirm")));
        }
        until("notes arrive", || server.service.notes.get() == 10).await;
        assert_eq!(server.service.requests.get(), 0);
    });
}

#[test]
fn a_call_that_nobody_waits_for_still_shows_that_the_server_hangs() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        let call = peer.call(message(b"x"), record.clone(), 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        peer.forget(call.key);
        let later = std::time::Instant::now() + std::time::Duration::from_mins(1);
        assert!(peer.silent_for(later) > std::time::Duration::from_secs(59));
        server.service.answer_held();
        until("it is heard again", || peer.silent_for(later).is_zero()).await;
    });
}
