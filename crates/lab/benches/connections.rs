//! The cost of clients that come and go, with keys and without.
//!
//! `cargo bench -p areo-lab --bench connections [-- SECONDS]`: three servers in memory, [3,1], and one object of 1 KiB. Clients connect to all three, read the
//! object and go, some at a time. Five rounds of so many seconds each (by default three), by turns without and with keys, which is TLS 1.3 and
//! the proof of a key at each server. Printed are clients a second and the CPU time of servers and clients for each client: the median of the rounds, with minimum
//! and maximum.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_bench::cluster::Cluster;
use areo_bench::system::cpu_of_this;
use areo_client::{Client, Dap, Domain};
use bytes::Bytes;
use common::{servers, servers_with_keys};
use tokio::task::{LocalSet, spawn_local};

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

const ROUNDS: usize = 5;
/// Clients that come at the same time.
const AT_ONCE: [usize; 2] = [1, 16];
const KEY: &str = "object";
const TIMEOUT: Duration = Duration::from_secs(10);

/// The figures of one round.
struct Round {
    clients_per_second: f64,
    servers_us: f64,
    client_us: f64,
}

fn main() {
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let time = Duration::from_secs(given.unwrap_or(3));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, measure(time));
}

async fn measure(time: Duration) {
    let shape = (3, Dap::Abd);
    let plain = servers(shape, true, Vec::new()).await;
    let with_keys = servers_with_keys(shape, true).await;
    for (_, domain) in [&plain, &with_keys] {
        put(domain).await;
    }
    for at_once in AT_ONCE {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            without.push(round(&plain.0, at_once, time).await);
            with.push(round(&with_keys.0, at_once, time).await);
        }
        for (what, rounds) in [("without keys", &without), ("with keys", &with)] {
            let figure = |of: fn(&Round) -> f64| spread(rounds.iter().map(of).collect());
            println!(
                "{at_once} at a time, {what}: {} clients a second; CPU a client, µs: servers {}, client {}",
                figure(|round| round.clients_per_second),
                figure(|round| round.servers_us),
                figure(|round| round.client_us),
            );
        }
    }
}

async fn put(domain: &Domain) {
    let value = Bytes::from(vec![7; 1024]);
    let put = domain.put(KEY, value).await;
    put.expect("a healthy cluster");
}

/// Lets clients come and go.
async fn round(cluster: &Cluster, at_once: usize, time: Duration) -> Round {
    let (begun, servers, own) = (Instant::now(), cluster.cpu(), cpu_of_this());
    let come = Rc::new(Cell::new(0_u32));
    let lane = || {
        let (come, options) = (come.clone(), cluster.connect(TIMEOUT));
        spawn_local(async move {
            while begun.elapsed() < time {
                let client = Client::connect(options.clone()).await;
                let client = client.expect("a healthy cluster");
                let domain = client.domain("bench").await.expect("it was created");
                domain.get(KEY).await.expect("it was put");
                come.set(come.get() + 1);
            }
        })
    };
    let lanes: Vec<_> = (0..at_once).map(|_| lane()).collect();
    for lane in lanes {
        lane.await.expect("lanes do not panic");
    }
    let (took, come) = (begun.elapsed(), f64::from(come.get()));
    let each =
        |before: Duration, now: Duration| now.saturating_sub(before).as_secs_f64() * 1e6 / come;
    Round {
        clients_per_second: come / took.as_secs_f64(),
        servers_us: each(servers, cluster.cpu()),
        client_us: each(own, cpu_of_this()),
    }
}

/// The median, with minimum and maximum.
fn spread(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    let (least, most) = (of[0], of[of.len() - 1]);
    format!("{:.0} ({least:.0} to {most:.0})", of[of.len() / 2])
}
