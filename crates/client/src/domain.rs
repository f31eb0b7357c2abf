//! Objects of one domain.

use crate::client::Client;
use crate::cluster::ConfigurationInfo;
use crate::error::{Damage, Error, Invalid, Operation};
use crate::known::Session;
use crate::metrics::{Counted, Metrics, counted};
use crate::object::{Entry, Metadata, Object, ObjectInfo, Page, PutOptions, now_ms};
use crate::reconfig::Work;
use crate::thread::Started;
use crate::{Shape, Version, checksum};
use areo_core::config::Configuration;
use areo_core::dap::Found;
use areo_core::dsm;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::limits;
use areo_core::manager::{self, DeleteError, Deletion};
use areo_core::object::Name;
use areo_core::span::{self, watch};
use areo_core::tlv::TlvError;
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

mod call;
mod coverable;
mod placement;
mod statistics;
#[cfg(test)]
mod tests;

pub(crate) use call::Call;
use call::{not_found, value_to_put};
use placement::placement;
pub use statistics::Statistics;

/// A named set of objects that are kept in the same way. Made by [`Client::domain`] and [`Client::create_domain`].
///
/// Every operation ends within the client's deadline.
#[derive(Clone)]
pub struct Domain {
    client: Client,
    pub(crate) about: Arc<About>,
    statistics: Option<Arc<Statistics>>,
    /// Blocks of what is replaced are left to a sweep.
    keeps_replaced: bool,
}

/// What is known of a domain.
pub(crate) struct About {
    pub(crate) name: String,
    /// The final configuration with which it was looked up.
    found: Arc<Configuration>,
    /// Index of the latest final one that an operation went to, and that one if it is another.
    index: AtomicU32,
    latest: RwLock<Option<Arc<Configuration>>>,
}

impl About {
    /// A final configuration, for the operations: they know where to go from there.
    pub(crate) fn known(&self) -> &Arc<Configuration> {
        &self.found
    }

    /// The latest final configuration that the client knows; on the network thread.
    pub(crate) fn latest<E: Env>(&self, client: &dsm::Client<E>) -> Arc<Configuration> {
        client.sequences().start(&self.found)
    }

    /// Takes note of where an operation went, for those who ask on other threads.
    fn note_latest<E: Env>(&self, client: &dsm::Client<E>) {
        let latest = self.latest(client);
        let index = latest.id().index;
        // Nearly always it is the same as ever, and no lock is taken.
        if self.index.fetch_max(index, Ordering::Relaxed) < index {
            let mut known = self.latest.write().expect("no holder of the lock panics");
            if known.as_ref().is_none_or(|known| known.id().index < index) {
                *known = Some(latest);
            }
        }
    }

    fn noted(&self) -> Arc<Configuration> {
        let known = self.latest.read().expect("no holder of the lock panics");
        known.as_ref().unwrap_or(&self.found).clone()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("name", &self.about.name)
            .field("configuration", &self.about.noted())
            .finish_non_exhaustive()
    }
}

impl Domain {
    pub(crate) fn new(client: Client, name: &str, configuration: Arc<Configuration>) -> Domain {
        let about = Arc::new(About {
            name: name.into(),
            index: AtomicU32::new(configuration.id().index),
            found: configuration,
            latest: RwLock::default(),
        });
        Domain {
            client,
            about,
            statistics: None,
            keeps_replaced: false,
        }
    }

    /// The same domain, for writes and deletions that leave the blocks of large values that they replace to a later
    /// [`Domain::sweep`], for the sake of those who are reading them. Otherwise such a reader starts again if it was handed
    /// nothing yet, and ends with [`Error::VersionConflict`] if it was.
    #[must_use]
    pub fn keeping_replaced(&self) -> Domain {
        Domain {
            keeps_replaced: true,
            ..self.clone()
        }
    }

    /// The same domain, and what the operations through it cost.
    #[must_use]
    pub fn measured(&self) -> (Domain, Arc<Statistics>) {
        let statistics = Arc::new(Statistics::default());
        let domain = Domain {
            statistics: Some(statistics.clone()),
            ..self.clone()
        };
        (domain, statistics)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Its random id, as 32 hexadecimal digits: a name that is used again is another domain.
    pub fn id(&self) -> String {
        format!("{:032x}", self.about.found.descriptor().domain.0)
    }

    /// Its configuration, the latest final one that operations through this handle met: algorithm, n, k, quorum, f, members.
    pub fn configuration(&self) -> ConfigurationInfo {
        let names = self.client.known().names();
        names.configuration(&self.about.noted())
    }

    /// The same domain with another deadline for each operation.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Domain {
        Domain {
            client: self.client.with_timeout(timeout),
            ..self.clone()
        }
    }

