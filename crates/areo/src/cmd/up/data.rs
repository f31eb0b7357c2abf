//! The data directory of `areo up`: whose it is, and the cluster in it, made if there is none.

use super::plan::Plan;
use crate::exit::{Failure, Outcome, plain};
use crate::output::Output;
use crate::session;
use areo_client::cluster_file::{ClusterFile, Server};
use areo_client::{ServerId, limits};
use areo_server::{Identity, NewCluster, NewServer, ServeError, initialise_cluster, read_identity};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CLUSTER_FILE: &str = "cluster.toml";
const LOCK: &str = "up.lock";
const MAKING: &str = "making";
/// The longest wait for the directory of a server that still drains: it drains for 5 s at most.
const DRAIN: Duration = Duration::from_secs(6);
const PAUSE: Duration = Duration::from_millis(50);

/// A data directory that is ours: no other `areo up` uses it meanwhile.
pub(super) struct Data {
    path: PathBuf,
    _lock: File,
}

/// A cluster whose identities are on disk.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// The path of its file.
    pub(super) path: PathBuf,
    pub(super) file: ClusterFile,
    /// Servers that stay down, because their directories cannot be used.
    pub(super) absent: Vec<Absent>,
    /// It was made just now.
    pub(super) new: bool,
}

/// A server that is not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Absent {
    pub(super) name: String,
    /// The reason why its directory cannot be used.
    pub(super) why: String,
}

impl Cluster {
    /// Why this server is not started, if it is not.
    pub(super) fn absent(&self, name: &str) -> Option<&Absent> {
        self.absent.iter().find(|absent| absent.name == name)
    }

    /// The directory of a server.
    pub(super) fn directory(&self, server: &Server) -> PathBuf {
        let parent = self
            .path
            .parent()
            .expect("the file is in the data directory");
        parent.join(&server.name)
    }
}

impl Data {
    /// Locks the directory; makes it if it is not there. What can be refused is refused before anything is made.
    pub(super) fn take(plan: &Plan) -> Outcome<Data> {
        let path = plan.data.clone();
        let is_new = match look(&path)? {
            Content::Nothing => true,
            Content::Ours => false,
        };
        if is_new {
            let servers = usize::from(plan.new_servers());
            check_new(plan, servers, plan.memory.unwrap_or(false))?;
            fs::create_dir_all(&path)
                .map_err(|e| Failure::file("make the directory", &path, &e))?;
        }
        // What is in it is its user's alone. One of another user, which this one may use, stays as it is.
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
        let lock = lock(&path)?;
        // Looked at again under the lock: another `areo up` may have been faster.
        look(&path)?;
        Ok(Data { path, _lock: lock })
    }

    /// The cluster in the directory; a new one if there is none, or if the last one kept nothing.
    pub(super) fn cluster(&self, plan: &Plan, out: Output) -> Outcome<Cluster> {
        let path = self.path.join(CLUSTER_FILE);
        match ClusterFile::read(&path)? {
            None => self.make(plan, usize::from(plan.new_servers()), false),
            Some(file) if file.memory() => {
                let servers = plan.servers.map_or(file.servers.len(), usize::from);
                check_new(plan, servers, plan.memory.unwrap_or(true))?;
                self.forget(&file)?;
                out.note("the last cluster here kept nothing on disk: this is a new, empty one");
                self.make(plan, servers, true)
            }
            Some(file) => self.existing(plan, path, file),
        }
    }

    fn make(&self, plan: &Plan, servers: usize, memory: bool) -> Outcome<Cluster> {
        let memory = plan.memory.unwrap_or(memory);
        let addresses = check_new(plan, servers, memory)?;
        self.remove_half_made()?;
        let new: Vec<NewServer> = (1..=servers)
            .map(|i| NewServer {
                data: self.path.join(format!("s{i}")),
                name: format!("s{i}"),
            })
            .collect();
        let failed = |error: &std::io::Error| Failure::file("write to", &self.path, error);
        self.mark(&new).map_err(|error| failed(&error))?;
        let cluster = NewCluster {
            memory,
            has_trust: true,
        };
        let made = initialise_cluster(&new, cluster);
        let made = made.map_err(|error| Failure::other(error.to_string()))?;
        let servers = made.servers.into_iter().zip(addresses);
        let servers = servers.map(|((id, name), (address, admin))| Server {
            name,
            id: id.0,
            address,
            admin,
        });
        let max_object = plan.max_object.unwrap_or(limits::DEFAULT_VALUE_BYTES);
        let file = ClusterFile::new(made.cluster, memory, max_object, servers.collect());
        let file = file.with_key(made.administrator);
        let path = self.path.join(CLUSTER_FILE);
        session::write_cluster_file(&file, &path)?;
        fs::remove_file(self.path.join(MAKING)).map_err(|error| failed(&error))?;
        Ok(Cluster {
            path,
            file,
            absent: Vec::new(),
            new: true,
        })
    }

