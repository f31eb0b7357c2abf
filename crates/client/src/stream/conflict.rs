//! The errors of writes that found another version than the one they name.

use crate::checksum;
use crate::error::Error;
use crate::object::Object;
use crate::session::KnownDomain;
use areo_core::dap::FoundVersion;
use areo_core::dsm::conditional::Condition;
use areo_core::tag::Tag as Version;

/// The error of a write whose condition does not hold.
pub(crate) fn conflict(
    known: &KnownDomain,
    key: &str,
    condition: Condition,
    found: FoundVersion,
) -> Error {
    let expected = match condition {
        Condition::Version(version) => Some(version),
        Condition::Absent | Condition::Always | Condition::Present => None,
    };
    version_conflict(known, key, expected, found)
}

/// The error of a write that found another version than the one that it names.
pub(crate) fn version_conflict(
    known: &KnownDomain,
    key: &str,
    expected: Option<Version>,
    found: FoundVersion,
) -> Error {
    let latest = match known.opened(key, found) {
        Ok((version, metadata, value)) => {
            // Of a large object the value is in blocks, and is not read for this.
            if value.apart.is_none()
                && let Err(damage) = checksum::verify(&value.content, &metadata, version)
            {
                return known.corrupted(key, damage);
            }
            Some(Box::new(Object {
                version,
                metadata,
                length: value.length(),
                content: value.content,
            }))
        }
        Err(Error::NotFound { .. }) => None,
        Err(error) => return error,
    };
    Error::VersionConflict {
        domain: known.name().into(),
        key: key.into(),
        expected,
        latest,
    }
}
