//! Members of etcd, started from the program on the PATH: for experiments in which etcd decides, and to be measured.

use crate::cluster::loopback_hosts;
use crate::foreign::{Foreign, StartedProcess};
use crate::system;
use crate::target::{TargetError, TargetName, start_failed};
use areo_etcd::Etcd;
use bytes::Bytes;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

const ETCD: Foreign = Foreign {
    target: TargetName::Etcd,
    program: "etcd",
    source: "peers/README.md has the command",
};
/// The longest time that a new cluster may take to elect a leader.
const SERVE: Duration = Duration::from_secs(30);
/// The longest time that a member may take to answer while the cluster starts.
const ANSWER: Duration = Duration::from_secs(1);
/// Created to find out whether a leader is elected.
const READY: &str = "areo/ready";

/// The members of a cluster of etcd; their processes end when this is dropped.
pub struct EtcdMembers {
    members: Vec<EtcdMember>,
    folder: TempDir,
}

/// A member of etcd.
pub struct EtcdMember {
    pub name: String,
    /// Host and port for clients.
    pub endpoint: String,
    pub process: StartedProcess,
}

/// The command line of a member.
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
        ("--listen-client-urls", format!("http://{}", client(host))),
        (
            "--advertise-client-urls",
            format!("http://{}", client(host)),
        ),
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

fn client(host: &str) -> String {
    format!("{host}:2379")
}

impl EtcdMembers {
    /// Starts `members` members with directories in `data`, and waits until they have a leader; `memory`: without
    /// fsync.
    ///
    /// # Errors
    /// [`TargetError::Missing`], [`TargetError::Start`].
    pub async fn start(
        data: &Path,
        servers: usize,
        memory: bool,
    ) -> Result<EtcdMembers, TargetError> {
        let folder = tempfile::Builder::new()
            .prefix("areo-etcd-")
            .tempdir_in(data);
        let folder = folder.map_err(|error| start_failed(TargetName::Etcd)(&error))?;
        let hosts = loopback_hosts(servers);
        let mut members = Vec::new();
        for (member, host) in hosts.iter().enumerate() {
            let arguments = arguments(folder.path(), &hosts, member, memory);
            let name = format!("m{}", member + 1);
            members.push(EtcdMember {
                process: ETCD.start(folder.path(), &name, &arguments)?,
                endpoint: client(host),
                name,
            });
        }
        let mut started = EtcdMembers { members, folder };
        started.wait_for_leader().await?;
        Ok(started)
    }

    async fn wait_for_leader(&mut self) -> Result<(), TargetError> {
        let begun = Instant::now();
        loop {
            for member in &mut self.members {
                member.process.check()?;
            }
            let address = format!("http://{}", self.members[0].endpoint);
            let created = match Etcd::connect(&address, ANSWER).await {
                Ok(etcd) => etcd.create(READY, Bytes::new()).await,
                Err(error) => Err(error),
            };
            match created {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > SERVE => {
                    let why = format!("no leader after {} s: {error}", SERVE.as_secs());
                    return Err(start_failed(TargetName::Etcd)(&why));
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// The members that were not killed.
    pub fn members(&self) -> &[EtcdMember] {
        &self.members
    }

    /// Kills a member (kill -9) and returns its name.
    pub fn kill(&mut self, place: usize) -> String {
        // Dropping it kills its process.
        let EtcdMember { name, .. } = self.members.remove(place);
        name
    }

    /// Host and port of each member.
    pub fn endpoints(&self) -> Vec<String> {
        let members = self.members.iter();
        members.map(|member| member.endpoint.clone()).collect()
    }

    /// Bytes of all members on disk.
    pub fn stored(&self) -> u64 {
        system::stored_in(self.folder.path())
    }
}
