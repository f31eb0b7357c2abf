//! The identities of servers, and disks that are wiped, copied, or put back as they once were (decision record 0002). As in
//! `server`, a start is counted on the disk, then registered at a quorum of the root domain, and only then answers.

use super::call::SimEnv;
use super::machine::{Machine, Machines, SEGMENT_BYTES};
use super::place::{Sight, Supersession, Twin};
use super::{Event as Happening, World, id_of, server_of};
use crate::fault::Fault;
use crate::invariant::Observation;
use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::instant::Instant;
use areo_core::manager::StartOutcome;
use areo_core::message::ServerRecord;
use areo_core::starts::{StartPhase, Starts};
use areo_node::{ScrubProgress, may_be_replaced, may_start};
use areo_store::disk::Survive;
use areo_store::{Disk, LogOptions, MemoryDisk};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of one attempt to register, and the wait between two attempts, as in `server`.
pub(super) const ATTEMPT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);

/// A data directory: the store, and the file that says whose it is. That file is written in place of the whole, durably.
pub(super) struct Platter {
    pub(super) disk: MemoryDisk,
    pub(super) id: ServerId,
    pub(super) starts: Starts,
    /// The store is in the memory of the process, and the disk stays empty.
    pub(super) in_memory: bool,
    /// The generation of the extent file beside the log at the last start.
    pub(super) extent: u64,
    /// Progress of the last process in verifying its records.
    pub(super) scrubbed: Option<ScrubProgress>,
    /// The last durable batch of the log, when its process ended, or when the disk was copied.
    pub(super) position: Option<u64>,
}

impl Platter {
    pub(super) fn new(id: ServerId, in_memory: bool) -> Platter {
        Platter {
            disk: MemoryDisk::new(),
            id,
            starts: Starts::NONE,
            in_memory,
            extent: 0,
            scrubbed: None,
            position: None,
        }
    }

    /// True if the register may replace this server. The first servers may not: their ids were drawn when the cluster
    /// was made.
    pub(super) fn may_be_replaced(&self) -> bool {
        let is_drawn_by_process = self.id != id_of(server_of(self.id));
        may_be_replaced(self.in_memory, is_drawn_by_process)
    }

    /// The next process on the machine is the same server.
    pub(super) fn stays(&self) -> bool {
        may_start(self.in_memory, self.starts) && !self.may_be_replaced()
    }

    /// Options with which its store is opened.
    pub(super) fn log_options(&self) -> LogOptions {
        LogOptions {
            store_id: self.id.0 as u64,
            segment_bytes: SEGMENT_BYTES,
            reclaim_dead_percent: 50,
            extent: self.extent,
        }
    }

    /// The power is off, or a read or a write has failed: whatever comes of that is no fault of the store.
    pub(super) fn is_broken(&self) -> bool {
        self.disk.list().is_err() || self.disk.has_failed()
    }

    /// A copy, as of a moment at which nothing is being written: of a server that runs, too.
    pub(super) fn duplicate(&self) -> Platter {
        let disk = self.disk.duplicate();
        disk.crash(|_| Survive::All);
        Platter { disk, ..*self }
    }
}

/// Copies of the disk of one server, for faults that exchange disks.
#[derive(Default)]
pub(super) struct Exchange {
    /// A copy that was made earlier.
    copy: Option<Platter>,
    /// A copy that is put back within the start that runs.
    pub(super) snapshot: Option<Platter>,
    /// The server's own disk while a copy is in its place.
    aside: Option<Platter>,
    /// Number of starts of the copy that are still to come.
    pub(super) attempts: u64,
    /// A second process, which runs with a copy.
    pub(super) twin: Option<Twin>,
    /// A second process was confirmed, while the first one was up.
    pub(super) superseded: Option<Supersession>,
    /// A second process is to be started from a copy of the directory that the next start writes.
    is_twin_due: bool,
    /// Since the last confirmed start a second process has run, which may have taken the incarnation.
    pub(super) is_contended: bool,
    /// The last start that a copy began in its place since then: a member that has registered it refuses the true directory.
    pub(super) begun_by_copy: Option<u64>,
}

