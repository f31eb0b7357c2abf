//! Why something was not done with a file.

use super::InvalidChunking;
use crate::error::{Damage, Error};
use crate::reconfig::Work;
use crate::{Operation, Version};
use areo_core::error::WriteError;
use areo_core::fragment::file;
use areo_core::object::Name;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why something was not done with a file.
#[derive(Debug)]
pub enum FileError {
    /// There is no such file.
    NotFound {
        /// The domain.
        domain: String,
        /// The file.
        name: String,
    },
    /// It is an object, not a file.
    IsObject {
        /// The domain.
        domain: String,
        /// The name.
        name: String,
    },
    /// As operations on objects.
    Error(Error),
    /// Blocks of such sizes cannot be.
    Chunking(InvalidChunking),
    /// The local file is a directory, or something else that has no content.
    NotAFile {
        /// Which.
        path: PathBuf,
    },
    /// The local file was changed while it was read. Of the file, nothing was changed that it did not have.
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// The local file has changes that a pull would lose.
    Modified {
        /// Which.
        path: PathBuf,
    },
    /// The local file could not be read or written.
    Local {
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Whoever took the content takes no more.
    Output {
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotFound { domain, name } => {
                write!(f, "there is no file '{name}' in '{domain}'")
            }
            FileError::IsObject { domain, name } => write!(
                f,
                "'{name}' in '{domain}' is an object, not a file: `areo get` reads it; a file needs another name"
            ),
            FileError::Error(error) => error.fmt(f),
            FileError::Chunking(error) => error.fmt(f),
            FileError::NotAFile { path } => write!(
                f,
                "{} is a directory or a device: a file of blocks is made of one file",
                path.display()
            ),
            FileError::Changed { path } => write!(
                f,
                "{} was changed while it was read: push it again",
                path.display()
            ),
            FileError::Modified { path } => write!(
                f,
                "{} has changes that a pull would lose: push it first, or pull to another place, or with --force",
                path.display()
            ),
            FileError::Local { path, what, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            FileError::Output { source } => write!(f, "cannot write the content: {source}"),
        }
    }
}

impl std::error::Error for FileError {}

impl From<Error> for FileError {
    fn from(error: Error) -> FileError {
        FileError::Error(error)
    }
}

/// What an operation on local files says of them.
pub(super) fn local(what: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Local {
        path: path.into(),
        what,
        source,
    }
}

/// An operation on a file, for its errors.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) work: &'a Work,
    pub(super) operation: Operation,
    pub(super) name: &'a Name,
}

impl Asked<'_> {
    pub(super) fn error(self, error: file::FileError) -> FileError {
        let name = self.name.key();
        match error {
            file::FileError::NotFound { .. } => FileError::NotFound {
                domain: self.work.about.name.clone(),
                name: name.into(),
            },
            file::FileError::Read(failed) => {
                let (session, asked) = (&self.work.session, self.asked());
                session.not_applied(&asked, &failed).into()
            }
            file::FileError::Write(error) => self.write_error(&error).into(),
            file::FileError::Metadata { key, error } => self.damaged(key, error.to_string()),
            file::FileError::Broken { key } => {
                self.damaged(key, "it is not there, or links lead in a circle".into())
            }
        }
    }

    /// The same, after a look whether somebody means an object.
    pub(super) async fn missing_or(self, error: file::FileError) -> FileError {
        let is_missing = matches!(error, file::FileError::NotFound { .. });
        match is_missing {
            true => match self.check_no_object().await {
                Err(is_object) => is_object,
                Ok(()) => self.error(error),
            },
            false => self.error(error),
        }
    }

    /// A file could have the name of an object, but people would mix them up.
    pub(super) async fn check_no_object(self) -> Result<(), FileError> {
        let (client, c) = (&self.work.session.client, self.work.about.known());
        let object = Name::user(self.name.key()).expect("the limits are the same");
        match client.domain(c).stat(&object).await {
            Ok(found) if found.value.as_ref().is_none_or(|value| value.deleted) => Ok(()),
            Ok(_) => Err(FileError::IsObject {
                domain: self.work.about.name.clone(),
                name: self.name.key().into(),
            }),
            Err(error) => Err(self.error(file::FileError::Read(error))),
        }
    }

    pub(super) fn write_error(self, error: &WriteError) -> Error {
        let (session, asked) = (&self.work.session, self.asked());
        match error {
            WriteError::NotApplied(failed) => session.not_applied(&asked, failed),
            WriteError::Unknown(failed) => session.unknown(&asked, failed),
        }
    }

    pub(super) fn damaged(self, block: String, reason: String) -> FileError {
        FileError::Error(Error::Corrupted {
            domain: self.work.about.name.clone(),
            key: self.name.key().into(),
            damage: Box::new(Damage::Block { block, reason }),
        })
    }

    fn asked(&self) -> crate::error::Asked<'_> {
        let latest = self.work.about.latest(&self.work.session.client);
        let (domain, key) = (Some(&*self.work.about.name), Some(self.name.key()));
        crate::known::Session::asked(self.operation, domain, &latest, key)
    }
}

/// Which versions are in each other's way, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The block.
    pub block: String,
    /// The version that the local file is based on.
    pub version: Version,
    /// The newest one.
    pub newest: Version,
    /// The block was removed, and the file with it.
    pub removed: bool,
}
