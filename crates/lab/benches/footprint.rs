//! The cost of many small objects for a server: resident memory, what it hears and computes while no client does anything, and the
//! time from starting to serving.
//!
//! `cargo bench -p areo-lab --bench footprint [-- OBJECTS] [casss|casgc|absent]`, by default 100 000 objects of 100 bytes, durable, [5,3], `ec`.
//! With the word `absent` it removes so many objects that were never written from a domain of the kind `conditional`, [3,1], and looks at memory and disk until
//! what that left is gone.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use areo_bench::cluster::Cluster;
use areo_client::{Dap, Domain};
use bytes::Bytes;
use common::servers;
use tokio::time::sleep;

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

const LANES: usize = 256;
const VALUE_BYTES: usize = 100;
/// The time that servers are looked at while they are idle, each of three times.
const IDLE: Duration = Duration::from_secs(20);
/// The metric of bytes that clients and other servers have sent to a server.
const RECEIVED: &str = "areo_server_received_bytes_total";

async fn fill(domain: &Domain, objects: usize) {
    let lane = |lane: usize| {
        let domain = domain.clone();
        tokio::spawn(async move {
            let value = Bytes::from(vec![7; VALUE_BYTES]);
            for i in (lane..objects).step_by(LANES) {
                let key = format!("folder-{:03}/object-{i:08}", i % 1000);
                domain
                    .put(&key, value.clone())
                    .await
                    .expect("a healthy cluster");
            }
        })
    };
    let lanes: Vec<_> = (0..LANES).map(lane).collect();
    for lane in lanes {
        lane.await.expect("lanes do not panic");
    }
}

fn main() {
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let objects: usize = given.unwrap_or(100_000);
    let is_given = |word: &str| std::env::args().any(|arg| arg == word);
    let dap = match (is_given("casss"), is_given("casgc")) {
        (true, _) => Dap::CasSs { k: 3 },
        (_, true) => Dap::CasGc { k: 3 },
        _ => Dap::Ec { k: 3 },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match is_given("absent") {
        true => runtime.block_on(absent(objects)),
        false => runtime.block_on(measure(objects, dap)),
    }
}

/// Bytes that the first server has received.
async fn received(cluster: &Cluster) -> f64 {
    loop {
        if let Some(bytes) = cluster.metric(0, RECEIVED).await {
            return bytes;
        }
    }
}

async fn idle(cluster: &Cluster) {
    for _ in 0..3 {
        let (bytes, cpu, begun) = (received(cluster).await, cluster.cpu(), Instant::now());
        sleep(IDLE).await;
        let bytes = received(cluster).await - bytes;
        let seconds = begun.elapsed().as_secs_f64();
        let cpu = cluster.cpu().saturating_sub(cpu).as_secs_f64() * 1e3 / 5.0;
        println!(
            "idle: a server receives {:.0} B/s and computes {:.1} ms/s",
            bytes / seconds,
            cpu / seconds
        );
    }
}

/// Bytes of a name that was never written.
const ABSENT_NAME_BYTES: usize = 900;
/// The time for which servers are observed after the last removal.
const LOOK: Duration = Duration::from_mins(6);

/// Removes objects that were never written, and shows what each server keeps of that.
async fn absent(names: usize) {
    let (cluster, domain) = servers((3, Dap::Conditional { k: 1 }), false, Vec::new()).await;
    let show = |what: &str| {
        let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        let resident: Vec<String> = cluster.resident().into_iter().map(mib).collect();
        let disk: Vec<String> = (0..3)
            .map(|it| mib(disk_bytes(&cluster.data(it))))
            .collect();
        println!(
            "{what}: resident MiB {}; on disk MiB {}",
            resident.join(" "),
            disk.join(" ")
        );
    };
    show("before");
    let began = Instant::now();
    let lane = |lane: usize| {
        let domain = domain.clone();
        tokio::spawn(async move {
            for i in (lane..names).step_by(LANES) {
                let key = format!("{i:0>ABSENT_NAME_BYTES$}");
                let deleted = domain.delete(&key).await;
                assert!(deleted.is_err(), "it was never written");
            }
        })
    };
    let lanes: Vec<_> = (0..LANES).map(lane).collect();
    for lane in lanes {
        lane.await.expect("lanes do not panic");
    }
    let seconds = began.elapsed().as_secs_f64();
    show(&format!(
        "{names} removals of absent names in {seconds:.1} s"
    ));
    let ended = Instant::now();
    while ended.elapsed() < LOOK {
        sleep(Duration::from_secs(30)).await;
        show(&format!("{:.0} s later", ended.elapsed().as_secs_f64()));
    }
}

/// Bytes of all files in a folder.
fn disk_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

async fn measure(objects: usize, dap: Dap) {
    let (mut cluster, domain) = servers((5, dap), false, Vec::new()).await;
    fill(&domain, objects).await;
    idle(&cluster).await;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let resident: Vec<String> = cluster
        .resident()
        .iter()
        .map(|bytes| format!("{:.1}", mib(*bytes)))
        .collect();
    println!(
        "{objects} objects of {VALUE_BYTES} bytes: resident MiB of each server: {}",
        resident.join(" ")
    );
    for round in 1..=3 {
        cluster.kill(0).await;
        let started = Instant::now();
        cluster.start(0).expect("the binary starts");
        assert!(
            cluster.ready(0, Duration::from_mins(2)).await,
            "it comes back"
        );
        let opened = started.elapsed();
        let resident = mib(cluster.resident()[0]);
        println!(
            "start {round} after kill -9: serving after {:.3} s, resident {resident:.1} MiB",
            opened.as_secs_f64()
        );
    }
}
