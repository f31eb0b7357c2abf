//! The last time at which the process worked, and the position of its log.

use super::Node;
use crate::keep::Keep;
use areo_core::instant::Instant;
use areo_core::timing::STANDSTILL;

/// The node's notes of its own work: its log position for the root domain, and the times that show a standstill.
pub(super) struct Pulse {
    /// The last time at which it was at work; `None` before the first.
    last: Option<Instant>,
    /// The last batch of the log with records that the server must not lose. `None`: there is no log, and no other
    /// process can be the server.
    position: Option<u64>,
    /// The batch that is being written is such a batch.
    grows: bool,
    /// The number of standstills so far.
    standstills: u64,
}

impl Pulse {
    pub(super) fn new(position: Option<u64>) -> Pulse {
        Pulse {
            last: None,
            position,
            grows: false,
            standstills: 0,
        }
    }

    /// A batch is being written.
    pub(super) fn grows(&mut self, grows: bool) {
        self.grows = grows;
    }

    /// It is durable, under this number.
    pub(super) fn committed(&mut self, position: u64) {
        if std::mem::take(&mut self.grows) {
            assert!(self.position < Some(position), "batches are numbered");
            self.position = Some(position);
        }
    }

    /// Notes that the node works now. Returns true if the last beat is so old that another process may have taken its
    /// place.
    fn beat(&mut self, now: Instant) -> bool {
        let last = self.last.replace(now);
        // Without a log no other process can be the server, and nothing is to be found out again.
        let stood_still =
            self.position.is_some() && last.is_some_and(|last| now.since(last) > STANDSTILL);
        self.standstills += u64::from(stood_still);
        stood_still
    }
}

impl<K: Keep, C> Node<K, C> {
    /// Notes that the node is at work; the caller calls this after each wait, before the node does anything else. After a
    /// standstill the node answers for no object until [`Node::serve`] (`[X-32 stood-still]`). Returns the callers that wait for
    /// the batch being written: they get no answer.
    #[must_use = "their connections are to be closed"]
    pub fn beat(&mut self, now: Instant) -> Vec<C> {
        if self.pulse.beat(now) && self.is_serving() {
            let waited = self.shard.suspend();
            assert!(!self.is_serving(), "its place may be taken");
            return waited;
        }
        Vec::new()
    }

    /// The number of standstills so far. A result that the caller found before the last standstill may be wrong by now.
    pub fn standstills(&self) -> u64 {
        self.pulse.standstills
    }

    /// True if the node answers for objects.
    pub fn is_serving(&self) -> bool {
        self.shard.server().is_serving()
    }

    /// The last durable batch of the log with records that the server must not lose (`[X-31 log-position]`).
    pub fn position(&self) -> Option<u64> {
        self.pulse.position
    }
}
