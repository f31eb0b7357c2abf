use super::*;
use areo_wire::hello::{Channel, Hello, Role, encode_hello};
use std::future::Future;
use tokio::task::LocalSet;

const ALL: u64 = u64::MAX;

fn rule(effect: Effect) -> Rule {
    Rule {
        servers: ALL,
        callers: ALL,
        direction: None,
        effect,
    }
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// An echoing server behind a proxy; where the proxy listens.
async fn echo() -> (Proxy, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let back = listener.local_addr().unwrap().to_string();
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            spawn_local(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = free.local_addr().unwrap().to_string();
    drop(free);
    let proxy = Proxy::start(&[(front.clone(), back)]).await.unwrap();
    (proxy, front)
}

/// Connects as a caller with this id; the echo of its hello has come back.
async fn caller(front: &str, own_id: u128) -> TcpStream {
    let mut stream = TcpStream::connect(front).await.unwrap();
    let hello = encode_hello(&Hello::new(Role::Client, Channel::Calls, own_id));
    stream.write_all(&hello).await.unwrap();
    let mut echoed = vec![0; hello.len()];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, hello);
    stream
}

async fn exchange(stream: &mut TcpStream, sent: &[u8]) {
    let mut echoed = vec![0; sent.len()];
    let (mut from, mut to) = stream.split();
    let (read, written) = tokio::join!(from.read_exact(&mut echoed), to.write_all(sent));
    read.unwrap();
    written.unwrap();
    assert!(echoed == sent, "the same bytes come back");
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 100]).await, Ok(0) | Err(_))
}

/// Lets everything that can happen by itself happen.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[test]
fn bytes_pass_unchanged_where_no_rule_applies() {
    local(async {
        let (proxy, front) = echo().await;
        let other = proxy.apply(Rule {
            callers: 1 << 5,
            ..rule(Effect::Close)
        });
        let mut stream = caller(&front, 4).await;
        let sent: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7) as u8).collect();
        exchange(&mut stream, &sent).await;
        assert_eq!(other.touched(), 0);
    });
}

/// The first bytes of an encrypted connection say nothing of a length that the proxy could wait for.
#[test]
fn an_encrypted_connection_passes_and_is_a_caller_of_its_own() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = TcpStream::connect(&front).await.unwrap();
        let begins = [0x16, 3, 1, 0, 0xe5, 1];
        exchange(&mut stream, &begins).await;
        exchange(&mut stream, b"and goes on").await;
        let group = stream.local_addr().unwrap().port() % 16;
        let of_others = proxy.apply(Rule {
            callers: !(1 << group),
            ..rule(Effect::Close)
        });
        exchange(&mut stream, b"beside others").await;
        assert_eq!(of_others.touched(), 0);
        proxy.apply(Rule {
            callers: 1 << group,
            ..rule(Effect::Close)
        });
        assert!(is_closed(&mut stream).await);
    });
}

#[test]
fn held_bytes_wait_until_the_rule_is_lifted() {
    for direction in [Direction::ToServer, Direction::ToCaller] {
        local(async {
            let (proxy, front) = echo().await;
            let mut stream = caller(&front, 1).await;
            let active = proxy.apply(Rule {
                direction: Some(direction),
                ..rule(Effect::Hold)
            });
            stream.write_all(b"held").await.unwrap();
            settle().await;
            assert!(stream.try_read(&mut [0; 4]).is_err(), "{direction:?}");
            assert_eq!(active.touched(), 1);
            proxy.lift(&active);
            let mut echoed = [0; 4];
            stream.read_exact(&mut echoed).await.unwrap();
            assert_eq!(&echoed, b"held");
            exchange(&mut stream, b"free").await;
        });
    }
}

#[test]
fn links_are_told_apart_by_caller() {
    local(async {
        let (proxy, front) = echo().await;
        let (mut held, mut free) = (caller(&front, 3).await, caller(&front, 4).await);
        let active = proxy.apply(Rule {
            callers: 1 << 3,
            ..rule(Effect::Hold)
        });
        held.write_all(b"held").await.unwrap();
        exchange(&mut free, b"free").await;
        settle().await;
        assert!(held.try_read(&mut [0; 4]).is_err());
        proxy.lift(&active);
        assert!(!is_closed(&mut held).await);
    });
}

