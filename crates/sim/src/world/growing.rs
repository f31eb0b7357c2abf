//! Servers that see to the members of the root domain: the production task (`core::manager::growth`), with pauses that the seed
//! draws, in a third of the seeds of clusters that tolerate one crash or none. One that changes them is killed now and then.

use super::call::envs;
use super::machine::{Machine, Machines};
use super::{Event as Happening, Trouble, World};
use crate::fault::Fault;
use crate::invariant;
use crate::random::Random;
use crate::truth::domain_of;
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::gather;
use areo_core::manager::growth::{Grower, Growth, Liveness, Standing, grows, next_members};
use areo_core::reconfig::ReconfigError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time that one operation may take.
const ATTEMPT: Duration = Duration::from_secs(2);
/// A look that finds nothing to do makes the next pause longer by this.
const REST: u32 = 5;

/// A server that sees to the members of the root domain.
#[derive(Default)]
pub(super) struct Growing {
    pub(super) task: Option<usize>,
    /// Its tasks that change them now.
    at_it: u32,
}

/// The pauses of one of its tasks.
struct Pauses {
    soon: Duration,
    /// A member that is away for a moment loses its place, or none does.
    gone_after: Duration,
}

impl Pauses {
    /// Draws the pauses of this number of tasks, which look at the same time.
    fn drawn(random: &Random, tasks: usize) -> Vec<Pauses> {
        let soon = Duration::from_millis([20, 100, 500][random.index(3)]);
        let gone_after = || Duration::from_millis([500, 5000, 60_000][random.index(3)]);
        let pauses = |_| Pauses {
            soon,
            gone_after: gone_after(),
        };
        (0..tasks).map(pauses).collect()
    }
}

impl World {
    /// The server, whose start is confirmed, begins to see to the members of the root domain. In half of the cases it does so
    /// twice, as where a copy of it runs that does not know it yet: then two propose at once.
    pub(super) fn begin_growing(&self, server: usize, life: u64) {
        if !self.cluster().grows() {
            return;
        }
        let growers = 1 + self.random().index(2);
        let of_each = Pauses::drawn(self.random(), growers);
        let world = self.clone();
        let task = self.spawn(async move {
            let all = of_each.iter().map(|it| world.grow(server, life, it));
            gather::join(growers, all).await;
        });
        self.0.machines.borrow_mut().list[server].growing = Growing {
            task: Some(task),
            at_it: 0,
        };
    }

    async fn grow(&self, server: usize, life: u64, pauses: &Pauses) {
        let id = self.0.machines.borrow().list[server].platter.id;
        let env = envs(self, self.caller_of(server), ATTEMPT);
        let client = Client::new(env());
        let clock = client.env.clone();
        let mut grower = Grower::new(client, env, id, &self.root(), pauses.gone_after);
        let mut pause = pauses.soon;
        loop {
            clock.sleep(pause).await;
            let may_be = |members: &[_]| self.want(members) && !self.is_any_leaving(members);
            if grower.due().is_some_and(|(_, members)| !may_be(members)) {
                grower.put_off();
            }
            let due = grower.due().map(|(base, members)| {
                self.begin_change(server, life, base);
                members.to_vec()
            });
            let growth = grower.round().await;
            self.end_change(server, due.as_deref(), &growth);
            pause = match growth {
                Growth::Due | Growth::Changed(_) | Growth::Failed(_) => pauses.soon,
                Growth::Settled | Growth::Left => REST * pauses.soon,
            };
        }
    }

    /// A server is about to change the members of the root domain, and is killed before it has, or is not.
    fn begin_change(&self, server: usize, life: u64, base: ConfigurationId) {
        self.0.watch.borrow_mut().grown.insert(base);
        {
            let list = &mut self.0.machines.borrow_mut().list;
            if list.iter().any(|machine| machine.growing.at_it > 0) {
                self.plan().note(Fault::GrowersMeet);
            }
            list[server].growing.at_it += 1;
        }
        if self.plan().draws(Fault::GrowerKilled) {
            let most = [5, 50, 500][self.random().index(3)];
            let time = Duration::from_millis(self.random().between(0, most));
            self.at(time, Happening::Trouble(Trouble::GrowerEnds(server, life)));
        }
    }

    /// True if a server has begun to change the members of the root domain from this configuration on.
    pub(crate) fn is_grown(&self, base: ConfigurationId) -> bool {
        self.0.watch.borrow().grown.contains(&base)
    }

