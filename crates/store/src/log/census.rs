//! The segments that must be there, and their content: demanded by the censuses that were found, and by the file beside the log.

use std::collections::BTreeSet;

use crate::disk::Disk;
use crate::format::Census;
use crate::index::Handle;

use super::open::Opener;

/// The largest number of missing segments that are remembered by their numbers.
const MOST_MISSING: usize = 32;

impl<D: Disk> Opener<'_, D> {
    fn census(&self, handle: Handle, header: &[u8]) -> Option<Census> {
        let payload = self.log.read_payload(handle).ok()?;
        Census::decode(header, &payload)
    }

    /// Takes over the demands of every census: they stay true when a newer census comes.
    pub(super) fn require_census(&mut self) {
        let censuses = std::mem::take(&mut self.censuses);
        for (handle, header) in &censuses {
            let census = self.census(*handle, header);
            for entry in census.into_iter().flat_map(|census| census.entries) {
                self.require(entry.number, entry.last_sequence);
            }
        }
        self.censuses = censuses;
    }

    /// Compares the segments that are there with those that must be.
    pub(super) fn take_census(&mut self) {
        let mut newest: Option<(Census, Handle)> = None;
        for (handle, header) in std::mem::take(&mut self.censuses) {
            let census = self.census(handle, &header);
            let mut outdated = Some(handle);
            if let Some(census) = census
                && newest
                    .as_ref()
                    .is_none_or(|n| n.0.generation < census.generation)
            {
                outdated = newest.replace((census, handle)).map(|older| older.1);
            }
            // Damaged or older ones say nothing that counts: without them more segments must be there, never fewer.
            if let Some(handle) = outdated {
                self.log.free(handle);
            }
        }
        let there: BTreeSet<u64> = self.log.segments.iter().map(|(_, s)| s.number).collect();
        let mut horizon = 0;
        if let Some((census, handle)) = newest {
            horizon = census.horizon;
            self.log.census_generation = census.generation;
            let listed: BTreeSet<u64> = census.entries.iter().map(|it| it.number).collect();
            self.log.missing = listed.difference(&there).copied().collect();
            // One that was to be removed and is still there counts again, since its records do.
            self.log.census_due = there.iter().any(|n| *n <= horizon && !listed.contains(n));
            self.log.census = Some(handle);
        }
        assert_eq!(
            self.log.internal,
            self.log.census.is_some().into(),
            "one census is kept"
        );
        let last = there.last().copied().unwrap_or(0);
        let last = last.max(self.log.extents.last_number());
        let newer = (horizon + 1..=last).filter(|n| !there.contains(n));
        self.log.missing.extend(newer.take(MOST_MISSING));
        if self.log.missing.len() >= MOST_MISSING && self.log.extent() > 0 {
            // Too many to be listed in every census from now on.
            self.log.extents.note_loss();
            self.log.census_due = true;
            self.report.missing_segments = std::mem::take(&mut self.log.missing);
            self.report.unknown_damaged += MOST_MISSING as u64;
        }
        self.log.segments.next_number = last.max(horizon) + 1;
        self.report.missing_segments.extend(&self.log.missing);
        self.report.unknown_damaged += self.log.missing.len() as u64;
    }
}
