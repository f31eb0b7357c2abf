//! Readers and writers, and how they fare with and without what disturbs them.

use crate::failures::Failures;
use crate::generator::{Latencies, Times};
use crate::random::Random;
use crate::run::{RunError, failed};
use crate::workload::record::{Ending, Invoked, Known};
use crate::workload::{Recorder, value};
use areo_check::Kind;
use areo_client::{Client, ConnectOptions, Domain, Error, PutOptions};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Between a failure and the next operation of the same client.
const AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Objects that are written at once before anything is measured.
const FILL_WINDOW: u64 = 64;
/// Not measured: connections are made, caches filled.
const WARM_UP: Duration = Duration::from_millis(300);

/// How readers and writers fared.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fared {
    /// How long was measured.
    pub seconds: f64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Of them in a second.
    pub per_second: f64,
    /// Rounds of one of them, on average.
    pub rounds: f64,
    /// The longest time in which no operation of any client succeeded, in milliseconds.
    pub longest_gap_ms: f64,
    /// Reads.
    pub read: Times,
    /// Writes.
    pub write: Times,
}

/// What objects and values are drawn from.
#[derive(Clone)]
pub(crate) struct Source {
    objects: u64,
    size: usize,
    random: Random,
    /// Numbers of values that were given out.
    values: Rc<Cell<u64>>,
    /// Operations so far.
    begun: Rc<Cell<u64>>,
    /// What a history calls the client.
    client: String,
    /// Where operations are recorded, if they are.
    pub(crate) recorder: Option<Rc<RefCell<Recorder>>>,
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

/// What happened in a phase.
#[derive(Default)]
struct Tally {
    time: Duration,
    reads: Latencies,
    writes: Latencies,
    longest_gap: Duration,
    rounds: u64,
}

/// What the clients share.
struct Shared {
    stopped: Cell<bool>,
    phase: Cell<Phase>,
    /// When the phase began.
    since: Cell<Instant>,
    /// When the last operation succeeded, and in which phase.
    last: Cell<(Instant, Phase)>,
    still: RefCell<Tally>,
    disturbed: RefCell<Tally>,
    operations: Cell<u64>,
    failures: RefCell<Failures>,
}

/// Clients at work.
pub(crate) struct Load {
    shared: Rc<Shared>,
    clients: JoinSet<()>,
}

/// What came of it.
pub(crate) struct Ended {
    pub(crate) failures: Failures,
    pub(crate) still: Fared,
    pub(crate) disturbed: Fared,
}

impl Load {
    /// So many clients, each connected for itself, on the objects of a domain.
    pub(crate) async fn start(
        source: &Source,
        connect: &ConnectOptions,
        domain: &str,
        clients: usize,
    ) -> Result<Load, RunError> {
        let shared = Rc::new(Shared::new());
        let mut set = JoinSet::new();
        for place in 0..clients as u64 {
            let client = Client::connect(connect.clone()).await;
            let client = client.map_err(failed("connect a client"))?;
            let domain = client.domain(domain).await;
            let worker = Worker {
                shared: shared.clone(),
                domain: domain.map_err(failed("find the domain"))?,
                random: source.random.derive(place),
                source: Source {
                    client: format!("c{place}"),
                    ..source.clone()
                },
            };
            set.spawn_local(worker.work());
        }
        sleep(WARM_UP).await;
        Ok(Load {
            shared,
            clients: set,
        })
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.shared.enter(phase);
    }

    /// Operations that succeeded so far.
    pub(crate) fn operations(&self) -> u64 {
        self.shared.operations.get()
    }

