//! The cost of one operation, counted where it happens; and with it the cost of all operations together.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use areo_core::config::ConfigurationId;
use areo_core::env::Work;
use areo_core::message::{Refusal, Request};

use crate::message::{Incoming, Outgoing, Segment};
use crate::metrics::Calls;
use crate::peer::Answer;

/// The longest sentence of a refusal that is shown, in bytes.
const MAX_SENTENCE_BYTES: usize = 512;

/// The cost of an operation so far, in the units in which the papers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Quorum calls. Elements that are fetched, and servers that are asked again, belong to their call.
    pub rounds: u64,
    /// Different configurations that were asked something.
    pub configurations: u64,
    /// Requests: messages to one server, without retransmissions after a reconnect.
    pub requests: u64,
    /// Bytes of the requests: messages with payload, without frames and without retransmissions after a reconnect.
    pub sent_bytes: u64,
    /// Bytes of the answers that came before their calls were decided, counted like the requests.
    pub received_bytes: u64,
}

/// Counts for one operation. Belongs to all clones of its world.
pub(super) struct Meter {
    counts: Cell<Counts>,
    asked: RefCell<Vec<ConfigurationId>>,
    /// The sentence with which a server has refused the caller.
    unauthorised: RefCell<Option<Box<str>>>,
    /// The counters of all operations of the process, if they are counted.
    all: Option<Rc<Calls>>,
}

impl Meter {
    pub(super) fn new(all: Option<Rc<Calls>>) -> Meter {
        Meter {
            counts: Cell::default(),
            asked: RefCell::default(),
            unauthorised: RefCell::default(),
            all,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            configurations: self.asked.borrow().len() as u64,
            ..self.counts.get()
        }
    }

    pub(super) fn unauthorised(&self) -> Option<String> {
        self.unauthorised.borrow().as_deref().map(str::to_owned)
    }

    pub(super) fn count_round(&self) {
        self.add(|counts| counts.rounds += 1);
        self.of_all(Calls::began);
    }

    /// A round ended after this time, with a decision or without.
    pub(super) fn count_end(&self, is_decided: bool, after: Duration) {
        self.of_all(|all| all.ended(is_decided, after));
    }

    pub(super) fn count_work(&self, work: Work) {
        self.of_all(|all| all.worked(work));
    }

    /// A request that was taken for a server.
    pub(super) fn count_request(&self, request: &Request, bytes: u64) {
        self.add(|counts| {
            counts.requests += 1;
            counts.sent_bytes += bytes;
        });
        self.of_all(|all| all.sent(bytes));
        let Request::Configured { configuration, .. } = request else {
            return;
        };
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(configuration) {
            asked.push(*configuration);
            self.of_all(Calls::visited);
        }
    }

    /// Counts an answer, and returns its bytes.
    pub(super) fn count_answer(&self, answer: &Answer<'_>) -> u64 {
        let bytes = match answer {
            Answer::Reply(Incoming { body, payload, .. }) => length(body, payload),
            Answer::Refused { refusal, body } => {
                if *refusal == Refusal::Unauthorised {
                    self.unauthorised.replace(sentence(body));
                }
                body.len() as u64
            }
            Answer::Unreachable { .. } => 0,
        };
        self.add(|counts| counts.received_bytes += bytes);
        self.of_all(|all| all.received(bytes));
        bytes
    }

    fn of_all(&self, count: impl FnOnce(&Calls)) {
        if let Some(all) = &self.all {
            count(all);
        }
    }

    fn add(&self, to: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        to(&mut counts);
        self.counts.set(counts);
    }
}

/// The body of a refusal, if it is one sentence that may be shown.
fn sentence(body: &[u8]) -> Option<Box<str>> {
    let sentence = std::str::from_utf8(body).ok()?;
    let is_plain = !sentence.chars().any(char::is_control);
    let fits = (1..=MAX_SENTENCE_BYTES).contains(&sentence.len());
    (is_plain && fits).then(|| sentence.into())
}

/// Bytes of a request.
pub(super) fn length_of(message: &Outgoing) -> u64 {
    length(&message.body, &message.payload)
}

fn length(body: &[u8], payload: &[Segment]) -> u64 {
    let payload: usize = payload.iter().map(|segment| segment.bytes.len()).sum();
    (body.len() + payload) as u64
}