#[test]
fn closed_links_stay_closed_until_the_rule_is_lifted() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        let active = proxy.apply(rule(Effect::Close));
        assert!(is_closed(&mut stream).await);
        let mut again = TcpStream::connect(&front).await.unwrap();
        let hello = encode_hello(&Hello::new(Role::Client, Channel::Calls, 1));
        again.write_all(&hello).await.unwrap();
        assert!(is_closed(&mut again).await);
        assert!(active.touched() >= 2);
        proxy.lift(&active);
        exchange(&mut caller(&front, 1).await, b"free").await;
    });
}

#[test]
fn a_reset_cuts_what_was_sent_short() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        let active = proxy.apply(Rule {
            direction: Some(Direction::ToCaller),
            ..rule(Effect::Reset)
        });
        stream.write_all(&[7; 1000]).await.unwrap();
        let mut echoed = Vec::new();
        let ended = stream.read_to_end(&mut echoed).await;
        assert!(ended.is_err(), "reset, not ended: {ended:?}");
        assert!(echoed.len() < 1000, "{} bytes", echoed.len());
        assert_eq!(active.touched(), 1);
    });
}

#[test]
fn slow_and_delayed_bytes_arrive_whole() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        let delay = proxy.apply(rule(Effect::Delay(Duration::from_millis(5))));
        let slow = proxy.apply(rule(Effect::Slow(1 << 20)));
        let begun = std::time::Instant::now();
        exchange(&mut stream, &vec![3; 50_000]).await;
        // A lower bound, which no load can break: two ways at 1 MiB/s and 5 ms.
        assert!(begun.elapsed() >= Duration::from_millis(10 + 47));
        assert!(delay.touched() >= 2 && slow.touched() >= 2);
    });
}

#[test]
fn pieces_that_are_far_apart_are_on_their_way_at_the_same_time() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        let far = proxy.apply(Rule {
            direction: Some(Direction::ToServer),
            ..rule(Effect::Latency(Duration::from_hours(1)))
        });
        // One after the other: each is taken although none before it has arrived.
        for (number, byte) in (1..).zip(b"late") {
            stream.write_all(&[*byte]).await.unwrap();
            while far.touched() < number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(stream.try_read(&mut [0; 4]).is_err());
    });
}

#[test]
fn what_is_late_or_stalled_arrives_whole() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        let (one_in, time) = (1, Duration::from_millis(10));
        let late = proxy.apply(rule(Effect::Latency(time)));
        let stall = proxy.apply(rule(Effect::Stall { one_in, time }));
        let begun = std::time::Instant::now();
        exchange(&mut stream, &vec![3; 100_000]).await;
        // A lower bound, which no load can break: both of them, both ways.
        assert!(begun.elapsed() >= 4 * time);
        assert_eq!(late.touched(), stall.touched());
        proxy.lift(&late);
        proxy.lift(&stall);
        exchange(&mut stream, b"soon").await;
    });
}

#[test]
fn clients_are_told_apart_by_where_they_came_from() {
    local(async {
        let (proxy, front) = echo().await;
        proxy.newcomers_are_at(0);
        let mut here = caller(&front, 8).await;
        proxy.newcomers_are_at(1);
        let mut there = caller(&front, 9).await;
        // The client of before, from its place of before.
        let mut again = caller(&front, 8).await;
        let hold = proxy.apply(Rule {
            callers: 1 << 1,
            ..rule(Effect::Hold)
        });
        there.write_all(b"held").await.unwrap();
        exchange(&mut here, b"free").await;
        exchange(&mut again, b"free").await;
        settle().await;
        assert!(there.try_read(&mut [0; 4]).is_err());
        proxy.lift(&hold);
        let mut echoed = [0; 4];
        there.read_exact(&mut echoed).await.unwrap();
    });
}

#[test]
fn connections_end_with_their_server_and_with_the_proxy() {
    local(async {
        let (proxy, front) = echo().await;
        let mut stream = caller(&front, 1).await;
        drop(proxy);
        assert!(is_closed(&mut stream).await);
        settle().await;
        assert!(TcpStream::connect(&front).await.is_err());
    });
}
