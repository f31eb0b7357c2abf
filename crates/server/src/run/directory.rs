//! The identity in a data directory: found there, or made.

use std::rc::Rc;

use areo_core::config::ServerId;
use areo_core::message::ServerRecord;
use areo_core::starts::Starts;
use areo_node::{Keep, may_start};
use areo_store::Directory;
use areo_store::records::Records;

use super::{Durability, Options, Start};
use crate::error::ServeError;
use crate::identity::{self, Identity, Succession};
use crate::naming;
use crate::registration::{self, place};
use crate::replacement;
use crate::worker::Durable;

/// The directory, whose server it is, and what is known of that before it starts.
pub(super) async fn take_directory(
    options: &Options,
) -> Result<(Rc<Directory>, Identity, ServerRecord), ServeError> {
    // The identity of the server is known before anything is made on disk.
    let new = match Directory::has_identity(&options.data)? {
        true => None,
        false => Some(new_identity(options).await?),
    };
    let directory = Rc::new(Directory::open(&options.data)?);
    let is_drawn = new.is_some();
    let identity = identity_of(&directory, new, options)?;
    let identity = replacement::set_log_aside(&directory, identity)?;
    let record = place::record_of(&identity, is_drawn, options);
    Ok((directory, identity, record))
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
    seeds: &[String],
) -> Result<Identity, ServeError> {
    if identity.name.is_empty() {
        let own = (&identity, record);
        // The name that was chosen is that of the server whose place this one takes.
        let is_first = identity.succession.predecessors.is_empty();
        let wanted = options.name.as_deref().filter(|_| is_first);
        identity.name = naming::name(own, wanted, seeds).await?;
        if !identity.memory {
            identity::write(directory, &identity)?;
        }
    }
    options.recorder.name_process(identity.name.clone());
    Ok(identity)
}

async fn new_identity(options: &Options) -> Result<Identity, ServeError> {
    let server = ServerId(identity::random());
    let (cluster, root, name) = match &options.start {
        Start::Existing => {
            return Err(ServeError::NotInitialised {
                path: options.data.clone(),
            });
        }
        Start::Init { fixed_root } => (
            identity::random(),
            identity::root_configuration(&[server], *fixed_root),
            options.name.clone().unwrap_or_else(|| "s1".into()),
        ),
        Start::Join { seeds } => {
            registration::check_seeds(seeds, server).await?;
            let found = registration::find_cluster(seeds, server).await?;
            // It gets its name when it can be found under it.
            (found.cluster, found.directory.root, String::new())
        }
    };
    Ok(Identity {
        cluster,
        server,
        name,
        starts: Starts::NONE,
        memory: options.durability == Durability::Memory,
        extent: 0,
        root,
        succession: Succession::default(),
    })
}

/// The identity as it is to be written down with the start that is registered next.
pub(super) fn with_extent(identity: Identity, keep: &Durable) -> Identity {
    let extent = keep.log().map_or(0, Records::extent);
    Identity {
        extent: identity.extent.max(extent),
        ..identity
    }
}
