//! What the server's own repair, and the verification of its records, found and did.

use super::{Adding, raise, whole};
use areo_core::manager::repair::Round;
use prometheus::{IntCounter, IntGauge, IntGaugeVec};
use std::time::Duration;

/// What the server's own repair found and did.
pub(super) struct Repair {
    below: IntGaugeVec,
    objects: IntCounter,
    bytes: IntCounter,
}

impl Repair {
    pub(super) fn new(add: &Adding<'_>) -> Repair {
        Repair {
            below: add.gauges(
                "areo_domain_objects_below_redundancy",
                "Objects of the domain that this server lacked when it last went over them.",
                &["domain"],
            ),
            objects: add.counter(
                "areo_repair_objects_total",
                "Objects of which this server brought itself its element.",
            ),
            bytes: add.counter(
                "areo_repair_read_bytes_total",
                "Bytes of those objects, which it read from the others.",
            ),
        }
    }

    pub(super) fn add(&self, round: &Round) {
        // Domains that are gone, or that the server has left, are shown no more.
        if round.is_whole {
            self.below.reset();
        }
        for domain in &round.domains {
            let below = self.below.with_label_values(&[&domain.domain]);
            below.set(whole(domain.lacking));
            self.objects.inc_by(domain.repaired);
            self.bytes.inc_by(domain.bytes);
        }
    }
}

/// What was verified.
pub(super) struct Scrub {
    bytes: IntCounter,
    oldest_seconds: IntGauge,
}

impl Scrub {
    pub(super) fn new(add: &Adding<'_>) -> Scrub {
        Scrub {
            bytes: add.counter(
                "areo_store_scrubbed_bytes_total",
                "Bytes of records that were verified without being asked for.",
            ),
            oldest_seconds: add.gauge(
                "areo_store_oldest_unscrubbed_seconds",
                "The longest time, at most, since a record was verified; -1: not all were since the start.",
            ),
        }
    }

    pub(super) fn set(&self, (bytes, oldest): (u64, Option<Duration>)) {
        raise(&self.bytes, bytes);
        let seconds = oldest.map(|oldest| whole(oldest.as_secs()));
        self.oldest_seconds.set(seconds.unwrap_or(-1));
    }
}
