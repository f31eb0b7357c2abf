//! Servers: the production node over the production store on a disk in memory. A commit takes virtual time, during which
//! requests gather for the next batch; and it can end in every way in which a real one can.

mod caps;
mod life;
mod observer;
mod show;

use super::departure::DepartedServer;
use super::growing::Growing;
use super::identity::{Exchange, Platter};
use super::leading::PostedSignal;
use super::loss::Losses;
use super::network::Body;
use super::{Event as Happening, World, id_of};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::invariant::Observation;
use crate::random::Random;
use crate::truth::{ObjectId, Truth};
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::consensus::mailbox::PostedChanges;
use areo_core::instant::Instant;
use areo_core::message::{Access, Body as Asked, Refusal, Request, ServerRecord, Transferred};
use areo_core::object::DomainId;
use areo_core::tag::Tag;
use areo_node::{Durable, Job, Node, NodeError, Sizes, Turn};
use areo_store::disk::MemoryFile;
use areo_store::{Commit, MemoryDisk};
use areo_wire::codec;
use areo_wire::frame::NO_DEADLINE;
use bytes::Bytes;
pub(super) use caps::Caps;
use observer::Observer;
use std::sync::Arc;
use std::time::Duration;

/// Small, so that segments are filled, reclaimed and found again all the time.
pub(super) const SEGMENT_BYTES: u64 = 64 << 10;
/// Sizes of batches: half a segment, as in `server`, or so small that a server may be in debt after its start.
fn sizes(random: &Random) -> Sizes {
    let (batch, slack) = [(SEGMENT_BYTES / 2, 8 << 10), (3 << 10, 2 << 10)][random.index(2)];
    Sizes {
        batch,
        slack,
        scrub: SEGMENT_BYTES / 4,
    }
}

/// The client and the call that a reply goes to, and the subject of the request.
struct Caller {
    client: usize,
    call: u64,
    /// The configuration that is asked, if one is.
    at: Option<ConfigurationId>,
    subject: Subject,
}

/// The subject of a request.
enum Subject {
    /// The object of each access.
    Objects(Vec<About>),
    Cell(ConfigurationId, Bytes),
    Other,
}

/// The object and the version of an access.
struct About {
    object: ObjectId,
    /// The version, if it is a put, an adoption or a fetch.
    version: Option<Tag>,
    adopts: bool,
}

struct Live {
    node: Node<Durable<MemoryDisk>, Caller>,
    commit: Option<Commit<MemoryFile>>,
}

pub(super) struct Machine {
    pub(super) platter: Platter,
    pub(super) exchange: Exchange,
    live: Option<Live>,
    pub(super) paused: bool,
    /// The last time at which it stood still.
    pub(super) paused_at: Option<Instant>,
    /// Its disk has no room before then.
    pub(super) full_until: Instant,
    /// Number of changes of its address.
    pub(super) moves: u64,
    /// The task that registers its start.
    pub(super) registering: Option<usize>,
    /// The task that repairs it.
    pub(super) repairing: Option<usize>,
    /// The task that leads domains.
    pub(super) leading: Option<usize>,
    /// Something was posted for that task.
    pub(super) posted: PostedSignal,
    /// The task that sees to the members of the root domain.
    pub(super) growing: Growing,
    /// Counts starts: events of an earlier life mean nothing.
    pub(super) life: u64,
}

pub(super) struct Machines {
    pub(super) list: Vec<Machine>,
    truths: Vec<Truth>,
    pub(super) losses: Losses,
    /// Servers that are gone, in the order in which they went.
    pub(super) departures: Vec<DepartedServer>,
    /// The time at which a copy was last in the place of a disk; `None` if one is there now.
    pub(super) copied_until: Option<Instant>,
    root: Arc<Configuration>,
    commit_us: (u64, u64),
    pub(super) caps: Caps,
    sizes: Sizes,
}

impl Machines {
    pub(super) fn new(cluster: &Cluster, root: &Arc<Configuration>, random: &Random) -> Machines {
        let servers = cluster.servers;
        let machine = |server| Machine {
            platter: Platter::new(id_of(server), cluster.is_in_memory(server)),
            exchange: Exchange::default(),
            moves: 0,
            registering: None,
            repairing: None,
            leading: None,
            growing: Growing::default(),
            posted: PostedSignal::default(),
            live: None,
            paused: false,
            paused_at: None,
            full_until: Instant::default(),
            life: 0,
        };
        let fast = random.between(10, 300);
        Machines {
            list: (0..servers).map(machine).collect(),
            losses: Losses::new(servers),
            departures: Vec::new(),
            copied_until: None,
            truths: (0..servers).map(|_| Truth::default()).collect(),
            root: root.clone(),
            // Not fewer than there are writers at once: those would starve each other, and rightly so.
            caps: Caps::drawn(random, fast),
            sizes: sizes(random),
            commit_us: (fast, fast * random.between(1, 10)),
        }
    }

