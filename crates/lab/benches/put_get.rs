//! What a put and a get cost: CPU time of the client and of five server processes together, per operation and per byte.
//!
//! `cargo bench -p areo-lab --bench put_get [-- memory|fsync]`. Each figure is the median of five rounds with minimum and
//! maximum; the rounds of all cases are run in turn. Servers are processes of their own, on loopback, [5,3]. Objects are
//! overwritten: 64 for each lane of small ones, 4 of large ones, so that what is measured is not the first touch of memory.

mod common;

use std::time::{Duration, Instant};

use areo_bench::cluster::Cluster;
use areo_client::{Domain, PutOptions};
use bytes::Bytes;
use common::{five_servers, own_cpu, spread};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

/// One thing that is measured.
struct Case {
    put: bool,
    bytes: usize,
    in_flight: usize,
    operations: usize,
    samples: Vec<Sample>,
}

/// One round of it.
#[derive(Clone, Copy)]
struct Sample {
    wall: Duration,
    client_cpu: Duration,
    servers_cpu: Duration,
}

fn cases(fsync: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |bytes, in_flight, operations| {
        for put in [true, false] {
            let samples = Vec::new();
            cases.push(Case {
                put,
                bytes,
                in_flight,
                operations,
                samples,
            });
        }
    };
    let few = if fsync { 4 } else { 1 };
    case(1 << 10, 1, 4_000 / few);
    case(1 << 10, 16, 24_000 / few);
    case(1 << 10, 64, 48_000 / few);
    case(1 << 20, 1, 160);
    case(1 << 20, 4, 240);
    case(16 << 20, 1, 16);
    cases
}

/// Runs the operations of a case, `in_flight` at a time, over as many keys.
async fn run(case: &Case, domain: &Domain, value: &Bytes, operations: usize) {
    let each = (operations / case.in_flight).max(1);
    let task = |lane: usize| {
        let (domain, value, put) = (domain.clone(), value.slice(..case.bytes), case.put);
        let keys = if case.bytes < 1 << 20 { 64 } else { 4 };
        tokio::spawn(async move {
            for i in 0..each {
                let key = format!("{}/{lane}/{}", value.len(), i % keys);
                if put {
                    domain
                        .put(&key, value.clone(), PutOptions::default())
                        .await
                        .expect("a healthy cluster");
                } else {
                    let object = domain.get(&key).await.expect("it was put before");
                    assert_eq!(object.length, value.len() as u64);
                }
            }
        })
    };
    let tasks: Vec<_> = (0..case.in_flight).map(task).collect();
    for task in tasks {
        task.await.expect("tasks do not panic");
    }
}

async fn measure(case: &Case, cluster: &Cluster, domain: &Domain, value: &Bytes) -> Sample {
    let (client_cpu, servers_cpu, started) = (own_cpu(), cluster.cpu(), Instant::now());
    run(case, domain, value, case.operations).await;
    Sample {
        wall: started.elapsed(),
        client_cpu: own_cpu().saturating_sub(client_cpu),
        servers_cpu: cluster.cpu().saturating_sub(servers_cpu),
    }
}

fn print(case: &Case, durability: &str) {
    let operations = ((case.operations / case.in_flight).max(1) * case.in_flight) as f64;
    let per_operation = |time: fn(&Sample) -> Duration| {
        let samples = case.samples.iter();
        spread(
            samples
                .map(|sample| time(sample).as_secs_f64() * 1e6 / operations)
                .collect(),
        )
    };
    let (cpu, least, most) = per_operation(|sample| sample.client_cpu + sample.servers_cpu);
    let (client, ..) = per_operation(|sample| sample.client_cpu);
    let (servers, ..) = per_operation(|sample| sample.servers_cpu);
    let (wall, ..) = per_operation(|sample| sample.wall);
    println!(
        "{durability:7} {:4} {:>9} B {:3} in flight: CPU {cpu:9.1} us/op ({least:.1} to {most:.1}; client {client:.1}, \
         servers {servers:.1}) = {:7.3} ns/B, wall {wall:9.1} us/op",
        if case.put { "put" } else { "get" },
        case.bytes,
        case.in_flight,
        cpu * 1e3 / case.bytes as f64,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let value: Bytes = (0..16 << 20)
        .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for durability in ["memory", "fsync"] {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == durability) {
            continue;
        }
        runtime.block_on(async {
            let (cluster, domain) = five_servers(durability == "memory").await;
            let mut cases = cases(durability == "fsync");
            for case in cases.iter().filter(|case| case.put) {
                // Every key that a get will read; also the warm-up.
                run(
                    case,
                    &domain,
                    &value,
                    (64 * case.in_flight).min(case.operations.max(64)),
                )
                .await;
            }
            for _ in 0..ROUNDS {
                for case in &mut cases {
                    let sample = measure(case, &cluster, &domain, &value).await;
                    case.samples.push(sample);
                }
            }
            for case in &cases {
                print(case, durability);
            }
        });
    }
}
