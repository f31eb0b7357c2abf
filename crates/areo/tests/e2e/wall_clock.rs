//! A wall clock that is wrong, for one process: a small library that is loaded before its own (`wall_clock.c`).

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::{command, on_the_path};
use areo_fuzzing::not_run;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A minute in seconds.
pub(crate) const MINUTE: i64 = 60;
/// An hour in seconds.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// A year in seconds.
pub(crate) const YEAR: i64 = 365 * 24 * HOUR;

/// A clock that starts right, and is moved while processes run by it.
pub(crate) struct WallClock {
    folder: TempDir,
}

impl WallClock {
    /// None where there is no compiler for C, after it said so.
    pub(crate) fn right() -> Option<WallClock> {
        if library().is_none() {
            not_run("there is no C compiler 'cc', which makes wrong clocks");
            return None;
        }
        let clock = WallClock {
            folder: tempfile::tempdir().unwrap(),
        };
        clock.moved_by(0);
        Some(clock)
    }

    /// Moves the clock to this many seconds after the right time.
    pub(crate) fn moved_by(&self, seconds: i64) {
        // Written over, and not cut before: processes have mapped it.
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(false);
        let mut file = options.open(self.file()).unwrap();
        file.write_all(&seconds.to_ne_bytes()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("seconds")
    }

    /// The program by this clock.
    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        command
            .env("LD_PRELOAD", library().unwrap())
            .env("WALL_CLOCK", self.file());
        command
    }
}

/// The library, made once; none without a compiler.
fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if !on_the_path("cc") {
            return None;
        }
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/wall_clock.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (made, own) = (
            folder.join("wall_clock.so"),
            folder.join(format!("wall_clock-{}.so", std::process::id())),
        );
        let mut cc = Command::new("cc");
        cc.args([
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
        ]);
        let compiled = cc.arg(&own).arg(source).status().unwrap();
        assert!(compiled.success(), "{source}");
        fs::rename(&own, &made).unwrap();
        Some(made)
    };
    LIBRARY.get_or_init(make).as_deref()
}
