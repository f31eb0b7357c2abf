//! The server's task as a leader: what is posted where it leads it makes ([`areo_core::manager::leading`]).

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use areo_core::dsm::Client;
use areo_core::manager::leading::{Leader, LedDomain};
use areo_core::span::ErrorType;
use areo_core::timing::LEAD_AGAIN;
use areo_net::env::NetEnv;

use crate::identity::Identity;
use crate::registration::Registrar;
use crate::worker::Worker;

/// The patience of an operation with one call.
const ATTEMPT: Duration = Duration::from_secs(5);

impl Registrar {
    /// Makes posted changes, for as long as the server serves. Never returns.
    pub(crate) async fn lead(&self, identity: &Identity, worker: &Rc<Worker>) -> Infallible {
        let network = self.network().clone();
        let env = move || -> NetEnv { network.patient_env(ATTEMPT) };
        // Of its own: another one remembers where domains are, too, and counts its ballots.
        let client = Client::new(env());
        let mut leader = Leader::new(client.clone(), env, &self.access.root);
        loop {
            // What could not be made is tried again.
            let _ = tokio::time::timeout(LEAD_AGAIN, worker.posted_to()).await;
            if leader.is_due(&**worker) {
                self.learn_addresses(identity, worker).await;
                self.access.begin(&client);
                leader.round(&**worker).await.iter().for_each(report);
            }
        }
    }
}

fn report(led: &LedDomain) {
    match led {
        Ok(Some(c)) => {
            let (domain, index) = (c.id().domain.0, c.id().index);
            tracing::info!(
                domain = format!("{domain:032x}"),
                index,
                "changes that were posted are made"
            );
        }
        Ok(None) => {}
        Err(error) => tracing::info!(
            error.type = error.error_type(),
            "changes that were posted are not made yet"
        ),
    }
}
