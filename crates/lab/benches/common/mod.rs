//! Server processes for a bench.

use std::process::Command;

use areo_bench::cluster::{Cluster, Program, loopback_places, product};
use areo_client::{Dap, Domain, DomainOptions};

/// Servers that serve, started with these variables of the environment, and a domain on all of them.
#[allow(dead_code, reason = "not each bench sets variables")]
pub(crate) async fn servers(
    shape: (usize, Dap),
    memory: bool,
    variables: Vec<(&'static str, String)>,
) -> (Cluster, Domain) {
    start(program(variables), shape, memory).await
}

/// Servers of a cluster with keys that serve, and a domain on all of them.
#[allow(dead_code, reason = "not each bench has keys")]
pub(crate) async fn servers_with_keys(shape: (usize, Dap), memory: bool) -> (Cluster, Domain) {
    let program = Program {
        has_keys: true,
        ..program(Vec::new())
    };
    start(program, shape, memory).await
}

fn program(variables: Vec<(&'static str, String)>) -> Program {
    let path = product(None).expect("the product is built");
    Program::new(move || {
        let mut command = Command::new(&path);
        command.envs(variables.iter().cloned());
        command
    })
}

async fn start(program: Program, (servers, dap): (usize, Dap), memory: bool) -> (Cluster, Domain) {
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