    /// Lets the clients finish what they are at.
    pub(crate) async fn stop(mut self) -> Ended {
        self.enter(Phase::Unmeasured);
        self.shared.stopped.set(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("clients do not panic");
        }
        let fared = |tally: &RefCell<Tally>| tally.take().fared();
        Ended {
            failures: self.shared.failures.take(),
            still: fared(&self.shared.still),
            disturbed: fared(&self.shared.disturbed),
        }
    }
}

impl Shared {
    fn new() -> Shared {
        let now = Instant::now();
        Shared {
            stopped: Cell::new(false),
            phase: Cell::new(Phase::Unmeasured),
            since: Cell::new(now),
            last: Cell::new((now, Phase::Unmeasured)),
            still: RefCell::default(),
            disturbed: RefCell::default(),
            operations: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    fn enter(&self, phase: Phase) {
        let (now, old) = (Instant::now(), self.phase.replace(phase));
        let time = now - self.since.replace(now);
        if let Some(tally) = self.tally(old) {
            tally.borrow_mut().time += time;
        }
        if old == Phase::Unmeasured {
            // The time before is nobody's.
            self.last.set((now, phase));
        }
    }

    fn tally(&self, phase: Phase) -> Option<&RefCell<Tally>> {
        match phase {
            Phase::Unmeasured => None,
            Phase::Still => Some(&self.still),
            Phase::Disturbed => Some(&self.disturbed),
        }
    }

    fn succeeded(&self, is_read: bool, time: Duration, rounds: u64) {
        self.operations.set(self.operations.get() + 1);
        let (now, phase) = (Instant::now(), self.phase.get());
        let (last, phase_then) = self.last.replace((now, phase));
        // A pause that begins or ends in a disturbance is the disturbance's.
        let to_blame = match phase_then {
            Phase::Disturbed => Phase::Disturbed,
            _ => phase,
        };
        if let Some(tally) = self.tally(to_blame) {
            let mut tally = tally.borrow_mut();
            tally.longest_gap = tally.longest_gap.max(now - last);
        }
        if let Some(tally) = self.tally(phase) {
            let mut tally = tally.borrow_mut();
            tally.rounds += rounds;
            match is_read {
                true => tally.reads.record(time),
                false => tally.writes.record(time),
            }
        }
    }
}

impl Tally {
    fn fared(self) -> Fared {
        let seconds = self.time.as_secs_f64();
        let operations = self.reads.count() + self.writes.count();
        Fared {
            seconds,
            operations,
            per_second: operations as f64 / seconds,
            rounds: self.rounds as f64 / operations.max(1) as f64,
            longest_gap_ms: self.longest_gap.as_secs_f64() * 1e3,
            read: self.reads.times().unwrap_or_default(),
            write: self.writes.times().unwrap_or_default(),
        }
    }
}

struct Worker {
    shared: Rc<Shared>,
    domain: Domain,
    random: Random,
    source: Source,
}

impl Worker {
    async fn work(mut self) {
        let (domain, cost) = self.domain.measured();
        while !self.shared.stopped.get() {
            let key = key(self.random.below(self.source.objects));
            let is_read = self.random.below(2) == 0;
            let (begun, before) = (Instant::now(), cost.counts().rounds);
            let done = match is_read {
                true => self.source.read(&domain, &key).await,
                false => self.source.write(&domain, &key).await,
            };
            match done {
                Ok(()) => {
                    let rounds = cost.counts().rounds - before;
                    self.shared.succeeded(is_read, begun.elapsed(), rounds);
                }
                Err(sentence) => {
                    self.shared.failures.borrow_mut().add(sentence);
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }
}

/// The object of this number.
pub(crate) fn key(number: u64) -> String {
    format!("object-{number:08}")
}

impl Source {
    pub(crate) fn new(objects: u64, size: usize, seed: u64) -> Source {
        Source {
            objects,
            size,
            random: Random::new(seed),
            values: Rc::default(),
            begun: Rc::default(),
            client: "fill".into(),
            recorder: None,
        }
    }

    /// Writes the first `objects` of them, many at once.
    pub(crate) async fn fill(&self, domain: &Domain, objects: u64) -> Result<(), RunError> {
        let mut writers = JoinSet::new();
        let next = Rc::new(Cell::new(0));
        for _ in 0..FILL_WINDOW.min(objects) {
            let (source, domain, next) = (self.clone(), domain.clone(), next.clone());
            writers.spawn_local(async move {
                while next.get() < objects {
                    let number = next.replace(next.get() + 1);
                    source.write(&domain, &key(number)).await?;
                }
                Ok(())
            });
        }
        while let Some(written) = writers.join_next().await {
            let written: Result<(), String> = written.expect("writers do not panic");
            written.map_err(failed("write the objects"))?;
        }
        Ok(())
    }

    /// Writes an object.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(crate) async fn write(&self, domain: &Domain, key: &str) -> Result<(), String> {
        let number = self.values.get() + 1;
        self.values.set(number);
        let invoked = self.begin(Kind::Write, key, Some(number));
        let content = value::content(number, self.size);
        let put = domain.put(key, content, PutOptions::default()).await;
        let ended = put.map(|version| Ending::Ok {
            value: Some(value::name(number)),
            version: Some(version),
        });
        self.end(domain, invoked.as_ref(), ended).map(drop)
    }

    /// Reads an object, and looks at every byte.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(crate) async fn read(&self, domain: &Domain, key: &str) -> Result<(), String> {
        let invoked = self.begin(Kind::Read, key, None);
        let ended = domain.get(key).await.map(|object| Ending::Ok {
            version: Some(object.version),
            value: Some(value::recognise(&object.into_bytes())),
        });
        match self.end(domain, invoked.as_ref(), ended)? {
            Ending::Ok {
                value: Some(value), ..
            } if !value.starts_with('v') => Err(format!("'{key}' was read as {value}")),
            _ => Ok(()),
        }
    }

    fn begin(&self, kind: Kind, key: &str, value: Option<u64>) -> Option<Invoked> {
        let recorder = self.recorder.as_ref()?;
        let op = self.begun.get() + 1;
        self.begun.set(op);
        let invoked = Invoked {
            client: self.client.clone(),
            op,
            kind,
            domain: 0,
            key: key.into(),
            value,
        };
        Some(recorder.borrow_mut().invoke(invoked))
    }

    fn end(
        &self,
        domain: &Domain,
        invoked: Option<&Invoked>,
        ended: Result<Ending, Error>,
    ) -> Result<Ending, String> {
        if let (Some(recorder), Some(invoked)) = (&self.recorder, invoked) {
            let failed = |error: &Error| match error {
                Error::Unknown { .. } => Ending::Unknown,
                _ => Ending::Fail,
            };
            let ending = ended.as_ref().map_or_else(failed, Ending::clone);
            let knows = Known::from(&domain.configuration());
            recorder.borrow_mut().end(invoked, &ending, Some(&knows));
        }
        ended.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_a_disturbance_has_part_in_is_its_own() {
        let shared = Shared::new();
        let long = Duration::from_secs(100);
        let pause = |shared: &Shared| {
            let (last, phase) = shared.last.get();
            shared.last.set((
                last.checked_sub(long).expect("the clock runs for longer"),
                phase,
            ));
        };
        shared.enter(Phase::Still);
        shared.succeeded(true, Duration::from_millis(1), 2);
        shared.enter(Phase::Disturbed);
        shared.enter(Phase::Still);
        assert!(shared.disturbed.borrow().longest_gap.is_zero());
        // It began in peace, and ends in a disturbance.
        shared.enter(Phase::Disturbed);
        pause(&shared);
        shared.succeeded(true, Duration::from_millis(1), 2);
        assert!(shared.disturbed.take().longest_gap >= long);
        // It began in a disturbance, and ends in peace.
        shared.enter(Phase::Still);
        pause(&shared);
        shared.succeeded(false, Duration::from_millis(1), 2);
        assert!(shared.disturbed.take().longest_gap >= long);
        assert!(shared.still.borrow().longest_gap < long);
        pause(&shared);
        shared.succeeded(false, Duration::from_millis(1), 2);
        let still = shared.still.take();
        assert!(still.longest_gap >= long);
        assert_eq!(
            (still.reads.count(), still.writes.count(), still.rounds),
            (1, 2, 6)
        );
    }
}
