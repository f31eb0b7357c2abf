//! One error per operation of the log.

use std::io;

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file was written by another version of this format.
    #[error(
        "{name} has format version {found}, this program knows version {supported}: use the program that wrote it, or a newer one"
    )]
    UnsupportedVersion {
        name: String,
        /// The version in the file.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// A segment belongs to another store: a file was copied here by mistake.
    #[error("{name} belongs to store {found:016x}, not to store {expected:016x}")]
    ForeignSegment {
        name: String,
        /// The store that it belongs to.
        found: u64,
        /// The store that is being opened.
        expected: u64,
    },
    /// A segment has the name of another one: files were renamed.
    #[error("{name} is segment {number:016x} under another name")]
    MisnamedSegment {
        name: String,
        /// The number that its first page gives.
        number: u64,
    },
    /// The disk refused an operation.
    #[error("{operation} {name}: {source}")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file, empty for the directory.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why space could not be reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// There is no space; nothing has changed. Free records and call [`crate::Log::step`].
    #[error("the disk is full: {needed_bytes} bytes do not fit")]
    Full {
        /// The bytes that were asked for.
        needed_bytes: u64,
    },
    /// The system has no descriptor or no memory for a segment, see [`crate::disk::may_pass`]; nothing has changed.
    #[error("preparing a segment: {source}")]
    Exhausted {
        /// The error of the system.
        source: io::Error,
    },
    /// An earlier write or sync failed; the log must be opened again.
    #[error("{}", POISONED)]
    Poisoned,
    /// The disk refused for another reason.
    #[error("preparing a segment: {source}")]
    Io {
        /// The error of the system.
        source: io::Error,
    },
}

/// Why a batch is not known to be durable. The log is poisoned.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Records were appended without [`crate::Log::reserve`] and did not fit on the disk, or this or another write or
    /// sync failed before.
    #[error("{}", POISONED)]
    Poisoned,
    /// A write to the segment failed.
    #[error("writing segment {segment:016x}: {source}")]
    Write {
        /// The number of the segment.
        segment: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A sync of the segment failed.
    #[error("syncing segment {segment:016x}: {source}")]
    Sync {
        /// The number of the segment.
        segment: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// There was no space for the seal; the log is not poisoned.
    #[error("the disk is full: there is no space for a seal")]
    Full,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The handle names no live record (it was freed).
    #[error("the record was freed")]
    Unknown,
    /// The bytes on disk do not match their checksum: abstain, do not call it missing `[X-11 damage-abstains]`.
    #[error("the record at {offset} of segment {segment:016x} is damaged")]
    Damaged {
        /// The number of the segment.
        segment: u64,
        /// The offset of the record in its segment.
        offset: u64,
    },
    /// The disk refused to read.
    #[error("reading the record at {offset} of segment {segment:016x}: {source}")]
    Io {
        /// The number of the segment.
        segment: u64,
        /// The offset of the record in its segment.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// An earlier write or sync failed; the log must be opened again.
    #[error("{}", POISONED)]
    Poisoned,
}

/// Why a step of housekeeping failed. Unless it is `Poisoned`, it may be called again. What the system lacks is no failure: the step
/// is left for later.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// An earlier write or sync failed; the log must be opened again.
    #[error("{}", POISONED)]
    Poisoned,
    /// The disk refused an operation.
    #[error("{operation}: {source}")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

const POISONED: &str = "an earlier write or sync failed; the log must be opened again";
