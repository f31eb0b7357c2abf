//! What is found damaged.

use super::NoQuorum;
use crate::Version;
use std::fmt;

/// What is damaged about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The checksum (CRC-32C) of the whole value is not the one that its writer computed.
    Checksum {
        /// The version that was read.
        version: Version,
        /// The checksum stored with it.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The metadata cannot be read.
    Metadata {
        /// The version that was read.
        version: Version,
        /// Why.
        reason: String,
    },
    /// A block of a file is damaged, or is not there.
    Block {
        /// Which.
        block: String,
        /// Why.
        reason: String,
    },
    /// Too many servers found their element, or their record of the object, damaged.
    Servers {
        /// What each server did.
        call: Box<NoQuorum>,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Checksum {
                version,
                expected,
                found,
            } => write!(
                f,
                "version {version} was written with checksum {expected:08x} and has {found:08x}"
            ),
            Damage::Metadata { version, reason } => {
                write!(
                    f,
                    "the metadata of version {version} cannot be read: {reason}"
                )
            }
            Damage::Block { block, reason } => write!(f, "block {block}: {reason}"),
            Damage::Servers { call } => call.fmt(f),
        }
    }
}
