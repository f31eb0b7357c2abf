//! The view of this server: which others it reaches, and its disk. It waits for no commit, so that it is there while the disk has stopped.

use std::rc::Rc;
use std::time::Duration;

use areo_core::limits;
use areo_core::message::ServerView;
use areo_net::network::Network;

use super::Worker;
use crate::metrics::DiskWatch;

impl Worker {
    /// Shows the room on this disk from now on.
    pub(crate) fn watch(&self, disk: Rc<DiskWatch>) {
        assert!(self.disk.set(disk).is_ok(), "there is one disk");
    }

    /// The view as of now. The room on the disk is that of the look before.
    pub(crate) fn view(&self) -> ServerView {
        let (syncs, time) = self.metrics.syncs();
        let room = self.disk.get().and_then(DiskWatch::last);
        let (disk_bytes, disk_free_bytes) = room.unwrap_or_default();
        let mut peers = self.network().map(Network::views).unwrap_or_default();
        peers.truncate(limits::STANDINGS);
        ServerView {
            peers,
            syncs,
            sync_us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            sync_running_ms: self.syncing().map(whole_ms),
            disk_bytes,
            disk_free_bytes,
            corrupted: self.metrics.corrupted.get(),
        }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
