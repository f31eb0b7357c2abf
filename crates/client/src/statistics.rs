//! What operations cost.

use crate::Counts;
use std::sync::Mutex;

/// What operations have cost together: those of one [`Domain::measured`](crate::Domain::measured) handle and its clones.
#[derive(Default, Debug)]
pub struct Statistics(Mutex<Counts>);

impl Statistics {
    /// What the operations that have ended cost. Configurations are counted per operation.
    pub fn counts(&self) -> Counts {
        *self.0.lock().expect("no holder of the lock panics")
    }

    pub(crate) fn add(&self, of: Counts) {
        let mut counts = self.0.lock().expect("no holder of the lock panics");
        counts.rounds += of.rounds;
        counts.configurations += of.configurations;
        counts.sent_bytes += of.sent_bytes;
        counts.received_bytes += of.received_bytes;
    }
}
