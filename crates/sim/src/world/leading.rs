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
use areo_core::timing::LEAD_AGAIN;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Timeout of one round of a leader, where messages may be lost.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(2);
/// Salt of the draw of a leader's pauses.
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

/// Wakes the task of a server where changes are posted that it leads.
#[derive(Default)]
pub(super) struct PostedSignal {
    is_set: bool,
    waker: Option<Waker>,
}

impl PostedSignal {
    pub(super) fn set(&mut self) {
        self.is_set = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes the signal: returns true if it was set. Otherwise the waker is woken when it is.
    fn take(&mut self, waker: &Waker) -> bool {
        let was_set = std::mem::take(&mut self.is_set);
        if !was_set {
            self.waker = Some(waker.clone());
        }
        was_set
    }
}

impl World {
    /// Lets servers lead, as soon as their starts are confirmed. `attempt`: timeout of a round.
    pub(crate) fn let_servers_lead(&self, attempt: Duration) {
        self.0.leads.set(Some(attempt));
    }

    /// The server, whose start is confirmed, begins to lead, if servers do.
    pub(super) fn begin_leading(&self, server: usize, life: u64) {
        let Some(attempt) = self.0.leads.get() else {
            return;
        };
        let (world, caller) = (self.clone(), self.caller_of(server));
        let drawn = self.random().beside(PAUSE + server as u64) % 3;
        // As the product does it, or any time later.
        let (pause, is_prompt) = match self.0.costs {
            Some(_) => (LEAD_AGAIN, true),
            None => (Duration::from_millis([1, 5, 40][drawn as usize]), false),
        };
        let task = self.spawn(async move {
            let env = envs(&world, caller, attempt);
            let client = Client::new(env());
            let clock = client.env.clone();
            let mut leader = Leader::new(client, env, &world.root());
            let host = Host {
                world: &world,
                server,
                life,
            };
            loop {
                let mut pause = pin!(clock.sleep(pause));
                poll_fn(|context| {
                    let waker = context.waker();
                    match is_prompt && world.take_posted(server, waker) {
                        true => Poll::Ready(()),
                        false => pause.as_mut().poll(context),
                    }
                })
                .await;
                leader.round(&host).await;
            }
        });
        self.0.machines.borrow_mut().list[server].leading = Some(task);
    }

    fn take_posted(&self, server: usize, waker: &Waker) -> bool {
        let mut machines = self.0.machines.borrow_mut();
        machines.list[server].posted.take(waker)
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
