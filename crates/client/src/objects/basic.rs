//! What is done with single objects, and listings of them by pages.

use super::placement::placement;
use crate::checksum;
use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::object::{Entry, ListOptions, Metadata, Object, ObjectInfo, Page, PutOptions, now_ms};
use crate::operation::Operation;
use crate::session::{Context, Deadline};
use crate::shape::Shape;
use areo_core::dap::{FoundVersion, Scope};
use areo_core::dsm::listing;
use areo_core::limits;
use areo_core::manager::{DeleteError, Deletion};
use areo_core::message::ListRequest;
use areo_core::object::{InvalidKey, Kind, Name};
use areo_core::tag::Tag as Version;
use areo_trust::grant::Verb;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::pin::pin;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The time that [`Domain::inspect`] waits for silent members.
const HOLDINGS_PATIENCE: Duration = Duration::from_secs(1);

impl Domain {
    /// Writes the object and returns its new version, which a quorum then has (on disk, unless the servers keep nothing
    /// there). Two rounds. The value is not copied. One that is longer than a block ([`PutOptions::block_bytes`]) is written
    /// as [`Domain::put_stream`] does it. Blocks of a long value that it replaces are removed: two rounds more.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it may have been written; [`Error::Unavailable`], [`Error::Unauthorised`] and
    /// [`Error::Swept`] if it was not; [`Error::Invalid`] for a key over the limits.
    pub async fn put(&self, key: &str, value: impl Into<Bytes>) -> Result<Version, Error> {
        let put = self.write(Name::user(key), value.into(), PutOptions::default(), None);
        self.operate(Operation::Put, key, put).await
    }

    /// Writes the object as [`Domain::put`] does, with a content type, metadata or blocks of another length.
    ///
    /// # Errors
    /// Those of [`Domain::put`]; [`Error::Invalid`] for metadata or a length of blocks over the limits.
    pub async fn put_with(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        let put = self.write(Name::user(key), value.into(), options, None);
        self.operate(Operation::Put, key, put).await
    }

