//! Why something was not done with a file.

use super::InvalidChunking;
use crate::error::{Damage, Error};
use crate::session::Context;
use crate::view;
use areo_core::fragment::file;
use areo_core::object::Name;
use areo_core::span::ErrorType;
use areo_core::tag::Tag as Version;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Why something was not done with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no file '{name}' in '{domain}'")]
    NotFound {
        /// Name of the domain.
        domain: String,
        /// Name of the missing file.
        name: String,
    },
    /// It is an object, not a file.
    #[error(
        "'{name}' in '{domain}' is an object, not a file: `areo get` reads it; a file needs another name"
    )]
    IsObject {
        /// Name of the domain.
        domain: String,
        /// Name of the object.
        name: String,
    },
    /// An error of operations on objects.
    #[error("{0}")]
    Error(Error),
    /// Blocks of such sizes cannot be.
    #[error("{0}")]
    Chunking(InvalidChunking),
    /// The local file is a directory, or something else that has no content.
    #[error("{} is a directory or a device: a file of blocks is made of one file", .path.display())]
    NotAFile {
        /// Path of the local file.
        path: PathBuf,
    },
    /// The local file was changed while it was read. Of the file, nothing was changed that it did not have.
    #[error("{} was changed while it was read: push it again", .path.display())]
    Changed {
        /// Path of the local file.
        path: PathBuf,
    },
    /// The stored file differs from the local one, and nothing says which of them is newer.
    #[error(
        "'{name}' differs from {}, and nothing says that this is based on it: pull it to another place and take over what is missing, or push with --fresh to replace it",
        .path.display()
    )]
    NoBase {
        /// Name of the stored file.
        name: String,
        /// Path of the local file.
        path: PathBuf,
    },
    /// The local file has changes that a pull would lose.
    #[error("{} has changes that a pull would lose: push it first, or pull to another place, or with --force", .path.display())]
    Modified {
        /// Path of the local file.
        path: PathBuf,
    },
    /// The local file could not be read or written.
    #[error("cannot {what} {}: {source}", .path.display())]
    Local {
        /// Path of the local file.
        path: PathBuf,
        /// The action that was tried.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The caller ended the push.
    #[error("the push was given up")]
    GivenUp,
    /// The receiver of the content takes no more.
    #[error("cannot write the content: {source}")]
    Output {
        /// The error of the receiver.
        source: io::Error,
    },
}

impl ErrorType for FileError {
    fn error_type(&self) -> &'static str {
        match self {
            FileError::Error(error) => error.error_type(),
            FileError::NotFound { .. } => "not_found",
            FileError::IsObject { .. } => "is_object",
            FileError::Chunking(_) => "invalid",
            FileError::Modified { .. } => "modified",
            FileError::NoBase { .. } => "no_base",
            FileError::NotAFile { .. }
            | FileError::Changed { .. }
            | FileError::GivenUp
            | FileError::Local { .. }
            | FileError::Output { .. } => "local",
        }
    }
}

impl From<Error> for FileError {
    fn from(error: Error) -> FileError {
        FileError::Error(error)
    }
}

/// An error of an operation on local files.
pub(super) fn local(what: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Local {
        path: path.into(),
        what,
        source,
    }
}

/// The error of an operation on a file.
pub(super) fn explain(context: &Context, error: file::FileError) -> FileError {
    match error {
        file::FileError::NotFound { .. } => FileError::NotFound {
            domain: context.domain.name().into(),
            name: context.name().key().into(),
        },
        file::FileError::Read(failed) => context.not_applied(&failed).into(),
        file::FileError::Write(error) => context.write_error(&error).into(),
        file::FileError::Metadata { key, error } => damaged(context, key, error.to_string()),
        file::FileError::Broken { key } => {
            let reason = "it is not there, or links lead in a circle";
            damaged(context, key, reason.into())
        }
    }
}

/// The error of a file operation, after a look whether an object has the name of the file that is missing.
pub(super) async fn missing_or(context: &Context, error: file::FileError) -> FileError {
    if matches!(error, file::FileError::NotFound { .. })
        && let Err(is_object) = check_no_object(context).await
    {
        return is_object;
    }
    explain(context, error)
}

/// A file could have the name of an object, but people would mix them up.
pub(super) async fn check_no_object(context: &Context) -> Result<(), FileError> {
    let object = Name::user(context.name().key()).expect("the limits are the same");
    match context.handle().stat(&object).await {
        Ok(found) if found.value.as_ref().is_none_or(|value| value.deleted) => Ok(()),
        Ok(_) => Err(FileError::IsObject {
            domain: context.domain.name().into(),
            name: context.name().key().into(),
        }),
        Err(failed) => Err(context.not_applied(&failed).into()),
    }
}

/// A block of the file is damaged, or is not there.
pub(super) fn damaged(context: &Context, block: String, reason: String) -> FileError {
    let damage = Damage::Block { block, reason };
    let key = context.name().key();
    context.domain.corrupted(key, damage).into()
}

/// The versions that are in each other's way, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Name of the block's object.
    pub block: String,
    /// The version that the local file is based on.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
    /// The newest version of the block.
    #[serde(serialize_with = "view::text")]
    pub newest: Version,
    /// The block was removed, and the file with it.
    pub removed: bool,
}
