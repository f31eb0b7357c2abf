//! A small disk for one server: a file system in memory that can be filled.

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Room for a few segments of the store, of 64 MiB each, and for those that replace them.
const BYTES: &str = "size=512m";
const FILLER: &str = "filler";

/// Unmounted when this is dropped.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// # Errors
    /// Why there is none, in a few words.
    pub(crate) fn mount(parent: &Path) -> Result<SmallDisk, String> {
        let folder = tempfile::Builder::new()
            .prefix("areo-disk-")
            .tempdir_in(parent);
        let folder = folder.map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", BYTES, "areo-nemesis"]);
        match mount.arg(folder.path()).output() {
            Ok(output) if output.status.success() => Ok(SmallDisk { folder }),
            Ok(_) => Err("mounting a small file system needs root".into()),
            Err(error) => Err(format!("`mount` cannot be run: {error}")),
        }
    }

    /// A directory for a server.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Takes all the room that is left.
    pub(crate) fn fill(&self) -> io::Result<()> {
        let filler = File::create(self.folder.path().join(FILLER))?;
        let (mut length, mut step) = (0, u64::MAX);
        loop {
            let left = fstatvfs(&filler)?;
            step = step.min(left.f_bavail * left.f_frsize);
            if step == 0 {
                return Ok(());
            }
            match fallocate(&filler, FallocateFlags::empty(), length, step) {
                Ok(()) => length += step,
                // The server was faster.
                Err(rustix::io::Errno::NOSPC) => step /= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives the room back.
    pub(crate) fn free(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.path().join(FILLER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What cannot be unmounted goes with the machine.
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.folder.path())
            .status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_disk_takes_nothing_until_it_is_freed() {
        let parent = tempfile::tempdir().unwrap();
        let disk = match SmallDisk::mount(parent.path()) {
            Ok(disk) => disk,
            Err(why) => return areo_fuzzing::not_run(&why),
        };
        let file = disk.folder.path().join("file");
        disk.fill().unwrap();
        let refused = std::fs::write(&file, [1; 10_000]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        disk.free().unwrap();
        std::fs::write(&file, [1; 10_000]).unwrap();
        drop(disk);
        let left = std::fs::read_dir(parent.path()).unwrap().count();
        assert_eq!(left, 0, "nothing is left behind");
    }
}
