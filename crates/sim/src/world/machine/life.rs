//! The life of a server: its start, its upkeep, and its end.

use super::{Caller, Caps, Live, Machine};
use crate::fault::Fault;
use crate::invariant::Observation;
use crate::truth::{KeptRecord, Objects};
use crate::world::identity::Platter;
use crate::world::{Event as Happening, Trouble, World};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::limits;
use areo_core::manager::repair::Round;
use areo_core::object::Name;
use areo_core::server::Identity;
use areo_core::shard::Shard;
use areo_core::starts::StartPhase;
use areo_core::tag::Tag;
use areo_node::{Durable, Keep, Node, UPKEEP_PERIOD, Upkeep};
use areo_store::disk::{Survive, UnsyncedChange};
use areo_store::records::{MemoryRecords, Records};
use areo_store::{MemoryDisk, OpenError};
use std::sync::Arc;
use std::time::Duration;

/// The records that recovery found, each with its handle, and whether some cannot be read.
type FoundRecords = (bool, Vec<(u32, KeptRecord)>);

/// Opens the store and recovers the shard from it.
fn open(
    platter: &Platter,
    shard: &mut Shard<Caller>,
    objects: &mut Objects,
) -> Result<(Durable<MemoryDisk>, FoundRecords), OpenError> {
    if platter.in_memory {
        let empty = Durable::Memory(MemoryRecords::default());
        return Ok((empty, (false, Vec::new())));
    }
    let mut found = Vec::new();
    let recover = |header, damaged| {
        let kept = KeptRecord::of(&header, damaged, objects);
        let handle = shard.recover(header, damaged);
        found.push((handle.0, kept));
        handle
    };
    let (records, opened) = Records::open(platter.disk.clone(), platter.log_options(), recover)?;
    shard.recovered(opened.is_unreadable());
    let records = Durable::Disk(Box::new(records));
    Ok((records, (opened.is_unreadable(), found)))
}

fn identity(platter: &Platter, root: &Arc<Configuration>, caps: Caps) -> Identity {
    Identity {
        id: platter.id,
        incarnation: StartPhase::new(platter.starts).incarnation(),
        root: root.clone(),
        durable: !platter.in_memory,
        max_value_bytes: limits::DEFAULT_VALUE_BYTES,
        max_unconfirmed: caps.unconfirmed,
        max_ranked: caps.ranked,
    }
}

impl Machine {
    /// Records the extent of its log in the directory's truth.
    pub(in crate::world) fn note_extent(&mut self) {
        let log = self.live.as_ref().and_then(|live| live.node.keep().log());
        let extent = log.map_or(0, Records::extent);
        self.platter.extent = self.platter.extent.max(extent);
    }
}

impl Machine {
    /// Its process answers for objects when it is at work.
    pub(in crate::world) fn serves(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.node.is_serving())
    }

    pub(in crate::world) fn is_unreadable(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.node.shard().server().is_unreadable())
    }

    /// The highest final configuration of the domain of this one that it has heard of.
    pub(in crate::world) fn latest_of(&self, id: &ConfigurationId) -> Option<Arc<Configuration>> {
        let server = self.live.as_ref()?.node.shard().server();
        server.latest_of(id).cloned()
    }

    pub(in crate::world) fn standstills(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.node.standstills())
    }

    /// The position of its log that it registers in the root domain.
    pub(in crate::world) fn position(&self) -> Option<u64> {
        self.live.as_ref()?.node.position()
    }

    /// The last durable batch on its disk.
    pub(in crate::world) fn log_position(&self) -> Option<u64> {
        match &self.live {
            Some(live) => live.node.keep().log().map(Records::position),
            None => self.platter.position,
        }
    }
}

impl World {
    // ---- starting ----

