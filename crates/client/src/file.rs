//! Files of any size that many people edit: lists of blocks, each written coverably, so that edits of different parts all
//! prevail, and only what changed travels (`areo_core::fragment`).
//!
//! A [`Base`] remembers what a local file was made from. A push compares the local file with it, writes the blocks whose
//! content changed, and nothing else: what others have changed elsewhere stays. Where another client has changed the same
//! block, that block is not written, and the push says so ([`PushReport::conflicts`]); the file as a whole is not atomic. Without
//! a base, the local file is compared with what is there, and replaces it.
//!
//! ```no_run
//! # async fn example(domain: areo_client::Domain) -> Result<(), Box<dyn std::error::Error>> {
//! use areo_client::file::{Chunking, PushOptions};
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! let file = domain.file("notes")?;
//! let pushed = file.push(Path::new("notes.txt"), None, PushOptions::default(), |_| ControlFlow::Continue(())).await?;
//! // Later, after an edit:
//! let base = pushed.base;
//! let pushed = file.push(Path::new("notes.txt"), Some(&base), PushOptions::default(), |_| ControlFlow::Continue(())).await?;
//! println!("{} of {} blocks were sent", pushed.written, pushed.blocks);
//! # Ok(())
//! # }
//! ```

mod base;
mod chunking;
mod compare;
mod error;
mod pull;
mod push;

pub use base::Base;
pub use chunking::{Chunking, InvalidChunking, Method};
pub use compare::{Difference, Kind as DifferenceKind};
pub use error::{Conflict, FileError};
pub use pull::{PullOptions, PullReport};
pub use push::{PushOptions, PushReport};

use crate::domain::Domain;
use crate::error::{Error, Invalid};
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob};
use crate::view;
use areo_core::fragment::block;
use areo_core::fragment::file::{Block, Chain};
use areo_core::limits;
use areo_core::message::{ListEntry, ListRequest};
use areo_core::object::{Kind, Name};
use areo_core::tag::Tag as Version;
use error::missing_or;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::future::Future;

/// The progress of an operation on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Bytes of the local file were read.
    Scanned {
        /// Bytes since the last report.
        bytes: u64,
        /// Bytes of the local file.
        total: u64,
    },
    /// Bytes of blocks are on their way to servers.
    Sending {
        /// Bytes since the last report.
        bytes: u64,
    },
    /// All new blocks are written: the next write changes the file.
    Linking,
    /// Bytes of the file were received.
    Received {
        /// Bytes since the last report.
        bytes: u64,
        /// Bytes of the file.
        total: u64,
    },
}

/// A file of a domain. Made by [`Domain::file`]; whether it exists is not known by that.
#[derive(Clone, Debug)]
pub struct File {
    domain: Domain,
    name: Name,
}

/// A block of a file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockInfo {
    /// The block: `genesis`, or the name of its object.
    pub id: String,
    /// Version of the block.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
    /// Bytes of data; 0 of the genesis block, and of one whose content was removed. Serialised as `bytes`.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// The hash (BLAKE3) of its data.
    pub digest: Option<String>,
    /// The block after it.
    pub next: Option<String>,
    /// The client that wrote it.
    pub writer: String,
    /// Time of the write, in milliseconds since 1970 by the writer's clock; informational.
    pub written_at_ms: Option<u64>,
}

impl From<&Block> for BlockInfo {
    fn from(known: &Block) -> BlockInfo {
        let key = |id| block::name(id).key().to_owned();
        BlockInfo {
            id: known.id.map_or_else(|| "genesis".into(), key),
            version: known.version,
            length: known.length,
            digest: known.metadata.digest.map(|digest| format!("{digest:?}")),
            next: known.metadata.next.map(key),
            writer: format!("{:?}", known.version.writer.client),
            written_at_ms: known.metadata.written_at_ms,
        }
    }
}

/// A file of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Name of the file.
    pub name: String,
    /// The version of its genesis block.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
}

/// The files of one page of a listing, and the name after which the next page begins; `None`: this was the last page.
pub type FilePage = (Vec<FileEntry>, Option<String>);

impl Domain {
    /// The file of this name; names of files and keys of objects do not collide.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    pub fn file(&self, name: &str) -> Result<File, Error> {
        Ok(File {
            domain: self.clone(),
            name: block::genesis(name)?,
        })
    }

    /// The files whose names begin with `prefix` and are larger than `after`, in order; and after which name to go on.
    /// Regular, as [`Domain::list`].
    ///
    /// # Errors
    /// As [`Domain::list`].
    pub fn files<'a>(
        &'a self,
        prefix: &'a str,
        after: &'a str,
    ) -> BoxFuture<'a, Result<FilePage, Error>> {
        Box::pin(async move {
            let bytes = prefix.len().max(after.len());
            if bytes > limits::KEY_BYTES {
                let reason = Invalid::ListBound { bytes };
                return Err(Error::Invalid { reason });
            }
            let request = ListRequest {
                after: after.into(),
                ..ListRequest::new(Kind::Genesis, prefix)
            };
            let list = move |context: Context| async move {
                let page = context.handle().list(&request).await;
                let page = page.map_err(|failed| context.not_applied(&failed))?;
                let entry = |entry: ListEntry| FileEntry {
                    name: entry.key,
                    version: entry.tag,
                };
                Ok((page.entries.into_iter().map(entry).collect(), page.next))
            };
            self.run(Deadline::Idle, Operation::List, None, list).await
        })
    }
}

impl File {
    /// Name of the file.
    pub fn name(&self) -> &str {
        self.name.key()
    }

    /// The domain that it is in.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Runs an operation on the file, which has no deadline as long as it gets on.
    fn run<T, F>(
        &self,
        operation: Operation,
        work: impl FnOnce(Context) -> F + Send + 'static,
    ) -> RunningJob<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let name = self.name.clone();
        self.domain.run(Deadline::Idle, operation, name, work)
    }

    /// Its blocks as they are, in their order, the genesis block first; without their data.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn blocks(&self) -> Result<Vec<BlockInfo>, FileError> {
        let read = Box::pin(async {
            let read = |context: Context| async move {
                let chain = walk(&context, None).await?;
                Ok(chain.blocks.iter().map(BlockInfo::from).collect())
            };
            self.run(Operation::FileRead, read).await
        });
        self.domain
            .operate(Operation::FileRead, self.name(), read)
            .await
    }

    /// Removes the file with its blocks; returns the version of its tombstone.
    ///
    /// # Errors
    /// [`FileError`]. After [`Error::Unknown`] it may be gone.
    pub async fn remove(&self) -> Result<Version, FileError> {
        let remove = Box::pin(async {
            let remove = |context: Context| async move {
                match context.file().remove().await {
                    Ok(version) => Ok(version),
                    Err(error) => Err(missing_or(&context, error).await),
                }
            };
            self.run(Operation::FileRemove, remove).await
        });
        self.domain
            .operate(Operation::FileRemove, self.name(), remove)
            .await
    }
}

/// The blocks of the file; blocks that have not changed since `base` are taken from there.
async fn walk(context: &Context, base: Option<&Chain>) -> Result<Chain, FileError> {
    match context.file().walk(base).await {
        Ok(chain) => Ok(chain),
        Err(error) => Err(missing_or(context, error).await),
    }
}
