//! The wall clocks of servers, moved while they run, by a small library that is loaded before their own (`wall_clock.c`).

use crate::cluster::Program;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use tempfile::TempDir;

/// The source of the library.
const SOURCE: &str = include_str!("../../areo/tests/e2e/wall_clock.c");

/// The clock of all servers of a cluster.
pub(crate) struct WallClock {
    folder: TempDir,
}

impl WallClock {
    /// A clock that is right. `parent`: where its files go.
    ///
    /// # Errors
    /// A sentence that says why clocks cannot be moved here.
    pub(crate) fn make(parent: &Path) -> Result<WallClock, String> {
        let folder = tempfile::Builder::new().prefix("areo-").tempdir_in(parent);
        let clock = WallClock {
            folder: folder.map_err(|error| format!("no folder for the clock: {error}"))?,
        };
        let source = clock.folder.path().join("wall_clock.c");
        let written = fs::write(&source, SOURCE).and_then(|()| clock.set_ahead(0));
        written.map_err(|error| format!("the clock cannot be written: {error}"))?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]);
        let compiled = cc.arg(clock.library()).arg(&source).status();
        match compiled {
            Ok(status) if status.success() => Ok(clock),
            Ok(status) => Err(format!("'cc' makes no library that moves clocks: {status}")),
            Err(error) => Err(format!(
                "'cc', which makes a library that moves clocks, cannot be started: {error}"
            )),
        }
    }

    /// The program whose servers go by this clock.
    pub(crate) fn moving(&self, program: Program) -> Program {
        let (library, file) = (self.library(), self.file());
        let server = Rc::clone(&program.server);
        let by_this_clock = move || {
            let mut command = server();
            command.env("LD_PRELOAD", &library).env("WALL_CLOCK", &file);
            command
        };
        Program {
            server: Rc::new(by_this_clock),
            ..program
        }
    }

    /// Sets the clock this many seconds ahead of the right time, or behind it, at once for all running servers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn set_ahead(&self, seconds: i64) -> io::Result<()> {
        // Written over, and not cut before: processes have mapped it.
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.file())?;
        file.write_all(&seconds.to_ne_bytes())
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("wall_clock.so")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("seconds")
    }
}
