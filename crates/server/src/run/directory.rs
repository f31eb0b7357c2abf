//! The identity in a data directory: found there, or made.

use std::net::SocketAddr;
use std::rc::Rc;

use areo_core::config::ServerId;
use areo_core::message::ServerRecord;
use areo_core::starts::Starts;
use areo_net::Tls;
use areo_node::{Keep, may_start};
use areo_store::Directory;
use areo_store::records::Records;

use super::{Durability, Options, Start};
use crate::error::ServeError;
use crate::identity::{self, ClusterIdentity, Identity, Succession};
use crate::naming;
use crate::registration::{self, place};
use crate::replacement::{self, LOG};
use crate::trust::joining::{self, Attempt};
use crate::trust::operator::{self, CertificateFileError, Follower};
use crate::trust::{self, NewTrust, Trust, TrustFile};
use crate::worker::Durable;

/// A data directory whose server is known.
pub(super) struct Taken {
    pub(super) directory: Rc<Directory>,
    pub(super) identity: Identity,
    /// The keys of the server, if its cluster has any, and the files of an operator's certificate for it.
    pub(super) trust: Option<(TrustFile, Option<Follower>)>,
    /// The record of the server before it starts.
    pub(super) record: ServerRecord,
}

/// The addresses of a server that are not of this machine alone.
pub(super) struct Reach {
    pub(super) listen: SocketAddr,
    pub(super) admin: SocketAddr,
}

impl Reach {
    fn is_wide(&self) -> bool {
        !registration::is_loopback(&self.listen)
    }

    /// Refuses addresses that other machines reach where no key is asked for.
    fn check(&self, has_trust: bool, options: &Options) -> Result<(), ServeError> {
        let ends = [
            (&self.listen, &options.listen),
            (&self.admin, &options.admin),
        ];
        for (end, address) in ends {
            if !has_trust && !registration::is_loopback(end) {
                let address = address.clone();
                return Err(ServeError::NotLoopback { address });
            }
        }
        Ok(())
    }
}

/// A server that is made now.
struct NewIdentity {
    identity: Identity,
    trust: Option<Trust>,
    /// The cluster that is made now, with its administrator.
    cluster: Option<ClusterIdentity>,
}

/// The directory, whose server it is, and the facts about that server before it starts. Refused before anything is
/// made if the server would be open to other machines at this address without keys.
pub(super) async fn take_directory(options: &Options, at: &Reach) -> Result<Taken, ServeError> {
    // The identity of the server is known before anything is made on disk, but for a token, which is not sent without a trace.
    let mut opened = None;
    let mut new = match Directory::has_identity(&options.data)? {
        true => None,
        false => new_identity(options, at, &mut opened).await?,
    };
    if let Some(new) = &new {
        at.check(new.identity.has_trust, options)?;
    }
    let directory = opened.map_or_else(|| Directory::open(&options.data), Ok)?;
    // Looked at again under the lock: another process may have been faster.
    if has_server(&directory)? {
        new = None;
    }
    let directory = Rc::new(directory);
    if let Some(new) = &mut new {
        new.keep_keys(&directory, options)?;
    }
    let is_drawn = new.is_some();
    let identity = identity_of(&directory, new.map(|new| new.identity), options)?;
    at.check(identity.has_trust, options)?;
    let identity = replacement::set_log_aside(&directory, identity)?;
    let record = place::record_of(&identity, is_drawn, options);
    let trust = trust_of(&directory, &identity, options)?;
    Ok(Taken {
        directory,
        identity,
        trust,
        record,
    })
}

/// The keys of the server, if its cluster has any, with the certificate of the operator, if the options name one.
fn trust_of(
    directory: &Directory,
    identity: &Identity,
    options: &Options,
) -> Result<Option<(TrustFile, Option<Follower>)>, ServeError> {
    let (server, now) = (identity.server, trust::now_seconds());
    let own = (identity.cluster, server);
    let found = trust::of_start(directory, own, (identity.has_trust, now));
    let Some(mut file) = found.map_err(trust::at(&options.data))? else {
        return match options.certificate {
            Some(_) => Err(ServeError::Certificate(CertificateFileError::NoKeys)),
            None => Ok(None),
        };
    };
    let predecessors = &identity.succession.predecessors;
    let follow = |files| operator::of_start(files, (&mut file.trust, server), predecessors, now);
    let follower = options.certificate.as_ref().map(follow).transpose();
    let follower = follower.map_err(ServeError::Certificate)?;
    Ok(Some((file, follower)))
}

/// True if the directory has a server. Keys and a log of one without an identity are not written over.
fn has_server(directory: &Directory) -> Result<bool, ServeError> {
    let has_identity = directory.read_identity()?.is_some();
    if !has_identity && directory.path().join(LOG).exists() {
        let path = directory.path().to_owned();
        return Err(ServeError::NoIdentity { path });
    }
    Ok(has_identity)
}

