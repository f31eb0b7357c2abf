//! The room on the server's disk, and a sync that has not ended.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use areo_net::metrics::Adding;
use prometheus::{Gauge, IntGauge};
use tokio::sync::Notify;
use tokio::task::{spawn_blocking, spawn_local};

use super::whole;

/// The disk at the moment of a request.
#[derive(Default)]
pub(crate) struct DiskLook {
    /// Bytes of the file system, and those that are left to this process; `None`: it did not say.
    pub(crate) bytes: Option<(u64, u64)>,
    /// The age of the commit that is being made durable.
    pub(crate) syncing: Option<Duration>,
}

impl DiskLook {
    /// Asks the file system at this path. It may wait for a disk that has stopped.
    pub(crate) fn bytes_at(path: &Path) -> Option<(u64, u64)> {
        let found = rustix::io::retry_on_intr(|| rustix::fs::statvfs(path)).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        // Blocks that are kept for the administrator of the machine are neither in use nor left.
        let kept = found.f_bfree.saturating_sub(found.f_bavail);
        let all = found.f_blocks.saturating_sub(kept);
        Some((bytes(all), bytes(found.f_bavail)))
    }
}

/// The room on the disk, of which one look at a time may hang.
pub(crate) struct DiskWatch {
    directory: PathBuf,
    last: Cell<Option<(u64, u64)>>,
    is_looking: Cell<bool>,
    looked: Notify,
}

impl DiskWatch {
    pub(crate) fn new(directory: PathBuf) -> Rc<DiskWatch> {
        let watch = Rc::new(DiskWatch {
            directory,
            last: Cell::default(),
            is_looking: Cell::default(),
            looked: Notify::new(),
        });
        watch.begin();
        watch
    }

    /// The bytes of the last look, and another look for the next caller. Waits for nothing.
    pub(crate) fn last(self: &Rc<Self>) -> Option<(u64, u64)> {
        self.begin();
        self.last.get()
    }

    /// The bytes as of now. Waits for a disk that has stopped.
    pub(crate) async fn look(self: &Rc<Self>) -> Option<(u64, u64)> {
        let looked = self.looked.notified();
        self.begin();
        looked.await;
        self.last.get()
    }

    fn begin(self: &Rc<Self>) {
        if self.is_looking.replace(true) {
            return;
        }
        let watch = Rc::clone(self);
        spawn_local(async move {
            let path = watch.directory.clone();
            let found = spawn_blocking(move || DiskLook::bytes_at(&path)).await;
            watch.last.set(found.ok().flatten());
            watch.is_looking.set(false);
            watch.looked.notify_waiters();
        });
    }
}

/// Gauges of the disk.
pub(super) struct Disk {
    bytes: IntGauge,
    free: IntGauge,
    syncing: Gauge,
}

impl Disk {
    pub(super) fn new(add: &Adding<'_>) -> Disk {
        Disk {
            bytes: add.gauge(
                "areo_server_disk_bytes",
                "Bytes of the file system with the server's data; 0: not known.",
            ),
            free: add.gauge(
                "areo_server_disk_free_bytes",
                "Bytes that are left there to the server.",
            ),
            syncing: add.fraction(
                "areo_store_sync_running_seconds",
                "For how long the commit that is being made durable has been waiting for the disk; 0: none is.",
            ),
        }
    }

    pub(super) fn set(&self, look: &DiskLook) {
        let (bytes, free) = look.bytes.unwrap_or_default();
        self.bytes.set(whole(bytes));
        self.free.set(whole(free));
        self.syncing
            .set(look.syncing.unwrap_or_default().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_shown_and_what_is_not_known_is_0() {
        let disk = Disk::new(&Adding(&prometheus::Registry::new()));
        let shown = || (disk.bytes.get(), disk.free.get(), disk.syncing.get());
        disk.set(&DiskLook {
            bytes: Some((1000, 300)),
            syncing: Some(Duration::from_millis(2500)),
        });
        assert_eq!(shown(), (1000, 300, 2.5));
        disk.set(&DiskLook::default());
        assert_eq!(shown(), (0, 0, 0.0));
    }

    #[test]
    fn the_last_look_is_there_without_a_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let watch = DiskWatch::new("/".into());
            assert_eq!(watch.last(), None, "the first look is under way");
            let found = watch.look().await;
            assert!(found.is_some());
            assert_eq!(watch.last(), found);
        });
    }

    #[test]
    fn a_file_system_has_bytes_and_at_most_those_are_left() {
        let found = DiskLook::bytes_at(Path::new("/"));
        let (all, free) = found.expect("every machine has a root");
        assert!(all > 0 && free <= all, "{all} {free}");
        assert_eq!(DiskLook::bytes_at(Path::new("/proc/self/none")), None);
    }
}
