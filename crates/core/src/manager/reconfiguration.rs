//! Reconfiguring a domain, as a user asks for it ([`crate::reconfig`]).

use super::directory;
use crate::config::{Configuration, Descriptor, Members};
use crate::consensus;
use crate::dsm::Client;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{Fold, Servers};
use crate::message::{Reply, Request};
use crate::reconfig::ares::{self, LeaveOff, ReconfigError, Reconfigured, Reconfigurer};
use crate::reconfig::transfer::Progress;
use crate::reconfig::walk;
use std::sync::Arc;

/// The domain's sequence from its last final configuration to its end, as far as it can be seen. All but the first are
/// pending: somebody installs them, or left off. `known`: any final configuration of the domain.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn path<E: Env>(
    client: &Client<E>,
    known: &Arc<Configuration>,
) -> Result<Vec<Arc<Configuration>>, Unavailable> {
    walk::path(&client.env, client.sequences(), known).await
}

/// Appends `wanted`, but for its index, to the domain's sequence, while clients read and write; then tells the directory.
/// `known`: any final configuration of the domain.
///
/// # Errors
/// [`ReconfigError`].
pub async fn reconfigure<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    progress: &dyn Fn(Progress),
) -> Result<Reconfigured, ReconfigError> {
    let done = install(client, known, wanted, progress).await?;
    tell_directory(client, root, &done.clone().into_configuration()).await;
    Ok(done)
}

/// The same without telling the directory.
///
/// # Errors
/// [`ReconfigError`].
pub(super) async fn install<E: Env>(
    client: &Client<E>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    progress: &dyn Fn(Progress),
) -> Result<Reconfigured, ReconfigError> {
    let by = Reconfigurer {
        env: &client.env,
        sequences: client.sequences(),
        consensus: &consensus::AsDescribed(|| client.next_writer()),
        progress,
    };
    ares::reconfigure(&by, known, wanted).await
}

/// As [`reconfigure`], but left off after this step, and without telling the directory. `None` if the configuration asked
/// for is pending then.
///
/// # Errors
/// [`ReconfigError`].
pub async fn leave_off<E: Env>(
    client: &Client<E>,
    known: &Arc<Configuration>,
    wanted: &Descriptor,
    after: LeaveOff,
) -> Result<Option<Reconfigured>, ReconfigError> {
    let by = Reconfigurer {
        env: &client.env,
        sequences: client.sequences(),
        consensus: &consensus::AsDescribed(|| client.next_writer()),
        progress: &|_| {},
    };
    ares::leave_off(&by, known, wanted, after).await
}

/// Finishes what another reconfigurer left pending; then tells the directory. `None`: nothing is pending.
///
/// # Errors
/// [`ReconfigError`].
pub async fn resume<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    known: &Arc<Configuration>,
    progress: &dyn Fn(Progress),
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let by = Reconfigurer {
        env: &client.env,
        sequences: client.sequences(),
        consensus: &consensus::AsDescribed(|| client.next_writer()),
        progress,
    };
    let installed = ares::resume(&by, known).await?;
    if let Some(c) = &installed {
        tell_directory(client, root, c).await;
    }
    Ok(installed)
}

/// Best effort: a directory that is behind costs whoever looks the domain up some hops.
async fn tell_directory<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    c: &Arc<Configuration>,
) {
    let root = client.sequences().start(root);
    // The directory last: it frees the name of a domain that was removed.
    for to in [c, &root] {
        // A quorum that does not answer hears of it from whoever reconfigures next.
        let _ = directory::announce(client, to, c).await;
    }
    if c.id().domain == root.id().domain {
        tell_servers(client, &root).await;
    }
}

/// Every server says where the root domain is to whoever asks it first. Waits for most of them: one that is down hears of it
/// when it registers again.
async fn tell_servers<E: Env>(client: &Client<E>, root: &Arc<Configuration>) {
    if let Ok(servers) = directory::servers(client, root).await {
        let servers: Members = servers.into_keys().collect();
        let id = root.id();
        let latest = Request::Latest {
            domain: id.domain,
            partition: id.partition,
            known: Some(root.clone()),
        };
        let fold = |(): &mut (), _from: usize, _reply: Reply| Fold::Count;
        let tally = Servers::new(servers.len(), servers.len() / 2 + 1, latest, (), fold);
        // Best effort.
        let _ = client.env.gather(&servers, tally).await;
    }
}
