//! Five server processes for a bench.

#![allow(dead_code, reason = "each bench uses a part of this")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use areo_client::{Client, ConnectOptions, Dap, Domain, DomainOptions};
use areo_server::{NewServer, initialise_cluster};

const SERVERS: usize = 5;

/// Five servers in a folder of their own; killed when this is dropped.
pub(crate) struct Cluster {
    children: Vec<Child>,
    address: String,
    durability: String,
    servers: Vec<NewServer>,
    seeds: Vec<String>,
    ports: Vec<u16>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    pub(crate) fn start(durability: &str) -> Cluster {
        let folder = tempfile::tempdir().expect("a folder for the servers");
        let memory = durability == "memory";
        let data = |i: usize| folder.path().join(format!("s{i}"));
        let servers = (1..=SERVERS).map(|i| NewServer {
            data: data(i),
            name: format!("s{i}"),
        });
        let servers: Vec<NewServer> = servers.collect();
        initialise_cluster(&servers, memory).expect("a new folder");
        let ports: Vec<u16> = free_ports(2 * SERVERS);
        let seeds: Vec<String> = ports[..SERVERS]
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let address = seeds.join(",");
        let durability = durability.to_owned();
        let mut cluster = Cluster {
            children: Vec::new(),
            address,
            durability,
            servers,
            seeds,
            ports,
            _folder: folder,
        };
        cluster.children = (0..SERVERS).map(|i| cluster.server(i)).collect();
        cluster
    }

    fn server(&self, i: usize) -> Child {
        let (data, admin) = (&self.servers[i].data, self.ports[SERVERS + i]);
        server(data, &self.durability, &self.seeds, &self.seeds[i], admin)
    }

    /// Kills the first server and starts it again; returns how long it took until it was ready.
    pub(crate) fn restart_first(&mut self) -> Duration {
        self.children[0].kill().expect("it runs");
        self.children[0].wait().expect("it was killed");
        let started = Instant::now();
        self.children[0] = self.server(0);
        while !is_ready(self.ports[SERVERS]) {
            assert!(started.elapsed() < Duration::from_mins(2), "it comes back");
            std::thread::sleep(Duration::from_millis(5));
        }
        started.elapsed()
    }

    /// Resident memory of each server, in bytes.
    pub(crate) fn resident(&self) -> Vec<u64> {
        self.children
            .iter()
            .map(|child| resident_of(child.id()))
            .collect()
    }

    /// User and system time of all servers so far.
    pub(crate) fn cpu(&self) -> Duration {
        self.children.iter().map(|child| cpu_of(child.id())).sum()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that is gone already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn server(data: &Path, durability: &str, seeds: &[String], listen: &str, admin: u16) -> Child {
    Command::new(env!("CARGO_BIN_EXE_areo"))
        .args([
            "server",
            "--durability",
            durability,
            "--listen",
            listen,
            "--data",
        ])
        .arg(data)
        .args([
            "--admin",
            &format!("127.0.0.1:{admin}"),
            "--cluster",
            &seeds.join(","),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    bound
        .iter()
        .map(|listener| listener.local_addr().expect("bound").port())
        .collect()
}

/// User and system time of another process, from `/proc`.
fn cpu_of(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("the name is in brackets")
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 10)
}

/// Whether the server with this admin port serves.
fn is_ready(admin: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", admin)).ok()?;
        stream
            .write_all(b"GET /health/ready HTTP/1.0\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}

fn resident_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("it has memory");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib << 10
}

/// A domain at [5,3], as soon as the cluster serves.
pub(crate) async fn connect(cluster: &Cluster) -> Domain {
    let options = DomainOptions {
        dap: Dap::Ec { k: 3 },
        ..DomainOptions::default()
    };
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(client) = Client::connect(ConnectOptions::from(cluster.address.as_str())).await
            && let Ok(domain) = client.create_domain("bench", options.clone()).await
        {
            return domain;
        }
        assert!(Instant::now() < until, "the cluster serves within 20 s");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
