//! The cluster on the admin port: whether quorums serve, as far as this server can tell.

use std::sync::Arc;
use std::time::Duration;

use areo_core::config::Configuration;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::gather::{Fold, Servers, join};
use areo_core::message::{Reply, Request};
use areo_net::env::NetEnv;
use serde_json::{Value, json};

/// How long one question may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Domains that are asked at once.
const WINDOW: usize = 16;

/// How the cluster is, for `/health/cluster`.
pub(crate) struct ClusterHealth {
    /// A quorum of the root domain and of every domain serves.
    pub(crate) ready: bool,
    /// An object, as JSON.
    pub(crate) text: String,
}

impl ClusterHealth {
    /// Of a server that does not serve itself, and so knows nothing of others.
    pub(crate) fn unknown() -> ClusterHealth {
        ClusterHealth::of(false, &[])
    }

    fn of(ready: bool, domains: &[Value]) -> ClusterHealth {
        let text = json!({ "ready": ready, "domains": domains }).to_string();
        ClusterHealth { ready, text }
    }
}

/// Asks the root domain which domains there are, and a quorum of each whether it serves.
pub(crate) async fn look(client: &Client<NetEnv>, root: &Arc<Configuration>) -> ClusterHealth {
    let domains = client.root(root).domains().await;
    let root = client.sequences().start(root);
    // Without a quorum of the root domain the others are not known.
    let is_known = domains.is_ok();
    let named = [("@root".to_owned(), root)];
    let all = named.into_iter().chain(domains.unwrap_or_default());
    let ask = |(name, c): (String, Arc<Configuration>)| async move {
        let serves = serves(client, &c).await;
        let domain = json!({
            "domain": name,
            "configuration": c.id().index,
            "servers": c.n(),
            "quorum": c.quorums().quorum(),
            "serves": serves,
        });
        (serves, domain)
    };
    let answers = join(WINDOW, all.map(ask)).await;
    let ready = is_known && answers.iter().all(|(serves, _)| *serves);
    let domains: Vec<Value> = answers.into_iter().map(|(_, domain)| domain).collect();
    ClusterHealth::of(ready, &domains)
}

/// Whether a quorum says in time that it serves.
async fn serves(client: &Client<NetEnv>, c: &Arc<Configuration>) -> bool {
    let fold = |(): &mut (), _from: usize, reply: Reply| match reply {
        Reply::Status(status) if status.serving => Fold::Count,
        _ => Fold::Ignore,
    };
    let tally = Servers::new(c.n(), c.quorums().quorum(), Request::Status, (), fold);
    client.env.gather(c.members(), tally).await.is_ok()
}
