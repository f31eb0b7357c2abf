//! Shows whether the process works, and whether its server serves.

use std::time::Instant;

use areo_node::Node;

use super::Worker;
use crate::caller::Caller;

impl Worker {
    /// Has the node answer for objects, because its start was confirmed, unless it has stood still since `standstills` was read.
    pub(crate) fn serve(&self, standstills: u64) {
        self.beat();
        if let Some(node) = self.node.borrow_mut().as_mut()
            && node.standstills() == standstills
        {
            node.serve();
        }
    }

    /// The number of standstills so far.
    pub(crate) fn standstills(&self) -> u64 {
        self.beat();
        let node = self.node.borrow();
        node.as_ref().map_or(0, Node::standstills)
    }

    /// True if the node answers for objects.
    pub(crate) fn is_serving(&self) -> bool {
        self.node.borrow().as_ref().is_some_and(Node::is_serving)
    }

    /// Records are missing, so that it answers for no object of its own accord.
    pub(crate) fn abstains(&self) -> bool {
        let node = self.node.borrow();
        node.as_ref()
            .is_some_and(|node| node.shard().server().is_unreadable())
    }

    /// True if it serves, and its log is whole.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_serving() && !self.abstains()
    }

    /// Waits until it does not answer for objects any more.
    pub(crate) async fn suspended(&self) {
        while self.is_serving() {
            self.suspended.notified().await;
        }
    }

    /// The position of its log; `None` if there is no log, or it is closed.
    pub(crate) fn position(&self) -> Option<u64> {
        self.node.borrow().as_ref().and_then(Node::position)
    }

    /// It is at work: finds out whether it was until now.
    pub(super) fn beat(&self) {
        let now = self.since_start(Instant::now());
        let waited = match self.node.borrow_mut().as_mut() {
            Some(node) => node.beat(now),
            None => return,
        };
        waited.into_iter().for_each(Caller::abandon);
    }
}
