//! The plan of a load, as data.

use super::AnyCaller;
use super::history::History;
use super::{Operation, Popularity};
use crate::target::Answer;
use std::rc::Rc;
use std::time::Duration;

/// The rule by which a client begins its next operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// It begins when the last one has ended, and a random time has passed.
    Closed {
        /// The shortest such time.
        least: Duration,
        /// The longest such time.
        most: Duration,
    },
    /// One operation per period, or as soon as the last one has ended; the first one at a random time.
    Every {
        /// The time from one to the next.
        period: Duration,
    },
    /// It begins at its time, however long others take: all clients together so many in a second. Latency is measured from that time on, also if the
    /// client was not ready for it: what waits because others are slow is not left out.
    Open {
        /// Operations in a second, of all clients together.
        per_second: f64,
    },
}

impl Pace {
    /// Operations one after the other, with random times of at most this between them.
    pub const fn up_to(most: Duration) -> Pace {
        Pace::Closed {
            least: Duration::ZERO,
            most,
        }
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::up_to(Duration::ZERO)
    }
}

/// The check of the value that was got. That takes no part of the time of a get.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Look {
    /// No check: the right value is not known.
    Not,
    /// It has to be there, and to have the right length.
    #[default]
    Length,
    /// Every byte has to be right.
    Bytes,
}

/// The plan of a load.
#[derive(Clone, Default)]
pub struct Plan {
    /// Clients that only get.
    pub readers: usize,
    /// Clients that only put.
    pub writers: usize,
    /// Clients that run this other operation, and their number.
    pub mixed: usize,
    /// Clients that do something else.
    pub others: Option<(Operation, usize)>,
    /// Clients that reconfigure the store, if it can be, beside those.
    pub reconfigurers: usize,
    /// Upper bound of the random pause between two changes of a reconfigurer.
    pub between_changes: Duration,
    /// Clients that get, put and delete objects of several domains, if there are any.
    pub(crate) contest: Option<Rc<Contest>>,
    pub objects: u64,
    /// Number of the first object.
    pub first_object: u64,
    /// Popularity of each object.
    pub popularity: Popularity,
    /// Bytes of each object, at least 16.
    pub size: usize,
    /// The check of a value that a get returned.
    pub look: Look,
    /// The pace of operations.
    pub pace: Pace,
    /// Time before the measurement, in which connections are made and caches are filled.
    pub warm_up: Duration,
    /// Length of the measurement.
    pub time: Duration,
    /// Operations of each client, after which it ends; `None`: as many as there is time for.
    pub operations: Option<u64>,
    /// True if every operation that is measured is kept.
    pub keeps_samples: bool,
    /// The seed that everything is drawn from.
    pub seed: u64,
}

/// A domain, or a whole store.
pub(crate) struct Store {
    /// Its name in a history.
    pub(crate) name: String,
    pub(crate) caller: AnyCaller,
}

/// Clients that get, put and delete objects of several domains, with and without conditions, while events disturb
/// them. Once the events have ended every operation has to succeed.
pub(crate) struct Contest {
    /// Clients at a time.
    pub(crate) clients: usize,
    /// Connects a client: a store for each domain. Those with one winner have counters.
    pub(crate) connect: Box<dyn Fn() -> Answer<'static, Vec<Store>, String>>,
    /// The record of their operations.
    pub(crate) history: History,
    /// The domain that may cease to have one winner at any time.
    pub(crate) changing: &'static str,
    /// True if clients end in the middle of operations, and others take their places.
    pub(crate) deaths: bool,
    /// The longest time that an operation may take in the end.
    pub(crate) patience: Duration,
}

impl Plan {
    /// Clients that operate on objects of one store.
    pub(super) fn clients(&self) -> usize {
        let others = self.others.map_or(0, |(_, clients)| clients);
        self.readers + self.writers + self.mixed + others
    }

    /// Clients that operate on objects of several.
    pub(super) fn contenders(&self) -> usize {
        self.contest.as_ref().map_or(0, |contest| contest.clients)
    }

    /// The work of the client at this place; one of those that are `mixed` draws.
    pub(super) fn does(&self, place: usize) -> Option<Operation> {
        let readers_and_writers = [
            (Operation::Get, self.readers),
            (Operation::Put, self.writers),
        ];
        let mut last = 0;
        let mut kinds = readers_and_writers.into_iter().chain(self.others);
        let kind = kinds.find(|(_, clients)| {
            last += clients;
            place < last
        });
        kind.map(|(does, _)| does)
    }
}
