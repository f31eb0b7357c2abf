//! Server processes for a bench.

use std::process::Command;

use areo_bench::cluster::{Cluster, Program, loopback_places, product};
use areo_client::{Dap, Domain, DomainOptions};

/// Servers that serve, started with these variables of the environment, and a domain on all of them.
pub(crate) async fn servers(
    (servers, dap): (usize, Dap),
    memory: bool,
    variables: Vec<(&'static str, String)>,
) -> (Cluster, Domain) {
    let path = product(None).expect("the product is built");
    let program = Program::new(move || {
        let mut command = Command::new(&path);
        command.envs(variables.iter().cloned());
        command
    });
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
