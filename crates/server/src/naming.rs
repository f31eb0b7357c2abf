//! A server that joins a cluster gets its name before it registers for the first time, from a quorum of the root domain.

use std::time::Duration;

use areo_core::dsm::Client;
use areo_core::error::Unavailable;
use areo_core::manager::{Naming, Root};
use areo_core::message::ServerRecord;
use areo_net::Tls;
use areo_net::env::NetEnv;
use areo_net::network::Network;
use areo_wire::hello::Role;

use crate::error::ServeError;
use crate::identity::Identity;
use crate::registration::find_cluster;

/// The longest time for one attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The name of a server whose identity has none yet: `wanted`, that of the server whose place its record takes, or the next free
/// one. Waits for a quorum of the root domain, however long that takes; `seeds` are addresses at which servers may be.
///
/// # Errors
/// [`ServeError::NameTaken`].
pub(crate) async fn name(
    (identity, record): (&Identity, &ServerRecord),
    wanted: Option<&str>,
    (seeds, tls): (&[String], Option<&Tls>),
) -> Result<String, ServeError> {
    let network = Network::with_tls(Role::Server, identity.server.0, tls.cloned());
    let mut seeds = seeds.to_vec();
    loop {
        match find_cluster(&seeds, &network).await {
            Ok(found) if found.cluster == identity.cluster => {
                network.learn(found.cluster, found.directory.servers);
                // Its deadline begins here.
                let client = Client::new(network.env(ATTEMPT));
                let root = client.root(&found.directory.root);
                let named = match root.name_server(record, wanted).await {
                    Ok(named) => mark_replaced(&root, identity).await.map(|()| named),
                    unavailable => unavailable,
                };
                match named {
                    Ok(Naming::Named(name)) => return Ok(name),
                    Ok(Naming::Taken { by }) => {
                        let name = wanted.unwrap_or_default().to_owned();
                        return Err(ServeError::NameTaken { name, by });
                    }
                    Err(unavailable) => {
                        tracing::info!(%unavailable, "waiting for a quorum of the root domain to get a name");
                    }
                }
            }
            Ok(_) => tracing::warn!("a server of another cluster answers at the address to join"),
            Err(error) => tracing::info!(%error, "waiting for the root domain to get a name"),
        }
        // The server that answered may be this one, or another one that has no name yet: such a server does not know where the others are.
        if !seeds.is_empty() {
            seeds.rotate_left(1);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Marks the servers whose place this one takes, before another server is at their address: nothing chooses both.
async fn mark_replaced(root: &Root<NetEnv>, identity: &Identity) -> Result<(), Unavailable> {
    let replaces = &identity.succession.replaces;
    if replaces.is_empty() {
        return Ok(());
    }
    let servers = root.servers().await?;
    let replaced = replaces.iter().filter_map(|it| servers.get(it));
    for record in replaced.filter(|it| !it.is_forgotten() && !it.is_leaving()) {
        root.mark_leaving(record, true).await?;
    }
    Ok(())
}