    /// Writes the object and returns its new version, which a quorum then has (on disk, unless the servers keep nothing
    /// there). Two rounds. The value is not copied. One that is longer than a block ([`PutOptions::block_bytes`]) is written
    /// as [`Domain::put_stream`] does it. Blocks of a long value that it replaces are removed: two rounds more.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it may have been written; [`Error::Unavailable`], [`Error::Unauthorised`] and
    /// [`Error::Swept`] if it was not; [`Error::Invalid`] for a key, metadata or a length of blocks over the limits.
    pub async fn put(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        counted!(
            self.metrics(),
            Counted::Put,
            self.write_value(key, value.into(), options)
        )
    }

    /// A put that is a part of one that is counted.
    pub(crate) async fn write_value(
        &self,
        key: &str,
        value: Bytes,
        options: PutOptions,
    ) -> Result<Version, Error> {
        let name = Name::user(key)?;
        if value.len() > options.block_bytes as usize {
            return self.put_in_blocks(key, &value, options).await;
        }
        let value = value_to_put(value, options)?;
        self.run(Operation::Put, name, |call| async move {
            let written = manager::put(&call.session.client, call.c(), &call.name, &value).await;
            written.map_err(|error| call.write_error(&error))
        })
        .await
    }

    /// Reads the object: its newest version, whole, its checksum verified. One round if nobody writes it meanwhile. Of one
    /// that does not fit into memory, use [`Domain::get_stream`].
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`], [`Error::Corrupted`], [`Error::Unauthorised`], [`Error::Invalid`].
    pub async fn get(&self, key: &str) -> Result<Object, Error> {
        counted!(self.metrics(), Counted::Get, self.read_value(key))
    }

    async fn read_value(&self, key: &str) -> Result<Object, Error> {
        let name = Name::user(key)?;
        watch!(span::read(&name), self.read_within(key, name))
    }

    async fn read_within(&self, key: &str, name: Name) -> Result<Object, Error> {
        let read = |call: Call| async move {
            let found = manager::get_within(&call.session.client, call.c(), &call.name).await;
            found.map_err(|error| call.read_error(&error))
        };
        let found = self.run(Operation::Get, name, read).await?;
        let (version, metadata, value) = self.about.opened(key, found)?;
        if let Some(blocks) = &metadata.blocks {
            return self.get_in_memory(key, blocks.length).await;
        }
        // On the caller's thread, not on the one that all operations share.
        checksum::verify(&value.content, &metadata, version)
            .map_err(|damage| self.about.corrupted(key, damage))?;
        Ok(Object {
            version,
            metadata,
            length: value.length(),
            content: value.content,
        })
    }

    /// Reads everything of the object but its value. One round if nobody writes it meanwhile.
    ///
    /// # Errors
    /// As [`Domain::get`].
    pub async fn stat(&self, key: &str) -> Result<ObjectInfo, Error> {
        counted!(self.metrics(), Counted::Stat, self.read_info(key))
    }

    async fn read_info(&self, key: &str) -> Result<ObjectInfo, Error> {
        let name = Name::user(key)?;
        let read = |call: Call| async move {
            let found = manager::stat(&call.session.client, call.c(), &call.name).await;
            found.map_err(|error| call.read_error(&error))
        };
        let found = self.run(Operation::Stat, name.clone(), read).await?;
        let length = found.length;
        let (version, metadata, _) = self.about.opened(key, found)?;
        let configuration = &*self.about.noted();
        let names = self.client.known().names();
        Ok(ObjectInfo {
            version,
            length,
            configuration: configuration.id().index,
            shape: Shape::of(configuration),
            placement: match metadata.blocks {
                // Of the manifest: each block has its own.
                Some(_) => placement(configuration, &names, &name, 0),
                None => placement(configuration, &names, &name, length),
            },
            metadata,
        })
    }

    /// Deletes the object, with its blocks if it has some, and returns the version of its tombstone: a version like any other,
    /// which later reads find as [`Error::NotFound`].
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; otherwise as [`Domain::put`] and [`Domain::get`].
    pub async fn delete(&self, key: &str) -> Result<Version, Error> {
        counted!(self.metrics(), Counted::Delete, self.write_tombstone(key))
    }

    async fn write_tombstone(&self, key: &str) -> Result<Version, Error> {
        let metadata = Metadata {
            written_at_ms: now_ms(),
            ..Metadata::default()
        };
        let metadata = metadata.encode()?;
        let delete = |call: Call| async move {
            let client = &call.session.client;
            match manager::delete(client, call.c(), &call.name, metadata).await {
                Ok(Deletion::Deleted(version)) => Ok(version),
                Ok(Deletion::NotFound) => Err(call.not_found()),
                Err(DeleteError::Read(error)) => Err(call.read_error(&error)),
                Err(DeleteError::Write(error)) => Err(call.write_error(&error)),
            }
        };
        self.run(Operation::Delete, Name::user(key)?, delete).await
    }

    /// One page of the objects whose keys begin with `prefix` and are larger than `after` (by bytes), in order: those
    /// whose writes completed before the listing began, and perhaps later ones. One round. `limit` is a wish: a page has
    /// at most 1000 objects, and may have fewer although there are more ([`Page::next`] tells).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`], [`Error::Invalid`].
    pub async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Page, Error> {
        counted!(
            self.metrics(),
            Counted::List,
            self.read_page(prefix, after, limit)
        )
    }

    async fn read_page(&self, prefix: &str, after: &str, limit: usize) -> Result<Page, Error> {
        let bytes = prefix.len().max(after.len());
        if bytes > limits::KEY_BYTES {
            let reason = Invalid::ListBound { bytes };
            return Err(Error::Invalid { reason });
        }
        let limit = limit.clamp(1, limits::PAGE_ENTRIES) as u16;
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let about = self.about.clone();
        let list = move |session: Session| async move {
            let c = about.known();
            let listed = manager::list(&session.client, c, &prefix, &after, limit).await;
            listed.map_err(|failed| {
                let c = &about.latest(&session.client);
                let asked = Session::asked(Operation::List, Some(&about.name), c, None);
                session.not_applied(&asked, &failed)
            })
        };
        let page = self.operate(None, list).await?;
        let entries = page.entries.into_iter().map(|entry| Entry {
            key: entry.key,
            version: entry.tag,
            length: entry.length,
        });
        Ok(Page {
            entries: entries.collect(),
            next: page.next,
        })
    }

    /// What operations come to.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.client.metrics()
    }

    /// Runs an operation on one object on the network thread.
    async fn run<T, F>(
        &self,
        operation: Operation,
        name: Name,
        work: impl FnOnce(Call) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.operate(None, self.call(operation, name, work)).await
    }

    /// Starts one that has no deadline as long as it gets on; it goes on while nobody asks for its end.
    pub(crate) fn begin<T, F>(
        &self,
        operation: Operation,
        name: Name,
        work: impl FnOnce(Call) -> F + Send + 'static,
    ) -> Started<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let patience = Some(self.client.timeout());
        self.begin_operation(patience, self.call(operation, name, work))
    }

    fn call<F>(
        &self,
        operation: Operation,
        name: Name,
        work: impl FnOnce(Call) -> F + Send + 'static,
    ) -> impl FnOnce(Session) -> F + Send + 'static {
        let about = self.about.clone();
        move |session| {
            work(Call {
                session,
                about,
                operation,
                name,
            })
        }
    }

    /// Runs an operation on the network thread; afterwards takes note of where it went and of what it cost. With `patience`
    /// it has no deadline as long as it gets on.
    async fn operate<T, F>(
        &self,
        patience: Option<Duration>,
        operation: impl FnOnce(Session) -> F + Send + 'static,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        self.begin_operation(patience, operation).end().await
    }

    fn begin_operation<T, F>(
        &self,
        patience: Option<Duration>,
        operation: impl FnOnce(Session) -> F + Send + 'static,
    ) -> Started<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (about, statistics) = (self.about.clone(), self.statistics.clone());
        let keeps_replaced = self.keeps_replaced;
        let noted = move |mut session: Session| async move {
            if keeps_replaced {
                session.client = session.client.keeping_replaced();
            }
            if let Some(patience) = patience {
                let env = session.world.network.patient_env(patience);
                session.client = session.client.with(env);
            }
            let client = session.client.clone();
            let result = operation(session).await;
            about.note_latest(&client);
            if let Some(statistics) = statistics {
                statistics.add(client.env.counts());
            }
            result
        };
        self.client.begin(noted)
    }

    /// Runs work on the domain's sequence: it has no deadline as long as it gets on.
    pub(crate) async fn work<T, F>(&self, work: impl FnOnce(Work) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (about, patience) = (self.about.clone(), self.client.timeout());
        let begin = move |session| {
            work(Work {
                session,
                about,
                patience,
            })
        };
        self.operate(Some(patience), begin).await
    }
}

impl About {
    /// What was found, if it is an object: version, metadata, value.
    pub(crate) fn opened(
        &self,
        key: &str,
        found: Found,
    ) -> Result<(Version, Metadata, Value), Error> {
        let Some(value) = found.value.filter(|value| !value.deleted) else {
            return Err(not_found(&self.name, key));
        };
        match Metadata::decode(&value.metadata) {
            Ok(metadata) => Ok((found.tag, metadata, value)),
            Err(error @ TlvError::Unknown { .. }) => {
                let field = error.to_string();
                let reason = Invalid::LaterVersion { field };
                Err(Error::Invalid { reason })
            }
            Err(error) => {
                let (version, reason) = (found.tag, error.to_string());
                Err(self.corrupted(key, Damage::Metadata { version, reason }))
            }
        }
    }

    pub(crate) fn corrupted(&self, key: &str, damage: Damage) -> Error {
        Error::Corrupted {
            domain: self.name.clone(),
            key: key.into(),
            damage: Box::new(damage),
        }
    }
}
