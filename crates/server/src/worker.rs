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
use std::sync::Arc;
use std::time::{Duration, Instant};

use areo_core::instant::Instant as CoreInstant;
use areo_core::message::{Note, Refusal, Reply, Request, ServerStatus};
use areo_core::server::record::{ElementHeader, Step};
use areo_core::shard::{Shard, writes};
use areo_store::disk::DiskFile;
use areo_store::{Commit, CommitError, StepOutcome};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, spawn_local};
use tracing::Span;

use crate::caller::{Caller, Watched};
use crate::error::ServeError;
use crate::metrics::Metrics;
use room::{Room, footprint};

mod keep;
mod room;

pub(crate) use keep::Keep;

/// A turn takes no further request once its records take so many bytes, beside what the shard owes.
const BATCH_BYTES: u64 = 32 << 20;
/// Set aside in every turn for what no request accounts for: floors, descriptors.
const SLACK_BYTES: u64 = 64 << 10;
/// How often the store is looked after.
const UPKEEP_PERIOD: Duration = Duration::from_millis(200);
/// Pieces of housekeeping, of about 1 MiB each, in one go.
const UPKEEP_STEPS: usize = 4;
/// Bytes that are verified on disk in each period.
const SCRUB_BYTES: u64 = 256 << 10;

/// What came in.
enum Job {
    Request {
        request: Request,
        caller: Caller,
        deadline: Option<Instant>,
    },
    Note(Note),
}

/// Whether the shard's batch is part of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// It is, with the replies that wait for it.
    Closes,
    /// The store commits what it does for itself: nobody waits, or there is no room for what the shard asks for.
    Open,
}

/// A shard with its store and its inbox. Belongs to one thread.
pub(crate) struct Worker {
    shard: RefCell<Shard<Caller>>,
    keep: RefCell<Option<Keep>>,
    inbox: RefCell<Vec<Job>>,
    /// Of the requests since the last commit, those of operations that somebody watches.
    watched: RefCell<Watched>,
    /// Requests of the batch.
    requests: Cell<usize>,
    metrics: Arc<Metrics>,
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
    pub(crate) fn new(shard: Shard<Caller>, keep: Keep, metrics: Arc<Metrics>) -> Rc<Worker> {
        Rc::new(Worker {
            shard: RefCell::new(shard),
            keep: RefCell::new(Some(keep)),
            inbox: RefCell::default(),
            watched: RefCell::default(),
            requests: Cell::new(0),
            metrics,
            arrived: Cell::new(None),
            committing: Cell::new(false),
            commits: Cell::new(0),
            draining: Cell::new(false),
            started: Instant::now(),
            failure: RefCell::default(),
            changed: Notify::new(),
        })
    }

    /// When what comes now has come: the clock is read once for all that comes between two turns.
    pub(crate) fn arrival(&self) -> Instant {
        let arrived = self.arrived.get().unwrap_or_else(Instant::now);
        self.arrived.set(Some(arrived));
        arrived
    }

    /// Takes a request; it is handled in the next turn.
    pub(crate) fn request(&self, request: Request, caller: Caller, remaining: Option<Duration>) {
        let deadline = remaining.map(|remaining| self.arrival() + remaining);
        self.inbox.borrow_mut().push(Job::Request {
            request,
            caller,
            deadline,
        });
    }

