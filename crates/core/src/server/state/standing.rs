//! What a server's status says about a configuration.

use super::ConfigurationState;
use crate::instant::Instant;
use crate::limits;
use crate::message::ServerStatus;
use crate::server::restarting::Restarting;
use std::collections::BTreeSet;

impl ConfigurationState {
    pub(in crate::server) fn count(&self, now: Instant, status: &mut ServerStatus) {
        if self.next.iter().any(|next| !next.is_final()) {
            let age = now.since(self.next_since).as_millis();
            status.pending += 1;
            status.pending_ms = status
                .pending_ms
                .max(u64::try_from(age).unwrap_or(u64::MAX));
        }
        status.objects += self.objects.len() as u64;
        for versions in self.objects.values() {
            status.versions += versions.stored().len() as u64;
            status.element_bytes += versions
                .stored()
                .iter()
                .map(|stored| stored.bytes)
                .sum::<u64>();
            status.damaged += u64::from(versions.damaged().is_some());
        }
        self.count_waits(now, status);
    }

    /// Members for which it waits to restart objects.
    fn count_waits(&self, now: Instant, status: &mut ServerStatus) {
        let Some(c) = self.configuration() else {
            return;
        };
        let silent = self.restarting().into_iter();
        let silent = silent.flat_map(|it: &Restarting| it.waits_for(now));
        let domain = c.id().domain;
        let waits = silent.map(|at| (domain, c.members()[at]));
        let known: BTreeSet<_> = status.waits.drain(..).chain(waits).collect();
        status.waits = known.into_iter().take(limits::STANDINGS).collect();
    }
}
