//! The directory of a backup (`docs/backup.md`).
//!
//! ```text
//! lock                  locked while a process uses the directory
//! runs/000001.jsonl     the manifest of a run that ended: what has changed since the one before
//! unfinished.jsonl      that of the run that has not ended
//! content/ab/ab12...    a value, under the BLAKE3 hash of its bytes
//! unfinished/           values that are being written
//! ```

mod content;
mod manifest;
mod state;

pub(super) use content::{ContentWriter, Verified, verify};
pub(super) use manifest::{Begin, DomainLine, Item, ItemName, Kind, Line, Writer};
pub(super) use state::State;

use crate::exit::{Code, Failure, Outcome};
use manifest::Manifest;
use rustix::fs::FlockOperation;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The format that this program writes, and the newest one that it reads.
pub(super) const FORMAT: u32 = 1;

/// A directory with a backup, locked.
#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
    _lock: Option<File>,
}

impl Archive {
    /// Opens a directory to write the next run into it; makes it if it is not there.
    ///
    /// # Errors
    /// It holds something else, or another process uses it.
    pub(super) fn create(folder: &Path) -> Outcome<Archive> {
        let is_new = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(Failure::file("read", folder, &error)),
        };
        if !is_new && !folder.join("runs").is_dir() {
            return Err(Failure::usage(format!(
                "{} holds something else than a backup: name a new directory",
                folder.display()
            )));
        }
        for part in ["", "content", "unfinished", "runs"] {
            // Private, as data directories are.
            let mut make = DirBuilder::new();
            let path = folder.join(part);
            let made = make.recursive(true).mode(0o700).create(&path);
            made.map_err(|error| Failure::file("make", &path, &error))?;
        }
        let archive = Archive::lock(folder, FlockOperation::NonBlockingLockExclusive)?;
        // Left by a process that was killed.
        let left = archive.folder.join("unfinished");
        let swept = fs::read_dir(&left)
            .and_then(|mut entries| entries.try_for_each(|entry| fs::remove_file(entry?.path())));
        swept.map_err(|error| Failure::file("empty", &left, &error))?;
        Ok(archive)
    }

    /// Opens a directory to read its archive.
    ///
    /// # Errors
    /// It holds no backup, or a process writes into it.
    pub(super) fn open(folder: &Path) -> Outcome<Archive> {
        match fs::read_dir(folder.join("runs")) {
            Ok(_) => Archive::lock(folder, FlockOperation::NonBlockingLockShared),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(no_backup(folder)),
            Err(error) => Err(Failure::file("read", folder, &error)),
        }
    }

    fn lock(folder: &Path, operation: FlockOperation) -> Outcome<Archive> {
        let path = folder.join("lock");
        let failed = |error: &io::Error| Failure::file("lock", &path, error);
        let opened = match operation {
            FlockOperation::NonBlockingLockExclusive => {
                File::options().append(true).create(true).open(&path)
            }
            // Of a backup on a medium that cannot be written.
            _ => File::open(&path),
        };
        let lock = match opened {
            // Of a copy that left it out, into which nothing writes.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Archive {
                    folder: folder.into(),
                    _lock: None,
                });
            }
            opened => opened.map_err(|error| failed(&error))?,
        };
        match rustix::fs::flock(&lock, operation) {
            Ok(()) => Ok(Archive {
                folder: folder.into(),
                _lock: Some(lock),
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Failure::other(format!(
                "another process uses the backup in {}: wait until it has ended",
                folder.display()
            ))),
            Err(error) => Err(failed(&error.into())),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of the last run that ended; 0: there is none.
    ///
    /// # Errors
    /// One before it is missing.
    pub(super) fn last_run(&self) -> Outcome<u64> {
        let runs = self.folder.join("runs");
        let number = |entry: io::Result<fs::DirEntry>| {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            Ok(number.and_then(|number| number.parse::<u64>().ok()))
        };
        let numbers = fs::read_dir(&runs).and_then(|entries| {
            let numbers: io::Result<Vec<Option<u64>>> = entries.map(number).collect();
            Ok(numbers?.into_iter().flatten().collect::<BTreeSet<u64>>())
        });
        let numbers = numbers.map_err(|error| Failure::file("read", &runs, &error))?;
        let last = numbers.last().copied().unwrap_or(0);
        match (1..=last).find(|number| !numbers.contains(number)) {
            None => Ok(last),
            Some(missing) => Err(damaged(&self.run(missing), "it is missing")),
        }
    }

    /// Everything that the runs up to this one say together.
    ///
    /// # Errors
    /// A manifest is damaged, or of a newer format.
    pub(super) fn state(&self, last: u64) -> Outcome<State> {
        let mut state = State::default();
        for run in 1..=last {
            let path = self.run(run);
            let manifest = Manifest::read(&path)?;
            if manifest.begin.run != run {
                return Err(damaged(&path, "it is the manifest of another run"));
            }
            state.begin = Some(manifest.begin);
            manifest
                .lines
                .into_iter()
                .for_each(|line| state.apply(line));
        }
        Ok(state)
    }

    /// The manifest of a run that ended.
    fn run(&self, run: u64) -> PathBuf {
        self.folder.join(format!("runs/{run:06}.jsonl"))
    }

    /// Begins a manifest; it goes on with the one that was begun last if that is of this run, and takes of it what belongs to
    /// these domains and is whole. What it takes is applied to the state.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn begin(
        &self,
        begin: Begin,
        domains: &[String],
        state: &mut State,
    ) -> Outcome<Writer> {
        let path = self.folder.join("unfinished.jsonl");
        let failed = |error: io::Error| Failure::file("write", &path, &error);
        let is_wanted = |line: &Line| match line {
            Line::Put(item) => {
                domains.contains(&item.name.domain) && verify(&self.content(&item.content)).is_ok()
            }
            Line::Delete { name } => domains.contains(&name.domain),
            _ => false,
        };
        let left = Manifest::read_unfinished(&path, begin.run, &begin.cluster);
        let left: Vec<Line> = left.into_iter().filter(is_wanted).collect();
        let mut writer = Writer::create(&path, begin).map_err(failed)?;
        for line in left {
            writer.write(&line).map_err(failed)?;
            state.apply(line);
        }
        Ok(writer)
    }

    /// Ends a run: all of it is on disk, and its manifest is there from now on.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn finish(&self, run: u64, writer: Writer) -> Outcome {
        let (path, runs) = (self.run(run), self.folder.join("runs"));
        let finish = || {
            let written = writer.finish()?;
            // The values before the manifest that names them.
            rustix::fs::syncfs(&File::open(&runs)?)?;
            fs::rename(written, &path)?;
            File::open(&runs)?.sync_all()
        };
        finish().map_err(|error: io::Error| Failure::file("write", &path, &error))
    }

    /// The file with the content of this hash.
    pub(super) fn content(&self, hash: &str) -> PathBuf {
        let folder = hash.get(..2).unwrap_or("00");
        self.folder.join(format!("content/{folder}/{hash}"))
    }
}

fn no_backup(folder: &Path) -> Failure {
    Failure::new(
        Code::NotFound,
        format!("there is no backup in {}", folder.display()),
    )
}

/// A part of a backup that differs from the written one.
pub(super) fn damaged(path: &Path, why: &str) -> Failure {
    let sentence = format!("the backup is damaged: {}: {why}", path.display());
    Failure::new(Code::Corrupted, sentence)
}

#[cfg(test)]
mod tests;
