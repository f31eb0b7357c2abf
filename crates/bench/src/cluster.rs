//! Server processes in a directory of their own.

mod process;
mod product;

use crate::error::{RunError, system};
use crate::system;
use areo_client::{Access, Client, ConnectOptions, DEFAULT_TIMEOUT, Domain, DomainOptions};
use areo_server::{NewCluster, NewServer, initialise_cluster};
use areo_trust::key::AccessKey;
use process::Process;
use rustix::process::Signal;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

pub use product::product;

/// The program under measurement: the command that starts its servers, and the options of its clients.
#[derive(Clone)]
pub struct Program {
    /// Makes the command that runs the program `areo`, with nothing of its caller's `AREO_*` variables.
    pub server: Rc<dyn Fn() -> Command>,
    /// Options of its clients; each cluster sets addresses and timeout.
    pub connect: ConnectOptions,
    /// Its clusters have keys, so that all connections are encrypted.
    pub has_keys: bool,
}

impl Program {
    /// A program whose clients work with nothing of their own.
    pub fn new(server: impl Fn() -> Command + 'static) -> Program {
        Program {
            server: Rc::new(server),
            connect: ConnectOptions::default(),
            has_keys: false,
        }
    }
}

const PORT: u16 = 7400;
const ADMIN_PORT: u16 = 7490;
/// Addresses of one cluster on loopback: those of servers from 1, those of what stands before them from here.
const FRONTS: usize = 100;
/// Time in which a new cluster must begin to serve.
const SERVE: Duration = Duration::from_secs(20);
/// Interval between two looks at an awaited state.
const GLANCE: Duration = Duration::from_millis(5);

/// The addresses and the directory of a server.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its directory; `None`: one in the cluster's folder.
    pub data: Option<PathBuf>,
    /// Address on which it listens.
    pub listen: String,
    /// Address under which it is known to others.
    pub advertise: String,
    /// Address of its admin port, which reports whether it is ready.
    pub admin: String,
    /// The network namespace that it runs in.
    pub namespace: Option<String>,
}

/// Addresses on loopback that only this cluster uses: `127.x.y`. Nothing else on the machine takes an address there
/// while a server is down, as happens with ports from the range that systems give to outgoing connections.
fn loopback_block() -> String {
    let random = RandomState::new();
    let block = (0_u64..).find_map(|attempt| {
        let drawn = random.hash_one(attempt);
        let (x, y) = (16 + drawn % 200, (drawn >> 8) % 256);
        let probe = TcpListener::bind(format!("127.{x}.{y}.1:{PORT}"));
        probe.is_ok().then(|| format!("127.{x}.{y}"))
    });
    block.expect("the attempts do not end")
}

/// Addresses of hosts on loopback that only one cluster uses, one for each server.
pub fn loopback_hosts(servers: usize) -> Vec<String> {
    let block = loopback_block();
    (1..=servers).map(|i| format!("{block}.{i}")).collect()
}

/// Places on loopback for the servers of a cluster.
pub fn loopback_places(servers: usize, behind_proxy: bool) -> Vec<Place> {
    assert!(servers > 0 && servers < FRONTS);
    let block = loopback_block();
    let place = |i: usize| {
        let listen = format!("{block}.{i}:{PORT}");
        Place {
            data: None,
            advertise: match behind_proxy {
                true => format!("{block}.{}:{PORT}", FRONTS + i),
                false => listen.clone(),
            },
            listen,
            admin: format!("{block}.{i}:{ADMIN_PORT}"),
            namespace: None,
        }
    };
    (1..=servers).map(place).collect()
}

/// Server processes; killed, and their folder removed, when this is dropped.
pub struct Cluster {
    processes: Vec<Process>,
    /// Options of clients of the cluster.
    connect: ConnectOptions,
    folder: TempDir,
}

/// A metric of the server with this admin port, for a caller with this key; `None` if it does not answer, or has no such series.
pub(crate) async fn metric_at(admin: &str, key: Option<&AccessKey>, series: &str) -> Option<f64> {
    value_in(&process::ask(admin, key, "/metrics").await?, series)
}

fn value_in(metrics: &str, series: &str) -> Option<f64> {
    let mut values = metrics.lines().filter_map(|line| line.strip_prefix(series));
    values.find_map(|value| value.trim().parse().ok())
}

