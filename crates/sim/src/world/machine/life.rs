//! How a server begins, looks after itself, and ends.

use super::room::Batch;
use super::{Caller, Live, SEGMENT_BYTES, SLACK_BYTES, Stage};
use crate::fault::Fault;
use crate::invariant::Observation;
use crate::truth::Kept;
use crate::world::identity::Platter;
use crate::world::{Event as Happening, Trouble, World};
use areo_core::config::Configuration;
use areo_core::server::Identity;
use areo_core::shard::Shard;
use areo_core::starts::Starting;
use areo_store::disk::{Survive, Unsynced};
use areo_store::records::Records;
use areo_store::{LogOptions, MemoryDisk, ReserveError, StepOutcome};
use std::sync::Arc;
use std::time::Duration;

/// How often the store is looked after, as in `server`.
const UPKEEP_PERIOD: Duration = Duration::from_millis(200);

fn identity(platter: &Platter, root: &Arc<Configuration>, max_unconfirmed: usize) -> Identity {
    Identity {
        id: platter.id,
        incarnation: Starting::new(platter.starts).incarnation(),
        root: root.clone(),
        durable: true,
        max_value_bytes: 1 << 20,
        max_unconfirmed,
    }
}

impl World {
    // ---- starting ----

    /// Starts a server from its disk.
    pub(in crate::world) fn start(&self, server: usize) {
        if self.is_up(server) {
            return;
        }
        let recovered = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.life += 1;
            (machine.paused, machine.inbox) = (false, Vec::new());
            if machine.life > 1 && self.strikes(Fault::CrashInRecovery) {
                let operation = machine.platter.disk.operations() + self.random().below(6);
                machine.platter.disk.power_off_at(operation);
            }
            let mut shard = Shard::new(identity(
                &machine.platter,
                &machines.root,
                machines.max_unconfirmed,
            ));
            let objects = &mut self.0.watch.borrow_mut().objects;
            let mut found = Vec::new();
            let options = LogOptions {
                store_id: machine.platter.id.0 as u64,
                segment_bytes: SEGMENT_BYTES,
                reclaim_dead_percent: 50,
            };
            let opened = Records::open(machine.platter.disk.clone(), options, |header, damaged| {
                let kept = Kept::of(&header, damaged, objects);
                let handle = shard.recover(header, damaged);
                found.push((handle.0, kept));
                handle
            });
            opened.map(|(records, opened)| (shard, records, opened.is_unreadable(), found))
        };
        match recovered {
            Ok((shard, records, unreadable, found)) => {
                self.take_over(server, shard, records, (unreadable, found));
            }
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
        mut shard: Shard<Caller>,
        records: Records<MemoryDisk>,
        (unreadable, found): (bool, Vec<(u32, Kept)>),
    ) {
        shard.recovered(unreadable);
        let life = {
            let machines = &mut *self.0.machines.borrow_mut();
            let missing = machines.truths[server].recovered(found, unreadable);
            machines.list[server].live = Some(Live {
                shard,
                records,
                commit: None,
                committing: false,
                batch: Batch::Open,
                committed_since_upkeep: true,
                stage: Stage::Starting,
            });
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
        self.reconnect(server);
        self.register(server, life);
    }

    pub(in crate::world) fn serve(&self, server: usize, life: u64) {
        let machine = &mut self.0.machines.borrow_mut().list[server];
        if let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) {
            live.shard.serve();
            live.stage = match live.stage {
                Stage::Draining => Stage::Draining,
                Stage::Starting | Stage::Serving => Stage::Serving,
            };
        }
    }

    // ---- housekeeping ----

