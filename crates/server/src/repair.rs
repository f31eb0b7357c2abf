//! The server's own repair: rounds of [`areo_core::manager::repair`] for as long as it serves.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_core::manager::repair::{RepairPace, Repairer, Round};
use areo_core::message::Request;
use areo_net::env::NetEnv;

use crate::caller::Caller;
use crate::identity::Identity;
use crate::registration::Registrar;
use crate::worker::Worker;

/// The longest time for one operation.
const ATTEMPT: Duration = Duration::from_secs(15);
/// The wait between the start of the server and its first round: the others may be starting, too.
const FIRST: Duration = Duration::from_secs(1);
/// The pause between two rounds, if the server lacked nothing: at least this, and [`SHARE`] times the duration of the
/// round.
const PAUSE: Duration = Duration::from_mins(1);
/// Rounds at rest take one part in so many of the time, and one more.
const SHARE: u32 = 10;
/// The pause after a round that left something to do: at least this, and as long as the round took.
const SOON: Duration = Duration::from_secs(5);
/// The pause after each page of objects.
const PAGE: Duration = Duration::from_millis(250);

impl Registrar {
    /// Goes over the objects of the server, round after round, and fetches the elements that it lacks. Never returns.
    pub(crate) async fn repair(
        &self,
        identity: &Identity,
        worker: &Rc<Worker>,
        bytes_per_s: u64,
    ) -> Infallible {
        if bytes_per_s == 0 {
            std::future::pending::<()>().await;
        }
        let network = self.network().clone();
        let env = move || -> NetEnv { network.env(ATTEMPT) };
        let pace = RepairPace {
            bytes_per_s,
            page: PAGE,
        };
        let client = self.access.client(env());
        let mut repairer = Repairer::new(client, env, identity.server, &self.access.root, pace);
        let mut pause = FIRST;
        loop {
            tokio::time::sleep(pause).await;
            self.learn_addresses(identity, worker).await;
            let begun = Instant::now();
            let round = repairer.round(&**worker).await;
            let took = begun.elapsed();
            worker.gone_over(&round);
            report(&round);
            pause = match round.is_whole && round.lacking() == 0 {
                true => PAUSE.max(took * SHARE),
                false => SOON.max(took),
            };
        }
    }

    /// Learns the addresses of servers that have joined since, or have moved. A server that was forgotten has no standing at this one from then on.
    pub(crate) async fn learn_addresses(&self, identity: &Identity, worker: &Rc<Worker>) {
        if let Ok(servers) = self.access.within(ATTEMPT).servers().await {
            let forgotten = servers.values().filter(|record| {
                record.is_forgotten() && worker.has_forgotten(record.id) != Some(true)
            });
            for record in forgotten.cloned().collect::<Vec<_>>() {
                worker.request(Request::Know(record), Caller::nobody(), None);
            }
            worker.turn();
            self.network()
                .learn(identity.cluster, servers.into_values());
        }
    }
}

/// Logs the result of a round, if it is worth a line.
fn report(round: &Round) {
    for domain in &round.domains {
        let (name, lacking, repaired) = (&domain.domain, domain.lacking, domain.repaired);
        if repaired > 0 || lacking > 0 {
            let bytes = domain.bytes;
            tracing::info!(domain = %name, repaired, bytes, lacking, "objects of this server were repaired");
        }
        if domain.checks.contradicting > 0 {
            let objects = domain.checks.contradicting;
            tracing::error!(domain = %name, objects, "elements of objects contradict each other, and it is not known which are wrong");
        }
        if let Some(ended) = &domain.ended {
            tracing::debug!(domain = %name, %ended, "a round of repair ended before its last object");
        }
    }
}
