//! Files of any size that many people edit: lists of blocks, each written coverably, so that edits of different parts all
//! prevail, and only what changed travels (`areo_core::fragment`).
//!
//! A [`Base`] remembers what a local file was made from. A push compares the local file with it, writes the blocks whose
//! content changed, and nothing else: what others have changed elsewhere stays. Where somebody else has changed the same
//! block, that block is not written, and the push says so ([`Pushed::conflicts`]); the file as a whole is not atomic. Without
//! a base, the local file is compared with what is there, and replaces it.
//!
//! ```no_run
//! # async fn example(domain: areo_client::Domain) -> Result<(), Box<dyn std::error::Error>> {
//! use areo_client::file::{Chunking, PushOptions};
//! use std::path::Path;
//!
//! let file = domain.file("notes")?;
//! let pushed = file.push(Path::new("notes.txt"), None, PushOptions::default(), |_| {}).await?;
//! // Later, after an edit:
//! let base = pushed.base;
//! let pushed = file.push(Path::new("notes.txt"), Some(&base), PushOptions::default(), |_| {}).await?;
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
pub use pull::{PullOptions, Pulled};
pub use push::{PushOptions, Pushed};

use crate::Version;
use crate::domain::Domain;
use crate::error::{Error, Invalid, Operation};
use crate::known::Session;
use crate::metrics::{Counted, counted};
use crate::reconfig::Work;
use crate::span;
use areo_core::fragment::file::{self, Block};
use areo_core::fragment::{block, remove};
use areo_core::limits;
use areo_core::message::ListRequest;
use areo_core::object::{Kind, Name};
use error::Asked;

/// What goes on with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// So many bytes of the local file were read, of so many.
    Scanned {
        /// Since the last time.
        bytes: u64,
        /// Altogether.
        total: u64,
    },
    /// So many bytes of blocks are on their way.
    Sending {
        /// Since the last time.
        bytes: u64,
    },
    /// So many bytes of the file are there.
    Received {
        /// Since the last time.
        bytes: u64,
        /// Altogether.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Who it is: `genesis`, or the name of its object.
    pub id: String,
    /// Its version; the second part of it says who wrote it.
    pub version: Version,
    /// Bytes of data; 0 of the genesis block, and of one whose content was removed.
    pub length: u64,
    /// The hash (BLAKE3) of its data.
    pub digest: Option<String>,
    /// The block after it.
    pub next: Option<String>,
    /// When it was written, in milliseconds since 1970 by the writer's clock; informational.
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
            written_at_ms: known.metadata.written_at_ms,
        }
    }
}

/// A file of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// The version of its genesis block.
    pub version: Version,
}

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
    pub async fn files(
        &self,
        prefix: &str,
        after: &str,
    ) -> Result<(Vec<FileEntry>, Option<String>), Error> {
        let bytes = prefix.len().max(after.len());
        if bytes > limits::KEY_BYTES {
            let reason = Invalid::ListBound { bytes };
            return Err(Error::Invalid { reason });
        }
        let request = ListRequest {
            kind: Kind::Genesis,
            prefix: prefix.into(),
            after: after.into(),
            limit: limits::PAGE_ENTRIES as u16,
        };
        self.work(move |work: Work| async move {
            let (client, c) = (&work.session.client, work.about.known());
            let page = client.domain(c).list(&request).await.map_err(|failed| {
                let latest = work.about.latest(client);
                let domain = Some(&*work.about.name);
                let asked = Session::asked(Operation::List, domain, &latest, None);
                work.session.not_applied(&asked, &failed)
            })?;
            let entry = |entry: areo_core::message::ListEntry| FileEntry {
                name: entry.key,
                version: entry.tag,
            };
            Ok((page.entries.into_iter().map(entry).collect(), page.next))
        })
        .await
    }
}

impl File {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.key()
    }

    /// The domain that it is in.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Its blocks as they are, in their order, the genesis block first; without their data.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn blocks(&self) -> Result<Vec<BlockInfo>, FileError> {
        let name = self.name.clone();
        let walk = move |work: Work| async move {
            let (client, c) = (&work.session.client, work.about.known());
            let asked = Asked {
                work: &work,
                operation: Operation::Get,
                name: &name,
            };
            let walk = async {
                match file::walk(client, c, &name, None).await {
                    Ok(chain) => Ok(chain),
                    Err(error) => Err(asked.missing_or(error).await),
                }
            };
            let chain = span::watch!(span::file_read(name.key()), walk)?;
            Ok(chain.blocks.iter().map(BlockInfo::from).collect())
        };
        counted!(
            self.domain.metrics(),
            Counted::FileRead,
            self.domain.work(walk)
        )
    }

    /// Removes the file with its blocks; returns the version of its tombstone.
    ///
    /// # Errors
    /// [`FileError`]. After [`Error::Unknown`] it may be gone.
    pub async fn remove(&self) -> Result<Version, FileError> {
        let name = self.name.clone();
        let remove = move |work: Work| async move {
            let (client, c) = (&work.session.client, work.about.known());
            let asked = Asked {
                work: &work,
                operation: Operation::Delete,
                name: &name,
            };
            let remove = async {
                match remove::remove(client, c, &name).await {
                    Ok(version) => Ok(version),
                    Err(error) => Err(asked.missing_or(error).await),
                }
            };
            span::watch!(span::file_remove(name.key()), remove)
        };
        counted!(
            self.domain.metrics(),
            Counted::FileRemove,
            self.domain.work(remove)
        )
    }
}
