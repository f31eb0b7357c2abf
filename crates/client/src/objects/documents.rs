//! Documents of a domain: a few small values beside its objects, which no listing of objects shows, such as rules that gateways go by.
//!
//! They move with the domain and go with it. Any key of the cluster may read them, and who may change the domain (`admin`) may change them (`docs/spec`
//! `[X-45 domain-documents]`).

use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::metrics::{CountedOperation, counted};
use crate::object::{Object, PutOptions};
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
        let value = value.into();
        let put = async {
            let (bytes, limit_bytes) = (value.len() as u64, options.block_bytes.into());
            if bytes > limit_bytes {
                let reason = Invalid::ValueTooLarge { bytes, limit_bytes };
                return Err(Error::Invalid { reason });
            }
            let name = Name::document(name)?;
            self.write(name, value, options, None).await
        };
        counted!(self.metrics(), CountedOperation::Put, put)
    }

    /// Reads a document: its newest version, whole, its checksum verified.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn get_document(&self, name: &str) -> Result<Object, Error> {
        let get = async { self.read_within(Name::document(name)?).await };
        counted!(self.metrics(), CountedOperation::Get, get)
    }

    /// Deletes a document, and returns the version of its tombstone.
    ///
    /// # Errors
    /// As [`Domain::delete`].
    pub async fn delete_document(&self, name: &str) -> Result<Version, Error> {
        let delete = async { self.write_tombstone(Name::document(name)?).await };
        counted!(self.metrics(), CountedOperation::Delete, delete)
    }
}
