//! The load generator: clients that put and get, at their own pace or at a given rate, with and without what disturbs them, and what that
//! took. What is measured configures it by a [`Plan`].
//!
//! | module | what |
//! |---|---|
//! | `plan` | what is to be done |
//! | `keys` | which object is next |
//! | `operation` | what a client does |
//! | `counter` | objects that clients count up |
//! | `worker` | one client: its operations, one after the other |
//! | `contender` | one that does everything on the same few objects as others, and may end in the middle of it |
//! | `client` | what each of them asks of stores, recorded or not |
//! | `history` | what clients did and saw, where it is recorded |
//! | `tally` | what was measured |
//! | `value` | values that differ from all others |

mod client;
mod contender;
pub mod counter;
mod history;
mod keys;
mod operation;
mod plan;
mod tally;
pub(crate) mod value;
mod worker;

pub(crate) use client::{KEY_PREFIX, get, key};
pub use counter::CounterReport;
pub(crate) use counter::Increments;
pub use history::History;
pub(crate) use history::{ChangeEnd, Diary, KnownConfiguration, shape_name};
pub use keys::Popularity;
pub use operation::Operation;
pub(crate) use plan::{Contest, Store};
pub use plan::{Look, Pace, Plan};
pub(crate) use tally::{Counters, Latencies, Sample, Tally};
pub use tally::{Measurement, PhaseReport, Times};

use crate::completions::{STEP, Steps};
use crate::error::{RunError, failed};
use crate::failures::Failures;
use crate::random::Random;
use crate::target::{Caller, Reconfigurer, Target};
use bytes::Bytes;
use client::LoadClient;
use contender::Contender;
use keys::Keys;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use worker::{Measured, Role, Schedule, Worker, change};

/// Values that are written in turn. Making a new one for each put would measure how fast they are made.
const VALUES: usize = 16;
/// Bytes of all of them together, at most, but for one that is larger.
const VALUES_BYTES: usize = 64 << 20;
/// Clients that write all objects before anything is measured.
pub(crate) const FILLERS: usize = 32;
/// Time after the end in which operations that began in time may still run, if servers may be gone.
pub(crate) const GIVEN_UP: Duration = Duration::from_secs(1);

/// A client that puts and gets.
pub(crate) type AnyCaller = Box<dyn Caller>;

/// Connects `count` clients.
///
/// # Errors
/// [`RunError`].
async fn callers(target: &dyn Target, count: usize) -> Result<Vec<AnyCaller>, RunError> {
    let mut callers = Vec::new();
    for _ in 0..count {
        callers.push(target.caller().await?);
    }
    Ok(callers)
}

/// A client of one store, which a history calls by this name.
fn only(caller: AnyCaller, history: Option<(&History, &str)>) -> LoadClient {
    let name = history.map_or("", |(_, name)| name).to_owned();
    LoadClient::new(vec![Store { name, caller }], history.map(|(it, _)| it))
}

/// Writes every object once; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`RunError`].
pub async fn fill(
    target: &dyn Target,
    objects: (usize, u64),
    history: Option<&History>,
) -> Result<(), RunError> {
    let callers = callers(target, FILLERS.min(objects.1 as usize)).await?;
    fill_by(
        callers,
        objects,
        history.map(|history| (history, target.about().target.word())),
    )
    .await
}

/// Fills a store by these clients; a history calls the store by this name.
///
/// # Errors
/// [`RunError`].
pub(crate) async fn fill_by(
    callers: Vec<AnyCaller>,
    (size, objects): (usize, u64),
    history: Option<(&History, &str)>,
) -> Result<(), RunError> {
    let next = Rc::new(Cell::new(0));
    let content = value::content(0, size);
    let mut fillers: JoinSet<Result<(), RunError>> = JoinSet::new();
    for caller in callers {
        let (next, content) = (next.clone(), content.clone());
        let mut client = only(caller, history);
        fillers.spawn_local(async move {
            while next.get() < objects {
                let number = next.replace(next.get() + 1);
                let put = client.put((0, &key(size, number)), (size, &content)).await;
                put.map_err(failed("write the objects"))?;
            }
            Ok(())
        });
    }
    while let Some(filled) = fillers.join_next().await {
        filled.expect("fillers do not panic")?;
    }
    Ok(())
}

