//! Servers that repair themselves, round after round, for as long as they serve: the production code
//! (`core::manager::repair`) with pauses that the seed draws.

use super::World;
use super::call::SimEnv;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::manager::repair::{RepairPace, Repairer};
use std::time::Duration;

/// How long one operation of a repair may take.
const ATTEMPT: Duration = Duration::from_secs(2);

impl World {
    /// The server, whose start is confirmed, begins to repair itself.
    pub(super) fn begin_repair(&self, server: usize) {
        let (world, caller) = (self.clone(), self.caller_of(server));
        let id = self.0.machines.borrow().list[server].platter.id;
        let pace = RepairPace {
            bytes_per_s: 1 << self.random().between(14, 24),
            page: Duration::from_millis(self.random().between(1, 20)),
        };
        let pause = Duration::from_millis([100, 500, 2000][self.random().index(3)]);
        let task = self.spawn(async move {
            let of_world = world.clone();
            let env = move || {
                let env = SimEnv::new(&of_world, caller, ATTEMPT);
                env.goes_over_many();
                env
            };
            let client = Client::new(env());
            let clock = client.env.clone();
            let mut repairer = Repairer::new(client, env, id, &world.root(), pace);
            loop {
                clock.sleep(pause).await;
                // As busy as the time of day says: all shares come up.
                let busy = || ((clock.now().0 >> 20) % 101) as u8;
                let round = repairer.round(&busy).await;
                let repaired: u64 = round.domains.iter().map(|domain| domain.repaired).sum();
                let lacking = round.lacking();
                let before = world.0.repaired.get();
                world.0.repaired.set(before + repaired);
                world.record([6, server as u64, repaired, lacking], || {
                    format!("server {server} has repaired {repaired} objects, and lacks {lacking}")
                });
            }
        });
        self.0.machines.borrow_mut().list[server].repairing = Some(task);
    }
}
