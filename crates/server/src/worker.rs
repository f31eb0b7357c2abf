//! The node of this process: requests from connections in, commits written by another thread, replies out.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use areo_core::config::{ConfigurationId, ServerId};
use areo_core::consensus::mailbox::PostedChanges;
use areo_core::instant::Instant as CoreInstant;
use areo_core::manager::leading::LeaderHost;
use areo_core::manager::repair::{RepairHost, Round};
use areo_core::message::{Note, Reply, Request, ServerRecord, ServerStatus};
use areo_core::object::{DomainId, Name};
use areo_core::reconfig::transfer::Progress;
use areo_core::server::record::Step;
use areo_core::shard::{ReleasedBatch, Shard};
use areo_core::tag::Tag;
use areo_net::network::Network;
use areo_node::{Job, Node, NodeError, ScrubProgress, Sizes, Turn, UPKEEP_PERIOD, Watch};
use areo_store::disk::DiskFile;
use areo_store::{Commit, FileDisk};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, spawn_local};
use tracing::Span;

use crate::caller::{Caller, WatchedSpans};
use crate::identity::Identity;
use crate::metrics::{DiskWatch, Metrics};

/// The records of a server, on a disk.
pub(crate) type Durable = areo_node::Durable<FileDisk>;

/// The amounts of work in one step.
const SIZES: Sizes = Sizes {
    batch: 32 << 20,
    slack: 64 << 10,
    scrub: 0,
};

/// The measures of a batch for metrics and traces.
#[derive(Default)]
struct Batch {
    /// Number of its requests.
    requests: usize,
    /// The operations in it that are watched.
    watched: WatchedSpans,
}

/// Metrics and traces, which observe the node.
struct Observer<'a> {
    metrics: &'a Metrics,
    batch: &'a mut Batch,
    /// Ends when the store has the steps.
    appending: Vec<Span>,
}

impl Watch<Caller> for Observer<'_> {
    fn adopted(&mut self, _caller: &Caller, _request: &Request, count: usize) {
        self.metrics.adopted(count);
    }

    fn received(&mut self, caller: &Caller) {
        self.batch.requests += 1;
        self.batch.watched.push(caller.span());
    }

    fn closed(&mut self, steps: &[Step]) {
        // A batch of queries hands nothing over.
        if !steps.is_empty() {
            self.appending = self.batch.watched.append();
        }
    }

    fn applied(&mut self) {
        self.appending.clear();
    }

    fn damaged(&mut self, version: Tag) {
        tracing::error!(%version, "an element is damaged: abstaining for its object until it is repaired");
        self.metrics.corrupted.inc();
    }

    fn disk_full(&mut self, is_full: bool) {
        if is_full {
            tracing::warn!(
                "disk full: writes are refused, reads are answered; make room, delete objects, or move domains"
            );
        } else {
            tracing::info!("the disk has room again: writes are taken");
        }
    }
}

impl RepairHost for Worker {
    /// It was at work while it turned, or waited for the disk.
    fn busy_percent(&self) -> u8 {
        let now = Instant::now();
        let (worked, since) = self.worked.replace((Duration::ZERO, now));
        let passed = now.duration_since(since).max(Duration::from_millis(1));
        let percent = worked.as_micros() * 100 / passed.as_micros();
        u8::try_from(percent).unwrap_or(100).min(100)
    }

    fn distrust(&self, key: ConfigurationId, name: &Name, tag: Tag) {
        tracing::error!(version = %tag, "an element is not of the value that the others make: taking it for damaged");
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.distrust(key, name, tag);
        }
    }

    fn drop_tombstones(&self, key: ConfigurationId, blocks: &[Name]) {
        if let Some(node) = self.node.borrow_mut().as_mut() {
            let dropped = node.drop_tombstones(key, blocks).len();
            tracing::debug!(dropped, "tombstones of blocks that no member has any more");
        }
    }
}

impl LeaderHost for Worker {
    fn posted(&self) -> Vec<PostedChanges> {
        let node = self.node.borrow();
        node.as_ref()
            .map_or_else(Vec::new, |node| node.shard().server().posted())
    }

