//! The server's task as a member of the root domain: that grows by itself ([`areo_core::manager::growth`]).

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use areo_core::dsm::Client;
use areo_core::manager::growth::{Grower, Growth, NoSpare};
use areo_core::span::ErrorType;
use areo_net::env::NetEnv;

use crate::identity::Identity;
use crate::registration::Registrar;
use crate::worker::Worker;

/// The longest time for one operation.
const ATTEMPT: Duration = Duration::from_secs(15);
/// The time for which a member is away before another server gets its place: restarts, also of machines,
/// are shorter.
const GONE_AFTER: Duration = Duration::from_mins(5);
/// The pause after a round that found something to do, and while the root domain tolerates no crash.
const SOON: Duration = Duration::from_secs(1);
/// The pause at rest of the member that looks after the others.
const PAUSE: Duration = Duration::from_secs(5);
/// The pause of all other servers.
const LEFT: Duration = Duration::from_secs(15);
/// Failures in a row double the pause this often at most.
const DOUBLINGS: u32 = 5;

impl Registrar {
    /// Sees to the members of the root domain, for as long as the server serves. Never returns.
    pub(crate) async fn grow(&self, identity: &Identity, worker: &Rc<Worker>) -> Infallible {
        let network = self.network().clone();
        let env = move || -> NetEnv { network.env(ATTEMPT) };
        // Of its own: another one remembers where domains are, too, and counts its ballots.
        let client = Client::new(env());
        let mut grower = Grower::new(
            client.clone(),
            env,
            identity.server,
            &self.access.root,
            GONE_AFTER,
        );
        let (mut said, mut failures) = (None, 0);
        loop {
            self.learn_addresses(identity, worker).await;
            self.access.begin(&client);
            let growth = grower.round().await;
            let no_spare = grower.no_spare();
            if no_spare != said {
                say(no_spare);
                said = no_spare;
            }
            report(&growth);
            failures = match growth {
                Growth::Failed(_) => failures + 1,
                _ => 0,
            };
            let pause = match growth {
                Growth::Failed(_) => SOON * (1 << failures.min(DOUBLINGS)),
                Growth::Due | Growth::Changed(_) => SOON,
                Growth::Settled | Growth::Left if no_spare.is_some() => SOON,
                Growth::Settled => PAUSE,
                Growth::Left => LEFT,
            };
            tokio::time::sleep(pause).await;
        }
    }
}

/// Logs whether the root domain tolerates a crash, if that has changed.
fn say(no_spare: Option<NoSpare>) {
    if let Some(no_spare) = no_spare {
        tracing::warn!("{no_spare}");
    } else {
        tracing::info!("the root domain tolerates a crash");
    }
}

fn report(growth: &Growth) {
    match growth {
        Growth::Changed(c) => {
            let (members, index) = (c.n(), c.id().index);
            tracing::info!(members, index, "the root domain has other members");
        }
        Growth::Failed(error) => tracing::info!(
            error.type = error.error_type(),
            "the members of the root domain are not changed yet"
        ),
        Growth::Left | Growth::Settled | Growth::Due => {}
    }
}
