//! Files, without async.

use super::{Domain, block_on};
use crate::file::{
    self, Base, BlockInfo, Chunking, Difference, FileEntry, FileError, Progress, PullOptions,
    Pulled, PushOptions, Pushed,
};
use crate::{Error, Version};
use bytes::Bytes;
use std::io;
use std::path::Path;

/// As [`file::File`].
#[derive(Clone, Debug)]
pub struct File {
    file: file::File,
}

impl Domain {
    /// As [`crate::Domain::file`].
    ///
    /// # Errors
    /// As there.
    pub fn file(&self, name: &str) -> Result<File, Error> {
        let file = self.domain.file(name)?;
        Ok(File { file })
    }

    /// As [`crate::Domain::files`].
    ///
    /// # Errors
    /// As there.
    pub fn files(
        &self,
        prefix: &str,
        after: &str,
    ) -> Result<(Vec<FileEntry>, Option<String>), Error> {
        block_on(self.domain.files(prefix, after))
    }
}

impl File {
    /// Its name.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// As [`file::File::push`].
    ///
    /// # Errors
    /// As there.
    pub fn push(
        &self,
        path: &Path,
        base: Option<&Base>,
        options: PushOptions,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Pushed, FileError> {
        block_on(self.file.push(path, base, options, progress))
    }

    /// As [`file::File::pull`].
    ///
    /// # Errors
    /// As there.
    pub fn pull(
        &self,
        path: &Path,
        base: Option<&Base>,
        options: PullOptions,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Pulled, FileError> {
        block_on(self.file.pull(path, base, options, progress))
    }

    /// As [`file::File::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(
        &self,
        sink: impl FnMut(&Bytes) -> io::Result<()> + Send + 'static,
    ) -> Result<u64, FileError> {
        block_on(self.file.read(sink))
    }

    /// As [`file::File::diff`].
    ///
    /// # Errors
    /// As there.
    pub fn diff(&self, path: &Path, chunking: Chunking) -> Result<Vec<Difference>, FileError> {
        block_on(self.file.diff(path, chunking))
    }

    /// As [`file::File::blocks`].
    ///
    /// # Errors
    /// As there.
    pub fn blocks(&self) -> Result<Vec<BlockInfo>, FileError> {
        block_on(self.file.blocks())
    }

    /// As [`file::File::remove`].
    ///
    /// # Errors
    /// As there.
    pub fn remove(&self) -> Result<Version, FileError> {
        block_on(self.file.remove())
    }
}
