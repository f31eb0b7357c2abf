//! The data directory of a server: one process at a time, one format, one identity.
//!
//! ```text
//! LOCK      locked (flock) while a process uses the directory
//! FORMAT    "areo data directory\nformat 2\n"
//! EXTENT    what a start must find in the log at least
//! IDENTITY  a blob of the layer above, with a checksum
//! IDENTITY.spare  room for the next one, so that a server starts on a full disk; what it says means nothing
//! TRUST     keys and certificates of the server, a blob of the layer above behind its checksum; missing where the cluster has none
//! JOIN      the id and the key with which a machine asks to be a server, a blob of the layer above behind its checksum; goes with the first identity
//! SCRUB     how far verification is, a blob of the layer above behind its checksum; may be missing
//! <name>/   one directory per log, see Directory::disk
//! incomplete-log-of-ID/   the log, EXTENT and SCRUB of a server whose place this one takes, see Directory::set_aside
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{CWD, FlockOperation, RenameFlags};

use crate::checksum::crc32c;
use crate::disk::{Disk, FILE_MODE, FileDisk, create_new, new_name, publish, sync_directory};
use crate::format::{HeaderFault, get_u32, get_u64, put_u32, put_u64};

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const IDENTITY: &str = "IDENTITY";
const SPARE: &str = "IDENTITY.spare";
const TRUST: &str = "TRUST";
const JOIN: &str = "JOIN";
const SCRUB: &str = "SCRUB";
/// File systems put this into their root.
const LOST_AND_FOUND: &str = "lost+found";

const FORMAT_TITLE: &str = "areo data directory";
/// The version of the format of the whole directory: of its files, and of the records in them.
const FORMAT_VERSION: u32 = 2;

/// The mode of a data directory: only the user that runs the server can read it.
const DIRECTORY_MODE: u32 = 0o700;

const IDENTITY_VERSION: u32 = 1;
const IDENTITY_MAGIC: u64 = u64::from_le_bytes(*b"AreoIdnt");
const IDENTITY_HEADER_BYTES: usize = 20;
/// The longest identity, in bytes.
const MAX_IDENTITY_BYTES: usize = 64 << 10;