/// Runs the plan with objects that exist; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`RunError`]. Operations that fail are no error, but in what was measured.
pub async fn run(
    target: &dyn Target,
    plan: &Plan,
    history: Option<&History>,
) -> Result<Measurement, RunError> {
    let load = Load::start(target, plan, history).await?;
    sleep(plan.warm_up).await;
    load.enter(Phase::Still);
    let before = Counters::of(target);
    sleep(plan.time).await;
    load.enter(Phase::Unmeasured);
    let after = Counters::of(target);
    let ended = load.stop().await;
    let mut measured = ended.still.measured(&before, &after, ended.failures);
    for ((_, key), increments) in ended.increments {
        measured.count(CounterReport::read(target, &key, increments).await?);
    }
    Ok(measured)
}

/// The phase of events beside the clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing that is measured.
    Unmeasured,
    /// No event happens: the baseline.
    Still,
    /// The events under measurement happen.
    Disturbed,
}

/// The running clients of a load.
pub(crate) struct Load {
    shared: Rc<Shared>,
    workers: JoinSet<()>,
}

/// The end of a load.
pub(crate) struct LoadEnd {
    pub(crate) still: Tally,
    pub(crate) disturbed: Tally,
    /// Operations that succeeded, in each step of time from the first phase that was measured on.
    pub(crate) steps: Vec<u64>,
    /// The samples of measured phases, if the plan keeps them: as they ended.
    pub(crate) samples: Vec<Sample>,
    pub(crate) failures: Failures,
    /// The increments of each counter, by the place of its store and its key.
    pub(crate) increments: BTreeMap<(usize, String), Increments>,
    /// Clients that ended in the middle of operations.
    pub(crate) deaths: u64,
    /// True if the others finished their operations.
    pub(crate) in_time: bool,
}

