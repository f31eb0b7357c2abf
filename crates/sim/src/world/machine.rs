//! Servers: the production shard over the production store on a disk in memory. A commit takes virtual time, during which
//! requests gather for the next batch; and it can end in every way in which a real one can.

mod adoption;
mod life;
mod room;
mod show;

use super::identity::{Exchange, Platter};
use super::network::Body;
use super::{Event as Happening, World, id_of};
use crate::fault::Fault;
use crate::invariant::Observation;
use crate::random::Random;
use crate::truth::{ObjectId, Truth};
use areo_core::config::{Configuration, ServerId};
use areo_core::instant::Instant;
use areo_core::limits::UNCONFIRMED_ELEMENTS;
use areo_core::message::{Access, Body as Asked, Refusal, Request, ServerRecord};
use areo_core::server::record::{Header, Key, Step};
use areo_core::shard::{Shard, writes};
use areo_core::tag::Tag;
use areo_store::disk::MemoryFile;
use areo_store::records::Records;
use areo_store::{Commit, MemoryDisk};
use areo_wire::codec;
use bytes::Bytes;
use room::{Batch, Room};
use std::sync::Arc;
use std::time::Duration;

/// Small, so that segments are filled, reclaimed and found again all the time.
const SEGMENT_BYTES: u64 = 64 << 10;
/// A turn takes no further request once its records take so many bytes, beside what is owed: as in `server`, half a segment.
const BATCH_BYTES: u64 = SEGMENT_BYTES / 2;
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
    /// By access: the object, and the version if it was a put or an adoption.
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
    batch: Batch,
    committed_since_upkeep: bool,
    stage: Stage,
}

/// How far a process is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its start is not registered yet.
    Starting,
    Serving,
    /// It was told to stop: it refuses what comes.
    Draining,
}

pub(super) struct Machine {
    pub(super) platter: Platter,
    pub(super) exchange: Exchange,
    live: Option<Live>,
    inbox: Vec<Job>,
    pub(super) paused: bool,
    /// Its disk has no room before then.
    pub(super) full_until: Instant,
    /// The task that registers its start.
    pub(super) registering: Option<usize>,
    /// Counts starts: events of an earlier life mean nothing.
    pub(super) life: u64,
}

pub(super) struct Machines {
    pub(super) list: Vec<Machine>,
    truths: Vec<Truth>,
    /// The one server that has lost data, if one has: a second would be more than may fail.
    pub(super) harmed: Option<usize>,
    root: Arc<Configuration>,
    commit_us: (u64, u64),
    /// Unconfirmed versions of one object that a server takes: usually few, so that clients meet the cap.
    max_unconfirmed: usize,
}