    /// Reads the object: its newest version, whole, its checksum verified. One round if no write of it is under way. Of one
    /// that does not fit into memory, use [`Domain::get_stream`].
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`], [`Error::Corrupted`], [`Error::Unauthorised`], [`Error::Invalid`].
    pub async fn get(&self, key: &str) -> Result<Object, Error> {
        self.operate(Operation::Get, key, self.read(Name::user(key)))
            .await
    }

    pub(super) fn read(
        &self,
        name: Result<Name, InvalidKey>,
    ) -> BoxFuture<'_, Result<Object, Error>> {
        Box::pin(async move {
            let name = name?;
            let read = |context: Context| async move {
                let found = context.handle().read_within(context.name(), None).await;
                found.map_err(|error| context.not_applied(&error))
            };
            let found = self
                .run(Deadline::Timeout, Operation::Get, name.clone(), read)
                .await?;
            self.whole(&name, found).await
        })
    }

    /// Reads as [`Domain::get`] does, without writing back: regular, not atomic, for experiments (`[R-28 regular-reads]`). A later read may find an older
    /// version. One round.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub fn get_regular<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Object, Error>> {
        Box::pin(async move {
            let name = Name::user(key)?;
            let read = |context: Context| async move {
                let (handle, name) = (context.handle(), context.name());
                let found = handle.read_regular(name, Scope::Whole).await;
                found.map_err(|error| context.not_applied(&error))
            };
            let found = self
                .run(Deadline::Timeout, Operation::Get, name.clone(), read)
                .await?;
            self.whole(&name, found).await
        })
    }

    /// The object in the found version.
    async fn whole(&self, name: &Name, found: FoundVersion) -> Result<Object, Error> {
        let key = name.user_key();
        let (version, metadata, value) = self.known.opened(key, found)?;
        if let Some(blocks) = &metadata.blocks {
            if name.kind() != Kind::User {
                let field = "a record in blocks".into();
                let reason = Invalid::LaterVersion { field };
                return Err(Error::Invalid { reason });
            }
            return self.get_in_memory(key, blocks.length()).await;
        }
        // On the caller's thread, not on the one that all operations share.
        checksum::verify(&value.content, &metadata, version)
            .map_err(|damage| self.known.corrupted(key, damage))?;
        Ok(Object {
            version,
            metadata,
            length: value.length(),
            content: value.content,
        })
    }

    /// Reads everything of the object but its value. One round if no write of it is under way.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn stat(&self, key: &str) -> Result<ObjectInfo, Error> {
        self.operate(Operation::Stat, key, self.read_info(key, false))
            .await
    }

    /// The information of [`Domain::stat`], with the version that each member holds
    /// ([`Placement::holds`](crate::Placement::holds)). Waits for silent members, a second at most.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn inspect(&self, key: &str) -> Result<ObjectInfo, Error> {
        self.operate(Operation::Stat, key, self.read_info(key, true))
            .await
    }

    fn read_info<'a>(
        &'a self,
        key: &'a str,
        asks_all: bool,
    ) -> BoxFuture<'a, Result<ObjectInfo, Error>> {
        Box::pin(async move {
            let name = Name::user(key)?;
            let read = move |context: Context| async move {
                let found = context.handle().stat(context.name()).await;
                let found = found.map_err(|error| context.not_applied(&error))?;
                let latest = context.latest();
                let holdings = if asks_all {
                    let patience = context.timeout().min(HOLDINGS_PATIENCE);
                    let domain = context.within(patience).domain(&latest);
                    let holdings = domain.holdings(&latest, context.name(), found.tag).await;
                    Some(holdings)
                } else {
                    None
                };
                Ok::<_, Error>((found, latest, holdings))
            };
            let read = self
                .run(Deadline::Timeout, Operation::Stat, name.clone(), read)
                .await?;
            let (found, configuration, holdings) = read;
            let length = found.length;
            let (version, metadata, _) = self.known.opened(key, found)?;
            let names = self.names();
            // Of the manifest, where there is one: each block has its own.
            let placed = if metadata.blocks.is_some() { 0 } else { length };
            let mut placement = placement(&configuration, &names, &name, placed);
            if let Some(holdings) = &holdings {
                assert_eq!(holdings.len(), placement.len(), "one of each member");
            }
            for (place, holding) in placement.iter_mut().zip(holdings.into_iter().flatten()) {
                place.holds = Some(holding.into());
            }
            Ok(ObjectInfo {
                version,
                length,
                configuration: configuration.id().index,
                shape: Shape::of(&configuration),
                placement,
                metadata,
            })
        })
    }

    /// Deletes the object, with its blocks if it has some, and returns the version of its tombstone: a version like any other,
    /// which later reads find as [`Error::NotFound`].
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; otherwise as [`Domain::put`] and [`Domain::get`].
    pub async fn delete(&self, key: &str) -> Result<Version, Error> {
        let delete = self.write_tombstone(Name::user(key));
        self.operate(Operation::Delete, key, delete).await
    }

    pub(super) fn write_tombstone(
        &self,
        name: Result<Name, InvalidKey>,
    ) -> BoxFuture<'_, Result<Version, Error>> {
        Box::pin(async move {
            let name = name?;
            let metadata = Metadata {
                written_at_ms: now_ms(),
                ..Metadata::default()
            };
            let metadata = metadata.encode()?;
            let verb = match name.kind() {
                Kind::Upload => Verb::Write,
                _ => Verb::Delete,
            };
            let delete = move |context: Context| async move {
                context.demand(&[verb])?;
                match context.handle().delete(context.name(), metadata).await {
                    Ok(Deletion::Deleted(version)) => Ok(version),
                    Ok(Deletion::NotFound) => {
                        Err(context.domain.not_found(context.name().user_key()))
                    }
                    Err(DeleteError::Read(error)) => Err(context.not_applied(&error)),
                    Err(DeleteError::Write(error)) => Err(context.write_error(&error)),
                }
            };
            self.run(Deadline::Timeout, Operation::Delete, name, delete)
                .await
        })
    }

    /// One page of the objects whose keys begin with `prefix` and are larger than `after` (by bytes), in order: those
    /// whose writes completed before the listing began, and perhaps later ones. One round. `limit` is a wish: a page has
    /// at most 1000 objects, and may have fewer although there are more ([`Page::next`] tells).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`], [`Error::Invalid`].
    pub async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Page, Error> {
        let options = ListOptions {
            prefix: prefix.into(),
            after: after.into(),
            limit,
            ..ListOptions::default()
        };
        self.list_with(options).await
    }

    /// A page of keys as [`Domain::list`] gives it, with common prefixes where [`ListOptions::delimiter`] asks for them: the servers pass over the keys of each.
    /// One round, unless servers differ about a prefix, because writes are under way or a server missed some.
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub async fn list_with(&self, options: ListOptions) -> Result<Page, Error> {
        let listed = pin!(self.read_page(options));
        self.operate(Operation::List, "", listed).await
    }

    async fn read_page(&self, options: ListOptions) -> Result<Page, Error> {
        let ListOptions {
            prefix,
            after,
            delimiter,
            limit,
        } = options;
        let bytes = prefix.len().max(after.len()).max(delimiter.len());
        if bytes > limits::KEY_BYTES {
            let reason = Invalid::ListBound { bytes };
            return Err(Error::Invalid { reason });
        }
        let request = ListRequest {
            kind: Kind::User,
            prefix,
            after,
            delimiter,
            limit: limit.clamp(1, limits::PAGE_ENTRIES) as u16,
        };
        let page = self.page(request).await?;
        let entries = page.entries.into_iter().map(|entry| Entry {
            key: entry.key,
            version: entry.tag,
            length: entry.length,
            etag: entry.etag.map(|etag| etag.as_str().into()),
            written_at_ms: entry.written_at_ms,
            damaged: entry.damaged,
        });
        Ok(Page {
            entries: entries.collect(),
            prefixes: page.prefixes,
            next: page.next,
        })
    }

    pub(super) fn page(&self, request: ListRequest) -> BoxFuture<'_, Result<listing::Page, Error>> {
        Box::pin(async move {
            let list = move |context: Context| async move {
                let listed = context.handle().list_objects(&request).await;
                listed.map_err(|failed| context.not_applied(&failed))
            };
            let begun = self.run(Deadline::Timeout, Operation::List, None, list);
            begun.await
        })
    }
}
