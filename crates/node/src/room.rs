//! The room that requests need in the store, in bytes: for each request enough for its records.

use areo_core::config::Configuration;
use areo_core::limits::{self, CELL_BYTES};
use areo_core::message::{Access, Body, CellRequest, Note, Refusal, Request, ServerRecord};
use areo_core::pointer::Pointer;
use areo_store::ReserveError;
use areo_store::records::{element_footprint, small_footprint};

/// Bytes of the record of a ranked register, but for its name: of each version two tags and its ancestors.
const REGISTER_BYTES: usize = (limits::RANKED_VERSIONS + 1) * (64 + 40 * (limits::ANCESTORS + 1));

/// The room in the store for a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// Room for all that it may ask for.
    Enough,
    /// There is no room for it for this reason, but there is for the shard's own records.
    ForReads(Refusal),
    None(Refusal),
}

/// The refusal of a request for which no room was made. An error that ends the node is given back.
pub(crate) fn lack(reserved: Result<(), ReserveError>) -> Result<Option<Refusal>, ReserveError> {
    match reserved {
        Ok(()) => Ok(None),
        Err(ReserveError::Full { .. }) => Ok(Some(Refusal::Full)),
        Err(ReserveError::Exhausted { .. }) => Ok(Some(Refusal::Exhausted)),
        Err(error) => Err(error),
    }
}

pub(crate) fn of_note(note: &Note) -> u64 {
    match note {
        Note::Confirm { name, .. } => small_footprint(name.as_bytes().len()),
        Note::Chosen { name, .. } => of_register(name.as_bytes().len()),
        Note::Decided { cell, value, .. } => small_footprint(cell.len() + value.len()),
        Note::Gossip(gossip) => {
            let names = gossip.objects.iter().map(|(name, _)| name.as_bytes().len());
            names.map(small_footprint).sum()
        }
        // The one only frees; of the other what is agreed on is carried out by the tick.
        Note::Forget { .. } | Note::Restart(_) => 0,
        Note::Serving(record) => of_record(record),
        Note::Next { pointer, .. } => of_pointer(pointer),
    }
}

/// Room for an element of this many bytes that is recorded anew, for an object with a name of this length.
pub(crate) fn of_renamed((name_bytes, bytes): (usize, u64)) -> u64 {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    element_footprint(name_bytes, limits::METADATA_BYTES, bytes)
}

/// An element that is announced counts for `announced_limit` at most: a larger one is refused for its length when the server
/// looks at it.
pub(crate) fn of_request(request: &Request, announced_limit: u64) -> u64 {
    match request {
        Request::Know(record) => of_record(record),
        Request::Directory | Request::Status | Request::View => 0,
        Request::Latest { known, .. } => of_descriptor(known.as_deref()),
        Request::Configured {
            descriptor,
            successors,
            body,
            ..
        } => {
            of_descriptor(descriptor.as_deref())
                + successors.iter().map(of_pointer).sum::<u64>()
                + of_body(body, announced_limit)
        }
    }
}

fn of_record(record: &ServerRecord) -> u64 {
    small_footprint(record.name.len() + record.address.len() + record.admin.len())
}

fn of_descriptor(descriptor: Option<&Configuration>) -> u64 {
    descriptor.map_or(0, |descriptor| small_footprint(descriptor.encoded().len()))
}

/// Recorded for the configuration, and for its domain.
fn of_pointer(pointer: &Pointer) -> u64 {
    2 * of_descriptor(Some(&pointer.configuration))
}

fn of_body(body: &Body, announced_limit: u64) -> u64 {
    match body {
        Body::Access(accesses) => accesses
            .iter()
            .map(|(name, access)| of_access(name.as_bytes().len(), access, announced_limit))
            .sum(),
        Body::Cell { cell, step } => match step {
            CellRequest::Accept { value, .. } => small_footprint(cell.len() + value.len()),
            // What was accepted before is recorded again with the promise, or with what is joined to it.
            CellRequest::Prepare { .. } | CellRequest::Join(_) => {
                small_footprint(cell.len() + CELL_BYTES)
            }
            CellRequest::Query => 0,
        },
        Body::Register { record, .. } => of_record(record),
        Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => 0,
    }
}

/// The largest footprint of a ranked register's record.
fn of_register(name_bytes: usize) -> u64 {
    small_footprint(name_bytes + REGISTER_BYTES)
}

fn of_access(name_bytes: usize, access: &Access, announced_limit: u64) -> u64 {
    match access {
        Access::Put { element, .. } | Access::Keep { element, .. } => {
            element_footprint(name_bytes, element.metadata.len(), element.payload.len())
        }
        Access::Query { announced, .. } => announced.as_ref().map_or(0, |announced| {
            let bytes = announced.element_bytes.min(announced_limit);
            let bytes = usize::try_from(bytes).expect("a batch fits into memory");
            element_footprint(name_bytes, 0, bytes)
        }),
        Access::Accept(proposal) => {
            let element = proposal.element.as_ref().map_or(0, |element| {
                element_footprint(name_bytes, element.metadata.len(), element.payload.len())
            });
            element + of_register(name_bytes)
        }
        Access::Rank {
            ballot: Some(_), ..
        } => of_register(name_bytes),
        Access::Fence { .. } | Access::Drop(_) | Access::Finalize { .. } => {
            small_footprint(name_bytes)
        }
        Access::Rank { .. } | Access::Fetch { .. } | Access::Adopt(_) => 0,
    }
}
