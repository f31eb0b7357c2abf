//! The reading of one object or file into a backup.

use super::is_lost;
use crate::cmd::archive::{Archive, ContentWriter, Item, ItemName, Kind};
use crate::cmd::file::file_failure;
use crate::cmd::many::READS;
use crate::exit::{Failure, Outcome};
use crate::session::failure;
use areo_client::file::{BlockInfo, FileError};
use areo_client::{Domain, Error};
use indicatif::ProgressBar;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::task::spawn_blocking;

/// An object or a file of a listing.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: ItemName,
    /// Not known of a file.
    pub(super) version: Option<String>,
    pub(super) bytes: u64,
}

/// The result of reading an object or a file.
pub(super) enum Read {
    Item(Item),
    /// It is as it was.
    Unchanged,
    /// It was deleted meanwhile.
    Gone(ItemName),
    /// The item is damaged.
    Unreadable(ItemName, Failure),
}

/// The parts that all reads of a domain share.
#[derive(Clone)]
pub(super) struct Reading {
    pub(super) domain: Domain,
    pub(super) archive: Arc<Archive>,
    pub(super) bar: ProgressBar,
}

/// The names of all files of a domain.
pub(super) async fn files(domain: &Domain) -> Outcome<Vec<String>> {
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let (page, next) = domain.files("", &after).await.map_err(failure)?;
        names.extend(page.into_iter().map(|entry| entry.name));
        match next {
            Some(next) => after = next,
            None => return Ok(names),
        }
    }
}

impl Reading {
    /// Reads it, if it is not at the known version.
    pub(super) async fn read(self, found: Found, known: Option<String>) -> Outcome<Read> {
        let name = found.name;
        let read = match name.kind {
            Kind::Object => self.object(&name).await,
            Kind::File => self.file(&name, known).await,
        };
        match read {
            Err(failure) if is_lost(&failure) => Ok(Read::Unreadable(name, failure)),
            read => read,
        }
    }

    async fn object(&self, name: &ItemName) -> Outcome<Read> {
        let mut error = None;
        for _ in 0..READS {
            match self.version(name).await {
                Ok(item) => return Ok(Read::Item(item)),
                Err(Why::Store(over @ Error::VersionConflict { .. })) => error = Some(over),
                Err(Why::Store(Error::NotFound { key: Some(_), .. })) => {
                    return Ok(Read::Gone(name.clone()));
                }
                Err(Why::Store(error)) => return Err(failure(error)),
                Err(Why::Local(error)) => return Err(self.not_written(&error)),
            }
        }
        Err(failure(error.expect("it was read")))
    }

    /// Reads the newest version of an object.
    async fn version(&self, name: &ItemName) -> Result<Item, Why> {
        let mut stream = self.domain.get_stream(&name.key).await?;
        let mut writer = self.begin().await?;
        while let Some(piece) = stream.next().await? {
            self.bar.inc(piece.len() as u64);
            let write = move || writer.write(&piece).map(|()| writer);
            writer = spawn_blocking(write)
                .await
                .expect("writing does not panic")?;
        }
        let archive = Arc::clone(&self.archive);
        let kept = spawn_blocking(move || archive.keep_content(writer)).await;
        let content = kept.expect("writing does not panic")?;
        let read = stream.streamed();
        assert_eq!(content.bytes, read.bytes, "all that came was written");
        let metadata = read.metadata;
        Ok(Item {
            name: name.clone(),
            version: read.version.to_string(),
            bytes: content.bytes,
            content: content.hash,
            checksum: metadata.checksum.map(|checksum| format!("{checksum:08x}")),
            content_type: metadata.content_type,
            etag: metadata.etag.map(|etag| etag.as_str().into()),
            metadata: metadata.user,
            written_at_ms: metadata.written_at_ms,
        })
    }

    /// Each block of a file is read at one version of it.
    async fn file(&self, name: &ItemName, known: Option<String>) -> Outcome<Read> {
        let file = self.domain.file(&name.key).map_err(failure)?;
        let blocks = match file.blocks().await {
            Err(error) if is_gone(&error) => return Ok(Read::Gone(name.clone())),
            blocks => blocks.map_err(file_failure)?,
        };
        let version = version_of(&blocks);
        if known.is_some_and(|known| known == version) {
            return Ok(Read::Unchanged);
        }
        let failed = |error: &io::Error| self.not_written(error);
        let writer = self.begin().await.map_err(|error| failed(&error))?;
        let writer = Arc::new(Mutex::new(Some(writer)));
        let (sink, bar) = (Arc::clone(&writer), self.bar.clone());
        let take = move |piece: &bytes::Bytes| {
            bar.inc(piece.len() as u64);
            let mut writer = sink.lock().expect("no holder of the lock panics");
            writer.as_mut().expect("taken at the end").write(piece)
        };
        match file.read(take).await {
            Ok(_) => {}
            Err(error) if is_gone(&error) => return Ok(Read::Gone(name.clone())),
            Err(FileError::Output { source }) => return Err(failed(&source)),
            Err(error) => return Err(file_failure(error)),
        }
        let written = writer.lock().expect("no holder of the lock panics").take();
        let written = written.expect("taken once");
        let archive = Arc::clone(&self.archive);
        let kept = spawn_blocking(move || archive.keep_content(written)).await;
        let content = kept.expect("writing does not panic");
        let content = content.map_err(|error| failed(&error))?;
        let times = blocks.iter().filter_map(|block| block.written_at_ms);
        Ok(Read::Item(Item {
            name: name.clone(),
            version,
            bytes: content.bytes,
            content: content.hash,
            checksum: None,
            content_type: None,
            etag: None,
            metadata: Vec::new(),
            written_at_ms: times.max(),
        }))
    }

    async fn begin(&self) -> io::Result<ContentWriter> {
        let archive = Arc::clone(&self.archive);
        let begun = spawn_blocking(move || archive.write_content()).await;
        begun.expect("opening does not panic")
    }

    fn not_written(&self, error: &io::Error) -> Failure {
        Failure::file("write into", self.archive.folder(), error)
    }
}

/// True if it was removed, whether an object has its name now or not.
fn is_gone(error: &FileError) -> bool {
    matches!(
        error,
        FileError::NotFound { .. } | FileError::IsObject { .. }
    )
}

/// The reason that a version was not read.
enum Why {
    Store(Error),
    Local(io::Error),
}

impl From<Error> for Why {
    fn from(error: Error) -> Why {
        Why::Store(error)
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Why {
        Why::Local(error)
    }
}

/// A name for the versions of these blocks together.
fn version_of(blocks: &[BlockInfo]) -> String {
    let mut hasher = blake3::Hasher::new();
    for block in blocks {
        hasher.update(format!("{} {}\n", block.id, block.version).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
