//! Five server processes for a bench.

use std::process::Command;
use std::rc::Rc;

use areo_bench::cluster::{Cluster, Program, loopback_places};
use areo_client::{Dap, Domain, DomainOptions};

const SERVERS: usize = 5;

/// Five servers that serve, and a domain at [5,3].
pub(crate) async fn five_servers(memory: bool) -> (Cluster, Domain) {
    let program: Program = Rc::new(|| Command::new(env!("CARGO_BIN_EXE_areo")));
    let places = loopback_places(SERVERS, false);
    let cluster = Cluster::make(&program, places, &std::env::temp_dir(), memory);
    let mut cluster = cluster.expect("there is room for the servers");
    cluster.start_all().expect("the binary starts");
    let options = DomainOptions {
        dap: Dap::Ec { k: 3 },
        ..DomainOptions::default()
    };
    let domain = cluster.domain("bench", options).await;
    (cluster, domain.expect("a healthy cluster serves"))
}
