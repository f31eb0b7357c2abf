//! The identity of a server: written into its data directory when that is created, and never changed but for the count of its starts.

use std::path::Path;
use std::sync::Arc;

use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::object::DomainId;
use areo_core::starts::Starts;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};
use areo_store::{Directory, DirectoryError, IdentityError};
use areo_trust::key::AccessKey;
use bytes::{Bytes, BytesMut};

use crate::error::ServeError;
use crate::trust::{self, NewTrust};

/// The content of a data directory's identity file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster: u128,
    pub server: ServerId,
    /// Its name for people. Empty until a server that joins has got a name.
    pub name: String,
    /// The starts of the server so far.
    pub starts: Starts,
    /// The server keeps nothing on disk, so that it cannot be started a second time (`[X-12 memory-identity]`).
    pub memory: bool,
    /// The generation of the extent file beside its log at its last start; 0: that start wrote none.
    pub extent: u64,
    /// The configuration of the root domain that it knows.
    pub root: Arc<Configuration>,
    /// The cluster has keys and certificates: those of this server are in the file `TRUST` of the directory.
    pub has_trust: bool,
    /// The servers to which the directory belonged before, and the steps that are left to do for them.
    pub succession: Succession,
}

/// A server whose log lacks records is replaced by another one in its directory (`[X-37 another-in-its-place]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// The servers to which the directory belonged before, the last one last; at most 64.
    pub predecessors: Vec<ServerId>,
    /// Servers whose place is still to be taken in domains, and that are to be forgotten.
    pub replaces: Vec<ServerId>,
    /// The log in the directory is still that of this server.
    pub log_of: Option<ServerId>,
    /// Addresses of other servers, written when the last one gave the directory up; at most 64.
    pub addresses: Vec<String>,
}

/// Servers of before that a directory remembers.
pub(crate) const PREDECESSORS: usize = 64;
/// Addresses of other servers that a directory remembers.
pub(crate) const ADDRESSES: usize = 64;

const CLUSTER: u16 = MUST_UNDERSTAND | 1;
const SERVER: u16 = MUST_UNDERSTAND | 2;
const NAME: u16 = 3;
const INCARNATION: u16 = MUST_UNDERSTAND | 4;
const MEMORY: u16 = MUST_UNDERSTAND | 5;
const ROOT: u16 = MUST_UNDERSTAND | 6;
const UNCONFIRMED: u16 = MUST_UNDERSTAND | 7;
const EXTENT: u16 = 8;
/// A program that did not go on with it would leave domains with a member that never comes back.
const REPLACES: u16 = MUST_UNDERSTAND | 9;
const LOG_OF: u16 = MUST_UNDERSTAND | 10;
const PREDECESSOR: u16 = 11;
const ADDRESS: u16 = 12;
/// A program that knew nothing of it would serve without asking for a key.
const HAS_TRUST: u16 = MUST_UNDERSTAND | 13;

impl Identity {
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, CLUSTER, &self.cluster.to_le_bytes());
        tlv::put_field(&mut out, SERVER, &self.server.0.to_le_bytes());
        tlv::put_field(&mut out, NAME, self.name.as_bytes());
        tlv::put_field(
            &mut out,
            INCARNATION,
            &self.starts.incarnation.to_le_bytes(),
        );
        if let Some(start) = self.starts.unconfirmed {
            tlv::put_field(&mut out, UNCONFIRMED, &start.to_le_bytes());
        }
        if self.memory {
            tlv::put_field(&mut out, MEMORY, &[]);
        }
        tlv::put_field(&mut out, ROOT, self.root.encoded());
        if self.extent > 0 {
            tlv::put_field(&mut out, EXTENT, &self.extent.to_le_bytes());
        }
        if self.has_trust {
            tlv::put_field(&mut out, HAS_TRUST, &[]);
        }
        self.succession.put(&mut out);
        out.freeze()
    }

    fn decode(bytes: &Bytes) -> Result<Identity, TlvError> {
        let (mut cluster, mut server, mut incarnation, mut root) = (None, None, None, None);
        let (mut name, mut memory, mut unconfirmed) = (String::new(), false, None);
        let (mut extent, mut has_trust, mut succession) = (0, false, Succession::default());
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                CLUSTER => cluster = Some(u128::from_le_bytes(tlv::number(kind, value)?)),
                SERVER => server = Some(ServerId(u128::from_le_bytes(tlv::number(kind, value)?))),
                NAME => name = tlv::text(kind, value)?,
                INCARNATION => incarnation = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                MEMORY => memory = true,
                ROOT => {
                    let invalid = |_| TlvError::Invalid { kind };
                    root = Some(Configuration::decode(bytes.slice_ref(value)).map_err(invalid)?);
                }
                UNCONFIRMED => unconfirmed = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                HAS_TRUST => has_trust = true,
                EXTENT => extent = u64::from_le_bytes(tlv::number(kind, value)?),
                _ => succession.take(kind, value)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        Ok(Identity {
            cluster: cluster.ok_or(missing(CLUSTER))?,
            server: server.ok_or(missing(SERVER))?,
            name,
            starts: Starts {
                incarnation: incarnation.ok_or(missing(INCARNATION))?,
                unconfirmed,
            },
            memory,
            extent,
            root: root.ok_or(missing(ROOT))?,
            has_trust,
            succession,
        })
    }
}

