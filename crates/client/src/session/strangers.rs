//! Servers that a client has never heard of.
//!
//! A domain can move to servers that joined the cluster long after a client did. The client learns of them by the
//! configuration that it is led to, which has their ids and no addresses. What it asks of them waits in the network, and
//! meanwhile it asks the directory where they are; no operation needs to know.

use super::cluster::{self, KnownCluster};
use super::thread::World;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long one attempt to ask the directory may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Finds out where servers are that were asked something, for as long as the client lives.
pub(super) async fn introduce(world: Rc<World>, cluster: Arc<KnownCluster>) {
    loop {
        world.network.stranger_asked().await;
        while world.network.strangers_wanted() {
            cluster::refresh(&world, &cluster, PATIENCE).await;
            sleep(PAUSE).await;
        }
    }
}