    fn progress(&self, domain: DomainId, step: Option<Progress>) {
        tracing::debug!(domain = format!("{:032x}", domain.0), ?step, "leading");
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.leads(domain, step.map(Progress::moved));
        }
    }
}

/// A node on its thread.
pub(crate) struct Worker {
    /// `None` once it is closed.
    node: RefCell<Option<Node<Durable, Caller>>>,
    batch: RefCell<Batch>,
    metrics: Arc<Metrics>,
    /// The cluster, this server, and the connections to the others, whose addresses follow the records of the node.
    others: OnceCell<(u128, ServerId, Network)>,
    disk: OnceCell<Rc<DiskWatch>>,
    /// The arrival of the first request since the last turn.
    arrived: Cell<Option<Instant>>,
    started: Instant,
    /// Time at work, in turns and commits, and when that was taken last.
    worked: Cell<(Duration, Instant)>,
    /// The begin of the commit under way.
    syncing: Cell<Option<Instant>>,
    /// Why the server must stop.
    failure: RefCell<Option<NodeError>>,
    has_failed: Cell<bool>,
    /// Gets a failure, and the end of each commit.
    changed: Notify,
    /// Gets changes that were posted where the server leads.
    posted: Notify,
    /// Gets the end of its serving, until it serves again.
    suspended: Notify,
}

impl Worker {
    /// A worker that verifies so many bytes of its records in a second, from where an earlier process was.
    pub(crate) fn new(
        shard: Shard<Caller>,
        keep: Durable,
        metrics: Arc<Metrics>,
        (scrub_bytes_per_s, scrubbed): (u64, Option<ScrubProgress>),
    ) -> Rc<Worker> {
        let periods_per_s = (1000 / UPKEEP_PERIOD.as_millis()) as u64;
        let sizes = Sizes {
            scrub: scrub_bytes_per_s.div_ceil(periods_per_s),
            ..SIZES
        };
        let mut node = Node::new(shard, keep, sizes);
        match scrubbed {
            Some(progress) => node.resume_scrub(CoreInstant::default(), progress),
            // Servers of a new cluster verify different records first.
            None => node.scrub_from(getrandom::u64().expect("the operating system gives entropy")),
        }
        Rc::new(Worker {
            node: RefCell::new(Some(node)),
            batch: RefCell::default(),
            metrics,
            others: OnceCell::new(),
            disk: OnceCell::new(),
            arrived: Cell::new(None),
            started: Instant::now(),
            worked: Cell::new((Duration::ZERO, Instant::now())),
            syncing: Cell::new(None),
            failure: RefCell::default(),
            has_failed: Cell::new(false),
            changed: Notify::new(),
            posted: Notify::new(),
            suspended: Notify::new(),
        })
    }

    /// The arrival time of the next request: the clock is read once for all requests between two turns.
    pub(crate) fn arrival(&self) -> Instant {
        let arrived = self.arrived.get().unwrap_or_else(Instant::now);
        self.arrived.set(Some(arrived));
        arrived
    }

