//! Values of a backup: each in a file that is named by the hash of its bytes.

use super::{Archive, damaged};
use crate::exit::Outcome;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, ReadBuf};

/// A value that is being written. It has its name once it is whole.
pub(in crate::cmd) struct ContentWriter {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    bytes: u64,
}

/// A value that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct Content {
    pub(in crate::cmd) hash: String,
    pub(in crate::cmd) bytes: u64,
}

impl Archive {
    /// Begins to write a value.
    pub(in crate::cmd) fn write_content(&self) -> io::Result<ContentWriter> {
        Ok(ContentWriter {
            file: NamedTempFile::new_in(self.folder.join("unfinished"))?,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        })
    }

    /// Ends a value. It takes the place of one of that name, which may be damaged.
    pub(in crate::cmd) fn keep_content(&self, writer: ContentWriter) -> io::Result<Content> {
        let content = Content {
            hash: writer.hasher.finalize().to_hex().to_string(),
            bytes: writer.bytes,
        };
        let path = self.content(&content.hash);
        let folder = path.parent().expect("it is in a folder");
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        writer.file.persist(&path)?;
        Ok(content)
    }
}

impl ContentWriter {
    pub(in crate::cmd) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        self.file.write_all(piece)
    }
}

/// Compares a value with its name; returns its length.
///
/// # Errors
/// It is damaged, or is not there.
pub(in crate::cmd) fn verify(path: &Path) -> Outcome<u64> {
    let mut hasher = blake3::Hasher::new();
    let copied = File::open(path).and_then(|mut file| io::copy(&mut file, &mut hasher));
    let bytes = copied.map_err(|error| damaged(path, &crate::exit::plain(&error)))?;
    match is_named(path, &hasher) {
        true => Ok(bytes),
        false => Err(damaged(path, OTHER_BYTES)),
    }
}

/// The sentence about a value whose bytes were changed.
const OTHER_BYTES: &str = "its bytes do not have the hash that is its name";

fn is_named(path: &Path, hasher: &blake3::Hasher) -> bool {
    let hash = hasher.finalize().to_hex();
    path.file_name().is_some_and(|name| name == hash.as_str())
}

/// A value that fails at its end if it is damaged, so that no reader takes the whole of it.
pub(in crate::cmd) struct Verified {
    file: tokio::fs::File,
    path: PathBuf,
    hasher: blake3::Hasher,
}

impl Verified {
    pub(in crate::cmd) async fn open(path: PathBuf) -> io::Result<Verified> {
        Ok(Verified {
            file: tokio::fs::File::open(&path).await?,
            path,
            hasher: blake3::Hasher::new(),
        })
    }
}

impl AsyncRead for Verified {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.file).poll_read(context, out))?;
        let piece = &out.filled()[before..];
        if !piece.is_empty() {
            self.hasher.update(piece);
        } else if out.remaining() > 0 && !is_named(&self.path, &self.hasher) {
            return Poll::Ready(Err(io::Error::other(OTHER_BYTES)));
        }
        Poll::Ready(Ok(()))
    }
}
