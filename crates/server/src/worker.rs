//! The shard at work: requests in, one turn for all that came, one commit for all that changed, replies out.
//!
//! ```text
//!  connections ──requests──► inbox ──► turn: shard.receive ... close ──► store ──► commit ──► release ──► replies
//!                              ▲                                                     │
//!                              └──────────── what comes meanwhile waits here ◄───────┘
//! ```
//!
//! A batch that changed nothing durable is released at once, on the task that read its last request. While a commit is
//! being written, by another thread, requests gather for the next one: that is the group commit.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_core::config::Configuration;
use areo_core::element::Element;
use areo_core::instant::Instant as CoreInstant;
use areo_core::message::{Access, Body, CellRequest, Note, Refusal, Reply, Request, ServerRecord};
use areo_core::pointer::Pointer;
use areo_core::server::record::ElementHeader;
use areo_core::shard::{Heap, Lost, Shard};
use areo_store::records::{MemoryRecords, Records, element_footprint, small_footprint};
use areo_store::{Commit, CommitError, FileDisk, ReserveError, StepOutcome};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, spawn_local};
use tracing::Span;

use crate::caller::{Caller, Watched};
use crate::error::ServeError;

/// A turn takes no further request once its records take so many bytes.
const BATCH_BYTES: u64 = 32 << 20;
/// Set aside in every turn for what no request accounts for: floors, descriptors.
const SLACK_BYTES: u64 = 64 << 10;
/// How often the store is looked after.
const UPKEEP_PERIOD: Duration = Duration::from_millis(200);
/// Pieces of housekeeping, of about 1 MiB each, in one go.
const UPKEEP_STEPS: usize = 4;
/// Bytes that are verified on disk in each period.
const SCRUB_BYTES: u64 = 256 << 10;

/// Where the records are.
pub(crate) enum Keep {
    Disk(Box<Records<FileDisk>>),
    Memory(MemoryRecords),
}

impl Heap for Keep {
    fn element(&self, handle: areo_core::element::Handle, payload: bool) -> Result<Element, Lost> {
        match self {
            Keep::Disk(records) => records.element(handle, payload),
            Keep::Memory(records) => records.element(handle, payload),
        }
    }
}

/// What came in.
enum Job {
    Request {
        request: Request,
        caller: Caller,
        deadline: Option<Instant>,
    },
    Note(Note),
}

/// A shard with its store and its inbox. Belongs to one thread.
pub(crate) struct Worker {
    shard: RefCell<Shard<Caller>>,
    keep: RefCell<Option<Keep>>,
    inbox: RefCell<Vec<Job>>,
    /// Of the requests since the last commit, those of operations that somebody watches.
    watched: RefCell<Watched>,
    /// When the first request since the last turn came.
    arrived: Cell<Option<Instant>>,
    committing: Cell<bool>,
    /// Commits so far.
    commits: Cell<u64>,
    draining: Cell<bool>,
    started: Instant,
    /// Why the server must stop.
    failure: RefCell<Option<ServeError>>,
    /// Told of a failure, and of the end of each commit.
    changed: Notify,
}

impl Worker {
    pub(crate) fn new(shard: Shard<Caller>, keep: Keep) -> Rc<Worker> {
        Rc::new(Worker {
            shard: RefCell::new(shard),
            keep: RefCell::new(Some(keep)),
            inbox: RefCell::default(),
            watched: RefCell::default(),
            arrived: Cell::new(None),
            committing: Cell::new(false),
            commits: Cell::new(0),
            draining: Cell::new(false),
            started: Instant::now(),
            failure: RefCell::default(),
            changed: Notify::new(),
        })
    }

    /// Takes a request; it is handled in the next turn.
    pub(crate) fn request(&self, request: Request, caller: Caller, remaining: Option<Duration>) {
        // The clock is read once for all that comes between two turns.
        let arrived = self.arrived.get().unwrap_or_else(Instant::now);
        self.arrived.set(Some(arrived));
        let deadline = remaining.map(|remaining| arrived + remaining);
        self.inbox.borrow_mut().push(Job::Request {
            request,
            caller,
            deadline,
        });
    }

