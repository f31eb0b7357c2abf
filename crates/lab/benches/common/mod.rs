//! Server processes for a bench.

#![allow(dead_code, reason = "every bench uses a part of it")]

use std::process::Command;
use std::time::Duration;

use areo_bench::cluster::{Cluster, Program, loopback_places, product};
use areo_client::{Dap, Domain, DomainOptions};

/// Five servers that serve, and a domain at [5,3].
pub(crate) async fn five_servers(memory: bool) -> (Cluster, Domain) {
    servers(5, Dap::Ec { k: 3 }, memory).await
}

/// Servers that serve, and a domain on all of them.
pub(crate) async fn servers(servers: usize, dap: Dap, memory: bool) -> (Cluster, Domain) {
    let path = product(None).expect("the product is built");
    let program = Program::new(move || Command::new(&path));
    let places = loopback_places(servers, false);
    let cluster = Cluster::make(&program, places, &std::env::temp_dir(), memory);
    let mut cluster = cluster.expect("there is room for the servers");
    cluster.start_all().expect("the binary starts");
    let options = DomainOptions {
        dap,
        ..DomainOptions::default()
    };
    let domain = cluster.domain("bench", options).await;
    (cluster, domain.expect("a healthy cluster serves"))
}

/// User and system time of this process.
pub(crate) fn own_cpu() -> Duration {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        clock.tv_sec.unsigned_abs(),
        clock.tv_nsec.unsigned_abs() as u32,
    )
}

/// Median, least and largest.
pub(crate) fn spread(mut samples: Vec<f64>) -> (f64, f64, f64) {
    samples.sort_by(f64::total_cmp);
    let last = samples.len() - 1;
    (samples[samples.len() / 2], samples[0], samples[last])
}
