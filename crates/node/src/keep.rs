//! The store of a node's records.

use areo_core::element::{Element, Handle};
use areo_core::server::record::Step;
use areo_core::shard::{Heap, LostRecord};
use areo_core::starts::Starts;
use areo_store::records::{MemoryRecords, Records};
use areo_store::{CloseError, Disk, MemoryDisk, ReserveError};

/// The purpose that room is wanted for. A disk that gets full has room for the later ones of this list for longer, so that it can be emptied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Room for the records of a request.
    Write,
    /// For a version that other servers hold (`core::shard::catches_up`).
    Complete,
    /// For a request that drops more than it records (`core::shard::frees`).
    Free,
    /// For the shard itself, to drop records.
    Release,
}

/// The place of a node's records: a log on a disk, or memory.
pub trait Keep: Heap {
    /// The disk that the records are on.
    type Disk: Disk;

    /// The log. What is not kept in one is as durable as it will ever be, and needs no housekeeping.
    fn log(&self) -> Option<&Records<Self::Disk>> {
        None
    }

    /// The log, to be changed.
    fn log_mut(&mut self) -> Option<&mut Records<Self::Disk>> {
        None
    }

    /// Puts the steps into the open batch.
    fn apply(&mut self, steps: Vec<Step>);

    /// True if a start may find a record again that was buried under this number ([`Step::Bury`]).
    fn may_return(&self, _grave: u64) -> bool {
        false
    }

    /// Bytes that are taken; space that is only set aside is not counted.
    fn stored_bytes(&self) -> u64;

    /// Makes sure that the next batch has room for this number of bytes.
    ///
    /// # Errors
    /// [`ReserveError`].
    fn reserve(&mut self, bytes: u64, purpose: Purpose) -> Result<(), ReserveError> {
        assert!(bytes > 0, "room is made for something");
        let Some(log) = self.log_mut() else {
            return Ok(());
        };
        match purpose {
            Purpose::Write => log.reserve(bytes),
            Purpose::Complete => log.reserve_to_complete(bytes),
            Purpose::Free => log.reserve_to_free(bytes),
            Purpose::Release => log.reserve_to_release(bytes),
        }
    }
}

impl<D: Disk> Keep for Records<D> {
    type Disk = D;

    fn log(&self) -> Option<&Records<D>> {
        Some(self)
    }

    fn log_mut(&mut self) -> Option<&mut Records<D>> {
        Some(self)
    }

    fn apply(&mut self, steps: Vec<Step>) {
        Records::apply(self, steps);
    }

    fn may_return(&self, grave: u64) -> bool {
        Records::may_return(self, grave)
    }

    fn stored_bytes(&self) -> u64 {
        let usage = self.usage();
        usage.live_bytes + usage.dead_bytes
    }
}

impl Keep for MemoryRecords {
    type Disk = MemoryDisk;

    fn apply(&mut self, steps: Vec<Step>) {
        MemoryRecords::apply(self, steps);
    }

    fn stored_bytes(&self) -> u64 {
        self.bytes()
    }
}

/// The records of a server, as its durability says.
pub enum Durable<D: Disk> {
    /// In a log on a disk.
    Disk(Box<Records<D>>),
    /// In the memory of the process.
    Memory(MemoryRecords),
}

/// True if a process may start in a directory with these starts. A server without a disk starts once: its next process would be
/// counted in quorums for versions that it no longer has (`[X-12 memory-identity]`).
pub fn may_start(in_memory: bool, starts: Starts) -> bool {
    !in_memory || starts == Starts::NONE
}

/// True if the register may replace this server by a later one at its address (`[X-28 memory-replaced]`): no other process will
/// ever have its id, because its process drew that, and keeps nothing on a disk.
pub fn may_be_replaced(in_memory: bool, is_drawn_by_process: bool) -> bool {
    in_memory && is_drawn_by_process
}

impl<D: Disk> Durable<D> {
    /// Closes the log, so that the next opening need not search its end.
    ///
    /// # Errors
    /// [`CloseError`].
    pub fn close(self) -> Result<(), CloseError> {
        match self {
            Durable::Disk(records) => records.close(),
            Durable::Memory(_) => Ok(()),
        }
    }
}

impl<D: Disk> Heap for Durable<D> {
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, LostRecord> {
        match self {
            Durable::Disk(records) => records.element(handle, payload),
            Durable::Memory(records) => records.element(handle, payload),
        }
    }
}

impl<D: Disk> Keep for Durable<D> {
    type Disk = D;

    fn log(&self) -> Option<&Records<D>> {
        match self {
            Durable::Disk(records) => Some(records),
            Durable::Memory(_) => None,
        }
    }

    fn log_mut(&mut self) -> Option<&mut Records<D>> {
        match self {
            Durable::Disk(records) => Some(records),
            Durable::Memory(_) => None,
        }
    }

    fn apply(&mut self, steps: Vec<Step>) {
        match self {
            Durable::Disk(records) => records.apply(steps),
            Durable::Memory(records) => records.apply(steps),
        }
    }

    fn may_return(&self, grave: u64) -> bool {
        match self {
            Durable::Disk(records) => Keep::may_return(&**records, grave),
            Durable::Memory(records) => Keep::may_return(records, grave),
        }
    }

    fn stored_bytes(&self) -> u64 {
        match self {
            Durable::Disk(records) => Keep::stored_bytes(&**records),
            Durable::Memory(records) => records.bytes(),
        }
    }
}
