//! A local file that a value is written to.
//!
//! A file appears complete or not at all: the value is written beside it, under a name that goes away when the process ends (but
//! for a kill, which leaves no time for it), and then takes its name. A file that is there keeps what belongs to it: its mode, its owner, its other names and what is mounted on
//! it. Where taking its name would change one of them, the complete value is copied into it. A name of an open descriptor, such
//! as `/dev/stdout`, is that descriptor, and not the file behind it.

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;
use unfinished::Unfinished;

mod unfinished;

pub use unfinished::{abandon, is_kept, settle};

/// Links from one name to the next; more are a circle.
const LINKS: usize = 40;

/// The destination of a value: a file, a pipe or standard output.
#[derive(Debug)]
pub struct Place(Kind);

#[derive(Debug)]
enum Kind {
    /// A descriptor, a pipe or a device: nothing stands beside it.
    Stream(Arc<File>),
    /// A file that is to be.
    File(Beside),
}

/// A file beside the one that it is to be.
#[derive(Debug)]
struct Beside {
    file: NamedTempFile,
    /// A second handle of it: a thread that writes does not keep the name.
    writer: Arc<File>,
    target: PathBuf,
    unfinished: Unfinished,
    /// The file that is there, and whether the value is copied into it.
    present: Option<(File, bool)>,
}

/// The end of a chain of links.
enum Target {
    /// A descriptor of this process.
    Descriptor(i32),
    /// A name that is no link.
    Path(PathBuf),
}

/// Finds out before a value is read that it could not be written.
///
/// # Errors
/// Why not.
pub fn check(path: &Path) -> io::Result<()> {
    let refused = |kind, why: &str| Err(io::Error::new(kind, why));
    let target = match follow(path)? {
        Target::Descriptor(number) => return inherited(number),
        Target::Path(target) => target,
    };
    match fs::metadata(&target) {
        Ok(about) if about.is_dir() => {
            let why = "it is a directory; name a file in it";
            refused(ErrorKind::IsADirectory, why)
        }
        Ok(about) if about.is_file() => open_present(&target, &about).map(drop),
        Ok(_) => Ok(()),
        Err(_) if folder(&target).is_dir() => Ok(()),
        Err(_) => refused(ErrorKind::NotFound, "there is no such directory"),
    }
}

/// The descriptor of this process that the path names, if it names one.
///
/// # Errors
/// The path leads in a circle.
pub fn descriptor_of(path: &Path) -> io::Result<Option<i32>> {
    Ok(match follow(path)? {
        Target::Descriptor(number) => Some(number),
        Target::Path(_) => None,
    })
}

/// True if the path names a stream, of which nothing can be read again: a descriptor, a pipe or a device.
///
/// # Errors
/// The path leads in a circle.
pub fn is_stream(path: &Path) -> io::Result<bool> {
    Ok(match follow(path)? {
        Target::Descriptor(_) => true,
        Target::Path(target) => {
            fs::metadata(target).is_ok_and(|about| !about.is_file() && !about.is_dir())
        }
    })
}

impl Place {
    /// Makes a file beside the target, or opens the stream that it is. Waits for the reader of a pipe.
    ///
    /// # Errors
    /// This user may not write there.
    pub fn open(path: &Path) -> io::Result<Place> {
        let target = match follow(path)? {
            Target::Descriptor(number) => {
                return Ok(Place(Kind::Stream(Arc::new(descriptor(number)?))));
            }
            Target::Path(target) => target,
        };
        let about = match fs::metadata(&target) {
            Ok(about) if about.is_file() => Some(about),
            Ok(_) => {
                let stream = OpenOptions::new().write(true).open(&target)?;
                return Ok(Place(Kind::Stream(Arc::new(stream))));
            }
            Err(_) => None,
        };
        Beside::open(target, about.as_ref()).map(|beside| Place(Kind::File(beside)))
    }

    /// Writes a piece on a thread of its own: a reader may take long, and so may a disk that is behind.
    ///
    /// # Errors
    /// The reader is gone, or the disk has no room.
    pub async fn write(&mut self, piece: Bytes) -> io::Result<()> {
        let file = Arc::clone(self.file());
        let write = move || write_to(&file, &piece);
        spawn_blocking(write).await.expect("writing does not panic")
    }

    /// Writes a piece, and waits for the reader of a stream meanwhile.
    ///
    /// # Errors
    /// As [`Place::write`].
    pub(crate) fn write_here(&mut self, piece: &[u8]) -> io::Result<()> {
        write_to(self.file(), piece)
    }

    fn file(&self) -> &Arc<File> {
        match &self.0 {
            Kind::Stream(stream) => stream,
            Kind::File(beside) => &beside.writer,
        }
    }

    /// Ends a value of which all was written: the target has it from now on. Once begun it goes on without its caller, on a
    /// thread of its own; a process that ends waits for it with [`settle`].
    ///
    /// # Errors
    /// The target could not be replaced, or not all of the value was copied into it: then the error says *incomplete*.
    pub async fn keep(self) -> io::Result<()> {
        match self.0 {
            Kind::Stream(_) => Ok(()),
            Kind::File(beside) => {
                let kept = spawn_blocking(move || beside.keep());
                kept.await.expect("keeping does not panic")
            }
        }
    }
}

