//! Answers for callers of the metrics.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use areo_core::message::ServerStatus;
use areo_net::Tls;
use areo_net::listener::Listener;
use areo_telemetry::Recorder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::admin::Door;
use crate::metrics::{DiskLook, DiskWatch, ExternalMetrics, Metrics};
use crate::service::NodeService;
use crate::worker::Worker;

/// The longest wait for the status of the node and for the file system. Both may wait for a disk that has stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers each caller of the metrics. While the disk has stopped, callers get the last status of the node, and the age of the sync that does not end. One
/// request to the node and one to the file system wait for the disk then, however many callers there are.
pub(super) async fn answer(
    mut callers: mpsc::Receiver<oneshot::Sender<String>>,
    (metrics, recorder): (Arc<Metrics>, Recorder),
    (worker, disk): (Rc<Worker>, Rc<DiskWatch>),
    (listener, door, tls): (Rc<Listener<NodeService>>, Rc<Door>, Option<Tls>),
) {
    let (mut status, mut waiting) = (ServerStatus::default(), 0);
    let mut asking = None;
    while let Some(caller) = callers.recv().await {
        if caller.is_closed() {
            continue;
        }
        let node = asking.get_or_insert_with(|| Box::pin(worker.status()));
        let (found, room) = tokio::join!(timeout(PATIENCE, node), timeout(PATIENCE, disk.look()));
        if let Ok(found) = found {
            asking = None;
            let Some(found) = found else { continue };
            (status, waiting) = found;
        }
        let text = metrics.text(&ExternalMetrics {
            status: status.clone(),
            waiting,
            disk: DiskLook {
                bytes: room.ok().flatten(),
                syncing: worker.syncing(),
            },
            scrubbed: worker.scrubbed(),
            callers: listener.counts(),
            administrators: (door.open(), door.displaced()),
            traffic: listener.traffic(),
            exported: recorder.exported(),
            certificate: tls.as_ref().and_then(Tls::expires_seconds),
        });
        // The caller may be gone.
        let _ = caller.send(text);
    }
}
