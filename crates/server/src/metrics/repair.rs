//! The findings and results of the server's own repair, and of the verification of its records.

use super::{Adding, raise, whole};
use areo_core::manager::repair::{Checks, Round};
use prometheus::{IntCounter, IntGauge, IntGaugeVec};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// The metrics of the server's own repair.
pub(super) struct Repair {
    below: IntGaugeVec,
    oldest_seconds: IntGaugeVec,
    /// The domains that the server has gone over.
    domains: Mutex<BTreeSet<String>>,
    objects: IntCounter,
    /// Counters by result of the check.
    checks: [IntCounter; 4],
    bytes: IntCounter,
}

impl Repair {
    pub(super) fn new(add: &Adding<'_>) -> Repair {
        let checks = add.counters(
            "areo_repair_cross_checks_total",
            "Objects whose elements this server compared with each other.",
            &["outcome"],
        );
        Repair {
            below: add.gauges(
                "areo_domain_objects_below_redundancy",
                "Objects of the domain that this server lacked when it last went over them.",
                &["domain"],
            ),
            oldest_seconds: add.gauges(
                "areo_domain_oldest_unscrubbed_seconds",
                "The longest time, at most, since this server verified a record of the domain; -1: not known.",
                &["domain"],
            ),
            domains: Mutex::default(),
            checks: ["sound", "differing", "contradicting", "too_few"]
                .map(|outcome| checks.with_label_values(&[outcome])),
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
        let mut domains = self.domains.lock().expect("no holder panics");
        if round.is_whole {
            self.below.reset();
            self.oldest_seconds.reset();
            domains.clear();
        }
        for domain in &round.domains {
            domains.insert(domain.domain.clone());
            let below = self.below.with_label_values(&[&domain.domain]);
            below.set(whole(domain.lacking));
            self.objects.inc_by(domain.repaired);
            self.bytes.inc_by(domain.bytes);
            let Checks {
                sound,
                differing,
                contradicting,
                too_few,
            } = domain.checks;
            let counts = [sound, differing, contradicting, too_few];
            for (counter, count) in self.checks.iter().zip(counts) {
                counter.inc_by(count);
            }
        }
    }

    /// Verification goes over the records of all domains, so that its age is that of each.
    pub(super) fn set_oldest(&self, oldest: Option<Duration>) {
        for domain in &*self.domains.lock().expect("no holder panics") {
            let gauge = self.oldest_seconds.with_label_values(&[domain]);
            gauge.set(seconds_of(oldest));
        }
    }
}

/// The metrics of verification.
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
                "The longest time, at most, since a record was verified; -1: it is not known that all were.",
            ),
        }
    }

    pub(super) fn set(&self, (bytes, oldest): (u64, Option<Duration>)) {
        raise(&self.bytes, bytes);
        self.oldest_seconds.set(seconds_of(oldest));
    }
}

/// -1: it is not known.
fn seconds_of(oldest: Option<Duration>) -> i64 {
    oldest.map_or(-1, |oldest| whole(oldest.as_secs()))
}
