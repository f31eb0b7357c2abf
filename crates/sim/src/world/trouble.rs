//! Faults of processes, disks and links, drawn at random moments, and their end.

use super::{Event as Happening, World};
use crate::fault::Fault;
use crate::random::Random;
use crate::truth::Harm;
use areo_store::Disk;
use areo_store::disk::{Survive, UnsyncedChange};
use std::time::Duration;

/// Something that happens to the world at a time of its own.
#[derive(Clone, Copy)]
pub(crate) enum Trouble {
    /// A moment at which something may happen.
    Moment,
    /// All links are open again.
    Open,
    /// The disk of a server has room again.
    Room(usize),
    /// A server has descriptors and memory again.
    Plenty(usize),
    /// A server that drains has had time to finish. The number tells lives of a server apart.
    Drained(usize, u64),
    /// A server that leads is killed. The number tells its lives apart.
    LeaderEnds(usize, u64),
    /// A server that changes the members of the root domain is killed. The number tells its lives apart.
    GrowerEnds(usize, u64),
    /// The disk of a server is put back as it was earlier in this start. The number tells its lives apart.
    SnapshotReturns(usize, u64),
    /// The log of the server whose disk may rot goes. The number tells the lives of that server apart.
    LogGoes(u64),
}

/// Faults of processes, disks and links that are drawn at each moment.
const DRAWN: &[Fault] = &[
    Fault::Partition,
    Fault::OneSidedPartition,
    Fault::LongPartition,
    Fault::IsolateFew,
    Fault::IsolateMajority,
    Fault::Kill,
    Fault::KillAll,
    Fault::PowerLoss,
    Fault::BitFlip,
    Fault::HintFlip,
    Fault::SegmentMissing,
    Fault::SegmentCut,
    Fault::LogMissing,
    Fault::HintMissing,
    Fault::DiskWiped,
    Fault::DiskRolledBack,
    Fault::SnapshotRestored,
    Fault::DiskCopied,
    Fault::DiskFull,
    Fault::DisksFull,
    Fault::ReadError,
    Fault::Drain,
    Fault::ClockJump,
    Fault::Pause,
    Fault::ForgottenReturned,
    Fault::Exhausted,
];

/// The one server of a run whose disk may rot: more than may fail would lose data, and rightly so.
pub(super) const ROTTEN: usize = 1;

impl World {
    /// Schedules the first moment of faults.
    pub(crate) fn begin_trouble(&self) {
        self.0.queue_moment(self);
    }

    /// Trouble ends for good: everything is mended.
    pub(crate) fn heal(&self) {
        self.plan().end();
        self.0.queue.borrow_mut().end_priorities();
        self.open_links();
        self.heal_disks();
        let (_, servers) = self.size();
        for server in 0..servers {
            let (life, is_off) = {
                let machine = &self.0.machines.borrow().list[server];
                machine.platter.disk.set_capacity(None);
                machine.platter.disk.set_scarcity(None);
                // Asked before a cut that has not struck yet is called off: one may have gone unnoticed.
                let is_off = machine.platter.disk.list().is_err();
                if !is_off {
                    machine.platter.disk.power_off_at(u64::MAX);
                }
                (machine.life, machine.is_up() && is_off)
            };
            if is_off {
                self.lose_power(server);
            } else {
                self.resume(server, life);
            }
        }
        self.remark("everything is mended");
    }

    pub(super) fn trouble(&self, trouble: Trouble) {
        match trouble {
            Trouble::Moment => {
                for fault in DRAWN {
                    if self.plan().draws(*fault) {
                        self.perhaps(*fault);
                    }
                }
                if self.0.moments_go_on() {
                    self.0.queue_moment(self);
                }
            }
            Trouble::Open => {
                if self.are_links_to_open() {
                    self.remark("links are open");
                    self.open_links();
                }
            }
            Trouble::Room(server) => {
                let machine = &self.0.machines.borrow().list[server];
                if machine.full_until <= self.now() {
                    machine.platter.disk.set_capacity(None);
                }
            }
            Trouble::Plenty(server) => self.supply(server),
            Trouble::Drained(server, life) => self.end_drained(server, life),
            Trouble::LeaderEnds(server, life) => self.end_leader(server, life),
            Trouble::GrowerEnds(server, life) => self.end_grower(server, life),
            Trouble::SnapshotReturns(server, life) => self.restore_snapshot(server, life),
            Trouble::LogGoes(life) => self.lose_log(life),
        }
    }

