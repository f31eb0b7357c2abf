//! The part of a server's status about a configuration.

use super::ConfigurationState;
use crate::instant::Instant;
use crate::limits;
use crate::message::ServerStatus;
use crate::object::Kind;
use crate::server::restarting::Restarting;
use std::collections::BTreeSet;

/// The first byte of the names of users' objects.
const USER: u8 = Kind::User as u8;

/// Counts of a server's objects, and of its holdings.
#[derive(Clone, Copy, Default)]
pub(in crate::server) struct ObjectCounts {
    /// Number of objects, tombstones included.
    pub(in crate::server) objects: u64,
    /// Versions held of them.
    pub(in crate::server) versions: u64,
    /// Bytes of the elements held.
    pub(in crate::server) element_bytes: u64,
    /// Objects that wait for repair.
    pub(in crate::server) damaged: u64,
    /// Users' objects of which the newest version is a tombstone.
    pub(in crate::server) tombstones: u64,
}

impl ConfigurationState {
    pub(in crate::server) fn count(&self, now: Instant, status: &mut ServerStatus) {
        if self.next.iter().any(|next| !next.is_final()) {
            let age = now.since(self.next_since).as_millis();
            status.pending += 1;
            status.pending_ms = status
                .pending_ms
                .max(u64::try_from(age).unwrap_or(u64::MAX));
        }
        self.count_waits(now, status);
    }

    pub(in crate::server) fn count_objects(&self, counts: &mut ObjectCounts) {
        counts.objects += self.objects.len() as u64;
        for (name, versions) in &self.objects {
            let stored = versions.stored();
            counts.versions += stored.len() as u64;
            counts.element_bytes += stored.iter().map(|stored| stored.bytes).sum::<u64>();
            counts.damaged += u64::from(versions.damaged().is_some());
            let is_deleted = stored.last().is_some_and(|newest| newest.deleted);
            counts.tombstones += u64::from(is_deleted && name.first() == Some(&USER));
        }
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