    pub(super) fn truths(&self) -> &[Truth] {
        &self.truths
    }

    pub(super) fn truth(&mut self, server: usize) -> &mut Truth {
        &mut self.truths[server]
    }

    /// The server that is there now counts as lost.
    pub(super) fn lose(&mut self, server: usize) {
        self.losses.lose(self.list[server].platter.id);
    }

    pub(super) fn is_lost(&self, server: usize) -> bool {
        self.losses.is_lost(self.list[server].platter.id)
    }
}

impl Machine {
    /// Proves everything written, as an idle server does. False: not now.
    pub(super) fn seal(&mut self) -> bool {
        let live = self.live.as_mut();
        live.is_some_and(|live| !live.node.is_committing() && live.node.seal().is_ok())
    }

    pub(super) fn is_up(&self) -> bool {
        self.live.is_some()
    }

    /// The store of its records; `None` if it is down.
    pub(super) fn keep(&self) -> Option<&Durable<MemoryDisk>> {
        Some(self.live.as_ref()?.node.keep())
    }

    /// Its node; `None` if it is down.
    pub(super) fn node(&mut self) -> Option<&mut Node<Durable<MemoryDisk>, impl Sized + use<>>> {
        Some(&mut self.live.as_mut()?.node)
    }

    /// Changes that clients posted to the domains that it leads.
    pub(super) fn posted(&self) -> Vec<PostedChanges> {
        let live = self.live.as_ref();
        live.map_or_else(Vec::new, |live| live.node.shard().server().posted())
    }

    /// Notes the objects and bytes that the server has moved as the leader of a domain. `None`: it has made the
    /// changes, or begins again.
    pub(super) fn leads(&mut self, domain: DomainId, moved: Option<Transferred>) {
        if let Some(live) = &mut self.live {
            live.node.leads(domain, moved);
        }
    }

    /// Servers that it knows.
    pub(super) fn registered_servers(&self) -> usize {
        let live = self.live.as_ref();
        live.map_or(0, |live| live.node.shard().server().registered().count())
    }

    /// All that it knows of servers.
    pub(super) fn all_registered(&self) -> Vec<ServerRecord> {
        let live = self.live.as_ref();
        let known = live.map(|live| live.node.shard().server().registered().cloned());
        known.into_iter().flatten().collect()
    }

    /// The record of a server that it knows.
    pub(super) fn registered(&self, id: ServerId) -> Option<ServerRecord> {
        let live = self.live.as_ref()?;
        let mut known = live.node.shard().server().registered();
        known.find(|record| record.id == id).cloned()
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
        let is_serving =
            live.is_some_and(|live| live.node.is_serving() && !live.node.is_draining());
        is_serving && !machine.paused
    }

    pub(super) fn root(&self) -> Arc<Configuration> {
        self.0.machines.borrow().root.clone()
    }

    // ---- requests ----

    pub(super) fn on_request(
        &self,
        (client, server): (usize, usize),
        (call, deadline_ms): (u64, u32),
        body: Body,
    ) {
        if !self.is_up(server) {
            return;
        }
        match codec::decode_request(&body.body, body.payload) {
            Ok(Request::Status) if self.is_for_another(call, server) => {
                self.send_reply((client, server), call, Err(Refusal::WrongServer));
            }
            Ok(request) => {
                let subject = self.subject(&request);
                let at = match &request {
                    Request::Configured { configuration, .. } => Some(*configuration),
                    _ => None,
                };
                let now = self.clock(self.caller_of(server));
                let job = Job::Request {
                    request,
                    caller: Caller {
                        client,
                        call,
                        at,
                        subject,
                    },
                    deadline: (deadline_ms != NO_DEADLINE)
                        .then(|| now.plus(Duration::from_millis(deadline_ms.into()))),
                };
                self.take(server, job);
            }
            Err(error) => self.violate(format!("codec: a request cannot be read: {error}")),
        }
    }

    pub(super) fn on_note(&self, server: usize, body: &Body) {
        if !self.is_up(server) {
            return;
        }
        match codec::decode_note(&body.body, Vec::new()) {
            Ok(note) => self.take(server, Job::Note(note)),
            Err(error) => self.violate(format!("codec: a note cannot be read: {error}")),
        }
    }

    fn take(&self, server: usize, job: Job<Caller>) {
        if let Some(live) = &mut self.0.machines.borrow_mut().list[server].live {
            live.node.push(job);
        }
        self.turn(server);
    }

