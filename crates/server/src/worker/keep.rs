//! Where a server keeps its records.

use areo_core::element::{Element, Handle};
use areo_core::server::record::Step;
use areo_core::shard::{Heap, Lost};
use areo_node::Keep;
use areo_store::FileDisk;
use areo_store::records::{MemoryRecords, Records};

/// Where the records are, as `--durability` says.
pub(crate) enum Durable {
    Disk(Box<Records<FileDisk>>),
    Memory(MemoryRecords),
}

impl Heap for Durable {
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, Lost> {
        match self {
            Durable::Disk(records) => records.element(handle, payload),
            Durable::Memory(records) => records.element(handle, payload),
        }
    }
}

impl Keep for Durable {
    type Disk = FileDisk;

    fn log(&self) -> Option<&Records<FileDisk>> {
        match self {
            Durable::Disk(records) => Some(records),
            Durable::Memory(_) => None,
        }
    }

    fn log_mut(&mut self) -> Option<&mut Records<FileDisk>> {
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

    fn stored_bytes(&self) -> u64 {
        match self {
            Durable::Disk(records) => records.stored_bytes(),
            Durable::Memory(records) => records.bytes(),
        }
    }
}
