//! The progress of a change: the moved objects and bytes, and the bar that shows them.

use areo_client::units::show_size;
use areo_client::{Domain, Progress, ServerId, Statistics, Transferred};
use indicatif::ProgressBar;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The objects and bytes that were moved so far.
#[derive(Default)]
pub(in crate::cmd) struct TransferReport {
    objects: AtomicU64,
    bytes: AtomicU64,
    pub(super) cost: Arc<Statistics>,
}

impl TransferReport {
    /// The domain, and what will be moved through it.
    pub(super) fn measured(domain: &Domain) -> (Domain, Arc<TransferReport>) {
        let (domain, cost) = domain.measured();
        let moved = TransferReport {
            cost,
            ..TransferReport::default()
        };
        (domain, Arc::new(moved))
    }

    /// The sums of moved objects and bytes.
    pub(in crate::cmd) fn sums(&self) -> (u64, u64) {
        let sum = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (sum(&self.objects), sum(&self.bytes))
    }
}

/// Keeps the bar up to date.
pub(in crate::cmd) fn follow(
    bar: &ProgressBar,
    moved: &Arc<TransferReport>,
) -> impl Fn(Progress) + Send + 'static {
    let (bar, moved) = (bar.clone(), moved.clone());
    move |progress| {
        let word = match progress {
            Progress::Deciding => "deciding",
            // The next that is heard is of what has been moved.
            Progress::Announcing => "announced, moving",
            Progress::Transferring { objects, bytes } => {
                moved.objects.fetch_add(objects, Ordering::Relaxed);
                moved.bytes.fetch_add(bytes, Ordering::Relaxed);
                let (objects, bytes) = moved.sums();
                show_position(&bar, objects);
                bar.set_message(format!("moving {}", show_size(bytes)));
                return;
            }
            Progress::Finalizing => "finalizing",
            Progress::Collecting => "collecting",
            Progress::Waiting {
                leader,
                transferred,
            } => {
                show_position(&bar, transferred.objects);
                bar.set_message(waiting(leader, transferred));
                return;
            }
        };
        bar.set_message(word);
    }
}

fn show_position(bar: &ProgressBar, objects: u64) {
    // Objects that were created meanwhile come on top of what was planned.
    bar.set_length(bar.length().unwrap_or_default().max(objects));
    bar.set_position(objects);
}

/// The line about the leader that a change waits for.
fn waiting(leader: ServerId, transferred: Transferred) -> String {
    let Transferred { objects, bytes } = transferred;
    match objects + bytes {
        0 => format!("waiting for the leader, server {leader}"),
        _ => format!(
            "waiting for the leader, server {leader}, which has moved {objects} objects, {}",
            show_size(bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line: which server leads, and how far it is. Nothing of it counts as moved here.
    #[test]
    fn a_change_says_what_it_waits_for() {
        let (bar, moved) = (ProgressBar::hidden(), Arc::new(TransferReport::default()));
        bar.set_length(5);
        let step = follow(&bar, &moved);
        let mut seen = Vec::new();
        for (objects, bytes) in [(0, 0), (0, 1 << 20), (7, 3 << 20)] {
            let transferred = Transferred { objects, bytes };
            let leader = ServerId(0x2a);
            step(Progress::Waiting {
                leader,
                transferred,
            });
            seen.push((bar.message(), bar.position(), bar.length()));
        }
        let of_server = format!("waiting for the leader, server {}", ServerId(0x2a));
        let expected = [
            (of_server.clone(), 0, Some(5)),
            (
                format!("{of_server}, which has moved 0 objects, 1.0 MiB"),
                0,
                Some(5),
            ),
            (
                format!("{of_server}, which has moved 7 objects, 3.0 MiB"),
                7,
                Some(7),
            ),
        ];
        assert_eq!(seen, expected);
        assert_eq!(moved.sums(), (0, 0));
    }
}