    /// As `server` does it: lets superseded versions go, reclaims, verifies, proves the last batch when idle.
    pub(in crate::world) fn upkeep(&self, server: usize, life: u64) {
        let kept = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            let paused = machine.paused;
            let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) else {
                return;
            };
            match live.committing || paused {
                true => None,
                false => Some(self.keep_house(server, live)),
            }
        };
        self.at(UPKEEP_PERIOD, Happening::Upkeep(server, life));
        match kept {
            Some(Ok(batch)) => self.begin_commit(server, batch),
            Some(Err(())) => self.broken(server),
            None => {}
        }
    }

    /// An error says that the disk does not work any more.
    fn keep_house(&self, server: usize, live: &mut Live) -> Result<Batch, ()> {
        let now = self.clock(self.caller_of(server));
        let due = live.shard.is_due(now);
        if due
            && live
                .has_room_for_owed(live.owed() + SLACK_BYTES)
                .map_err(|_| ())?
        {
            live.shard.tick(now);
        }
        for _ in 0..4 {
            match live.records.step() {
                Ok((outcome, damaged)) => {
                    if let Some(header) = damaged {
                        live.shard.damaged(&header);
                    }
                    if matches!(outcome, StepOutcome::Idle | StepOutcome::CommitFirst) {
                        break;
                    }
                }
                Err(error) => {
                    self.remark(&format!("housekeeping failed: {error}"));
                    return Err(());
                }
            }
        }
        let (_, damaged) = live.records.scrub(SEGMENT_BYTES / 4);
        for header in damaged {
            live.shard.damaged(&header);
        }
        let idle = !std::mem::take(&mut live.committed_since_upkeep);
        let sealed = !idle || live.records.seal().is_ok() || !live.records_are_broken();
        match sealed {
            true => live.batch().map_err(|_| ()),
            false => Err(()),
        }
    }

    // ---- ending ----

    /// Tells the server to stop. It refuses what comes from now on, until its connections have had time to say so.
    pub(in crate::world) fn drain(&self, server: usize) {
        let life = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            let live = machine.live.as_mut();
            let Some(live) = live.filter(|live| live.stage != Stage::Draining) else {
                return;
            };
            live.stage = Stage::Draining;
            machine.life
        };
        self.plan().note(Fault::Drain);
        self.disturb(server);
        self.remark(&format!("server {server} is told to stop"));
        let time = Duration::from_millis(self.random().between(1, 300));
        self.at(time, Happening::Trouble(Trouble::Drained(server, life)));
    }

    /// The server has answered what it had: when its commit has ended it closes its store, as `server` does, and is gone.
    pub(in crate::world) fn end_drained(&self, server: usize, life: u64) {
        let live = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.life != life {
                return;
            }
            let is_committing = machine.live.as_ref().is_some_and(|live| live.committing);
            match is_committing || machine.paused {
                true => None,
                false => machine.live.take(),
            }
        };
        let Some(live) = live else {
            let soon = Duration::from_millis(1);
            return self.at(soon, Happening::Trouble(Trouble::Drained(server, life)));
        };
        let closed = live.records.close();
        self.remark(&format!("server {server} has drained: {closed:?}"));
        self.kill(server);
    }

    /// The process is gone, what it wrote is not.
    pub(in crate::world) fn kill(&self, server: usize) {
        self.stop(server, |_| Survive::All);
    }

    /// Ends a server and its connections; `survive` says what of its unsynced writes is left.
    pub(in crate::world) fn stop(
        &self,
        server: usize,
        survive: impl FnMut(Unsynced<'_>) -> Survive,
    ) {
        let registering = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.live = None;
            machine.life += 1;
            machine.inbox.clear();
            machine.platter.disk.crash(survive);
            let registering = machine.registering.take();
            machines.truths[server].lost();
            registering
        };
        if let Some(task) = registering {
            self.abort(task);
        }
        self.record([4, server as u64, 0, 0], || {
            format!("server {server} is down")
        });
        self.disconnect(server);
        let downtime = Duration::from_millis(self.random().between(1, 300));
        self.at(downtime, Happening::Restart(server));
    }

    pub(in crate::world) fn resume(&self, server: usize, life: u64) {
        {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.life != life {
                return;
            }
            machine.paused = false;
        }
        self.disturb(server);
        self.turn(server);
    }
}

impl Live {
    /// After a failed sync nothing can be written any more; a full disk does no harm.
    fn records_are_broken(&mut self) -> bool {
        matches!(
            self.records.reserve(0),
            Err(ReserveError::Poisoned | ReserveError::Io { .. })
        )
    }
}
