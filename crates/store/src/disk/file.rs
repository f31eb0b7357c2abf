//! A directory of the operating system as a [`Disk`].

use std::fs;
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{Disk, File, is_full};

/// The mode of a file: only the user that runs the server can read it.
pub(crate) const FILE_MODE: u32 = 0o600;
/// More slices than this in one call are refused by Linux (`IOV_MAX`).
const SLICES_PER_CALL: usize = 1024;

/// The files of one directory.
#[derive(Clone, Debug)]
pub struct FileDisk {
    path: PathBuf,
    beside: PathBuf,
    /// Kept open from the first file on, so that making names durable wants no descriptor.
    directory: Arc<OnceLock<fs::File>>,
}

/// An open file of a [`FileDisk`].
#[derive(Clone, Debug)]
pub struct DiskFile(Arc<fs::File>);

impl FileDisk {
    /// The files of the existing directory `path`, which has nothing beside it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::with_beside(path.clone(), path)
    }

    /// The files of the existing directory `path`, and where [`Disk::beside`] is.
    pub(crate) fn with_beside(path: PathBuf, beside: PathBuf) -> Self {
        Self {
            path,
            beside,
            directory: Arc::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn directory(&self) -> io::Result<&fs::File> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let directory = fs::File::open(&self.path)?;
        Ok(self.directory.get_or_init(|| directory))
    }
}

impl Disk for FileDisk {
    type File = DiskFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not UTF-8 is not ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str, size_bytes: u64) -> io::Result<DiskFile> {
        // Some file systems take all the room that there is before they see that it is not enough, and give it back: too
        // slow to be tried again and again.
        if size_bytes > self.free_space()? {
            return Err(ErrorKind::StorageFull.into());
        }
        self.directory()?;
        let path = self.path.join(name);
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path)?;
        if let Err(error) = preallocate(&file, size_bytes) {
            // Nothing must be left of a file that did not fit; the first error is the one that matters.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(DiskFile(Arc::new(file)))
    }

    fn open(&self, name: &str) -> io::Result<DiskFile> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))?;
        Ok(DiskFile(Arc::new(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        // Never retried, like the sync of a file.
        Ok(rustix::fs::fsync(self.directory()?)?)
    }

    fn beside(&self) -> Self {
        Self::new(&self.beside)
    }

    fn free_space(&self) -> io::Result<u64> {
        let status = rustix::io::retry_on_intr(|| rustix::fs::statvfs(&self.path))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

impl File for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match rustix::io::pread(&*self.0, &mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let parts = &parts[..parts.len().min(SLICES_PER_CALL)];
        let written = rustix::io::retry_on_intr(|| rustix::io::pwritev(&*self.0, parts, offset))?;
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Never retried: after a failed sync the kernel may have dropped the dirty pages, and a
        // second call would succeed without having written anything.
        Ok(rustix::fs::fdatasync(&*self.0)?)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, length_bytes: u64) -> io::Result<()> {
        self.0.set_len(length_bytes)?;
        // fsync, not fdatasync: the new length is what must be durable.
        Ok(rustix::fs::fsync(&*self.0)?)
    }
}

/// Makes the names in `path` durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = fs::File::open(path)?;
    Ok(rustix::fs::fsync(&directory)?)
}

fn preallocate(file: &fs::File, size_bytes: u64) -> io::Result<()> {
    if size_bytes == 0 {
        return Ok(());
    }
    let result = rustix::io::retry_on_intr(|| {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size_bytes)
    });
    match result {
        Ok(()) => Ok(()),
        // Some file systems cannot reserve; writing zeros is the same promise, paid for at once.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, size_bytes),
        Err(error) => {
            let error = io::Error::from(error);
            if is_full(&error) {
                return Err(ErrorKind::StorageFull.into());
            }
            Err(error)
        }
    }
}

fn write_zeros(file: &fs::File, size_bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < size_bytes {
        let length = (size_bytes - at).min(zeros.len() as u64);
        file.write_all_at(
            &zeros[..usize::try_from(length).expect("at most 1 MiB")],
            at,
        )?;
        at += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_what_is_written_and_names_follow_renames() {
        let directory = tempfile::tempdir().unwrap();
        let disk = FileDisk::new(directory.path());
        let file = disk.create("a", 8192).unwrap();
        assert_eq!(file.length().unwrap(), 8192);
        assert_eq!(
            disk.create("a", 1).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );

        // More slices than one system call takes.
        let bytes: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
        let mut parts: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
        super::super::write_all_at(&file, &mut parts, 100).unwrap();
        file.sync_data().unwrap();
        let mut back = vec![0; 3000];
        assert_eq!(file.read_at(&mut back, 100).unwrap(), 3000);
        assert_eq!(back, bytes);

        disk.rename("a", "b").unwrap();
        disk.sync_dir().unwrap();
        assert_eq!(disk.list().unwrap(), vec!["b".to_owned()]);
        let file = disk.open("b").unwrap();
        file.truncate(3100).unwrap();
        assert_eq!(file.read_at(&mut back, 3000).unwrap(), 100);
        assert!(disk.free_space().unwrap() > 0);
        disk.remove("b").unwrap();
        assert_eq!(disk.open("b").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn zeros_are_written_where_space_cannot_be_reserved() {
        let file = tempfile::tempfile().unwrap();
        write_zeros(&file, (1 << 20) + 5).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (1 << 20) + 5);
    }
}