    /// Records the directories that are about to be made, so that a crash meanwhile leaves nothing that is in the
    /// way.
    fn mark(&self, servers: &[NewServer]) -> std::io::Result<()> {
        let mut mark = File::create(self.path.join(MAKING))?;
        for server in servers {
            writeln!(mark, "{}", server.name)?;
        }
        mark.sync_all()?;
        File::open(&self.path)?.sync_all()
    }

    /// Removes the rest of an `areo up` that did not get to its cluster file. No server ever ran there.
    fn remove_half_made(&self) -> Outcome {
        let mark = self.path.join(MAKING);
        let Ok(names) = fs::read_to_string(&mark) else {
            return Ok(());
        };
        for name in names.lines().filter(|name| is_server_name(name)) {
            remove(&self.path.join(name))?;
        }
        fs::remove_file(&mark).map_err(|error| Failure::file("remove", &mark, &error))
    }

    /// Removes the directories of a cluster that kept nothing on disk, after checking that they are such directories.
    fn forget(&self, file: &ClusterFile) -> Outcome {
        let directories: Vec<PathBuf> = file
            .servers
            .iter()
            .map(|s| self.path.join(&s.name))
            .collect();
        for (server, directory) in file.servers.iter().zip(&directories) {
            let known = identity(directory).map_err(|error| Failure::other(error.to_string()))?;
            if known.is_some_and(|known| known.cluster != file.cluster || !known.memory) {
                let why = self.foreign_directory(server, "belongs to another cluster");
                return Err(Failure::other(format!("{why}, or choose another --data")));
            }
        }
        directories
            .iter()
            .try_for_each(|directory| remove(directory))
    }

    fn existing(&self, plan: &Plan, path: PathBuf, mut file: ClusterFile) -> Outcome<Cluster> {
        let (here, servers) = (self.path.display(), file.servers.len());
        if plan.memory == Some(true) {
            return Err(Failure::usage(format!(
                "{here} holds a cluster that keeps its data on disk: choose another --data for one in memory"
            )));
        }
        if plan
            .servers
            .is_some_and(|wanted| usize::from(wanted) != servers)
        {
            return Err(Failure::usage(format!(
                "{here} holds a cluster of {servers} servers: leave --servers out, or choose another --data"
            )));
        }
        let before = file.clone();
        let absent = self.check_directories(&mut file)?;
        if plan.port.is_some() {
            for (server, (port, admin)) in file.servers.iter_mut().zip(plan.ports(servers)?) {
                (server.address, server.admin) = (loopback(port), loopback(admin));
            }
        }
        file.max_object = plan.max_object.unwrap_or(file.max_object);
        let starts = |name: &str| !absent.iter().any(|absent| absent.name == name);
        let servers = file.servers.iter().filter(|server| starts(&server.name));
        let addresses = servers.map(|s| (s.address.clone(), s.admin.clone()));
        check_ports(&addresses.collect::<Vec<_>>())?;
        if file != before {
            session::write_cluster_file(&file, &path)?;
        }
        Ok(Cluster {
            path,
            file,
            absent,
            new: false,
        })
    }

    /// Compares the directories with the cluster file. Names the servers whose directories cannot be used: the others go on without
    /// them, as if their disks had died. Where another server took the place of one in its directory, the file names that from now on.
    fn check_directories(&self, file: &mut ClusterFile) -> Outcome<Vec<Absent>> {
        let patience = Instant::now() + DRAIN;
        let mut absent = Vec::new();
        for server in &mut file.servers {
            match self.check_directory(file.cluster, server, patience) {
                Ok(id) => server.id = id,
                Err(why) => {
                    let name = server.name.clone();
                    absent.push(Absent { name, why });
                }
            }
        }
        if absent.len() < file.servers.len() {
            return Ok(absent);
        }
        let reasons = absent
            .iter()
            .map(|Absent { name, why }| format!("{name}: {why}"));
        let reasons: Vec<String> = reasons.collect();
        let reasons = reasons.join("; ");
        let here = self.path.display();
        Err(Failure::other(format!(
            "no server in {here} can be started: restore their directories, or choose another --data ({reasons})"
        )))
    }