impl Load {
    /// Lets the clients begin; on a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) async fn start(
        target: &dyn Target,
        plan: &Plan,
        history: Option<&History>,
    ) -> Result<Load, RunError> {
        let callers = callers(target, plan.clients()).await?;
        let history = history.map(|history| (history, target.about().target.word()));
        let reconfigurers = (0..plan.reconfigurers).filter_map(|_| target.reconfigurer());
        let load = Load::of(callers, plan, history);
        Ok(load.beside(reconfigurers, plan))
    }

    /// A load by these clients on a store that a history calls by this name.
    pub(crate) fn of(
        callers: Vec<AnyCaller>,
        plan: &Plan,
        history: Option<(&History, &str)>,
    ) -> Load {
        let clients = plan.clients() + plan.contenders();
        assert!(clients > 0 && plan.objects > 0 && callers.len() == plan.clients());
        // Making large values takes time, which is not measured.
        let values = (1..=VALUES.min(VALUES_BYTES / plan.size).max(1))
            .map(|number| value::content(number as u64, plan.size))
            .collect();
        let from = Instant::now();
        let shared = Rc::new(Shared {
            samples: RefCell::new(plan.keeps_samples.then(Vec::new)),
            ..Shared::new(values, clients, from)
        });
        let measured = callers.into_iter().enumerate().map(|(place, caller)| {
            Role::Measured(Measured {
                client: only(caller, history),
                does: plan.does(place),
                keys: Keys::new(plan.popularity, (plan.first_object, plan.objects)),
                size: plan.size,
                look: plan.look,
            })
        });
        let contests = plan.contest.iter().flat_map(|it| vec![it; it.clients]);
        let contenders = contests.enumerate().map(|(place, contest)| {
            let contest = (contest.clone(), plan.objects);
            Role::Contender(Contender::new(place, contest, shared.clone()))
        });
        let mut workers = JoinSet::new();
        for (place, role) in measured.chain(contenders).enumerate() {
            let mut random = Random::new(plan.seed).derive(place as u64);
            let worker = Worker {
                place,
                role,
                schedule: Schedule::new(plan.pace, (place, clients), from, &mut random),
                random,
                left: plan.operations,
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

    /// Since when the clients are at work.
    pub(crate) fn begun(&self) -> Instant {
        self.shared.begun
    }

    /// Operations that succeeded so far.
    pub(crate) fn operations(&self) -> u64 {
        self.shared.operations.get()
    }

    /// All of it, from the first operation on, until the clients have done those that the plan counts.
    pub(crate) async fn finish(mut self) -> LoadEnd {
        self.enter(Phase::Still);
        while let Some(ended) = self.workers.join_next().await {
            ended.expect("workers do not panic");
        }
        self.stop().await
    }

    /// Lets the clients finish their current operations.
    pub(crate) async fn stop(self) -> LoadEnd {
        self.stop_within(Duration::MAX).await
    }

    /// Stops the load and drops operations that have not ended by then: they may wait for a killed server for ever.
    pub(crate) async fn stop_within(mut self, time: Duration) -> LoadEnd {
        self.shared.stop();
        let all = async {
            while let Some(ended) = self.workers.join_next().await {
                ended.expect("workers do not panic");
            }
        };
        let in_time = timeout(time, all).await.is_ok();
        self.workers.shutdown().await;
        let shared = &self.shared;
        LoadEnd {
            still: shared.still.take(),
            disturbed: shared.disturbed.take(),
            steps: shared.steps.take().counts(shared.measured_until.get()),
            samples: shared.samples.take().unwrap_or_default(),
            failures: shared.failures.take(),
            increments: shared.increments.take(),
            deaths: shared.deaths.get(),
            in_time,
        }
    }
}

/// The state that the clients of a load share.
struct Shared {
    begun: Instant,
    values: Vec<Bytes>,
    phase: Cell<Phase>,
    /// The time at which the phase began.
    since: Cell<Instant>,
    /// The time at which the last operation succeeded, and its phase.
    last: Cell<(Instant, Phase)>,
    /// The time at which the first measured phase began.
    measured_from: Cell<Option<Instant>>,
    /// The time at which the last one ended.
    measured_until: Cell<Instant>,
    /// No operation begins from then on.
    stopped: Cell<Option<Instant>>,
    still: RefCell<Tally>,
    disturbed: RefCell<Tally>,
    steps: RefCell<Steps>,
    /// Operations, if they are kept.
    samples: RefCell<Option<Vec<Sample>>>,
    operations: Cell<u64>,
    failures: RefCell<Failures>,
    /// The key of the counter of those that only increment.
    counter: String,
    increments: RefCell<BTreeMap<(usize, String), Increments>>,
    deaths: Cell<u64>,
}

impl Shared {
    fn new(values: Vec<Bytes>, clients: usize, now: Instant) -> Shared {
        Shared {
            begun: now,
            values,
            samples: RefCell::default(),
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
            counter: counter::new_key(),
            increments: RefCell::default(),
            deaths: Cell::new(0),
        }
    }

    /// Something became of an increment of this counter of the store at this place.
    fn incremented(&self, (place, key): (usize, &str), became: impl FnOnce(&mut Increments)) {
        let mut counters = self.increments.borrow_mut();
        became(counters.entry((place, key.to_owned())).or_default());
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

    /// Takes an operation into account that was due then and began in that phase.
    fn count(&self, sample: Sample, (due, begun): (Instant, Phase)) {
        let in_time = self.phase.get() != Phase::Unmeasured;
        let Some(tally) = self.tally_of(due, begun) else {
            return;
        };
        tally.borrow_mut().succeeded(&sample, in_time);
        if let Some(samples) = &mut *self.samples.borrow_mut() {
            samples.push(sample);
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

/// The length of a step, in milliseconds.
pub(crate) const STEP_MS: u64 = STEP.as_millis() as u64;

#[cfg(test)]
mod tests;