    fn perhaps(&self, fault: Fault) {
        let (_, servers) = self.size();
        let victim = self.random().index(servers);
        let may_go = self.may_go(victim);
        let possible = match fault {
            Fault::Kill | Fault::PowerLoss | Fault::Drain => may_go && self.may_end(victim),
            Fault::DiskFull => may_go && !self.is_in_memory(victim),
            Fault::Pause => may_go,
            Fault::ReadError
            | Fault::BitFlip
            | Fault::HintFlip
            | Fault::SegmentMissing
            | Fault::SegmentCut
            | Fault::LogMissing
            | Fault::HintMissing => {
                self.is_up(ROTTEN) && self.may_lose(ROTTEN) && !self.is_in_memory(ROTTEN)
            }
            _ => true,
        };
        if !possible {
            return;
        }
        match fault {
            Fault::Partition | Fault::OneSidedPartition | Fault::LongPartition => {
                self.partition(fault);
            }
            Fault::IsolateFew => self.isolate(fault, self.cluster().may_fail()),
            Fault::IsolateMajority => self.isolate(fault, servers / 2 + 1),
            Fault::Kill => {
                self.plan().note(fault);
                self.kill(victim);
            }
            Fault::KillAll => {
                self.plan().note(fault);
                (0..servers)
                    .filter(|server| self.is_up(*server))
                    .for_each(|server| self.kill_if_it_may_end(server));
            }
            Fault::PowerLoss => {
                self.plan().note(fault);
                self.lose_power(victim);
            }
            Fault::BitFlip => {
                self.flip(ROTTEN);
                // Rot is found by whoever comes first: a reader, the scrubber, or the next start.
                if victim == ROTTEN && may_go {
                    self.kill(victim);
                }
            }
            Fault::HintFlip
            | Fault::SegmentMissing
            | Fault::SegmentCut
            | Fault::LogMissing
            | Fault::HintMissing => self.harm_file(fault),
            Fault::DiskWiped => self.wipe(victim),
            Fault::DiskRolledBack | Fault::DiskCopied => self.exchange(victim, fault),
            Fault::SnapshotRestored => self.take_snapshot(victim),
            Fault::ClockJump => self.jump(),
            Fault::DiskFull => {
                self.plan().note(Fault::DiskFull);
                self.fill(victim, Duration::from_millis(self.random().between(1, 500)));
            }
            Fault::DisksFull => self.fill_many(),
            Fault::Exhausted => self.exhaust_many(),
            Fault::ReadError => self.fail_read(ROTTEN),
            Fault::Drain => self.drain(victim),
            Fault::Pause => self.pause(victim),
            Fault::ForgottenReturned => self.let_one_return(),
            _ => unreachable!("{fault:?} is not drawn here"),
        }
    }

    /// True if it is up, and few enough are away for it to go, too. A lost server is away for ever, and does not
    /// count: its absence costs progress only while another one is away.
    pub(super) fn may_go(&self, server: usize) -> bool {
        let (_, servers) = self.size();
        let away = (0..servers).filter(|server| !self.is_serving(*server));
        let is_lost = |server: &usize| self.0.machines.borrow().is_lost(*server);
        let away = away.filter(|server| !is_lost(server));
        self.is_up(server) && away.count() < self.cluster().may_fail()
    }

    fn kill_if_it_may_end(&self, server: usize) {
        if self.may_end(server) {
            self.kill(server);
        }
    }

    /// The clock of a process advances by an hour: its timers fire, and its objects have been quiet for long.
    fn jump(&self) {
        self.plan().note(Fault::ClockJump);
        let caller = self.random().index(self.0.clocks.borrow().len());
        self.remark(&format!("the clock of caller {caller} jumps by an hour"));
        self.0.clocks.borrow_mut()[caller] += Duration::from_hours(1);
        let is_its = |event: &Happening| event.timer_of() == Some(caller);
        self.0.queue.borrow_mut().hasten(self.now(), is_its);
    }

    fn partition(&self, fault: Fault) {
        self.plan().note(fault);
        let (clients, servers) = self.size();
        let one_sided = fault == Fault::OneSidedPartition;
        let only = self.random().index(2);
        let left = (self.random().draw(), self.random().draw());
        for client in 0..clients {
            for server in 0..servers {
                if (left.0 >> client & 1) != (left.1 >> server & 1) {
                    for direction in (0..2).filter(|direction| !one_sided || *direction == only) {
                        self.block(client, server, direction, true);
                    }
                }
            }
        }
        self.mend_later(fault);
    }

    fn isolate(&self, fault: Fault, count: usize) {
        self.plan().note(fault);
        let (clients, servers) = self.size();
        let first = self.random().index(servers);
        for server in (first..first + count).map(|server| server % servers) {
            for client in 0..clients {
                self.block(client, server, 0, true);
                self.block(client, server, 1, true);
            }
        }
        self.mend_later(fault);
    }