    /// Takes a note; it is handled in the next turn.
    pub(crate) fn note(&self, note: Note) {
        self.inbox.borrow_mut().push(Job::Note(note));
    }

    /// From now on it answers for objects.
    pub(crate) fn serve(&self) {
        self.shard.borrow_mut().serve();
    }

    /// From now on it refuses what is asked of it.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
    }

    fn since_start(&self, now: Instant) -> CoreInstant {
        let nanos = now.saturating_duration_since(self.started).as_nanos();
        CoreInstant(u64::try_from(nanos).expect("585 years of uptime do not happen"))
    }

    /// One turn, unless a commit is under way: then what came waits for its end.
    pub(crate) fn turn(self: &Rc<Self>) {
        while !self.committing.get() && !self.inbox.borrow().is_empty() {
            if !self.receive() || !self.commit() {
                return;
            }
        }
    }

    /// Hands the inbox to the shard, up to the size of a batch. False: the server must stop.
    fn receive(&self) -> bool {
        let jobs = std::mem::take(&mut *self.inbox.borrow_mut());
        self.arrived.set(None);
        let started = Instant::now();
        let (now, mut batch_bytes) = (self.since_start(started), SLACK_BYTES);
        let mut jobs = jobs.into_iter();
        while batch_bytes < BATCH_BYTES {
            let Some(job) = jobs.next() else { break };
            let bytes = footprint(&job);
            let room = self.reserve(batch_bytes + bytes);
            if matches!(room, Err(Some(_))) {
                return self.fail_with(room);
            }
            let has_room = room.is_ok();
            if has_room {
                batch_bytes += bytes;
            }
            self.hand_over(now, started, job, has_room);
        }
        let mut inbox = self.inbox.borrow_mut();
        let later: Vec<Job> = jobs.chain(inbox.drain(..)).collect();
        *inbox = later;
        true
    }

    fn hand_over(&self, now: CoreInstant, started: Instant, job: Job, has_room: bool) {
        let mut shard = self.shard.borrow_mut();
        match job {
            Job::Note(note) if has_room => shard.note(now, note),
            Job::Note(_) => {}
            Job::Request {
                request,
                caller,
                deadline,
            } => {
                let late = deadline.is_some_and(|deadline| deadline <= started);
                let refusal = match (self.draining.get(), late, has_room || !writes(&request)) {
                    (true, ..) => Some(Refusal::Draining),
                    (_, true, _) => Some(Refusal::DeadlinePassed),
                    (.., false) => Some(Refusal::Full),
                    (false, false, true) => None,
                };
                if let Some(refusal) = refusal {
                    return caller.answer(Err(refusal));
                }
                self.watched.borrow_mut().push(caller.span());
                shard.receive(now, caller, request);
            }
        }
    }

    /// Makes room on the disk. `Err(None)`: there is none; `Err(Some)`: the store cannot go on.
    fn reserve(&self, bytes: u64) -> Result<(), Option<ServeError>> {
        let mut keep = self.keep.borrow_mut();
        let Some(Keep::Disk(records)) = keep.as_mut() else {
            return Ok(());
        };
        records.reserve(bytes).map_err(|error| match error {
            ReserveError::Full { .. } => None,
            ReserveError::Io { source } => Some(ServeError::System {
                operation: "making room for records",
                source,
            }),
            ReserveError::Poisoned => Some(ServeError::Commit(CommitError::Poisoned)),
        })
    }

    fn fail_with(&self, room: Result<(), Option<ServeError>>) -> bool {
        if let Err(Some(error)) = room {
            self.fail(error);
        }
        false
    }

    /// Closes the batch and carries it to the disk; its replies go out when it is durable. False: the server must stop.
    fn commit(self: &Rc<Self>) -> bool {
        let steps = self.shard.borrow_mut().close();
        let watched = self.watched.take();
        // A batch of queries hands nothing over.
        let appending = (!steps.is_empty()).then(|| watched.append());
        let commit = match self.keep.borrow_mut().as_mut() {
            Some(Keep::Disk(records)) => {
                records.apply(steps);
                records.begin_commit()
            }
            Some(Keep::Memory(records)) => {
                records.apply(steps);
                Ok(None)
            }
            None => return false,
        };
        drop(appending);
        match commit {
            Ok(None) => self.release(),
            Ok(Some(commit)) => {
                self.committing.set(true);
                self.commits.set(self.commits.get() + 1);
                spawn_local(Rc::clone(self).write(commit, watched.sync()));
            }
            Err(error) => {
                self.fail(ServeError::Commit(error));
                return false;
            }
        }
        true
    }

    async fn write(self: Rc<Self>, commit: Commit<areo_store::disk::DiskFile>, syncing: Vec<Span>) {
        let written = spawn_blocking(move || commit.run()).await;
        drop(syncing);
        match written.expect("writing does not panic, and is not cancelled") {
            Ok(committed) => {
                if let Some(Keep::Disk(records)) = self.keep.borrow_mut().as_mut() {
                    records.finish_commit(committed);
                }
            }
            // Nothing that may not be durable is ever shown: the process ends (`[X-10]`).
            Err(error) => return self.fail(ServeError::Commit(error)),
        }
        self.release();
        self.committing.set(false);
        self.changed.notify_waiters();
        self.turn();
    }

    fn release(&self) {
        let keep = self.keep.borrow();
        let Some(keep) = keep.as_ref() else { return };
        let replies = self.shard.borrow_mut().release(keep);
        for (caller, mut reply) in replies {
            if let Ok(Reply::Status(status)) = &mut reply {
                status.stored_bytes = match keep {
                    Keep::Disk(records) => {
                        // Space that is only set aside is not counted.
                        let usage = records.usage();
                        usage.live_bytes + usage.dead_bytes
                    }
                    Keep::Memory(records) => records.bytes(),
                };
            }
            caller.answer(reply);
        }
    }

    /// Looks after the store for as long as the server runs: lets superseded versions go, reclaims, verifies.
    pub(crate) async fn upkeep(self: Rc<Self>) {
        let (mut wait, mut idle_since) = (UPKEEP_PERIOD, 0);
        loop {
            tokio::time::sleep(wait).await;
            wait = UPKEEP_PERIOD;
            if self.committing.get() {
                continue;
            }
            let now = self.since_start(Instant::now());
            self.shard.borrow_mut().tick(now);
            match self.step() {
                Ok(true) => wait = Duration::from_millis(1),
                Ok(false) => self.scrub(),
                Err(error) => return self.fail(ServeError::Step(error)),
            }
            if !self.commit() {
                return;
            }
            let commits = self.commits.get();
            if !self.committing.get()
                && commits == idle_since
                && let Err(error) = self.seal()
            {
                return self.fail(ServeError::Commit(error));
            }
            idle_since = commits;
        }
    }

    /// Proves the last batch durable, so that rot in it is never taken for an unfinished write.
    fn seal(&self) -> Result<(), CommitError> {
        match self.keep.borrow_mut().as_mut() {
            Some(Keep::Disk(records)) => match records.seal() {
                // There is no room to say so; nothing is lost by that.
                Err(CommitError::Full) => Ok(()),
                sealed => sealed,
            },
            Some(Keep::Memory(_)) | None => Ok(()),
        }
    }

    /// A few steps of housekeeping; true if there is more.
    fn step(&self) -> Result<bool, areo_store::StepError> {
        let mut keep = self.keep.borrow_mut();
        let Some(Keep::Disk(records)) = keep.as_mut() else {
            return Ok(false);
        };
        for _ in 0..UPKEEP_STEPS {
            let (outcome, damaged) = records.step()?;
            self.damaged(damaged);
            match outcome {
                StepOutcome::Idle => return Ok(false),
                StepOutcome::CommitFirst => return Ok(true),
                StepOutcome::More | StepOutcome::Damaged(_) => {}
            }
        }
        Ok(true)
    }

    fn scrub(&self) {
        let mut keep = self.keep.borrow_mut();
        if let Some(Keep::Disk(records)) = keep.as_mut() {
            let (_, damaged) = records.scrub(SCRUB_BYTES);
            self.damaged(damaged);
        }
    }

    fn damaged(&self, headers: impl IntoIterator<Item = ElementHeader>) {
        let mut shard = self.shard.borrow_mut();
        for header in headers {
            tracing::error!(version = %header.tag, "an element is damaged: abstaining for its object until it is repaired");
            shard.damaged(&header);
        }
    }

    fn fail(&self, error: ServeError) {
        tracing::error!(%error, "stopping");
        self.failure.borrow_mut().get_or_insert(error);
        self.changed.notify_waiters();
    }

    /// Returns when the server must stop by itself.
    pub(crate) async fn failed(&self) -> ServeError {
        loop {
            let changed = self.changed.notified();
            if let Some(error) = self.failure.borrow_mut().take() {
                return error;
            }
            changed.await;
        }
    }

    /// Waits for the commit under way, then closes the store so that the next opening need not search its end.
    pub(crate) async fn close(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.committing.get() || self.failure.borrow().is_some() {
                break;
            }
            changed.await;
        }
        if let Some(Keep::Disk(records)) = self.keep.borrow_mut().take()
            && let Err(error) = records.close()
        {
            tracing::warn!(%error, "the store was not closed tidily; opening it again takes longer");
        }
    }
}

