//! A client that contends with others for a few objects of several domains, and may end in the middle of an operation.

use super::client::LoadClient;
use super::plan::Contest;
use super::{Increments, Operation, Shared, value};
use crate::random::Random;
use crate::target::{CallError, Cost};
use bytes::Bytes;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Few counters in each domain that has them, so that clients meet.
const COUNTERS: u64 = 2;
/// Mean number of operations in the life of a client.
const LIFE: u64 = 1_500;
/// Mean number of operations in the life of the first client, so that even a short run has an end of a client.
const FIRST_LIFE: u64 = 20;
/// Upper bound for the time from the begin of an operation to the end of its client, in microseconds.
const LAST: u64 = 3_000;
/// Between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);

/// One place in the contest: a client, and those that follow it.
pub(super) struct Contender {
    place: usize,
    contest: Rc<Contest>,
    /// Objects in each domain.
    objects: u64,
    shared: Rc<Shared>,
    /// The one that lives, if it is connected.
    client: Option<LoadClient>,
    lives: u64,
    is_dying: bool,
}

/// An action on an object.
enum Deed {
    Get,
    Put,
    Delete,
    /// A get, and a write of the version that was found: of the next count,
    Count,
    /// or of any value; or the object is deleted, if it is there.
    Race {
        deletes: bool,
    },
}

/// The end of operations that succeed; `None`: they had no effect, and that is right.
type Done = Option<(Operation, Cost)>;

impl Contender {
    pub(super) fn new(
        place: usize,
        (contest, objects): (Rc<Contest>, u64),
        shared: Rc<Shared>,
    ) -> Contender {
        Contender {
            place,
            contest,
            objects,
            shared,
            client: None,
            lives: 0,
            is_dying: false,
        }
    }

    /// One operation, or a get and a write on a condition.
    ///
    /// # Errors
    /// Nothing that happens to clients and servers explains how it ended.
    pub(super) async fn operate(&mut self, random: &mut Random) -> Result<Done, String> {
        let Some(client) = &self.client else {
            self.connect().await;
            return Ok(None);
        };
        let life = match (self.place, self.lives) {
            (0, 1) => FIRST_LIFE,
            _ => LIFE,
        };
        self.is_dying |= self.contest.deaths && random.below(life) == 0;
        let death = self
            .is_dying
            .then(|| Duration::from_micros(random.below(LAST)));
        let place = random.index(client.stores().len());
        let (key, deed) = self.drawn(place, random);
        let work = self.work((place, &key), deed, value::length(random));
        let done = match death {
            None => Ok(work.await),
            Some(death) => timeout(death, work).await,
        };
        let Ok(done) = done else {
            self.client = None;
            self.is_dying = false;
            self.shared.deaths.set(self.shared.deaths.get() + 1);
            return Ok(None);
        };
        match done {
            Err(CallError::NotApplied(_) | CallError::Unknown(_)) => Ok(None),
            done => done.map_err(|error| format!("nothing explains an error: {error}")),
        }
    }

    async fn connect(&mut self) {
        match (self.contest.connect)().await {
            Ok(stores) => {
                self.lives += 1;
                self.client = Some(LoadClient::new(stores, Some(&self.contest.history)));
            }
            Err(_) => sleep(AGAIN).await,
        }
    }

    /// True if conditional writes have one winner there, as far as the client knows.
    fn has_counters(&self, place: usize) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.stores()[place].caller.has_one_winner())
    }

    /// A counter more often than another key, where there are counters.
    fn drawn(&self, place: usize, random: &mut Random) -> (String, Deed) {
        let key = |random: &mut Random| object(random.below(self.objects));
        if self.has_counters(place) && random.below(4) > 0 {
            return match random.below(3) {
                0 => {
                    let deletes = random.below(4) == 0;
                    (key(random), Deed::Race { deletes })
                }
                _ => (counter(random.below(COUNTERS)), Deed::Count),
            };
        }
        let deed = match random.below(20) {
            0..9 => Deed::Get,
            9..18 => Deed::Put,
            _ => Deed::Delete,
        };
        (key(random), deed)
    }

    async fn work(
        &mut self,
        at: (usize, &str),
        deed: Deed,
        size: usize,
    ) -> Result<Done, CallError> {
        let client = self.client.as_mut().expect("it is connected");
        let (found, cost) = match deed {
            Deed::Put => {
                let put = client.put(at, (size, &Bytes::new())).await;
                return put.map(|cost| Some((Operation::Put, cost)));
            }
            Deed::Delete => {
                let deleted = client.delete(at).await;
                return deleted.map(|cost| Some((Operation::Put, cost)));
            }
            Deed::Get | Deed::Count | Deed::Race { .. } => client.get(at).await?,
        };
        let (counts, deletes) = match deed {
            Deed::Count => (true, false),
            Deed::Race { deletes } => (false, deletes && cost.version.is_some()),
            _ => return Ok(Some((Operation::Get, cost))),
        };
        let unique = client.next_value().filter(|_| !deletes);
        let number = unique.map(|unique| match counts {
            true => {
                let count = found.map_or(0, |found| value::count(&value::recognise(&found)));
                value::counted(count + 1, unique)
            }
            false => unique,
        });
        if counts {
            self.shared.incremented(at, Increments::begin);
        }
        let done = client.write_on(at, (number, size), cost.version).await;
        if counts {
            let won = done.as_ref().map(Option::is_some);
            self.shared.incremented(at, |it| it.end(won));
        }
        match done {
            Err(CallError::NotConditional(_))
                if client.stores()[at.0].name == self.contest.changing =>
            {
                Ok(None)
            }
            done => Ok(done?.map(|cost| (Operation::PutIf, cost))),
        }
    }

    /// Nothing happens any more: puts and gets of every object must succeed, and each counter must rise once more, where there are
    /// counters by now.
    pub(super) async fn finish(&mut self, random: &mut Random) {
        let (begun, patience) = (Instant::now(), self.contest.patience);
        while self.client.is_none() {
            if begun.elapsed() > patience {
                return self.failed(format!("no cluster within {} s", patience.as_secs()));
            }
            self.connect().await;
        }
        let client = self.client.as_mut().expect("it is connected");
        client.set_timeout(patience);
        for place in 0..client.stores().len() {
            for number in 0..self.objects {
                for deed in [Deed::Put, Deed::Get] {
                    let (key, size) = (object(number), value::length(random));
                    if let Err(error) = self.work((place, &key), deed, size).await {
                        self.failed(error);
                    }
                }
            }
            for number in 0..COUNTERS {
                self.count_up((place, &counter(number)), random).await;
            }
        }
    }

    async fn count_up(&mut self, at: (usize, &str), random: &mut Random) {
        let begun = Instant::now();
        while self.has_counters(at.0) {
            match self.work(at, Deed::Count, value::length(random)).await {
                Ok(None) if begun.elapsed() < self.contest.patience => {}
                Ok(None) => return self.failed("others always incremented a counter first"),
                Ok(Some(_)) => return,
                Err(error) => return self.failed(error),
            }
        }
    }

    fn failed(&self, why: impl fmt::Display) {
        let place = self.place;
        let sentence = format!("client {place}, after everything was mended: {why}");
        self.shared.failures.borrow_mut().add(sentence);
    }
}

fn object(number: u64) -> String {
    format!("k{number}")
}

fn counter(number: u64) -> String {
    format!("counter{number}")
}

#[cfg(test)]
mod tests;
