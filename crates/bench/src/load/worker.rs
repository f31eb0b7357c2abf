//! The task of a client of a load, one operation after the other.

use super::client::{self, LoadClient, key};
use super::contender::Contender;
use super::keys::Keys;
use super::{Increments, Look, Operation, Pace, Sample, Shared};
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
    /// Operations until it ends by itself, if they are counted.
    pub(super) left: Option<u64>,
    pub(super) shared: Rc<Shared>,
}

/// The role of a worker.
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
    pub(super) look: Look,
}

impl Worker {
    pub(super) async fn work(mut self) {
        while self.left != Some(0) {
            self.left = self.left.map(|left| left - 1);
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
                    let sample = Sample {
                        client: self.place,
                        operation,
                        begun: due - self.shared.begun,
                        took: (now - due).saturating_sub(cost.aside),
                        cost,
                    };
                    self.shared.count(sample, (due, begun));
                    self.shared.succeeded(now);
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
                let (found, mut cost) = client.get((0, &key)).await?;
                let got = Instant::now();
                client::check(&key, found.as_ref(), (self.size, self.look))?;
                cost.aside += got.elapsed();
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
            Operation::List => {
                let (found, cost) = client
                    .caller(0)
                    .list(Some(&client::folder(self.size)))
                    .await?;
                let expected = self.keys.objects();
                if found != expected {
                    return Err(format!("a listing shows {found} objects of {expected}"));
                }
                cost
            }
            Operation::ListFolder => {
                let (found, cost) = client.caller(0).list(None).await?;
                if found == 0 {
                    return Err("a listing shows no folder".into());
                }
                cost
            }
        };
        Ok(Some((operation, cost)))
    }
}

/// The times at which the operations of one client begin.
pub(super) struct Schedule {
    pace: Pace,
    /// Between two operations of one client, at a given rate.
    period: Duration,
    due: Instant,
}

impl Schedule {
    pub(super) fn new(
        pace: Pace,
        (place, clients): (usize, usize),
        from: Instant,
        random: &mut Random,
    ) -> Schedule {
        let (period, first) = match pace {
            Pace::Closed { .. } => (Duration::ZERO, Duration::ZERO),
            Pace::Every { period } => (period, wait(random, period)),
            Pace::Open { per_second } => {
                let period = Duration::from_secs_f64(clients as f64 / per_second);
                // Clients take turns.
                (period, period * place as u32 / clients as u32)
            }
        };
        Schedule {
            pace,
            period,
            due: from + first,
        }
    }

    /// Number of operations from `due` on that should have begun before `end`, and did not.
    fn missed(&self, due: Instant, end: Instant) -> u64 {
        match self.pace {
            Pace::Closed { .. } | Pace::Every { .. } => 0,
            Pace::Open { .. } => {
                let left = end.saturating_duration_since(due).as_nanos();
                left.div_ceil(self.period.as_nanos().max(1)) as u64
            }
        }
    }

    /// Waits until the next operation begins; when it was due.
    async fn next(&mut self, random: &mut Random) -> Instant {
        match self.pace {
            Pace::Closed { least, most } => {
                if !most.is_zero() {
                    sleep(least + wait(random, most.saturating_sub(least))).await;
                }
                Instant::now()
            }
            Pace::Every { period } => {
                self.due = self.due.max(Instant::now());
                sleep_until(self.due.into()).await;
                self.due += period;
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
