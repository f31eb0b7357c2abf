//! A log that is not used any more, because another server takes the place of that which wrote it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::disk::sync_directory;
use crate::format::EXTENT_NAME;

use super::{Directory, SCRUB, create_directory, make_private};

impl Directory {
    /// Returns true if the log called `name` can be set aside: its directory is one of this file system, or not there.
    pub fn may_set_aside(&self, name: &str) -> bool {
        let here = fs::metadata(&self.path).map(|it| it.dev());
        match fs::symlink_metadata(self.path.join(name)) {
            Ok(log) => log.is_dir() && here.is_ok_and(|here| here == log.dev()),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Moves the log called `name`, and the files beside it, to the directory `aside`. Durable when it returns. To be
    /// called again after a crash, before anything opens the log.
    ///
    /// # Errors
    /// That of the system: part of it may be done.
    pub fn set_aside(&self, name: &str, aside: &str) -> io::Result<()> {
        let to = self.path.join(aside);
        create_directory(&to)?;
        make_private(&to)?;
        for entry in [name, EXTENT_NAME, SCRUB] {
            match fs::rename(self.path.join(entry), to.join(entry)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        sync_directory(&to)?;
        sync_directory(&self.path)
    }

    /// Removes the log that was set aside in the directory `aside`; nothing there is fine.
    ///
    /// # Errors
    /// That of the system: part of it may be gone.
    pub fn remove_aside(&self, aside: &str) -> io::Result<()> {
        assert!(
            Path::new(aside).components().count() == 1,
            "a name in the directory"
        );
        match fs::remove_dir_all(self.path.join(aside)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        sync_directory(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const ASIDE: &str = "incomplete-log-of-1";

    /// A directory with a log and all that lies beside it, and what may be missing of that.
    fn directory(folder: &Path, missing: &[&str]) -> Directory {
        let directory = Directory::open(folder.join("data")).unwrap();
        directory.write_identity(b"who").unwrap();
        fs::create_dir(directory.path().join("log")).unwrap();
        for file in ["log/segment", EXTENT_NAME, SCRUB] {
            fs::write(directory.path().join(file), file).unwrap();
        }
        for name in missing {
            match *name {
                "log" => fs::remove_dir_all(directory.path().join(name)).unwrap(),
                file => fs::remove_file(directory.path().join(file)).unwrap(),
            }
        }
        directory
    }

    fn entries(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<String> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A crash after any of the steps, and with any of the files missing to begin with: the next call goes on to one end.
    #[test]
    fn a_log_is_set_aside_through_crashes() {
        let all = ["log", EXTENT_NAME, SCRUB];
        for missing in 0_u32..1 << all.len() {
            let missing: Vec<&str> = (0..all.len())
                .filter(|i| missing >> i & 1 == 1)
                .map(|i| all[i])
                .collect();
            for steps in 0..=all.len() + 1 {
                let folder = tempfile::tempdir().unwrap();
                let directory = directory(folder.path(), &missing);
                assert!(directory.may_set_aside("log"));
                let (from, to) = (directory.path().to_owned(), directory.path().join(ASIDE));
                if steps > 0 {
                    fs::create_dir(&to).unwrap();
                }
                for name in all.iter().take(steps.saturating_sub(1)) {
                    let _ = fs::rename(from.join(name), to.join(name));
                }
                for _ in 0..2 {
                    directory.set_aside("log", ASIDE).unwrap();
                    let mut left: Vec<&str> = all.to_vec();
                    left.retain(|name| !missing.contains(name));
                    left.sort_unstable();
                    assert_eq!(entries(&to), left, "{missing:?} {steps}");
                    let kept = ["FORMAT", "IDENTITY", "LOCK", ASIDE];
                    assert_eq!(entries(&from), kept, "{missing:?} {steps}");
                }
                for _ in 0..2 {
                    directory.remove_aside(ASIDE).unwrap();
                    assert_eq!(entries(&from), ["FORMAT", "IDENTITY", "LOCK"]);
                }
                assert_eq!(directory.read_identity().unwrap().unwrap(), b"who"[..]);
            }
        }
    }

    /// It would be moved to another disk than it was put on, or could not be moved at all.
    #[test]
    fn a_log_that_lies_elsewhere_is_left_there() {
        let folder = tempfile::tempdir().unwrap();
        let directory = directory(folder.path(), &["log"]);
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, directory.path().join("log")).unwrap();
        assert!(!directory.may_set_aside("log"));
    }
}