    /// How the server is, once what came before is answered; and how many requests wait. `None`: it is stopping.
    pub(crate) async fn status(self: &Rc<Self>) -> Option<(ServerStatus, usize)> {
        let waiting = self.inbox.borrow().len();
        let (caller, answer) = Caller::admin();
        self.request(Request::Status, caller, None);
        self.turn();
        match answer.await {
            Ok(Reply::Status(status)) => Some((status, waiting)),
            _ => None,
        }
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
            let Some(batch) = self.receive() else { return };
            if !self.commit(batch) {
                return;
            }
        }
    }

    /// Hands the inbox to the shard, up to the size of a batch. `None`: the server must stop.
    fn receive(&self) -> Option<Batch> {
        let jobs = std::mem::take(&mut *self.inbox.borrow_mut());
        self.arrived.set(None);
        let started = Instant::now();
        let owed = self.owed_bytes();
        let (now, mut batch_bytes) = (self.since_start(started), owed + SLACK_BYTES);
        let mut batch = Batch::Open;
        let mut jobs = jobs.into_iter();
        // However much is owed after a start, every turn takes something.
        while batch_bytes < owed + BATCH_BYTES {
            let Some(mut job) = jobs.next() else { break };
            let adopted = self.adopt(&mut job);
            let bytes = footprint(&job);
            let room = self.room(&job, batch_bytes + bytes, owed)?;
            if room == Room::Enough {
                batch_bytes += bytes;
                self.metrics.adopted(adopted);
            }
            if room != Room::None {
                batch = Batch::Closes;
            }
            self.hand_over(now, started, job, room);
        }
        let mut inbox = self.inbox.borrow_mut();
        let later: Vec<Job> = jobs.chain(inbox.drain(..)).collect();
        *inbox = later;
        Some(batch)
    }

    /// What the job is to adopt is put by it, and takes room like any other put. How many elements that are.
    fn adopt(&self, job: &mut Job) -> usize {
        match (job, self.keep.borrow().as_ref()) {
            (Job::Request { request, .. }, Some(keep)) => self.shard.borrow().adopt(request, keep),
            _ => 0,
        }
    }

    fn hand_over(&self, now: CoreInstant, started: Instant, job: Job, room: Room) {
        let mut shard = self.shard.borrow_mut();
        match job {
            Job::Note(note) if room == Room::Enough => shard.note(now, note),
            Job::Note(_) => {}
            Job::Request {
                request,
                caller,
                deadline,
            } => {
                let late = deadline.is_some_and(|deadline| deadline <= started);
                let fits = match room {
                    Room::Enough => true,
                    Room::ForReads => !writes(&request),
                    Room::None => false,
                };
                let refusal = match (self.draining.get(), late, fits) {
                    (true, ..) => Some(Refusal::Draining),
                    (_, true, _) => Some(Refusal::DeadlinePassed),
                    (.., false) => Some(Refusal::Full),
                    (false, false, true) => None,
                };
                if let Some(refusal) = refusal {
                    return caller.answer(&self.metrics, started, Err(refusal));
                }
                self.watched.borrow_mut().push(caller.span());
                self.requests.set(self.requests.get() + 1);
                shard.receive(now, caller, request);
            }
        }
    }

    /// Carries the batch to the disk; its replies go out when it is durable. False: the server must stop.
    fn commit(self: &Rc<Self>, batch: Batch) -> bool {
        let steps: Vec<Step> = match batch {
            Batch::Closes => self.shard.borrow_mut().close(),
            Batch::Open => Vec::new(),
        };
        // What was watched of a batch that stays open waits with it.
        let watched = match batch {
            Batch::Closes => self.watched.take(),
            Batch::Open => Watched::default(),
        };
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
            Ok(None) => self.release(batch),
            Ok(Some(commit)) => {
                self.committing.set(true);
                self.commits.set(self.commits.get() + 1);
                spawn_local(Rc::clone(self).write(commit, batch, watched.sync()));
            }
            Err(error) => {
                self.fail(ServeError::Commit(error));
                return false;
            }
        }
        true
    }

    async fn write(self: Rc<Self>, commit: Commit<DiskFile>, batch: Batch, syncing: Vec<Span>) {
        let begun = Instant::now();
        let written = spawn_blocking(move || commit.run()).await;
        drop(syncing);
        self.metrics.committed(self.requests.get(), begun.elapsed());
        match written.expect("writing does not panic, and is not cancelled") {
            Ok(committed) => {
                if let Some(Keep::Disk(records)) = self.keep.borrow_mut().as_mut() {
                    records.finish_commit(committed);
                }
            }
            // Nothing that may not be durable is ever shown: the process ends (`[X-10 durable-replies]`).
            Err(error) => return self.fail(ServeError::Commit(error)),
        }
        self.release(batch);
        self.committing.set(false);
        self.changed.notify_waiters();
        self.turn();
    }

    fn release(&self, batch: Batch) {
        if batch == Batch::Open {
            return;
        }
        let keep = self.keep.borrow();
        let Some(keep) = keep.as_ref() else { return };
        let replies = self.shard.borrow_mut().release(keep);
        self.requests.set(0);
        let now = Instant::now();
        for (caller, mut reply) in replies {
            if let Ok(Reply::Status(status)) = &mut reply {
                status.stored_bytes = keep.stored_bytes();
            }
            caller.answer(&self.metrics, now, reply);
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
            match self.tick_and_step() {
                Some(true) => wait = Duration::from_millis(1),
                Some(false) => self.scrub(),
                None => return,
            }
            let batch = match self.has_room_for_owed(self.owed_bytes()) {
                Some(true) => Batch::Closes,
                Some(false) => Batch::Open,
                None => return,
            };
            if !self.commit(batch) {
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

    /// Housekeeping of the shard, if there is room for what it may ask for, and of the store; true if there is more.
    /// `None`: the server must stop.
    fn tick_and_step(&self) -> Option<bool> {
        let now = self.since_start(Instant::now());
        let is_due = self.shard.borrow().is_due(now);
        if is_due && self.has_room_for_owed(self.owed_bytes() + SLACK_BYTES)? {
            self.shard.borrow_mut().tick(now);
        }
        match self.step() {
            Ok(more) => Some(more),
            Err(error) => {
                self.fail(ServeError::Step(error));
                None
            }
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
            self.metrics.corrupted.inc();
            shard.damaged(&header);
        }
    }

    fn fail(&self, error: ServeError) {
        let error = match self.keep.borrow().as_ref() {
            Some(Keep::Disk(records)) => error.with_first(records.failure()),
            _ => error,
        };
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

#[cfg(test)]
mod tests;
