//! Documents of a domain: a few small values beside its objects, which no listing of objects shows, such as rules that gateways go by.
//!
//! They move with the domain and go with it. Any key of the cluster may read them, and who may change the domain (`admin`) may change them (`docs/spec`
//! `[X-45 domain-documents]`).

use crate::domain::Domain;
use crate::error::Error;
use crate::object::{Object, PutOptions};
use crate::operation::Operation;
use areo_core::object::Name;
use areo_core::tag::Tag as Version;
use bytes::Bytes;

impl Domain {
    /// Writes a document and returns its new version, as [`Domain::put`] does. Its name has 1 to 70 bytes of UTF-8 without a byte 0. The value is not longer
    /// than a block.
    ///
    /// # Errors
    /// As [`Domain::put`].
    pub async fn put_document(
        &self,
        name: &str,
        value: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        let put = self.write(Name::document(name), value.into(), options, None);
        self.operate(Operation::Put, name, put).await
    }

    /// Reads a document: its newest version, whole, its checksum verified.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn get_document(&self, name: &str) -> Result<Object, Error> {
        let get = self.read(Name::document(name));
        self.operate(Operation::Get, name, get).await
    }

    /// Deletes a document, and returns the version of its tombstone.
    ///
    /// # Errors
    /// As [`Domain::delete`].
    pub async fn delete_document(&self, name: &str) -> Result<Version, Error> {
        let delete = self.write_tombstone(Name::document(name));
        self.operate(Operation::Delete, name, delete).await
    }
}