impl Succession {
    fn put(&self, out: &mut BytesMut) {
        let Succession {
            predecessors,
            replaces,
            log_of,
            addresses,
        } = self;
        let servers = [(PREDECESSOR, predecessors), (REPLACES, replaces)];
        for (kind, servers) in servers {
            for server in servers {
                tlv::put_field(out, kind, &server.0.to_le_bytes());
            }
        }
        if let Some(server) = log_of {
            tlv::put_field(out, LOG_OF, &server.0.to_le_bytes());
        }
        for address in addresses {
            tlv::put_field(out, ADDRESS, address.as_bytes());
        }
    }

    /// Takes in a field that is no other part's.
    fn take(&mut self, kind: u16, value: &[u8]) -> Result<(), TlvError> {
        let server = || Ok(ServerId(u128::from_le_bytes(tlv::number(kind, value)?)));
        match kind {
            PREDECESSOR => self.predecessors.push(server()?),
            REPLACES => self.replaces.push(server()?),
            LOG_OF => self.log_of = Some(server()?),
            ADDRESS => self.addresses.push(tlv::text(kind, value)?),
            _ => tlv::unknown(kind)?,
        }
        Ok(())
    }
}

/// The identity in a data directory; `None` if it has none yet.
pub(crate) fn read(directory: &Directory) -> Result<Option<Identity>, ServeError> {
    let Some(bytes) = directory.read_identity()? else {
        return Ok(None);
    };
    let identity = Identity::decode(&bytes).map_err(|error| ServeError::Identity {
        path: directory.path().into(),
        error,
    })?;
    Ok(Some(identity))
}

/// Writes the identity, durably.
pub(crate) fn write(directory: &Directory, identity: &Identity) -> Result<(), ServeError> {
    Ok(directory.write_identity(&identity.encode())?)
}

/// A server of a cluster that is to be made.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// Its data directory: new, or empty.
    pub data: std::path::PathBuf,
    /// Its name for people.
    pub name: String,
}

/// A cluster that is to be made.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewCluster {
    /// Its servers keep nothing on disk.
    pub memory: bool,
    /// It has keys and certificates, and its connections are encrypted.
    pub has_trust: bool,
}

/// A cluster that was made.
#[derive(Clone, Debug)]
pub struct ClusterIdentity {
    pub cluster: u128,
    /// Its servers, in the order in which they were given.
    pub servers: Vec<(ServerId, String)>,
    /// The key of its administrator, which may do everything, if it has keys.
    pub administrator: Option<AccessKey>,
}

