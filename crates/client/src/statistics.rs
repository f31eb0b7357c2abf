//! The costs of operations.

use areo_net::Counts;
use serde::{Serialize, Serializer};
use std::sync::Mutex;

/// Cost of operations together: those of one [`Domain::measured`](crate::Domain::measured) handle and its clones. Serialised as `rounds`,
/// `configurations_visited`, `sent_bytes` and `received_bytes`.
#[derive(Default, Debug)]
pub struct Statistics(Mutex<Counts>);

impl Statistics {
    /// The cost of operations that have ended. Configurations are counted per operation.
    pub fn counts(&self) -> Counts {
        *self.0.lock().expect("no holder of the lock panics")
    }

    /// The cost of operations that have ended since the counts were these.
    pub fn since(&self, before: Counts) -> Counts {
        let now = self.counts();
        Counts {
            rounds: now.rounds - before.rounds,
            configurations: now.configurations - before.configurations,
            requests: now.requests - before.requests,
            sent_bytes: now.sent_bytes - before.sent_bytes,
            received_bytes: now.received_bytes - before.received_bytes,
        }
    }

    pub(crate) fn add(&self, of: Counts) {
        let mut counts = self.0.lock().expect("no holder of the lock panics");
        counts.rounds += of.rounds;
        counts.configurations += of.configurations;
        counts.requests += of.requests;
        counts.sent_bytes += of.sent_bytes;
        counts.received_bytes += of.received_bytes;
    }
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Cost {
            rounds: u64,
            configurations_visited: u64,
            sent_bytes: u64,
            received_bytes: u64,
        }
        let counts = self.counts();
        let cost = Cost {
            rounds: counts.rounds,
            configurations_visited: counts.configurations,
            sent_bytes: counts.sent_bytes,
            received_bytes: counts.received_bytes,
        };
        cost.serialize(serializer)
    }
}