/// Writes all of it, also to a stream that another process has asked not to be waited for.
fn write_to(stream: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stream, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut streams = [PollFd::new(stream, PollFlags::OUT)];
                match poll(&mut streams, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Beside {
    fn open(target: PathBuf, about: Option<&Metadata>) -> io::Result<Beside> {
        let Some(about) = about else {
            let file = beside(Permissions::from_mode(0o666)).tempfile_in(folder(&target))?;
            return Beside::new(file, target, None);
        };
        let present = open_present(&target, about)?;
        let mode = Permissions::from_mode(about.mode() & 0o777);
        let (file, copied) = match beside(mode.clone()).tempfile_in(folder(&target)) {
            Ok(file) => {
                // The umask has a part in the mode of a new file.
                file.as_file().set_permissions(mode)?;
                let copied = is_more_than_a_name(about, &file.as_file().metadata()?);
                (file, copied)
            }
            // Nothing can be made beside it, and it can be written.
            Err(_) if present.is_some() => (NamedTempFile::with_prefix(".areo-")?, true),
            Err(error) => return Err(error),
        };
        Beside::new(file, target, present.map(|file| (file, copied)))
    }

    fn new(
        file: NamedTempFile,
        target: PathBuf,
        present: Option<(File, bool)>,
    ) -> io::Result<Beside> {
        Ok(Beside {
            writer: Arc::new(file.as_file().try_clone()?),
            unfinished: Unfinished::new(file.path(), &target),
            file,
            target,
            present,
        })
    }

    fn keep(self) -> io::Result<()> {
        self.unfinished.keep()?;
        let (mut file, present) = match self.present {
            Some((present, true)) => (self.file, present),
            present => match (self.file.persist(&self.target), present) {
                (Ok(_), _) => return Ok(()),
                // Something is mounted on it.
                (Err(error), Some((present, _))) if is_busy(&error.error) => (error.file, present),
                (Err(error), _) => return Err(error.error),
            },
        };
        let incomplete =
            |error: io::Error| io::Error::new(error.kind(), format!("it is incomplete: {error}"));
        file.rewind()?;
        self.unfinished.copy()?;
        present.set_len(0)?;
        let copied = io::copy(&mut file, &mut &present);
        copied.map(drop).map_err(incomplete)
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

fn beside(mode: Permissions) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".areo-").permissions(mode);
    builder
}

/// True if the present file is more than its name: other links lead to it, or a new file would have another owner or group.
fn is_more_than_a_name(present: &Metadata, other: &Metadata) -> bool {
    present.nlink() > 1 || (present.uid(), present.gid()) != (other.uid(), other.gid())
}

/// Opens the file that is there, to see that this user may write it. `None`: it is a program that runs, whose name another
/// file may take.
///
/// # Errors
/// The user may not. A file that no user may write is meant to stay, also where the system lets its administrator write it.
fn open_present(target: &Path, about: &Metadata) -> io::Result<Option<File>> {
    if about.mode() & 0o222 == 0 {
        let why = "it is read-only: make it writable, or name another file";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    match OpenOptions::new().write(true).open(target) {
        Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => Ok(None),
        opened => opened.map(Some),
    }
}

/// Follows links by hand: the system would follow that of a descriptor to its file, and an end that does not exist is none for it.
fn follow(path: &Path) -> io::Result<Target> {
    let mut at = path.to_owned();
    for _ in 0..LINKS {
        if let Some(number) = number_of_descriptor(&at) {
            return Ok(Target::Descriptor(number));
        }
        match fs::read_link(&at) {
            Ok(next) => at = folder(&at).join(next),
            Err(_) => return Ok(Target::Path(at)),
        }
    }
    Err(Errno::LOOP.into())
}

/// The descriptor of this process that a path such as `/dev/fd/1` names.
fn number_of_descriptor(path: &Path) -> Option<i32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let parent = fs::canonicalize(folder(path)).ok()?;
    let mut names = parent.strip_prefix("/proc").ok()?.iter();
    let own = std::process::id().to_string();
    let is_own = names.next() == Some(OsStr::new(&own)) && names.next_back() == Some("fd".as_ref());
    is_own.then_some(number)
}

/// Finds out that a descriptor was handed to this process. One that the process opened itself, such as a connection to a server,
/// happens to have its number: the system closes those for programs that are run.
fn inherited(number: i32) -> io::Result<()> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
    let about = about.map_err(|_| Errno::BADF)?;
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    match flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0) {
        true => Ok(()),
        false => Err(Errno::BADF.into()),
    }
}

/// Duplicates a descriptor. The duplicate shares its position: writes of others to the descriptor before and after
/// stay before and after.
fn descriptor(number: i32) -> io::Result<File> {
    inherited(number)?;
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    let again = pidfd_getfd(process, number, PidfdGetfdFlags::empty());
    again.map(File::from).map_err(io::Error::from)
}

fn folder(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