    /// Returns the server to which the directory belongs by now. The error is the reason why it cannot be used.
    fn check_directory(
        &self,
        cluster: u128,
        server: &Server,
        patience: Instant,
    ) -> Result<u128, String> {
        let directory = self.path.join(&server.name);
        let known = loop {
            match identity(&directory) {
                Ok(Some(known)) => break known,
                Ok(None) => return Err(absence(&directory)),
                // The server of an `areo up` that was killed still drains.
                Err(error) if error.is_locked() && Instant::now() < patience => sleep(PAUSE),
                Err(error) => return Err(error.to_string()),
            }
        };
        let is_of = |id: &ServerId| id.0 == server.id;
        let is_its = is_of(&known.server) || known.succession.predecessors.iter().any(is_of);
        let wrong = if known.cluster != cluster {
            "belongs to another cluster"
        } else if !is_its {
            "belongs to another server"
        } else if known.memory {
            "was made with another durability"
        } else {
            return Ok(known.server.0);
        };
        Err(self.foreign_directory(server, wrong))
    }

    fn foreign_directory(&self, server: &Server, why: &str) -> String {
        let (directory, name) = (self.path.join(&server.name), &server.name);
        format!(
            "{} {why} than {} says: put the directory of {name} back",
            directory.display(),
            self.path.join(CLUSTER_FILE).display()
        )
    }
}

/// The content of a data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// It is not there, or empty.
    Nothing,
    /// Data of a server of this program.
    Ours,
}

/// Refuses a directory that holds anything that is not ours.
fn look(path: &Path) -> Outcome<Content> {
    let refused = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotADirectory => Failure::other(format!(
            "{} is not a directory: choose another --data",
            path.display()
        )),
        ErrorKind::PermissionDenied => Failure::other(format!(
            "{} is not yours: it belongs to a user who does not let this one in; choose another --data",
            path.display()
        )),
        _ => Failure::other(format!("cannot read {}: {}", path.display(), plain(error))),
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::Nothing),
        Err(error) => return Err(refused(&error)),
    };
    let names: Result<Vec<_>, _> = entries.map(|entry| entry.map(|e| e.file_name())).collect();
    let names = names.map_err(|error| refused(&error))?;
    let ours = |name: &str| names.iter().any(|n| n == name);
    match names.iter().find(|name| *name != LOCK) {
        _ if ours(CLUSTER_FILE) || ours(MAKING) => Ok(Content::Ours),
        None if ours(LOCK) => Ok(Content::Ours),
        None => Ok(Content::Nothing),
        Some(other) => Err(Failure::other(format!(
            "{} holds '{}' and no cluster: choose a new or an empty directory with --data",
            path.display(),
            other.display()
        ))),
    }
}

fn lock(path: &Path) -> Outcome<File> {
    let path = path.join(LOCK);
    let mut open = File::options();
    let open = open.create(true).truncate(false).write(true);
    let lock = open
        .open(&path)
        .map_err(|error| Failure::file("write", &path, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Failure::other(format!(
            "another `areo up` runs on {}: stop it first, or choose another --data and --port",
            path.parent().unwrap_or(&path).display()
        ))),
        Err(TryLockError::Error(error)) => Err(Failure::file("lock", &path, &error)),
    }
}

fn identity(directory: &Path) -> Result<Option<Identity>, ServeError> {
    read_identity(directory)
}

fn absence(directory: &Path) -> String {
    let directory = directory.display();
    format!("{directory} is gone or empty, and a server cannot come back without what was in it")
}

fn is_server_name(name: &str) -> bool {
    let digits = name.strip_prefix('s');
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn remove(directory: &Path) -> Outcome {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::file("remove", directory, &error))
        }
        _ => Ok(()),
    }
}

/// Finds out whether such a cluster could be made. Says where its servers are to listen.
fn check_new(plan: &Plan, servers: usize, memory: bool) -> Outcome<Vec<(String, String)>> {
    plan.check_shape(servers)?;
    if memory && plan.restart {
        return Err(no_restart());
    }
    let addresses = new_addresses(plan, servers)?;
    check_ports(&addresses)?;
    Ok(addresses)
}

fn new_addresses(plan: &Plan, servers: usize) -> Outcome<Vec<(String, String)>> {
    let ports = plan.ports(servers)?;
    let pair = |(port, admin): (u16, u16)| (loopback(port), loopback(admin));
    Ok(ports.into_iter().map(pair).collect())
}

fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Finds out whether the servers could listen.
fn check_ports(addresses: &[(String, String)]) -> Outcome {
    for address in addresses
        .iter()
        .flat_map(|(address, admin)| [address, admin])
    {
        let Err(error) = TcpListener::bind(address) else {
            continue;
        };
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there".to_owned(),
            _ => plain(&error),
        };
        return Err(Failure::other(format!(
            "cannot use {address}: {why}; choose other ports with --port"
        )));
    }
    Ok(())
}

pub(super) fn no_restart() -> Failure {
    Failure::usage(
        "--restart needs --durability fsync: a server that keeps nothing on disk cannot come back",
    )
}

#[cfg(test)]
mod tests;
