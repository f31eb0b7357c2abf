//! The only door from the log to a disk: a flat set of named files.
//!
//! [`FileDisk`] is a directory of the operating system. [`MemoryDisk`] is a disk that can lose unsynced writes, tear
//! them, flip bits, fail syncs, fill up and lose power between any two operations; tests and the simulator use it.
//!
//! Contract of every implementation:
//!
//! - Data is durable after [`File::sync_data`]; names (create, rename, remove) are durable after [`Disk::sync_dir`].
//! - [`File::truncate`] is durable when it returns, because its callers rely on the cut before they write elsewhere.
//! - Running out of space is reported as [`std::io::ErrorKind::StorageFull`] or `QuotaExceeded`, see [`is_full`].
//! - What the process or the system runs out of besides is an error that passes, see [`may_pass`]: the call had no effect.

use std::io::{self, ErrorKind, IoSlice};

use rustix::io::Errno;

mod file;
mod memory;

pub use file::{DiskFile, FileDisk};
pub(crate) use file::{FILE_MODE, sync_directory};
pub use memory::{MemoryDisk, MemoryFile, Survive, UnsyncedChange};

/// A flat set of named files.
pub trait Disk {
    /// An open file. Clones refer to the same file, so that a commit can run on another thread.
    type File: File;

    /// The names of all files, in no particular order.
    ///
    /// # Errors
    /// The error of the system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file of `size_bytes` zero bytes whose space is really there; it must not exist yet.
    ///
    /// # Errors
    /// The error of the system; after a full disk ([`is_full`]) nothing has been created.
    fn create(&self, name: &str, size_bytes: u64) -> io::Result<Self::File>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// The error of the system, `NotFound` among them.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Renames a file and replaces a file of the new name, atomically.
    ///
    /// # Errors
    /// The error of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// The error of the system, `NotFound` among them.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// The error of the system. What is durable afterwards is unknown.
    fn sync_dir(&self) -> io::Result<()>;

    /// The disk for the file that says how far the log reaches. It is apart from this disk, so that the two are not lost
    /// together.
    #[must_use]
    fn beside(&self) -> Self
    where
        Self: Sized;

    /// Space that this process could still allocate, in bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn free_space(&self) -> io::Result<u64>;
}

/// One open file. All methods work at given positions; there is no cursor.
pub trait File: Clone + Send + Sync + 'static {
    /// Reads at `offset` until `buffer` is full or the file ends; returns the number of bytes read.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some prefix of the concatenation of `parts` at `offset`; returns its length, which is not 0.
    ///
    /// # Errors
    /// The error of the system.
    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// Makes all data written so far durable, through every clone of this file.
    ///
    /// # Errors
    /// The error of the system. What is durable afterwards is unknown.
    fn sync_data(&self) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file to `length_bytes`, or makes it longer by zeros; durable when it returns.
    ///
    /// # Errors
    /// The error of the system.
    fn truncate(&self, length_bytes: u64) -> io::Result<()>;
}

/// True if an error says that there is no space left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// True if an error is no fault of the disk and passes by itself: the process or the system has no descriptor or no
/// memory left, or a signal came. The call had no effect. Never asked about a sync: after a failed one it is unknown
/// which writes are durable, for any reason.
pub fn may_pass(error: &io::Error) -> bool {
    let passing = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::INTR,
        Errno::AGAIN,
    ];
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| passing.contains(&errno))
}

/// Writes all of `parts` at `offset`.
pub(crate) fn write_all_at<F: File>(
    file: &F,
    mut parts: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        let written = file.write_vectored_at(parts, offset)?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        offset += written as u64;
        IoSlice::advance_slices(&mut parts, written);
    }
    Ok(())
}

/// Why a file has not got its name.
pub(crate) enum PublishError {
    /// There is no such file: nothing has changed.
    Unmade(io::Error),
    /// The call failed, and it is unknown which writes are durable.
    Unknown(io::Error),
}

/// Creates the file that [`publish`] names later. What an attempt before has left goes.
pub(crate) fn create_new<D: Disk>(disk: &D, name: &str, size_bytes: u64) -> io::Result<D::File> {
    let name = new_name(name);
    match disk.create(&name, size_bytes) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            disk.remove(&name)?;
            disk.create(&name, size_bytes)
        }
        created => created,
    }
}

/// Gives a file of [`create_new`] its first bytes and its name, both durable: after a crash it is whole, or the name
/// has its earlier file.
pub(crate) fn publish<D: Disk>(
    disk: &D,
    file: &D::File,
    name: &str,
    parts: &mut [IoSlice<'_>],
) -> Result<(), PublishError> {
    let unmade = |error| match may_pass(&error) {
        true => {
            // What stays goes with the next attempt.
            let _ = disk.remove(&new_name(name));
            PublishError::Unmade(error)
        }
        false => PublishError::Unknown(error),
    };
    write_all_at(file, parts, 0).map_err(unmade)?;
    file.sync_data().map_err(PublishError::Unknown)?;
    disk.rename(&new_name(name), name).map_err(unmade)?;
    disk.sync_dir().map_err(PublishError::Unknown)
}

impl From<PublishError> for io::Error {
    fn from(error: PublishError) -> io::Error {
        match error {
            PublishError::Unmade(error) | PublishError::Unknown(error) => error,
        }
    }
}

/// The name of a file while it is being made.
pub(crate) fn new_name(name: &str) -> String {
    format!("{name}.new")
}

/// Reads exactly `length` bytes at `offset`, or `None` when the file ends before that.
pub(crate) fn read_exactly<F: File>(
    file: &F,
    offset: u64,
    length: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; length];
    let read = file.read_at(&mut buffer, offset)?;
    assert!(read <= length, "a file fills no more than the buffer");
    Ok((read == length).then_some(buffer))
}
