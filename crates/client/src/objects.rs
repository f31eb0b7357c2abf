//! Objects of a domain: written, read, deleted, listed.

// First, so that the page of `Domain` begins with what is used first.
mod basic;

pub(crate) mod conditional;
mod coverable;
mod documents;
mod many;
mod placement;
mod records;

pub use records::{RecordEntry, RecordName, RecordPage, RecordsAfter};