/// The identity in the directory, which has one from now on. That of a server in memory is written when its start begins, so that
/// no other process finds it and serves under it (`[X-28 memory-replaced]`).
fn identity_of(
    directory: &Directory,
    new: Option<Identity>,
    options: &Options,
) -> Result<Identity, ServeError> {
    let path = options.data.clone();
    let memory = options.durability == Durability::Memory;
    let identity = match (identity::read(directory)?, new) {
        (Some(identity), _) => identity,
        (None, Some(new)) if new.memory => new,
        (None, Some(new)) => {
            identity::write(directory, &new)?;
            new
        }
        (None, None) => return Err(ServeError::NotInitialised { path }),
    };
    // One that took the place of another has a name of its own.
    if let Some(wanted) = &options.name
        && identity.succession.predecessors.is_empty()
        && !identity.name.is_empty()
        && identity.name != *wanted
    {
        let (name, wanted) = (identity.name, wanted.clone());
        return Err(ServeError::OtherName { path, name, wanted });
    }
    if identity.memory != memory {
        let memory = identity.memory;
        return Err(ServeError::Durability { path, memory });
    }
    if !may_start(memory, identity.starts) {
        return Err(ServeError::MemoryRestart { path });
    }
    Ok(identity)
}

/// The identity with a name, which is written down if it is new.
pub(super) async fn named(
    (mut identity, record): (Identity, &ServerRecord),
    directory: &Directory,
    options: &Options,
    (seeds, tls): (&[String], Option<&Tls>),
) -> Result<Identity, ServeError> {
    if identity.name.is_empty() {
        let own = (&identity, record);
        // The name that was chosen is that of the server whose place this one takes.
        let is_first = identity.succession.predecessors.is_empty();
        let wanted = options.name.as_deref().filter(|_| is_first);
        identity.name = naming::name(own, wanted, (seeds, tls)).await?;
        if !identity.memory {
            identity::write(directory, &identity)?;
        }
    }
    options.recorder.name_process(identity.name.clone());
    Ok(identity)
}

impl NewIdentity {
    /// Writes the keys down, before there is an identity that says that there are some: without them nothing could be done with the
    /// server, or with the cluster.
    fn keep_keys(&mut self, directory: &Directory, options: &Options) -> Result<(), ServeError> {
        if let Some(trust) = &mut self.trust {
            let written = trust.write(directory, None);
            written.map_err(trust::at(&options.data))?;
        }
        if let Some(cluster) = &self.cluster
            && let Start::Init { administrator, .. } = &options.start
        {
            let kept = administrator.keep(cluster);
            kept.map_err(|reason| ServeError::Administrator { reason })?;
        }
        Ok(())
    }
}

/// A server that is made now; none if the directory has one by now. Where it is made by a token, the directory is opened.
async fn new_identity(
    options: &Options,
    at: &Reach,
    opened: &mut Option<Directory>,
) -> Result<Option<NewIdentity>, ServeError> {
    if options.certificate.is_some() && options.start != Start::Existing {
        return Err(ServeError::Certificate(CertificateFileError::NoServer));
    }
    let identity = |cluster, server, root, name| Identity {
        cluster,
        server,
        name,
        starts: Starts::NONE,
        memory: options.durability == Durability::Memory,
        extent: 0,
        root,
        has_trust: false,
        succession: Succession::default(),
    };
    match &options.start {
        Start::Existing => Err(ServeError::NotInitialised {
            path: options.data.clone(),
        }),
        Start::Init { fixed_root, .. } => {
            let (cluster, server) = (identity::random(), ServerId(identity::random()));
            let root = identity::root_configuration(&[server], *fixed_root);
            let name = options.name.clone().unwrap_or_else(|| "s1".into());
            let now = trust::now_seconds();
            let has_trust = options.tls || at.is_wide();
            let new = has_trust.then(|| NewTrust::create(cluster, now));
            let new = new.transpose().map_err(trust::at(&options.data))?;
            let trust = new.as_ref().map(|new| new.of(server, now)).transpose();
            let trust = trust.map_err(trust::at(&options.data))?;
            Ok(Some(NewIdentity {
                cluster: new.map(|new| ClusterIdentity {
                    cluster,
                    servers: vec![(server, name.clone())],
                    administrator: Some(new.administrator()),
                }),
                identity: Identity {
                    has_trust: trust.is_some(),
                    ..identity(cluster, server, root, name)
                },
                trust,
            }))
        }
        Start::Join { seeds, token } => {
            let joined = match token {
                None => Some(joining::without_token(seeds).await?),
                Some(token) => {
                    let begin = || {
                        let directory = opened.insert(Directory::open(&options.data)?);
                        match has_server(directory)? {
                            true => Ok(None),
                            false => Attempt::of(directory).map(Some),
                        }
                    };
                    joining::by_token(seeds, token, begin).await?
                }
            };
            // It gets its name when it can be found under it.
            Ok(joined.map(|joined| NewIdentity {
                identity: Identity {
                    has_trust: joined.trust.is_some(),
                    ..identity(joined.cluster, joined.server, joined.root, String::new())
                },
                trust: joined.trust,
                cluster: None,
            }))
        }
    }
}

/// The identity as it is to be written down with the start that is registered next.
pub(super) fn with_extent(identity: Identity, keep: &Durable) -> Identity {
    let extent = keep.log().map_or(0, Records::extent);
    Identity {
        extent: identity.extent.max(extent),
        ..identity
    }
}