/// A data directory, locked until this value is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process holds the lock.
    #[error("{}: another process holds this data directory", .path.display())]
    Locked { path: PathBuf },
    /// It holds something, but not our data.
    #[error("{}: not a data directory, but not empty either (it holds {entry})", .path.display())]
    Foreign {
        path: PathBuf,
        /// Something that is in it.
        entry: String,
    },
    /// The user of this process may not enter it, or not write there.
    #[error("{}: not yours: {}; run this as that user, or choose another directory", .path.display(), owned(*.owner))]
    NotYours {
        /// The directory, or a file in it.
        path: PathBuf,
        /// The number of the user that it belongs to, if that can be asked for.
        owner: Option<u32>,
    },
    /// Files of the server in it belong to another user than those that this process makes. An administrator could use them, and would
    /// leave files among them that their user cannot read.
    #[error(
        "{}: not yours: it belongs to user {owner}, and this process makes files of user {user}: run it as user {owner}, or \
         give the directory to this user (`chown -R {user} {}`)",
        .path.display(),
        .directory.display()
    )]
    OtherUser {
        /// The file of the other user.
        path: PathBuf,
        directory: PathBuf,
        /// The number of the user that it belongs to.
        owner: u32,
        /// The number of the user to whom files of this process belong.
        user: u32,
    },
    /// Its file system can only be read, or it is no directory.
    #[error("{}: cannot be used as a data directory: {source}", .path.display())]
    NotWritable {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It was written in another format.
    #[error(
        "{}: data format {found}, this program knows format {supported}: use the program that wrote it{}",
        .path.display(),
        or_newer(.found > .supported)
    )]
    UnsupportedVersion {
        path: PathBuf,
        /// The format of the directory.
        found: u32,
        /// The format this program knows.
        supported: u32,
    },
    /// A file has invalid content.
    #[error("{}: damaged", .path.display())]
    Damaged { path: PathBuf },
    /// The operating system refused an operation.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why the identity cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The checksum is wrong. It must not be replaced by a new one: who the server was is not known.
    #[error("{}: damaged", .path.display())]
    Damaged { path: PathBuf },
    /// It was written in another format.
    #[error(
        "{}: identity format {found}, this program knows format {}: use the program that wrote it, or a newer one",
        .path.display(),
        IDENTITY_VERSION
    )]
    UnsupportedVersion {
        path: PathBuf,
        /// The format of the file.
        found: u32,
    },
    /// It is longer than 64 KiB.
    #[error("an identity of {bytes} bytes is too long")]
    TooLong { bytes: usize },
    /// The operating system refused an operation.
    #[error("{}: {source}", .path.display())]
    Io {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Directory {
    /// Opens the data directory at `path` and locks it; makes it if nothing is there, or an empty directory.
    ///
    /// # Errors
    /// See [`DirectoryError`]. A directory that is refused is left as it was.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DirectoryError> {
        let path = path.into();
        create_directory(&path).map_err(|source| refused(&path, source))?;
        let is_new = check_entries(&path)?;
        owner::check(&path)?;
        make_private(&path).map_err(|source| refused(&path, source))?;
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(path.join(LOCK))
            .map_err(|source| refused(&path, source))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DirectoryError::Locked { path }),
            Err(errno) => {
                let source = errno.into();
                return Err(DirectoryError::Io { path, source });
            }
        }
        // Looked at again under the lock: another process may have been faster.
        if is_new && check_entries(&path)? {
            let text = format!("{FORMAT_TITLE}\nformat {FORMAT_VERSION}\n");
            replace(&FileDisk::new(&path), FORMAT, text.as_bytes())
                .map_err(|source| refused(&path, source))?;
        }
        check_format(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// True if there is an identity in the directory at `path`, valid or not. Touches nothing.
    ///
    /// # Errors
    /// See [`DirectoryError`]: a directory that may not be entered is none without an identity.
    pub fn has_identity(path: &Path) -> Result<bool, DirectoryError> {
        match fs::symlink_metadata(path.join(IDENTITY)) {
            Ok(_) => Ok(true),
            Err(source) if source.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(refused(path, source)),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files of the log called `name`, made if there are none.
    ///
    /// # Errors
    /// See [`DirectoryError`].
    ///
    /// # Panics
    /// If the name is not made of lower-case letters, digits and `-`.
    pub fn disk(&self, name: &str) -> Result<FileDisk, DirectoryError> {
        let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(
            !name.is_empty() && name.bytes().all(is_allowed),
            "a plain name"
        );
        let path = self.path.join(name);
        match create_directory(&path).and_then(|()| make_private(&path)) {
            Ok(()) => Ok(FileDisk::with_beside(path, self.path.clone())),
            Err(source) => Err(DirectoryError::Io { path, source }),
        }
    }

    /// The identity written last, `None` if none was.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn read_identity(&self) -> Result<Option<Bytes>, IdentityError> {
        let path = self.path.join(IDENTITY);
        let bytes = match fs::read(&path) {
            Ok(bytes) => Bytes::from(bytes),
            Err(source) if source.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(IdentityError::Io { path, source }),
        };
        match decode_identity(&bytes) {
            Ok(identity) => Ok(Some(identity)),
            Err(HeaderFault::Damaged) => Err(IdentityError::Damaged { path }),
            Err(HeaderFault::Version(found)) => {
                Err(IdentityError::UnsupportedVersion { path, found })
            }
        }
    }

    /// Replaces the identity, atomically and durably: after a crash it is the old or the new one.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn write_identity(&self, identity: &[u8]) -> Result<(), IdentityError> {
        if identity.len() > MAX_IDENTITY_BYTES {
            return Err(IdentityError::TooLong {
                bytes: identity.len(),
            });
        }
        let written = exchange(&self.path, &encode_identity(identity));
        written.map_err(|source| IdentityError::Io {
            path: self.path.join(IDENTITY),
            source,
        })?;
        // It means nothing from now on: where it stays it is passed over.
        let _ = fs::remove_file(self.path.join(JOIN));
        Ok(())
    }
}

impl Directory {
    /// The progress of verification, as [`Directory::write_scrub`] wrote it last. `None`: that is not known, which does no harm.
    pub fn read_scrub(&self) -> Option<Bytes> {
        let bytes = Bytes::from(fs::read(self.path.join(SCRUB)).ok()?);
        let (checksum, progress) = bytes.split_first_chunk::<4>()?;
        let is_sound = u32::from_le_bytes(*checksum) == crc32c(progress);
        is_sound.then(|| bytes.slice_ref(progress))
    }

    /// Writes the progress of verification. After a crash of the machine an older one may be there, or none.
    ///
    /// # Errors
    /// That of the system.
    pub fn write_scrub(&self, progress: &[u8]) -> io::Result<()> {
        let beside = self.path.join(new_name(SCRUB));
        let checksum = crc32c(progress).to_le_bytes();
        let mut file = fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(FILE_MODE)
            .open(&beside)?;
        file.write_all(&[&checksum[..], progress].concat())?;
        fs::rename(&beside, self.path.join(SCRUB))
    }
}

/// The file of an identity, which is not too long.
pub(crate) fn encode_identity(identity: &[u8]) -> Vec<u8> {
    assert!(
        identity.len() <= MAX_IDENTITY_BYTES,
        "a longer one was refused"
    );
    let mut bytes = vec![0; IDENTITY_HEADER_BYTES];
    put_u64(&mut bytes, 0, IDENTITY_MAGIC);
    put_u32(&mut bytes, 8, IDENTITY_VERSION);
    let length = u32::try_from(identity.len()).expect("at most 64 KiB");
    put_u32(&mut bytes, 12, length);
    bytes.extend_from_slice(identity);
    let checksum = identity_checksum(&bytes);
    put_u32(&mut bytes, 16, checksum);
    bytes
}

