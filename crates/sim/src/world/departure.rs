//! Servers that are gone for good, and are forgotten (`[X-27 forgotten-server]`): those whose disk was wiped or whose memory is lost,
//! and healthy ones that no domain names and that are taken away. Their directories are kept aside. One of a forgotten server is
//! started again now and then, and must be refused.
//!
//! As with a copy, such a start is all that there is of the process: it is ended before it answers.

use super::identity::StartingProcess;
use super::machine::Machines;
use super::{World, server_of};
use crate::fault::Fault;
use crate::invariant;
use crate::truth::{KeptRecord, domain_of};
use areo_core::config::{ConfigurationId, ServerId};
use areo_core::instant::Instant;
use areo_core::message::ServerRecord;
use areo_core::starts::Starts;
use std::collections::BTreeMap;

/// Share of attempts to forget a server that choose one that is gone, if there is one.
const GONE_PER_MILLE: u64 = 700;

/// A server that is gone, as far as its directory says.
pub(super) struct DepartedServer {
    pub(super) id: ServerId,
    pub(super) starts: Starts,
    /// Its directory refuses a second start.
    pub(super) in_memory: bool,
    /// A client knows that it is forgotten.
    pub(super) is_forgotten: bool,
    /// Its directory has been started, and the root domain has not decided yet.
    pub(super) is_starting: bool,
}

impl DepartedServer {
    fn may_return(&self) -> bool {
        self.is_forgotten && !self.in_memory && !self.is_starting
    }
}

impl Machines {
    fn is_departed(&self, id: ServerId) -> bool {
        self.departures.iter().any(|it| it.id == id)
    }
}

/// A server that a client takes out of all domains; none joins it to one until this is dropped.
pub(crate) struct LeavingServer {
    world: World,
    pub(crate) record: ServerRecord,
}

impl LeavingServer {
    fn new(world: &World, record: ServerRecord) -> LeavingServer {
        let machines = &mut *world.0.machines.borrow_mut();
        machines.losses.leaving.push(record.id);
        let world = world.clone();
        LeavingServer { world, record }
    }
}

impl Drop for LeavingServer {
    fn drop(&mut self) {
        // After a panic the machines stay borrowed.
        let Ok(mut machines) = self.world.0.machines.try_borrow_mut() else {
            return;
        };
        let leaving = &mut machines.losses.leaving;
        let place = leaving.iter().position(|id| *id == self.record.id);
        leaving.swap_remove(place.expect("it was pushed"));
    }
}

impl World {
    /// A server that could be forgotten, of those that are registered: one that is gone, or one that is there.
    pub(crate) fn departing(
        &self,
        registered: &BTreeMap<ServerId, ServerRecord>,
    ) -> Option<LeavingServer> {
        let record = self.choose_departing(registered)?;
        Some(LeavingServer::new(self, record))
    }

    fn choose_departing(
        &self,
        registered: &BTreeMap<ServerId, ServerRecord>,
    ) -> Option<ServerRecord> {
        let machines = self.0.machines.borrow();
        let departed = machines.departures.iter().filter(|it| !it.is_forgotten);
        let gone: Vec<_> = departed
            .filter_map(|it| registered.get(&it.id))
            .cloned()
            .collect();
        let random = self.random();
        if !gone.is_empty() && random.chance(GONE_PER_MILLE) {
            return Some(gone[random.index(gone.len())].clone());
        }
        let platter = &machines.list[random.index(machines.list.len())].platter;
        let is_there = !platter.in_memory && !machines.is_departed(platter.id);
        registered.get(&platter.id).filter(|_| is_there).cloned()
    }

    /// The configurations in use that name the server, and that every look from now on finds, or a later one of their domain: the
    /// last final ones, and those pending ones of which a quorum of the members before knows.
    pub(crate) fn uses(&self, id: ServerId) -> Vec<ConfigurationId> {
        let machines = self.0.machines.borrow();
        let watch = self.0.watch.borrow();
        let truths = machines.truths();
        let leads_to = |member: &ServerId, from: &ConfigurationId, to: &ConfigurationId| {
            let truth = truths[server_of(*member)].own();
            let leads = |kept: &KeptRecord| matches!(kept, KeptRecord::Pointer { key, pointer } if key == from && pointer.configuration.id() == *to);
            truth.is_of(*member) && truth.records().any(leads)
        };
        let is_used = |c: &ConfigurationId| {
            let last = invariant::final_index(truths, domain_of(c));
            if c.index == last {
                return true;
            }
            let mut before = watch
                .shapes
                .values()
                .filter(|it| domain_of(&it.id()) == domain_of(c));
            let before = before.find(|it| it.id().index == last && c.index == last + 1);
            before.is_some_and(|before| {
                let members = before.members().iter();
                let knowing = members.filter(|member| leads_to(member, &before.id(), c));
                knowing.count() >= before.quorums().quorum()
            })
        };
        let naming = watch
            .shapes
            .iter()
            .filter(|(_, c)| c.position(id).is_some());
        naming.map(|(id, _)| *id).filter(|id| is_used(id)).collect()
    }

