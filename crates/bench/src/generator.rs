//! A load: clients that put and get at a target, at their own pace or at a given rate, and what that took.
//!
//! | module | what |
//! |---|---|
//! | `keys` | which object is next |
//! | `history` | what clients did and saw, where it is recorded |
//! | `tally` | what was measured |

mod history;
mod keys;
mod tally;

pub use history::History;
pub use keys::Popularity;
pub(crate) use tally::Latencies;
pub use tally::{Measured, Times};

use crate::completions::{Completions, Seen};
use crate::failures::Failures;
use crate::random::Random;
use crate::system;
use crate::target::{Caller, Cost, Reconfigurer, Target, TargetError};
use crate::workload::value;
use bytes::Bytes;
use history::Diary;
use keys::Keys;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tally::Tally;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout_at};

/// Values that are written in turn. Making a new one for each put would measure how fast they are made.
const VALUES: usize = 16;
/// Bytes of all of them together, at most, but for one that is larger.
const VALUES_BYTES: usize = 64 << 20;
/// Clients that write all objects before anything is measured.
const FILLERS: usize = 32;
/// Between a failure and the next operation of the same client.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// After a disturbance, how long what was begun in time may still take.
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
    /// When operations begin.
    pub pace: Pace,
    /// Not measured: connections are made, caches filled.
    pub warm_up: Duration,
    /// How long is measured.
    pub time: Duration,
    /// What everything is drawn from.
    pub seed: u64,
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
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Connect { source } => source.fmt(f),
            LoadError::Fill { error } => write!(f, "cannot write the objects: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The object of this number, of values of this size.
fn key(size: usize, number: u64) -> String {
    format!("object-{size}-{number:08}")
}

/// Writes every object once; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`LoadError`].
pub async fn fill(
    target: &dyn Target,
    (size, objects): (usize, u64),
    history: Option<&History>,
) -> Result<(), LoadError> {
    let next = Rc::new(Cell::new(0));
    let content = value::content(0, size);
    let mut fillers = JoinSet::new();
    for _ in 0..FILLERS.min(objects as usize) {
        let mut caller = connect(target).await?;
        let (next, content) = (next.clone(), content.clone());
        let mut diary = history.map(|history| history.client(target.about().target));
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

/// Puts: the value, or one of this size that nobody has put before if it is written down.
async fn put(
    caller: &mut dyn Caller,
    diary: Option<&mut Diary>,
    key: &str,
    (size, content): (usize, &Bytes),
) -> Result<Cost, String> {
    let Some(diary) = diary else {
        return caller.put(key, content.clone()).await;
    };
    let content = diary.puts(key, size);
    let ended = caller.put(key, content).await;
    match &ended {
        Ok(_) => diary.has_put(),
        Err(_) => diary.has_failed(),
    }
    ended
}

async fn connect(target: &dyn Target) -> Result<Box<dyn Caller>, LoadError> {
    let caller = target.caller().await;
    caller.map_err(|source| LoadError::Connect { source })
}

/// Does what the plan says with objects that are there; on a [`tokio::task::LocalSet`].
///
/// # Errors
/// [`LoadError`]. Operations that fail are no error, but in what was measured.
pub async fn run(
    target: &dyn Target,
    plan: &Plan,
    history: Option<&History>,
) -> Result<Measured, LoadError> {
    let mut load = Load::start(target, plan, history).await?;
    sleep_until(load.shared.begin.into()).await;
    let before = Counters::of(target);
    sleep_until(load.shared.end.into()).await;
    let after = Counters::of(target);
    load.all_end().await;
    let (tally, _) = load.come_to();
    Ok(tally.measured(plan.time, &before, &after))
}

/// What clients noticed of a disturbance.
pub(crate) struct Noticed {
    pub(crate) seen: Seen,
    pub(crate) failures: Failures,
}

/// Clients at work, in the middle of whose time something happens.
pub(crate) struct Load {
    shared: Rc<Shared>,
    workers: JoinSet<()>,
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
        let clients = plan.readers + plan.writers;
        assert!(clients > 0 && plan.objects > 0);
        // Making large values takes time that nobody is to miss.
        let values = (1..=VALUES.min(VALUES_BYTES / plan.size).max(1))
            .map(|number| value::content(number as u64, plan.size))
            .collect();
        let mut callers = Vec::new();
        for _ in 0..clients {
            callers.push(connect(target).await?);
        }
        let from = Instant::now();
        let begin = from + plan.warm_up;
        let shared = Rc::new(Shared {
            begin,
            end: begin + plan.time,
            tally: RefCell::default(),
            completions: RefCell::new(Completions::new(begin, plan.time)),
            values,
        });
        let mut workers = JoinSet::new();
        for (place, caller) in callers.into_iter().enumerate() {
            let random = Random::new(plan.seed).derive(place as u64);
            let worker = Worker {
                caller,
                diary: history.map(|history| history.client(target.about().target)),
                reads: place < plan.readers,
                keys: Keys::new(plan.popularity, plan.objects, random),
                size: plan.size,
                schedule: Schedule::new(plan.pace, (place, clients), from),
                shared: shared.clone(),
            };
            workers.spawn_local(worker.work());
        }
        let reconfigurers = (0..plan.reconfigurers).filter_map(|_| target.reconfigurer());
        for (place, reconfigurer) in (clients..).zip(reconfigurers) {
            let random = Random::new(plan.seed).derive(place as u64);
            let shared = shared.clone();
            workers.spawn_local(change(reconfigurer, random, plan.between_changes, shared));
        }
        Ok(Load { shared, workers })
    }

    /// Returns in the middle of the time that is measured; what the caller does then is the disturbance.
    pub(crate) async fn until_disturbed(&self) {
        let Shared { begin, end, .. } = *self.shared;
        sleep_until((begin + (end - begin) / 2).into()).await;
        let mut completions = self.shared.completions.borrow_mut();
        completions.disturb(Instant::now());
    }

    /// Lets the clients end when their time is over. What has not ended soon after that is given up: it may wait for what was
    /// killed until it is too late.
    pub(crate) async fn noticed(mut self) -> Noticed {
        let end = self.shared.end;
        // Nothing is left to do for those that are not in time.
        let _ = timeout_at((end + GIVEN_UP).into(), self.all_end()).await;
        self.workers.shutdown().await;
        let (tally, completions) = self.come_to();
        Noticed {
            seen: completions.seen(end),
            failures: tally.failures,
        }
    }

    async fn all_end(&mut self) {
        while let Some(ended) = self.workers.join_next().await {
            ended.expect("workers do not panic");
        }
    }

    fn come_to(&self) -> (Tally, Completions) {
        let completions = self.shared.completions.borrow().clone();
        (self.shared.tally.take(), completions)
    }
}

/// What processes took so far.
pub(crate) struct Counters {
    client_cpu: Duration,
    server_cpu: Duration,
    loopback_bytes: u64,
    resident_bytes: u64,
    stored_bytes: u64,
}

impl Counters {
    fn of(target: &dyn Target) -> Counters {
        let processes = target.processes();
        let each = || processes.iter().copied();
        Counters {
            client_cpu: system::cpu_of_this(),
            server_cpu: each().map(system::cpu_of).sum(),
            loopback_bytes: system::loopback_bytes(),
            resident_bytes: each().map(system::resident_of).sum(),
            stored_bytes: target.stored(),
        }
    }
}

struct Shared {
    begin: Instant,
    end: Instant,
    tally: RefCell<Tally>,
    completions: RefCell<Completions>,
    values: Vec<Bytes>,
}

/// Reconfigures until the time is over.
async fn change(
    mut reconfigurer: Box<dyn Reconfigurer>,
    mut random: Random,
    between: Duration,
    shared: Rc<Shared>,
) {
    loop {
        sleep(wait(&mut random, between)).await;
        if Instant::now() >= shared.end {
            return;
        }
        match reconfigurer.reconfigure().await {
            Ok(is_ours) => {
                let now = Instant::now();
                let counts = is_ours && now >= shared.begin && now < shared.end;
                shared.tally.borrow_mut().reconfigured(counts.into());
            }
            Err(sentence) => {
                shared.tally.borrow_mut().failures.add(sentence);
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// A random time of at most this, in steps of a microsecond.
fn wait(random: &mut Random, most: Duration) -> Duration {
    match most.as_micros() as u64 {
        0 => Duration::ZERO,
        most => Duration::from_micros(random.below(most) + 1),
    }
}

struct Worker {
    caller: Box<dyn Caller>,
    diary: Option<Diary>,
    reads: bool,
    keys: Keys,
    size: usize,
    schedule: Schedule,
    shared: Rc<Shared>,
}

impl Worker {
    async fn work(mut self) {
        let (begin, end) = (self.shared.begin, self.shared.end);
        loop {
            let due = self.schedule.next(&mut self.keys.random).await;
            if Instant::now() >= end {
                let missed = self.schedule.missed(due, end);
                self.shared.tally.borrow_mut().missed(missed);
                return;
            }
            let key = key(self.size, self.keys.next());
            let done = match self.reads {
                true => self.get(&key).await,
                false => self.put(&key).await,
            };
            let now = Instant::now();
            if done.is_ok() {
                self.shared.completions.borrow_mut().succeeded(now);
            }
            match done {
                Ok(_) if due < begin => {}
                Ok(cost) => {
                    let mut tally = self.shared.tally.borrow_mut();
                    tally.succeeded(self.reads, now - due, (cost, now < end));
                }
                Err(sentence) => {
                    self.shared.tally.borrow_mut().failures.add(sentence);
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }

    async fn put(&mut self, key: &str) -> Result<Cost, String> {
        let which = self.keys.random.index(self.shared.values.len());
        let content = (self.size, &self.shared.values[which]);
        put(&mut *self.caller, self.diary.as_mut(), key, content).await
    }

    async fn get(&mut self, key: &str) -> Result<Cost, String> {
        if let Some(diary) = &mut self.diary {
            diary.gets(key);
        }
        let ended = self.caller.get(key).await;
        if let Some(diary) = &mut self.diary {
            match &ended {
                Ok((found, _)) => diary.has_got(found.as_ref()),
                Err(_) => diary.has_failed(),
            }
        }
        match ended? {
            (Some(found), cost) if found.len() == self.size => Ok(cost),
            (Some(found), _) => Err(format!(
                "'{key}' has {} bytes, not {}",
                found.len(),
                self.size
            )),
            (None, _) => Err(format!("'{key}' is not there")),
        }
    }
}

/// When the operations of one client begin.
struct Schedule {
    pace: Pace,
    /// Between two operations of one client, at a given rate.
    period: Duration,
    due: Instant,
}

impl Schedule {
    fn new(pace: Pace, (place, clients): (usize, usize), from: Instant) -> Schedule {
        let period = match pace {
            Pace::Closed { .. } => Duration::ZERO,
            Pace::Open { per_second } => Duration::from_secs_f64(clients as f64 / per_second),
        };
        Schedule {
            pace,
            period,
            // Clients take turns.
            due: from + period * place as u32 / clients as u32,
        }
    }

    /// How many operations from `due` on were to begin before `end`, and did not.
    fn missed(&self, due: Instant, end: Instant) -> u64 {
        match self.pace {
            Pace::Closed { .. } => 0,
            Pace::Open { .. } => {
                let left = end.saturating_duration_since(due).as_nanos();
                left.div_ceil(self.period.as_nanos().max(1)) as u64
            }
        }
    }

    /// Waits until the next operation begins; when it was due.
    async fn next(&mut self, random: &mut Random) -> Instant {
        match self.pace {
            Pace::Closed { wait: most } => {
                if !most.is_zero() {
                    sleep(wait(random, most)).await;
                }
                Instant::now()
            }
            Pace::Open { .. } => {
                let due = self.due;
                self.due += self.period;
                sleep_until(due.into()).await;
                due
            }
        }
    }
}

#[cfg(test)]
mod tests;
