//! Coverable writes.

use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::object::PutOptions;
use crate::operation::Operation;
use crate::session::{Context, Deadline};
use crate::stream::{value_to_put, version_conflict};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::limits;
use areo_core::object::Name;
use areo_core::tag::Tag as Version;
use bytes::Bytes;
use futures_util::future::BoxFuture;

impl Domain {
    /// Writes the object if `version` is its newest; with `None`, if there is no such object. Otherwise writes
    /// nothing and returns the newest version. Two rounds; one if it does not write.
    ///
    /// In a **conditional** domain ([`Domain::has_one_winner`]) at most one of concurrent writes on one version succeeds, as with
    /// [`Domain::compare_and_put`], which refuses elsewhere.
    ///
    /// In other domains this is a **coverable** write, and it is **weak**: of two *concurrent* writes that name the same version, both may
    /// succeed. Alice and Bob have both read version 4, and both call `write_if` with it at the same time. Neither finds a
    /// newer version, both write one, and both calls succeed; the larger of the two versions is read
    /// from then on, and the other was overwritten by a writer that had never seen it. What is kept: a write that begins
    /// after another one has ended never succeeds on the version that the other one replaced. So it keeps a writer from
    /// overwriting what it could have read. It is no lock, no election, and must not be used for counting.
    ///
    /// # Errors
    /// [`Error::VersionConflict`] with the newest version (of a large object without its content); otherwise as
    /// [`Domain::put`], and [`Error::Invalid`] for a value of more than 64 MiB. After [`Error::Unknown`] read the object
    /// before writing it again: if the write took effect, `version` is no longer the newest.
    pub async fn write_if(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        version: Option<Version>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        let write = self.write_covering(key, value.into(), version, options);
        self.operate(Operation::WriteIf, key, write).await
    }

    fn write_covering<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        version: Option<Version>,
        options: PutOptions,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            let name = Name::user(key)?;
            let (bytes, limit_bytes) = (value.len() as u64, limits::DEFAULT_VALUE_BYTES);
            if bytes > limit_bytes {
                let reason = Invalid::ValueTooLarge { bytes, limit_bytes };
                return Err(Error::Invalid { reason });
            }
            let value = value_to_put(value, options)?;
            let write = move |context: Context| async move {
                let covered = context
                    .handle()
                    .put_if(context.name(), &value, version)
                    .await;
                covered.map_err(|error| context.write_error(&error))
            };
            let found = match self
                .run(Deadline::Timeout, Operation::WriteIf, name, write)
                .await?
            {
                CoverableOutcome::Changed(version) => return Ok(version),
                CoverableOutcome::Unchanged(found) => found,
            };
            Err(version_conflict(&self.known, key, version, found))
        })
    }
}
