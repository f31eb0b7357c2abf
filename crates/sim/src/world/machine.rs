//! Servers: the production shard over the production store on a disk in memory. A commit takes virtual time, during which
//! requests gather for the next batch; and it can end in every way in which a real one can.

use super::network::Body;
use super::{Event as Happening, World, id_of};
use crate::fault::Fault;
use crate::invariant::Observation;
use crate::random::Random;
use crate::truth::{Kept, ObjectId, Truth};
use areo_core::config::Configuration;
use areo_core::message::{Access, Answer, Body as Asked, CellReply, Refusal, Reply, Request};
use areo_core::server::Identity;
use areo_core::server::record::Key;
use areo_core::shard::Shard;
use areo_core::tag::Tag;
use areo_store::disk::MemoryFile;
use areo_store::records::Records;
use areo_store::{Commit, Disk, LogOptions, MemoryDisk, ReserveError, StepOutcome};
use areo_wire::codec;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How often the store is looked after, as in `server`.
const UPKEEP_PERIOD: Duration = Duration::from_millis(200);
/// Small, so that segments are filled, reclaimed and found again all the time.
const SEGMENT_BYTES: u64 = 64 << 10;
/// Set aside in every turn for records that no request accounts for.
const SLACK_BYTES: u64 = 8 << 10;
/// What one request takes in the store at most, beside its payload.
const REQUEST_BYTES: u64 = 2 << 10;

/// Whom a reply goes to, and what it answers.
struct Caller {
    client: usize,
    call: u64,
    subject: Subject,
}

/// What was asked about.
enum Subject {
    /// By access: the object, and the version if it was a put.
    Objects(Vec<(ObjectId, Option<Tag>)>),
    Cell(Key, Bytes),
    Other,
}

enum Job {
    Request(usize, u64, Request, Subject, u64),
    Note(areo_core::message::Note),
}

struct Live {
    shard: Shard<Caller>,
    records: Records<MemoryDisk>,
    commit: Option<Commit<MemoryFile>>,
    committing: bool,
    committed_since_upkeep: bool,
}

pub(super) struct Machine {
    pub(super) disk: MemoryDisk,
    live: Option<Live>,
    inbox: Vec<Job>,
    pub(super) paused: bool,
    /// Counts starts: events of an earlier life mean nothing.
    pub(super) life: u64,
}

pub(super) struct Machines {
    pub(super) list: Vec<Machine>,
    truths: Vec<Truth>,
    root: Arc<Configuration>,
    commit_us: (u64, u64),
}

impl Machines {
    pub(super) fn new(servers: usize, root: &Arc<Configuration>, random: &Random) -> Machines {
        let machine = |_| Machine {
            disk: MemoryDisk::new(),
            live: None,
            inbox: Vec::new(),
            paused: false,
            life: 0,
        };
        let fast = random.between(10, 300);
        Machines {
            list: (0..servers).map(machine).collect(),
            truths: (0..servers).map(|_| Truth::default()).collect(),
            root: root.clone(),
            commit_us: (fast, fast * random.between(1, 10)),
        }
    }

    pub(super) fn truths(&self) -> &[Truth] {
        &self.truths
    }

    pub(super) fn truth(&mut self, server: usize) -> &mut Truth {
        &mut self.truths[server]
    }
}

impl Machine {
    pub(super) fn is_up(&self) -> bool {
        self.live.is_some()
    }

    /// Proves everything written, as an idle server does. False: not now.
    pub(super) fn seal(&mut self) -> bool {
        match &mut self.live {
            Some(live) if !live.committing => live.records.seal().is_ok(),
            _ => false,
        }
    }
}

fn identity(server: usize, incarnation: u64, root: &Arc<Configuration>) -> Identity {
    Identity {
        id: id_of(server),
        incarnation,
        root: root.clone(),
        durable: true,
        max_value_bytes: 1 << 20,
    }
}

impl World {
    pub(crate) fn is_up(&self, server: usize) -> bool {
        self.0.machines.borrow().list[server].is_up()
    }