/// A start that the root domain has decided about.
pub(super) struct DecidedStart {
    pub(super) id: ServerId,
    pub(super) outcome: StartOutcome,
    /// The registered record if the start was confirmed, otherwise the proposed one.
    pub(super) record: ServerRecord,
    /// The last configuration of the root domain in which it was registered.
    root: Arc<Configuration>,
    since: Instant,
    pub(super) incarnation: u64,
    /// The number of the last start that the process began.
    number: Option<u64>,
    /// The last start that its directory knew of, and how far its log was then.
    last: u64,
    position: Option<u64>,
    standstills: u64,
}

impl DecidedStart {
    pub(super) fn is_confirmed(&self) -> bool {
        matches!(self.outcome, StartOutcome::Confirmed(_))
    }
}

/// A process that starts from a directory.
#[derive(Clone, Copy)]
pub(super) struct StartingProcess {
    pub(super) id: ServerId,
    pub(super) starts: Starts,
    /// The position of its log.
    pub(super) position: Option<u64>,
    /// The server lacks records, so that it abstains.
    pub(super) abstains: bool,
    /// The way in which a second process finds the first one; `None` for a first process.
    pub(super) sight: Option<Sight>,
}

impl Exchange {
    /// A copy is in the place of the true disk.
    pub(super) fn is_copy(&self) -> bool {
        self.aside.is_some()
    }
}

impl Machine {
    /// Its true directory goes on after this incarnation, whichever process has begun that.
    pub(super) fn take_over(&mut self, incarnation: u64) {
        let own = self.exchange.aside.as_mut().unwrap_or(&mut self.platter);
        let unconfirmed = None;
        if incarnation >= own.starts.incarnation {
            own.starts = Starts {
                incarnation,
                unconfirmed,
            };
        }
    }
}

impl World {
    /// The machine of the server with this id. Another server may have taken its place.
    pub(super) fn find(&self, id: ServerId) -> Option<usize> {
        let server = server_of(id);
        (server < self.cluster().servers).then_some(server)
    }

    // ---- a start ----

    /// Registers a start, however long that takes, and lets the server serve, or end.
    pub(super) fn register(&self, server: usize, life: u64) {
        let (process, standstills) = {
            let machine = &self.0.machines.borrow().list[server];
            let process = StartingProcess {
                id: machine.platter.id,
                starts: machine.platter.starts,
                position: machine.position(),
                abstains: machine.is_unreadable(),
                sight: None,
            };
            (process, machine.standstills())
        };
        let world = self.clone();
        let task = self.spawn(async move {
            let write = |starts| {
                let machine = &mut world.0.machines.borrow_mut().list[server];
                assert_eq!(machine.life, life, "the task ends with its life");
                machine.platter.starts = starts;
                machine.note_extent();
                if std::mem::take(&mut machine.exchange.is_twin_due) {
                    world.start_twin(server, machine);
                }
            };
            let mut started = world.started(server, process, write).await;
            started.standstills = standstills;
            let (outcome, incarnation) = (started.outcome.clone(), started.incarnation);
            world.record([5, server as u64, life, incarnation], || {
                format!("server {server}, incarnation {incarnation}: {outcome:?}")
            });
            match &outcome {
                StartOutcome::Confirmed(_) => {
                    world.confirm(server, life, &started);
                    world.perhaps_lose_log(server, life);
                    // The process of a copy may have ended with that: the next one has a log and a start of its own.
                    let goes_on = world.0.machines.borrow().list[server].life == life;
                    if goes_on && process.position.is_some() {
                        world.hold(server, life, &started).await;
                    }
                }
                outcome => world.refused(server, life, outcome),
            }
        });
        self.0.machines.borrow_mut().list[server].registering = Some(task);
    }

    pub(super) async fn started(
        &self,
        server: usize,
        process: StartingProcess,
        mut write: impl FnMut(Starts),
    ) -> DecidedStart {
        let (caller, root) = (self.caller_of(server), self.root());
        let may_be_replaced = self.0.machines.borrow().list[server]
            .platter
            .may_be_replaced();
        let record = ServerRecord {
            generation: may_be_replaced.then_some(0),
            position: process.position,
            ..ServerRecord::at_address(process.id, self.address(server))
        };
        let (since, mut number) = (self.now(), None);
        let mut starting = StartPhase::new(process.starts).abstaining(process.abstains);
        let last = starting.last();
        loop {
            let client = Client::new(SimEnv::new(self, caller, ATTEMPT));
            let write = |starts: Starts| {
                number = starts.unconfirmed.or(number);
                write(starts);
                Ok::<(), Infallible>(())
            };
            let handle = client.root(&root);
            // The process of the machine is the only one at its address.
            let answers = async |known: &ServerRecord| match process.sight {
                Some(sight) => self.answers_at(server, &known.address, sight).await,
                None => false,
            };
            let ended = handle.start(&mut starting, &record, write, answers).await;
            if let Ok(outcome) = ended {
                let root = client.sequences().start(&root);
                if root.id().index > 0 {
                    self.plan().note(Fault::RegisteredElsewhere);
                }
                let record = match &outcome {
                    StartOutcome::Confirmed(record) => (**record).clone(),
                    _ => record,
                };
                return DecidedStart {
                    id: process.id,
                    outcome,
                    record,
                    root,
                    since,
                    incarnation: starting.incarnation(),
                    number,
                    last,
                    position: process.position,
                    standstills: 0,
                };
            }
            client.env.sleep(PAUSE).await;
        }
    }

