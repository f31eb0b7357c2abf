//! etcd, as a target.

use super::process::{Foreign, Started};
use super::{About, Answer, Caller, Cost, Target, TargetError, TargetName, Wanted, start_failed};
use crate::cluster::loopback_hosts;
use crate::system;
use areo_etcd::Etcd;
use bytes::Bytes;
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

const ETCD: Foreign = Foreign {
    target: TargetName::Etcd,
    program: "etcd",
    package: "etcd-server",
};
/// How long a new cluster may take to elect a leader.
const SERVE: Duration = Duration::from_secs(30);
/// How long a member may take to say whether it leads.
const ANSWER: Duration = Duration::from_secs(1);
/// Clients that share a connection.
const SHARE: usize = 16;

/// A cluster of etcd.
pub(crate) struct EtcdCluster {
    about: About,
    /// Where clients connect to, first the member that led at the beginning: what goes to others takes one more hop.
    addresses: Vec<String>,
    timeout: Duration,
    /// How many clients there are, and the connection of the last one.
    connections: RefCell<(usize, Option<Etcd>)>,
    members: Vec<Member>,
    folder: TempDir,
}

struct Member {
    name: String,
    address: String,
    process: Started,
}

/// Everything that a member is told.
fn arguments(folder: &Path, hosts: &[String], member: usize, memory: bool) -> Vec<String> {
    let peer = |host: &String| format!("http://{host}:2380");
    let all: Vec<String> = (1..)
        .zip(hosts)
        .map(|(number, host)| format!("m{number}={}", peer(host)))
        .collect();
    let host = &hosts[member];
    let data = folder.join(format!("m{}", member + 1));
    let named = [
        ("--name", format!("m{}", member + 1)),
        ("--data-dir", data.display().to_string()),
        ("--listen-client-urls", client(host)),
        ("--advertise-client-urls", client(host)),
        ("--listen-peer-urls", peer(host)),
        ("--initial-advertise-peer-urls", peer(host)),
        ("--initial-cluster", all.join(",")),
        ("--logger", "zap".into()),
        ("--log-level", "error".into()),
        // Its own limits would end a longer measurement, or refuse values of more than 1.5 MiB.
        ("--quota-backend-bytes", (8_u64 << 30).to_string()),
        ("--max-request-bytes", (128 << 20).to_string()),
    ];
    let mut arguments: Vec<String> = named
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
    arguments.extend(memory.then(|| "--unsafe-no-fsync".to_owned()));
    arguments
}

fn client(host: &String) -> String {
    format!("http://{host}:2379")
}

impl EtcdCluster {
    /// Host and port of each member, first of the one that led at the beginning.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        let bare = |address: &String| address.trim_start_matches("http://").to_owned();
        self.addresses.iter().map(bare).collect()
    }

    pub(crate) async fn start(wanted: &Wanted) -> Result<EtcdCluster, TargetError> {
        let start_failed = start_failed(TargetName::Etcd);
        let folder = tempfile::Builder::new()
            .prefix("areo-etcd-")
            .tempdir_in(&wanted.data);
        let folder = folder.map_err(|error| start_failed(&error))?;
        let hosts = loopback_hosts(wanted.servers);
        let mut members = Vec::new();
        for (member, host) in hosts.iter().enumerate() {
            let arguments = arguments(folder.path(), &hosts, member, wanted.memory);
            let name = format!("m{}", member + 1);
            members.push(Member {
                process: ETCD.start(folder.path(), &name, &arguments)?,
                address: client(host),
                name,
            });
        }
        let (leader, version) = wait_for_leader(&mut members).await?;
        let mut addresses: Vec<String> = members.iter().map(|m| m.address.clone()).collect();
        addresses.rotate_left(leader);
        let about = About {
            target: TargetName::Etcd,
            version,
            servers: wanted.servers,
            keeps: format!(
                "{} replicas, linearizable puts and gets; requests up to 128 MiB instead of 1.5",
                wanted.servers
            ),
            durability: match wanted.memory {
                true => "files without fsync (--unsafe-no-fsync)".into(),
                false => "fsync at a majority".into(),
            },
            connections: format!(
                "to the leader, each shared by {SHARE} clients; to the next member once that cannot be reached"
            ),
        };
        Ok(EtcdCluster {
            about,
            addresses,
            timeout: wanted.timeout,
            connections: RefCell::default(),
            members,
            folder,
        })
    }
}

/// Waits until somebody leads: which of the members, and its version.
async fn wait_for_leader(members: &mut [Member]) -> Result<(usize, String), TargetError> {
    let begun = Instant::now();
    loop {
        for member in &mut *members {
            member.process.check()?;
        }
        if let Some(leader) = leader(members).await {
            return Ok(leader);
        }
        if begun.elapsed() > SERVE {
            let why = format!("nobody leads after {} s", SERVE.as_secs());
            return Err(start_failed(TargetName::Etcd)(&why));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Which of the members leads, and its version.
async fn leader(members: &[Member]) -> Option<(usize, String)> {
    for (place, member) in members.iter().enumerate() {
        let asked = match Etcd::connect(&member.address, ANSWER).await {
            Ok(etcd) => etcd.status().await,
            Err(error) => Err(error),
        };
        if let Ok(status) = asked
            && status.leads
        {
            return Some((place, status.version));
        }
    }
    None
}

impl Target for EtcdCluster {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        Box::pin(async {
            let shared = {
                let (clients, connection) = &mut *self.connections.borrow_mut();
                *clients += 1;
                connection.clone().filter(|_| (*clients - 1) % SHARE != 0)
            };
            let etcd = if let Some(etcd) = shared {
                etcd
            } else {
                let etcd = Etcd::connect_to_any(&self.addresses, self.timeout).await;
                etcd.map_err(|error| start_failed(TargetName::Etcd)(&error))?
            };
            self.connections.borrow_mut().1 = Some(etcd.clone());
            Ok(Box::new(EtcdCaller(etcd)) as Box<dyn Caller>)
        })
    }

    fn processes(&self) -> Vec<u32> {
        let members = self.members.iter();
        members.map(|member| member.process.id()).collect()
    }

    fn stored(&self) -> u64 {
        system::stored_in(self.folder.path())
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        Box::pin(async {
            let (place, _) = leader(&self.members).await.ok_or(TargetError::Kill {
                target: TargetName::Etcd,
                why: "nobody leads".into(),
            })?;
            // Dropping it kills its process.
            let Member { name, .. } = self.members.remove(place);
            Ok(format!(
                "{name}, the leader: the others elect another when they have not heard of it for a second"
            ))
        })
    }
}

struct EtcdCaller(Etcd);

impl Caller for EtcdCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, String> {
        Box::pin(async move {
            let put = self.0.put(key, value).await;
            put.map_err(|error| error.to_string())?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), String> {
        Box::pin(async move {
            let got = self.0.get(key).await.map_err(|error| error.to_string())?;
            Ok((got, Cost::default()))
        })
    }
}
