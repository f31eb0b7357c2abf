//! How much room requests need in the store, and find there.

use super::{Job, Keep, Worker};
use crate::error::ServeError;
use areo_core::config::Configuration;
use areo_core::message::{Access, Announced, Body, CellRequest, Note, Request, ServerRecord};
use areo_core::pointer::Pointer;
use areo_core::shard::{completes, frees};
use areo_store::records::{Records, element_footprint, small_footprint};
use areo_store::{FileDisk, ReserveError};

/// What a job finds in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Room for all that it may ask for.
    Enough,
    /// No room for it, but for what the shard asks for anyway.
    ForReads,
    None,
}

impl Worker {
    /// Makes room on the disk for a batch of so many bytes with this job, if there is any. `None`: the store cannot go
    /// on, the server must stop.
    pub(super) fn room(&self, job: &Job, batch_bytes: u64, owed_bytes: u64) -> Option<Room> {
        let frees = || match job {
            Job::Request { request, .. } => frees(request),
            Job::Note(_) => true,
        };
        let completes = || match job {
            Job::Request { request, .. } => completes(request),
            Job::Note(_) => false,
        };
        if self.reserve(|records| records.reserve(batch_bytes))?
            || frees() && self.reserve(|records| records.reserve_to_free(batch_bytes))?
            || completes() && self.reserve(|records| records.reserve_to_complete(batch_bytes))?
        {
            return Some(Room::Enough);
        }
        // What changes nothing is still answered, unless the batch cannot be closed.
        Some(match self.has_room_for_owed(owed_bytes)? {
            true => Room::ForReads,
            false => Room::None,
        })
    }

    /// Whether there is room for what the shard asks for to let go of records. `None` as above.
    pub(super) fn has_room_for_owed(&self, bytes: u64) -> Option<bool> {
        match bytes {
            0 => Some(true),
            _ => self.reserve(|records| records.reserve_to_release(bytes)),
        }
    }

    fn reserve(
        &self,
        reserve: impl FnOnce(&mut Records<FileDisk>) -> Result<(), ReserveError>,
    ) -> Option<bool> {
        let reserved = match self.keep.borrow_mut().as_mut() {
            Some(Keep::Disk(records)) => reserve(records),
            Some(Keep::Memory(_)) | None => return Some(true),
        };
        match reserved {
            Ok(()) => Some(true),
            Err(ReserveError::Full { .. }) => Some(false),
            Err(error) => {
                self.fail(ServeError::Reserve(error));
                None
            }
        }
    }

    /// What the next batch takes even if nobody asks for anything.
    pub(super) fn owed_bytes(&self) -> u64 {
        Records::<FileDisk>::footprint(self.shard.borrow().owed())
    }
}

/// Space that handling the job may take in the store, in bytes, to within the slack.
pub(super) fn footprint(job: &Job) -> u64 {
    match job {
        Job::Note(Note::Confirm { name, .. }) => small_footprint(name.as_bytes().len()),
        Job::Note(Note::Decided { cell, value, .. }) => small_footprint(cell.len() + value.len()),
        // It only frees.
        Job::Note(Note::Forget { .. }) => 0,
        Job::Note(Note::Next { pointer, .. }) => pointer_footprint(Some(pointer)),
        Job::Request { request, .. } => match request {
            Request::Know(record) => record_footprint(record),
            Request::Directory | Request::Status => 0,
            Request::Latest { known, .. } => descriptor_footprint(known.as_deref()),
            Request::Configured {
                descriptor,
                pointer,
                body,
                ..
            } => {
                descriptor_footprint(descriptor.as_deref())
                    + pointer_footprint(pointer.as_ref())
                    + body_footprint(body)
            }
        },
    }
}

/// No more than a batch takes: what is larger is refused for its length when the server looks at it.
fn announced_bytes(announced: &Announced) -> usize {
    let bytes = announced.element_bytes.min(super::BATCH_BYTES);
    usize::try_from(bytes).expect("a batch fits into memory")
}

fn record_footprint(record: &ServerRecord) -> u64 {
    small_footprint(record.name.len() + record.address.len() + record.admin.len())
}

fn descriptor_footprint(descriptor: Option<&Configuration>) -> u64 {
    descriptor.map_or(0, |descriptor| small_footprint(descriptor.encoded().len()))
}

/// Recorded for the configuration, and for its domain.
fn pointer_footprint(pointer: Option<&Pointer>) -> u64 {
    2 * descriptor_footprint(pointer.map(|pointer| &*pointer.configuration))
}

fn body_footprint(body: &Body) -> u64 {
    match body {
        Body::Access(accesses) => accesses
            .iter()
            .map(|(name, access)| match access {
                Access::Put { element, .. } | Access::Keep { element, .. } => element_footprint(
                    name.as_bytes().len(),
                    element.metadata.len(),
                    element.payload.len(),
                ),
                Access::Query { announced, .. } => announced.as_ref().map_or(0, |announced| {
                    element_footprint(name.as_bytes().len(), 0, announced_bytes(announced))
                }),
                Access::Fence { .. } | Access::Drop(_) => small_footprint(name.as_bytes().len()),
                Access::Fetch { .. } | Access::Adopt(_) => 0,
            })
            .sum(),
        Body::Cell { cell, step } => match step {
            CellRequest::Accept { value, .. } => small_footprint(cell.len() + value.len()),
            // What was accepted before is recorded again with the promise.
            CellRequest::Prepare { .. } => {
                small_footprint(cell.len() + areo_core::limits::CELL_BYTES)
            }
            CellRequest::Query => 0,
        },
        Body::Register { record, .. } => record_footprint(record),
        Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => 0,
    }
}
