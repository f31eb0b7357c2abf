//! Keys and changes as lists show them, with the keys of `areo --json`.

use areo_trust::protocol::KeyRow;
use areo_trust::registry::AuditRecord;
use serde::Serialize;

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// Text forms of its grants.
    pub grants: Vec<String>,
    /// Its id, as 16 hexadecimal digits.
    pub id: String,
    /// Its name, which people use.
    pub name: String,
    /// Since when it counts no longer, in seconds since 1970.
    pub revoked_seconds: Option<u64>,
    /// `good`, `rotating` while two secrets count, or `revoked`.
    pub state: &'static str,
}

impl From<&KeyRow> for KeyInfo {
    fn from(row: &KeyRow) -> KeyInfo {
        KeyInfo {
            grants: row.grants.all().iter().map(ToString::to_string).collect(),
            id: row.id.to_string(),
            name: row.name.clone(),
            revoked_seconds: row.revoked_seconds,
            state: match (row.revoked_seconds, row.is_rotating) {
                (Some(_), _) => "revoked",
                (None, true) => "rotating",
                (None, false) => "good",
            },
        }
    }
}

/// A change of the cluster's trust in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditInfo {
    /// Its object: the id of a token, the id and the name of a key, the digest of a CA.
    pub about: String,
    /// The address from which it was asked for.
    pub address: String,
    /// The one on whose behalf it was made, by id.
    pub by: String,
    /// Its number, counted from the foundation of the cluster.
    pub change: u32,
    /// The clock of the server that made it, in seconds since 1970.
    pub seconds: u64,
    /// The word for its kind.
    pub what: &'static str,
}

impl From<&AuditRecord> for AuditInfo {
    fn from(record: &AuditRecord) -> AuditInfo {
        AuditInfo {
            about: record.about.clone(),
            address: record.origin.address.clone(),
            by: record.origin.by.to_string(),
            change: record.generation,
            seconds: record.origin.now_seconds,
            what: record.what.word(),
        }
    }
}