    /// Starts a server from its disk.
    pub(in crate::world) fn start(&self, server: usize) {
        if self.is_up(server) {
            return;
        }
        self.perhaps_move(server);
        let recovered = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.life += 1;
            machine.paused = false;
            // A start that lacks something ends, and is tried again until it does not.
            machine.platter.disk.set_scarcity(None);
            if machine.life > 1
                && !machine.platter.in_memory
                && self.strikes(Fault::CrashInRecovery)
            {
                let operation = machine.platter.disk.operations() + self.random().below(6);
                machine.platter.disk.power_off_at(operation);
            }
            let mut shard = Shard::new(identity(&machine.platter, &machines.root, machines.caps));
            let objects = &mut self.0.watch.borrow_mut().objects;
            let opened = open(&machine.platter, &mut shard, objects);
            opened.map(|(records, found)| (shard, records, found))
        };
        match recovered {
            Ok((shard, records, found)) => self.take_over(server, shard, records, found),
            Err(error) => {
                let is_off = self.0.machines.borrow().list[server].platter.is_broken();
                self.remark(&format!("server {server} does not open its disk: {error}"));
                if is_off {
                    self.lose_power(server);
                } else {
                    self.violate(format!("store: server {server} cannot start: {error}"));
                }
            }
        }
    }

    fn take_over(
        &self,
        server: usize,
        shard: Shard<Caller>,
        records: Durable<MemoryDisk>,
        (unreadable, found): FoundRecords,
    ) {
        let now = self.clock(self.caller_of(server));
        let life = {
            let machines = &mut *self.0.machines.borrow_mut();
            let missing = machines.truths[server].recovered(found, unreadable);
            let mut node = Node::new(shard, records, machines.sizes);
            match machines.list[server].platter.scrubbed {
                Some(progress) => node.resume_scrub(now, progress),
                None => node.scrub_from(7 * machines.list[server].life + server as u64),
            }
            machines.list[server].live = Some(Live { node, commit: None });
            let missing = &missing;
            self.observe(machines, &Observation::Recovered { server, missing });
            let truth = &machines.truths[server];
            if unreadable && truth.is_sound() {
                self.violate(format!(
                    "store: server {server} lost records of sound disks"
                ));
            }
            machines.list[server].life
        };
        self.record([2, server as u64, life, u64::from(unreadable)], || {
            format!("server {server} is up, life {life}, unreadable: {unreadable}")
        });
        let offset = Duration::from_millis(self.random().below(200));
        self.at(UPKEEP_PERIOD + offset, Happening::Upkeep(server, life));
        self.disturb(server);
        self.open_book(server);
        self.reconnect(server, None);
        self.register(server, life);
    }

    /// The start is confirmed: it serves, unless it has stood still since `standstills`.
    pub(in crate::world) fn serve(&self, server: usize, life: u64, standstills: u64) {
        self.beat(server);
        {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) else {
                return;
            };
            if live.node.standstills() == standstills {
                live.node.serve();
            }
        }
        if self.0.costs.is_none() {
            self.begin_repair(server);
        }
        self.begin_leading(server, life);
        self.begin_growing(server, life);
    }

    /// Its start is confirmed once more.
    pub(in crate::world) fn serve_again(&self, server: usize, standstills: u64) {
        self.beat(server);
        let live = &mut self.0.machines.borrow_mut().list[server].live;
        if let Some(live) = live
            .as_mut()
            .filter(|live| live.node.standstills() == standstills)
        {
            live.node.serve();
        }
    }

    /// The process is at work. After a standstill those that waited for an answer get none: their connections end.
    pub(super) fn beat(&self, server: usize) {
        let now = self.clock(self.caller_of(server));
        let waited = {
            let live = &mut self.0.machines.borrow_mut().list[server].live;
            live.as_mut().map(|live| live.node.beat(now).len())
        };
        if waited.is_some_and(|waited| waited > 0) {
            self.remark(&format!("server {server} has stood still"));
            self.disconnect(server);
            self.reconnect(server, None);
        }
    }

    // ---- housekeeping ----

    pub(in crate::world) fn upkeep(&self, server: usize, life: u64) {
        let is_paused = {
            let machine = &self.0.machines.borrow().list[server];
            if !machine.is_up() || machine.life != life {
                return;
            }
            machine.paused
        };
        if is_paused {
            return self.at(UPKEEP_PERIOD, Happening::Upkeep(server, life));
        }
        let now = self.clock(self.caller_of(server));
        match self.act(server, |node, observer| node.upkeep(now, observer)) {
            Ok(Upkeep { turn, wait }) => {
                self.at(wait, Happening::Upkeep(server, life));
                if let Some(turn) = turn {
                    self.carry_out(server, turn);
                }
            }
            Err(error) => self.broken(server, &error),
        }
    }

    /// Lets a server drop tombstones, and takes note of those that it drops.
    pub(in crate::world) fn drop_tombstones(
        &self,
        server: usize,
        key: ConfigurationId,
        blocks: &[Name],
    ) {
        let machines = &mut *self.0.machines.borrow_mut();
        let Some(live) = machines.list[server].live.as_mut() else {
            return;
        };
        let objects = &mut self.0.watch.borrow_mut().objects;
        for name in live.node.drop_tombstones(key, blocks) {
            let object = objects.number(key, name.as_bytes());
            machines.truths[server].drop_tombstone(object);
            self.0.tombstones_dropped.update(|count| count + 1);
        }
    }

    /// A server has gone over its objects.
    pub(in crate::world) fn gone_over(&self, server: usize, round: &Round) {
        let now = self.now();
        let machines = &mut *self.0.machines.borrow_mut();
        if let Some(live) = machines.list[server].live.as_mut() {
            live.node.gone_over(now, &round.standings(), round.is_whole);
        }
    }

    /// A server's element of this version is not one of the version's value.
    pub(in crate::world) fn distrust(
        &self,
        server: usize,
        key: ConfigurationId,
        name: &Name,
        tag: Tag,
    ) {
        let machines = &mut *self.0.machines.borrow_mut();
        if let Some(live) = machines.list[server].live.as_mut() {
            live.node.distrust(key, name, tag);
        }
    }

    // ---- ending ----

    /// Drains the server: it refuses requests from now on, until its connections have had time to announce that.
    pub(in crate::world) fn drain(&self, server: usize) {
        let life = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let live = machine.live.as_mut();
            let Some(live) = live.filter(|live| !live.node.is_draining()) else {
                return;
            };
            live.node.drain();
            let life = machine.life;
            if !machine.platter.stays() {
                machines.lose(server);
            }
            life
        };
        self.plan().note(Fault::Drain);
        self.disturb(server);
        self.remark(&format!("server {server} is told to stop"));
        let time = Duration::from_millis(self.random().between(1, 300));
        self.at(time, Happening::Trouble(Trouble::Drained(server, life)));
    }

    /// The server has answered its requests: when its commit has ended it closes its store, as `server` does, and is
    /// gone.
    pub(in crate::world) fn end_drained(&self, server: usize, life: u64) {
        let live = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.life != life {
                return;
            }
            let live = machine.live.as_ref();
            let is_committing = live.is_some_and(|live| live.node.is_committing());
            match is_committing || machine.paused {
                true => None,
                false => machine.live.take(),
            }
        };
        let Some(live) = live else {
            let soon = Duration::from_millis(1);
            return self.at(soon, Happening::Trouble(Trouble::Drained(server, life)));
        };
        let closed = live.node.into_keep().close();
        self.remark(&format!("server {server} has drained: {closed:?}"));
        self.kill(server);
    }

    /// Ends the process; its writes survive.
    pub(in crate::world) fn kill(&self, server: usize) {
        self.stop(server, |_| Survive::All);
    }

    /// Ends a server and its connections; `survive` says what of its unsynced writes is left.
    pub(in crate::world) fn stop(
        &self,
        server: usize,
        survive: impl FnMut(UnsyncedChange<'_>) -> Survive,
    ) {
        let now = self.clock(self.caller_of(server));
        let tasks = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.platter.position = machine.log_position();
            if let Some(live) = machine.live.take() {
                // What was written of it since may be lost, and so may records: any place is good.
                machine.platter.scrubbed = live.node.scrub_progress(now);
            }
            machine.life += 1;
            machine.platter.disk.crash(survive);
            let tasks = [
                machine.registering.take(),
                machine.repairing.take(),
                machine.leading.take(),
                std::mem::take(&mut machine.growing).task,
            ];
            machines.truths[server].lost();
            tasks
        };
        if self.is_in_memory(server) {
            self.forget_memory(server);
        }
        for task in tasks.into_iter().flatten() {
            self.abort(task);
        }
        self.end_completions(server);
        self.record([4, server as u64, 0, 0], || {
            format!("server {server} is down")
        });
        self.disconnect(server);
        let downtime = Duration::from_millis(self.random().between(1, 300));
        self.at(downtime, Happening::Restart(server));
    }

    pub(crate) fn resume(&self, server: usize, life: u64) {
        {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.life != life {
                return;
            }
            machine.paused = false;
            machine.paused_at = Some(self.now());
        }
        self.disturb(server);
        self.turn(server);
    }
}