    /// It is up and does not stand still.
    pub(super) fn is_responsive(&self, server: usize) -> bool {
        let machines = self.0.machines.borrow();
        machines.list[server].is_up() && !machines.list[server].paused
    }

    // ---- starting ----

    /// Starts a server from its disk.
    pub(super) fn start(&self, server: usize) {
        if self.is_up(server) {
            return;
        }
        let recovered = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.life += 1;
            (machine.paused, machine.inbox) = (false, Vec::new());
            if machine.life > 1 && self.strikes(Fault::CrashInRecovery) {
                let operation = machine.disk.operations() + self.random().below(6);
                machine.disk.power_off_at(operation);
            }
            let mut shard = Shard::new(identity(server, machine.life, &machines.root));
            let objects = &mut self.0.watch.borrow_mut().objects;
            let mut found = Vec::new();
            let options = LogOptions {
                store_id: server as u64 + 1,
                segment_bytes: SEGMENT_BYTES,
                reclaim_dead_percent: 50,
            };
            let opened = Records::open(machine.disk.clone(), options, |header, damaged| {
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
                let is_off = self.0.machines.borrow().list[server].disk.list().is_err();
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
                committed_since_upkeep: true,
            });
            let missing = &missing;
            self.observe(machines, &Observation::Recovered { server, missing });
            if unreadable && !machines.truths[server].rotten {
                self.violate(format!(
                    "store: server {server} lost records of sound disks"
                ));
            }
            machines.list[server].life
        };
        self.record([2, server as u64, life, u64::from(unreadable)], || {
            format!("server {server} is up, life {life}, unreadable: {unreadable}")
        });
        let delay = match life > 1 && self.strikes(Fault::SlowStart) {
            true => Duration::from_millis(self.random().between(1, 100)),
            false => Duration::ZERO,
        };
        self.at(delay, Happening::Serve(server, life));
        let offset = Duration::from_millis(self.random().below(200));
        self.at(UPKEEP_PERIOD + offset, Happening::Upkeep(server, life));
        self.reconnect(server);
    }

    pub(super) fn serve(&self, server: usize, life: u64) {
        let machine = &mut self.0.machines.borrow_mut().list[server];
        if let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) {
            live.shard.serve();
        }
    }

    // ---- requests ----

    pub(super) fn on_request(&self, (client, server): (usize, usize), call: u64, body: Body) {
        if !self.is_up(server) {
            return;
        }
        let payload_bytes = body
            .payload
            .iter()
            .map(|(bytes, _)| bytes.len() as u64)
            .sum();
        match codec::decode_request(&body.body, body.payload) {
            Ok(request) => {
                let subject = self.subject(&request);
                let job = Job::Request(client, call, request, subject, payload_bytes);
                self.0.machines.borrow_mut().list[server].inbox.push(job);
                self.turn(server);
            }
            Err(error) => self.violate(format!("codec: a request cannot be read: {error}")),
        }
    }

    pub(super) fn on_note(&self, server: usize, body: &Body) {
        if !self.is_up(server) {
            return;
        }
        match codec::decode_note(&body.body, Vec::new()) {
            Ok(note) => {
                self.0.machines.borrow_mut().list[server]
                    .inbox
                    .push(Job::Note(note));
                self.turn(server);
            }
            Err(error) => self.violate(format!("codec: a note cannot be read: {error}")),
        }
    }

    /// What the request is about; shows the invariants the elements in it.
    fn subject(&self, request: &Request) -> Subject {
        let Request::Configured {
            configuration,
            body,
            ..
        } = request
        else {
            return Subject::Other;
        };
        let key = Key::of(configuration);
        match body {
            Asked::Access(accesses) => {
                let machines = self.0.machines.borrow();
                let mut about = Vec::with_capacity(accesses.len());
                for (name, access) in accesses {
                    let object = self
                        .0
                        .watch
                        .borrow_mut()
                        .objects
                        .number(key, name.as_bytes());
                    let mut put = None;
                    if let Access::Put { tag, element, .. } = access {
                        put = Some(*tag);
                        let (tag, element) = (*tag, element);
                        let submitted = Observation::Submitted {
                            object,
                            tag,
                            element,
                        };
                        self.observe(&machines, &submitted);
                    }
                    about.push((object, put));
                }
                Subject::Objects(about)
            }
            Asked::Cell { cell, .. } => Subject::Cell(key, cell.clone()),
            Asked::List(_) | Asked::Cells { .. } => Subject::Other,
        }
    }

    /// One batch of everything that came, unless another is being written.
    fn turn(&self, server: usize) {
        let mut refused = Vec::new();
        let closed = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let Some(live) = machine.live.as_mut() else {
                return;
            };
            if live.committing || machine.paused || machine.inbox.is_empty() {
                return;
            }
            let now = self.now();
            let mut bytes = SLACK_BYTES;
            for job in machine.inbox.drain(..) {
                let payload_bytes = match &job {
                    Job::Request(.., payload_bytes) => *payload_bytes,
                    Job::Note(_) => 0,
                };
                bytes += REQUEST_BYTES + payload_bytes;
                let room = live.records.reserve(bytes);
                match (room, job) {
                    (Ok(()), Job::Request(client, call, request, subject, _)) => {
                        let caller = Caller {
                            client,
                            call,
                            subject,
                        };
                        live.shard.receive(now, caller, request);
                    }
                    (Ok(()), Job::Note(note)) => live.shard.note(now, note),
                    (Err(ReserveError::Full { .. }), Job::Request(client, call, ..)) => {
                        refused.push((client, call));
                    }
                    // The power went, or the last sync failed: the end is noticed when the batch is written.
                    (Err(_), _) => {}
                }
            }
            true
        };
        for (client, call) in refused {
            self.send_reply((client, server), call, Err(Refusal::Full));
        }
        if closed {
            self.begin_commit(server);
        }
    }

    // ---- commits ----

    /// Closes the batch. Its replies leave when it is durable.
    fn begin_commit(&self, server: usize) {
        let begun = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let live = machine.live.as_mut().expect("only what is up commits");
            let steps = live.shard.close();
            let objects = &mut self.0.watch.borrow_mut().objects;
            machines.truths[server].close(&steps, objects);
            live.records.apply(steps);
            let life = machine.life;
            live.records.begin_commit().map(|commit| {
                live.committing = commit.is_some();
                live.committed_since_upkeep |= commit.is_some();
                let (low, high) = machines.commit_us;
                let time = Duration::from_micros(self.random().between(low, high));
                let waits = commit.is_some();
                live.commit = commit;
                (waits, life, time)
            })
        };
        match begun {
            Ok((false, ..)) => self.release(server),
            Ok((true, life, time)) => {
                let time = match self.strikes(Fault::SlowDisk) {
                    true => time + Duration::from_millis(self.random().between(5, 150)),
                    false => time,
                };
                self.at(time, Happening::Commit(server, life));
            }
            Err(error) => {
                self.remark(&format!("server {server} cannot commit: {error}"));
                self.lose_power(server);
            }
        }
    }

    /// The batch is written, or the attempt is the end of the server.
    pub(super) fn finish_commit(&self, server: usize, life: u64) {
        let written = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) else {
                return;
            };
            let commit = live.commit.take().expect("one event for each commit");
            if self.strikes(Fault::CrashInCommit) {
                let operation = machine.disk.operations() + self.random().below(3);
                machine.disk.power_off_at(operation);
            } else if self.strikes(Fault::SyncError) {
                machine.disk.fail_sync(0);
            }
            let written = commit.run().map(|done| live.records.finish_commit(done));
            if written.is_ok() {
                live.committing = false;
                machines.truths[server].committed();
            }
            written
        };
        self.record([3, server as u64, u64::from(written.is_ok()), 0], || {
            format!("server {server} commits: {written:?}")
        });
        if written.is_err() {
            self.lose_power(server);
        } else if self.strikes(Fault::CrashBeforeReply) {
            self.kill(server);
        } else {
            self.release(server);
            self.turn(server);
        }
    }

    /// The batch is durable: its replies leave.
    fn release(&self, server: usize) {
        let replies = {
            let machines = &mut *self.0.machines.borrow_mut();
            let truth = &mut machines.truths[server];
            truth.committed();
            let live = machines.list[server].live.as_mut();
            let live = live.expect("only what is up releases");
            live.shard.release(&live.records)
        };
        let machines = self.0.machines.borrow();
        for (caller, reply) in replies {
            self.show(&machines, server, &caller.subject, &reply);
            let encoded = reply.map(|reply| codec::encode_reply(&reply));
            self.send_reply((caller.client, server), caller.call, encoded);
        }
    }

    /// Shows the invariants what leaves a server.
    fn show(
        &self,
        machines: &Machines,
        server: usize,
        subject: &Subject,
        reply: &Result<Reply, Refusal>,
    ) {
        match (subject, reply) {
            (Subject::Objects(about), Ok(Reply::Access(answers))) => {
                for ((object, put), answer) in about.iter().zip(answers) {
                    let object = *object;
                    let observation = match (answer, put) {
                        (Answer::Held(held), _) => Observation::Shown {
                            server,
                            object,
                            held,
                        },
                        (Answer::Stored, Some(tag)) => Observation::Acknowledged {
                            server,
                            object,
                            tag: *tag,
                        },
                        _ => continue,
                    };
                    self.observe(machines, &observation);
                }
            }
            (Subject::Cell(key, cell), Ok(Reply::Cell(CellReply::Decided(value)))) => {
                let key = *key;
                self.observe(machines, &Observation::CellShown { key, cell, value });
            }
            _ => {}
        }
    }

    // ---- housekeeping ----

    /// As `server` does it: lets superseded versions go, reclaims, verifies, proves the last batch when idle.
    pub(super) fn upkeep(&self, server: usize, life: u64) {
        let kept = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            let paused = machine.paused;
            let Some(live) = machine.live.as_mut().filter(|_| machine.life == life) else {
                return;
            };
            match live.committing || paused {
                true => None,
                false => Some(self.keep_house(live)),
            }
        };
        self.at(UPKEEP_PERIOD, Happening::Upkeep(server, life));
        match kept {
            Some(true) => self.begin_commit(server),
            Some(false) => self.lose_power(server),
            None => {}
        }
    }

    /// False: the disk does not work any more.
    fn keep_house(&self, live: &mut Live) -> bool {
        live.shard.tick(self.now());
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
                    return false;
                }
            }
        }
        let (_, damaged) = live.records.scrub(SEGMENT_BYTES / 4);
        for header in damaged {
            live.shard.damaged(&header);
        }
        let idle = !std::mem::take(&mut live.committed_since_upkeep);
        !idle || live.records.seal().is_ok() || !live.records_are_broken()
    }

    // ---- ending ----

    /// The process is gone, what it wrote is not.
    pub(super) fn kill(&self, server: usize) {
        self.stop(server, |_| areo_store::disk::Survive::All);
    }

    /// Ends a server and its connections; `survive` says what of its unsynced writes is left.
    pub(super) fn stop(
        &self,
        server: usize,
        survive: impl FnMut(areo_store::disk::Unsynced<'_>) -> areo_store::disk::Survive,
    ) {
        {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            machine.live = None;
            machine.life += 1;
            machine.inbox.clear();
            machine.disk.crash(survive);
            machines.truths[server].lost();
        }
        self.record([4, server as u64, 0, 0], || {
            format!("server {server} is down")
        });
        self.disconnect(server);
        let downtime = Duration::from_millis(self.random().between(1, 300));
        self.at(downtime, Happening::Restart(server));
    }

    pub(super) fn resume(&self, server: usize, life: u64) {
        {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.life != life {
                return;
            }
            machine.paused = false;
        }
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
