//! What one operation costs, counted where it happens.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use areo_core::config::ConfigurationId;
use areo_core::message::Request;

use crate::message::{Incoming, Outgoing, Segment};
use crate::peer::Answer;

/// What an operation has cost so far: the units in which the papers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Quorum calls. Elements that are fetched, and servers that are asked again, belong to their call.
    pub rounds: u64,
    /// Different configurations that were asked something.
    pub configurations: u64,
    /// Bytes of the requests: messages with payload, without frames and without what was sent again after a reconnect.
    pub sent_bytes: u64,
    /// Bytes of the answers that came before their calls were decided, counted like the requests.
    pub received_bytes: u64,
}

/// Counts for one operation. Belongs to all clones of its world.
#[derive(Default)]
pub(super) struct Meter {
    counts: Cell<Counts>,
    asked: RefCell<Vec<ConfigurationId>>,
    /// When a call was last decided.
    moved_on: Cell<Option<Instant>>,
}

impl Meter {
    pub(super) fn counts(&self) -> Counts {
        Counts {
            configurations: self.asked.borrow().len() as u64,
            ..self.counts.get()
        }
    }

    pub(super) fn moved_on(&self) -> Option<Instant> {
        self.moved_on.get()
    }

    pub(super) fn move_on(&self) {
        self.moved_on.set(Some(Instant::now()));
    }

    pub(super) fn count_round(&self) {
        self.add(|counts| counts.rounds += 1);
    }

    /// A request that was taken for a server.
    pub(super) fn count_request(&self, request: &Request, bytes: u64) {
        self.add(|counts| counts.sent_bytes += bytes);
        let Request::Configured { configuration, .. } = request else {
            return;
        };
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(configuration) {
            asked.push(*configuration);
        }
    }

    /// An answer, of so many bytes.
    pub(super) fn count_answer(&self, answer: &Answer<'_>) -> u64 {
        let bytes = match answer {
            Answer::Reply(Incoming { body, payload, .. }) => length(body, payload),
            Answer::Refused { body, .. } => body.len() as u64,
            Answer::Unreachable { .. } => 0,
        };
        self.add(|counts| counts.received_bytes += bytes);
        bytes
    }

    fn add(&self, to: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        to(&mut counts);
        self.counts.set(counts);
    }
}

/// Bytes of a request.
pub(super) fn length_of(message: &Outgoing) -> u64 {
    length(&message.body, &message.payload)
}

fn length(body: &[u8], payload: &[Segment]) -> u64 {
    let payload: usize = payload.iter().map(|segment| segment.bytes.len()).sum();
    (body.len() + payload) as u64
}
