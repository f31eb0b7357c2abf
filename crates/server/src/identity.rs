//! Who a server is: written into its data directory when that is created, and never changed but for the count of its starts.

use std::path::Path;
use std::sync::Arc;

use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::object::DomainId;
use areo_core::starts::Starts;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};
use areo_store::{Directory, DirectoryError, IdentityError};
use bytes::{Bytes, BytesMut};

use crate::error::ServeError;

/// The content of a data directory's identity file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster: u128,
    /// The server.
    pub server: ServerId,
    /// Its name for people. Empty until a server that joins has got a name.
    pub name: String,
    /// Counts its starts.
    pub starts: Starts,
    /// The server keeps nothing on disk, so that it cannot be started a second time (`[X-12 memory-identity]`).
    pub memory: bool,
    /// The generation of the extent file beside its log at its last start; 0: that start wrote none.
    pub extent: u64,
    /// The configuration of the root domain that it knows.
    pub root: Arc<Configuration>,
}

const CLUSTER: u16 = MUST_UNDERSTAND | 1;
const SERVER: u16 = MUST_UNDERSTAND | 2;
const NAME: u16 = 3;
const INCARNATION: u16 = MUST_UNDERSTAND | 4;
const MEMORY: u16 = MUST_UNDERSTAND | 5;
const ROOT: u16 = MUST_UNDERSTAND | 6;
const UNCONFIRMED: u16 = MUST_UNDERSTAND | 7;
const EXTENT: u16 = 8;

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
        out.freeze()
    }

    fn decode(bytes: &Bytes) -> Result<Identity, TlvError> {
        let (mut cluster, mut server, mut incarnation, mut root) = (None, None, None, None);
        let (mut name, mut memory, mut unconfirmed) = (String::new(), false, None);
        let mut extent = 0;
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
                EXTENT => extent = u64::from_le_bytes(tlv::number(kind, value)?),
                _ => tlv::unknown(kind)?,
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
        })
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

/// A cluster that was made.
#[derive(Clone, Debug)]
pub struct ClusterIdentity {
    /// The cluster.
    pub cluster: u128,
    /// Its servers, in the order in which they were given.
    pub servers: Vec<(ServerId, String)>,
}

/// Makes the identities of a whole new cluster, whose root domain all of its servers hold.
///
/// # Errors
/// [`ServeError`] if a directory cannot be used, or belongs to a server already.
pub fn initialise_cluster(
    servers: &[NewServer],
    memory: bool,
) -> Result<ClusterIdentity, ServeError> {
    let ids: Vec<ServerId> = servers.iter().map(|_| ServerId(random())).collect();
    let (cluster, root) = (random(), root_configuration(&ids, false));
    let mut directories = Vec::new();
    for server in servers {
        // All are looked at before any is written.
        let directory = Directory::open(&server.data)?;
        if directory.read_identity()?.is_some() {
            let path = server.data.clone();
            return Err(ServeError::AlreadyInitialised { path });
        }
        directories.push(directory);
    }
    for ((directory, server), id) in directories.iter().zip(servers).zip(&ids) {
        let identity = Identity {
            cluster,
            server: *id,
            name: server.name.clone(),
            starts: Starts::NONE,
            memory,
            extent: 0,
            root: root.clone(),
        };
        write(directory, &identity)?;
    }
    let names = servers.iter().map(|server| server.name.clone());
    Ok(ClusterIdentity {
        cluster,
        servers: ids.iter().copied().zip(names).collect(),
    })
}

/// The first configuration of a root domain: replicated, because what it holds is small. `fixed`: people alone change its members.
pub(crate) fn root_configuration(members: &[ServerId], fixed: bool) -> Arc<Configuration> {
    let descriptor = Descriptor {
        fixed,
        ..Descriptor::new(DomainId(random()), members.to_vec(), Dap::Abd)
    };
    Configuration::new(descriptor)
        .expect("random ids are distinct, and a cluster has at most 255 first servers")
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
    fn identities_survive_and_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let server = |name: &str| NewServer {
            data: folder.path().join(name),
            name: name.into(),
        };
        let made = initialise_cluster(&[server("s1"), server("s2")], false).unwrap();
        let read = read_identity(&folder.path().join("s2")).unwrap().unwrap();
        assert_eq!(read.cluster, made.cluster);
        assert_eq!((read.server, read.name.as_str()), (made.servers[1].0, "s2"));
        assert_eq!(
            (read.starts, read.memory, read.root.n()),
            (Starts::NONE, false, 2)
        );
        let again = initialise_cluster(&[server("s3"), server("s2")], false);
        assert!(matches!(again, Err(ServeError::AlreadyInitialised { .. })));
        assert_eq!(read_identity(&folder.path().join("s3")).unwrap(), None);
    }
}
