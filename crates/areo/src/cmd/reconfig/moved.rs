//! How a change gets on: what it has moved, and the bar that shows it.

use crate::units::show_size;
use areo_client::{Domain, Progress, Statistics};
use indicatif::ProgressBar;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was moved so far.
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

    /// Objects and bytes.
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
                // Objects that were created meanwhile come on top of what was planned.
                bar.set_length(bar.length().unwrap_or_default().max(objects));
                bar.set_position(objects);
                bar.set_message(format!("moving {}", show_size(bytes)));
                return;
            }
            Progress::Finalizing => "finalizing",
            Progress::Collecting => "collecting",
        };
        bar.set_message(word);
    }
}
