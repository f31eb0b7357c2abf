//! One error per operation of the log.

use std::{error, fmt, io};

/// Why a log could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// A file was written by another version of this format.
    UnsupportedVersion {
        /// The file.
        name: String,
        /// Its version.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// A segment belongs to another store: a file was copied here by mistake.
    ForeignSegment {
        /// The file.
        name: String,
        /// The store that it belongs to.
        found: u64,
        /// The store that is being opened.
        expected: u64,
    },
    /// A segment has the name of another one: files were renamed.
    MisnamedSegment {
        /// The file.
        name: String,
        /// The number that its first page gives.
        number: u64,
    },
    /// The disk refused.
    Io {
        /// What was being done.
        operation: &'static str,
        /// The file, empty for the directory.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why space could not be reserved.
#[derive(Debug)]
pub enum ReserveError {
    /// There is no space; nothing has changed. Free records and call [`crate::Log::step`].
    Full {
        /// The bytes that were asked for.
        needed_bytes: u64,
    },
    /// An earlier write or sync failed; the log must be opened again.
    Poisoned,
    /// The disk refused for another reason.
    Io {
        /// The error of the system.
        source: io::Error,
    },
}

/// Why a batch is not known to be durable. The log is poisoned.
#[derive(Debug)]
pub enum CommitError {
    /// Records were appended without [`crate::Log::reserve`] and did not fit on the disk, or this or another write or
    /// sync failed before.
    Poisoned,
    /// Writing failed.
    Write {
        /// The number of the segment.
        segment: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// Making durable failed.
    Sync {
        /// The number of the segment.
        segment: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// There was no space for the seal; the log is not poisoned.
    Full,
}

/// Why a record could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The handle names no live record (it was freed).
    Unknown,
    /// The bytes on disk do not match their checksum: abstain, do not call it missing `[X-11 damage-abstains]`.
    Damaged {
        /// The number of the segment.
        segment: u64,
        /// Where the record begins in its segment.
        offset: u64,
    },
    /// The disk refused.
    Io {
        /// The number of the segment.
        segment: u64,
        /// Where the record begins in its segment.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// An earlier write or sync failed; the log must be opened again.
    Poisoned,
}

/// Why a step of housekeeping failed. Unless it is `Poisoned`, it may be called again.
#[derive(Debug)]
pub enum StepError {
    /// An earlier write or sync failed; the log must be opened again.
    Poisoned,
    /// The disk refused.
    Io {
        /// What was being done.
        operation: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

const POISONED: &str = "an earlier write or sync failed; the log must be opened again";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedVersion {
                name,
                found,
                supported,
            } => write!(
                f,
                "{name} has format version {found}, this program knows version {supported}: use the program that wrote it, or a newer one"
            ),
            Self::ForeignSegment {
                name,
                found,
                expected,
            } => write!(
                f,
                "{name} belongs to store {found:016x}, not to store {expected:016x}"
            ),
            Self::MisnamedSegment { name, number } => {
                write!(f, "{name} is segment {number:016x} under another name")
            }
            Self::Io {
                operation,
                name,
                source,
            } => write!(f, "{operation} {name}: {source}"),
        }
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { needed_bytes } => {
                write!(f, "the disk is full: {needed_bytes} bytes do not fit")
            }
            Self::Poisoned => f.write_str(POISONED),
            Self::Io { source } => write!(f, "preparing a segment: {source}"),
        }
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned => f.write_str(POISONED),
            Self::Write { segment, source } => {
                write!(f, "writing segment {segment:016x}: {source}")
            }
            Self::Sync { segment, source } => write!(f, "syncing segment {segment:016x}: {source}"),
            Self::Full => f.write_str("the disk is full: there is no space for a seal"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the record was freed"),
            Self::Damaged { segment, offset } => {
                write!(
                    f,
                    "the record at {offset} of segment {segment:016x} is damaged"
                )
            }
            Self::Io {
                segment,
                offset,
                source,
            } => write!(
                f,
                "reading the record at {offset} of segment {segment:016x}: {source}"
            ),
            Self::Poisoned => f.write_str(POISONED),
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned => f.write_str(POISONED),
            Self::Io { operation, source } => write!(f, "{operation}: {source}"),
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl error::Error for ReserveError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source } => Some(source),
            _ => None,
        }
    }
}

impl error::Error for CommitError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Write { source, .. } | Self::Sync { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl error::Error for ReadError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl error::Error for StepError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Poisoned => None,
        }
    }
}
