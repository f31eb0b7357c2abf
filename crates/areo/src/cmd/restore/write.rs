//! The writing of one object or file of a backup.

use crate::cmd::archive::{Archive, Item, Kind, Verified, damaged, verify};
use crate::cmd::file::file_failure;
use crate::exit::{Failure, Outcome};
use crate::session::failure;
use areo_client::file::{FileError, PushOptions};
use areo_client::{Domain, Error, Etag, Metadata, ObjectInfo, PutOptions, StreamError};
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The result of restoring an object or a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Restored {
    /// The item was written, with this number of bytes.
    Written(u64),
    /// The item had this content already.
    Unchanged,
    /// Another version is there, and stays.
    Kept,
}

/// The parts that all writes into a domain share.
#[derive(Clone)]
pub(super) struct Writing {
    pub(super) archive: Arc<Archive>,
    pub(super) domain: Domain,
    pub(super) block_bytes: u32,
    pub(super) overwrite: bool,
    /// Keys of the objects that were there.
    pub(super) there: Arc<HashSet<String>>,
    pub(super) bar: ProgressBar,
}

impl Writing {
    pub(super) async fn write(self, item: Item) -> Outcome<Restored> {
        let path = self.archive.content(&item.content);
        let restored = match item.name.kind {
            Kind::Object => self.object(&item, &path).await?,
            Kind::File => self.file(&item, &path).await?,
        };
        self.bar.inc(item.bytes);
        Ok(restored)
    }

    async fn object(&self, item: &Item, path: &Path) -> Outcome<Restored> {
        let key = &*item.name.key;
        if self.there.contains(key) {
            match self.domain.stat(key).await {
                Ok(info) if is_same(item, &info) => return Ok(Restored::Unchanged),
                Ok(_) if !self.overwrite => return Ok(Restored::Kept),
                Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => {}
                Err(error) => return Err(failure(error)),
            }
        }
        let etag = item.etag.as_deref().map(Etag::new).transpose();
        let etag = etag.map_err(|error| damaged(path, &error.to_string()))?;
        let options = PutOptions {
            content_type: item.content_type.clone(),
            user_metadata: item.metadata.clone(),
            etag,
            written_at_ms: item.written_at_ms,
            block_bytes: self.block_bytes,
            request: 0,
        };
        let opened = Verified::open(path.into()).await;
        let mut value = opened.map_err(|error| unreadable(item, path, &error))?;
        let put = self.domain.put_stream(key, &mut value, options).await;
        match put {
            Ok(_) => Ok(Restored::Written(item.bytes)),
            Err(StreamError::Store(error)) => Err(failure(error)),
            Err(StreamError::Local(error)) => Err(unreadable(item, path, &error)),
        }
    }

    async fn file(&self, item: &Item, path: &Path) -> Outcome<Restored> {
        let (file, here) = (item.name.key.as_str(), path.to_owned());
        let verified = spawn_blocking(move || verify(&here)).await;
        verified
            .expect("reading does not panic")
            .map_err(|failure| named(item, &failure))?;
        let file = self.domain.file(file).map_err(failure)?;
        let options = PushOptions {
            chunking: None,
            needs_base: !self.overwrite,
        };
        let pushed = file.push(path, None, options, |_| ControlFlow::Continue(()));
        match pushed.await {
            Ok(pushed) => match pushed.failed {
                Some(error) => Err(failure(error)),
                None if pushed.written == 0 && !pushed.created => Ok(Restored::Unchanged),
                None => Ok(Restored::Written(item.bytes)),
            },
            Err(FileError::NoBase { .. }) => Ok(Restored::Kept),
            Err(error) => Err(file_failure(error)),
        }
    }
}

fn unreadable(item: &Item, path: &Path, error: &std::io::Error) -> Failure {
    named(item, &damaged(path, &crate::exit::plain(error)))
}

/// A failure that names the damaged object.
fn named(item: &Item, failure: &Failure) -> Failure {
    let (key, domain) = (&item.name.key, &item.name.domain);
    let sentence = format!("'{key}' of '{domain}' is not restored: {}", failure.message);
    Failure::new(failure.code, sentence)
}

/// True if the object has the content and the metadata of the backup.
fn is_same(item: &Item, info: &ObjectInfo) -> bool {
    let Metadata {
        content_type,
        user,
        checksum,
        etag,
        written_at_ms,
        ..
    } = &info.metadata;
    let checksum = checksum.map(|checksum| format!("{checksum:08x}"));
    info.length == item.bytes
        && checksum.is_some()
        && checksum == item.checksum
        && *content_type == item.content_type
        && *user == item.metadata
        && etag.as_ref().map(Etag::as_str) == item.etag.as_deref()
        && *written_at_ms == item.written_at_ms
}
