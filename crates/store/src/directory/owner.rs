//! The user to whom a data directory belongs: that of the files in it. The directory itself may be of another one, such as a volume that
//! is handed to a container.

use super::{
    DirectoryError, FORMAT, IDENTITY, JOIN, LOCK, LOST_AND_FOUND, SCRUB, SPARE, TRUST, refused,
};
use crate::disk::new_name;
use crate::format::EXTENT_NAME;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The files of a server in its data directory, beside its logs.
pub(super) const FILES: [&str; 8] = [
    LOCK,
    FORMAT,
    EXTENT_NAME,
    IDENTITY,
    SPARE,
    TRUST,
    JOIN,
    SCRUB,
];

/// Refuses a directory in which files of a server belong to another user than the files that this process makes there. Leaves it as
/// it was.
pub(super) fn check(directory: &Path) -> Result<(), DirectoryError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| refused(&path, source)
    };
    let own = rustix::process::geteuid().as_raw();
    let mut user = None;
    let mut check = |path: &Path, about: &Metadata| {
        let owner = about.uid();
        if owner == own {
            return Ok(());
        }
        // Some file systems give all files to one user, such as an export to machines whose administrators it does not trust.
        let user = match user {
            Some(user) => user,
            None => *user.insert(user_of_new(directory).map_err(failed(directory))?),
        };
        match owner == user {
            true => Ok(()),
            false => Err(DirectoryError::OtherUser {
                path: path.to_owned(),
                directory: directory.to_owned(),
                owner,
                user,
            }),
        }
    };
    // Other files may be of other users, but for those of logs.
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let entry = entry.map_err(failed(directory))?;
        let (path, name) = (entry.path(), entry.file_name());
        // A log may lie elsewhere, where a link leads.
        let Some(about) = seen(fs::metadata(&path)).map_err(failed(&path))? else {
            continue;
        };
        if about.is_dir() && name != LOST_AND_FOUND {
            for file in fs::read_dir(&path).map_err(failed(&path))? {
                let file = file.map_err(failed(&path))?;
                if file.file_name() == LOST_AND_FOUND {
                    continue;
                }
                let file = file.path();
                if let Some(about) = seen(fs::symlink_metadata(&file)).map_err(failed(&file))? {
                    check(&file, &about)?;
                }
            }
        } else if FILES.iter().any(|file| name == *file) {
            check(&path, &about)?;
        }
    }
    Ok(())
}

/// `None`: it is gone. Another process may hold the directory.
fn seen(about: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match about {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        about => about.map(Some),
    }
}

/// The user to whom a file belongs that this process makes here.
fn user_of_new(directory: &Path) -> io::Result<u32> {
    let probe = directory.join(new_name(LOCK));
    let file = fs::File::create(&probe)?;
    fs::remove_file(&probe)?;
    let about = file.metadata()?;
    assert!(about.is_file(), "it was made as one");
    Ok(about.uid())
}