/// Whether handling the request needs room in the store.
fn writes(request: &Request) -> bool {
    match request {
        Request::Know(_) => true,
        Request::Directory | Request::Status => false,
        Request::Latest { known, .. } => known.is_some(),
        Request::Configured {
            descriptor,
            pointer,
            body,
            ..
        } => {
            descriptor.is_some()
                || pointer.is_some()
                || match body {
                    Body::Access(accesses) => accesses
                        .iter()
                        .any(|(_, access)| matches!(access, Access::Put { .. })),
                    Body::Cell { step, .. } => !matches!(step, CellRequest::Query),
                    Body::Register(_) => true,
                    Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => false,
                }
        }
    }
}

/// Space that handling the job may take in the store, in bytes, to within the slack.
fn footprint(job: &Job) -> u64 {
    match job {
        Job::Note(Note::Confirm { name, .. }) => small_footprint(name.as_bytes().len()),
        Job::Note(Note::Decided { cell, value, .. }) => small_footprint(cell.len() + value.len()),
        Job::Note(Note::Next { pointer, .. }) => pointer_footprint(Some(pointer)),
        Job::Request { request, .. } => match request {
            Request::Know(record) => record_footprint(record),
            Request::Directory | Request::Status => 0,
            Request::Latest { known, .. } => descriptor_footprint(known.as_deref()),
            Request::Configured {
                descriptor,
                pointer,
                body,
                ..
            } => {
                descriptor_footprint(descriptor.as_deref())
                    + pointer_footprint(pointer.as_ref())
                    + body_footprint(body)
            }
        },
    }
}

