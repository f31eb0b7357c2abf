//! Servers that repair themselves, round after round, for as long as they serve: the production code
//! (`core::manager::repair`) with pauses that the seed draws.

use super::World;
use super::call::{SimEnv, envs};
use areo_core::config::ConfigurationId;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::manager::repair::{RepairHost, RepairPace, Repairer};
use areo_core::object::Name;
use areo_core::tag::Tag;
use std::time::Duration;

/// Timeout of one operation of a repair.
const ATTEMPT: Duration = Duration::from_secs(2);

struct Host<'a> {
    world: &'a World,
    server: usize,
    clock: &'a SimEnv,
}

impl RepairHost for Host<'_> {
    /// A load that follows the clock, so that all shares occur.
    fn busy_percent(&self) -> u8 {
        ((self.clock.now().0 >> 20) % 101) as u8
    }

    /// No disk changes bytes so that their checksum is right, unless servers remember anything.
    fn distrust(&self, key: ConfigurationId, name: &Name, tag: Tag) {
        let server = self.server;
        if self.world.is_arbitrary() {
            return self.world.distrust(server, key, name, tag);
        }
        self.world.violate(format!(
            "cross-check: server {server} holds an element of another value under {tag} of {name:?}"
        ));
    }

    fn drop_tombstones(&self, key: ConfigurationId, blocks: &[Name]) {
        self.world.drop_tombstones(self.server, key, blocks);
    }
}

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
            let env = envs(&world, caller, ATTEMPT);
            let client = Client::new(env());
            let clock = client.env.clone();
            let mut repairer = Repairer::new(client, env, id, &world.root(), pace);
            loop {
                clock.sleep(pause).await;
                let host = Host {
                    world: &world,
                    server,
                    clock: &clock,
                };
                let round = repairer.round(&host).await;
                world.gone_over(server, &round);
                let checks = round.domains.iter().map(|domain| domain.checks);
                let contradicts = checks.clone().any(|checks| checks.contradicting > 0);
                if contradicts && !world.is_arbitrary() {
                    world.violate(format!(
                        "cross-check: server {server} sees elements of one version that contradict each other"
                    ));
                }
                let sound = world.0.cross_checked.get();
                let more: u64 = checks.map(|checks| checks.sound).sum();
                world.0.cross_checked.set(sound + more);
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