    /// A server that changes the members of the root domain ends where it stands.
    pub(super) fn end_grower(&self, server: usize, life: u64) {
        let is_it = {
            let machine = &self.0.machines.borrow().list[server];
            machine.life == life && machine.growing.at_it > 0
        };
        if is_it && self.may_go(server) && self.may_end(server) {
            self.plan().note(Fault::GrowerKilled);
            self.kill(server);
        }
    }

    /// A server has looked at the root domain; `wanted`: the members that it was to give it, if it found the same again.
    fn end_change(&self, server: usize, wanted: Option<&[ServerId]>, growth: &Growth) {
        if wanted.is_some() {
            self.0.machines.borrow_mut().list[server].growing.at_it -= 1;
        }
        match growth {
            Growth::Changed(c) => {
                self.record([10, server as u64, c.n() as u64, 0], || {
                    format!("server {server} has changed the root domain to {c:?}")
                });
                if !self.is_wanted(c.members()) {
                    let members = c.members();
                    self.violate(format!(
                        "growing_root: the root domain has members that were not wanted together: {members:?}"
                    ));
                }
                if wanted == Some(c.members()) {
                    self.plan().note(Fault::RootGrown);
                    self.judge_growth(c);
                }
            }
            Growth::Failed(ReconfigError::Contradicts(c, _) | ReconfigError::Unwanted(c)) => {
                self.record([11, server as u64, c.n() as u64, 0], || {
                    format!("server {server} does not change the root domain: it is {c:?}")
                });
            }
            Growth::Failed(_) | Growth::Left | Growth::Settled | Growth::Due => {}
        }
    }

    /// A server has made this configuration of the root domain. It has as many members as the one before, or an odd number.
    fn judge_growth(&self, c: &Configuration) {
        let watch = self.0.watch.borrow();
        let is_before =
            |it: &&Arc<Configuration>| it.precedes(c) && it.id().index + 1 == c.id().index;
        let is_as_large = watch
            .shapes
            .values()
            .filter(is_before)
            .any(|it| it.n() == c.n());
        drop(watch);
        if c.n().is_multiple_of(2) && !is_as_large {
            self.violate(format!(
                "growing_root: a server gave the root domain {} members",
                c.n()
            ));
        }
    }

    /// The members that the root domain lacks at rest, if it lacks some (`[X-35 growing-root]`).
    pub(crate) fn ungrown(&self) -> Option<String> {
        if !self.cluster().grows() {
            return None;
        }
        let c = self.last_root()?;
        if !grows(&c) {
            return None;
        }
        let machines = &*self.0.machines.borrow();
        // A mark that a client did not bring to a quorum is seen by some looks and not by others.
        let is_marked = |at: &Machine, id: ServerId| {
            let mut known = at.all_registered().into_iter();
            known.any(|it| it.id == id && it.is_leaving())
        };
        let members = members_of(machines, &c);
        let next_if = |is_leaving: &dyn Fn(ServerId) -> bool| {
            let standing = |(server, machine): (usize, &Machine)| {
                // A server that answers for no object says in its status that it does not serve.
                let liveness = match self.is_serving(server) && !machine.is_unreadable() {
                    true => Liveness::Serving,
                    false => Liveness::Away,
                };
                let id = machine.platter.id;
                let is_leaving = is_leaving(id);
                let standing = Standing {
                    liveness,
                    is_leaving,
                };
                (id, standing)
            };
            let servers: BTreeMap<_, _> = machines.list.iter().enumerate().map(standing).collect();
            next_members(c.members(), &servers)
        };
        next_if(&|id| members.iter().all(|at| is_marked(at, id)))?;
        let next = next_if(&|id| members.iter().any(|at| is_marked(at, id)))?;
        Some(format!(
            "growing_root: the root domain has the members {:?}, and should have {next:?}",
            c.members()
        ))
    }

    /// The last final configuration of the root domain, if a server described it.
    fn last_root(&self) -> Option<Arc<Configuration>> {
        let machines = self.0.machines.borrow();
        let watch = self.0.watch.borrow();
        let domain = domain_of(&self.root().id());
        let last = invariant::final_index(machines.truths(), domain);
        let is_last =
            |it: &&Arc<Configuration>| domain_of(&it.id()) == domain && it.id().index == last;
        watch.shapes.values().find(is_last).cloned()
    }
}

/// The machines of those members that are there.
fn members_of<'a>(machines: &'a Machines, c: &Configuration) -> Vec<&'a Machine> {
    let is_member = |it: &&Machine| c.position(it.platter.id).is_some();
    machines.list.iter().filter(is_member).collect()
}
