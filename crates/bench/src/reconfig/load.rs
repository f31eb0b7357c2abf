//! Readers and writers, and how they fare with and without a reconfiguration.

use super::report::{Fared, Latency};
use super::{RunError, Source, failed};
use crate::random::Random;
use crate::workload::value;
use areo_client::{Client, ConnectOptions, Domain, PutOptions};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Sentences that are kept; the first tell most.
const SENTENCES_MAX: usize = 10;
/// Between a failure and the next operation of the same client.
const AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Not measured: connections are made, caches filled.
const WARM_UP: Duration = Duration::from_millis(300);

/// What goes on beside the clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing that is measured.
    Unmeasured,
    /// Nothing.
    Still,
    /// Reconfigurations, one directly after the other.
    Moving,
}

/// What happened in a phase.
#[derive(Default)]
struct Tally {
    time: Duration,
    reads: Vec<Duration>,
    writes: Vec<Duration>,
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
    moving: RefCell<Tally>,
    operations: Cell<u64>,
    failed: Cell<u64>,
    failures: RefCell<Vec<String>>,
}

/// Clients at work.
pub(super) struct Load {
    shared: Rc<Shared>,
    clients: JoinSet<()>,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) failed: u64,
    pub(super) failures: Vec<String>,
    pub(super) still: Fared,
    pub(super) moving: Fared,
}

impl Load {
    /// So many clients, each connected for itself, on the objects of a domain.
    pub(super) async fn start(
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
                source: source.clone(),
            };
            set.spawn_local(worker.work());
        }
        sleep(WARM_UP).await;
        Ok(Load {
            shared,
            clients: set,
        })
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.shared.enter(phase);
    }

    /// Operations that succeeded so far.
    pub(super) fn operations(&self) -> u64 {
        self.shared.operations.get()
    }

    /// Lets the clients finish what they are at.
    pub(super) async fn stop(mut self) -> Ended {
        self.enter(Phase::Unmeasured);
        self.shared.stopped.set(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("clients do not panic");
        }
        let fared = |tally: &RefCell<Tally>| tally.take().fared();
        Ended {
            failed: self.shared.failed.get(),
            failures: self.shared.failures.take(),
            still: fared(&self.shared.still),
            moving: fared(&self.shared.moving),
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
            moving: RefCell::default(),
            operations: Cell::new(0),
            failed: Cell::new(0),
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
            Phase::Moving => Some(&self.moving),
        }
    }

    fn succeeded(&self, is_read: bool, time: Duration, rounds: u64) {
        self.operations.set(self.operations.get() + 1);
        let (now, phase) = (Instant::now(), self.phase.get());
        let (last, phase_then) = self.last.replace((now, phase));
        // A pause that begins or ends in a reconfiguration is the reconfiguration's.
        let to_blame = match phase_then {
            Phase::Moving => Phase::Moving,
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
                true => tally.reads.push(time),
                false => tally.writes.push(time),
            }
        }
    }

    fn failed(&self, sentence: String) {
        self.failed.set(self.failed.get() + 1);
        let mut failures = self.failures.borrow_mut();
        if failures.len() < SENTENCES_MAX {
            failures.push(sentence);
        }
    }
}

impl Tally {
    fn fared(self) -> Fared {
        let seconds = self.time.as_secs_f64();
        let operations = (self.reads.len() + self.writes.len()) as u64;
        Fared {
            seconds,
            operations,
            per_second: operations as f64 / seconds,
            rounds: self.rounds as f64 / operations.max(1) as f64,
            longest_gap_ms: self.longest_gap.as_secs_f64() * 1e3,
            read: Latency::of(self.reads),
            write: Latency::of(self.writes),
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
                true => read(&domain, &key).await,
                false => self.source.write(&domain, &key).await,
            };
            match done {
                Ok(()) => {
                    let rounds = cost.counts().rounds - before;
                    self.shared.succeeded(is_read, begun.elapsed(), rounds);
                }
                Err(sentence) => {
                    self.shared.failed(sentence);
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }
}

/// The object of this number.
pub(super) fn key(number: u64) -> String {
    format!("object-{number:08}")
}

/// Reads an object, and looks at every byte.
///
/// # Errors
/// What went wrong, as a sentence.
pub(super) async fn read(domain: &Domain, key: &str) -> Result<(), String> {
    let object = domain.get(key).await.map_err(|error| error.to_string())?;
    let recognised = value::recognise(&object.into_bytes());
    match recognised.starts_with('v') {
        true => Ok(()),
        false => Err(format!("'{key}' was read as {recognised}")),
    }
}

impl Source {
    /// Writes an object.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(super) async fn write(&self, domain: &Domain, key: &str) -> Result<(), String> {
        let number = self.values.get() + 1;
        self.values.set(number);
        let content = value::content(number, self.size);
        let put = domain.put(key, content, PutOptions::default()).await;
        put.map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_a_reconfiguration_has_part_in_is_its_own() {
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
        shared.enter(Phase::Moving);
        shared.enter(Phase::Still);
        assert!(shared.moving.borrow().longest_gap.is_zero());
        // It began in peace, and ends in a reconfiguration.
        shared.enter(Phase::Moving);
        pause(&shared);
        shared.succeeded(true, Duration::from_millis(1), 2);
        assert!(shared.moving.take().longest_gap >= long);
        // It began in a reconfiguration, and ends in peace.
        shared.enter(Phase::Still);
        pause(&shared);
        shared.succeeded(false, Duration::from_millis(1), 2);
        assert!(shared.moving.take().longest_gap >= long);
        assert!(shared.still.borrow().longest_gap < long);
        pause(&shared);
        shared.succeeded(false, Duration::from_millis(1), 2);
        let still = shared.still.take();
        assert!(still.longest_gap >= long);
        assert_eq!(
            (still.reads.len(), still.writes.len(), still.rounds),
            (1, 2, 6)
        );
    }
}