impl Cluster {
    /// The directories of a new cluster, in a new folder in `parent`. No server runs yet.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn make(
        program: &Program,
        places: Vec<Place>,
        parent: &Path,
        memory: bool,
    ) -> Result<Cluster, RunError> {
        let folder = tempfile::Builder::new().prefix("areo-").tempdir_in(parent);
        let folder = folder.map_err(system(format!("make a folder in {}", parent.display())))?;
        let addresses: Vec<String> = places.iter().map(|p| p.advertise.clone()).collect();
        let has_trust = program.has_keys || places.iter().any(|place| place.namespace.is_some());
        let (mut servers, mut processes) = (Vec::new(), Vec::new());
        for (position, place) in places.into_iter().enumerate() {
            let name = format!("s{}", position + 1);
            let data = place.data.clone();
            let data = data.unwrap_or_else(|| folder.path().join(&name));
            let log = folder.path().join(format!("{name}.log"));
            let others = addresses.iter().filter(|a| **a != place.advertise);
            let seeds: Vec<&str> = others.map(String::as_str).collect();
            let arguments = process::arguments(&data, &place, &seeds.join(","), memory);
            servers.push(NewServer {
                data,
                name: name.clone(),
            });
            let program = program.clone();
            processes.push(Process::new(name, place, program, arguments, log));
        }
        let new = NewCluster {
            memory,
            // In a namespace of its own a server is reached from outside of it.
            has_trust,
        };
        let made = initialise_cluster(&servers, new);
        let made = made.map_err(|error| RunError::Failed(error.to_string()))?;
        let access = made.administrator.map(Access::Key);
        Ok(Cluster {
            processes,
            connect: ConnectOptions {
                access,
                ..program.connect.clone()
            },
            folder,
        })
    }

    /// Starts every server that does not run.
    ///
    /// # Errors
    /// [`RunError::System`].
    pub fn start_all(&mut self) -> Result<(), RunError> {
        (0..self.servers()).try_for_each(|server| self.start(server))
    }

    /// Starts a server, unless it runs.
    ///
    /// # Errors
    /// [`RunError::System`].
    pub fn start(&mut self, server: usize) -> Result<(), RunError> {
        self.start_with(server, &[])
    }

    /// Starts a server with these options of `areo server` beside those that all have.
    ///
    /// # Errors
    /// [`RunError::System`].
    pub fn start_with(&mut self, server: usize, options: &[&str]) -> Result<(), RunError> {
        self.processes[server].start(options)
    }

    /// A metric of a server that runs; `None` if it does not answer, or has no such series.
    pub async fn metric(&self, server: usize, series: &str) -> Option<f64> {
        let answer = self.processes[server].admin("/metrics").await?;
        value_in(&answer, series)
    }

    /// The addresses of the admin ports of all servers.
    pub(crate) fn admins(&self) -> Vec<String> {
        let places = self.processes.iter().map(|process| &process.place);
        places.map(|place| place.admin.clone()).collect()
    }

    /// The data directory of a server, unless its place names another one.
    pub fn data(&self, server: usize) -> PathBuf {
        let place = self.processes[server].place.data.clone();
        place.unwrap_or_else(|| self.folder.path().join(self.name(server)))
    }

    /// Starts one more server, which joins the cluster and is in no configuration. Returns its position.
    ///
    /// # Errors
    /// [`RunError::System`].
    pub fn join(&mut self) -> Result<usize, RunError> {
        let number = self.servers() + 1;
        assert!(number < FRONTS, "its address is no front");
        let first = &self.processes[0];
        let (block, _) = first.place.listen.rsplit_once('.').expect("it is IPv4");
        let listen = format!("{block}.{number}:{PORT}");
        let place = Place {
            data: None,
            advertise: listen.clone(),
            listen,
            admin: format!("{block}.{number}:{ADMIN_PORT}"),
            namespace: None,
        };
        let name = format!("s{number}");
        let data = self.folder.path().join(&name);
        let log = self.folder.path().join(format!("{name}.log"));
        let mut arguments = process::arguments(&data, &place, "", false);
        let addresses = self.addresses().join(",");
        arguments.extend(["--join".to_owned(), addresses]);
        let program = first.program.clone();
        let process = Process::new(name, place, program, arguments, log);
        self.processes.push(process);
        self.start(number - 1)?;
        Ok(number - 1)
    }

    /// Number of servers, running or not.
    pub fn servers(&self) -> usize {
        self.processes.len()
    }

    /// Name of a server.
    pub fn name(&self, server: usize) -> &str {
        &self.processes[server].name
    }

    /// The addresses that the servers advertise.
    pub fn addresses(&self) -> Vec<String> {
        let places = self.processes.iter().map(|process| &process.place);
        places.map(|place| place.advertise.clone()).collect()
    }

    /// The folder of the cluster: directories and logs of its servers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder when this is dropped.
    pub fn keep_folder(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// The log of a server so far.
    pub fn log(&self, server: usize) -> String {
        let bytes = std::fs::read(&self.processes[server].log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// kill -9; returns when the process is gone. `false`: it did not run.
    pub async fn kill(&mut self, server: usize) -> bool {
        self.processes[server].signal(Signal::KILL)
            && self.gone(server, Duration::MAX).await.is_some()
    }

    /// Sends SIGTERM and waits until the process has ended; `None` if it did not within `patience`.
    pub async fn terminate(&mut self, server: usize, patience: Duration) -> Option<ExitStatus> {
        self.processes[server].signal(Signal::TERM);
        self.gone(server, patience).await
    }

    async fn gone(&mut self, server: usize, patience: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.processes[server].ended() {
                return Some(status);
            }
            if begun.elapsed() >= patience {
                return None;
            }
            sleep(GLANCE).await;
        }
    }

    /// SIGSTOP. `false`: it did not run.
    pub fn stop(&mut self, server: usize) -> bool {
        self.processes[server].signal(Signal::STOP)
    }

    /// Lets a stopped server go on (SIGCONT).
    pub fn resume(&mut self, server: usize) {
        self.processes[server].signal(Signal::CONT);
    }

    /// A server that ended by itself, and how. Each is reported once.
    pub fn ended(&mut self) -> Option<(usize, ExitStatus)> {
        let mut processes = self.processes.iter_mut().enumerate();
        processes.find_map(|(server, process)| Some((server, process.ended()?)))
    }

    /// Waits until a server serves; `false` if it does not within `patience`, or does not run.
    pub async fn ready(&mut self, server: usize, patience: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let process = &mut self.processes[server];
            if process.is_ready().await {
                return true;
            }
            if begun.elapsed() >= patience || !process.runs() {
                return false;
            }
            sleep(GLANCE).await;
        }
    }

    /// Waits until all servers serve.
    ///
    /// # Errors
    /// The first one that does not within `patience`, or does not run.
    pub async fn all_ready(&mut self, patience: Duration) -> Result<(), RunError> {
        for server in 0..self.processes.len() {
            if !self.ready(server, patience).await {
                let log = self.log(server);
                let (name, said) = (self.name(server), log.lines().last().unwrap_or("nothing"));
                let sentence = format!("server {name} does not serve; it wrote: {said}");
                return Err(RunError::Failed(sentence));
            }
        }
        Ok(())
    }

    /// The process of each server that runs.
    pub fn processes(&self) -> Vec<u32> {
        self.processes.iter().filter_map(Process::id).collect()
    }

    /// Resident memory of each server that runs, in bytes.
    pub fn resident(&self) -> Vec<u64> {
        let ids = self.processes.iter().filter_map(Process::id);
        ids.map(system::resident_of).collect()
    }

    /// Options of a client whose operations have this timeout.
    pub fn connect(&self, timeout: Duration) -> ConnectOptions {
        ConnectOptions {
            addresses: self.addresses(),
            timeout,
            ..self.connect.clone()
        }
    }

    /// User and system time of all servers that run.
    pub fn cpu(&self) -> Duration {
        let ids = self.processes.iter().filter_map(Process::id);
        ids.map(system::cpu_of).sum()
    }

    /// A new domain, as soon as the cluster serves.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn domain(&self, name: &str, options: DomainOptions) -> Result<Domain, RunError> {
        let begun = Instant::now();
        loop {
            let error = match Client::connect(self.connect(DEFAULT_TIMEOUT)).await {
                Ok(client) => match client.create_domain(name, options.clone()).await {
                    Ok(domain) => return Ok(domain),
                    Err(error) => error.to_string(),
                },
                Err(error) => error.to_string(),
            };
            if begun.elapsed() >= SERVE {
                let seconds = SERVE.as_secs();
                let sentence = format!("the cluster does not serve after {seconds} s: {error}");
                return Err(RunError::Failed(sentence));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