/// Makes the identities of a whole new cluster. Its root domain is on the first of its servers: on as many as it would grow to.
///
/// # Errors
/// [`ServeError`] if a directory cannot be used, or belongs to a server already.
pub fn initialise_cluster(
    servers: &[NewServer],
    new: NewCluster,
) -> Result<ClusterIdentity, ServeError> {
    let ids: Vec<ServerId> = servers.iter().map(|_| ServerId(random())).collect();
    let (cluster, root) = (random(), root_configuration(first_members(&ids), false));
    let mut directories = Vec::new();
    for server in servers {
        // All are looked at before any is written.
        let directory = Directory::open(&server.data)?;
        if directory.read_identity()?.is_some() {
            let path = server.data.clone();
            return Err(ServeError::AlreadyInitialised { path });
        }
        directories.push((directory, server.data.as_path()));
    }
    let now = trust::now_seconds();
    let new_trust = new.has_trust.then(|| NewTrust::create(cluster, now));
    let first = servers.first().map(|server| server.data.as_path());
    let at_first = trust::at(first.unwrap_or(Path::new("")));
    let new_trust = new_trust.transpose().map_err(at_first)?;
    for (((directory, path), server), id) in directories.iter().zip(servers).zip(&ids) {
        let identity = Identity {
            cluster,
            server: *id,
            name: server.name.clone(),
            starts: Starts::NONE,
            memory: new.memory,
            extent: 0,
            root: root.clone(),
            has_trust: new.has_trust,
            succession: Succession::default(),
        };
        if let Some(new_trust) = &new_trust {
            let trust = new_trust.of(*id, now);
            let written = trust.and_then(|mut trust| trust.write(directory, None));
            written.map_err(trust::at(path))?;
        }
        write(directory, &identity)?;
    }
    let names = servers.iter().map(|server| server.name.clone());
    Ok(ClusterIdentity {
        cluster,
        servers: ids.iter().copied().zip(names).collect(),
        administrator: new_trust.map(|new_trust| new_trust.administrator()),
    })
}

/// The servers of a first root domain: one that grows by itself never has two or four (`[X-35 growing-root]`), and never more than five.
fn first_members(servers: &[ServerId]) -> &[ServerId] {
    let size = [5, 3].into_iter().find(|size| *size <= servers.len());
    &servers[..size.unwrap_or(servers.len().min(1))]
}

/// The first configuration of a root domain: replicated, because its content is small. `fixed`: people alone change
/// its members.
pub(crate) fn root_configuration(members: &[ServerId], fixed: bool) -> Arc<Configuration> {
    let descriptor = Descriptor {
        fixed,
        ..Descriptor::new(DomainId(random()), members.to_vec(), Dap::Abd)
    };
    Configuration::new(descriptor)
        .expect("random ids are distinct, and a cluster has at most 255 first servers")
}

/// True if a data directory belongs to a server, as far as can be seen.
pub fn has_identity(data: &Path) -> bool {
    Directory::has_identity(data).unwrap_or(false)
}

/// Reads the identity in a data directory without starting its server; `None` if there is none.
///
/// # Errors
/// [`ServeError`] if it cannot be read, or its server runs.
pub fn read_identity(data: &Path) -> Result<Option<Identity>, ServeError> {
    if !Directory::has_identity(data)? {
        return Ok(None);
    }
    read(&Directory::open(data)?)
}

pub(crate) fn random() -> u128 {
    let half = || u128::from(getrandom::u64().expect("the operating system gives entropy"));
    (half() << 64) | half()
}

impl From<DirectoryError> for ServeError {
    fn from(error: DirectoryError) -> Self {
        ServeError::Directory(error)
    }
}

impl From<IdentityError> for ServeError {
    fn from(error: IdentityError) -> Self {
        ServeError::IdentityFile(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_root_domain_has_a_size_to_which_it_would_grow() {
        for (servers, members) in [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (255, 5)] {
            let ids: Vec<ServerId> = (1..=servers).map(ServerId).collect();
            assert_eq!(first_members(&ids), &ids[..members], "{servers}");
        }
    }

    #[test]
    fn identities_survive_and_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let server = |name: &str| NewServer {
            data: folder.path().join(name),
            name: name.into(),
        };
        let made =
            initialise_cluster(&[server("s1"), server("s2")], NewCluster::default()).unwrap();
        let read = read_identity(&folder.path().join("s2")).unwrap().unwrap();
        assert_eq!(read.cluster, made.cluster);
        assert_eq!((read.server, read.name.as_str()), (made.servers[1].0, "s2"));
        assert_eq!(
            (read.starts, read.memory, read.root.n()),
            (Starts::NONE, false, 1)
        );
        let again = initialise_cluster(&[server("s3"), server("s2")], NewCluster::default());
        assert!(matches!(again, Err(ServeError::AlreadyInitialised { .. })));
        assert_eq!(read_identity(&folder.path().join("s3")).unwrap(), None);
    }
}