    /// A member of the root domain that knows of a later start, or of another one of the incarnation, or that the log had come further,
    /// and that was in reach all the time. The server itself is none: it has the registry of the disk that it runs with.
    pub(super) fn who_knows_better(
        &self,
        machines: &Machines,
        server: usize,
        started: &DecidedStart,
    ) -> Option<usize> {
        let caller = self.caller_of(server);
        let members = started.root.members().iter().copied();
        let members = members.filter(|member| !machines.losses.is_lost(*member));
        let others = members.filter_map(|member| self.find(member));
        let mut others =
            others.filter(|other| *other != server && !machines.list[*other].exchange.is_copy());
        others.find(|other| {
            let machine = &machines.list[*other];
            let known = machine.registered(started.id);
            let knows_better = known.is_some_and(|known| {
                let is_other = Some(known.start) != started.number;
                known.incarnation > started.incarnation
                    || known.incarnation == started.incarnation && is_other
                    || known.incarnation == started.last && known.position > started.position
            });
            knows_better && !machine.paused && self.was_in_reach(caller, *other, started.since)
        })
    }

    fn confirm(&self, server: usize, life: u64, started: &DecidedStart) {
        let is_copy = {
            let machines = &mut *self.0.machines.borrow_mut();
            if machines.list[server].life != life {
                return;
            }
            let exchange = &mut machines.list[server].exchange;
            exchange.settle();
            let is_copy = exchange.is_copy();
            let who = is_copy.then(|| self.who_knows_better(machines, server, started));
            let knows_better = who.flatten();
            let confirmed = Observation::Confirmed {
                id: started.id,
                incarnation: started.incarnation,
                is_copy,
                knows_better,
            };
            // An old copy that no server in reach knows of is more than may fail.
            if !is_copy || knows_better.is_some() {
                self.observe(machines, &confirmed);
            }
            is_copy
        };
        if is_copy {
            // More than may fail: it is found out by a person, before it answers.
            self.remark(&format!(
                "no server in reach knows that {server} has a copy"
            ));
            self.stop(server, |_| Survive::All);
            let machines = &mut *self.0.machines.borrow_mut();
            machines.list[server].take_over(started.incarnation);
            return self.put_back(machines, server);
        }
        let delay = match life > 1 && self.strikes(Fault::SlowStart) {
            true => Duration::from_millis(self.random().between(1, 100)),
            false => Duration::ZERO,
        };
        self.at(delay, Happening::Serve(server, life, started.standstills));
    }

    pub(super) fn put_back(&self, machines: &mut Machines, server: usize) {
        let machine = &mut machines.list[server];
        if let Some(own) = machine.exchange.aside.take() {
            let copy = std::mem::replace(&mut machine.platter, own);
            let begun = machine
                .exchange
                .begun_by_copy
                .max(Some(copy.starts.incarnation));
            machine.exchange.begun_by_copy = begun;
            machines.copied_until = Some(self.now());
            machines.truth(server).put_back();
            self.remark(&format!("server {server} has its own disk again"));
        }
    }

    // ---- faults ----

    /// Wipes the disk of a server. What starts there afterwards is another server.
    pub(super) fn wipe(&self, server: usize) {
        if !self.may_go(server) || !self.may_lose(server) || self.is_in_memory(server) {
            return;
        }
        self.plan().note(Fault::DiskWiped);
        self.replace_disk(server);
        self.remark(&format!("the disk of server {server} is wiped"));
    }

    /// Another server, with an empty disk, takes the place of this one.
    pub(super) fn replace_disk(&self, server: usize) {
        self.kill(server);
        self.end_twin(server);
        self.begin_anew(&mut self.0.machines.borrow_mut(), server);
    }