impl Machines {
    pub(super) fn new(servers: usize, root: &Arc<Configuration>, random: &Random) -> Machines {
        let machine = |server| Machine {
            platter: Platter::new(id_of(server)),
            exchange: Exchange::default(),
            registering: None,
            live: None,
            inbox: Vec::new(),
            paused: false,
            full_until: Instant::default(),
            life: 0,
        };
        let fast = random.between(10, 300);
        Machines {
            list: (0..servers).map(machine).collect(),
            harmed: None,
            truths: (0..servers).map(|_| Truth::default()).collect(),
            root: root.clone(),
            // Not fewer than there are writers at once: those would starve each other, and rightly so.
            max_unconfirmed: [6, 9, UNCONFIRMED_ELEMENTS][random.index(3)],
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

    /// What it knows of a server.
    pub(super) fn registered(&self, id: ServerId) -> Option<ServerRecord> {
        let live = self.live.as_ref()?;
        let mut known = live.shard.server().registered();
        known.find(|record| record.id == id).cloned()
    }

    /// Proves everything written, as an idle server does. False: not now.
    pub(super) fn seal(&mut self) -> bool {
        match &mut self.live {
            Some(live) if !live.committing => live.records.seal().is_ok(),
            _ => false,
        }
    }
}

impl World {
    pub(crate) fn is_up(&self, server: usize) -> bool {
        self.0.machines.borrow().list[server].is_up()
    }

    /// It answers: it is up, its start is confirmed, and it does not stand still.
    pub(crate) fn is_serving(&self, server: usize) -> bool {
        let machine = &self.0.machines.borrow().list[server];
        let live = machine.live.as_ref();
        let is_serving = live.is_some_and(|live| live.stage == Stage::Serving);
        is_serving && !machine.paused
    }

    pub(super) fn root(&self) -> Arc<Configuration> {
        self.0.machines.borrow().root.clone()
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
                    let put = match access {
                        Access::Put { tag, .. } | Access::Keep { tag, .. } | Access::Adopt(tag) => {
                            Some(*tag)
                        }
                        Access::Query { .. }
                        | Access::Fetch { .. }
                        | Access::Fence { .. }
                        | Access::Drop(_) => None,
                    };
                    if let Access::Put { tag, element, .. } | Access::Keep { tag, element } = access
                    {
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
            Asked::List(_)
            | Asked::Cells { .. }
            | Asked::ReadConfig
            | Asked::Register { .. }
            | Asked::Servers => Subject::Other,
        }
    }

    /// Handles what came, batch by batch, unless one is being written.
    fn turn(&self, server: usize) {
        while self.receive(server) {}
    }

    /// Hands the inbox to the shard, up to the size of a batch. False: there is nothing that it could do now.
    fn receive(&self, server: usize) -> bool {
        let (mut refused, mut adopted) = (Vec::new(), Vec::new());
        let works = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let Some(live) = machine.live.as_mut() else {
                return false;
            };
            if live.committing || machine.paused || machine.inbox.is_empty() {
                return false;
            }
            let now = self.clock(self.caller_of(server));
            let owed = live.owed();
            let (mut bytes, mut works, mut batch) = (SLACK_BYTES + owed, true, Batch::Open);
            let mut jobs = std::mem::take(&mut machine.inbox).into_iter();
            while bytes < owed + BATCH_BYTES {
                let Some(mut job) = jobs.next() else { break };
                let needs = live.adopt(&mut job, &mut adopted);
                let room = live.room(&job, bytes + needs, owed);
                bytes += match room {
                    Ok(Room::Enough) => needs,
                    _ => 0,
                };
                if matches!(room, Ok(Room::Enough | Room::ForReads)) {
                    batch = Batch::Closes;
                }
                let fits = match (&room, &job) {
                    (Ok(Room::ForReads), Job::Request(_, _, request, ..)) => !writes(request),
                    (room, _) => matches!(room, Ok(Room::Enough)),
                };
                match (room, job) {
                    (Ok(_), Job::Request(client, call, ..)) if live.stage == Stage::Draining => {
                        refused.push((client, call, Refusal::Draining));
                    }
                    (Ok(_), Job::Request(client, call, request, subject, _)) if fits => {
                        let caller = Caller {
                            client,
                            call,
                            subject,
                        };
                        live.shard.receive(now, caller, request);
                    }
                    (Ok(_), Job::Note(note)) if fits => live.shard.note(now, note),
                    (Ok(_), Job::Request(client, call, ..)) => {
                        refused.push((client, call, Refusal::Full));
                    }
                    (Ok(_), Job::Note(_)) => {}
                    // The power went, or a sync failed: as in `server`, that is the end.
                    (Err(_), _) => works = false,
                }
            }
            machine.inbox = jobs.collect();
            works.then_some(batch)
        };
        self.show_adopted(&adopted);
        let Some(batch) = works else {
            self.broken(server);
            return false;
        };
        for (client, call, refusal) in refused {
            self.send_reply((client, server), call, Err(refusal));
        }
        self.begin_commit(server, batch);
        true
    }

    /// The store of a server cannot go on: with a disk that works that is a fault of the store.
    pub(super) fn broken(&self, server: usize) {
        let machines = self.0.machines.borrow();
        let machine = &machines.list[server];
        let first = machine
            .live
            .as_ref()
            .and_then(|live| live.records.failure());
        let sentence = format!(
            "store: server {server} cannot go on: {}",
            first.unwrap_or("its disk says so")
        );
        let is_off = machine.platter.is_broken();
        drop(machines);
        self.remark(&sentence);
        if !is_off {
            self.violate(sentence);
        }
        self.lose_power(server);
    }

    // ---- commits ----

    /// Commits what the store has, and the shard's batch if it is to be closed: its replies leave when it is durable.
    fn begin_commit(&self, server: usize, batch: Batch) {
        let begun = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            let live = machine.live.as_mut().expect("only what is up commits");
            live.batch = batch;
            let steps = match batch {
                Batch::Closes => live.shard.close(),
                Batch::Open => Vec::new(),
            };
            let watch = &mut *self.0.watch.borrow_mut();
            machines.truths[server].close(&steps, &mut watch.objects);
            let described = steps.iter().filter_map(configuration_of);
            let described = described.map(|c| (Key::of(&c.id()), c.clone()));
            watch.shapes.extend(described);
            live.records.apply(steps);
            let life = machine.life;
            live.records.begin_commit().map(|commit| {
                live.committing = commit.is_some();
                live.committed_since_upkeep |= commit.is_some();
                let (low, high) = machines.commit_us;
                let time = Duration::from_micros(self.random().between(low, high));
                let waits = commit.is_some();
                live.commit = commit;
                if !waits {
                    // Nothing to write: at most records that go.
                    machines.truths[server].committed();
                }
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
            Err(_) => self.broken(server),
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
                let operation = machine.platter.disk.operations() + self.random().below(3);
                machine.platter.disk.power_off_at(operation);
            } else if self.strikes(Fault::SyncError) {
                machine.platter.disk.fail_sync(0);
            } else if self.strikes(Fault::WriteError) {
                machine.platter.disk.fail_write(self.random().below(2));
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
            let live = machines.list[server].live.as_mut();
            let live = live.expect("only what is up releases");
            match live.batch {
                Batch::Closes => live.shard.release(&live.records),
                Batch::Open => Vec::new(),
            }
        };
        let machines = self.0.machines.borrow();
        for (caller, reply) in replies {
            self.show(&machines, server, &caller.subject, &reply);
            let encoded = reply.map(|reply| codec::encode_reply(&reply));
            self.send_reply((caller.client, server), caller.call, encoded);
        }
    }
}

/// The configuration that a server gets to know.
fn configuration_of(step: &Step) -> Option<&Arc<Configuration>> {
    match step {
        Step::Append { header, .. } => match &**header {
            Header::Configuration(c) => Some(c),
            _ => None,
        },
        Step::Free(_) => None,
    }
}
