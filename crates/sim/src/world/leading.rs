//! Servers that lead: the production task (`core::manager::leading`), killed between any two of its steps.

use super::call::envs;
use super::{Event as Happening, Trouble, World};
use crate::fault::Fault;
use areo_core::consensus::mailbox::PostedChanges;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::manager::leading::{Leader, LeaderHost};
use areo_core::object::DomainId;
use areo_core::reconfig::transfer::Progress;
use std::time::Duration;

/// How long one round of a leader may take.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Tells the draw of its pauses apart from others.
const PAUSE: u64 = 0x1ead;

struct Host<'a> {
    world: &'a World,
    server: usize,
    life: u64,
}

impl LeaderHost for Host<'_> {
    fn posted(&self) -> Vec<PostedChanges> {
        let machines = self.world.0.machines.borrow();
        machines.list[self.server].posted()
    }

    fn progress(&self, domain: DomainId, step: Option<Progress>) {
        let (world, server) = (self.world, self.server);
        world.0.machines.borrow_mut().list[server].leads(domain, step.map(Progress::moved));
        world.record([9, server as u64, 0, 0], || {
            format!("server {server} leads: {step:?}")
        });
        if world.plan().draws(Fault::LeaderKilled) {
            let end = Trouble::LeaderEnds(server, self.life);
            world.at(Duration::ZERO, Happening::Trouble(end));
        }
    }
}

impl World {
    /// From now on servers lead, as soon as their starts are confirmed.
    pub(crate) fn let_servers_lead(&self) {
        self.0.leads.set(true);
    }

    /// The server, whose start is confirmed, begins to lead, if servers do.
    pub(super) fn begin_leading(&self, server: usize, life: u64) {
        if !self.0.leads.get() {
            return;
        }
        let (world, caller) = (self.clone(), self.caller_of(server));
        let pause = [1, 5, 40][(self.random().beside(PAUSE + server as u64) % 3) as usize];
        let task = self.spawn(async move {
            let env = envs(&world, caller, ATTEMPT);
            let client = Client::new(env());
            let clock = client.env.clone();
            let mut leader = Leader::new(client, env, &world.root());
            let host = Host {
                world: &world,
                server,
                life,
            };
            loop {
                clock.sleep(Duration::from_millis(pause)).await;
                leader.round(&host).await;
            }
        });
        self.0.machines.borrow_mut().list[server].leading = Some(task);
    }

    /// A leader ends where it stands, with its server.
    pub(super) fn end_leader(&self, server: usize, life: u64) {
        let is_it = self.0.machines.borrow().list[server].life == life;
        if is_it && self.may_go(server) && self.may_end(server) {
            self.plan().note(Fault::LeaderKilled);
            self.kill(server);
        }
    }
}