    /// The subject of the request. Shows the invariants the elements in the request.
    fn subject(&self, request: &Request) -> Subject {
        let Request::Configured {
            configuration,
            body,
            ..
        } = request
        else {
            return Subject::Other;
        };
        let key = *configuration;
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
                    let version = match access {
                        Access::Put { tag, .. }
                        | Access::Keep { tag, .. }
                        | Access::Adopt(tag)
                        | Access::Fetch { tag, .. } => Some(*tag),
                        Access::Query { .. }
                        | Access::Rank { .. }
                        | Access::Accept(_)
                        | Access::Fence { .. }
                        | Access::Finalize { .. }
                        | Access::Drop(_) => None,
                    };
                    let brought = match access {
                        Access::Put { tag, element, .. } | Access::Keep { tag, element } => {
                            Some((*tag, element))
                        }
                        Access::Accept(it) => Some(it.tag).zip(it.element.as_ref()),
                        _ => None,
                    };
                    if let Some((tag, element)) = brought {
                        let submitted = Observation::Submitted {
                            object,
                            tag,
                            element,
                        };
                        self.observe(&machines, &submitted);
                    }
                    about.push(About {
                        object,
                        version,
                        adopts: matches!(access, Access::Adopt(_)),
                    });
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

    /// Handles received requests, batch by batch; while a batch is being written, those that need not wait for it.
    fn turn(&self, server: usize) {
        let is_ready = |machine: &Machine| {
            let live = machine.live.as_ref();
            live.is_some_and(|live| live.node.is_ready()) && !machine.paused
        };
        while is_ready(&self.0.machines.borrow().list[server]) {
            let now = self.clock(self.caller_of(server));
            let turned = self.act(server, |node, observer| node.turn(now, observer));
            match turned {
                Ok(turn) => self.carry_out(server, turn),
                Err(error) => self.broken(server, &error),
            }
        }
    }

    /// Lets a node that is up do something, and shows the invariants its steps.
    fn act<T>(
        &self,
        server: usize,
        act: impl FnOnce(
            &mut Node<Durable<MemoryDisk>, Caller>,
            &mut Observer<'_>,
        ) -> Result<T, NodeError>,
    ) -> Result<T, NodeError> {
        self.beat(server);
        let (acted, adopted) = {
            let machines = &mut *self.0.machines.borrow_mut();
            let live = machines.list[server].live.as_mut();
            let mut observer = Observer {
                truth: &mut machines.truths[server],
                watch: &mut self.0.watch.borrow_mut(),
                adopted: Vec::new(),
            };
            let acted = act(&mut live.expect("only what is up acts").node, &mut observer);
            (acted, observer.adopted)
        };
        self.show_adopted(&adopted);
        acted
    }

    /// The store of a server cannot go on: with a disk that works that is a fault of the store.
    fn broken(&self, server: usize, error: &NodeError) {
        let sentence = format!("store: server {server} cannot go on: {error}");
        let is_off = self.0.machines.borrow().list[server].platter.is_broken();
        self.remark(&sentence);
        if !is_off {
            self.violate(sentence);
        }
        self.lose_power(server);
    }

    // ---- commits ----

    /// Sends the replies, and has the commit written.
    fn carry_out(&self, server: usize, turn: Turn<Durable<MemoryDisk>, Caller>) {
        let commit = {
            let machines = &mut *self.0.machines.borrow_mut();
            let machine = &mut machines.list[server];
            if turn.released.posted {
                machine.posted.set();
            }
            let live = machine.live.as_mut().expect("only what is up commits");
            let is_to_write = turn.commit.is_some();
            if is_to_write {
                live.commit = turn.commit;
            } else if !live.node.is_committing() {
                // Nothing to write: at most records that go.
                machines.truths[server].committed();
            }
            is_to_write.then_some((machine.life, machines.commit_us))
        };
        if let Some((life, (low, high))) = commit {
            let mut time = Duration::from_micros(self.random().between(low, high));
            if self.strikes(Fault::SlowDisk) {
                time += Duration::from_millis(self.random().between(5, 150));
            }
            self.at(time, Happening::Commit(server, life));
        }
        self.learn(self.caller_of(server), turn.released.met);
        self.send_notes(server, turn.released.sends);
        let may_answer = self.may_answer(server);
        let machines = self.0.machines.borrow();
        for (caller, reply) in turn.released.replies {
            if !may_answer && reply.is_ok() && matches!(caller.subject, Subject::Objects(_)) {
                self.violate(format!(
                    "identity: server {server} answers for objects after it stood still and a copy of it was confirmed"
                ));
            }
            self.show(&machines, server, &caller, &reply);
            let encoded = reply.map(|reply| codec::encode_reply(&reply));
            self.send_reply((caller.client, server), caller.call, encoded);
        }
    }

    /// The batch is written, or the attempt is the end of the server.
    pub(super) fn finish_commit(&self, server: usize, life: u64) {
        self.beat(server);
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
            let written = live.node.committed(commit.run());
            if written.is_ok() {
                machines.truths[server].committed();
            }
            written
        };
        self.record([3, server as u64, u64::from(written.is_ok()), 0], || {
            let outcome = written.as_ref().map(|_| ());
            format!("server {server} commits: {outcome:?}")
        });
        match written {
            Err(_) => self.lose_power(server),
            Ok(_) if self.strikes(Fault::CrashBeforeReply) => self.kill(server),
            Ok(turn) => {
                self.carry_out(server, turn);
                self.turn(server);
            }
        }
    }
}