    fn mend_later(&self, fault: Fault) {
        self.remark(fault.name());
        let time = match fault {
            // Longer than operations may take.
            Fault::LongPartition => self.random().between(1500, 4000),
            _ => self.random().between(1, 400),
        };
        let time = Duration::from_millis(time);
        if fault == Fault::LongPartition {
            self.keep_links_until(self.now().plus(time));
        }
        self.at(time, Happening::Trouble(Trouble::Open));
    }

    fn pause(&self, server: usize) {
        self.plan().note(Fault::Pause);
        let life = self.stand_still(server);
        let time = Duration::from_millis(self.random().between(1, 500));
        self.at(time, Happening::Resume(server, life));
    }

    /// A server stands still until this life of it is resumed.
    pub(crate) fn stand_still(&self, server: usize) -> u64 {
        self.remark(&format!("server {server} stands still"));
        let life = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            machine.paused = true;
            machine.paused_at = Some(self.now());
            machine.life
        };
        self.disturb(server);
        life
    }

    fn fill(&self, server: usize, time: Duration) {
        self.remark(&format!("the disk of server {server} is full"));
        {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            machine.platter.disk.set_capacity(Some(0));
            machine.full_until = machine.full_until.max(self.now().plus(time));
        }
        self.at(time, Happening::Trouble(Trouble::Room(server)));
    }

    /// Any number of disks is full, each for a while of its own.
    fn fill_many(&self) {
        self.plan().note(Fault::DisksFull);
        let (_, servers) = self.size();
        let chosen = self.random().draw();
        for server in (0..servers).filter(|server| chosen >> server & 1 == 1) {
            self.fill(
                server,
                Duration::from_millis(self.random().between(200, 4000)),
            );
        }
    }

    /// Any number of servers lacks descriptors and memory, each for a while of its own.
    fn exhaust_many(&self) {
        let (_, servers) = self.size();
        let random = Random::new(self.random().beside(self.now().0));
        let chosen = random.draw();
        for server in (0..servers).filter(|server| chosen >> server & 1 == 1) {
            let machine = &self.0.machines.borrow().list[server];
            // Most calls fail, and some do not.
            let bits = random.draw() | random.draw();
            machine.platter.disk.set_scarcity(Some(bits));
            let time = Duration::from_millis(random.between(200, 4000));
            self.remark(&format!("server {server} lacks descriptors"));
            self.at(time, Happening::Trouble(Trouble::Plenty(server)));
        }
    }

    /// Counted only if a call has failed meanwhile.
    fn supply(&self, server: usize) {
        let disk = &self.0.machines.borrow().list[server].platter.disk;
        disk.set_scarcity(None);
        if disk.has_lacked() {
            self.plan().note(Fault::Exhausted);
        }
    }

    /// A read of the disk fails soon: its record is taken for damaged until the next start.
    fn fail_read(&self, server: usize) {
        self.plan().note(Fault::ReadError);
        self.remark(&format!("server {server} cannot read its disk once"));
        let machines = &mut *self.0.machines.borrow_mut();
        machines.lose(server);
        machines.truth(server).suffer(Harm::Rotten);
        let disk = &machines.list[server].platter.disk;
        disk.fail_read(self.random().below(20));
    }

    /// The machine is gone, and with it any part of its unsynced writes.
    pub(super) fn lose_power(&self, server: usize) {
        self.stop(server, |unsynced| {
            let length = match unsynced {
                UnsyncedChange::Write { length, .. } => length,
                UnsyncedChange::Names { changes } => changes,
                UnsyncedChange::Length { .. } => 1,
            };
            let written = matches!(unsynced, UnsyncedChange::Write { .. });
            let note = |fault| {
                if written {
                    self.plan().note(fault);
                }
            };
            match self.random().below(4) {
                0 => Survive::All,
                1 => {
                    note(Fault::LostWrites);
                    Survive::Nothing
                }
                2 => {
                    note(Fault::TornWrite);
                    Survive::Prefix(self.random().index(length + 1))
                }
                _ => {
                    note(Fault::TornWrite);
                    let mask = self.random().draw();
                    Survive::Sectors { size: 512, mask }
                }
            }
        });
    }
}

impl super::Inner {
    fn moments_go_on(&self) -> bool {
        DRAWN.iter().any(|fault| self.plan.is_planned(*fault))
    }

    fn queue_moment(&self, world: &World) {
        let time = Duration::from_millis(self.random.between(1, 40));
        world.at(time, Happening::Trouble(Trouble::Moment));
    }
}
