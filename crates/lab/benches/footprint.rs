//! What many small objects cost a server: resident memory, and the time from starting to serving.
//!
//! `cargo bench -p areo-lab --bench footprint [-- OBJECTS]`, by default 100 000 objects of 100 bytes, durable, [5,3].

mod common;

use std::time::{Duration, Instant};

use areo_client::{Domain, PutOptions};
use bytes::Bytes;
use common::five_servers;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LANES: usize = 256;
const VALUE_BYTES: usize = 100;

async fn fill(domain: &Domain, objects: usize) {
    let lane = |lane: usize| {
        let domain = domain.clone();
        tokio::spawn(async move {
            let value = Bytes::from(vec![7; VALUE_BYTES]);
            for i in (lane..objects).step_by(LANES) {
                let key = format!("folder-{:03}/object-{i:08}", i % 1000);
                domain
                    .put(&key, value.clone(), PutOptions::default())
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure(objects));
}

async fn measure(objects: usize) {
    let (mut cluster, domain) = five_servers(false).await;
    fill(&domain, objects).await;
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
