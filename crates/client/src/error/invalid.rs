//! What cannot be asked for.

use super::Error;
use crate::{InvalidDomainName, InvalidKey, InvalidMetadata};
use areo_core::limits;
use std::fmt;

/// What was asked for cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The domain's name is none.
    DomainName {
        /// Why.
        error: InvalidDomainName,
    },
    /// The key is none.
    Key {
        /// Why.
        error: InvalidKey,
    },
    /// Content type or user pairs are over their limits.
    Metadata {
        /// Why.
        error: InvalidMetadata,
    },
    /// The value is longer than one object holds.
    ValueTooLarge {
        /// Its length.
        bytes: u64,
        /// The limit that applied.
        limit_bytes: u64,
    },
    /// A limit for objects above what can be had at all.
    LimitTooLarge {
        /// The limit asked for.
        limit_bytes: u64,
    },
    /// A prefix or a starting point of a listing that is longer than a key can be.
    ListBound {
        /// Its length.
        bytes: usize,
    },
    /// The content went away while it was sent.
    Local {
        /// What happened to it.
        reason: String,
    },
    /// The object, or the domain's configuration, was written by a later version of this software and cannot be
    /// understood by this one.
    LaterVersion {
        /// Which field.
        field: String,
    },
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = limits::VALUE_BYTES;
        match self {
            Invalid::DomainName { error } => error.fmt(f),
            Invalid::Key { error } => error.fmt(f),
            Invalid::Metadata { error } => error.fmt(f),
            Invalid::ValueTooLarge { bytes, limit_bytes } if *limit_bytes < most => write!(
                f,
                "the value has {bytes} bytes, one object holds at most {limit_bytes}: larger values need the file layer; for experiments the limit can be raised (--max-object) up to {most} bytes"
            ),
            Invalid::ValueTooLarge { bytes, limit_bytes } => write!(
                f,
                "the value has {bytes} bytes, one object holds at most {limit_bytes}: larger values need the file layer"
            ),
            Invalid::LimitTooLarge { limit_bytes } => write!(
                f,
                "objects of {limit_bytes} bytes cannot be had: the limit (--max-object) can be raised up to {most} bytes, larger values need the file layer"
            ),
            Invalid::ListBound { bytes } => write!(
                f,
                "the prefix or starting point of the listing has {bytes} bytes, keys have at most {}",
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
