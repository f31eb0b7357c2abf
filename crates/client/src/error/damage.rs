//! The damaged part of an object.

use super::{LostObject, NoQuorum};
use areo_core::tag::Tag as Version;
use std::fmt;

/// The damage of an object.
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
        /// The reason why the metadata cannot be decoded.
        reason: String,
    },
    /// A block of a file is damaged, or is not there.
    Block {
        /// Name of the block's object, or `genesis`.
        block: String,
        /// The kind of its damage.
        reason: String,
    },
    /// Too few elements are left.
    Lost {
        /// The object, its version and the number of its elements that are left.
        object: LostObject,
        /// The response of each server.
        call: Box<NoQuorum>,
    },
    /// Too few elements were left of it when its domain was changed, and who changed it left it so.
    Left {
        /// The version that could not be read any more.
        lost: Version,
    },
    /// Too many servers found their element, or their record of the object, damaged.
    Servers {
        /// The response of each server.
        call: Box<NoQuorum>,
    },
}

/// The advice at the end of an error about lost elements.
const OVER: &str = ": write it again, or remove it";

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
            Damage::Lost { object, call } => {
                object.fmt(f)?;
                call.servers(f)?;
                f.write_str(OVER)
            }
            Damage::Left { lost } => write!(
                f,
                "version {lost} could not be read any more when its domain was changed{OVER}"
            ),
            Damage::Servers { call } => call.fmt(f),
        }
    }
}
