//! Records of uploads in progress: small objects beside those of users, which no listing of objects shows.
//!
//! A record belongs to the key of an object, and differs from others of that key by a suffix. A key of the cluster may read, write, list and
//! remove the records of an object that it may write (`docs/spec` `[X-43 upload-records]`). A suffix that begins with the text of an
//! [`UploadId`](crate::UploadId) keeps sweeps from ending that upload.

use super::conditional::on;
use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::object::{Object, PutOptions};
use crate::operation::Operation;
use areo_core::limits;
use areo_core::message::ListRequest;
use areo_core::object::{Kind, Name, key_of_record};
use areo_core::tag::Tag as Version;
use bytes::Bytes;
use serde::Serialize;
use std::pin::pin;

/// The place behind which a listing of records begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsAfter<'a> {
    /// The listing begins with the first record.
    Nothing,
    /// It begins after this record.
    Record(&'a RecordName),
    /// It begins after all records of this key.
    Key(&'a str),
}

/// The name of a record. Records are in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RecordName {
    /// The key of the object that it belongs to.
    pub key: String,
    /// A text that no other record of the key has: 1 to 79 bytes of UTF-8 without a byte 0.
    pub suffix: String,
}

/// One record of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordEntry {
    /// Name of the record.
    #[serde(flatten)]
    pub name: RecordName,
    /// Newest version of the record.
    #[serde(serialize_with = "crate::view::text")]
    pub version: Version,
    /// The length of its value in bytes; serialised as `bytes`.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// The ETag that its writer gave it ([`PutOptions::etag`]).
    pub etag: Option<String>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
    /// It cannot be read as things are, because it is damaged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// One page of a listing of records.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct RecordPage {
    /// The records, in order of their names. May be fewer than asked for, even none, although there is a next page.
    pub entries: Vec<RecordEntry>,
    /// List on after this record; `None`: this was the last page.
    pub next: Option<RecordName>,
}

/// The beginning that names of listed records share.
enum Beginning<'a> {
    KeysFrom(&'a str),
    Of { key: &'a str, suffix: &'a str },
}

impl Domain {
    /// Writes a record and returns its new version, as [`Domain::put`] does. The value is not longer than a block.
    ///
    /// # Errors
    /// As [`Domain::put`]; [`Error::Invalid`] for a suffix over its limits, too.
    pub async fn put_record(
        &self,
        key: &str,
        suffix: &str,
        value: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        let name = Name::record(key, suffix);
        let put = self.write(name, value.into(), options, None);
        self.operate(Operation::Put, key, put).await
    }

    /// Writes a record if `version` is its newest; with `None`, if there is no such record. One winner, as with
    /// [`Domain::compare_and_put`].
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`].
    pub async fn compare_and_put_record(
        &self,
        key: &str,
        suffix: &str,
        value: impl Into<Bytes>,
        version: Option<Version>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        self.require_one_winner()?;
        let name = Name::record(key, suffix);
        let put = self.write(name, value.into(), options, Some(on(version)));
        self.operate(Operation::WriteIf, key, put).await
    }

    /// Reads a record: its newest version, whole, its checksum verified.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn get_record(&self, key: &str, suffix: &str) -> Result<Object, Error> {
        let get = self.read(Name::record(key, suffix));
        self.operate(Operation::Get, key, get).await
    }

    /// Deletes a record, and returns the version of its tombstone.
    ///
    /// # Errors
    /// As [`Domain::delete`].
    pub async fn delete_record(&self, key: &str, suffix: &str) -> Result<Version, Error> {
        let delete = self.write_tombstone(Name::record(key, suffix));
        self.operate(Operation::Delete, key, delete).await
    }

    /// One page of the records of all objects whose keys begin with `prefix`, with the guarantees of [`Domain::list`]. `limit`: 1 to 1000.
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub async fn list_records(
        &self,
        prefix: &str,
        after: RecordsAfter<'_>,
        limit: usize,
    ) -> Result<RecordPage, Error> {
        let listed = pin!(self.records(Beginning::KeysFrom(prefix), after, limit));
        self.operate(Operation::List, "", listed).await
    }

    /// One page of the records of one key whose suffixes begin with `suffix`.
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub async fn list_records_of(
        &self,
        key: &str,
        suffix: &str,
        after: RecordsAfter<'_>,
        limit: usize,
    ) -> Result<RecordPage, Error> {
        let listed = pin!(self.records(Beginning::Of { key, suffix }, after, limit));
        self.operate(Operation::List, "", listed).await
    }

    async fn records(
        &self,
        beginning: Beginning<'_>,
        after: RecordsAfter<'_>,
        limit: usize,
    ) -> Result<RecordPage, Error> {
        let prefix = match beginning {
            Beginning::KeysFrom(prefix) => prefix.to_owned(),
            Beginning::Of { key, suffix } => format!("{key}\0{suffix}"),
        };
        let after = match after {
            RecordsAfter::Nothing => String::new(),
            RecordsAfter::Record(name) => format!("{}\0{}", name.key, name.suffix),
            // Behind every name that begins with the key and a byte 0, and before those of larger keys, which are longer.
            RecordsAfter::Key(key) => format!("{key}\u{1}"),
        };
        let bytes = prefix.len().max(after.len());
        if bytes > limits::OBJECT_NAME_BYTES {
            let reason = Invalid::ListBound { bytes };
            return Err(Error::Invalid { reason });
        }
        let limit = limit.clamp(1, limits::PAGE_ENTRIES) as u16;
        let request = ListRequest {
            after,
            limit,
            ..ListRequest::new(Kind::Upload, &prefix)
        };
        let page = self.page(request).await?;
        let mut entries = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            let name = split(&entry.key);
            // A prefix with a byte 0 may end within a suffix.
            let is_wanted = match beginning {
                Beginning::KeysFrom(prefix) => name.key.starts_with(prefix),
                Beginning::Of { key, .. } => name.key == key,
            };
            if is_wanted {
                entries.push(RecordEntry {
                    name,
                    version: entry.tag,
                    length: entry.length,
                    etag: entry.etag.map(|etag| etag.as_str().into()),
                    written_at_ms: entry.written_at_ms,
                    damaged: entry.damaged,
                });
            }
        }
        let next = page.next.as_deref().map(split);
        Ok(RecordPage { entries, next })
    }
}

fn split(name: &str) -> RecordName {
    let key = key_of_record(name);
    RecordName {
        key: key.into(),
        suffix: name[key.len() + 1..].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_its_last_zero() {
        let name = |key: &str, suffix: &str| RecordName {
            key: key.into(),
            suffix: suffix.into(),
        };
        assert_eq!(split("a\0b"), name("a", "b"));
        assert_eq!(split("a\0b\0c"), name("a\0b", "c"));
    }

    #[test]
    fn records_of_a_key_are_before_the_end_of_the_key() {
        let end = "a\u{1}";
        for suffix in ["\u{1}", "z", "\u{10ffff}"] {
            assert!(*format!("a\0{suffix}") < *end);
        }
        for larger in ["a\u{1}\0s", "b\0s"] {
            assert!(*end < *larger);
        }
    }
}
