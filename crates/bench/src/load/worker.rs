//! What a client of a load does, one operation after the other.

use super::client::{self, LoadClient, key};
use super::contender::Contender;
use super::keys::Keys;
use super::{Increments, Operation, Pace, Phase, Shared};
use crate::random::Random;
use crate::target::{Cost, Reconfigurer};
use bytes::Bytes;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// Between a failure and the next operation of the same client.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

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

/// A client at work.
pub(super) struct Worker {
    pub(super) place: usize,
    pub(super) role: Role,
    pub(super) random: Random,
    pub(super) schedule: Schedule,
    pub(super) shared: Rc<Shared>,
}

/// What it does.
pub(super) enum Role {
    Measured(Measured),
    Contender(Contender),
}

/// A client of one store.
pub(super) struct Measured {
    pub(super) client: LoadClient,
    /// `None`: gets or puts, by chance.
    pub(super) does: Option<Operation>,
    pub(super) keys: Keys,
    pub(super) size: usize,
    pub(super) verifies: bool,
}

impl Worker {
    pub(super) async fn work(mut self) {
        loop {
            let due = self.schedule.next(&mut self.random).await;
            if let Some(stopped) = self.shared.stopped.get() {
                if let Some(from) = self.shared.measured_from.get() {
                    // A client that is still busy with operations of the warm-up has missed those that were due since.
                    let missed = self.schedule.missed(due.max(from), stopped);
                    self.shared.still.borrow_mut().missed += missed;
                }
                break;
            }
            let begun = self.shared.phase.get();
            let done = match &mut self.role {
                Role::Measured(measured) => {
                    let random = &mut self.random;
                    measured.operate(self.place, random, &self.shared).await
                }
                Role::Contender(contender) => contender.operate(&mut self.random).await,
            };
            let now = Instant::now();
            match done {
                Ok(Some((operation, cost))) => {
                    let in_time = self.shared.phase.get() != Phase::Unmeasured;
                    self.shared.succeeded(now);
                    if let Some(tally) = self.shared.tally_of(due, begun) {
                        let what = (self.place, operation);
                        tally
                            .borrow_mut()
                            .succeeded(what, now - due, (cost, in_time));
                    }
                }
                Ok(None) => {}
                Err(sentence) => {
                    self.shared.failures.borrow_mut().add(sentence);
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
        if let Role::Contender(contender) = &mut self.role {
            contender.finish(&mut self.random).await;
        }
    }
}

impl Measured {
    /// One operation of the client at this place; its end is a failure unless it succeeds.
    async fn operate(
        &mut self,
        place: usize,
        random: &mut Random,
        shared: &Shared,
    ) -> Result<Option<(Operation, Cost)>, String> {
        let key = key(self.size, self.keys.next(random));
        let drawn = |random: &mut Random| match random.below(2) {
            0 => Operation::Get,
            _ => Operation::Put,
        };
        let operation = self.does.unwrap_or_else(|| drawn(random));
        let value =
            |random: &mut Random| -> &Bytes { &shared.values[random.index(shared.values.len())] };
        let client = &mut self.client;
        let cost = match operation {
            Operation::Get => {
                let (found, cost) = client.get((0, &key)).await?;
                client::check(&key, found.as_ref(), (self.size, self.verifies))?;
                cost
            }
            Operation::Put => client.put((0, &key), (self.size, value(random))).await?,
            Operation::PutIf => {
                let own = format!("own-{}-{place}", self.size);
                let put = client.caller(0).put_if(&own, value(random).clone());
                put.await?
            }
            Operation::Increment => {
                shared.incremented((0, &shared.counter), Increments::begin);
                let done = client.caller(0).increment(&shared.counter).await;
                let ended = done.as_ref().map(|_| true);
                shared.incremented((0, &shared.counter), |it| it.end(ended));
                done?
            }
        };
        Ok(Some((operation, cost)))
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
