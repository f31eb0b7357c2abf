//! Broken and malicious bytes: they cost their own connection, and no other one anything.

use crate::common::*;
use areo_net::Peer;
use areo_wire::frame::{Header, Kind, Limits, Refusal};
use areo_wire::hello::{Channel, Hello, Role, encode_hello};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A hello and frames of every shape.
fn conversation() -> Vec<u8> {
    let mut stream = encode_hello(&Hello::new(Role::Client, Channel::Calls, 7));
    stream.extend(request_bytes(1, b"one", &[]));
    stream.extend(request_bytes(2, b"two", &[vec![2; 30]]));
    stream.extend(frame_bytes(&Header::new(Kind::Ping, 3), b"", &[]));
    stream.extend(request_bytes(4, b"four", &[vec![4; 5000], vec![5; 20]]));
    stream.extend(frame_bytes(&Header::new(Kind::Note, 0), b"five", &[]));
    stream
}

/// Sends `bytes` on a connection of their own and waits until the server has closed it.
async fn inflict(server: &TestServer, bytes: &[u8]) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may close, or reset, before all is written.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
}

async fn check_bystander(peer: &Peer, token: u64) {
    let record = Record::new();
    peer.call(message_with(b"still here", &[6000]), record.clone(), token)
        .unwrap();
    let (body, payload) = record.reply(token).await;
    assert_eq!((&body[..], payload[0].len()), (&b"still here"[..], 6000));
    assert_eq!(
        record.of(token).len(),
        1,
        "the bystander's connection was never lost"
    );
}

#[test]
fn a_connection_cut_anywhere_hurts_nobody_else() {
    local(async {
        let server = TestServer::start(Manner::Echo).await;
        let bystander = server.peer();
        let whole = conversation();
        for length in 0..whole.len() {
            inflict(&server, &whole[..length]).await;
            if length % 50 == 0 {
                check_bystander(&bystander, length as u64).await;
            }
        }
        check_bystander(&bystander, 0).await;
        server.has_connections(1).await;
        assert_eq!(server.pool.lent(), 0);
    });
}

#[test]
fn a_flipped_bit_anywhere_hurts_nobody_else() {
    local(async {
        let server = TestServer::start(Manner::Echo).await;
        let bystander = server.peer();
        let whole = conversation();
        // Every bit of heads and bodies, every 97th of the long payload.
        let hello_bytes = encode_hello(&Hello::new(Role::Client, Channel::Calls, 7)).len();
        let bits = (0..whole.len() * 8).filter(|bit| bit / 8 < hello_bytes + 260 || bit % 97 == 0);
        for (count, bit) in bits.enumerate() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            inflict(&server, &flipped).await;
            if count % 200 == 0 {
                check_bystander(&bystander, count as u64).await;
            }
        }
        check_bystander(&bystander, 0).await;
        server.has_connections(1).await;
        assert_eq!(server.pool.lent(), 0);
    });
}

#[test]
fn strangers_and_oversized_frames_are_closed() {
    local(async {
        let service = TestService::new(Manner::Echo);
        let limits = Limits {
            max_body_bytes: 1000,
            max_payload_bytes: 10_000,
            max_segments: 3,
        };
        let server =
            TestServer::start_at(loopback(0), service, |config| config.limits = limits).await;
        let bystander = server.peer();
        for stranger in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc],
            &[0; 1000],
        ] {
            inflict(&server, stranger).await;
        }
        for oversized in [
            request_bytes(1, &[0; 1001], &[]),
            request_bytes(1, b"", &[vec![0; 10_001]]),
            request_bytes(1, b"", &[vec![], vec![], vec![], vec![]]),
        ] {
            let mut raw = Raw::connect(server.address).await;
            raw.send(&request_bytes(7, b"fine", &[vec![1; 10_000]]))
                .await;
            assert_eq!(raw.receive().await.unwrap().1, b"fine");
            // Only the header: it is enough to be refused by.
            raw.send(&oversized[..40]).await;
            assert_eq!(raw.receive().await, None);
        }
        check_bystander(&bystander, 1).await;
    });
}

#[test]
fn a_damaged_payload_is_refused_and_its_connection_lives_on() {
    local(async {
        let server = TestServer::start(Manner::Echo).await;
        let mut raw = Raw::connect(server.address).await;
        for bytes in [100, 100_000] {
            let mut damaged = request_bytes(1, b"body", &[vec![1; 10], vec![2; bytes]]);
            *damaged.last_mut().unwrap() ^= 0x10;
            raw.send(&damaged).await;
            let (header, _) = raw.receive().await.unwrap();
            assert_eq!(
                (header.call_id, header.refusal),
                (1, Some(Refusal::Damaged))
            );
            raw.send(&request_bytes(2, b"intact", &[vec![2; bytes]]))
                .await;
            assert_eq!(raw.receive().await.unwrap().1, b"intact");
        }
        assert_eq!(
            server.service.requests.get(),
            2,
            "the damaged ones were never shown to the service"
        );
    });
}

#[test]
fn a_damaged_reply_is_told_as_damaged() {
    local(async {
        let (listener, peer, record) = listening().await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        let mut server = Raw::accept(&listener).await;
        let (header, _) = server.receive().await.unwrap();
        let mut reply = frame_bytes(
            &Header::new(Kind::Reply, header.call_id),
            b"",
            &[vec![3; 9000]],
        );
        *reply.last_mut().unwrap() ^= 1;
        server.send(&reply).await;
        record.refused(1, Refusal::Damaged).await;
        assert_eq!(peer.state().calls, 0);
    });
}

#[test]
fn a_server_that_sends_nonsense_is_left_and_its_calls_are_kept() {
    local(async {
        let (listener, peer, record) = listening().await;
        peer.call(message(b"x"), record.clone(), 1).unwrap();
        let mut server = Raw::accept(&listener).await;
        server.receive().await.unwrap();
        server.send(&[0x55; 64]).await;
        assert_eq!(server.receive().await, None);
        let mut server = Raw::accept(&listener).await;
        let (header, _) = server.receive().await.unwrap();
        // Answers to calls that were never made, and frames that a server has no business sending.
        server
            .send(&frame_bytes(&Header::new(Kind::Reply, u64::MAX), b"", &[]))
            .await;
        server
            .send(&frame_bytes(
                &Header::refusal(12345, Refusal::Busy),
                b"",
                &[],
            ))
            .await;
        server.send(&request_bytes(1, b"?", &[])).await;
        server.reply(&header, b"done").await;
        assert_eq!(record.reply(1).await.0, b"done");
        assert_eq!(
            record.of(1),
            [Told::Retrying, Told::Reply(b"done".to_vec(), vec![])]
        );
    });
}
