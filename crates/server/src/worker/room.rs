//! How much room requests need in the store.

use super::Job;
use areo_core::config::Configuration;
use areo_core::message::{Access, Body, CellRequest, Note, Request, ServerRecord};
use areo_core::pointer::Pointer;
use areo_store::records::{element_footprint, small_footprint};

/// Space that handling the job may take in the store, in bytes, to within the slack.
pub(super) fn footprint(job: &Job) -> u64 {
    match job {
        Job::Note(Note::Confirm { name, .. }) => small_footprint(name.as_bytes().len()),
        Job::Note(Note::Decided { cell, value, .. }) => small_footprint(cell.len() + value.len()),
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
                Access::Put { element, .. } => element_footprint(
                    name.as_bytes().len(),
                    element.metadata.len(),
                    element.payload.len(),
                ),
                Access::Query { .. } | Access::Fetch { .. } | Access::Adopt(_) => 0,
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
        Body::Register(record) => record_footprint(record),
        Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => 0,
    }
}