/// The identity in its file.
pub(crate) fn decode_identity(bytes: &Bytes) -> Result<Bytes, HeaderFault> {
    if bytes.len() < IDENTITY_HEADER_BYTES
        || get_u64(bytes, 0) != IDENTITY_MAGIC
        || get_u32(bytes, 16) != identity_checksum(bytes)
    {
        return Err(HeaderFault::Damaged);
    }
    match get_u32(bytes, 8) {
        IDENTITY_VERSION => {}
        found => return Err(HeaderFault::Version(found)),
    }
    if get_u32(bytes, 12) as usize != bytes.len() - IDENTITY_HEADER_BYTES {
        return Err(HeaderFault::Damaged);
    }
    Ok(bytes.slice(IDENTITY_HEADER_BYTES..))
}

/// Covers everything but itself.
pub(crate) fn identity_checksum(bytes: &[u8]) -> u32 {
    let mut covered = bytes[..16].to_vec();
    covered.extend_from_slice(&bytes[IDENTITY_HEADER_BYTES..]);
    crc32c(&covered)
}

/// Makes a directory, and its name durable; one that is there is fine.
fn create_directory(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_directory = fs::metadata(path)?.is_dir();
            return if is_directory {
                Ok(())
            } else {
                Err(ErrorKind::NotADirectory.into())
            };
        }
        Err(error) => return Err(error),
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Keeps other users out of a directory of a server: they could read its files, and take its lock. The directory of
/// another user, which this one may use, stays as that user made it.
fn make_private(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o777 == DIRECTORY_MODE {
        return Ok(());
    }
    match fs::set_permissions(path, fs::Permissions::from_mode(DIRECTORY_MODE)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        set => set,
    }
}

/// True if the directory is new: nothing is in it except files of a first start that was cut short.
fn check_entries(path: &Path) -> Result<bool, DirectoryError> {
    let mut foreign = None;
    for entry in fs::read_dir(path).map_err(|source| refused(path, source))? {
        let entry = entry.map_err(|source| refused(path, source))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == FORMAT {
            return Ok(false);
        }
        if name != LOCK && name != LOST_AND_FOUND && name != new_name(FORMAT) {
            foreign = Some(name);
        }
    }
    match foreign {
        None => Ok(true),
        Some(entry) => Err(DirectoryError::Foreign {
            path: path.to_owned(),
            entry,
        }),
    }
}

fn check_format(path: &Path) -> Result<(), DirectoryError> {
    let file = path.join(FORMAT);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::InvalidData => String::new(),
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            return Err(refused(&file, source));
        }
        Err(source) => return Err(DirectoryError::Io { path: file, source }),
    };
    let version = text
        .strip_prefix(FORMAT_TITLE)
        .and_then(|rest| rest.strip_prefix("\nformat "))
        .and_then(|rest| rest.strip_suffix('\n'))
        .and_then(|digits| digits.parse().ok());
    match version {
        Some(FORMAT_VERSION) => Ok(()),
        Some(found) => Err(DirectoryError::UnsupportedVersion {
            path: path.to_owned(),
            found,
            supported: FORMAT_VERSION,
        }),
        None => Err(DirectoryError::Damaged { path: file }),
    }
}

/// Replaces the identity, atomically and durably. The one before becomes the spare, whose room the next one takes.
fn exchange(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (spare, identity) = (path.join(SPARE), path.join(IDENTITY));
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(&spare)?;
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()?;
    let swapped = rustix::fs::renameat_with(CWD, &spare, CWD, &identity, RenameFlags::EXCHANGE);
    if swapped.is_err() {
        // There is no identity yet, or the file system does not know how to swap.
        fs::rename(&spare, &identity)?;
    }
    sync_directory(path)
}

/// Replaces a file, atomically and durably: after a crash it is the old or the new one.
pub(crate) fn replace<D: Disk>(disk: &D, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = create_new(disk, name, bytes.len() as u64)?;
    Ok(publish(disk, &file, name, &mut [IoSlice::new(bytes)])?)
}

fn owned(owner: Option<u32>) -> String {
    match owner {
        Some(owner) => format!("it belongs to user {owner}, and this one may not use it"),
        None => {
            "it, or a directory above it, belongs to a user who does not let this one in".to_owned()
        }
    }
}

/// Words for this format: a later program reads the formats of earlier ones, too.
fn or_newer(is_later: bool) -> &'static str {
    if is_later { ", or a newer one" } else { "" }
}

fn refused(path: &Path, source: io::Error) -> DirectoryError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::PermissionDenied => DirectoryError::NotYours {
            owner: fs::metadata(&path).ok().map(|it| it.uid()),
            path,
        },
        ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            DirectoryError::NotWritable { path, source }
        }
        _ => DirectoryError::Io { path, source },
    }
}

mod aside;
mod owner;
#[cfg(test)]
mod tests;
mod trust;
