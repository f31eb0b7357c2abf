//! Requests that are refused before any server is asked.

use super::Error;
use crate::reconfig_kind::ReconfigKind;
use areo_core::limits;
use areo_core::manager::InvalidDomainName;
use areo_core::object::{InvalidKey, InvalidMetadata};
use areo_core::tag::Tag as Version;
use std::fmt;

/// The reason why an operation cannot be done at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The domain's name is none.
    DomainName {
        /// The reason why the name is refused.
        error: InvalidDomainName,
    },
    /// The key is none.
    Key {
        /// The reason why the key is refused.
        error: InvalidKey,
    },
    /// Content type or user pairs are over their limits.
    Metadata {
        /// The limit that the metadata exceeds.
        error: InvalidMetadata,
    },
    /// The value is longer than a coverable write takes.
    ValueTooLarge {
        /// Length of the value.
        bytes: u64,
        /// The limit that applied.
        limit_bytes: u64,
    },
    /// One winner was asked for in a domain whose kind cannot give that.
    NotConditional {
        /// Name of the domain.
        domain: String,
    },
    /// A deletion names the version of an object that was never written.
    InitialVersion,
    /// The value is too long for a domain that keeps values whole.
    WholeValues {
        /// The way in which the domain is reconfigured.
        reconfig: ReconfigKind,
    },
    /// The value is too long to be had in memory whole ([`limits::VALUE_BYTES`]).
    InMemory {
        /// Length of the value.
        bytes: u64,
    },
    /// Blocks cannot have this length.
    BlockBytes {
        /// The length asked for.
        bytes: u64,
    },
    /// A value has no parts, too many, or more bytes than there are places for.
    Parts {
        /// The count of the parts given.
        parts: usize,
        /// The largest number of parts.
        most: usize,
    },
    /// The upload was published with other parts.
    OtherParts {
        /// The version that it was published as.
        version: Version,
    },
    /// A range of bytes that ends before it begins, or after the end of the value.
    Range {
        /// Its first byte, counted from 0.
        start: u64,
        /// The byte after its last one; `None`: the end of the value.
        end: Option<u64>,
        /// The length of the value, if it was looked at.
        length: Option<u64>,
    },
    /// A prefix or a starting point of a listing that is longer than a key can be.
    ListBound {
        /// Length of the bound.
        bytes: usize,
    },
    /// The content went away while it was sent.
    Local {
        /// The error of the content's source.
        reason: String,
    },
    /// The object, or the domain's configuration, was written by a later version of this software and cannot be
    /// understood by this one.
    LaterVersion {
        /// The name of the field.
        field: String,
    },
}

fn write_range(
    f: &mut fmt::Formatter<'_>,
    start: u64,
    end: Option<u64>,
    length: Option<u64>,
) -> fmt::Result {
    match (end, length) {
        (Some(end), None) => write!(f, "a range from byte {start} to before byte {end} is empty"),
        (_, length) => {
            let length = length.unwrap_or(0);
            write!(f, "the range from byte {start}")?;
            if let Some(end) = end {
                write!(f, " to before byte {end}")?;
            }
            write!(f, " is not within the value, which has {length} bytes")
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = limits::VALUE_BYTES;
        match self {
            Invalid::DomainName { error } => error.fmt(f),
            Invalid::Key { error } => error.fmt(f),
            Invalid::Metadata { error } => error.fmt(f),
            Invalid::ValueTooLarge { bytes, limit_bytes } => write!(
                f,
                "the value has {bytes} bytes, a write with a condition takes at most {limit_bytes}"
            ),
            Invalid::NotConditional { domain } => write!(
                f,
                "'{domain}' is not conditional, so that several concurrent writes on one version may succeed: create a domain with --dap conditional, or make an abd or ec domain conditional by areo reconfig start {domain} --dap conditional"
            ),
            Invalid::InitialVersion => write!(
                f,
                "'{}' is the version of no object: there is nothing to delete",
                Version::INITIAL
            ),
            Invalid::WholeValues { reconfig } => write!(
                f,
                "a domain with --reconfig {reconfig} keeps values whole, of at most {} bytes each: take another domain, or a file",
                limits::MAX_BLOCK_BYTES
            ),
            Invalid::InMemory { bytes } => write!(
                f,
                "the value has {bytes} bytes, at most {most} are read into memory at once: stream it"
            ),
            Invalid::BlockBytes { bytes } => write!(
                f,
                "blocks of {bytes} bytes are not possible: they have {} to {} bytes",
                limits::MIN_BLOCK_BYTES,
                limits::MAX_BLOCK_BYTES
            ),
            Invalid::Parts { parts, most } => write!(
                f,
                "{parts} parts make no value: it has 1 to {most} of them, and fewer than 2^32 blocks"
            ),
            Invalid::OtherParts { version } => {
                write!(
                    f,
                    "the upload was published with other parts, as version {version}"
                )
            }
            Invalid::Range { start, end, length } => write_range(f, *start, *end, *length),
            Invalid::ListBound { bytes } => write!(
                f,
                "the prefix, the starting point or the delimiter of the listing has {bytes} bytes, keys have at most {}",
                limits::KEY_BYTES
            ),
            Invalid::Local { reason } => f.write_str(reason),
            Invalid::LaterVersion { field } => write!(
                f,
                "it was written by a later version of Areo, update this one: {field}"
            ),
        }
    }
}

impl From<InvalidKey> for Error {
    fn from(error: InvalidKey) -> Error {
        let reason = Invalid::Key { error };
        Error::Invalid { reason }
    }
}

impl From<InvalidMetadata> for Error {
    fn from(error: InvalidMetadata) -> Error {
        let reason = Invalid::Metadata { error };
        Error::Invalid { reason }
    }
}

impl From<InvalidDomainName> for Error {
    fn from(error: InvalidDomainName) -> Error {
        let reason = Invalid::DomainName { error };
        Error::Invalid { reason }
    }
}
