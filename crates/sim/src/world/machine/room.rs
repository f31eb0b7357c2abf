//! Room in the store of a server: as `server` asks for it.

use super::{Job, Live};
use areo_core::shard::{completes, frees};
use areo_store::records::Records;
use areo_store::{MemoryDisk, ReserveError};

/// Whether the shard's batch is part of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// It is, with the replies that wait for it.
    Closes,
    /// The store commits what it does for itself.
    Open,
}

/// What a job finds in the store.
pub(super) enum Room {
    Enough,
    /// None for it, but for what the shard asks for anyway.
    ForReads,
    None,
}

impl Live {
    /// As in `server`: a full disk has room for what frees some, and what changes nothing is still read, unless the
    /// batch cannot be closed.
    pub(super) fn room(&mut self, job: &Job, bytes: u64, owed: u64) -> Result<Room, ReserveError> {
        let frees = || match job {
            Job::Request(_, _, request, ..) => frees(request),
            Job::Note(_) => true,
        };
        let completes = || match job {
            Job::Request(_, _, request, ..) => completes(request),
            Job::Note(_) => false,
        };
        if has_room(self.records.reserve(bytes))?
            || frees() && has_room(self.records.reserve_to_free(bytes))?
            || completes() && has_room(self.records.reserve_to_complete(bytes))?
        {
            return Ok(Room::Enough);
        }
        Ok(match self.has_room_for_owed(owed)? {
            true => Room::ForReads,
            false => Room::None,
        })
    }

    pub(super) fn has_room_for_owed(&mut self, owed: u64) -> Result<bool, ReserveError> {
        if owed == 0 {
            return Ok(true);
        }
        has_room(self.records.reserve_to_release(owed))
    }

    /// Whether there is room to close the shard's batch although nobody asked for anything.
    pub(super) fn batch(&mut self) -> Result<Batch, ReserveError> {
        let owed = self.owed();
        Ok(match self.has_room_for_owed(owed)? {
            true => Batch::Closes,
            false => Batch::Open,
        })
    }

    pub(super) fn owed(&self) -> u64 {
        Records::<MemoryDisk>::footprint(self.shard.owed())
    }
}

fn has_room(reserved: Result<(), ReserveError>) -> Result<bool, ReserveError> {
    match reserved {
        Ok(()) => Ok(true),
        Err(ReserveError::Full { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
