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
/// Clients that share a connection.
const SHARE: usize = 16;

/// A cluster of etcd.
pub(super) struct EtcdCluster {
    about: About,
    /// The member that leads: what goes to others takes one more hop.
    leader: String,
    timeout: Duration,
    /// How many clients there are, and the connection of the last one.
    connections: RefCell<(usize, Option<Etcd>)>,
    members: Vec<Started>,
    folder: TempDir,
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
    pub(super) async fn start(wanted: &Wanted) -> Result<EtcdCluster, TargetError> {
        let start_failed = start_failed(TargetName::Etcd);
        let folder = tempfile::Builder::new()
            .prefix("areo-etcd-")
            .tempdir_in(&wanted.data);
        let folder = folder.map_err(|error| start_failed(&error))?;
        let hosts = loopback_hosts(wanted.servers);
        let mut members = Vec::new();
        for member in 0..wanted.servers {
            let arguments = arguments(folder.path(), &hosts, member, wanted.memory);
            let name = format!("m{}", member + 1);
            members.push(ETCD.start(folder.path(), &name, &arguments)?);
        }
        let (leader, version) = leader(&hosts, &mut members).await?;
        let about = About {
            target: TargetName::Etcd,
            version,
            servers: wanted.servers,
            keeps: format!("{} replicas, linearizable puts and gets", wanted.servers),
            durability: match wanted.memory {
                true => "files without fsync (--unsafe-no-fsync)".into(),
                false => "fsync at a majority".into(),
            },
            connections: format!("to the leader, each shared by {SHARE} clients"),
        };
        Ok(EtcdCluster {
            about,
            leader,
            timeout: wanted.timeout,
            connections: RefCell::default(),
            members,
            folder,
        })
    }
}

/// Waits until somebody leads: where, and its version.
async fn leader(
    hosts: &[String],
    members: &mut [Started],
) -> Result<(String, String), TargetError> {
    let begun = Instant::now();
    loop {
        for (host, member) in hosts.iter().zip(&mut *members) {
            member.check()?;
            let asked = match Etcd::connect(&client(host), Duration::from_secs(1)).await {
                Ok(etcd) => etcd.status().await,
                Err(error) => Err(error),
            };
            if let Ok(status) = asked
                && status.leads
            {
                return Ok((client(host), status.version));
            }
        }
        if begun.elapsed() > SERVE {
            let why = format!("nobody leads after {} s", SERVE.as_secs());
            return Err(start_failed(TargetName::Etcd)(&why));
        }
        sleep(Duration::from_millis(50)).await;
    }
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
                let etcd = Etcd::connect(&self.leader, self.timeout).await;
                etcd.map_err(|error| start_failed(TargetName::Etcd)(&error))?
            };
            self.connections.borrow_mut().1 = Some(etcd.clone());
            Ok(Box::new(EtcdCaller(etcd)) as Box<dyn Caller>)
        })
    }

    fn processes(&self) -> Vec<u32> {
        self.members.iter().map(Started::id).collect()
    }

    fn stored(&self) -> u64 {
        system::stored_in(self.folder.path())
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

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<usize>, Cost), String> {
        Box::pin(async move {
            let got = self.0.get(key).await.map_err(|error| error.to_string())?;
            Ok((got.map(|value| value.len()), Cost::default()))
        })
    }
}
