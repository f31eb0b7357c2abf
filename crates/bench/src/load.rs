//! The load generator: clients that put and get, at their own pace or at a given rate, with and without what disturbs them, and what that
//! took. What is measured configures it by a [`Plan`].
//!
//! | module | what |
//! |---|---|
//! | `keys` | which object is next |
//! | `operation` | what a client does |
//! | `counter` | one object that clients count up |
//! | `worker` | one client: its operations, one after the other |
//! | `history` | what clients did and saw, where it is recorded |
//! | `tally` | what was measured |

pub mod counter;
mod history;
mod keys;
mod operation;
mod tally;
mod worker;

pub use counter::CounterReport;
pub use history::History;
pub use keys::Popularity;
pub use operation::Operation;
pub(crate) use tally::{Counters, Latencies, Tally};
pub use tally::{Measurement, PhaseReport, Times};
pub(crate) use worker::{KEY_PREFIX, get, key};

use crate::completions::{STEP, Steps};
use crate::failures::Failures;
use crate::random::Random;
use crate::target::{Caller, Reconfigurer, Target, TargetError};
use crate::workload::value;
use bytes::Bytes;
use counter::Counter;
use keys::Keys;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use worker::{Schedule, Worker, change, put};

/// Values that are written in turn. Making a new one for each put would measure how fast they are made.
const VALUES: usize = 16;
/// Bytes of all of them together, at most, but for one that is larger.
const VALUES_BYTES: usize = 64 << 20;
/// Clients that write all objects before anything is measured.
pub(crate) const FILLERS: usize = 32;
/// After the end, how long what was begun in time may still take if servers may be gone.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// When a client begins its next operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// When the last one has ended, and a random time of at most this has passed.
    Closed {
        /// At most so long.
        wait: Duration,
    },
    /// At its time, however long others take: all clients together so many in a second. Latency is measured from that time
    /// on, also if the client was not ready for it: what waits because others are slow is not left out.
    Open {
        /// Operations in a second, of all clients together.
        per_second: f64,
    },
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Clients that only get.
    pub readers: usize,
    /// Clients that only put.
    pub writers: usize,
    /// Clients that get or put, by chance.
    pub mixed: usize,
    /// Clients that each put an object of their own on the version that they know.
    pub comparers: usize,
    /// Clients that all increment one counter.
    pub incrementers: usize,
    /// Clients that reconfigure the store, if it can be, beside those.
    pub reconfigurers: usize,
    /// Between two changes of one of them, at most so long.
    pub between_changes: Duration,
    /// Objects.
    pub objects: u64,
    /// Which of them are wanted.
    pub popularity: Popularity,
    /// Bytes of each, at least 16.
    pub size: usize,
    /// Whether every byte of what is got is looked at, and not the length alone.
    pub verifies: bool,
    /// When operations begin.
    pub pace: Pace,
    /// Not measured: connections are made, caches filled.
    pub warm_up: Duration,
    /// How long is measured.
    pub time: Duration,
    /// What everything is drawn from.
    pub seed: u64,
}

impl Plan {
    /// Clients that operate on objects.
    fn clients(&self) -> usize {
        self.readers + self.writers + self.mixed + self.comparers + self.incrementers
    }