    /// True if a copy was in the place of a disk at any time since `since`.
    pub(super) fn was_any_copy(&self, since: Instant) -> bool {
        let until = self.0.machines.borrow().copied_until;
        self.is_any_copy() || until.is_some_and(|until| until >= since)
    }

    /// A disk is a copy: with another fault that lasts, that would be more than may fail.
    pub(super) fn is_any_copy(&self) -> bool {
        let machines = self.0.machines.borrow();
        machines.list.iter().any(|it| it.exchange.is_copy())
    }

    /// Makes a copy of a server's disk; later, when the server has been started again, uses it. Or has the next start of the
    /// server copied while it is under way.
    pub(super) fn exchange(&self, server: usize, fault: Fault) {
        if !self.may_exchange(server) {
            return;
        }
        if fault == Fault::DiskCopied && self.random().chance(300) && self.copy_at_work(server) {
            return;
        }
        // A snapshot of the start that runs tells as little of itself as one of an earlier start.
        let copy = self.take_copy(server, fault == Fault::DiskRolledBack);
        let may_copy_a_start = fault == Fault::DiskCopied && self.random().chance(500);
        match copy {
            Some(copy) if fault == Fault::DiskRolledBack => self.roll_back(server, copy),
            _ if may_copy_a_start => {
                self.kill(server);
                self.0.machines.borrow_mut().list[server]
                    .exchange
                    .is_twin_due = true;
            }
            Some(copy) => {
                let machine = &mut self.0.machines.borrow_mut().list[server];
                self.run_twin(server, machine, (copy.starts, copy.position));
            }
            None => {
                if self.random().chance(500) {
                    self.kill(server);
                }
                let machine = &mut self.0.machines.borrow_mut().list[server];
                machine.exchange.copy = Some(Platter {
                    position: machine.log_position(),
                    ..machine.platter.duplicate()
                });
                self.remark(&format!("the disk of server {server} is copied"));
            }
        }
    }

    /// Starts a second process from a copy of the disk of a running server. False: the server is not running.
    fn copy_at_work(&self, server: usize) -> bool {
        let machine = &mut self.0.machines.borrow_mut().list[server];
        let is_at_work = machine.serves() && machine.platter.starts.unconfirmed.is_none();
        if is_at_work {
            self.start_twin(server, machine);
        }
        is_at_work
    }

    pub(super) fn may_exchange(&self, server: usize) -> bool {
        let is_own = {
            let machines = self.0.machines.borrow();
            let platter = &machines.list[server].platter;
            machines.losses.is_only(platter.id) && platter.id == id_of(server) && !platter.in_memory
        };
        is_own && self.may_go(server) && !self.is_any_copy()
    }

    /// The copy of the server's disk, if it is of an earlier start, or of this one where that is wanted.
    fn take_copy(&self, server: usize, may_be_of_this_start: bool) -> Option<Platter> {
        let machine = &mut self.0.machines.borrow_mut().list[server];
        let Starts {
            incarnation: later,
            unconfirmed,
        } = machine.platter.starts;
        let is_older = |copy: &mut Platter| {
            let copied = copy.starts.incarnation;
            let is_before = copied < later || may_be_of_this_start && copied == later;
            unconfirmed.is_none() && copy.starts.unconfirmed.is_none() && is_before
        };
        machine.exchange.copy.take_if(is_older)
    }

    pub(super) fn roll_back(&self, server: usize, copy: Platter) {
        self.plan().note(Fault::DiskRolledBack);
        self.kill(server);
        let machines = &mut *self.0.machines.borrow_mut();
        let own = std::mem::replace(&mut machines.list[server].platter, copy);
        machines.list[server].exchange.aside = Some(own);
        machines.truth(server).put_aside();
        machines.list[server].exchange.attempts = self.random().between(1, 6);
        self.remark(&format!("the disk of server {server} is an old copy"));
    }

    /// The copies go, the true disks come back.
    pub(super) fn heal_disks(&self) {
        let (_, servers) = self.size();
        for server in 0..servers {
            self.end_twin(server);
            if !self.0.machines.borrow().list[server].exchange.is_copy() {
                continue;
            }
            if self.is_up(server) {
                self.kill(server);
            }
            self.put_back(&mut self.0.machines.borrow_mut(), server);
        }
    }
}
