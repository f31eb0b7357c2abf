//! One client of a load: its operations, one after the other.

use super::history::Diary;
use super::keys::Keys;
use super::{Operation, Pace, Phase, Shared};
use crate::random::Random;
use crate::target::{Caller, Cost, IncrementError, Reconfigurer};
use crate::workload::value;
use bytes::Bytes;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// Between a failure and the next operation of the same client.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// How all keys begin.
pub(crate) const KEY_PREFIX: &str = "object-";

/// The object of this number, of values of this size.
pub(crate) fn key(size: usize, number: u64) -> String {
    format!("{KEY_PREFIX}{size}-{number:08}")
}

/// Puts: the value, or one of this size that was never put before if it is recorded.
pub(super) async fn put(
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
        Ok(cost) => diary.has_put(cost.version, caller.configuration().as_ref()),
        Err(_) => diary.has_failed(),
    }
    ended
}

/// Gets a value that must be there, of this size; looks at every byte if it is to be verified.
pub(crate) async fn get(
    caller: &mut dyn Caller,
    diary: Option<&mut Diary>,
    key: &str,
    (size, verifies): (usize, bool),
) -> Result<Cost, String> {
    let ended = match diary {
        None => caller.get(key).await,
        Some(diary) => {
            diary.gets(key);
            let ended = caller.get(key).await;
            match &ended {
                Ok((found, cost)) => {
                    diary.has_got(
                        found.as_ref(),
                        cost.version,
                        caller.configuration().as_ref(),
                    );
                }
                Err(_) => diary.has_failed(),
            }
            ended
        }
    };
    match ended? {
        (Some(found), _) if found.len() != size => {
            Err(format!("'{key}' has {} bytes, not {size}", found.len()))
        }
        (Some(found), cost) => match verifies.then(|| value::recognise(&found)) {
            Some(read) if !read.starts_with('v') => Err(format!("'{key}' was read as {read}")),
            _ => Ok(cost),
        },
        (None, _) => Err(format!("'{key}' is not there")),
    }
}

/// Reconfigures until the load stops.
pub(super) async fn change(
    mut reconfigurer: Box<dyn Reconfigurer>,
    mut random: Random,
    between: Duration,
    shared: Rc<Shared>,
) {
    loop {
        sleep(wait(&mut random, between)).await;
        if shared.stopped.get().is_some() {
            return;
        }
        match reconfigurer.reconfigure().await {
            Ok(is_ours) => {
                if let Some(tally) = shared.tally(shared.phase.get()) {
                    tally.borrow_mut().reconfigurations += u64::from(is_ours);
                }
            }
            Err(sentence) => {
                shared.failures.borrow_mut().add(sentence);
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

pub(super) struct Worker {
    pub(super) caller: Box<dyn Caller>,
    pub(super) place: usize,
    pub(super) diary: Option<Diary>,
    /// `None`: gets or puts, by chance.
    pub(super) does: Option<Operation>,
    pub(super) keys: Keys,
    pub(super) size: usize,
    pub(super) verifies: bool,
    pub(super) schedule: Schedule,
    pub(super) shared: Rc<Shared>,
}

impl Worker {
    pub(super) async fn work(mut self) {
        loop {
            let due = self.schedule.next(&mut self.keys.random).await;
            if let Some(stopped) = self.shared.stopped.get() {
                if let Some(from) = self.shared.measured_from.get() {
                    // A client that is still busy with operations of the warm-up has missed those that were due since.
                    let missed = self.schedule.missed(due.max(from), stopped);
                    self.shared.still.borrow_mut().missed += missed;
                }
                return;
            }
            let (begun, key) = (self.shared.phase.get(), key(self.size, self.keys.next()));
            let drawn = || match self.keys.random.below(2) {
                0 => Operation::Get,
                _ => Operation::Put,
            };
            let operation = self.does.unwrap_or_else(drawn);
            let done = self.operate(operation, &key).await;
            let now = Instant::now();
            match done {
                Ok(cost) => {
                    let in_time = self.shared.phase.get() != Phase::Unmeasured;
                    self.shared.succeeded(now);
                    if let Some(tally) = self.shared.tally_of(due, begun) {
                        let what = (self.place, operation);
                        tally
                            .borrow_mut()
                            .succeeded(what, now - due, (cost, in_time));
                    }
                }
                Err(sentence) => {
                    self.shared.failures.borrow_mut().add(sentence);
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }

    async fn operate(&mut self, operation: Operation, key: &str) -> Result<Cost, String> {
        let (caller, diary) = (&mut *self.caller, self.diary.as_mut());
        let value = |random: &mut Random| {
            let values = &self.shared.values;
            values[random.index(values.len())].clone()
        };
        match operation {
            Operation::Get => get(caller, diary, key, (self.size, self.verifies)).await,
            Operation::Put => {
                let value = value(&mut self.keys.random);
                put(caller, diary, key, (self.size, &value)).await
            }
            Operation::PutIf => {
                let own = format!("own-{}-{}", self.size, self.place);
                caller.put_if(&own, value(&mut self.keys.random)).await
            }
            Operation::Increment => {
                let counter = &self.shared.counter;
                let done = caller.increment(counter.key()).await;
                counter.ended(&done);
                done.map_err(|error| match error {
                    IncrementError::NotApplied(why) | IncrementError::Unknown(why) => why,
                })
            }
        }
    }
}

/// When the operations of one client begin.
pub(super) struct Schedule {
    pace: Pace,
    /// Between two operations of one client, at a given rate.
    period: Duration,
    due: Instant,
}

impl Schedule {
    pub(super) fn new(pace: Pace, (place, clients): (usize, usize), from: Instant) -> Schedule {
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
