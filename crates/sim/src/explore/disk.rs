//! The disk of an explored server: memory that says what it keeps, and that may get full.

use areo_core::element::{Element, Handle};
use areo_core::server::record::Step;
use areo_core::shard::{Heap, LostRecord};
use areo_node::{Keep, Purpose};
use areo_store::records::MemoryRecords;
use areo_store::{MemoryDisk, ReserveError};
use areo_wire::record;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The records of an explored server, in memory.
#[derive(Default)]
pub(super) struct ExploredRecords {
    records: MemoryRecords,
    /// The header of each record, by its handle.
    headers: BTreeMap<u32, Vec<u8>>,
    /// No put has room any more, not even one that completes a version; what frees records has.
    is_full: Cell<bool>,
}

impl ExploredRecords {
    pub(super) fn fill(&self) {
        self.is_full.set(true);
    }

    /// Everything that the server would find again if it started now, except payloads: together with the server's
    /// answers this is its state. The handle of a record does not matter.
    pub(super) fn found_again(&self) -> Vec<u8> {
        let mut headers: Vec<&Vec<u8>> = self.headers.values().collect();
        headers.sort_unstable();
        let mut bytes = vec![u8::from(self.is_full.get())];
        for header in headers {
            bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
            bytes.extend_from_slice(header);
        }
        bytes
    }
}

impl Heap for ExploredRecords {
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, LostRecord> {
        self.records.element(handle, payload)
    }
}

impl Keep for ExploredRecords {
    type Disk = MemoryDisk;

    fn apply(&mut self, steps: Vec<Step>) {
        for step in &steps {
            match step {
                Step::Append { handle, header, .. } => {
                    let bytes = record::encode_header(header);
                    let before = self.headers.insert(handle.0, bytes);
                    assert_eq!(before, None, "a handle names one record");
                }
                Step::Free(handle) | Step::Bury { handle, .. } => {
                    let freed = self.headers.remove(&handle.0);
                    assert!(freed.is_some(), "only what is kept is freed, once");
                }
            }
        }
        self.records.apply(steps);
    }

    fn stored_bytes(&self) -> u64 {
        self.records.bytes()
    }

    fn reserve(&mut self, bytes: u64, purpose: Purpose) -> Result<(), ReserveError> {
        assert!(bytes > 0, "room is made for something");
        match purpose {
            Purpose::Write | Purpose::Complete if self.is_full.get() => Err(ReserveError::Full {
                needed_bytes: bytes,
            }),
            _ => Ok(()),
        }
    }
}