    /// Takes a request; it is handled in the next turn.
    pub(crate) fn request(&self, request: Request, caller: Caller, remaining: Option<Duration>) {
        let deadline = remaining.map(|remaining| self.since_start(self.arrival() + remaining));
        // A server that has stopped drops what comes.
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.push(Job::Request {
                request,
                caller,
                deadline,
            });
        }
    }

    /// Takes a note; it is handled in the next turn.
    pub(crate) fn note(&self, note: Note) {
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.push(Job::Note(note));
        }
    }

    /// The status of the server, once earlier requests are answered, and the number of waiting requests. `None`: it is stopping.
    pub(crate) async fn status(self: &Rc<Self>) -> Option<(ServerStatus, usize)> {
        let waiting = self.node.borrow().as_ref().map(Node::waiting)?;
        let (caller, answer) = Caller::admin();
        self.request(Request::Status, caller, None);
        self.turn();
        match answer.await {
            Ok(Reply::Status(status)) => Some((*status, waiting)),
            _ => None,
        }
    }

    /// Connects it to the other servers of the cluster.
    pub(crate) fn reach(&self, identity: &Identity, network: Network) {
        let others = (identity.cluster, identity.server, network);
        assert!(self.others.set(others).is_ok(), "there is one network");
    }

    /// True if this server has the other one among the registered servers.
    pub(crate) fn knows(&self, server: ServerId) -> bool {
        self.has_forgotten(server) == Some(false)
    }

    /// The name of a registered server; the beginning of its id if this server has none.
    pub(crate) fn name_of(&self, server: ServerId) -> String {
        let node = self.node.borrow();
        let shard = node.as_ref().map(Node::shard);
        let record = shard.and_then(|shard| shard.server().record_of(server));
        record.map_or_else(
            || server.to_string()[..8].into(),
            |record| record.name.clone(),
        )
    }

    /// True if this server has it that the other one is forgotten; `None`: it does not know the other one.
    pub(crate) fn has_forgotten(&self, server: ServerId) -> Option<bool> {
        let node = self.node.borrow();
        let record = node.as_ref()?.shard().server().record_of(server)?;
        Some(record.is_forgotten())
    }

    /// It has gone over its objects once more.
    pub(crate) fn gone_over(&self, round: &Round) {
        self.metrics.gone_over(round);
        let now = self.since_start(Instant::now());
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.gone_over(now, &round.standings(), round.is_whole);
        }
    }

    /// Lets it refuse new requests.
    pub(crate) fn drain(&self) {
        if let Some(node) = self.node.borrow_mut().as_mut() {
            node.drain();
        }
    }

    /// Waits until changes are posted where the server leads.
    pub(crate) async fn posted_to(&self) {
        self.posted.notified().await;
    }

    fn work(&self, time: Duration) {
        let (worked, since) = self.worked.get();
        self.worked.set((worked + time, since));
    }

    /// Bytes that were verified since the start, and how old the oldest verification of a record is; `None`: not all were verified.
    pub(crate) fn scrubbed(&self) -> (u64, Option<Duration>) {
        let now = self.since_start(Instant::now());
        let node = self.node.borrow();
        node.as_ref().map_or((0, None), |node| {
            (node.scrubbing().bytes, node.scrubbing().oldest(now))
        })
    }

    /// The progress of verification. `None`: there is no disk, or the worker is closed.
    pub(crate) fn scrub_progress(&self) -> Option<ScrubProgress> {
        let now = self.since_start(Instant::now());
        self.node.borrow().as_ref()?.scrub_progress(now)
    }

    fn since_start(&self, now: Instant) -> CoreInstant {
        let nanos = now.saturating_duration_since(self.started).as_nanos();
        CoreInstant(u64::try_from(nanos).expect("585 years of uptime do not happen"))
    }

    /// Turns until nothing waits, or all that waits joins the batch after the commit under way.
    pub(crate) fn turn(self: &Rc<Self>) {
        while self.node.borrow().as_ref().is_some_and(Node::is_ready) && !self.has_failed.get() {
            self.arrived.set(None);
            // The time of a commit counts as a whole.
            let is_beside = self.is_committing();
            let begun = Instant::now();
            let now = self.since_start(begun);
            let turned = self.act(|node, observer| node.turn(now, observer));
            if let Some(turn) = turned {
                self.carry_out(turn);
            }
            if !is_beside {
                self.work(begun.elapsed());
            }
        }
    }

    /// Lets the node do something. `None`: the server must stop, or has.
    fn act<T>(
        &self,
        act: impl FnOnce(&mut Node<Durable, Caller>, &mut Observer<'_>) -> Result<T, NodeError>,
    ) -> Option<T> {
        self.beat();
        let mut observer = Observer {
            metrics: &self.metrics,
            batch: &mut self.batch.borrow_mut(),
            appending: Vec::new(),
        };
        let acted = act(self.node.borrow_mut().as_mut()?, &mut observer);
        if !self.is_serving() {
            self.suspended.notify_one();
        }
        acted.map_err(|error| self.fail(error)).ok()
    }

    /// Sends the replies, and has the commit written.
    fn carry_out(self: &Rc<Self>, turn: Turn<Durable, Caller>) {
        let now = Instant::now();
        let ReleasedBatch {
            replies,
            sends,
            met,
            posted,
        } = turn.released;
        if posted {
            self.posted.notify_one();
        }
        for (caller, reply) in replies {
            caller.answer(&self.metrics, now, &reply);
        }
        self.say(self.since_start(now), sends, met);
        if let Some(commit) = turn.commit {
            let syncing = self.batch.borrow().watched.sync();
            spawn_local(Rc::clone(self).write(commit, syncing));
        } else if !self.is_committing() {
            self.batch.take();
        }
    }

    /// Sends these notes, and earlier ones whose receiver is connected by now. The servers that it has met are to be found from now on.
    fn say(&self, now: CoreInstant, sends: Vec<(ServerId, Note)>, met: Vec<ServerRecord>) {
        let Some((cluster, own, network)) = self.others.get() else {
            return;
        };
        if !met.is_empty() {
            network.learn(*cluster, met.into_iter().filter(|record| record.id != *own));
        }
        if let Some(node) = self.node.borrow_mut().as_mut() {
            let mut notes = node.outgoing(now, sends);
            notes.retain(|it| !network.tell(it.to, &it.note));
            node.keep_unsent(now, notes);
        }
    }

    async fn write(self: Rc<Self>, commit: Commit<DiskFile>, syncing: Vec<Span>) {
        let begun = Instant::now();
        self.syncing.set(Some(begun));
        let written = spawn_blocking(move || commit.run()).await;
        self.syncing.set(None);
        drop(syncing);
        let batch = self.batch.take();
        self.metrics.committed(batch.requests, begun.elapsed());
        self.work(begun.elapsed());
        let written = written.expect("writing does not panic, and is not cancelled");
        if let Some(turn) = self.act(|node, _| node.committed(written)) {
            self.carry_out(turn);
            self.turn();
        }
        self.changed.notify_waiters();
    }

    /// Looks after the node for as long as it runs.
    pub(crate) async fn upkeep(self: Rc<Self>) {
        let mut wait = UPKEEP_PERIOD;
        loop {
            tokio::time::sleep(wait).await;
            let now = self.since_start(Instant::now());
            let Some(upkeep) = self.act(|node, observer| node.upkeep(now, observer)) else {
                return;
            };
            wait = upkeep.wait;
            if let Some(turn) = upkeep.turn {
                self.carry_out(turn);
            }
        }
    }

    fn fail(&self, error: NodeError) {
        tracing::error!(%error, "stopping");
        self.has_failed.set(true);
        self.failure.borrow_mut().get_or_insert(error);
        self.changed.notify_waiters();
    }

    /// Returns when the server must stop by itself.
    pub(crate) async fn failed(&self) -> NodeError {
        loop {
            let changed = self.changed.notified();
            if let Some(error) = self.failure.borrow_mut().take() {
                return error;
            }
            changed.await;
        }
    }

    /// The age of the commit under way.
    pub(crate) fn syncing(&self) -> Option<Duration> {
        self.syncing.get().map(|begun| begun.elapsed())
    }

    fn is_committing(&self) -> bool {
        self.node.borrow().as_ref().is_some_and(Node::is_committing)
    }

    /// Waits for the commit under way, then closes the store so that the next opening need not search its end.
    pub(crate) async fn close(&self) {
        loop {
            let changed = self.changed.notified();
            // After a failure no commit ends.
            if !self.is_committing() || self.has_failed.get() {
                break;
            }
            changed.await;
        }
        if !self.is_committing()
            && let Some(node) = self.node.take()
            && let Err(error) = node.into_keep().close()
        {
            tracing::warn!(%error, "the store was not closed tidily; opening it again takes longer");
        }
    }
}

mod heard;
mod pulse;
#[cfg(test)]
pub(crate) mod tests;
mod view;
