//! How a node stands: whether it serves, whether it is going down, and which objects it lacks.

use super::Node;
use crate::keep::Keep;
use areo_core::instant::Instant;

impl<K: Keep, C> Node<K, C> {
    /// From now on it answers for objects.
    pub fn serve(&mut self) {
        self.shard.serve();
    }

    /// It has gone over its objects, all of them or some, and lacks so many: its status says so.
    pub fn gone_over(&mut self, now: Instant, lacking: u64, is_all: bool) {
        self.shard.gone_over(now, lacking, is_all);
    }

    /// From now on it refuses what is asked of it.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether it refuses what is asked of it.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }
}