    /// A client has found that no domain names the server. `used`: the configurations in use when it began to look.
    pub(crate) fn found_unneeded(&self, id: ServerId, used: &[ConfigurationId]) {
        let machines = self.0.machines.borrow();
        let is_last = |c: &&ConfigurationId| {
            c.index >= invariant::final_index(machines.truths(), domain_of(c))
        };
        if let Some(c) = used.iter().find(is_last) {
            let (server, domain) = (server_of(id), c.domain.0 & 0xffff);
            self.violate(format!(
                "forgotten: server {server} is forgotten, and configuration {} of domain {domain:04x} names it",
                c.index
            ));
        }
    }

    /// Makes sure that the server does not serve: it is gone, or is taken away now. False: it stays.
    pub(crate) fn take_away(&self, id: ServerId) -> bool {
        let server = server_of(id);
        {
            let machines = self.0.machines.borrow();
            if machines.is_departed(id) {
                return true;
            }
            assert_eq!(machines.list[server].platter.id, id, "it is there");
        }
        let may_leave = self.may_go(server) && self.may_lose(server) && !self.is_in_memory(server);
        if !may_leave || !self.strikes(Fault::ServerTakenAway) {
            return false;
        }
        self.replace_disk(server);
        self.remark(&format!("server {server} is taken away"));
        true
    }

    /// A client has forgotten the server, which it began at `since`. A vote of a server that ran on a copy meanwhile may be
    /// lost: that is more than may fail, and the server is to be forgotten again.
    pub(crate) fn forgotten(&self, id: ServerId, since: Instant) {
        if self.was_any_copy(since) {
            return;
        }
        let machines = &mut *self.0.machines.borrow_mut();
        let mut departures = machines.departures.iter_mut();
        let departed = departures.find(|it| it.id == id);
        departed.expect("it does not serve").is_forgotten = true;
        self.plan().note(Fault::ServerForgotten);
        self.record([7, id.0 as u64, (id.0 >> 64) as u64, 0], || {
            format!("server {} of id {id} is forgotten", server_of(id))
        });
    }

    /// The directory of a forgotten server is started.
    pub(super) fn let_one_return(&self) {
        let places: Vec<usize> = {
            let departures = &self.0.machines.borrow().departures;
            let may_return = |place: &usize| departures[*place].may_return();
            (0..departures.len()).filter(may_return).collect()
        };
        if !places.is_empty() {
            self.start_departed(places[self.random().index(places.len())]);
        }
    }

    /// The directories of all forgotten servers are started.
    pub(crate) fn let_all_return(&self) {
        let count = self.0.machines.borrow().departures.len();
        for place in 0..count {
            if self.0.machines.borrow().departures[place].may_return() {
                self.start_departed(place);
            }
        }
    }

    /// True if the root domain has not decided about one of them yet.
    pub(crate) fn is_any_returning(&self) -> bool {
        let departures = &self.0.machines.borrow().departures;
        departures.iter().any(|it| it.is_starting)
    }

    fn start_departed(&self, place: usize) {
        let (id, starts) = {
            let departed = &mut self.0.machines.borrow_mut().departures[place];
            departed.is_starting = true;
            (departed.id, departed.starts)
        };
        self.plan().note(Fault::ForgottenReturned);
        let (world, server, since) = (self.clone(), server_of(id), self.now());
        self.spawn(async move {
            let process = StartingProcess {
                id,
                starts,
                position: Some(0),
                abstains: false,
                sight: None,
            };
            let started = world.started(server, process, |_| {}).await;
            let (outcome, incarnation) = (&started.outcome, started.incarnation);
            world.record([8, server as u64, incarnation, 0], || {
                format!("server {server} of id {id}, which is forgotten, incarnation {incarnation}: {outcome:?}")
            });
            world.0.machines.borrow_mut().departures[place].is_starting = false;
            // Of an old copy the members may have believed more than may fail.
            if started.is_confirmed() && !world.was_any_copy(since) {
                world.violate(format!(
                    "forgotten: incarnation {incarnation} of server {server} is confirmed, which was forgotten before it began"
                ));
            }
        });
    }
}