fn record_footprint(record: &ServerRecord) -> u64 {
    small_footprint(record.name.len() + record.address.len() + record.admin.len())
}

fn descriptor_footprint(descriptor: Option<&Configuration>) -> u64 {
    descriptor.map_or(0, |descriptor| small_footprint(descriptor.encoded().len()))
}

/// Recorded for the configuration, and for its domain.
fn pointer_footprint(pointer: Option<&Pointer>) -> u64 {
    2 * descriptor_footprint(pointer.map(|pointer| &*pointer.configuration))
}

fn body_footprint(body: &Body) -> u64 {
    match body {
        Body::Access(accesses) => accesses
            .iter()
            .map(|(name, access)| match access {
                Access::Put { element, .. } => element_footprint(
                    name.as_bytes().len(),
                    element.metadata.len(),
                    element.payload.len(),
                ),
                Access::Query { .. } | Access::Fetch { .. } => 0,
            })
            .sum(),
        Body::Cell { cell, step } => match step {
            CellRequest::Accept { value, .. } => small_footprint(cell.len() + value.len()),
            // What was accepted before is recorded again with the promise.
            CellRequest::Prepare { .. } => {
                small_footprint(cell.len() + areo_core::limits::CELL_BYTES)
            }
            CellRequest::Query => 0,
        },
        Body::Register(record) => record_footprint(record),
        Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => 0,
    }
}
