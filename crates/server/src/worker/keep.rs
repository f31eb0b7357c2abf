//! Where a server keeps its records.

use areo_core::element::{Element, Handle};
use areo_core::shard::{Heap, Lost};
use areo_store::FileDisk;
use areo_store::records::{MemoryRecords, Records};

/// Where the records are.
pub(crate) enum Keep {
    Disk(Box<Records<FileDisk>>),
    Memory(MemoryRecords),
}

impl Heap for Keep {
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, Lost> {
        match self {
            Keep::Disk(records) => records.element(handle, payload),
            Keep::Memory(records) => records.element(handle, payload),
        }
    }
}

impl Keep {
    /// Bytes that were written and not reclaimed; space that is only set aside is not counted.
    pub(crate) fn stored_bytes(&self) -> u64 {
        match self {
            Keep::Disk(records) => {
                let usage = records.usage();
                usage.live_bytes + usage.dead_bytes
            }
            Keep::Memory(records) => records.bytes(),
        }
    }
}