    /// What the client at this place does; one of those that are `mixed` draws.
    fn does(&self, place: usize) -> Option<Operation> {
        let kinds = [
            (self.readers, Some(Operation::Get)),
            (self.writers, Some(Operation::Put)),
            (self.comparers, Some(Operation::PutIf)),
            (self.incrementers, Some(Operation::Increment)),
        ];
        let mut last = 0;
        let kind = kinds.into_iter().find(|(clients, _)| {
            last += clients;
            place < last
        });
        kind.and_then(|(_, does)| does)
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum LoadError {
    /// A client has no connection.
    Connect {
        /// Why.
        source: TargetError,
    },
    /// The objects could not be written.
    Fill {
        /// How the first put that failed ended.
        error: String,
    },
    /// A counter could not be read in the end.
    Count {
        /// Why.
        error: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Connect { source } => source.fmt(f),
            LoadError::Fill { error } => write!(f, "cannot write the objects: {error}"),
            LoadError::Count { error } => write!(f, "cannot read the counter: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// One that puts and gets.
pub(crate) type AnyCaller = Box<dyn Caller>;

/// Connects so many clients.
///
/// # Errors
/// [`LoadError::Connect`].
async fn callers(target: &dyn Target, count: usize) -> Result<Vec<AnyCaller>, LoadError> {
    let mut callers = Vec::new();
    for _ in 0..count {
        let caller = target.caller().await;
        callers.push(caller.map_err(|source| LoadError::Connect { source })?);
    }
    Ok(callers)
}

/// Writes every object once; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`LoadError`].
pub async fn fill(
    target: &dyn Target,
    objects: (usize, u64),
    history: Option<&History>,
) -> Result<(), LoadError> {
    let callers = callers(target, FILLERS.min(objects.1 as usize)).await?;
    fill_by(
        callers,
        objects,
        history.map(|history| (history, target.about().target.word())),
    )
    .await
}

/// The same by these clients, of a store that a history calls by this name.
///
/// # Errors
/// [`LoadError::Fill`].
pub(crate) async fn fill_by(
    callers: Vec<AnyCaller>,
    (size, objects): (usize, u64),
    history: Option<(&History, &str)>,
) -> Result<(), LoadError> {
    let next = Rc::new(Cell::new(0));
    let content = value::content(0, size);
    let mut fillers = JoinSet::new();
    for mut caller in callers {
        let (next, content) = (next.clone(), content.clone());
        let mut diary = history.map(|(history, domain)| history.client(domain));
        fillers.spawn_local(async move {
            while next.get() < objects {
                let number = next.replace(next.get() + 1);
                let key = key(size, number);
                let put = put(&mut *caller, diary.as_mut(), &key, (size, &content)).await;
                put.map_err(|error| LoadError::Fill { error })?;
            }
            Ok(())
        });
    }
    while let Some(filled) = fillers.join_next().await {
        filled.expect("fillers do not panic")?;
    }
    Ok(())
}

/// Does what the plan asks for with objects that are there; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`LoadError`]. Operations that fail are no error, but in what was measured.
pub async fn run(
    target: &dyn Target,
    plan: &Plan,
    history: Option<&History>,
) -> Result<Measurement, LoadError> {
    let load = Load::start(target, plan, history).await?;
    sleep(plan.warm_up).await;
    load.enter(Phase::Still);
    let before = Counters::of(target);
    sleep(plan.time).await;
    load.enter(Phase::Unmeasured);
    let after = Counters::of(target);
    let (counter, ended) = (load.shared.counter.clone(), load.stop().await);
    let mut measured = ended.still.measured(&before, &after, ended.failures);
    if plan.incrementers > 0 {
        measured.count(counter.report(target).await?);
    }
    Ok(measured)
}

/// What goes on beside the clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing that is measured.
    Unmeasured,
    /// Nothing.
    Still,
    /// What is looked into.
    Disturbed,
}

/// Clients at work.
pub(crate) struct Load {
    shared: Rc<Shared>,
    workers: JoinSet<()>,
}

/// What came of it.
pub(crate) struct LoadEnd {
    pub(crate) still: Tally,
    pub(crate) disturbed: Tally,
    /// Operations that succeeded, in each step of time from the first phase that was measured on.
    pub(crate) steps: Vec<u64>,
    pub(crate) failures: Failures,
}

impl Load {
    /// Lets the clients begin; on a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// [`LoadError`].
    pub(crate) async fn start(
        target: &dyn Target,
        plan: &Plan,
        history: Option<&History>,
    ) -> Result<Load, LoadError> {
        let callers = callers(target, plan.clients()).await?;
        let history = history.map(|history| (history, target.about().target.word()));
        let reconfigurers = (0..plan.reconfigurers).filter_map(|_| target.reconfigurer());
        let load = Load::of(callers, plan, history);
        Ok(load.beside(reconfigurers, plan))
    }

    /// The same with these clients, of a store that a history calls by this name.
    pub(crate) fn of(
        callers: Vec<AnyCaller>,
        plan: &Plan,
        history: Option<(&History, &str)>,
    ) -> Load {
        let clients = plan.clients();
        assert!(clients > 0 && plan.objects > 0 && callers.len() == clients);
        // Making large values takes time, which is not measured.
        let values = (1..=VALUES.min(VALUES_BYTES / plan.size).max(1))
            .map(|number| value::content(number as u64, plan.size))
            .collect();
        let from = Instant::now();
        let shared = Rc::new(Shared::new(values, clients, from));
        let mut workers = JoinSet::new();
        for (place, caller) in callers.into_iter().enumerate() {
            let random = Random::new(plan.seed).derive(place as u64);
            let worker = Worker {
                caller,
                place,
                diary: history.map(|(history, domain)| history.client(domain)),
                does: plan.does(place),
                keys: Keys::new(plan.popularity, plan.objects, random),
                size: plan.size,
                verifies: plan.verifies,
                schedule: Schedule::new(plan.pace, (place, clients), from),
                shared: shared.clone(),
            };
            workers.spawn_local(worker.work());
        }
        Load { shared, workers }
    }

    fn beside(
        mut self,
        reconfigurers: impl Iterator<Item = Box<dyn Reconfigurer>>,
        plan: &Plan,
    ) -> Load {
        for (place, reconfigurer) in (self.workers.len()..).zip(reconfigurers) {
            let random = Random::new(plan.seed).derive(place as u64);
            let work = change(
                reconfigurer,
                random,
                plan.between_changes,
                self.shared.clone(),
            );
            self.workers.spawn_local(work);
        }
        self
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.shared.enter(phase);
    }

    /// Operations that succeeded so far.
    pub(crate) fn operations(&self) -> u64 {
        self.shared.operations.get()
    }

    /// Lets the clients finish what they are at.
    pub(crate) async fn stop(mut self) -> LoadEnd {
        self.shared.stop();
        self.all_end().await;
        self.come_to()
    }

    /// The same, but gives up what has not ended soon: it may wait for what was killed until it is too late.
    pub(crate) async fn stop_soon(mut self) -> LoadEnd {
        self.shared.stop();
        // Nothing is left to do for those that are not in time.
        let _ = timeout(GIVEN_UP, self.all_end()).await;
        self.workers.shutdown().await;
        self.come_to()
    }

    async fn all_end(&mut self) {
        while let Some(ended) = self.workers.join_next().await {
            ended.expect("workers do not panic");
        }
    }

    fn come_to(&self) -> LoadEnd {
        let shared = &self.shared;
        LoadEnd {
            still: shared.still.take(),
            disturbed: shared.disturbed.take(),
            steps: shared.steps.take().counts(shared.measured_until.get()),
            failures: shared.failures.take(),
        }
    }
}

/// What the clients of a load share.
struct Shared {
    values: Vec<Bytes>,
    phase: Cell<Phase>,
    /// When the phase began.
    since: Cell<Instant>,
    /// When the last operation succeeded, and in which phase.
    last: Cell<(Instant, Phase)>,
    /// When the first phase began that is measured.
    measured_from: Cell<Option<Instant>>,
    /// When the last one ended.
    measured_until: Cell<Instant>,
    /// No operation begins from then on.
    stopped: Cell<Option<Instant>>,
    still: RefCell<Tally>,
    disturbed: RefCell<Tally>,
    steps: RefCell<Steps>,
    operations: Cell<u64>,
    failures: RefCell<Failures>,
    counter: Rc<Counter>,
}

impl Shared {
    fn new(values: Vec<Bytes>, clients: usize, now: Instant) -> Shared {
        Shared {
            values,
            phase: Cell::new(Phase::Unmeasured),
            since: Cell::new(now),
            last: Cell::new((now, Phase::Unmeasured)),
            measured_from: Cell::new(None),
            measured_until: Cell::new(now),
            stopped: Cell::new(None),
            still: RefCell::new(Tally::of(clients)),
            disturbed: RefCell::default(),
            steps: RefCell::default(),
            operations: Cell::new(0),
            failures: RefCell::default(),
            counter: Rc::new(Counter::new()),
        }
    }

    fn enter(&self, phase: Phase) {
        let (now, old) = (Instant::now(), self.phase.replace(phase));
        let time = now - self.since.replace(now);
        let (last, _) = self.last.get();
        if let Some(tally) = self.tally(old) {
            tally.borrow_mut().time += time;
            self.measured_until.set(now);
            if phase == Phase::Unmeasured {
                // A time without a success that has not ended lasts until here.
                tally.borrow_mut().gap(now - last);
            }
        } else if phase != Phase::Unmeasured {
            // The time before belongs to no phase.
            self.last.set((now, phase));
            if self.measured_from.get().is_none() {
                self.measured_from.set(Some(now));
                *self.steps.borrow_mut() = Steps::from(now);
            }
        }
    }

    fn stop(&self) {
        if self.phase.get() != Phase::Unmeasured {
            self.enter(Phase::Unmeasured);
        }
        self.stopped.set(Some(Instant::now()));
    }

    fn tally(&self, phase: Phase) -> Option<&RefCell<Tally>> {
        match phase {
            Phase::Unmeasured => None,
            Phase::Still => Some(&self.still),
            Phase::Disturbed => Some(&self.disturbed),
        }
    }

    /// The tally of an operation that was due then and began in that phase: what a disturbance has part in is the
    /// disturbance's.
    fn tally_of(&self, due: Instant, begun: Phase) -> Option<&RefCell<Tally>> {
        if self.measured_from.get().is_none_or(|from| due < from) {
            return None;
        }
        match (begun, self.phase.get()) {
            (Phase::Disturbed, _) | (_, Phase::Disturbed) => Some(&self.disturbed),
            (begun, _) => self.tally(begun),
        }
    }

    /// An operation succeeded: when no other one has for how long, and in which step of time.
    fn succeeded(&self, now: Instant) {
        self.operations.set(self.operations.get() + 1);
        let phase = self.phase.get();
        let (last, phase_then) = self.last.replace((now, phase));
        if phase == Phase::Unmeasured {
            return;
        }
        // So is a time without a success that begins or ends in one.
        let to_blame = match phase_then {
            Phase::Disturbed => Phase::Disturbed,
            _ => phase,
        };
        self.steps.borrow_mut().succeeded(now);
        if let Some(tally) = self.tally(to_blame) {
            tally.borrow_mut().gap(now - last);
        }
    }
}

/// How long a step is, in milliseconds.
pub(crate) const STEP_MS: u64 = STEP.as_millis() as u64;

#[cfg(test)]
mod tests;
